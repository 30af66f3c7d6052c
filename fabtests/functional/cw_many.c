/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_many: what a conditional operation costs does not depend on how
 * many others are pending. Each kind of call is made with 1,000 pending and
 * with 30,000, and the processor time of one call is compared. Cache misses
 * make a call up to four times as expensive; what looks at all that is
 * pending, thirty times or more.
 */
#include "ft_mrrc.h"

#define FEW	1000
#define MANY	30000
#define FACTOR	12
#define LEN	8
#define TRIES	3

static struct ft_pair pair;
static char *out, *in;

static void post(struct ft_ep *ep, unsigned i)
{
	const size_t at = (size_t) i * LEN;

	if (ep == &pair.c)
		FT_POST(ep, fi_cwrite(ep->ep, out + at, LEN, NULL, ep->to, i,
				      out + at));
	else
		FT_POST(ep, fi_cwtag(ep->ep, in + at, LEN, NULL, ep->to, i,
				     in + at));
}

static void check_cancelled(struct ft_ep *ep, unsigned count)
{
	const enum ft_dir dir = ep == &pair.c ? FT_TX : FT_RX;
	struct ft_comp comp;

	while (count--) {
		ft_wait_any(ep, dir, &comp);
		FT_CHECK(comp.err == FI_ECANCELED, "error %d", comp.err);
	}
}

/* The newest first; of ep, which is the writer or the target */
static uint64_t cancels(struct ft_ep *ep, unsigned count)
{
	char *contexts = ep == &pair.c ? out : in;
	uint64_t begin;
	unsigned i;

	for (i = 0; i < count; i++)
		post(ep, i);
	begin = ft_cpu_us();
	for (i = count; i--; )
		FT_CALL(fi_cw_cancel(ep->ep, contexts + (size_t) i * LEN));
	begin = ft_cpu_us() - begin;
	check_cancelled(ep, count);
	return begin;
}

/* Writes of ep wait; what they wait for comes in reverse, or the same. */
static uint64_t reverse(struct ft_ep *ep, unsigned count)
{
	struct ft_comp comp;
	uint64_t begin;
	unsigned i;

	for (i = 0; i < count; i++)
		post(ep, i);
	begin = ft_cpu_us();
	for (i = count; i--; )
		post(ep->peer, i);
	for (i = 0; i < count; i++) {
		ft_wait(&pair.c, FT_TX, &comp);
		ft_wait(&pair.s, FT_RX, &comp);
	}
	return ft_cpu_us() - begin;
}

static double best(uint64_t (*run)(struct ft_ep *, unsigned),
		   struct ft_ep *ep, unsigned count)
{
	double us, least = 0;
	unsigned i;

	for (i = 0; i < TRIES; i++) {
		us = (double) run(ep, count) / count;
		if (!i || us < least)
			least = us;
	}
	return least;
}

static void compare(const char *what,
		    uint64_t (*run)(struct ft_ep *, unsigned),
		    struct ft_ep *ep)
{
	double few, many;

	ft_stage("%s", what);
	few = best(run, ep, FEW);
	many = best(run, ep, MANY);
	ft_log("%s: %.2f us with %u pending, %.2f us with %u", what, few,
	       FEW, many, MANY);
	FT_CHECK(many < FACTOR * few + 1, "%s: %.2f us with %u pending, "
		 "%.2f us with %u", what, few, FEW, many, MANY);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	out = ft_map(NULL, MANY * LEN);
	in = ft_map(NULL, MANY * LEN);
	compare("cancelled writes", cancels, &pair.c);
	/* devices have no room for so many registrations */
	if (!ft_core("verbs")) {
		compare("cancelled targets", cancels, &pair.s);
		compare("exposed in reverse", reverse, &pair.c);
		compare("written in reverse", reverse, &pair.s);
	}
	ft_unmap(out, MANY * LEN);
	ft_unmap(in, MANY * LEN);
	ft_pair_close(&pair);
	return ft_done();
}
