// Finds a route through a grid with walls. The search ends as soon as it reaches the target.
#include <cstdio>

#include "socbfs.hpp"

int main() {
    const char *const map[] = {
        "...#....",
        ".#.#.##.",
        ".#...#..",
        ".####.#.",
        "......#.",
    };
    const uint32_t height = 5, width = 8, target = height * width - 1;
    const auto is_free = [&](uint32_t v) { return map[v / width][v % width] == '.'; };
    std::vector<uint32_t> edges;
    for (uint32_t v = 0; v < height * width; v++) {
        if (!is_free(v)) continue;
        if (v % width + 1 < width && is_free(v + 1)) edges.insert(edges.end(), {v, v + 1});
        if (v / width + 1 < height && is_free(v + width)) edges.insert(edges.end(), {v, v + width});
    }
    try {
        const auto graph = socbfs::graph::from_edges(height * width, edges);
        socbfs::search search(graph);
        const auto outcome = search.run(0, SOCBFS_NONE, target);
        if (outcome.end != SOCBFS_TARGET) {
            std::puts("there is no way");
            return 1;
        }
        std::vector<std::string> drawn(map, map + height);
        uint32_t steps = 0;
        for (uint32_t v = target; v != 0; v = search.parents()[v], steps++) drawn[v / width][v % width] = 'o';
        drawn[0][0] = 'o';
        for (const auto &line : drawn) std::puts(line.c_str());
        std::printf("%u steps\n", steps);
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        return 1;
    }
}
