/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Results of fi_mrrc_prof: a cell for each kind of pages, state and size has
 * the medians of the measured times, and the least times for the cost model.
 */
#ifndef PROF_CELLS_H
#define PROF_CELLS_H

#include <math.h>
#include <signal.h>
#include <stdint.h>

#include "prof/device.h"

/* Columns as X(ENUM, "name"), in microseconds or MB/s. */
#define PROF_VALUES(X)                 \
	X(MAP, "map_us")               \
	X(REGISTER, "register_us")     \
	X(DEREGISTER, "deregister_us") \
	X(POPULATE, "populate_us")     \
	X(MLOCK, "mlock_us")           \
	X(COPY, "copy_us")             \
	X(TRACED, "traced_us")         \
	X(PIN, "pin_us")               \
	X(TRANSLATE, "translate_us")   \
	X(DEVICE, "device_us")         \
	X(UNPIN, "unpin_us")           \
	X(UNDEVICE, "undevice_us")     \
	X(GIVEN, "bandwidth_mbs")      \
	X(REGISTERING, "registering_mbs")

enum prof_value {
#define X(id, name) PROF_##id,
	PROF_VALUES(X)
#undef X
		PROF_VALUE_CNT
};

extern const char *const prof_value_names[PROF_VALUE_CNT];

struct prof_times {
	double *us;
	unsigned count, max;
};

struct prof_cell {
	enum mrrc_pages kind;
	bool touched;
	size_t size;
	unsigned rounds;
	double value[PROF_VALUE_CNT]; /* medians; NaN: not measured */
	double least[PROF_VALUE_CNT];
	struct prof_times times[PROF_VALUE_CNT]; /* times measured so far */
	double spent;				 /* us so far */
};

struct prof_cells {
	struct prof_cell *cell;
	size_t count;
	/* requested kinds of pages that are not available */
	bool lacking[MRRC_PAGES_CNT];
	/* reason why the kernel was not traced; empty: traced */
	char untraced[160];
	/* reason why bandwidth was not measured; empty: measured */
	char no_bandwidth[160];
};

/* Set by a signal handler: measuring functions give up with -EINTR. */
extern volatile sig_atomic_t prof_stop;

double prof_now(void); /* microseconds */

/* Adds a time; -ENOMEM. */
int prof_cell_add(struct prof_cell *cell, enum prof_value id, double value);
/* Computes medians and least times. */
void prof_cell_settle(struct prof_cell *cell);

static inline bool prof_has(const struct prof_cell *cell, enum prof_value id)
{
	return !isnan(cell->value[id]);
}

/* Finds a cell, or NULL. */
struct prof_cell *prof_cell_find(const struct prof_cells *cells,
				 enum mrrc_pages kind, bool touched,
				 size_t size);

/* measure.c: measures all cells; after a failure there is nothing to free. */
int prof_cells_measure(const struct prof_options *options,
		       struct prof_device *device, struct prof_cells *cells,
		       struct prof_err *err);
void prof_cells_free(struct prof_cells *cells);

/* bandwidth.c: measures into the cells of touched pages of 4 KiB. */
int prof_bandwidth(const struct prof_options *options,
		   struct prof_device *device, struct prof_cells *cells,
		   struct prof_err *err);

#endif /* PROF_CELLS_H */
