/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Twin runs: the raw core provider and the provider under test get the same
 * random calls, each side in a child process. A child reports the results of
 * each round as lines "KEY VALUE". The parent compares the lines. A
 * difference that the test's list of explained differences lacks is a failure.
 *
 * A round depends on the seed and the round's number alone, so FT_ROUND=N
 * repeats a round.
 */
#ifndef FT_TWIN_H
#define FT_TWIN_H

#include "ft_mrrc.h"

enum ft_side { FT_RAW, FT_OURS, FT_SIDES };

/* A difference that is explained, and so is no failure. */
struct ft_twin_why {
	const char *key; /* pattern of fnmatch(3); NULL ends the list */
	const char *why;
	/*
	 * Is the difference of the values raw and ours explained? A value is
	 * NULL if the side has no line with the key. If holds itself is NULL,
	 * any values are explained.
	 */
	bool (*holds)(unsigned round, const char *raw, const char *ours);
	bool ends;    /* the rest of the round cannot be compared */
	unsigned cnt; /* number of occurrences, set by ft_twin_run() */
};

struct ft_twin {
	unsigned rounds;
	/* number of rounds of a child, whose first round is a multiple of it */
	unsigned batch;
	unsigned limit_s; /* seconds that a round may take */
	/* Called in a child, once, before its first round; may be NULL */
	void (*setup)(enum ft_side side, unsigned round);
	/* Called in a child for each round */
	void (*round)(enum ft_side side, unsigned round);
	/* Called in another child: prints the round's input; may be NULL */
	void (*describe)(unsigned round);
	struct ft_twin_why *whys;
};

struct ft_twin_result {
	unsigned rounds, lines;
	/* rounds with explained, or other, differences */
	unsigned explained, failed;
	unsigned raw_died; /* rounds in which the raw side crashed */
};

/*
 * Prints each unexplained difference, and with -v the count of each explained
 * difference.
 */
void ft_twin_run(struct ft_twin *twin, struct ft_twin_result *result);
/* Called in a child: adds a line to the round's results */
void ft_twin_say(const char *key, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Seeds the random numbers of this round, the same on both sides. */
void ft_twin_seed(unsigned round);
uint64_t ft_twin_rand(void);
/* Returns true once in n calls, at random. */
bool ft_twin_once_in(unsigned n);
/* Returns that side's provider: "tcp;ofi_rxm", "tcp;ofi_rxm;ofi_mrrc" */
const char *ft_twin_prov(enum ft_side side);

#endif /* FT_TWIN_H */
