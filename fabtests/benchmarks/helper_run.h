/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions that helper_bench and helper_replay share: they open connections
 * with and without a helper, run each load in a separate process, and measure
 * the registered bytes over time. Only one thread calls these functions.
 */
#ifndef HELPER_RUN_H
#define HELPER_RUN_H

#include "ft_bench.h"

/*
 * Opens a connection in a mode over @core; @helper is the value of
 * FI_OFI_MRRC_HELPER, or NULL.
 */
void helper_open(const char *name, enum ft_mode mode, const char *core,
		 const char *helper, struct ft_pair *pair);
/* Runs what(arg) in a child, and checks that the child succeeds. */
void helper_in_child(void (*what)(void *arg), void *arg);
void helper_ended(pid_t pid);

struct helper_bytes {
	struct ft_dom *dom;
	double base;	    /* bytes registered at the begin */
	double now, peak;   /* bytes registered since then */
	double area;	    /* bytes multiplied by us */
	double begin, last; /* us */
};

void helper_bytes_begin(struct helper_bytes *bytes, struct ft_dom *dom);
void helper_bytes_look(struct helper_bytes *bytes);
double helper_bytes_mean(const struct helper_bytes *bytes);

#endif /* HELPER_RUN_H */
