// Searches of the C++ interface that are stopped go on when they may, and bad arguments are exceptions.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "socbfs.hpp"

static void expect(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

static socbfs_code code_of(socbfs::search &search) {
    try {
        search.run(0);
    } catch (const socbfs::error &error) {
        return error.code();
    }
    return SOCBFS_OK;
}

int main() {
    // The path 0 - 1 - 2.
    const auto graph = socbfs::graph::from_edges(3, {0, 1, 1, 2});
    socbfs::search search(graph);
    try {
        search.parents();
        expect(false, "parents before the first search");
    } catch (const std::logic_error &) {
    }
    expect(search.run(0).levels == 3, "a search");
    search.stop();
    expect(code_of(search) == SOCBFS_STOPPED, "a stopped search");
    search.go_on();
    expect(code_of(search) == SOCBFS_OK, "it goes on");
    search.deadline(0);
    expect(code_of(search) == SOCBFS_STOPPED, "a deadline that has passed");
    search.deadline(-1);
    expect(code_of(search) == SOCBFS_OK, "no deadline");
    expect(socbfs_search_run(search.get(), 1, nullptr) == SOCBFS_OK && search.parents()[0] == 1, "the handle of C");
    socbfs::stopper stopper, late(0);
    for (const socbfs::stopper *one : {&stopper, &late}) {
        stopper.stop();
        one->use();
        try {
            socbfs::graph::from_edges(3, {0, 1, 1, 2});
            expect(false, "a graph is made although that is stopped");
        } catch (const socbfs::error &error) {
            expect(error.code() == SOCBFS_STOPPED, "the code of a stopped call");
        }
    }
    socbfs_stopped_by(nullptr);
    expect(socbfs::graph::from_edges(3, {0, 1, 1, 2}).vertices() == 3, "graphs are made again");
    try {
        socbfs::graph::from_edges(3, {0, 1, 1});
        expect(false, "an odd number of ends");
    } catch (const std::invalid_argument &) {
    }
}
