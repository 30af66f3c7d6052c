/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Declarations that measure.c, memory.c and traced.c share to measure cells
 * (cells.h). Only one thread measures.
 */
#ifndef PROF_MEASURE_H
#define PROF_MEASURE_H

#include "prof/cells.h"
#include "prof/graph.h"

#define PROF_COPY_MAX ((size_t) 64 << 10)

/* State of a measurement. */
struct prof_measure {
	const struct prof_options *options;
	struct prof_device *device;
	struct prof_cells *cells;
	/* buffers of the largest size; NULL: no buffer */
	char *touched[MRRC_PAGES_CNT];
	size_t mapped[MRRC_PAGES_CNT];
	char *copy;		  /* PROF_COPY_MAX */
	struct prof_graph *graph; /* NULL: the kernel is not traced */
	struct prof_err *err;
};

/*
 * memory.c: maps touched buffers of the largest size, and the copy's buffer.
 */
int prof_map_all(struct prof_measure *m);
void prof_unmap_all(struct prof_measure *m);
/* Maps a buffer of absent pages; free with mrrc_pages_unmap(). */
int prof_map_absent(struct prof_measure *m, const struct prof_cell *cell,
		    char **buf, size_t *mapped);

/* measure.c: measures each cell once in turn, while there is time. */
int prof_rounds(struct prof_measure *m, const char *what, unsigned least,
		unsigned most, double share,
		int (*once)(struct prof_measure *, struct prof_cell *));
/*
 * Returns the last bytes of the touched buffer, as many as the cell has: the
 * first pages that a process gets are scattered in physical memory, later pages
 * are adjacent, and small sizes must not be measured on scattered pages alone.
 */
char *prof_touched_at(const struct prof_measure *m,
		      const struct prof_cell *cell);
/* Registers and deregisters once; takes the times. */
int prof_reg_once(struct prof_measure *m, char *buf, size_t size, double *reg,
		  double *dereg);
/* Adds a time. */
int prof_add(struct prof_measure *m, struct prof_cell *cell, enum prof_value id,
	     double value);

/* traced.c: measures the parts of a call, if the kernel can be traced. */
int prof_traced(struct prof_measure *m);

#endif /* PROF_MEASURE_H */
