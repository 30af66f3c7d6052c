/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cost of registering memory: linear in pages (ou2009, section 5;
 * mietke2006).
 *
 *   registration   T(p) = reg_page * p + reg
 *   deregistration T(p) = dereg_page * p + dereg, and where the device has a
 *                  batched call one dereg for all regions of a batch
 *
 * Times are nanoseconds. Pure functions of their arguments.
 */
#ifndef MRRC_COST_H
#define MRRC_COST_H

#include <stdbool.h>
#include <stddef.h>

struct mrrc_cost {
	double reg_page;
	double reg;
	double dereg_page;
	double dereg;
	double copy_page; /* copying one page; 0: not known */
	double copy;	  /* copying a request, besides its pages */
	size_t page;	  /* bytes, a power of two */
	bool batch;	  /* the calls of a batch cost one dereg */
};

/*
 * The default model where nothing was measured: InfiniBand of 2003, where
 * batches save time (Wu et al. 2003b, quoted in ou2009, sections 5 and 8).
 */
#define MRRC_COST_OU2009                               \
	{                                              \
		770, 7420, 220, 1100, 0, 0, 4096, true \
	}
extern const struct mrrc_cost mrrc_cost_default;

/* An example of a model in numbers, for messages. */
#define MRRC_COST_EXAMPLE \
	"reg_page=770:reg=7420:dereg_page=220:dereg=1100:copy_page=300"

/*
 * Reads a cost model from text: reg_page=NS:reg=NS:dereg_page=NS:dereg=NS, and
 * optionally copy_page, copy, page (bytes; default 4096) and batch (0 or 1).
 * Returns -EINVAL if @text is no model.
 */
int mrrc_cost_parse(const char *text, struct mrrc_cost *cost);

/*
 * Parses a model from the contents of a file that fi_mrrc_prof(1) saved: the
 * model is one line; empty lines, and lines that begin with #, are skipped.
 */
int mrrc_cost_parse_file(const char *text, struct mrrc_cost *cost);

/*
 * Returns 0, or -EINVAL if a cost is negative or not a number, or the page size
 * is no power of two.
 */
int mrrc_cost_check(const struct mrrc_cost *cost);

static inline double mrrc_cost_pages(const struct mrrc_cost *cost, size_t len)
{
	return (double) ((len + cost->page - 1) / cost->page);
}

static inline double mrrc_cost_reg(const struct mrrc_cost *cost, size_t len)
{
	return cost->reg_page * mrrc_cost_pages(cost, len) + cost->reg;
}

/* The cost of copying in place of registering, in excess of a hit. */
static inline double mrrc_cost_copy(const struct mrrc_cost *cost, size_t len)
{
	return cost->copy_page * mrrc_cost_pages(cost, len) + cost->copy;
}

/* The cost of deregistering one region alone. */
static inline double mrrc_cost_dereg(const struct mrrc_cost *cost, size_t len)
{
	return cost->dereg_page * mrrc_cost_pages(cost, len) + cost->dereg;
}

/*
 * Returns the cost of deregistering a batch of @regions regions with @pages
 * pages in all.
 */
static inline double mrrc_cost_dereg_batch(const struct mrrc_cost *cost,
					   size_t regions, double pages)
{
	const size_t calls = cost->batch && regions ? 1 : regions;

	return cost->dereg_page * pages + cost->dereg * (double) calls;
}

#endif /* MRRC_COST_H */
