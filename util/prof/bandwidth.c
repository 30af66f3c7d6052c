/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Measures bandwidth with and without registration, as in table 1 of
 * mietke2006: one message at a time, with both buffers registered either for
 * each message or once before all messages.
 */
#include "config.h"
#include "prof/cells.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prof/pair.h"

#define MESSAGE_MIN ((size_t) 32 << 10)
#define MESSAGE_MAX ((size_t) 4 << 20)
#define ROUNDS_MIN  5
#define ROUNDS_MAX  200
#define SHARE	    .2 /* share of the time available */

struct bandwidth {
	struct prof_device *device;
	struct prof_pair pair;
	char *from, *to;
	size_t mapped; /* mapped bytes of each buffer */
	struct prof_err *err;
};

static int reg_both(struct bandwidth *b, size_t size, struct fid_mr *mr[2])
{
	int ret;

	ret = prof_device_reg(b->device, b->from, size, &mr[0]);
	if (!ret) {
		ret = prof_device_reg(b->device, b->to, size, &mr[1]);
		if (ret)
			fi_close(&mr[0]->fid);
	}
	return ret ? prof_fail(b->err, ret,
			       "registering two buffers of %zu "
			       "bytes: %s",
			       size, fi_strerror(-ret)) :
		     0;
}

static void dereg_both(struct fid_mr *mr[2])
{
	fi_close(&mr[0]->fid);
	fi_close(&mr[1]->fid);
}

static int send_one(struct bandwidth *b, size_t size, struct fid_mr *mr[2])
{
	return prof_pair_send(&b->pair, b->from, fi_mr_desc(mr[0]), b->to,
			      fi_mr_desc(mr[1]), size, b->err);
}

/* Measures both ways once, in microseconds. */
static int once(struct bandwidth *b, size_t size, double *given,
		double *registered)
{
	struct fid_mr *mr[2];
	double start;
	int ret;

	ret = reg_both(b, size, mr);
	if (ret)
		return ret;
	start = prof_now();
	ret = send_one(b, size, mr);
	*given = prof_now() - start;
	dereg_both(mr);
	if (ret)
		return ret;
	start = prof_now();
	ret = reg_both(b, size, mr);
	if (ret)
		return ret;
	ret = send_one(b, size, mr);
	dereg_both(mr);
	*registered = prof_now() - start;
	return ret;
}

static int measure(struct bandwidth *b, struct prof_cell *cell, double budget)
{
	const double end = prof_now() + budget, size = (double) cell->size;
	double given, registered;
	unsigned round;
	int ret = 0;

	/* the first transfers do not count: buffers and connections are cold */
	ret = once(b, cell->size, &given, &registered);
	for (round = 0; round < ROUNDS_MAX && !ret; round++) {
		if (prof_stop)
			return prof_fail(b->err, -EINTR, "interrupted");
		if (round >= ROUNDS_MIN && prof_now() > end)
			break;
		ret = once(b, cell->size, &given, &registered);
		/* bytes per microsecond are MB/s */
		if (!ret)
			ret = prof_cell_add(cell, PROF_GIVEN, size / given);
		if (!ret)
			ret = prof_cell_add(cell, PROF_REGISTERING,
					    size / registered);
	}
	return ret;
}

static bool is_message(const struct prof_cell *cell)
{
	return cell->kind == MRRC_PAGES_4K && cell->touched &&
	       cell->size >= MESSAGE_MIN && cell->size <= MESSAGE_MAX;
}

static int map_buffers(struct bandwidth *b, size_t size)
{
	const struct mrrc_pages_attr attr = {
		.kind = MRRC_PAGES_4K,
		.node = -1,
	};
	enum mrrc_pages got;
	void *from, *to;
	int ret;

	ret = mrrc_pages_map(size, MESSAGE_MAX, &attr, &from, &b->mapped, &got);
	if (ret)
		return prof_fail(b->err, ret, "%s", strerror(-ret));
	ret = mrrc_pages_map(size, MESSAGE_MAX, &attr, &to, &b->mapped, &got);
	if (ret) {
		mrrc_pages_unmap(from, b->mapped);
		return prof_fail(b->err, ret, "%s", strerror(-ret));
	}
	memset(from, 1, size);
	memset(to, 2, size);
	b->from = from;
	b->to = to;
	return 0;
}

static int measure_all(struct bandwidth *b, struct prof_cells *cells,
		       double budget)
{
	size_t i;
	int ret;

	for (i = 0; i < cells->count; i++) {
		if (!is_message(&cells->cell[i]))
			continue;
		ret = measure(b, &cells->cell[i], budget);
		if (ret)
			return ret;
	}
	return 0;
}

/* A failure of this measurement leaves the other measurements valid. */
static int without(struct prof_cells *cells, int ret,
		   const struct prof_err *err)
{
	if (prof_stop)
		return ret;
	snprintf(cells->no_bandwidth, sizeof(cells->no_bandwidth), "%.*s",
		 (int) sizeof(cells->no_bandwidth) - 1, err->text);
	return 0;
}

/* Without endpoints, or if endpoints fail, bandwidth is not measured. */
int prof_bandwidth(const struct prof_options *options,
		   struct prof_device *device, struct prof_cells *cells,
		   struct prof_err *err)
{
	struct bandwidth b = { .device = device, .err = err };
	size_t i, messages = 0, largest = 0;
	int ret;

	for (i = 0; i < cells->count; i++) {
		if (!is_message(&cells->cell[i]))
			continue;
		messages++;
		if (cells->cell[i].size > largest)
			largest = cells->cell[i].size;
	}
	if (!messages) {
		snprintf(cells->no_bandwidth, sizeof(cells->no_bandwidth),
			 "no size from 32K to 4M in pages of 4k");
		return 0;
	}
	ret = prof_pair_open(device, &b.pair, err);
	if (ret)
		return without(cells, ret, err);
	if (!options->quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "\rbandwidth          ");
	ret = map_buffers(&b, largest);
	if (!ret) {
		ret = measure_all(&b, cells,
				  SHARE * options->seconds * 1e6 /
					  (double) messages);
		mrrc_pages_unmap(b.from, b.mapped);
		mrrc_pages_unmap(b.to, b.mapped);
	}
	prof_pair_close(&b.pair);
	return ret ? without(cells, ret, err) : 0;
}
