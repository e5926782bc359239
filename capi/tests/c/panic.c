/* A panic in the library is returned as an error code. The library is built with the feature planted-panic. */
#include <stdio.h>
#include <string.h>

#include "socbfs.h"

#define CHECK(what)                                                                                                                          \
    do {                                                                                                                                     \
        if (!(what)) return fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, socbfs_message()), 1;                                      \
    } while (0)

int main(void) {
    const uint32_t pairs[] = {0, 1, 1, 2};
    const uint32_t *parents;
    uint32_t count, round;
    socbfs_graph *graph = NULL;
    socbfs_search *search = NULL, *other = NULL;
    socbfs_outcome outcome;
    CHECK(socbfs_graph_from_edges(3, pairs, 2, 0, 1, &graph) == SOCBFS_OK);
    CHECK(socbfs_search_new(graph, NULL, NULL, NULL, &search) == SOCBFS_OK);
    CHECK(socbfs_search_new(graph, NULL, NULL, NULL, &other) == SOCBFS_OK);
    for (round = 0; round < 3; round++) {
        CHECK(socbfs_search_run(search, UINT32_MAX - 1, &outcome) == SOCBFS_PANIC);
        CHECK(strstr(socbfs_message(), "planted") != NULL && strstr(socbfs_message(), "report") != NULL);
        /* Other handles still work, and this one is no longer locked. */
        CHECK(socbfs_search_run(other, 0, &outcome) == SOCBFS_OK && outcome.reached == 3);
        CHECK(socbfs_search_run(search, 2, &outcome) == SOCBFS_OK && outcome.reached == 3);
        CHECK(socbfs_search_parents(search, &parents, &count) == SOCBFS_OK && count == 3 && parents[0] == 1);
    }
    /* A root that is not a vertex and does not cause the planted panic. */
    CHECK(socbfs_search_run(search, 3, NULL) == SOCBFS_ARGUMENT);
    socbfs_search_free(&search);
    socbfs_search_free(&other);
    socbfs_graph_free(&graph);
    return 0;
}
