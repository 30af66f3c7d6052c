/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Measures the times of cells (cells.h) in rounds through all cells; if the
 * kernel can be traced, some more rounds with tracing follow.
 */
#include "config.h"
#include "prof/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define ROUNDS_MIN  3
#define SHARE_PLAIN .6 /* share of the available time */

volatile sig_atomic_t prof_stop;

double prof_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

/* ---- one time ---- */

static int fail_reg(struct prof_measure *m, size_t size, int ret)
{
	const char *what = ret == -FI_ENOMEM || ret == -FI_EAGAIN ||
					   ret == -FI_EPERM ?
				   "; raise the limit on locked memory (ulimit "
				   "-l), or leave out "
				   "such sizes (--sizes)" :
				   "";

	return prof_fail(m->err, ret, "registering %zu bytes: %s%s", size,
			 fi_strerror(-ret), what);
}

char *prof_touched_at(const struct prof_measure *m,
		      const struct prof_cell *cell)
{
	const struct prof_options *options = m->options;

	return m->touched[cell->kind] + options->size[options->sizes - 1] -
	       cell->size;
}

int prof_reg_once(struct prof_measure *m, char *buf, size_t size, double *reg,
		  double *dereg)
{
	struct fid_mr *mr;
	double at[3];
	int ret;

	at[0] = prof_now();
	ret = prof_device_reg(m->device, buf, size, &mr);
	at[1] = prof_now();
	if (ret)
		return fail_reg(m, size, ret);
	ret = fi_close(&mr->fid);
	at[2] = prof_now();
	if (ret)
		return prof_fail(m->err, ret, "deregistering %zu bytes: %s",
				 size, fi_strerror(-ret));
	*reg = at[1] - at[0];
	*dereg = at[2] - at[1];
	return 0;
}

int prof_add(struct prof_measure *m, struct prof_cell *cell, enum prof_value id,
	     double value)
{
	int ret = prof_cell_add(cell, id, value);

	return ret ? prof_fail(m->err, ret, "%s", strerror(-ret)) : 0;
}

/*
 * Copies memory as the provider does for a bounce buffer: page by page, and
 * each page is faulted in first.
 */
static double copy_once(struct prof_measure *m, char *from, size_t size)
{
	const size_t len = size < PROF_COPY_MAX ? size : PROF_COPY_MAX;
	const double start = prof_now();
	size_t at;

	madvise(from, len, MADV_POPULATE_READ);
	for (at = 0; at < len; at += PROF_PAGE)
		memcpy(m->copy + at, from + at, PROF_PAGE);
	return (prof_now() - start) * (double) size / (double) len;
}

static int touched_once(struct prof_measure *m, struct prof_cell *cell)
{
	char *buf = prof_touched_at(m, cell);
	double reg, dereg, start;
	int ret;

	ret = prof_reg_once(m, buf, cell->size, &reg, &dereg);
	if (!ret)
		ret = prof_add(m, cell, PROF_REGISTER, reg);
	if (!ret)
		ret = prof_add(m, cell, PROF_DEREGISTER, dereg);
	if (!ret && cell->kind == MRRC_PAGES_4K)
		ret = prof_add(m, cell, PROF_COPY,
			       copy_once(m, buf, cell->size));
	if (ret)
		return ret;
	start = prof_now();
	/* beyond the limit of locked memory mlock() cannot be compared */
	if (mlock(buf, cell->size))
		return 0;
	ret = prof_add(m, cell, PROF_MLOCK, prof_now() - start);
	munlock(buf, cell->size);
	return ret;
}

static int populate_once(struct prof_measure *m, struct prof_cell *cell)
{
	size_t mapped;
	double start;
	char *buf;
	int ret;

	ret = prof_map_absent(m, cell, &buf, &mapped);
	if (ret)
		return ret;
	start = prof_now();
	/* MADV_POPULATE_WRITE exists since Linux 5.14 */
	if (!madvise(buf, cell->size, MADV_POPULATE_WRITE))
		ret = prof_add(m, cell, PROF_POPULATE, prof_now() - start);
	mrrc_pages_unmap(buf, mapped);
	return ret;
}

static int absent_once(struct prof_measure *m, struct prof_cell *cell)
{
	const double start = prof_now();
	double mapping, reg, dereg;
	size_t mapped;
	char *buf;
	int ret;

	ret = prof_map_absent(m, cell, &buf, &mapped);
	if (ret)
		return ret;
	mapping = prof_now() - start;
	ret = prof_reg_once(m, buf, cell->size, &reg, &dereg);
	mrrc_pages_unmap(buf, mapped);
	if (!ret)
		ret = prof_add(m, cell, PROF_MAP, mapping);
	if (!ret)
		ret = prof_add(m, cell, PROF_REGISTER, reg);
	if (!ret)
		ret = prof_add(m, cell, PROF_DEREGISTER, dereg);
	return ret ? ret : populate_once(m, cell);
}

/*
 * Warms up, since a large size measured before may have left all caches cold.
 */
static int warm_up(struct prof_measure *m, const struct prof_cell *cell)
{
	double reg, dereg;

	copy_once(m, m->touched[cell->kind], PROF_PAGE);
	return prof_reg_once(m, m->touched[cell->kind], PROF_PAGE, &reg,
			     &dereg);
}

static int plain_once(struct prof_measure *m, struct prof_cell *cell)
{
	int ret = warm_up(m, cell);

	if (ret)
		return ret;
	return cell->touched ? touched_once(m, cell) : absent_once(m, cell);
}

/* ---- rounds ---- */

static void tell(const struct prof_measure *m, const char *what, unsigned round)
{
	if (!m->options->quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "\r%s: round %u   ", what, round + 1);
}

int prof_rounds(struct prof_measure *m, const char *what, unsigned least,
		unsigned most, double share,
		int (*once)(struct prof_measure *, struct prof_cell *))
{
	struct prof_cells *cells = m->cells;
	const double budget =
		share * m->options->seconds * 1e6 / (double) cells->count;
	struct prof_cell *cell;
	unsigned round;
	double start;
	int ret;
	size_t i;

	for (i = 0; i < cells->count; i++)
		cells->cell[i].spent = 0;
	for (round = 0; round < most; round++) {
		tell(m, what, round);
		for (i = 0; i < cells->count; i++) {
			cell = &cells->cell[i];
			if (prof_stop)
				return prof_fail(m->err, -EINTR, "interrupted");
			if (round >= least && cell->spent > budget)
				continue;
			start = prof_now();
			ret = once(m, cell);
			if (ret)
				return ret;
			cell->spent += prof_now() - start;
		}
	}
	return 0;
}

static int make_cells(struct prof_measure *m)
{
	const struct prof_options *options = m->options;
	struct prof_cells *cells = m->cells;
	struct prof_cell *cell;
	size_t i, kind;
	int touched;

	cells->cell = calloc(2 * MRRC_PAGES_CNT * options->sizes,
			     sizeof(*cells->cell));
	if (!cells->cell)
		return prof_fail(m->err, -ENOMEM, "%s", strerror(ENOMEM));
	for (kind = 0; kind < MRRC_PAGES_CNT; kind++) {
		for (touched = 1; touched >= 0 && m->touched[kind]; touched--) {
			for (i = 0; i < options->sizes; i++) {
				cell = &cells->cell[cells->count++];
				cell->kind = kind;
				cell->touched = touched;
				cell->size = options->size[i];
			}
		}
	}
	return 0;
}

int prof_cells_measure(const struct prof_options *options,
		       struct prof_device *device, struct prof_cells *cells,
		       struct prof_err *err)
{
	struct prof_measure m = {
		.options = options,
		.device = device,
		.cells = cells,
		.err = err,
	};
	size_t i;
	int ret;

	*cells = (struct prof_cells){ 0 };
	ret = prof_map_all(&m);
	if (ret)
		return ret;
	ret = make_cells(&m);
	if (!ret)
		ret = prof_rounds(&m, "registration", ROUNDS_MIN,
				  options->rounds, SHARE_PLAIN, plain_once);
	if (!ret)
		ret = prof_traced(&m);
	if (!ret && options->bandwidth)
		ret = prof_bandwidth(options, device, cells, err);
	else if (!ret)
		snprintf(cells->no_bandwidth, sizeof(cells->no_bandwidth),
			 "--skip");
	if (!options->quiet && isatty(STDERR_FILENO))
		fputc('\n', stderr);
	prof_unmap_all(&m);
	for (i = 0; i < cells->count; i++)
		prof_cell_settle(&cells->cell[i]);
	if (ret)
		prof_cells_free(cells);
	return ret;
}
