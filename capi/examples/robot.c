/* A robot's loop: the map changes in every tick, and the robot asks for the way to the nearest of its docks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "socbfs.h"

enum { ROWS = 190, COLUMNS = 190, TICKS = 50 };

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, socbfs_message());
    return EXIT_FAILURE;
}

int main(void) {
    static uint8_t steps[ROWS * COLUMNS];
    /* The way (rows, columns) of each step, clockwise from up. */
    static const int way[9][2] = {{-1, 0}, {-1, 1}, {0, 1}, {1, 1}, {1, 0}, {1, -1}, {0, -1}, {-1, -1}, {0, 0}};
    const socbfs_cell docks[] = {{5, 5}, {180, 20}};
    socbfs_cell robot = {100, 150};
    socbfs_grid *grid = NULL;
    socbfs_meter *meter = NULL;
    socbfs_energy energy;
    socbfs_outcome outcome;
    uint64_t nanoseconds = 0;
    uint32_t tick, moved = 0;

    if (socbfs_grid_new(ROWS, COLUMNS, NULL, SOCBFS_EIGHT_AROUND_CORNERS, 1, &grid) != SOCBFS_OK) return fail("grid");
    /* Without a sensor the loop runs all the same, and says why it has no joules. */
    if (socbfs_meter_new(&meter) != SOCBFS_OK) printf("no energy: %s\n", socbfs_message());
    if (meter && socbfs_meter_begin(meter) != SOCBFS_OK) return fail("meter");
    for (tick = 0; tick < TICKS; tick++) {
        /* A wall grows from the right, below the robot or through the place it has left. */
        const socbfs_cell seen = {60 + tick % 5 * 25, 187 - 3 * tick};
        if (seen.row != robot.row && socbfs_grid_fill(grid, seen, 1, 3, 0) != SOCBFS_OK) return fail("fill");
        if (socbfs_grid_run(grid, docks, 2, SOCBFS_NONE, NULL, &outcome) != SOCBFS_OK) return fail("run");
        nanoseconds += outcome.nanoseconds;
        if (socbfs_grid_steps(grid, steps, sizeof steps) != SOCBFS_OK) return fail("steps");
        const uint8_t step = steps[robot.row * COLUMNS + robot.column];
        if (step == SOCBFS_NO_STEP) return fprintf(stderr, "no dock can be reached\n"), EXIT_FAILURE;
        robot.row += way[step][0], robot.column += way[step][1];
        moved += step != SOCBFS_STAY;
    }
    printf("%" PRIu32 " ticks: the robot moved %" PRIu32 " cells to (%" PRIu32 ", %" PRIu32 ")\n", tick, moved, robot.row, robot.column);
    printf("%.0f us a search of %" PRIu64 " cells\n", 1e-3 * (double)nanoseconds / TICKS, outcome.reached);
    if (meter && socbfs_meter_end(meter, &energy) == SOCBFS_OK) {
        printf("%.2e J a tick at %.2f W\n", energy.joules / TICKS, energy.joules / energy.seconds);
    } else if (meter) {
        printf("no energy: %s\n", socbfs_message()); /* the loop may be shorter than the sensor needs */
    }
    socbfs_meter_free(&meter);
    socbfs_grid_free(&grid);
    return EXIT_SUCCESS;
}
