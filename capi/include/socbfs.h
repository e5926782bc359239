/* Breadth-first search for chips whose CPU and GPU share memory.
 *
 * Every function that can fail returns a code; socbfs_message() says why, and what to do. Nothing unwinds into the
 * caller. Vertices are 32-bit numbers from 0.
 *
 * Threads: a graph and a runtime may be used by any number of threads at once. Only one thread at a time may use a search (of one root or
 * of many), a grid or a meter: a call while another runs returns SOCBFS_BUSY, except those that stop it. A stopper stops the making of a graph.
 * Messages belong to the thread that made the call. A handle must not be freed while another thread uses it.
 *
 * Made from capi/src: cargo test -p socbfs-capi compares them. */

#ifndef SOCBFS_H
#define SOCBFS_H

#include <stddef.h>
#include <stdint.h>

// The parent or the level of a vertex that was not reached; as a depth or a target: no such limit.
#define SOCBFS_NONE UINT32_MAX

// Flag of a graph: arcs are kept as they are. Without it every edge is undirected.
#define SOCBFS_DIRECTED 1

// The search reached every vertex that can be reached.
#define SOCBFS_COMPLETE 0

// The search ended at the depth limit.
#define SOCBFS_DEPTH 1

// The search ended when it had reached the target.
#define SOCBFS_TARGET 2

// The CPU ran a level.
#define SOCBFS_ON_CPU 0

// The GPU ran a level.
#define SOCBFS_ON_GPU 1

// A level was split between CPU and GPU.
#define SOCBFS_ON_BOTH 2

// From this level on, CPU and GPU searched independently to the end.
#define SOCBFS_APART 3

// Steps lead up, down, left and right.
#define SOCBFS_FOUR 4

// Diagonal steps as well. A step of either kind counts as one.
#define SOCBFS_EIGHT 8

// Diagonal steps as well, but only where both cells beside them are free.
#define SOCBFS_EIGHT_AROUND_CORNERS 9

// The step of a source. Other steps are 0 (up) and so on clockwise to 7 (up and left).
#define SOCBFS_STAY 8

// The step of a cell that was not reached.
#define SOCBFS_NO_STEP 255

// The result of a call.
typedef enum socbfs_code {
  // The call succeeded.
  SOCBFS_OK = 0,
  // A pointer that must not be null is null.
  SOCBFS_NULL = 1,
  // A number is out of range, or an array has the wrong length.
  SOCBFS_ARGUMENT = 2,
  // The file can't be read, or the file or the arrays do not hold a graph.
  SOCBFS_INPUT = 3,
  // There is not enough memory, or threads can't be started.
  SOCBFS_MEMORY = 4,
  // A device, a board or a setting is not available.
  SOCBFS_DEVICE = 5,
  // The call was stopped: a search has no tree, and nothing was made.
  SOCBFS_STOPPED = 6,
  // Another thread uses the handle.
  SOCBFS_BUSY = 7,
  // There is no power sensor that may be read, or the window was not measured.
  SOCBFS_NO_SENSOR = 8,
  // A bug in the library. Free the handle; other handles are not affected.
  SOCBFS_PANIC = 9,
} socbfs_code;

// A graph, ready to be searched. Searches keep what they need of it: the graph may be freed before them.
typedef struct socbfs_graph socbfs_graph;

// A grid of free and blocked cells, and searches over it without a graph.
typedef struct socbfs_grid socbfs_grid;

// Searches one graph from many roots, up to 256 of them in a pass.
typedef struct socbfs_many socbfs_many;

// Measures energy.
typedef struct socbfs_meter socbfs_meter;

// Settings of searches: device, policy, board, threads.
typedef struct socbfs_runtime socbfs_runtime;

// Searches one graph any number of times.
typedef struct socbfs_search socbfs_search;

// Stops calls that make a graph, and measurements for a search.
typedef struct socbfs_stopper socbfs_stopper;

// Receives messages: level 1 is an error, 2 a warning, 3 information, 4 debugging. `message` is valid until the callback returns. Called
// from any thread. It must not call socbfs_log_to, and must not throw.
typedef void (*socbfs_log)(void *user, uint32_t level, const char *message);

// Reports steps that take long: a text when a step begins, null when it ends. It must not call the library, and must not throw.
typedef void (*socbfs_progress)(void *user, const char *step);

// What a search did.
typedef struct socbfs_outcome {
  // Vertices reached, the root included (of many searches: their sum).
  uint64_t reached;
  // Edges as Graph500 counts them: both ends reached, repeats counted, self-loops not. After SOCBFS_DEPTH and SOCBFS_TARGET the edges
  // that leave the tree count as well: half each, in a directed graph whole. 0 for many searches.
  uint64_t edges;
  // Nanoseconds from the call to the parents or levels.
  uint64_t nanoseconds;
  // Levels of the (deepest) tree: a root alone is 1.
  uint32_t levels;
  // SOCBFS_COMPLETE, SOCBFS_DEPTH or SOCBFS_TARGET.
  uint32_t end;
} socbfs_outcome;

// What one level of a search did, or several levels that were too small to share among threads and ran in one step. Vertices are those of
// the searched structure, which leaves some out: vertices without an edge, and most with a single one.
typedef struct socbfs_level {
  // Vertices in the frontier.
  uint64_t frontier_vertices;
  // Arcs that leave the frontier. May be an estimate.
  uint64_t frontier_edges;
  // Vertices not yet visited.
  uint64_t unvisited_vertices;
  // Arcs of vertices not yet visited. May be an estimate.
  uint64_t unvisited_edges;
  // Vertices found.
  uint64_t found;
  // Time, with what follows.
  uint64_t nanoseconds;
  // The part of it that decided how the level runs.
  uint64_t decision_ns;
  // The part of it that converted the frontier between queue and bitmap.
  uint64_t conversion_ns;
  // The part of it that handed memory over between CPU and GPU.
  uint64_t handover_ns;
  // The (first) level: 0 expands the root.
  uint32_t level;
  // Number of levels.
  uint32_t levels;
  // 1: bottom-up, unvisited vertices look for a neighbour in the frontier; 0: top-down.
  uint32_t bottom_up;
  // SOCBFS_ON_CPU, SOCBFS_ON_GPU, SOCBFS_ON_BOTH or SOCBFS_APART.
  uint32_t place;
  // The planned share of the GPU in thousandths.
  uint32_t gpu_permille;
  // CPU threads that took part.
  uint32_t threads;
} socbfs_level;

// The energy of a window of time.
typedef struct socbfs_energy {
  // Energy of all rails that are added up.
  double joules;
  // Length of the window.
  double seconds;
} socbfs_energy;

// A cell of a grid.
typedef struct socbfs_cell {
  // The row, from 0 at the top.
  uint32_t row;
  // The column, from 0 on the left.
  uint32_t column;
} socbfs_cell;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library, as text.
const char *socbfs_version(void);

// The reason and the cure of this thread's last failed call. Valid until the thread's next failed call; never null.
const char *socbfs_message(void);

// Sends messages of the library up to `level` to `callback` (level 0 or a null callback: nowhere). This is the only setting for the whole
// process. Returns SOCBFS_ARGUMENT if the program is a Rust program with its own logger.
//
// # Safety
// `callback` may be called with `user`, from any thread, until the next call of this function has returned.
enum socbfs_code socbfs_log_to(uint32_t level,
                               socbfs_log callback,
                               void *user);

// Makes a stopper, which stops calls as soon as socbfs_stopper_stop is called, or `seconds` from now (a negative number: no deadline).
//
// # Safety
// `stopper` points to a pointer.
enum socbfs_code socbfs_stopper_new(double seconds,
                                    struct socbfs_stopper **stopper);

// Stops calls. It may be called from any thread and from a signal handler, but not after the stopper is freed.
//
// # Safety
// `stopper` is null or a stopper.
void socbfs_stopper_stop(const struct socbfs_stopper *stopper);

// From now on, `stopper` stops the calls of this thread that make a graph, also while they wait for a pipe, and the measurements of
// socbfs_search_new on a device: they return SOCBFS_STOPPED. Null: nothing stops them. A call of a driver is not stopped. The stopper may
// be freed before it is replaced here.
//
// # Safety
// `stopper` is null or a stopper.
void socbfs_stopped_by(const struct socbfs_stopper *stopper);

// Frees a stopper, as socbfs_graph_free frees a graph.
//
// # Safety
// As for socbfs_graph_free.
void socbfs_stopper_free(struct socbfs_stopper **stopper);

// Makes a graph from compressed sparse rows: the targets of vertex v are targets[offsets[v]] to targets[offsets[v + 1] - 1]. `offsets` has
// vertices + 1 numbers. Both arrays are read in place, without a copy, and are not needed after the call: the graph has sorted arrays of
// its own. `threads` is the number of threads that build it (0: one for every CPU that the process may run on).
//
// # Safety
// The arrays have the lengths described here; `graph` points to a pointer.
enum socbfs_code socbfs_graph_from_csr(uint32_t vertices,
                                       const uint32_t *offsets,
                                       const uint32_t *targets,
                                       uint32_t flags,
                                       uint32_t threads,
                                       struct socbfs_graph **graph);

// As socbfs_graph_from_csr, with offsets of 64 bits.
//
// # Safety
// As for socbfs_graph_from_csr.
enum socbfs_code socbfs_graph_from_csr64(uint32_t vertices,
                                         const uint64_t *offsets,
                                         const uint32_t *targets,
                                         uint32_t flags,
                                         uint32_t threads,
                                         struct socbfs_graph **graph);

// Makes a graph from edges: pairs[2 * i] and pairs[2 * i + 1] are the ends of edge i. The edges are copied.
//
// # Safety
// `pairs` holds 2 * edges numbers; `graph` points to a pointer.
enum socbfs_code socbfs_graph_from_edges(uint32_t vertices,
                                         const uint32_t *pairs,
                                         size_t edges,
                                         uint32_t flags,
                                         uint32_t threads,
                                         struct socbfs_graph **graph);

// Makes a graph from a file, in any of the formats that `socbfs convert --help` lists. `path` is passed to the system as it is.
//
// # Safety
// `path` is a string that ends in 0; `graph` points to a pointer.
enum socbfs_code socbfs_graph_from_file(const char *path,
                                        uint32_t flags,
                                        uint32_t threads,
                                        struct socbfs_graph **graph);

// The number of vertices (0 for a null graph).
//
// # Safety
// `graph` is null or a graph.
uint32_t socbfs_graph_vertices(const struct socbfs_graph *graph);

// The number of edges as listed, without self-loops (0 for a null graph). If the list has both directions of every edge, each edge counts
// once.
//
// # Safety
// `graph` is null or a graph.
uint64_t socbfs_graph_edges(const struct socbfs_graph *graph);

// Frees a graph and sets the pointer to null. A null pointer is ignored, so that the same variable may be freed twice.
//
// # Safety
// `graph` is null, or points to null or to a graph that was not freed.
void socbfs_graph_free(struct socbfs_graph **graph);

// Makes settings of searches, each as on the command line of `socbfs`; null (0) selects what fits this machine. `device` is "auto", "cpu",
// "gpu" or a name (null: "cpu"), `policy` is one that `socbfs bench --help` lists, but none with a file (`replay:FILE`, `surf:FILE`,
// `mlp:FILE`), `board` is the name or the file of a profile.
//
// # Safety
// Each text is null or a string that ends in 0; `runtime` points to a pointer.
enum socbfs_code socbfs_runtime_new(const char *device,
                                    const char *policy,
                                    const char *board,
                                    uint32_t threads,
                                    struct socbfs_runtime **runtime);

// As socbfs_runtime_new, on an operating point of the board's profile, as `socbfs sweep` measures them: its CPUs and, unless they are
// given, its number of threads and its device. `at` is "fastest", "efficient" (most MTEPS/W), "product" (least energy times time) or null.
// Clocks are not set.
//
// # Safety
// As for socbfs_runtime_new; `at` is null or a string that ends in 0.
enum socbfs_code socbfs_runtime_new_at(const char *device,
                                       const char *policy,
                                       const char *board,
                                       uint32_t threads,
                                       const char *at,
                                       struct socbfs_runtime **runtime);

// Frees a runtime, as socbfs_graph_free frees a graph.
//
// # Safety
// As for socbfs_graph_free.
void socbfs_runtime_free(struct socbfs_runtime **runtime);

// Sets up a search: opens devices, allocates everything, starts threads. With a null `runtime` it runs on the CPU, with the settings that
// fit this machine. `progress` may be null.
//
// # Safety
// `graph` is a graph, `runtime` null or a runtime; `progress` may be called with `user` until the call returns; `search` points to a
// pointer.
enum socbfs_code socbfs_search_new(const struct socbfs_graph *graph,
                                   const struct socbfs_runtime *runtime,
                                   socbfs_progress progress,
                                   void *user,
                                   struct socbfs_search **search);

// Searches from `root`. It allocates nothing. `outcome` may be null.
//
// # Safety
// `search` is a search; `outcome` is null or points to an outcome.
enum socbfs_code socbfs_search_run(const struct socbfs_search *search, uint32_t root, struct socbfs_outcome *outcome);

// Searches from `root` up to distance `depth`, or until `target` is reached (SOCBFS_NONE: no such limit). The tree is the complete tree
// cut off below the last level; the outcome says why the search ended. It allocates nothing. `outcome` may be null.
//
// # Safety
// As for socbfs_search_run.
enum socbfs_code socbfs_search_run_until(const struct socbfs_search *search,
                                         uint32_t root,
                                         uint32_t depth,
                                         uint32_t target,
                                         struct socbfs_outcome *outcome);

// As socbfs_search_run_until, from the `count` vertices of `sources` at once: levels are distances from the nearest of them, and each
// source is its own parent. A source may be given more than once; without a source nothing is reached. It allocates nothing.
//
// # Safety
// As for socbfs_search_run; `sources` has `count` numbers.
enum socbfs_code socbfs_search_run_from(const struct socbfs_search *search,
                                        const uint32_t *sources,
                                        size_t count,
                                        uint32_t depth,
                                        uint32_t target,
                                        struct socbfs_outcome *outcome);

// As socbfs_search_run_until, but writes the parents to `parents` and the levels to `levels`: arrays of the caller with `length` numbers,
// one for each vertex. Either may be null; they must not overlap. If no device takes part, nothing is copied, and levels alone (of at most
// 255 levels) take no longer than parents alone. Afterwards socbfs_search_parents and socbfs_search_levels have no result. It allocates
// nothing. `outcome` may be null; if both arrays are, its `reached` and `edges` are 0.
//
// # Safety
// As for socbfs_search_run; `parents` and `levels` are null or have room for `length` numbers each.
enum socbfs_code socbfs_search_run_into(const struct socbfs_search *search,
                                        uint32_t root,
                                        uint32_t depth,
                                        uint32_t target,
                                        uint32_t *parents,
                                        uint32_t *levels,
                                        size_t length,
                                        struct socbfs_outcome *outcome);

// Gives the parents of the last search, one for each vertex: the root is its own parent, SOCBFS_NONE stands for a vertex not reached. The
// array belongs to the search, and is valid until its next search or until it is freed. `count` receives the number of parents and may be
// null. Before the first search, and after one that was stopped, the count is 0 and the array null.
//
// # Safety
// `search` is a search, `parents` points to a pointer, `count` is null or points to a number.
enum socbfs_code socbfs_search_parents(const struct socbfs_search *search,
                                       const uint32_t **parents,
                                       uint32_t *count);

// Writes the levels of the last search to `levels`: 0 for the root, SOCBFS_NONE for a vertex not reached. `length` must be the number of
// vertices. It allocates nothing.
//
// # Safety
// `search` is a search, `levels` has room for `length` numbers.
enum socbfs_code socbfs_search_levels(const struct socbfs_search *search,
                                      uint32_t *levels,
                                      size_t length);

// Writes the source from which the last search reached each vertex to `sources`, one of the nearest: SOCBFS_NONE for a vertex not reached.
// `length` must be the number of vertices. It allocates nothing but the first time.
//
// # Safety
// `search` is a search, `sources` has room for `length` numbers.
enum socbfs_code socbfs_search_sources(const struct socbfs_search *search,
                                       uint32_t *sources,
                                       size_t length);

// Finds the connected components, in a directed graph the weak ones. Writes the number of each vertex's component to `labels` and how many
// there are to `count`, which may be NULL. Components are numbered from 0 in the order of their first vertices. The threads of the search
// take part, and no device. The first call allocates 20 bytes for each vertex that is searched, or twice as many. The result of the last
// search stays.
//
// # Safety
// `labels` has `length` entries, one for each vertex.
enum socbfs_code socbfs_search_components(const struct socbfs_search *search,
                                          uint32_t *labels,
                                          size_t length,
                                          size_t *count);

// Writes what each level of the last search did to `levels`, in their order: at most `room` of them. `levels` may be null if `room` is 0.
// `count` receives their number, which is 4096 at most (deeper levels are added up in the last entry), and may be null. A search that was
// stopped has the levels that it ran. It allocates nothing.
//
// # Safety
// `search` is a search, `levels` has room for `room` entries, `count` is null or points to a number.
enum socbfs_code socbfs_search_account(const struct socbfs_search *search,
                                       struct socbfs_level *levels,
                                       size_t room,
                                       size_t *count);

// Why the search continues on the CPU without its device, in words; null if it has all devices that it was set up with, for a null search,
// and while another thread searches. With the device "auto", a search whose device is lost goes on without it, and one whose device can't
// be opened is set up without it, which only a message of socbfs_log_to says. Valid until the search is freed.
//
// # Safety
// `search` is null or a search.
const char *socbfs_search_fallen_back(const struct socbfs_search *search);

// Stops the running search and those that follow, until socbfs_search_go_on. It may be called from any thread and from a signal handler,
// but not after the search is freed.
//
// # Safety
// `search` is null or a search.
void socbfs_search_stop(const struct socbfs_search *search);

// Lets searches run again.
//
// # Safety
// `search` is null or a search.
void socbfs_search_go_on(const struct socbfs_search *search);

// Searches that have not ended within `seconds` from now are stopped between two levels (a negative number: no deadline).
//
// # Safety
// `search` is a search.
enum socbfs_code socbfs_search_deadline(const struct socbfs_search *search,
                                        double seconds);

// Frees a search, as socbfs_graph_free frees a graph. No call with it may be running.
//
// # Safety
// As for socbfs_graph_free.
void socbfs_search_free(struct socbfs_search **search);

// Sets up searches from many roots, on `threads` threads (0: one for every CPU that the process may run on).
//
// # Safety
// `graph` is a graph; `many` points to a pointer.
enum socbfs_code socbfs_many_new(const struct socbfs_graph *graph, uint32_t threads, struct socbfs_many **many);

// Searches from `count` roots, up to 256 in a pass, and writes levels as bytes (255: not reached): levels[v * count + i] is the level of
// vertex v in the search from roots[i]. Returns SOCBFS_ARGUMENT if a level is deeper than 254, or `length` is not vertices * count. It
// allocates nothing. `outcome` may be null.
//
// # Safety
// `many` is a handle; the arrays have the lengths given; `outcome` is null or points to an outcome.
enum socbfs_code socbfs_many_levels8(const struct socbfs_many *many,
                                     const uint32_t *roots,
                                     size_t count,
                                     uint8_t *levels,
                                     size_t length,
                                     struct socbfs_outcome *outcome);

// As socbfs_many_levels8 with levels of 32 bits, and with parents in the same order if `parents` is not null. Each array has `length`
// numbers.
//
// # Safety
// As for socbfs_many_levels8.
enum socbfs_code socbfs_many_trees(const struct socbfs_many *many,
                                   const uint32_t *roots,
                                   size_t count,
                                   uint32_t *levels,
                                   uint32_t *parents,
                                   size_t length,
                                   struct socbfs_outcome *outcome);

// Stops the running searches and those that follow, until socbfs_many_go_on. It may be called from any thread and from a signal handler,
// but not after the handle is freed.
//
// # Safety
// `many` is null or a handle.
void socbfs_many_stop(const struct socbfs_many *many);

// Lets searches run again.
//
// # Safety
// `many` is null or a handle.
void socbfs_many_go_on(const struct socbfs_many *many);

// Searches that have not ended within `seconds` from now are stopped (a negative number: no deadline).
//
// # Safety
// `many` is a handle.
enum socbfs_code socbfs_many_deadline(const struct socbfs_many *many, double seconds);

// Frees the handle, as socbfs_graph_free frees a graph. No call with it may be running.
//
// # Safety
// As for socbfs_graph_free.
void socbfs_many_free(struct socbfs_many **many);

// Opens the power sensors that fit this machine. Returns SOCBFS_NO_SENSOR if there is none that may be read; the message says what would
// help.
//
// # Safety
// `meter` points to a pointer.
enum socbfs_code socbfs_meter_new(struct socbfs_meter **meter);

// As socbfs_meter_new, but the board profile of `runtime` says which rails add up.
//
// # Safety
// `runtime` is a runtime; `meter` points to a pointer.
enum socbfs_code socbfs_meter_new_for(const struct socbfs_runtime *runtime, struct socbfs_meter **meter);

// What the meter measures, in words (null for a null meter). Valid until the meter is freed.
//
// # Safety
// `meter` is null or a meter.
const char *socbfs_meter_scope(const struct socbfs_meter *meter);

// Begins a window of time, and discards an open one.
//
// # Safety
// `meter` is a meter.
enum socbfs_code socbfs_meter_begin(const struct socbfs_meter *meter);

// Ends the window and reports its energy. Returns SOCBFS_NO_SENSOR if the window could not be measured (it was too short, or a sensor was
// lost): `energy` is then left as it is, because the number would be wrong.
//
// # Safety
// `meter` is a meter; `energy` points to a socbfs_energy.
enum socbfs_code socbfs_meter_end(const struct socbfs_meter *meter,
                                  struct socbfs_energy *energy);

// Frees a meter, as socbfs_graph_free frees a graph.
//
// # Safety
// As for socbfs_graph_free.
void socbfs_meter_free(struct socbfs_meter **meter);

// Makes a grid of `rows` by `columns` cells. Cells are free where `cells` (row by row, rows * columns bytes) is 1, and blocked where it is
// 0; any other value is SOCBFS_ARGUMENT (in an occupancy grid of ROS, 0 to 19 is free); null: all are free. `connectivity` is SOCBFS_FOUR,
// SOCBFS_EIGHT or SOCBFS_EIGHT_AROUND_CORNERS. `threads`: 0 for one on each CPU.
//
// # Safety
// `cells` is null or has rows * columns bytes; `grid` points to a pointer.
enum socbfs_code socbfs_grid_new(uint32_t rows,
                                 uint32_t columns,
                                 const uint8_t *cells,
                                 uint32_t connectivity,
                                 uint32_t threads,
                                 struct socbfs_grid **grid);

// Frees a grid, as socbfs_graph_free frees a graph. No call with it may be running.
//
// # Safety
// As for socbfs_graph_free.
void socbfs_grid_free(struct socbfs_grid **grid);

// Replaces all cells by `cells`, as socbfs_grid_new takes them. `length` must be rows * columns. It allocates nothing.
//
// # Safety
// `grid` is a grid, `cells` has `length` bytes.
enum socbfs_code socbfs_grid_assign(const struct socbfs_grid *grid, const uint8_t *cells, size_t length);

// Makes the cells of a rectangle of `rows` by `columns` cells, whose first one is `first`, free (or blocked, if `is_free` is 0). It
// allocates nothing.
//
// # Safety
// `grid` is a grid.
enum socbfs_code socbfs_grid_fill(const struct socbfs_grid *grid,
                                  struct socbfs_cell first,
                                  uint32_t rows,
                                  uint32_t columns,
                                  uint32_t is_free);

// Searches from the `count` cells of `sources` at once: distances are those from the nearest. It ends at distance `depth` (SOCBFS_NONE: no
// such limit), or with the level that reaches `target` (null: none). It allocates nothing, unless `count` is larger than before, or a
// distance is larger than 65,533 for the first time. `outcome` may be null; its `edges` are 0.
//
// # Safety
// `grid` is a grid, `sources` has `count` cells, `target` and `outcome` are null or point to one.
enum socbfs_code socbfs_grid_run(const struct socbfs_grid *grid,
                                 const struct socbfs_cell *sources,
                                 size_t count,
                                 uint32_t depth,
                                 const struct socbfs_cell *target,
                                 struct socbfs_outcome *outcome);

// Writes the distance of each cell, row by row, to `levels`: SOCBFS_NONE for a cell not reached. `length` must be rows * columns. It
// allocates nothing.
//
// # Safety
// `grid` is a grid, `levels` has room for `length` numbers.
enum socbfs_code socbfs_grid_levels(const struct socbfs_grid *grid,
                                    uint32_t *levels,
                                    size_t length);

// Writes the direction of the next step from each cell to its nearest source, row by row, to `steps`. It allocates nothing but the first
// time.
//
// # Safety
// `grid` is a grid, `steps` has room for `length` bytes.
enum socbfs_code socbfs_grid_steps(const struct socbfs_grid *grid,
                                   uint8_t *steps,
                                   size_t length);

// Writes the nearest source of each cell (row * columns + column), row by row, to `sources`: SOCBFS_NONE for a cell not reached. It
// allocates nothing but the first time.
//
// # Safety
// `grid` is a grid, `sources` has room for `length` numbers.
enum socbfs_code socbfs_grid_sources(const struct socbfs_grid *grid,
                                     uint32_t *sources,
                                     size_t length);

// Writes the cells from `from` to its nearest source, both included, to `path`: at most `room` of them. `path` may be null if `room` is 0.
// `count` receives their number (0: not reached) and may be null. It allocates nothing.
//
// # Safety
// `grid` is a grid, `path` has room for `room` cells, `count` is null or points to a number.
enum socbfs_code socbfs_grid_path(const struct socbfs_grid *grid,
                                  struct socbfs_cell from,
                                  struct socbfs_cell *path,
                                  size_t room,
                                  size_t *count);

// Stops the running search between two levels, and all later ones until socbfs_grid_go_on. May be called from any thread at any time.
//
// # Safety
// `grid` is null or a grid.
void socbfs_grid_stop(const struct socbfs_grid *grid);

// Lets searches run again.
//
// # Safety
// `grid` is null or a grid.
void socbfs_grid_go_on(const struct socbfs_grid *grid);

// Stops searches that have not ended `seconds` from now (a negative number: no deadline).
//
// # Safety
// `grid` is a grid.
enum socbfs_code socbfs_grid_deadline(const struct socbfs_grid *grid, double seconds);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SOCBFS_H */
