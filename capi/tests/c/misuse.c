/* Misuse of the library: every call that is wrong returns an error code. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "socbfs.h"

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #condition, socbfs_message()); \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

enum { SIDE = 300, VERTICES = SIDE * SIDE };

static socbfs_search *shared;
static volatile int is_over;

/* Runs the search of another thread until one call is refused. */
static void *intrude(void *unused) {
    (void)unused;
    while (!is_over) {
        socbfs_code code = socbfs_search_run(shared, 0, NULL);
        CHECK(code == SOCBFS_OK || code == SOCBFS_BUSY);
        if (code == SOCBFS_BUSY) {
            CHECK(strstr(socbfs_message(), "another thread"));
            is_over = 1;
        }
    }
    return NULL;
}

/* Makes a search for this thread alone, over the graph that all threads share. */
static void *search_alone(void *graph) {
    socbfs_search *search = NULL;
    socbfs_outcome outcome;
    int i;
    CHECK(socbfs_search_new(graph, NULL, NULL, NULL, &search) == SOCBFS_OK);
    for (i = 0; i < 5; i++) {
        CHECK(socbfs_search_run(search, (uint32_t)i, &outcome) == SOCBFS_OK);
        CHECK(outcome.reached == VERTICES);
    }
    /* Every thread has its own message. */
    CHECK(socbfs_search_run(search, VERTICES, NULL) == SOCBFS_ARGUMENT);
    socbfs_search_free(&search);
    return NULL;
}

/* Wrong calls with a grid. */
static void grids(void) {
    const socbfs_cell inside = {1, 2}, outside = {3, 0}, wall = {0, 1};
    const uint8_t cells[6] = {1, 0, 1, 1, 1, 1}, occupancy[6] = {0, 0, 100, 255, 0, 100};
    uint32_t levels[6];
    uint8_t steps[6];
    socbfs_cell path[6];
    size_t count = 9;
    socbfs_outcome outcome;
    socbfs_grid *grid = (socbfs_grid *)path;
    CHECK(socbfs_grid_new(2, 0, NULL, SOCBFS_FOUR, 1, &grid) == SOCBFS_ARGUMENT && !grid);
    CHECK(socbfs_grid_new(2, 3, cells, 6, 1, &grid) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "4, 8 and 9"));
    CHECK(socbfs_grid_new(2, 3, cells, SOCBFS_FOUR, 5000, &grid) == SOCBFS_ARGUMENT);
    CHECK(socbfs_grid_new(2, 3, cells, SOCBFS_FOUR, 1, NULL) == SOCBFS_NULL);
    CHECK(socbfs_grid_new(2, 3, occupancy, SOCBFS_FOUR, 1, &grid) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "(0, 2) (row, column) is 100"));
    CHECK(socbfs_grid_new(2, 3, cells, SOCBFS_FOUR, 1, &grid) == SOCBFS_OK);
    CHECK(socbfs_grid_levels(grid, levels, 6) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "no search"));
    CHECK(socbfs_grid_path(grid, inside, path, 6, &count) == SOCBFS_OK && count == 0);
    CHECK(socbfs_grid_run(grid, NULL, 1, SOCBFS_NONE, NULL, NULL) == SOCBFS_NULL);
    CHECK(socbfs_grid_run(grid, NULL, 0, SOCBFS_NONE, NULL, NULL) == SOCBFS_ARGUMENT);
    CHECK(socbfs_grid_run(grid, &outside, 1, SOCBFS_NONE, NULL, NULL) == SOCBFS_ARGUMENT);
    CHECK(socbfs_grid_run(grid, &inside, 1, SOCBFS_NONE, &outside, NULL) == SOCBFS_ARGUMENT);
    CHECK(socbfs_grid_run(grid, &wall, 1, SOCBFS_NONE, NULL, NULL) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "blocked"));
    CHECK(socbfs_grid_run(NULL, &inside, 1, SOCBFS_NONE, NULL, NULL) == SOCBFS_NULL);
    CHECK(socbfs_grid_run(grid, &inside, 1, 1, NULL, &outcome) == SOCBFS_OK && outcome.end == SOCBFS_DEPTH && outcome.reached == 3);
    CHECK(socbfs_grid_levels(grid, levels, 6) == SOCBFS_OK && levels[2] == 1 && levels[0] == SOCBFS_NONE);
    CHECK(socbfs_grid_levels(grid, levels, 5) == SOCBFS_ARGUMENT && socbfs_grid_steps(grid, steps, 7) == SOCBFS_ARGUMENT);
    CHECK(socbfs_grid_steps(grid, steps, 6) == SOCBFS_OK && steps[5] == SOCBFS_STAY && steps[2] == 4 && steps[1] == SOCBFS_NO_STEP);
    CHECK(socbfs_grid_assign(grid, cells, 5) == SOCBFS_ARGUMENT && socbfs_grid_assign(grid, cells, 6) == SOCBFS_OK);
    CHECK(socbfs_grid_assign(grid, occupancy, 6) == SOCBFS_ARGUMENT);
    CHECK(socbfs_grid_fill(grid, wall, 1, UINT32_MAX, 1) == SOCBFS_ARGUMENT && socbfs_grid_fill(grid, wall, 1, 1, 1) == SOCBFS_OK);
    CHECK(socbfs_grid_run(grid, &wall, 1, SOCBFS_NONE, &inside, &outcome) == SOCBFS_OK && outcome.end == SOCBFS_TARGET);
    CHECK(socbfs_grid_path(grid, inside, path, 1, &count) == SOCBFS_OK && count == 3 && path[0].row == 1 && path[0].column == 2);
    CHECK(socbfs_grid_path(grid, inside, NULL, 0, NULL) == SOCBFS_OK && socbfs_grid_path(grid, inside, NULL, 2, NULL) == SOCBFS_NULL);
    socbfs_grid_stop(grid);
    CHECK(socbfs_grid_run(grid, &wall, 1, SOCBFS_NONE, NULL, NULL) == SOCBFS_STOPPED);
    socbfs_grid_go_on(grid);
    CHECK(socbfs_grid_deadline(grid, 0) == SOCBFS_OK && socbfs_grid_run(grid, &wall, 1, SOCBFS_NONE, NULL, NULL) == SOCBFS_STOPPED);
    CHECK(socbfs_grid_deadline(grid, -1) == SOCBFS_OK && socbfs_grid_run(grid, &wall, 1, SOCBFS_NONE, NULL, NULL) == SOCBFS_OK);
    socbfs_grid_stop(NULL), socbfs_grid_go_on(NULL), socbfs_grid_free(NULL);
    socbfs_grid_free(&grid);
    socbfs_grid_free(&grid);
    CHECK(!grid);
}

static void count_messages(void *count, uint32_t level, const char *message) {
    CHECK(level >= 1 && level <= 4 && message);
    ++*(int *)count;
}

static void *stop_soon(void *stopper) {
    usleep(200000);
    socbfs_stopper_stop(stopper);
    return NULL;
}

int main(void) {
    uint32_t *pairs = malloc(4 * VERTICES * sizeof *pairs), *levels = malloc(VERTICES * sizeof *levels);
    uint32_t edges = 0, v, count = 7;
    const uint32_t offsets[] = {0, 1, 2}, targets[] = {1, 0}, falling[] = {0, 2, 1}, strange[] = {1, 9};
    const uint64_t wide[] = {0, 1, 2}, huge[] = {0, 1, UINT64_MAX};
    const uint32_t *parents = NULL;
    socbfs_graph *graph = NULL, *grid = NULL;
    socbfs_runtime *runtime = NULL;
    socbfs_search *search = NULL;
    socbfs_many *many = NULL;
    socbfs_meter *meter = NULL;
    socbfs_outcome outcome;
    socbfs_energy energy;
    uint8_t bytes[4];
    pthread_t threads[3];
    int i, messages = 0;
    CHECK(pairs && levels);

    /* Null for every pointer. */
    CHECK(socbfs_graph_from_csr(2, NULL, targets, 0, 1, &graph) == SOCBFS_NULL && strstr(socbfs_message(), "offsets"));
    CHECK(socbfs_graph_from_csr(2, offsets, NULL, 0, 1, &graph) == SOCBFS_NULL && strstr(socbfs_message(), "targets"));
    CHECK(socbfs_graph_from_csr(2, offsets, targets, 0, 1, NULL) == SOCBFS_NULL);
    CHECK(socbfs_graph_from_edges(2, NULL, 1, 0, 1, &graph) == SOCBFS_NULL);
    CHECK(socbfs_graph_from_file(NULL, 0, 1, &graph) == SOCBFS_NULL);
    grids();
    CHECK(socbfs_search_new(NULL, NULL, NULL, NULL, &search) == SOCBFS_NULL && !search);
    CHECK(socbfs_search_run(NULL, 0, NULL) == SOCBFS_NULL);
    CHECK(socbfs_search_run_into(NULL, 0, SOCBFS_NONE, SOCBFS_NONE, NULL, NULL, 0, NULL) == SOCBFS_NULL);
    CHECK(socbfs_search_levels(NULL, levels, 2) == SOCBFS_NULL);
    CHECK(socbfs_search_account(NULL, NULL, 0, NULL) == SOCBFS_NULL);
    CHECK(socbfs_many_new(NULL, 1, &many) == SOCBFS_NULL);
    CHECK(socbfs_meter_begin(NULL) == SOCBFS_NULL);
    CHECK(socbfs_graph_vertices(NULL) == 0 && socbfs_graph_edges(NULL) == 0 && !socbfs_meter_scope(NULL));
    CHECK(!socbfs_search_fallen_back(NULL));
    socbfs_search_stop(NULL);
    socbfs_search_go_on(NULL);
    socbfs_many_stop(NULL);
    socbfs_many_go_on(NULL);
    CHECK(socbfs_many_deadline(NULL, 1) == SOCBFS_NULL);
    CHECK(socbfs_stopper_new(1, NULL) == SOCBFS_NULL);
    socbfs_stopper_stop(NULL);
    socbfs_stopped_by(NULL);
    socbfs_stopper_free(NULL);
    socbfs_graph_free(NULL);

    /* Invalid graphs, files, devices, policies and boards. */
    CHECK(socbfs_graph_from_csr(2, falling, targets, 0, 1, &graph) == SOCBFS_INPUT && !graph);
    CHECK(socbfs_graph_from_csr(2, offsets, strange, 0, 1, &graph) == SOCBFS_INPUT && strstr(socbfs_message(), "9"));
    CHECK(socbfs_graph_from_csr64(2, huge, targets, 0, 1, &graph) != SOCBFS_OK);
    CHECK(socbfs_graph_from_csr(2, offsets, targets, 2, 1, &graph) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "flags"));
    CHECK(socbfs_graph_from_csr(2, offsets, targets, 0, UINT32_MAX, &graph) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "limit"));
    CHECK(socbfs_graph_from_csr(2, (const uint32_t *)((const char *)offsets + 1), targets, 0, 1, &graph) == SOCBFS_ARGUMENT);
    CHECK(socbfs_graph_from_file("/nowhere/at all.mtx", 0, 1, &graph) == SOCBFS_INPUT && strstr(socbfs_message(), "at all.mtx"));
    CHECK(socbfs_runtime_new("no such device", NULL, NULL, 0, &runtime) != SOCBFS_OK || runtime);
    socbfs_runtime_free(&runtime);
    CHECK(socbfs_runtime_new(NULL, "no-such-policy", NULL, 0, &runtime) == SOCBFS_ARGUMENT);
    CHECK(socbfs_runtime_new("cpu", NULL, NULL, 5000, &runtime) == SOCBFS_ARGUMENT);
    CHECK(socbfs_runtime_new(NULL, "rule:level > 1 and fronter_edges > 5", NULL, 0, &runtime) == SOCBFS_ARGUMENT);
    CHECK(strstr(socbfs_message(), "column 15: unknown name"));
    CHECK(socbfs_runtime_new(NULL, NULL, "no-such-board", 0, &runtime) == SOCBFS_DEVICE);
    CHECK(socbfs_runtime_new_at(NULL, NULL, NULL, 0, "slowest", &runtime) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "efficient"));
    CHECK(socbfs_runtime_new_at(NULL, NULL, "generic", 0, "efficient", &runtime) == SOCBFS_DEVICE && !runtime);
    CHECK(socbfs_runtime_new_at(NULL, NULL, NULL, 0, NULL, &runtime) == SOCBFS_OK && runtime);
    socbfs_runtime_free(&runtime);
    {
        FILE *board = fopen("points.toml", "w");
        CHECK(board && fputs("schema = 1\n[board]\nname = 'points'\n[[operating_points]]\ngoal = 'efficient'\ncpus = '0'\n", board) > 0);
        CHECK(fclose(board) == 0);
        CHECK(socbfs_runtime_new_at(NULL, NULL, "points.toml", 0, "efficient", &runtime) == SOCBFS_OK && runtime);
        socbfs_runtime_free(&runtime);
        CHECK(socbfs_runtime_new_at(NULL, NULL, "points.toml", 0, "product", &runtime) == SOCBFS_DEVICE && !runtime);
        CHECK(remove("points.toml") == 0);
    }
    CHECK(socbfs_runtime_new(NULL, "\xff", NULL, 0, &runtime) == SOCBFS_ARGUMENT);

    /* A symmetric file holds arcs in both directions. Reading it gives messages, to a callback that wants them. */
    {
        char name[] = "/tmp/socbfs-XXXXXX";
        const char text[] = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n";
        int file = mkstemp(name);
        CHECK(file >= 0 && write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1 && close(file) == 0);
        CHECK(socbfs_log_to(3, count_messages, &messages) == SOCBFS_OK);
        CHECK(socbfs_graph_from_file(name, SOCBFS_DIRECTED, 1, &graph) == SOCBFS_OK);
        /* The format, and the size. */
        CHECK(messages >= 2);
        socbfs_graph_free(&graph);
        messages = 0;
        CHECK(socbfs_log_to(0, NULL, NULL) == SOCBFS_OK);
        CHECK(socbfs_graph_from_file(name, SOCBFS_DIRECTED, 1, &graph) == SOCBFS_OK && messages == 0);
        CHECK(remove(name) == 0);

        /* A pipe that nothing writes to, which is stopped by another thread and by a deadline. The searches of a graph have their own stop. */
        CHECK(mkfifo(name, 0600) == 0);
        for (i = 0; i < 2; i++) {
            socbfs_stopper *stopper = NULL;
            socbfs_graph *none = NULL;
            const time_t begin = time(NULL);
            CHECK(socbfs_stopper_new(0.0 / 0.0 * (double)count, &stopper) == SOCBFS_ARGUMENT && !stopper);
            CHECK(socbfs_stopper_new(i == 0 ? -1 : 0.2, &stopper) == SOCBFS_OK);
            if (i == 0) CHECK(pthread_create(&threads[0], NULL, stop_soon, stopper) == 0);
            socbfs_stopped_by(stopper);
            CHECK(socbfs_graph_from_file(name, 0, 1, &none) == SOCBFS_STOPPED && !none && time(NULL) - begin <= 10);
            CHECK(socbfs_graph_from_csr(2, offsets, targets, 0, 1, &none) == SOCBFS_STOPPED && !none);
            if (i == 0) CHECK(pthread_join(threads[0], NULL) == 0);
            socbfs_stopper_free(&stopper);
            CHECK(socbfs_graph_from_csr(2, offsets, targets, 0, 1, &none) == SOCBFS_STOPPED && !stopper);
            CHECK(socbfs_search_new(graph, NULL, NULL, NULL, &search) == SOCBFS_OK);
            CHECK(socbfs_search_run(search, 0, NULL) == SOCBFS_OK);
            socbfs_search_free(&search);
            socbfs_stopped_by(NULL);
        }
        CHECK(remove(name) == 0);
        CHECK(socbfs_search_new(graph, NULL, NULL, NULL, &search) == SOCBFS_OK);
        CHECK(socbfs_search_run(search, 0, &outcome) == SOCBFS_OK && outcome.reached == 3);
        socbfs_search_free(&search);
        socbfs_graph_free(&graph);
    }

    /* A graph may have no vertices. */
    CHECK(socbfs_graph_from_csr(0, offsets, NULL, 0, 1, &graph) == SOCBFS_OK && socbfs_graph_vertices(graph) == 0);
    socbfs_graph_free(&graph);
    CHECK(!graph);
    socbfs_graph_free(&graph); /* freed twice */

    /* The graph reads the arrays in place. A search does not need the graph or the runtime once it is made. */
    CHECK(socbfs_graph_from_csr64(2, wide, targets, SOCBFS_DIRECTED, 1, &graph) == SOCBFS_OK);
    CHECK(socbfs_graph_edges(graph) == 2);
    CHECK(socbfs_runtime_new("cpu", "rule:level > 2", NULL, 2, &runtime) == SOCBFS_OK);
    CHECK(socbfs_search_new(graph, runtime, NULL, NULL, &search) == SOCBFS_OK);
    socbfs_runtime_free(&runtime);
    socbfs_graph_free(&graph);
    CHECK(socbfs_search_run(search, 2, NULL) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "root 2"));
    CHECK(socbfs_search_run(search, (uint32_t)-1, NULL) == SOCBFS_ARGUMENT);
    /* Neither a new search nor one that was refused has a tree. */
    CHECK(socbfs_search_parents(search, &parents, &count) == SOCBFS_OK && count == 0 && !parents);
    CHECK(socbfs_search_levels(search, levels, 2) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "no tree"));
    CHECK(socbfs_search_run_until(search, 0, SOCBFS_NONE, 2, NULL) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "target 2"));
    CHECK(socbfs_search_levels(search, levels, 3) == SOCBFS_ARGUMENT);
    CHECK(socbfs_search_levels(search, NULL, 2) == SOCBFS_NULL);
    CHECK(socbfs_search_parents(search, NULL, NULL) == SOCBFS_NULL);
    CHECK(socbfs_search_run(search, 1, &outcome) == SOCBFS_OK && outcome.reached == 2 && outcome.levels == 2 && outcome.edges == 2);
    CHECK(socbfs_search_parents(search, &parents, &count) == SOCBFS_OK && count == 2 && parents[0] == 1 && parents[1] == 1);
    CHECK(socbfs_search_levels(search, levels, 2) == SOCBFS_OK && levels[0] == 1 && levels[1] == 0);
    /* What the levels did; room for fewer levels than there are, and for none. */
    {
        socbfs_level account[3];
        size_t entries = 7;
        CHECK(socbfs_search_account(search, account, 3, &entries) == SOCBFS_OK && entries == 2);
        CHECK(account[0].level == 0 && account[0].levels == 1 && account[0].found == 1 && account[0].frontier_vertices == 1);
        CHECK(account[0].bottom_up == 0 && account[0].place == SOCBFS_ON_CPU && account[0].gpu_permille == 0);
        CHECK(account[1].level == 1 && account[1].found == 0 && account[1].unvisited_vertices == 0);
        account[1].level = 99;
        CHECK(socbfs_search_account(search, account, 1, NULL) == SOCBFS_OK && account[1].level == 99);
        CHECK(socbfs_search_account(search, NULL, 0, &entries) == SOCBFS_OK && entries == 2);
        CHECK(socbfs_search_account(search, NULL, 1, &entries) == SOCBFS_NULL);
    }
    CHECK(socbfs_search_deadline(search, 0.0 / 0.0 * (double)count) == SOCBFS_ARGUMENT);

    /* Results in arrays of the caller. */
    CHECK(socbfs_search_run_into(search, 1, SOCBFS_NONE, SOCBFS_NONE, levels, levels + 2, 2, &outcome) == SOCBFS_OK);
    CHECK(outcome.reached == 2 && outcome.edges == 2 && outcome.end == SOCBFS_COMPLETE);
    CHECK(levels[0] == 1 && levels[1] == 1 && levels[2] == 1 && levels[3] == 0);
    CHECK(socbfs_search_parents(search, &parents, &count) == SOCBFS_OK && count == 0);
    CHECK(socbfs_search_run_into(search, 1, 0, SOCBFS_NONE, NULL, levels, 2, &outcome) == SOCBFS_OK && outcome.end == SOCBFS_DEPTH);
    CHECK(levels[0] == SOCBFS_NONE && levels[1] == 0 && outcome.reached == 1);
    CHECK(socbfs_search_run_into(search, 1, SOCBFS_NONE, SOCBFS_NONE, levels, levels + 1, 2, NULL) == SOCBFS_ARGUMENT);
    CHECK(strstr(socbfs_message(), "overlap"));
    CHECK(socbfs_search_run_into(search, 1, SOCBFS_NONE, SOCBFS_NONE, NULL, levels, 3, NULL) == SOCBFS_ARGUMENT);
    CHECK(socbfs_search_run_into(search, 1, SOCBFS_NONE, SOCBFS_NONE, NULL, levels, SIZE_MAX, NULL) == SOCBFS_ARGUMENT);
    CHECK(socbfs_search_run_into(search, 2, SOCBFS_NONE, SOCBFS_NONE, NULL, NULL, 0, NULL) == SOCBFS_ARGUMENT);

    /* Searches that are stopped by a call and by a deadline. */
    socbfs_search_stop(search);
    CHECK(socbfs_search_run(search, 0, NULL) == SOCBFS_STOPPED);
    CHECK(socbfs_search_parents(search, &parents, &count) == SOCBFS_OK && count == 0 && !parents);
    CHECK(socbfs_search_levels(search, levels, 2) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "no tree"));
    socbfs_search_go_on(search);
    CHECK(socbfs_search_deadline(search, 0) == SOCBFS_OK && socbfs_search_run(search, 0, NULL) == SOCBFS_STOPPED);
    CHECK(socbfs_search_deadline(search, 1e300) == SOCBFS_OK && socbfs_search_run(search, 0, NULL) == SOCBFS_OK);
    CHECK(socbfs_search_deadline(search, -1) == SOCBFS_OK && socbfs_search_run(search, 0, NULL) == SOCBFS_OK);
    socbfs_search_free(&search);
    CHECK(!search);
    socbfs_search_free(&search);

    /* A grid, searched to a depth, to a target and completely. */
    for (v = 0; v < VERTICES; v++) {
        if (v % SIDE + 1 < SIDE) pairs[2 * edges] = v, pairs[2 * edges++ + 1] = v + 1;
        if (v / SIDE + 1 < SIDE) pairs[2 * edges] = v, pairs[2 * edges++ + 1] = v + SIDE;
    }
    CHECK(socbfs_log_to(4, count_messages, &messages) == SOCBFS_OK);
    CHECK(socbfs_graph_from_edges(VERTICES, pairs, edges, 0, 2, &grid) == SOCBFS_OK && socbfs_graph_edges(grid) == edges);
    CHECK(socbfs_search_new(grid, NULL, NULL, NULL, &search) == SOCBFS_OK);
    CHECK(socbfs_search_run_until(search, 0, 2, SOCBFS_NONE, &outcome) == SOCBFS_OK);
    CHECK(outcome.end == SOCBFS_DEPTH && outcome.reached == 6 && outcome.levels == 3);
    CHECK(socbfs_search_run_until(search, 0, SOCBFS_NONE, SIDE, &outcome) == SOCBFS_OK && outcome.end == SOCBFS_TARGET);
    CHECK(socbfs_search_run_until(search, 0, SOCBFS_NONE, SOCBFS_NONE, &outcome) == SOCBFS_OK);
    CHECK(outcome.end == SOCBFS_COMPLETE && outcome.reached == VERTICES && outcome.levels == 2 * SIDE - 1);
    CHECK(socbfs_search_levels(search, levels, VERTICES) == SOCBFS_OK && levels[VERTICES - 1] == 2 * SIDE - 2);
    {
        const uint32_t corners[] = {0, VERTICES - 1, 0}, bad[] = {0, VERTICES};
        size_t count = 0;
        CHECK(socbfs_search_run_from(search, corners, 3, SOCBFS_NONE, SOCBFS_NONE, &outcome) == SOCBFS_OK);
        CHECK(outcome.end == SOCBFS_COMPLETE && outcome.reached == VERTICES);
        CHECK(outcome.levels == SIDE);
        CHECK(socbfs_search_sources(search, levels, VERTICES) == SOCBFS_OK && levels[1] == 0 && levels[VERTICES - 2] == VERTICES - 1);
        CHECK(socbfs_search_sources(search, levels, 1) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "1 sources"));
        CHECK(socbfs_search_sources(search, NULL, VERTICES) == SOCBFS_NULL);
        CHECK(socbfs_search_components(search, levels, VERTICES, &count) == SOCBFS_OK && count == 1 && levels[VERTICES - 1] == 0);
        CHECK(socbfs_search_components(search, levels, VERTICES, NULL) == SOCBFS_OK);
        CHECK(socbfs_search_components(search, levels, 1, &count) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "1 labels"));
        CHECK(socbfs_search_components(search, NULL, VERTICES, &count) == SOCBFS_NULL);
        CHECK(socbfs_search_components(NULL, levels, VERTICES, &count) == SOCBFS_NULL);
        CHECK(socbfs_search_run_from(search, corners, 2, 1, SOCBFS_NONE, &outcome) == SOCBFS_OK && outcome.reached == 6);
        CHECK(socbfs_search_run_from(search, NULL, 0, SOCBFS_NONE, SOCBFS_NONE, &outcome) == SOCBFS_OK && outcome.reached == 0);
        CHECK(outcome.levels == 0);
        CHECK(socbfs_search_run_from(search, NULL, 1, SOCBFS_NONE, SOCBFS_NONE, NULL) == SOCBFS_NULL);
        CHECK(socbfs_search_run_from(search, bad, 2, SOCBFS_NONE, SOCBFS_NONE, NULL) == SOCBFS_ARGUMENT);
    }
    CHECK(socbfs_log_to(0, NULL, NULL) == SOCBFS_OK);

    /* Many roots. */
    {
        const uint32_t roots[] = {0, VERTICES - 1}, bad[] = {0, VERTICES};
        CHECK(socbfs_many_new(grid, UINT32_MAX, &many) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "limit"));
        CHECK(socbfs_many_new(grid, 2, &many) == SOCBFS_OK);
        CHECK(socbfs_many_trees(many, roots, 1, levels, levels, VERTICES, NULL) == SOCBFS_ARGUMENT && strstr(socbfs_message(), "overlap"));
        CHECK(socbfs_many_trees(many, levels + VERTICES - 1, 1, levels, NULL, VERTICES, NULL) == SOCBFS_ARGUMENT);
        CHECK(strcmp(socbfs_message(), "roots and levels overlap") == 0);
        CHECK(socbfs_many_trees(many, pairs, 1, levels, pairs, VERTICES, NULL) == SOCBFS_ARGUMENT);
        CHECK(strcmp(socbfs_message(), "roots and parents overlap") == 0);
        CHECK(socbfs_many_levels8(many, roots, 2, bytes, 4, NULL) == SOCBFS_ARGUMENT);
        CHECK(socbfs_many_trees(many, bad, 2, levels, NULL, VERTICES, NULL) == SOCBFS_ARGUMENT);
        CHECK(socbfs_many_trees(many, NULL, 2, levels, NULL, VERTICES, NULL) == SOCBFS_NULL);
        CHECK(socbfs_many_trees(many, roots + 1, 1, levels, pairs, VERTICES, &outcome) == SOCBFS_OK);
        CHECK(outcome.reached == VERTICES && levels[0] == 2 * SIDE - 2 && pairs[VERTICES - 1] == VERTICES - 1);
        /* A byte is too small for these levels. */
        CHECK(socbfs_many_levels8(many, roots, 1, (uint8_t *)pairs, VERTICES, NULL) == SOCBFS_ARGUMENT);
        socbfs_many_stop(many);
        CHECK(socbfs_many_trees(many, roots, 1, levels, NULL, VERTICES, NULL) == SOCBFS_STOPPED);
        socbfs_many_go_on(many);
        CHECK(socbfs_many_deadline(many, 0) == SOCBFS_OK);
        CHECK(socbfs_many_trees(many, roots, 1, levels, NULL, VERTICES, NULL) == SOCBFS_STOPPED);
        CHECK(socbfs_many_deadline(many, -1) == SOCBFS_OK);
        CHECK(socbfs_many_trees(many, roots, 1, levels, NULL, VERTICES, NULL) == SOCBFS_OK);
        socbfs_many_free(&many);
        socbfs_many_free(&many);
    }

    /* Two threads use one search, then several threads use a search each. */
    shared = search;
    CHECK(pthread_create(&threads[0], NULL, intrude, NULL) == 0);
    for (i = 0; !is_over && i < 100000; i++) {
        socbfs_code code = socbfs_search_run(search, 0, NULL);
        CHECK(code == SOCBFS_OK || code == SOCBFS_BUSY);
        if (code == SOCBFS_BUSY) is_over = 1;
    }
    CHECK(is_over);
    CHECK(pthread_join(threads[0], NULL) == 0);
    for (i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, search_alone, grid) == 0);
    for (i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    socbfs_graph_free(&grid);
    CHECK(socbfs_search_run(search, 1, &outcome) == SOCBFS_OK && outcome.reached == VERTICES);
    socbfs_search_free(&search);

    /* A meter measures, or the message gives the reason why it can't. */
    if (socbfs_meter_new(&meter) == SOCBFS_OK) {
        CHECK(socbfs_meter_end(meter, &energy) == SOCBFS_ARGUMENT);
        CHECK(socbfs_meter_begin(meter) == SOCBFS_OK);
        CHECK(socbfs_meter_end(meter, NULL) == SOCBFS_NULL && socbfs_meter_scope(meter));
    } else {
        CHECK(strlen(socbfs_message()) > 0 && !meter);
    }
    socbfs_meter_free(&meter);
    CHECK(socbfs_meter_new_for(NULL, &meter) == SOCBFS_NULL && !meter);
    free(pairs);
    free(levels);
    printf("misuse: all refused, version %s\n", socbfs_version());
    return 0;
}
