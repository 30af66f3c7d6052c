/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions that all wrapped objects share: finding the core's object for an
 * object of ours, the generic calls of struct fi_ops, and finding our object
 * for an object of the core that an event names (mrrc_fid_track and related
 * calls).
 *
 * Our objects are recognised by their table of calls, in which tostr is
 * mrrc_fid_tostr: every table of the fi layer has this tostr, and no other
 * table in the process has it.
 *
 * The core's objects are looked up in a table of addresses, never by reading
 * the object: an event may outlive the object it names, and an application may
 * write an event that names anything.
 *
 * Threading: any thread; fabric->track_lock is a leaf lock, held for a walk
 * of one bucket.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include <rdma/fi_ext.h>

#include "fi/fid.h"
#include "fi/parts.h"

static bool fid_is_ours(const struct fid *fid)
{
	return FI_CHECK_OP(fid->ops, struct fi_ops, tostr) &&
	       fid->ops->tostr == mrrc_fid_tostr;
}

#define FID_CORE(fid, type, member) \
	(&container_of(fid, struct type, member.fid)->core->fid)

struct fid *mrrc_fid_core(struct fid *fid)
{
	/*
	 * the handle of a connection request is the core's own, and may have no
	 * ops at all
	 */
	if (!fid || fid->fclass == FI_CLASS_CONNREQ || !fid_is_ours(fid))
		return NULL;

	switch (fid->fclass) {
	case FI_CLASS_FABRIC:
		return FID_CORE(fid, mrrc_fabric, fabric);
	case FI_CLASS_DOMAIN:
		return FID_CORE(fid, mrrc_domain, domain);
	case FI_CLASS_EP:
	case FI_CLASS_SEP:
	case FI_CLASS_TX_CTX:
	case FI_CLASS_RX_CTX:
	case FI_CLASS_SRX_CTX:
		return FID_CORE(fid, mrrc_ep, ep);
	case FI_CLASS_STX_CTX:
		return FID_CORE(fid, mrrc_stx, stx);
	case FI_CLASS_PEP:
		return FID_CORE(fid, mrrc_pep, pep);
	case FI_CLASS_AV:
		return FID_CORE(fid, mrrc_av, av);
	case FI_CLASS_MR:
		return FID_CORE(fid, mrrc_mr, mr);
	case FI_CLASS_EQ:
		return FID_CORE(fid, mrrc_eq, eq);
	case FI_CLASS_CQ:
		return FID_CORE(fid, mrrc_cq, cq);
	case FI_CLASS_CNTR:
		return FID_CORE(fid, mrrc_cntr, cntr);
	case FI_CLASS_WAIT:
		return FID_CORE(fid, mrrc_wait, wait);
	case FI_CLASS_POLL:
		return FID_CORE(fid, mrrc_poll, poll);
	default:
		return NULL;
	}
}

int mrrc_fid_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fid *core = mrrc_fid_core(fid);
	struct fid *bcore = mrrc_fid_core(bfid);

	if (!core || !bcore) {
		MRRC_WARN(CORE, "cannot bind an object of another provider\n");
		return -FI_EINVAL;
	}
	if (!FI_CHECK_OP(core->ops, struct fi_ops, bind))
		return -FI_ENOSYS;
	return core->ops->bind(core, bcore, flags);
}

int mrrc_fid_control(struct fid *fid, int command, void *arg)
{
	struct fid *core = mrrc_fid_core(fid);

	switch (command) {
	case FI_ALIAS:
	case FI_DUP:
	case FI_EXPORT_FID:
		/* these would return an object of the core, unwrapped */
	case FI_QUEUE_WORK:
	case FI_CANCEL_WORK:
		/* arg names objects of ours inside */
		return -FI_ENOSYS;
	default:
		break;
	}
	if (!core || !FI_CHECK_OP(core->ops, struct fi_ops, control))
		return -FI_ENOSYS;
	return core->ops->control(core, command, arg);
}

/*
 * Opens no table: the core's functions would take our objects for the core's
 * structures.
 */
int mrrc_fid_ops_open(struct fid *fid, const char *name, uint64_t flags,
		      void **ops, void *context)
{
	if (name)
		mrrc_part_asked(name);
	MRRC_INFO(CORE, "no operations named \"%s\"\n", name ? name : "");
	return -FI_ENOSYS;
}

/* Passes on only tables whose functions take no fid and no context. */
int mrrc_fid_ops_set(struct fid *fid, const char *name, uint64_t flags,
		     void *ops, void *context)
{
	struct fid *core = mrrc_fid_core(fid);

	if (!core || !name || strcmp(name, FI_SET_OPS_HMEM_OVERRIDE)) {
		MRRC_INFO(CORE, "cannot pass on operations \"%s\"\n",
			  name ? name : "");
		return -FI_ENOSYS;
	}
	return fi_set_ops(core, name, flags, ops, context);
}

/* Appends, as libfabric expects: the text in buf stays. */
int mrrc_fid_tostr(const struct fid *fid, char *buf, size_t len)
{
	size_t used = strnlen(buf, len);

	if (used < len)
		snprintf(buf + used, len - used, MRRC_PROV_NAME ": %p\n",
			 (const void *) fid);
	return 0;
}

static struct mrrc_tracks *track_bucket(struct mrrc_fabric *fabric,
					const struct fid *core)
{
	uint64_t hash = (uintptr_t) core * UINT64_C(0x9e3779b97f4a7c15);

	_Static_assert(MRRC_TRACK_BUCKETS == 256, "the hash's top byte");
	return &fabric->tracks[hash >> 56];
}

/* Adds at the front: the core may reuse an address before it is untracked. */
void mrrc_fid_track(struct mrrc_fabric *fabric, struct mrrc_track *track,
		    struct fid *core, struct fid *ours)
{
	track->core = core;
	track->ours = ours;
	mrrc_mutex_lock(&fabric->track_lock);
	LIST_INSERT_HEAD(track_bucket(fabric, core), track, link);
	mrrc_mutex_unlock(&fabric->track_lock);
}

/* Called when the core has closed its object, before ours is freed. */
void mrrc_fid_untrack(struct mrrc_fabric *fabric, struct mrrc_track *track)
{
	mrrc_mutex_lock(&fabric->track_lock);
	LIST_REMOVE(track, link);
	mrrc_mutex_unlock(&fabric->track_lock);
}

/* Our object for an object of the core, or NULL. track_lock is held. */
struct fid *mrrc_fid_find_locked(struct mrrc_fabric *fabric,
				 const struct fid *core)
{
	struct mrrc_track *track;

	LIST_FOREACH(track, track_bucket(fabric, core), link) {
		if (track->core == core)
			return track->ours;
	}
	return NULL;
}

/*
 * Like mrrc_fid_find_locked(), but takes the lock itself. Another thread may
 * close our object at any time, so the function copies the object.
 */
struct fid *mrrc_fid_find(struct mrrc_fabric *fabric, const struct fid *core,
			  struct fid *copy)
{
	struct fid *ours;

	mrrc_mutex_lock(&fabric->track_lock);
	ours = mrrc_fid_find_locked(fabric, core);
	if (ours)
		*copy = *ours;
	mrrc_mutex_unlock(&fabric->track_lock);
	return ours;
}
