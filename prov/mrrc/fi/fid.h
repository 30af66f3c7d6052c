/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls for an object of any class by its fid, and the objects that the core's
 * events name.
 */
#ifndef MRRC_FID_H
#define MRRC_FID_H

#include "fi/mrrc_fi.h"

/* The core's fid behind an object of ours; NULL: fid is not ours */
struct fid *mrrc_fid_core(struct fid *fid);
int mrrc_fid_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int mrrc_fid_control(struct fid *fid, int command, void *arg);
int mrrc_fid_ops_open(struct fid *fid, const char *name, uint64_t flags,
		      void **ops, void *context);
int mrrc_fid_ops_set(struct fid *fid, const char *name, uint64_t flags,
		     void *ops, void *context);
int mrrc_fid_tostr(const struct fid *fid, char *buf, size_t len);
/*
 * Maps the core's object that an event names to ours, from open to close of
 * each endpoint, passive endpoint and address vector.
 */
void mrrc_fid_track(struct mrrc_fabric *fabric, struct mrrc_track *track,
		    struct fid *core, struct fid *ours);
void mrrc_fid_untrack(struct mrrc_fabric *fabric, struct mrrc_track *track);
struct fid *mrrc_fid_find_locked(struct mrrc_fabric *fabric,
				 const struct fid *core);
struct fid *mrrc_fid_find(struct mrrc_fabric *fabric, const struct fid *core,
			  struct fid *copy);

#endif /* MRRC_FID_H */
