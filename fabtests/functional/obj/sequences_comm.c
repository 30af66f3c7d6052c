/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of sequences.c on address vectors, connections, receives and sends.
 * Sends and connections are begun but not awaited: later results are a race,
 * and not compared.
 */
#include "obj/sequences.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define ONE_OF(list) ((list)[below(sizeof(list) / sizeof(*(list)))])

static char data[4096];

/* ---- address vectors --------------------------------------------------- */

static void av_insert(void)
{
	struct obj *obj = pick(AV), *ep = pick(EP);
	struct sockaddr_in in[4] = { { .sin_family = AF_INET } };
	size_t count = once_in(8) ? 0 : 1, len = sizeof(in);
	uint64_t flags = once_in(8) ? 1ULL << below(60) : 0;
	bool garbage = once_in(4), no_result = once_in(8);
	fi_addr_t fi_addr = 0;
	int ret;

	if (!obj)
		return;
	in[0].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in[0].sin_port = htons(4711);
	if (garbage)
		memset(in, 0x5a, sizeof(in));
	else if (ep && fi_getname(ep->fid, in, &len))
		in[0].sin_family = AF_INET;
	say("inserting", "%s flags %#" PRIx64, name(obj), flags);
	ret = fi_av_insert((struct fid_av *) obj->fid, in, count,
			   no_result ? NULL : &fi_addr, flags, data);
	say("av_insert", "%s count %zu flags %#" PRIx64 " = %d, %" PRIu64,
	    name(obj), count, flags, ret, fi_addr);
	if (ret > 0)
		obj->inserted += (unsigned) ret;
}

static void av_insertsvc(void)
{
	struct obj *obj = pick(AV);
	bool sym = once_in(4);
	fi_addr_t fi_addr[4] = { 0 };
	int ret;

	if (!obj)
		return;
	ret = sym ? fi_av_insertsym((struct fid_av *) obj->fid, "127.0.0.1", 1,
				    "4711", 2, fi_addr, 0, NULL) :
		    fi_av_insertsvc((struct fid_av *) obj->fid, "127.0.0.1",
				    "4712", fi_addr, 0, NULL);
	say("av_insertsvc", "%s = %d, %" PRIu64, name(obj), ret, fi_addr[0]);
	if (ret > 0)
		obj->inserted += (unsigned) ret;
}

/* Looks up inserted addresses only: looking up others is not safe. */
static void av_lookup(void)
{
	struct obj *obj = pick(AV);
	size_t len = once_in(4) ? below(16) : 64, text_len = sizeof(data);
	fi_addr_t fi_addr = below(4);
	struct sockaddr_storage addr;
	int ret;

	if (!obj || fi_addr >= obj->inserted)
		return;
	memset(&addr, 0, sizeof(addr));
	say("looking", "%s %" PRIu64, name(obj), fi_addr);
	ret = fi_av_lookup((struct fid_av *) obj->fid, fi_addr, &addr, &len);
	say("av_lookup", "%s %" PRIu64 " = %d, len %zu family %d", name(obj),
	    fi_addr, ret, len, ret ? 0 : addr.ss_family);
	if (!ret && addr.ss_family == AF_INET)
		say("av_straddr", "%.20s",
		    fi_av_straddr((struct fid_av *) obj->fid, &addr, data,
				  &text_len));
}

static void av_remove(void)
{
	struct obj *obj = pick(AV);
	fi_addr_t fi_addr = below(4);
	int ret;

	if (!obj || fi_addr >= obj->inserted || !once_in(4))
		return;
	say("removing", "%s %" PRIu64, name(obj), fi_addr);
	ret = fi_av_remove((struct fid_av *) obj->fid, &fi_addr, 1,
			   once_in(8) ? 1 : 0);
	say("av_remove", "%s %" PRIu64 " = %d", name(obj), fi_addr, ret);
	/* the core decides in which order further addresses are inserted */
	obj->inserted = 0;
}

/* ---- connections ------------------------------------------------------- */

static void listen_call(void)
{
	struct obj *obj = pick(PEP);
	int ret;

	/* tcp needs the passive endpoint's event queue */
	if (!obj || (!obj->has_eq && !once_in(16)))
		return;
	say("listening", "%s", name(obj));
	ret = fi_listen((struct fid_pep *) obj->fid);
	say("listen", "%s = %d", name(obj), ret);
}

static void connect_call(void)
{
	struct obj *obj = pick(EP), *pep = pick(PEP);
	struct sockaddr_in in = { .sin_family = AF_INET };
	size_t len = sizeof(in), param = once_in(8) ? below(4096) : below(64);
	int ret;

	/* tcp needs the endpoint's event queue */
	if (!obj || !obj->has_eq || !once_in(8))
		return;
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in.sin_port = htons(9);
	if (pep)
		fi_getname(pep->fid, &in, &len);
	say("connecting", "%s", name(obj));
	ret = fi_connect((struct fid_ep *) obj->fid, &in, data, param);
	say(async ? "connect.late" : "connect", "%s param %zu = %d", name(obj),
	    param, ret);
	async |= !ret;
	/* fi_connect() enables an endpoint, too */
	obj->connect_failed |= !!ret;
}

static void shutdown_call(void)
{
	struct obj *obj = pick(EP);
	int ret;

	if (!obj)
		return;
	say("shutting", "%s", name(obj));
	ret = fi_shutdown((struct fid_ep *) obj->fid, below(2));
	if (!async)
		say("shutdown", "%s = %d", name(obj), ret);
}

/* ---- receives and sends ------------------------------------------------ */

static uint64_t random_flags(void)
{
	static const uint64_t flags[] = {
		0,
		0,
		FI_COMPLETION,
		FI_MORE,
		FI_MULTI_RECV,
		FI_PEEK,
		FI_CLAIM,
		FI_DISCARD,
		FI_PEEK | FI_DISCARD,
		FI_INJECT,
		FI_INJECT_COMPLETE,
		FI_DELIVERY_COMPLETE,
		FI_REMOTE_CQ_DATA,
	};

	return once_in(16) ? 1ULL << below(60) : ONE_OF(flags);
}

static void receive_call(void)
{
	struct obj *obj = pick(once_in(4) ? SRX : EP);
	size_t len = below(sizeof(data)), count = below(5);
	const struct iovec iov[] = {
		{ data, len },
		{ data, 8 },
		{ data + 8, 0 },
		{ data + 9, 3 },
	};
	struct fi_msg msg = { .msg_iov = iov, .iov_count = count };
	struct fi_msg_tagged tmsg = {
		.msg_iov = iov,
		.iov_count = count,
		.tag = below(4),
	};
	void *context = random_context();
	uint64_t flags = random_flags();
	unsigned how = below(6);
	bool forced = once_in(16);
	struct fid_ep *ep;
	ssize_t ret;

	if (!obj || (obj->class == EP && !obj->enabled && !forced))
		return;
	ep = (struct fid_ep *) obj->fid;
	if (how < 3 ? !ep->msg : !ep->tagged)
		return;
	msg.context = tmsg.context = context;
	say("receiving", "%s how %u count %zu flags %#" PRIx64, name(obj), how,
	    count, flags);
	switch (how) {
	case 0:
		ret = fi_recv(ep, data, len, NULL, FI_ADDR_UNSPEC, context);
		break;
	case 1:
		ret = fi_recvv(ep, iov, NULL, count, FI_ADDR_UNSPEC, context);
		break;
	case 2:
		msg.addr = FI_ADDR_UNSPEC;
		ret = fi_recvmsg(ep, &msg, flags);
		break;
	case 3:
		ret = fi_trecv(ep, data, len, NULL, FI_ADDR_UNSPEC, below(4), 0,
			       context);
		break;
	case 4:
		ret = fi_trecvv(ep, iov, NULL, count, FI_ADDR_UNSPEC, below(4),
				0, context);
		break;
	default:
		tmsg.addr = FI_ADDR_UNSPEC;
		ret = fi_trecvmsg(ep, &tmsg, flags);
	}
	if (!async)
		say("receive",
		    "%s how %u len %zu count %zu flags %#" PRIx64 " = %zd",
		    name(obj), how, len, count, flags, ret);
}

static void send_call(void)
{
	struct obj *obj = pick(EP), *av = pick(AV);
	size_t len = below(sizeof(data));
	const struct iovec iov[] = { { data, len }, { data, 8 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = below(3) };
	void *context = random_context();
	uint64_t flags = random_flags();
	unsigned how = below(7);
	struct fid_ep *ep;
	ssize_t ret;

	if (!obj || !obj->enabled || !once_in(4) ||
	    (ft_rdm() && (!av || !av->inserted)))
		return;
	ep = (struct fid_ep *) obj->fid;
	if (!ep->msg || !ep->rma || (how > 4 && !ep->tagged))
		return;
	msg.context = context;
	say("sending", "%s how %u len %zu flags %#" PRIx64, name(obj), how, len,
	    flags);
	switch (how) {
	case 0:
		ret = fi_send(ep, data, len, NULL, 0, context);
		break;
	case 1:
		ret = fi_sendmsg(ep, &msg, flags);
		break;
	case 2:
		ret = fi_inject(ep, data, below(64), 0);
		break;
	case 3:
		ret = fi_write(ep, data, len, NULL, 0, 0, 1, context);
		break;
	case 4:
		ret = fi_read(ep, data, len, NULL, 0, 0, 1, context);
		break;
	case 5:
		ret = fi_tsend(ep, data, len, NULL, 0, 1, context);
		break;
	default:
		ret = fi_tinject(ep, data, below(64), 0, 1);
	}
	if (!async)
		say("send", "%s how %u len %zu flags %#" PRIx64 " = %zd",
		    name(obj), how, len, flags, ret);
	async |= !ret;
}

static void cancel_call(void)
{
	static const enum class classes[] = { EP, EP, SRX };
	struct obj *obj = pick(ONE_OF(classes));
	void *context = random_context();
	bool forced = once_in(32);
	ssize_t ret;

	/* before an endpoint is enabled, ofi_rxm has no queues to look at */
	if (!obj || (obj->class == EP && !obj->enabled && !forced))
		return;
	say("cancelling", "%s", name(obj));
	ret = fi_cancel(obj->fid, context);
	if (!async)
		say("cancel", "%s = %zd", name(obj), ret);
}

const struct random_call comm_calls[] = {
	CALL(av_insert, 4),	CALL(av_insertsvc, 1),	CALL(av_lookup, 3),
	CALL(av_remove, 1),	CALL(listen_call, 1),	CALL(connect_call, 2),
	CALL(shutdown_call, 1), CALL(receive_call, 10), CALL(send_call, 3),
	CALL(cancel_call, 4),	{ NULL, NULL, 0 },
};
