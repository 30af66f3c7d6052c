/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors: forwarded to the core's. The application gets the core's own
 * AV sets, since only the calls of AV sets and fi_join() take an AV set.
 *
 * Threading: the core's.
 */
#include "config.h"
#include "fi/mrrc_fi.h"

#include "fi/fid.h"
#include "fi/obj/obj.h"

static struct fid_av *av_core(struct fid_av *av)
{
	return container_of(av, struct mrrc_av, av)->core;
}

static int av_insert(struct fid_av *av, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return fi_av_insert(av_core(av), addr, count, fi_addr, flags, context);
}

static int av_insertsvc(struct fid_av *av, const char *node,
			const char *service, fi_addr_t *fi_addr, uint64_t flags,
			void *context)
{
	return fi_av_insertsvc(av_core(av), node, service, fi_addr, flags,
			       context);
}

static int av_insertsym(struct fid_av *av, const char *node, size_t nodecnt,
			const char *service, size_t svccnt, fi_addr_t *fi_addr,
			uint64_t flags, void *context)
{
	return fi_av_insertsym(av_core(av), node, nodecnt, service, svccnt,
			       fi_addr, flags, context);
}

static int av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count,
		     uint64_t flags)
{
	return fi_av_remove(av_core(av), fi_addr, count, flags);
}

static int av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr,
		     size_t *addrlen)
{
	return fi_av_lookup(av_core(av), fi_addr, addr, addrlen);
}

static const char *av_straddr(struct fid_av *av, const void *addr, char *buf,
			      size_t *len)
{
	return fi_av_straddr(av_core(av), addr, buf, len);
}

static int av_set(struct fid_av *av, struct fi_av_set_attr *attr,
		  struct fid_av_set **set, void *context)
{
	return fi_av_set(av_core(av), attr, set, context);
}

#if FI_VERSION_GE(MRRC_FI_HEADERS, FI_VERSION(1, 20))

static int av_insert_auth_key(struct fid_av *av, const void *auth_key,
			      size_t auth_key_size, fi_addr_t *fi_addr,
			      uint64_t flags)
{
	return fi_av_insert_auth_key(av_core(av), auth_key, auth_key_size,
				     fi_addr, flags);
}

static int av_lookup_auth_key(struct fid_av *av, fi_addr_t fi_addr,
			      void *auth_key, size_t *auth_key_size)
{
	return fi_av_lookup_auth_key(av_core(av), fi_addr, auth_key,
				     auth_key_size);
}

static int av_set_user_id(struct fid_av *av, fi_addr_t fi_addr,
			  fi_addr_t user_id, uint64_t flags)
{
	return fi_av_set_user_id(av_core(av), fi_addr, user_id, flags);
}

#endif

static int av_close(struct fid *fid)
{
	struct mrrc_av *av = container_of(fid, struct mrrc_av, av.fid);
	int ret;

	ret = fi_close(&av->core->fid);
	if (ret)
		return ret;
	mrrc_fid_untrack(av->domain->fabric, &av->track);
	mrrc_ref_put(&av->domain->ref);
	free(av);
	return 0;
}

struct fi_ops mrrc_av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = mrrc_fid_bind,
	.control = mrrc_fid_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

struct fi_ops_av mrrc_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = av_set,
#if FI_VERSION_GE(MRRC_FI_HEADERS, FI_VERSION(1, 20))
	.insert_auth_key = av_insert_auth_key,
	.lookup_auth_key = av_lookup_auth_key,
	.set_user_id = av_set_user_id,
#endif
};

int mrrc_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		 struct fid_av **av_fid, void *context)
{
	struct mrrc_domain *dom = mrrc_domain_of(domain);
	struct mrrc_av *av;
	int ret;

	/* the context of FI_PEER has objects of other providers */
	if (attr && (attr->flags & FI_PEER))
		return -FI_ENOSYS;

	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->domain = dom;
	av->av.fid.fclass = FI_CLASS_AV;
	av->av.fid.context = context;
	av->av.fid.ops = &mrrc_av_fid_ops;
	av->av.ops = &mrrc_av_ops;

	ret = fi_av_open(dom->core, attr, &av->core, &av->av.fid);
	if (ret) {
		free(av);
		return ret;
	}
	mrrc_fid_track(dom->fabric, &av->track, &av->core->fid, &av->av.fid);
	mrrc_ref_get(&dom->ref);
	*av_fid = &av->av;
	return 0;
}
