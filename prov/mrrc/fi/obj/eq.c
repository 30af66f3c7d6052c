/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queues: the core's, but events name the application's objects instead
 * of the core's.
 *
 * mrrc_fid_find() finds the provider's object for the core's. Events that the
 * application wrote pass unchanged, since they name the application's objects;
 * so do events of multicast groups, since the application holds the core's
 * groups. mr.c writes FI_MR_COMPLETE, which names the provider's object from
 * the start.
 *
 * Threading: any thread, as far as the core's queue allows.
 */
#include "config.h"

#include <stdio.h>

#include "fi/attr.h"
#include "fi/fid.h"
#include "fi/info.h"
#include "fi/mrrc_fi.h"
#include "fi/obj/obj.h"

static bool name_has_us(const char *name)
{
	const char *last = strrchr(name, ';');

	return !strcmp(last ? last + 1 : name, MRRC_PROV_NAME);
}

/* Changes the core's info to that of fi_getinfo() for the same peer. */
static void connreq_info(struct mrrc_eq *eq, struct fi_info *info)
{
	const char *below = eq->fabric->core_prov_name;
	char *name;
	size_t len;

	/* if the event was peeked at before, its info is changed already */
	if (!info || !info->fabric_attr ||
	    (info->fabric_attr->prov_name &&
	     name_has_us(info->fabric_attr->prov_name)))
		return;

	len = strlen(below) + sizeof(";" MRRC_PROV_NAME);
	name = malloc(len);
	if (!name) {
		MRRC_WARN(EQ, "no memory for the name in a connection "
			      "request's info\n");
		return;
	}
	snprintf(name, len, "%s;" MRRC_PROV_NAME, below);
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = name;
	info->fabric_attr->fabric = NULL;
	if (info->domain_attr)
		info->domain_attr->domain = NULL;
	mrrc_info_from_core(info);
}

/* Changes an event, which the end of the caller's buffer may cut off. */
static void eq_from_core(struct mrrc_eq *eq, uint32_t event, void *buf,
			 size_t len)
{
	struct fid *core, *ours, copy;
	struct fi_eq_cm_entry cm;

	/* every standard event starts with its fid */
	if (event > FI_JOIN_COMPLETE || len < sizeof(core))
		return;

	/* the caller's buffer may be unaligned */
	memcpy(&core, buf, sizeof(core));
	ours = mrrc_fid_find(eq->fabric, core, &copy);
	if (!ours)
		return;
	memcpy(buf, &ours, sizeof(ours));

	if (event == FI_CONNREQ && len >= sizeof(cm)) {
		memcpy(&cm, buf, sizeof(cm));
		connreq_info(eq, cm.info);
	}
}

/*
 * Conditional writes may replace the calls while an event is read, and need the
 * whole event. So an event is read into a buffer with room for private data, if
 * the caller has room for an event without such data, and as much as fits is
 * passed on.
 */
static ssize_t eq_read_any(struct mrrc_eq *eq, uint32_t *event, void *buf,
			   size_t len, bool wait, int timeout, uint64_t flags)
{
	char entry[sizeof(struct fi_eq_cm_entry) + MRRC_EQ_CM_DATA];
	const struct mrrc_eq_over *over;
	uint32_t core_event = 0;
	void *to = entry;
	size_t room = len;
	ssize_t ret;

	if (buf && len > sizeof(entry))
		to = buf;
	else if (len >= sizeof(struct fi_eq_cm_entry))
		room = sizeof(entry);
	ret = wait ? fi_eq_sread(eq->core, &core_event, to, room, timeout,
				 flags) :
		     fi_eq_read(eq->core, &core_event, to, room, flags);
	if (ret < 0)
		return ret;
	over = atomic_load(&eq->over);
	if (over)
		ret = over->seen(eq, core_event, to, ret, flags);
	eq_from_core(eq, core_event, to, ret);
	if (event)
		*event = core_event;
	if (!buf)
		return 0;
	if (to == buf)
		return ret;
	if ((size_t) ret > len)
		ret = len;
	memcpy(buf, entry, ret);
	return ret;
}

static ssize_t eq_read(struct fid_eq *eq_fid, uint32_t *event, void *buf,
		       size_t len, uint64_t flags)
{
	return eq_read_any(container_of(eq_fid, struct mrrc_eq, eq), event, buf,
			   len, false, 0, flags);
}

static ssize_t eq_sread(struct fid_eq *eq_fid, uint32_t *event, void *buf,
			size_t len, int timeout, uint64_t flags)
{
	return eq_read_any(container_of(eq_fid, struct mrrc_eq, eq), event, buf,
			   len, true, timeout, flags);
}

static ssize_t eq_readerr(struct fid_eq *eq_fid, struct fi_eq_err_entry *entry,
			  uint64_t flags)
{
	struct mrrc_eq *eq = container_of(eq_fid, struct mrrc_eq, eq);
	const struct mrrc_eq_over *over;
	struct fid *ours, copy;
	ssize_t ret;

	ret = fi_eq_readerr(eq->core, entry, flags);
	if (ret <= 0 || !entry)
		return ret;

	over = atomic_load(&eq->over);
	if (over)
		over->gone(eq->fabric, entry->fid);
	ours = mrrc_fid_find(eq->fabric, entry->fid, &copy);
	if (ours) {
		entry->fid = ours;
		/* an error of an AV has the context of the insertion */
		if (copy.fclass != FI_CLASS_AV && entry->context == ours)
			entry->context = copy.context;
	}
	return ret;
}

static ssize_t eq_write(struct fid_eq *eq_fid, uint32_t event, const void *buf,
			size_t len, uint64_t flags)
{
	struct mrrc_eq *eq = container_of(eq_fid, struct mrrc_eq, eq);

	return fi_eq_write(eq->core, event, buf, len, flags);
}

static const char *eq_strerror(struct fid_eq *eq_fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	struct mrrc_eq *eq = container_of(eq_fid, struct mrrc_eq, eq);

	return fi_eq_strerror(eq->core, prov_errno, err_data, buf, len);
}

static int eq_close(struct fid *fid)
{
	struct mrrc_eq *eq = container_of(fid, struct mrrc_eq, eq.fid);
	int ret;

	if (mrrc_ref_busy(&eq->ref))
		return -FI_EBUSY;
	ret = fi_close(&eq->core->fid);
	if (ret)
		return ret;
	mrrc_ref_put(&eq->fabric->ref);
	free(eq);
	return 0;
}

static struct fi_ops mrrc_eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = mrrc_fid_bind,
	.control = mrrc_fid_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

static struct fi_ops_eq mrrc_eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int mrrc_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		 struct fid_eq **eq_fid, void *context)
{
	struct mrrc_fabric *fab = mrrc_fabric_of(fabric);
	/* the defaults of sockets, the core that accepts attr NULL */
	struct mrrc_eq_attrs copy = { { { .wait_obj = FI_WAIT_FD } } };
	struct fi_eq_attr *core_attr = copy.attr;
	struct mrrc_eq *eq;
	struct fid *wait;
	int ret;

	/* with FI_PEER the context is a structure of the caller's, not a fid */
	if (attr && (attr->flags & FI_PEER))
		return -FI_ENOSYS;
	if (attr)
		mrrc_eq_attr_copy(&copy, attr);
	core_attr->flags |= FI_WRITE; /* mr.c writes events */
	if (core_attr->wait_obj == FI_WAIT_SET) {
		wait = attr->wait_set ? mrrc_fid_core(&attr->wait_set->fid) :
					NULL;
		if (!wait)
			return -FI_EINVAL;
		core_attr->wait_set = container_of(wait, struct fid_wait, fid);
	}

	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->fabric = fab;
	eq->eq.fid.fclass = FI_CLASS_EQ;
	eq->eq.fid.context = context;
	eq->eq.fid.ops = &mrrc_eq_fid_ops;
	eq->eq.ops = &mrrc_eq_ops;

	ret = fi_eq_open(fab->core, core_attr, &eq->core, &eq->eq.fid);
	if (ret) {
		free(eq);
		return ret;
	}
	mrrc_ref_get(&fab->ref);
	*eq_fid = &eq->eq;
	return 0;
}
