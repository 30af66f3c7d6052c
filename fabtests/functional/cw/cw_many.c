/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_many: tests that the cost of a conditional operation does not
 * depend on how many other operations are pending. Each kind of call is made
 * with 1,000 and with 30,000 operations pending, and the processor time of one
 * call is compared. Cache misses make a call up to four times as expensive; a
 * walk over all pending operations would make a call at least thirty times as
 * expensive. Nor does the cost depend on the tags, which a hostile peer could
 * choose so that all fall into one bucket of a hash without a secret: 10,000
 * such tags are compared with 10,000 consecutive tags.
 */
#include "ft_mrrc.h"

#define FEW    1000
#define MANY   30000
#define FACTOR 12
#define LEN    8
#define TRIES  3

static struct ft_pair pair;
static char *out, *in;
static unsigned many; /* number of operations: MANY, or the user's */
static bool made;     /* use tags that would share a bucket */

/* ---- tags ---------------------------------------------------------------- */

static uint64_t unshift(uint64_t word, unsigned bits)
{
	uint64_t back = word;
	unsigned i;

	for (i = bits; i < 64; i += bits)
		back = word ^ back >> bits;
	return back;
}

/*
 * Returns the inverse of an odd number, modulo 2^64: each turn doubles the
 * number of correct bits.
 */
static uint64_t inverse(uint64_t odd)
{
	uint64_t back = odd;
	unsigned i;

	for (i = 0; i < 5; i++)
		back *= 2 - odd * back;
	return back;
}

/*
 * Returns a number whose splitmix64 hash has a lower half of 0, if made is set
 */
static uint64_t tag_of(unsigned i)
{
	uint64_t hash = (uint64_t) i << 32;

	if (!made)
		return i;
	hash = unshift(hash, 31) * inverse(0x94d049bb133111eb);
	hash = unshift(hash, 27) * inverse(0xbf58476d1ce4e5b9);
	return unshift(hash, 30);
}

/* ---- calls --------------------------------------------------------------- */

static void post(struct ft_ep *ep, unsigned i)
{
	const size_t at = (size_t) i * LEN;

	if (ep == &pair.c)
		FT_POST(ep, fi_cwrite(ep->cw, out + at, LEN, NULL, ep->to,
				      tag_of(i), out + at));
	else
		FT_POST(ep, fi_cwtag(ep->cw, in + at, LEN, NULL, ep->to,
				     tag_of(i), in + at));
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

/* Cancels the newest operation first; ep is the writer or the target */
static uint64_t cancels(struct ft_ep *ep, unsigned count)
{
	char *contexts = ep == &pair.c ? out : in;
	uint64_t begin;
	unsigned i;

	for (i = 0; i < count; i++)
		post(ep, i);
	begin = ft_cpu_us();
	for (i = count; i--;)
		FT_CALL(fi_cancel(&ep->ep->fid, contexts + (size_t) i * LEN));
	begin = ft_cpu_us() - begin;
	check_cancelled(ep, count);
	return begin;
}

/*
 * Posts operations of ep; then the peer posts the partners of these operations
 * in the reverse order.
 */
static uint64_t reverse(struct ft_ep *ep, unsigned count)
{
	struct ft_comp comp;
	uint64_t begin;
	unsigned i;

	for (i = 0; i < count; i++)
		post(ep, i);
	begin = ft_cpu_us();
	for (i = count; i--;)
		post(ep->peer, i);
	for (i = 0; i < count; i++) {
		ft_wait(&pair.c, FT_TX, &comp);
		ft_wait(&pair.s, FT_RX, &comp);
	}
	return ft_cpu_us() - begin;
}

static double best(uint64_t (*run)(struct ft_ep *, unsigned), struct ft_ep *ep,
		   unsigned count)
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

static void compare(const char *what, uint64_t (*run)(struct ft_ep *, unsigned),
		    struct ft_ep *ep)
{
	double of_few, of_many;

	ft_stage("%s", what);
	of_few = best(run, ep, FEW);
	of_many = best(run, ep, many);
	ft_log("%s: %.2f us with %u pending, %.2f us with %u", what, of_few,
	       FEW, of_many, many);
	/*
	 * processor time may be counted in ticks; a linear cost would be 100 us
	 */
	FT_CHECK(of_many < FACTOR * of_few + 10,
		 "%s: %.2f us with %u pending, "
		 "%.2f us with %u",
		 what, of_few, FEW, of_many, many);
}

static void compare_tags(struct ft_ep *ep)
{
	double plain, chosen;

	ft_stage("tags that a peer chooses");
	plain = best(reverse, ep, many / 3);
	made = true;
	chosen = best(reverse, ep, many / 3);
	made = false;
	ft_log("tags: %.2f us in a row, %.2f us chosen", plain, chosen);
	FT_CHECK(chosen < FACTOR * plain,
		 "tags: %.2f us in a row, %.2f us "
		 "chosen",
		 plain, chosen);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	size_t room;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	many = ft_iters(MANY);
	room = (size_t) (many > FEW ? many : FEW) * LEN;
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	out = ft_map(NULL, room);
	in = ft_map(NULL, room);
	compare("cancelled writes", cancels, &pair.c);
	/* devices have no room for thousands of registrations */
	if (!ft_core("verbs")) {
		compare("cancelled targets", cancels, &pair.s);
		compare("exposed in reverse", reverse, &pair.c);
		compare("written in reverse", reverse, &pair.s);
		compare_tags(&pair.c);
		compare_tags(&pair.s);
	}
	ft_unmap(out, room);
	ft_unmap(in, room);
	ft_pair_close(&pair);
	return ft_done();
}
