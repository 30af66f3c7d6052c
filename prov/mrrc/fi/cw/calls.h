/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes: what other folders call, where an object has
 * them; struct mrrc_ep's cw, struct mrrc_eq's and so on tell. cw/cw.h is what
 * those files share.
 */
#ifndef MRRC_CW_CALLS_H
#define MRRC_CW_CALLS_H

#include "fi/mrrc_fi.h"

int mrrc_cw_ops_open(struct fid *fid, const char *name, uint64_t flags,
		     void **ops, void *context);
void mrrc_cw_ep_close(struct mrrc_ep *ep);
/* asleep: what may wake who is about to sleep is looked at everywhere, and not
 * only where something is under way. */
void mrrc_cw_progress(struct mrrc_cw_domain *domain, bool asleep);
int mrrc_cw_connect(struct mrrc_ep *ep, const void *addr, const void *param,
		    size_t paramlen);
int mrrc_cw_accept(struct mrrc_ep *ep, const void *param, size_t paramlen);
void mrrc_cw_shutdown(struct mrrc_ep *ep);
/* Reliable datagrams: the endpoint is enabled; closes; its name as the core
 * has it, where there was room for so many bytes */
void mrrc_cw_rdm_start(struct mrrc_ep *ep);
void mrrc_cw_rdm_close(struct mrrc_ep *ep);
void mrrc_cw_rdm_getname(struct mrrc_ep *ep, void *addr, size_t room,
			 size_t addrlen);
/* cw/av.c: as fi_av_insert() and so on */
void mrrc_cw_av_open(struct mrrc_av *av, uint32_t addr_format);
void mrrc_cw_av_close(struct mrrc_av *av);
int mrrc_cw_av_insert(struct mrrc_av *av, const void *addr, size_t count,
		      fi_addr_t *fi_addr, uint64_t flags, void *context);
int mrrc_cw_av_remove(struct mrrc_av *av, fi_addr_t *fi_addr, size_t count,
		      uint64_t flags);
int mrrc_cw_av_lookup(struct mrrc_av *av, fi_addr_t fi_addr, void *addr,
		      size_t *addrlen);
const char *mrrc_cw_av_straddr(struct mrrc_av *av, const void *addr, char *buf,
			       size_t *len);
/* The core's endpoint, as an event names it. */
void mrrc_cw_gone(struct mrrc_fabric *fabric, const struct fid *core);
/* After getopt: private data that is left to the application; 0 */
int mrrc_cw_cm_data(int level, int optname, void *optval);
/* As fi_eq_read(), or with wait as fi_eq_sread(). */
ssize_t mrrc_cw_eq_read(struct mrrc_eq *eq, uint32_t *event, void *buf,
			size_t len, bool wait, int timeout, uint64_t flags);
/* A request's handle was used, or refused: was it marked? */
bool mrrc_cw_mark_take(struct mrrc_fabric *fabric, const struct fid *handle);
void mrrc_cw_marks_free(struct mrrc_fabric *fabric);
/* 0, or -FI_ENOENT */
int mrrc_cw_cancel(struct mrrc_ep *ep, void *context);

#endif /* MRRC_CW_CALLS_H */
