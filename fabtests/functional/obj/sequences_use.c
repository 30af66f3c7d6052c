/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of sequences.c on open objects: options, names, queues, address
 * vectors, connections, receives. See sequences_call.c.
 */
#include "obj/sequences.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define ONE_OF(list) ((list)[below(sizeof(list) / sizeof(*(list)))])

static char data[4096];
/* ---- options, names, controls ----------------------------------------- */

static void getopt_call(void)
{
	static const enum class classes[] = { EP, EP, SRX, PEP };
	struct obj *obj = pick(ONE_OF(classes));
	int level = once_in(8) ? 99 : FI_OPT_ENDPOINT;
	int opt = (int) below(once_in(8) ? 100 : 12);
	size_t len = once_in(4) ? below(16) : 8;
	uint64_t value[2] = { 0, 0 };
	int ret;

	if (!obj)
		return;
	say("getting", "%s level %d option %d", name(obj), level, opt);
	ret = fi_getopt(obj->fid, level, opt, value, &len);
	say("getopt", "%s level %d option %d = %d, %#" PRIx64 ", %zu",
	    name(obj), level, opt, ret, ret ? 0 : value[0], len);
}

static void setopt_call(void)
{
	static const enum class classes[] = { EP, EP, SRX, PEP };
	struct obj *obj = pick(ONE_OF(classes));
	int level = once_in(8) ? 99 : FI_OPT_ENDPOINT;
	int opt = (int) below(once_in(8) ? 100 : 12);
	size_t len = once_in(4) ? below(16) : 8;
	uint64_t value[2] = { 1ULL << below(20), 0 };
	int ret;

	if (!obj)
		return;
	say("setting", "%s level %d option %d", name(obj), level, opt);
	ret = fi_setopt(obj->fid, level, opt, value, len);
	say("setopt", "%s level %d option %d value %#" PRIx64 " len %zu = %d",
	    name(obj), level, opt, value[0], len, ret);
}

static void getname_call(void)
{
	struct obj *obj = pick(once_in(2) ? EP : PEP);
	size_t len = once_in(4) ? below(32) : 64;
	struct sockaddr_storage addr;
	bool peer = once_in(4);
	int ret;

	if (!obj || (peer && obj->class != EP))
		return;
	memset(&addr, 0, sizeof(addr));
	ret = peer ? fi_getpeer((struct fid_ep *) obj->fid, &addr, &len) :
		     fi_getname(obj->fid, &addr, &len);
	if (!async)
		say(peer ? "getpeer" : "getname", "%s = %d, len %zu family %d",
		    name(obj), ret, len, ret ? 0 : addr.ss_family);
}

static void setname_call(void)
{
	struct obj *obj = pick(once_in(2) ? EP : PEP);
	struct sockaddr_in in = {
		.sin_family = once_in(8) ? 99 : AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	size_t len = once_in(8) ? below(sizeof(in)) : sizeof(in);
	int ret;

	if (!obj)
		return;
	say("naming", "%s family %d len %zu", name(obj), in.sin_family, len);
	ret = fi_setname(obj->fid, &in, len);
	say("setname", "%s family %d len %zu = %d", name(obj), in.sin_family,
	    len, ret);
}

static void control_call(void)
{
	static const int commands[] = {
		FI_GETFIDFLAG, FI_SETFIDFLAG, FI_GETOPSFLAG, FI_SETOPSFLAG,
		FI_GETWAIT,    FI_ENABLE,     FI_BACKLOG,    FI_GET_RAW_MR,
		FI_MAP_RAW_MR, FI_UNMAP_KEY,  FI_QUEUE_WORK, FI_CANCEL_WORK,
		FI_FLUSH_WORK, FI_REFRESH,    FI_DUP,	     FI_GETWAITOBJ,
	};
	static const uint64_t flags[] = {
		FI_TRANSMIT,
		FI_RECV,
		FI_TRANSMIT | FI_RECV,
		0,
		FI_TRANSMIT | FI_COMPLETION,
		FI_RECV | FI_COMPLETION,
		FI_TRANSMIT | FI_DELIVERY_COMPLETE,
	};
	struct obj *obj = pick(ANY_CLASS);
	int command = once_in(8) ? (int) below(100) : ONE_OF(commands);
	uint64_t arg[32] = { ONE_OF(flags) };
	int ret;

	/* FI_ALIAS's argument names an object */
	if (!obj || command == FI_ALIAS || (obj->class != EP && half_open()))
		return;
	/* ofi_rxm: see enable() */
	if (command == FI_ENABLE && obj->enabled && ft_rdm())
		return;
	say("controlling", "%s command %d", name(obj), command);
	ret = fi_control(obj->fid, command, arg);
	say("control", "%s command %d flags %#" PRIx64 " = %d", name(obj),
	    command, command == FI_GETWAIT ? 0 : arg[0], ret);
	if (command == FI_ENABLE)
		obj->enabled |= !ret;
}

static void alias_call(void)
{
	static const uint64_t flags[] = {
		FI_TRANSMIT,
		FI_RECV,
		FI_TRANSMIT | FI_RECV,
		0,
		FI_TRANSMIT | FI_INJECT,
		FI_RECV | FI_COMPLETION,
	};
	struct obj *obj = pick(EP), *made;
	uint64_t flag = ONE_OF(flags);
	struct fid_ep *alias;
	int ret;

	if (!obj || !room())
		return;
	say("aliasing", "%s flags %#" PRIx64, name(obj), flag);
	ret = fi_ep_alias((struct fid_ep *) obj->fid, &alias, flag);
	say("alias", "%s flags %#" PRIx64 " = %d", name(obj), flag, ret);
	if (ret)
		return;
	made = opened(EP, &alias->fid);
	made->enabled = obj->enabled;
}

static void open_ops_call(void)
{
	struct obj *obj = pick(ANY_CLASS);
	void *ops;
	int ret;

	if (!obj)
		return;
	ret = fi_open_ops(obj->fid, "no such operations", below(2), &ops, NULL);
	say("open_ops", "%s = %d", name(obj), ret);
	ret = fi_set_ops(obj->fid, "no such operations", 0, data, NULL);
	say("set_ops", "%s = %d", name(obj), ret);
}

static void query_call(void)
{
	struct obj *obj = pick(DOMAIN);
	int type = (int) below(16), op = (int) below(20);
	uint64_t flags = once_in(2) ? 0 :
			 once_in(2) ? FI_FETCH_ATOMIC :
				      FI_COMPARE_ATOMIC;
	struct fi_atomic_attr attr = { 0, 0 };
	int ret;

	if (!obj)
		return;
	ret = fi_query_atomic((struct fid_domain *) obj->fid,
			      (enum fi_datatype) type, (enum fi_op) op, &attr,
			      flags);
	say("query_atomic", "%s %d %d flags %#" PRIx64 " = %d, %zu %zu",
	    name(obj), type, op, flags, ret, attr.count, attr.size);
}

static void trywait_call(void)
{
	struct obj *obj = pick(FABRIC), *queue = pick(once_in(2) ? CQ : EQ);
	struct fid *fids[1] = { queue ? queue->fid : NULL };
	bool forced = once_in(32);
	int ret;

	/* ofi_rxm needs endpoints of the queue */
	if (!obj || !queue || (ft_rxm() && !forced))
		return;
	ret = fi_trywait((struct fid_fabric *) obj->fid, fids, 1);
	if (!async)
		say("trywait", "%s %s = %d", name(obj), name(queue), ret);
}

/* ---- queues ----------------------------------------------------------- */

static void cq_call(void)
{
	struct obj *obj = pick(CQ);
	struct fi_cq_err_entry err = { 0 };
	char entries[8 * sizeof(struct fi_cq_tagged_entry)] = "";
	unsigned how = below(5), n = 1 + below(8);
	fi_addr_t from[8];
	struct fid_cq *cq;
	ssize_t ret;

	if (!obj || half_open())
		return;
	/* cores need a queue's wait object */
	if (!obj->waits && (how == 2 || how == 3))
		how = 0;
	cq = (struct fid_cq *) obj->fid;
	say("reading", "%s how %u", name(obj), how);
	switch (how) {
	case 0:
		ret = fi_cq_read(cq, entries, n);
		break;
	case 1:
		ret = fi_cq_readfrom(cq, entries, n, from);
		break;
	case 2:
		ret = fi_cq_sread(cq, entries, n, NULL, below(2));
		break;
	case 3:
		ret = fi_cq_signal(cq);
		break;
	default:
		ret = fi_cq_readerr(cq, &err, 0);
	}
	if (async)
		return;
	say("cq", "%s how %u count %u = %zd", name(obj), how, n, ret);
	if (ret > 0)
		say("cq.entry", "%s context %s err %d flags %#" PRIx64,
		    name(obj),
		    context_name(how > 3 ? err.op_context : *(void **) entries),
		    err.err, err.flags);
}

static void eq_call(void)
{
	struct obj *obj = pick(EQ), *of = pick(ANY_CLASS), *read;
	struct fi_eq_entry entry = {
		.fid = of ? of->fid : NULL,
		.context = random_context(),
		.data = below(1000),
	};
	/*
	 * number the object: another object may have a closed object's address
	 */
	const uint64_t first = of ? 1000 * (of - objs) : 0;
	struct fi_eq_err_entry err = { 0 };
	size_t len = once_in(8) ? below(sizeof(entry)) : sizeof(entry);
	uint64_t flags = once_in(4) ? FI_PEEK : 0;
	unsigned how = below(5);
	uint32_t event = 0;
	struct fid_eq *eq;
	ssize_t ret;

	if (!obj)
		return;
	entry.data += first;
	eq = (struct fid_eq *) obj->fid;
	say("eq.doing", "%s how %u of %s", name(obj), how, name(of));
	if (how < 2) {
		ret = fi_eq_write(eq, once_in(8) ? 99 : FI_NOTIFY, &entry, len,
				  once_in(8) ? 1 : 0);
		say("eq_write", "%s %s len %zu = %zd", name(obj), name(of), len,
		    ret);
		return;
	}
	memset(&entry, 0, sizeof(entry));
	if (how == 2)
		ret = fi_eq_sread(eq, &event, &entry, len, (int) below(2),
				  flags);
	else if (how == 3)
		ret = fi_eq_read(eq, &event, &entry, len, flags);
	else
		ret = fi_eq_readerr(eq, &err, flags);
	if (async)
		return;
	say("eq", "%s how %u flags %#" PRIx64 " = %zd, event %u", name(obj),
	    how, flags, ret, event);
	if (how == 4 && ret > 0)
		say("eq.err", "err %d prov_errno %d", err.err, err.prov_errno);
	if (how < 4 && ret == (ssize_t) sizeof(entry)) {
		read = obj_of(entry.fid);
		if (read && read - objs != (long) (entry.data / 1000))
			read = NULL;
		say("eq.entry", "%s context %s data %" PRIu64, name(read),
		    context_name(entry.context), entry.data);
	}
}

static void cntr_call(void)
{
	struct obj *obj = pick(CNTR);
	uint64_t value = below(100);
	unsigned how = below(7);
	struct fid_cntr *cntr;
	uint64_t ret;

	if (!obj || half_open())
		return;
	cntr = (struct fid_cntr *) obj->fid;
	say("counting", "%s how %u", name(obj), how);
	switch (how) {
	case 0:
		ret = fi_cntr_read(cntr);
		break;
	case 1:
		ret = fi_cntr_readerr(cntr);
		break;
	case 2:
		ret = (uint64_t) fi_cntr_add(cntr, value);
		break;
	case 3:
		ret = (uint64_t) fi_cntr_set(cntr, value);
		break;
	case 4:
		ret = (uint64_t) fi_cntr_adderr(cntr, value);
		break;
	case 5:
		ret = (uint64_t) fi_cntr_seterr(cntr, value);
		break;
	default:
		ret = (uint64_t) fi_cntr_wait(cntr, value, (int) below(3));
	}
	if (!async)
		say("cntr",
		    "%s how %u value %" PRIu64 " = %" PRId64 ", %" PRIu64
		    " %" PRIu64,
		    name(obj), how, value, (int64_t) ret, fi_cntr_read(cntr),
		    fi_cntr_readerr(cntr));
}

const struct random_call use_calls[] = {
	CALL(getopt_call, 4),	CALL(setopt_call, 2),  CALL(getname_call, 4),
	CALL(setname_call, 1),	CALL(control_call, 6), CALL(alias_call, 2),
	CALL(open_ops_call, 2), CALL(query_call, 2),   CALL(trywait_call, 2),
	CALL(cq_call, 8),	CALL(eq_call, 8),      CALL(cntr_call, 6),
	{ NULL, NULL, 0 },
};
