/* Prints the distances from one vertex, in the graph of a file or in a small grid. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "socbfs.h"

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, socbfs_message());
    return EXIT_FAILURE;
}

int main(int argc, char **argv) {
    /* 0 - 1 - 2
     * |   |   |
     * 3 - 4 - 5 */
    const uint32_t edges[] = {0, 1, 1, 2, 3, 4, 4, 5, 0, 3, 1, 4, 2, 5};
    socbfs_graph *graph = NULL;
    socbfs_search *search = NULL;
    socbfs_outcome outcome;
    const uint32_t *parents = NULL;
    uint32_t count = 0, v;

    socbfs_code code = argc > 1 ? socbfs_graph_from_file(argv[1], 0, 0, &graph) : socbfs_graph_from_edges(6, edges, 7, 0, 0, &graph);
    if (code != SOCBFS_OK) return fail("graph");
    if (socbfs_search_new(graph, NULL, NULL, NULL, &search) != SOCBFS_OK) return fail("search");
    if (socbfs_search_run(search, 0, &outcome) != SOCBFS_OK) return fail("run");
    printf("%" PRIu64 " vertices on %" PRIu32 " levels\n", outcome.reached, outcome.levels);

    if (socbfs_search_parents(search, &parents, &count) != SOCBFS_OK) return fail("parents");
    uint32_t *levels = malloc(count * sizeof *levels);
    if (!levels || socbfs_search_levels(search, levels, count) != SOCBFS_OK) return fail("levels");
    for (v = 0; v < count && v < 6; v++) printf("vertex %" PRIu32 ": level %" PRIu32 ", parent %" PRIu32 "\n", v, levels[v], parents[v]);

    free(levels);
    socbfs_search_free(&search);
    socbfs_graph_free(&graph);
    return EXIT_SUCCESS;
}
