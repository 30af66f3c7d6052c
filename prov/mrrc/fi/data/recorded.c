/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data calls where something is recorded: each notes who asks, and goes on to
 * the usual one, so that those know nothing of it and cost nothing more
 * where nothing is recorded.
 *
 * The call site is the return address of the application's call, or of the
 * library's in between: cheap, and good enough to tell calls apart.
 */
#include "config.h"
#include "fi/record/record.h"

/* The peer by its endpoint where that has one peer. */
static void record_call(enum mrrc_trace_op op, struct fid_ep *ep_fid,
			fi_addr_t addr, const void *site)
{
	const struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (ep->trace_ep)
		mrrc_record_by(op, MRRC_TRACE_EP, ep->trace_ep, site);
	else if (addr == FI_ADDR_UNSPEC)
		mrrc_record_by(op, MRRC_TRACE_NOBODY, 0, site);
	else
		mrrc_record_by(op, MRRC_TRACE_ADDR, addr, site);
}

#define NOTE(op, addr) \
	record_call(MRRC_TRACE_##op, ep, addr, __builtin_return_address(0))

/* ---- messages ---- */

static ssize_t record_msg_recv(struct fid_ep *ep, void *buf, size_t len,
			       void *desc, fi_addr_t src, void *context)
{
	NOTE(RECV, src);
	return mrrc_msg_ops.recv(ep, buf, len, desc, src, context);
}

static ssize_t record_msg_recvv(struct fid_ep *ep, const struct iovec *iov,
				void **desc, size_t count, fi_addr_t src,
				void *context)
{
	NOTE(RECV, src);
	return mrrc_msg_ops.recvv(ep, iov, desc, count, src, context);
}

static ssize_t record_msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
				  uint64_t flags)
{
	NOTE(RECV, msg->addr);
	return mrrc_msg_ops.recvmsg(ep, msg, flags);
}

static ssize_t record_msg_send(struct fid_ep *ep, const void *buf, size_t len,
			       void *desc, fi_addr_t dest, void *context)
{
	NOTE(SEND, dest);
	return mrrc_msg_ops.send(ep, buf, len, desc, dest, context);
}

static ssize_t record_msg_sendv(struct fid_ep *ep, const struct iovec *iov,
				void **desc, size_t count, fi_addr_t dest,
				void *context)
{
	NOTE(SEND, dest);
	return mrrc_msg_ops.sendv(ep, iov, desc, count, dest, context);
}

static ssize_t record_msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
				  uint64_t flags)
{
	NOTE(SEND, msg->addr);
	return mrrc_msg_ops.sendmsg(ep, msg, flags);
}

static ssize_t record_msg_senddata(struct fid_ep *ep, const void *buf,
				   size_t len, void *desc, uint64_t data,
				   fi_addr_t dest, void *context)
{
	NOTE(SEND, dest);
	return mrrc_msg_ops.senddata(ep, buf, len, desc, data, dest, context);
}

/* ---- tagged messages ---- */

static ssize_t record_tagged_recv(struct fid_ep *ep, void *buf, size_t len,
				  void *desc, fi_addr_t src, uint64_t tag,
				  uint64_t ignore, void *context)
{
	NOTE(TRECV, src);
	return mrrc_tagged_ops.recv(ep, buf, len, desc, src, tag, ignore,
				    context);
}

static ssize_t record_tagged_recvv(struct fid_ep *ep, const struct iovec *iov,
				   void **desc, size_t count, fi_addr_t src,
				   uint64_t tag, uint64_t ignore,
				   void *context)
{
	NOTE(TRECV, src);
	return mrrc_tagged_ops.recvv(ep, iov, desc, count, src, tag, ignore,
				     context);
}

static ssize_t record_tagged_recvmsg(struct fid_ep *ep,
				     const struct fi_msg_tagged *msg,
				     uint64_t flags)
{
	NOTE(TRECV, msg->addr);
	return mrrc_tagged_ops.recvmsg(ep, msg, flags);
}

static ssize_t record_tagged_send(struct fid_ep *ep, const void *buf,
				  size_t len, void *desc, fi_addr_t dest,
				  uint64_t tag, void *context)
{
	NOTE(TSEND, dest);
	return mrrc_tagged_ops.send(ep, buf, len, desc, dest, tag, context);
}

static ssize_t record_tagged_sendv(struct fid_ep *ep, const struct iovec *iov,
				   void **desc, size_t count, fi_addr_t dest,
				   uint64_t tag, void *context)
{
	NOTE(TSEND, dest);
	return mrrc_tagged_ops.sendv(ep, iov, desc, count, dest, tag, context);
}

static ssize_t record_tagged_sendmsg(struct fid_ep *ep,
				     const struct fi_msg_tagged *msg,
				     uint64_t flags)
{
	NOTE(TSEND, msg->addr);
	return mrrc_tagged_ops.sendmsg(ep, msg, flags);
}

static ssize_t record_tagged_senddata(struct fid_ep *ep, const void *buf,
				      size_t len, void *desc, uint64_t data,
				      fi_addr_t dest, uint64_t tag,
				      void *context)
{
	NOTE(TSEND, dest);
	return mrrc_tagged_ops.senddata(ep, buf, len, desc, data, dest, tag,
					context);
}

/* ---- remote memory access ---- */

static ssize_t record_rma_read(struct fid_ep *ep, void *buf, size_t len,
			       void *desc, fi_addr_t src, uint64_t addr,
			       uint64_t key, void *context)
{
	NOTE(READ, src);
	return mrrc_rma_ops.read(ep, buf, len, desc, src, addr, key, context);
}

static ssize_t record_rma_readv(struct fid_ep *ep, const struct iovec *iov,
				void **desc, size_t count, fi_addr_t src,
				uint64_t addr, uint64_t key, void *context)
{
	NOTE(READ, src);
	return mrrc_rma_ops.readv(ep, iov, desc, count, src, addr, key,
				  context);
}

static ssize_t record_rma_readmsg(struct fid_ep *ep,
				  const struct fi_msg_rma *msg,
				  uint64_t flags)
{
	NOTE(READ, msg->addr);
	return mrrc_rma_ops.readmsg(ep, msg, flags);
}

static ssize_t record_rma_write(struct fid_ep *ep, const void *buf, size_t len,
				void *desc, fi_addr_t dest, uint64_t addr,
				uint64_t key, void *context)
{
	NOTE(WRITE, dest);
	return mrrc_rma_ops.write(ep, buf, len, desc, dest, addr, key,
				  context);
}

static ssize_t record_rma_writev(struct fid_ep *ep, const struct iovec *iov,
				 void **desc, size_t count, fi_addr_t dest,
				 uint64_t addr, uint64_t key, void *context)
{
	NOTE(WRITE, dest);
	return mrrc_rma_ops.writev(ep, iov, desc, count, dest, addr, key,
				   context);
}

static ssize_t record_rma_writemsg(struct fid_ep *ep,
				   const struct fi_msg_rma *msg,
				   uint64_t flags)
{
	NOTE(WRITE, msg->addr);
	return mrrc_rma_ops.writemsg(ep, msg, flags);
}

static ssize_t record_rma_writedata(struct fid_ep *ep, const void *buf,
				    size_t len, void *desc, uint64_t data,
				    fi_addr_t dest, uint64_t addr,
				    uint64_t key, void *context)
{
	NOTE(WRITE, dest);
	return mrrc_rma_ops.writedata(ep, buf, len, desc, data, dest, addr,
				      key, context);
}

/* ---- atomic operations ---- */

static ssize_t record_atomic_write(struct fid_ep *ep, const void *buf,
				   size_t count, void *desc, fi_addr_t dest,
				   uint64_t addr, uint64_t key,
				   enum fi_datatype datatype, enum fi_op op,
				   void *context)
{
	NOTE(ATOMIC, dest);
	return mrrc_atomic_ops.write(ep, buf, count, desc, dest, addr, key,
				     datatype, op, context);
}

static ssize_t record_atomic_writev(struct fid_ep *ep,
				    const struct fi_ioc *iov, void **desc,
				    size_t count, fi_addr_t dest,
				    uint64_t addr, uint64_t key,
				    enum fi_datatype datatype, enum fi_op op,
				    void *context)
{
	NOTE(ATOMIC, dest);
	return mrrc_atomic_ops.writev(ep, iov, desc, count, dest, addr, key,
				      datatype, op, context);
}

static ssize_t record_atomic_writemsg(struct fid_ep *ep,
				      const struct fi_msg_atomic *msg,
				      uint64_t flags)
{
	NOTE(ATOMIC, msg->addr);
	return mrrc_atomic_ops.writemsg(ep, msg, flags);
}

static ssize_t record_atomic_readwrite(struct fid_ep *ep, const void *buf,
				       size_t count, void *desc, void *result,
				       void *result_desc, fi_addr_t dest,
				       uint64_t addr, uint64_t key,
				       enum fi_datatype datatype,
				       enum fi_op op, void *context)
{
	NOTE(ATOMIC, dest);
	return mrrc_atomic_ops.readwrite(ep, buf, count, desc, result,
					 result_desc, dest, addr, key,
					 datatype, op, context);
}

static ssize_t record_atomic_readwritev(struct fid_ep *ep,
					const struct fi_ioc *iov, void **desc,
					size_t count, struct fi_ioc *result,
					void **result_desc, size_t results,
					fi_addr_t dest, uint64_t addr,
					uint64_t key,
					enum fi_datatype datatype,
					enum fi_op op, void *context)
{
	NOTE(ATOMIC, dest);
	return mrrc_atomic_ops.readwritev(ep, iov, desc, count, result,
					  result_desc, results, dest, addr,
					  key, datatype, op, context);
}

static ssize_t record_atomic_readwritemsg(struct fid_ep *ep,
					  const struct fi_msg_atomic *msg,
					  struct fi_ioc *result,
					  void **result_desc, size_t results,
					  uint64_t flags)
{
	NOTE(ATOMIC, msg->addr);
	return mrrc_atomic_ops.readwritemsg(ep, msg, result, result_desc,
					    results, flags);
}

static ssize_t record_atomic_compwrite(struct fid_ep *ep, const void *buf,
				       size_t count, void *desc,
				       const void *compare, void *compare_desc,
				       void *result, void *result_desc,
				       fi_addr_t dest, uint64_t addr,
				       uint64_t key, enum fi_datatype datatype,
				       enum fi_op op, void *context)
{
	NOTE(ATOMIC, dest);
	return mrrc_atomic_ops.compwrite(ep, buf, count, desc, compare,
					 compare_desc, result, result_desc,
					 dest, addr, key, datatype, op,
					 context);
}

static ssize_t record_atomic_compwritev(struct fid_ep *ep,
					const struct fi_ioc *iov, void **desc,
					size_t count,
					const struct fi_ioc *compare,
					void **compare_desc, size_t compares,
					struct fi_ioc *result,
					void **result_desc, size_t results,
					fi_addr_t dest, uint64_t addr,
					uint64_t key,
					enum fi_datatype datatype,
					enum fi_op op, void *context)
{
	NOTE(ATOMIC, dest);
	return mrrc_atomic_ops.compwritev(ep, iov, desc, count, compare,
					  compare_desc, compares, result,
					  result_desc, results, dest, addr,
					  key, datatype, op, context);
}

static ssize_t record_atomic_compwritemsg(struct fid_ep *ep,
					  const struct fi_msg_atomic *msg,
					  const struct fi_ioc *compare,
					  void **compare_desc, size_t compares,
					  struct fi_ioc *result,
					  void **result_desc, size_t results,
					  uint64_t flags)
{
	NOTE(ATOMIC, msg->addr);
	return mrrc_atomic_ops.compwritemsg(ep, msg, compare, compare_desc,
					    compares, result, result_desc,
					    results, flags);
}

/* ---- tables ---- */

struct fi_ops_msg mrrc_recorded_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = record_msg_recv,
	.recvv = record_msg_recvv,
	.recvmsg = record_msg_recvmsg,
	.send = record_msg_send,
	.sendv = record_msg_sendv,
	.sendmsg = record_msg_sendmsg,
	.senddata = record_msg_senddata,
};

struct fi_ops_tagged mrrc_recorded_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = record_tagged_recv,
	.recvv = record_tagged_recvv,
	.recvmsg = record_tagged_recvmsg,
	.send = record_tagged_send,
	.sendv = record_tagged_sendv,
	.sendmsg = record_tagged_sendmsg,
	.senddata = record_tagged_senddata,
};

struct fi_ops_rma mrrc_recorded_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = record_rma_read,
	.readv = record_rma_readv,
	.readmsg = record_rma_readmsg,
	.write = record_rma_write,
	.writev = record_rma_writev,
	.writemsg = record_rma_writemsg,
	.writedata = record_rma_writedata,
};

struct fi_ops_atomic mrrc_recorded_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = record_atomic_write,
	.writev = record_atomic_writev,
	.writemsg = record_atomic_writemsg,
	.readwrite = record_atomic_readwrite,
	.readwritev = record_atomic_readwritev,
	.readwritemsg = record_atomic_readwritemsg,
	.compwrite = record_atomic_compwrite,
	.compwritev = record_atomic_compwritev,
	.compwritemsg = record_atomic_compwritemsg,
};

/* What needs no registration stays as it is. */
void mrrc_recorded_init(void)
{
	mrrc_recorded_msg_ops.inject = mrrc_msg_ops.inject;
	mrrc_recorded_msg_ops.injectdata = mrrc_msg_ops.injectdata;
	mrrc_recorded_tagged_ops.inject = mrrc_tagged_ops.inject;
	mrrc_recorded_tagged_ops.injectdata = mrrc_tagged_ops.injectdata;
	mrrc_recorded_rma_ops.inject = mrrc_rma_ops.inject;
	mrrc_recorded_rma_ops.injectdata = mrrc_rma_ops.injectdata;
	mrrc_recorded_atomic_ops.inject = mrrc_atomic_ops.inject;
	mrrc_recorded_atomic_ops.writevalid = mrrc_atomic_ops.writevalid;
	mrrc_recorded_atomic_ops.readwritevalid = mrrc_atomic_ops.readwritevalid;
	mrrc_recorded_atomic_ops.compwritevalid = mrrc_atomic_ops.compwritevalid;
}
