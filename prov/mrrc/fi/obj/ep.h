/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints: FI_CLASS_EP, FI_CLASS_SEP and FI_CLASS_SRX_CTX. */
#ifndef MRRC_EP_H
#define MRRC_EP_H

#include "fi/mrrc_fi.h"

int mrrc_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		  struct fid_ep **srx, void *context);
int mrrc_ep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context);
int mrrc_ep_open2(struct fid_domain *domain, struct fi_info *info,
		  struct fid_ep **ep, uint64_t flags, void *context);
int mrrc_sep_open(struct fid_domain *domain, struct fi_info *info,
		  struct fid_ep **sep, void *context);

/*
 * Opens an endpoint without an object of the core, for the decisions that
 * depend on the endpoint when buffers are resolved. The endpoint keeps its
 * domain open.
 */
int mrrc_ep_stand_in(struct mrrc_domain *domain, const struct fi_info *info,
		     struct mrrc_ep **ep);
void mrrc_ep_stand_in_free(struct mrrc_ep *ep);

/* To be called once, before the core enables the endpoint. */
int mrrc_ep_prepare(struct mrrc_ep *ep);

extern struct fi_ops mrrc_ep_fid_ops;
extern struct fi_ops_ep mrrc_ep_ops;
extern const struct fi_mrrc_ops_cw *mrrc_ep_cw_ops; /* set once, by fi/cw */

#endif /* MRRC_EP_H */
