/* Checks that a search allocates nothing, and measures the time of a call. The library uses this program's malloc, which counts calls. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "socbfs.h"

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static volatile unsigned long calls;

void *malloc(size_t size) { return __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST), __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST), __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST), __libc_realloc(block, size); }
void *memalign(size_t align, size_t size) { return __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST), __libc_memalign(align, size); }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }
int posix_memalign(void **block, size_t align, size_t size) { return (*block = memalign(align, size)) ? 0 : 12; }
void free(void *block) { __libc_free(block); }

enum { VERTICES = 20000, TIMES = 20000 };

static uint32_t pairs[2 * VERTICES], levels[VERTICES];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, socbfs_message());
    return 1;
}

int main(void) {
    socbfs_graph *graph = NULL, *tiny = NULL;
    socbfs_search *search = NULL;
    socbfs_many *many = NULL;
    socbfs_grid *grid = NULL;
    socbfs_outcome outcome;
    socbfs_cell cells[3] = {{0, 0}, {99, 199}, {7, 8}};
    uint8_t *steps = (uint8_t *)pairs;
    uint32_t v, round;
    socbfs_level account[8];
    size_t entries, all_entries = 0;
    unsigned long before;
    double begin;
    for (v = 0; v < VERTICES; v++) pairs[2 * v] = v, pairs[2 * v + 1] = v * 7 % 10007;
    if (socbfs_graph_from_edges(VERTICES, pairs, VERTICES, 0, 1, &graph) != SOCBFS_OK) return fail("graph");
    if (socbfs_search_new(graph, NULL, NULL, NULL, &search) != SOCBFS_OK) return fail("search");
    if (socbfs_many_new(graph, 2, &many) != SOCBFS_OK) return fail("many");
    if (socbfs_grid_new(100, 200, NULL, SOCBFS_EIGHT, 2, &grid) != SOCBFS_OK) return fail("grid");
    /* The first search keeps room for its sources, steps and sources of cells. */
    if (socbfs_grid_run(grid, cells, 3, SOCBFS_NONE, NULL, NULL) != SOCBFS_OK) return fail("grid's first run");
    if (socbfs_grid_steps(grid, steps, VERTICES) || socbfs_grid_sources(grid, levels, VERTICES)) return fail("grid's first steps");
    if (calls == 0) return fail("nothing is counted"), 1;
    before = calls;
    for (round = 0; round < 4; round++) {
        if (socbfs_search_run(search, round, &outcome) != SOCBFS_OK || outcome.reached < 2) return fail("run");
        uint32_t set[3] = {round, 3, round};
        if (socbfs_search_run_from(search, set, 3, SOCBFS_NONE, SOCBFS_NONE, &outcome) != SOCBFS_OK) return fail("run from");
        if (socbfs_search_run_until(search, round, 1, 3, &outcome) != SOCBFS_OK) return fail("run until");
        if (socbfs_search_account(search, account, 8, &entries) != SOCBFS_OK) return fail("account");
        all_entries += entries;
        if (socbfs_search_levels(search, levels, VERTICES) != SOCBFS_OK) return fail("levels");
        if (socbfs_search_components(search, levels, VERTICES, NULL) != SOCBFS_OK) return fail("components");
        if (socbfs_search_run_into(search, round, SOCBFS_NONE, 3, pairs, levels, VERTICES, &outcome) != SOCBFS_OK) return fail("run into");
        if (socbfs_grid_fill(grid, cells[2], 1, round + 1, 0) != SOCBFS_OK) return fail("fill");
        if (socbfs_grid_run(grid, cells, 2, SOCBFS_NONE, NULL, &outcome) != SOCBFS_OK) return fail("grid's run");
        if (outcome.reached != VERTICES - round - 1 || outcome.levels != 100) return fail("what the grid's run reached");
        if (socbfs_grid_levels(grid, levels, VERTICES) != SOCBFS_OK || levels[50 * 200 + 3] != 50) return fail("grid's levels");
        if (socbfs_grid_steps(grid, steps, VERTICES) != SOCBFS_OK || steps[0] != SOCBFS_STAY) return fail("grid's steps");
        if (socbfs_grid_sources(grid, levels, VERTICES) != SOCBFS_OK || levels[VERTICES - 2] != VERTICES - 1) return fail("grid's sources");
        if (socbfs_grid_path(grid, cells[1], cells + 2, 1, &entries) != SOCBFS_OK || entries != 1) return fail("grid's path");
        if (cells[2].row != 99 || cells[2].column != 199) return fail("the cells of a path");
        cells[2].row = 7, cells[2].column = 8;
        if (socbfs_many_trees(many, &round, 1, levels, pairs, VERTICES, NULL) != SOCBFS_OK) return fail("many");
    }
    if (all_entries == 0) return fail("no search had levels");
    if (calls != before) {
        fprintf(stderr, "%lu calls of the allocator while searching\n", calls - before);
        return 1;
    }
    socbfs_search_free(&search);
    /* A search of four vertices takes hardly any time, so this is the time of the call itself. */
    pairs[0] = 0, pairs[1] = 1, pairs[2] = 1, pairs[3] = 2;
    if (socbfs_graph_from_edges(4, pairs, 2, 0, 1, &tiny) != SOCBFS_OK) return fail("tiny");
    if (socbfs_search_new(tiny, NULL, NULL, NULL, &search) != SOCBFS_OK) return fail("search");
    begin = now();
    for (round = 0; round < TIMES; round++)
        if (socbfs_search_run(search, round % 3, &outcome) != SOCBFS_OK) return fail("run");
    printf("no call of the allocator; %.2f us a call on four vertices\n", (now() - begin) / TIMES * 1e6);
    socbfs_search_free(&search);
    socbfs_many_free(&many);
    socbfs_grid_free(&grid);
    socbfs_graph_free(&tiny);
    socbfs_graph_free(&graph);
    return 0;
}
