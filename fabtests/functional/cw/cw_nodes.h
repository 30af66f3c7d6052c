/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Declarations that the parts of fi_mrrc_cw_rdm share: reliable datagram
 * endpoints in two domains, which have each other's address, and conditional
 * writes between these endpoints.
 */
#ifndef CW_NODES_H
#define CW_NODES_H

#include "ft_mrrc.h"

#define EPS 8	 /* number of endpoints that know each other */
#define LEN 8192 /* more than a message takes */

struct node {
	struct ft_ep ep;
	fi_addr_t peer[EPS];
};

extern struct ft_attr attr;
extern struct ft_pair pair;
extern struct node node[EPS];
extern char *out, *in; /* 1024 buffers of LEN bytes: one for each tag */

/* Opens endpoint i, in one domain or the other, without peers. */
void open_node(int i);
/* Inserts k's address at endpoint i. */
void know(int i, int k);
/* Opens the first n endpoints, each with all addresses. */
void open_all(int n);
void close_all(void);
void poll_all(void);

/* Waits for one completion, while all endpoints make progress. */
void wait_comp(int i, enum ft_dir dir, struct ft_comp *comp);
void wait_err(int i, enum ft_dir dir, void *ctx, int err);

/* Writes from i to k; exposes a buffer of i to k. */
void write_to(int i, int k, uint64_t tag);
void expose(int i, int k, uint64_t tag);
/* Transfers from writer w to target t, until both have completed. */
void transfer(int w, int t, uint64_t tag);
/* Checks that nothing is pending at endpoint i. */
void check_none(int i);

/* cw_peers.c: peers in the address vector, and peers that die */
#define VICTIM "FT_CW_RDM_VICTIM" /* the survivor's name, as text */
void victim(const char *hex);
void peers(char **argv);

#endif /* CW_NODES_H */
