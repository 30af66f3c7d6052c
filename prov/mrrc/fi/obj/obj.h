/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions and tables of the files of this room that have no header; comments
 * name the files.
 */
#ifndef MRRC_OBJ_H
#define MRRC_OBJ_H

#include "fi/mrrc_fi.h"

/* fabric.c, eq.c, wait.c, poll.c, pep.c, av.c, cntr.c, stx.c, mr.c, cm.c */
int mrrc_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		     void *context);
int mrrc_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		 struct fid_eq **eq, void *context);
int mrrc_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		   struct fid_wait **wait);
int mrrc_trywait(struct fid_fabric *fabric, struct fid **fids, int count);
int mrrc_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		   struct fid_poll **poll);
int mrrc_pep_open(struct fid_fabric *fabric, struct fi_info *info,
		  struct fid_pep **pep, void *context);
int mrrc_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		 struct fid_av **av, void *context);
int mrrc_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		   struct fid_cntr **cntr, void *context);
int mrrc_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr,
		  struct fid_stx **stx, void *context);

extern struct fi_ops_mr mrrc_mr_ops;
extern struct fi_ops mrrc_av_fid_ops;
extern struct fi_ops_av mrrc_av_ops;
extern struct fi_ops_cm mrrc_cm_ops;
/* passive endpoints */
extern struct fi_ops mrrc_pep_fid_ops;
extern struct fi_ops_ep mrrc_pep_ep_ops;
extern struct fi_ops_cm mrrc_pep_cm_ops;
extern const struct fi_mrrc_ops_cw *mrrc_pep_cw_ops; /* set once, by fi/cw */

/* domain.c */

/* Opens a domain for the provider itself, next to an application's. */
int mrrc_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		     struct fid_domain **domain, void *context);
/* Opens an application's domain. */
int mrrc_domain_open2(struct fid_fabric *fabric, struct fi_info *info,
		      struct fid_domain **domain, uint64_t flags,
		      void *context);
extern struct fi_ops_domain mrrc_domain_ops;

/* The calls of struct mrrc_domain, and of no other object */
extern struct fi_ops mrrc_domain_fid_ops;

/* The registrations of a domain; NULL: it is another provider's */
struct mrrc_reg *mrrc_domain_reg(struct fid_domain *domain);

/*
 * stats.c: opens the extension's tables of a domain, the provider's or a hooked
 * domain. -FI_ENOSYS: the extension has no table of this name.
 */
int mrrc_ext_open(const char *name, uint64_t flags, void **ops);

#ifdef MRRC_XPU_CALLS
/* xpu.c */
int mrrc_xpu_ctx(struct fid_domain *domain, struct fi_xpu_attr *attr,
		 struct fid_xpu_ctx **ctx, void *context);
int mrrc_ep_export_xpu(struct fid_ep *ep, uint64_t flags,
		       struct fid_xpu_ep *xpu_ep);
int mrrc_cq_export_xpu(struct fid_cq *cq, uint64_t flags,
		       struct fid_xpu_cq *xpu_cq);
int mrrc_cntr_export_xpu(struct fid_cntr *cntr, uint64_t flags,
			 struct fid_xpu_cntr *xpu_cntr);
#endif

#endif /* MRRC_OBJ_H */
