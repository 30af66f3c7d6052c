/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared by ft_conn.c and ft_rdm.c. */
#ifndef FT_CONN_H
#define FT_CONN_H

#include "ft_mrrc.h"

void ft_ep_init(struct ft_pair *pair, struct ft_ep *ep, struct ft_dom *dom);
void ft_cw_open(struct ft_ep *ep);
void ft_bind_queues(struct ft_pair *pair, struct ft_ep *ep);

void ft_rdm_connect(struct ft_pair *pair, struct ft_ep *s, struct ft_ep *c);

#endif /* FT_CONN_H */
