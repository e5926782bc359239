/* A driver that misbehaves (tests/implementations/misbehaves.c) does not end the program: a search on its device is refused with a code, and
 * the CPU searches on. Prints the code and the message. */
#include <stdio.h>
#include <stdlib.h>

#include "socbfs.h"

int main(void) {
    const uint32_t offsets[] = {0, 1, 3, 4}, targets[] = {1, 0, 2, 1};
    socbfs_graph *graph = NULL;
    socbfs_runtime *runtime = NULL;
    socbfs_search *search = NULL;
    socbfs_outcome outcome;
    socbfs_code code;
    if (socbfs_graph_from_csr(3, offsets, targets, 0, 1, &graph) || socbfs_runtime_new("#1", "tg", NULL, 1, &runtime)) return 3;
    code = socbfs_search_new(graph, runtime, NULL, NULL, &search);
    if (!code) code = socbfs_search_run(search, 0, &outcome);
    printf("code %d: %s\n", (int)code, code ? socbfs_message() : "");
    socbfs_search_free(&search);
    if (socbfs_search_new(graph, NULL, NULL, NULL, &search) || socbfs_search_run(search, 0, &outcome) || outcome.reached != 3) return 4;
    socbfs_search_free(&search);
    socbfs_runtime_free(&runtime);
    socbfs_graph_free(&graph);
    return 0;
}
