/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection management of endpoints and passive endpoints: forwarded.
 *
 * The application holds the core's own handles of connection requests,
 * multicast groups (struct fid_mc) and AV sets: no other object is bound to
 * these objects or looks into them.
 *
 * Threading: the core's.
 */
#include "config.h"
#include "fi/mrrc_fi.h"

#include "fi/obj/ep.h"
#include "fi/obj/obj.h"
#include "fi/obj/request.h"

#define HAS_CM(core, op) FI_CHECK_OP((core)->cm, struct fi_ops_cm, op)

static struct fid_ep *ep_core(struct fid *fid)
{
	return container_of(fid, struct mrrc_ep, ep.fid)->core;
}

static struct fid_pep *pep_core(struct fid *fid)
{
	return container_of(fid, struct mrrc_pep, pep.fid)->core;
}

static int cm_setname(struct fid *fid, void *addr, size_t addrlen)
{
	struct fid_ep *core = ep_core(fid);

	return HAS_CM(core, setname) ?
		       core->cm->setname(&core->fid, addr, addrlen) :
		       -FI_ENOSYS;
}

static int cm_getname(struct fid *fid, void *addr, size_t *addrlen)
{
	struct fid_ep *core = ep_core(fid);

	return HAS_CM(core, getname) ?
		       core->cm->getname(&core->fid, addr, addrlen) :
		       -FI_ENOSYS;
}

static int cm_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	struct fid_ep *core = mrrc_ep_of(ep)->core;

	return HAS_CM(core, getpeer) ? core->cm->getpeer(core, addr, addrlen) :
				       -FI_ENOSYS;
}

static int cm_connect(struct fid_ep *ep, const void *addr, const void *param,
		      size_t paramlen)
{
	struct fid_ep *core = mrrc_ep_of(ep)->core;
	int ret;

	ret = mrrc_ep_prepare(mrrc_ep_of(ep));
	if (ret)
		return ret;
	mrrc_ep_of(ep)->connecting = true;
	return HAS_CM(core, connect) ?
		       core->cm->connect(core, addr, param, paramlen) :
		       -FI_ENOSYS;
}

static int cm_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	struct fid_ep *core = mrrc_ep_of(ep)->core;
	int ret;

	ret = mrrc_ep_prepare(mrrc_ep_of(ep));
	if (ret)
		return ret;
	mrrc_ep_of(ep)->connecting = true;
	return HAS_CM(core, accept) ? core->cm->accept(core, param, paramlen) :
				      -FI_ENOSYS;
}

static int cm_shutdown(struct fid_ep *ep, uint64_t flags)
{
	struct fid_ep *core = mrrc_ep_of(ep)->core;

	return HAS_CM(core, shutdown) ? core->cm->shutdown(core, flags) :
					-FI_ENOSYS;
}

static int cm_join(struct fid_ep *ep, const void *addr, uint64_t flags,
		   struct fid_mc **mc, void *context)
{
	struct fid_ep *core = mrrc_ep_of(ep)->core;

	return HAS_CM(core, join) ?
		       core->cm->join(core, addr, flags, mc, context) :
		       -FI_ENOSYS;
}

static int cm_no_listen(struct fid_pep *pep)
{
	return -FI_ENOSYS;
}

static int cm_no_reject(struct fid_pep *pep, struct fid *handle,
			const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

struct fi_ops_cm mrrc_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = cm_setname,
	.getname = cm_getname,
	.getpeer = cm_getpeer,
	.connect = cm_connect,
	.listen = cm_no_listen,
	.accept = cm_accept,
	.reject = cm_no_reject,
	.shutdown = cm_shutdown,
	.join = cm_join,
};

static int pep_setname(struct fid *fid, void *addr, size_t addrlen)
{
	struct fid_pep *core = pep_core(fid);

	return HAS_CM(core, setname) ?
		       core->cm->setname(&core->fid, addr, addrlen) :
		       -FI_ENOSYS;
}

static int pep_getname(struct fid *fid, void *addr, size_t *addrlen)
{
	struct fid_pep *core = pep_core(fid);

	return HAS_CM(core, getname) ?
		       core->cm->getname(&core->fid, addr, addrlen) :
		       -FI_ENOSYS;
}

static int pep_listen(struct fid_pep *pep)
{
	struct fid_pep *core = pep_core(&pep->fid);

	return HAS_CM(core, listen) ? core->cm->listen(core) : -FI_ENOSYS;
}

static int pep_reject(struct fid_pep *pep, struct fid *handle,
		      const void *param, size_t paramlen)
{
	struct fid_pep *core = pep_core(&pep->fid);

	mrrc_request_take(container_of(pep, struct mrrc_pep, pep)->fabric,
			  handle);
	return HAS_CM(core, reject) ?
		       core->cm->reject(core, handle, param, paramlen) :
		       -FI_ENOSYS;
}

static int pep_no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return -FI_ENOSYS;
}

static int pep_no_connect(struct fid_ep *ep, const void *addr,
			  const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

static int pep_no_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

static int pep_no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return -FI_ENOSYS;
}

/* without join: callers of join test whether the table has it */
struct fi_ops_cm mrrc_pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = pep_setname,
	.getname = pep_getname,
	.getpeer = pep_no_getpeer,
	.connect = pep_no_connect,
	.listen = pep_listen,
	.accept = pep_no_accept,
	.reject = pep_reject,
	.shutdown = pep_no_shutdown,
};
