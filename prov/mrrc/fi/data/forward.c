/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data calls of endpoints that resolve nothing: each goes on to the core's
 * endpoint and adds three instructions, a tail call. ep.c chooses between
 * these tables and those of msg.c, rma.c, tagged.c and atomic.c when it opens
 * an endpoint, so no call pays for the choice.
 *
 * The core's tables are read in each call, not copied: a core may change them
 * when an endpoint is bound, enabled or set up.
 *
 * Threading: the core's.
 */
#include "config.h"
#include "fi/mrrc_fi.h"

/* ret fwd_<group>_<op>(params): the core's, with args behind the endpoint */
#define FWD(ret, group, op, params, args) \
static ret fwd_##group##_##op params \
{ \
	struct fid_ep *core = mrrc_ep_of(ep)->core; \
\
	return core->group->op args; \
}

/* fi_msg */

FWD(ssize_t, msg, recv,
    (struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
     void *context),
    (core, buf, len, desc, src_addr, context))

FWD(ssize_t, msg, recvv,
    (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t src_addr, void *context),
    (core, iov, desc, count, src_addr, context))

FWD(ssize_t, msg, recvmsg,
    (struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags),
    (core, msg, flags))

FWD(ssize_t, msg, send,
    (struct fid_ep *ep, const void *buf, size_t len, void *desc,
     fi_addr_t dest_addr, void *context),
    (core, buf, len, desc, dest_addr, context))

FWD(ssize_t, msg, sendv,
    (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t dest_addr, void *context),
    (core, iov, desc, count, dest_addr, context))

FWD(ssize_t, msg, sendmsg,
    (struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags),
    (core, msg, flags))

FWD(ssize_t, msg, inject,
    (struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr),
    (core, buf, len, dest_addr))

FWD(ssize_t, msg, senddata,
    (struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
     fi_addr_t dest_addr, void *context),
    (core, buf, len, desc, data, dest_addr, context))

FWD(ssize_t, msg, injectdata,
    (struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
     fi_addr_t dest_addr),
    (core, buf, len, data, dest_addr))

/* fi_rma */

FWD(ssize_t, rma, read,
    (struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
     uint64_t addr, uint64_t key, void *context),
    (core, buf, len, desc, src_addr, addr, key, context))

FWD(ssize_t, rma, readv,
    (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context),
    (core, iov, desc, count, src_addr, addr, key, context))

FWD(ssize_t, rma, readmsg,
    (struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags),
    (core, msg, flags))

FWD(ssize_t, rma, write,
    (struct fid_ep *ep, const void *buf, size_t len, void *desc,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context),
    (core, buf, len, desc, dest_addr, addr, key, context))

FWD(ssize_t, rma, writev,
    (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context),
    (core, iov, desc, count, dest_addr, addr, key, context))

FWD(ssize_t, rma, writemsg,
    (struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags),
    (core, msg, flags))

FWD(ssize_t, rma, inject,
    (struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr,
     uint64_t addr, uint64_t key),
    (core, buf, len, dest_addr, addr, key))

FWD(ssize_t, rma, writedata,
    (struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context),
    (core, buf, len, desc, data, dest_addr, addr, key, context))

FWD(ssize_t, rma, injectdata,
    (struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key),
    (core, buf, len, data, dest_addr, addr, key))

/* fi_tagged */

FWD(ssize_t, tagged, recv,
    (struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
     uint64_t tag, uint64_t ignore, void *context),
    (core, buf, len, desc, src_addr, tag, ignore, context))

FWD(ssize_t, tagged, recvv,
    (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context),
    (core, iov, desc, count, src_addr, tag, ignore, context))

FWD(ssize_t, tagged, recvmsg,
    (struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags),
    (core, msg, flags))

FWD(ssize_t, tagged, send,
    (struct fid_ep *ep, const void *buf, size_t len, void *desc,
     fi_addr_t dest_addr, uint64_t tag, void *context),
    (core, buf, len, desc, dest_addr, tag, context))

FWD(ssize_t, tagged, sendv,
    (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t dest_addr, uint64_t tag, void *context),
    (core, iov, desc, count, dest_addr, tag, context))

FWD(ssize_t, tagged, sendmsg,
    (struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags),
    (core, msg, flags))

FWD(ssize_t, tagged, inject,
    (struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr,
     uint64_t tag),
    (core, buf, len, dest_addr, tag))

FWD(ssize_t, tagged, senddata,
    (struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
     fi_addr_t dest_addr, uint64_t tag, void *context),
    (core, buf, len, desc, data, dest_addr, tag, context))

FWD(ssize_t, tagged, injectdata,
    (struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
     fi_addr_t dest_addr, uint64_t tag),
    (core, buf, len, data, dest_addr, tag))

/* fi_atomic */

FWD(ssize_t, atomic, write,
    (struct fid_ep *ep, const void *buf, size_t count, void *desc,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key,
     enum fi_datatype datatype, enum fi_op op, void *context),
    (core, buf, count, desc, dest_addr, addr, key, datatype, op, context))

FWD(ssize_t, atomic, writev,
    (struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key,
     enum fi_datatype datatype, enum fi_op op, void *context),
    (core, iov, desc, count, dest_addr, addr, key, datatype, op, context))

FWD(ssize_t, atomic, writemsg,
    (struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags),
    (core, msg, flags))

FWD(ssize_t, atomic, inject,
    (struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest_addr,
     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op),
    (core, buf, count, dest_addr, addr, key, datatype, op))

FWD(ssize_t, atomic, readwrite,
    (struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t dest_addr, uint64_t addr,
     uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context),
    (core, buf, count, desc, result, result_desc, dest_addr, addr, key,
     datatype, op, context))

FWD(ssize_t, atomic, readwritev,
    (struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
     struct fi_ioc *resultv, void **result_desc, size_t result_count,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key,
     enum fi_datatype datatype, enum fi_op op, void *context),
    (core, iov, desc, count, resultv, result_desc, result_count, dest_addr,
     addr, key, datatype, op, context))

FWD(ssize_t, atomic, readwritemsg,
    (struct fid_ep *ep, const struct fi_msg_atomic *msg,
     struct fi_ioc *resultv, void **result_desc, size_t result_count,
     uint64_t flags),
    (core, msg, resultv, result_desc, result_count, flags))

FWD(ssize_t, atomic, compwrite,
    (struct fid_ep *ep, const void *buf, size_t count, void *desc,
     const void *compare, void *compare_desc, void *result, void *result_desc,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key,
     enum fi_datatype datatype, enum fi_op op, void *context),
    (core, buf, count, desc, compare, compare_desc, result, result_desc,
     dest_addr, addr, key, datatype, op, context))

FWD(ssize_t, atomic, compwritev,
    (struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
     const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
     struct fi_ioc *resultv, void **result_desc, size_t result_count,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key,
     enum fi_datatype datatype, enum fi_op op, void *context),
    (core, iov, desc, count, comparev, compare_desc, compare_count, resultv,
     result_desc, result_count, dest_addr, addr, key, datatype, op, context))

FWD(ssize_t, atomic, compwritemsg,
    (struct fid_ep *ep, const struct fi_msg_atomic *msg,
     const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
     struct fi_ioc *resultv, void **result_desc, size_t result_count,
     uint64_t flags),
    (core, msg, comparev, compare_desc, compare_count, resultv, result_desc,
     result_count, flags))

FWD(int, atomic, writevalid,
    (struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
     size_t *count),
    (core, datatype, op, count))

FWD(int, atomic, readwritevalid,
    (struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
     size_t *count),
    (core, datatype, op, count))

FWD(int, atomic, compwritevalid,
    (struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
     size_t *count),
    (core, datatype, op, count))

/* fi_collective */

FWD(ssize_t, collective, barrier,
    (struct fid_ep *ep, fi_addr_t coll_addr, void *context),
    (core, coll_addr, context))

FWD(ssize_t, collective, broadcast,
    (struct fid_ep *ep, void *buf, size_t count, void *desc,
     fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype,
     uint64_t flags, void *context),
    (core, buf, count, desc, coll_addr, root_addr, datatype, flags, context))

FWD(ssize_t, collective, alltoall,
    (struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr,
     enum fi_datatype datatype, uint64_t flags, void *context),
    (core, buf, count, desc, result, result_desc, coll_addr, datatype, flags,
     context))

FWD(ssize_t, collective, allreduce,
    (struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr,
     enum fi_datatype datatype, enum fi_op op, uint64_t flags, void *context),
    (core, buf, count, desc, result, result_desc, coll_addr, datatype, op,
     flags, context))

FWD(ssize_t, collective, allgather,
    (struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr,
     enum fi_datatype datatype, uint64_t flags, void *context),
    (core, buf, count, desc, result, result_desc, coll_addr, datatype, flags,
     context))

FWD(ssize_t, collective, reduce_scatter,
    (struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr,
     enum fi_datatype datatype, enum fi_op op, uint64_t flags, void *context),
    (core, buf, count, desc, result, result_desc, coll_addr, datatype, op,
     flags, context))

FWD(ssize_t, collective, reduce,
    (struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr,
     enum fi_datatype datatype, enum fi_op op, uint64_t flags, void *context),
    (core, buf, count, desc, result, result_desc, coll_addr, root_addr,
     datatype, op, flags, context))

FWD(ssize_t, collective, scatter,
    (struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr,
     enum fi_datatype datatype, uint64_t flags, void *context),
    (core, buf, count, desc, result, result_desc, coll_addr, root_addr,
     datatype, flags, context))

FWD(ssize_t, collective, gather,
    (struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr,
     enum fi_datatype datatype, uint64_t flags, void *context),
    (core, buf, count, desc, result, result_desc, coll_addr, root_addr,
     datatype, flags, context))

FWD(ssize_t, collective, msg,
    (struct fid_ep *ep, const struct fi_msg_collective *msg,
     struct fi_ioc *resultv, void **result_desc, size_t result_count,
     uint64_t flags),
    (core, msg, resultv, result_desc, result_count, flags))

/* newer than the rest: the core's table may end before it */
static ssize_t fwd_collective_barrier2(struct fid_ep *ep, fi_addr_t coll_addr,
				       uint64_t flags, void *context)
{
	struct fid_ep *core = mrrc_ep_of(ep)->core;

	if (!FI_CHECK_OP(core->collective, struct fi_ops_collective, barrier2))
		return -FI_ENOSYS;
	return core->collective->barrier2(core, coll_addr, flags, context);
}

struct fi_ops_msg mrrc_msg_fwd_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = fwd_msg_recv,
	.recvv = fwd_msg_recvv,
	.recvmsg = fwd_msg_recvmsg,
	.send = fwd_msg_send,
	.sendv = fwd_msg_sendv,
	.sendmsg = fwd_msg_sendmsg,
	.inject = fwd_msg_inject,
	.senddata = fwd_msg_senddata,
	.injectdata = fwd_msg_injectdata,
};

struct fi_ops_rma mrrc_rma_fwd_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = fwd_rma_read,
	.readv = fwd_rma_readv,
	.readmsg = fwd_rma_readmsg,
	.write = fwd_rma_write,
	.writev = fwd_rma_writev,
	.writemsg = fwd_rma_writemsg,
	.inject = fwd_rma_inject,
	.writedata = fwd_rma_writedata,
	.injectdata = fwd_rma_injectdata,
};

struct fi_ops_tagged mrrc_tagged_fwd_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = fwd_tagged_recv,
	.recvv = fwd_tagged_recvv,
	.recvmsg = fwd_tagged_recvmsg,
	.send = fwd_tagged_send,
	.sendv = fwd_tagged_sendv,
	.sendmsg = fwd_tagged_sendmsg,
	.inject = fwd_tagged_inject,
	.senddata = fwd_tagged_senddata,
	.injectdata = fwd_tagged_injectdata,
};

struct fi_ops_atomic mrrc_atomic_fwd_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = fwd_atomic_write,
	.writev = fwd_atomic_writev,
	.writemsg = fwd_atomic_writemsg,
	.inject = fwd_atomic_inject,
	.readwrite = fwd_atomic_readwrite,
	.readwritev = fwd_atomic_readwritev,
	.readwritemsg = fwd_atomic_readwritemsg,
	.compwrite = fwd_atomic_compwrite,
	.compwritev = fwd_atomic_compwritev,
	.compwritemsg = fwd_atomic_compwritemsg,
	.writevalid = fwd_atomic_writevalid,
	.readwritevalid = fwd_atomic_readwritevalid,
	.compwritevalid = fwd_atomic_compwritevalid,
};

struct fi_ops_collective mrrc_collective_fwd_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = fwd_collective_barrier,
	.broadcast = fwd_collective_broadcast,
	.alltoall = fwd_collective_alltoall,
	.allreduce = fwd_collective_allreduce,
	.allgather = fwd_collective_allgather,
	.reduce_scatter = fwd_collective_reduce_scatter,
	.reduce = fwd_collective_reduce,
	.scatter = fwd_collective_scatter,
	.gather = fwd_collective_gather,
	.msg = fwd_collective_msg,
	.barrier2 = fwd_collective_barrier2,
};
