/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics, on endpoints that resolve null descriptors, in the way of msg.c. An
 * operation has up to three local buffers: operand, compare and result. Atomic
 * operations are never split.
 */
#include "config.h"
#include "fi/data/resolve.h"

#include "fi/data/tables.h"

/* The local buffers besides the operand. */
struct mrrc_atomic_bufs {
	const struct fi_ioc *compare;
	void *const *compare_desc;
	size_t compare_cnt;
	const struct fi_ioc *result;
	void *const *result_desc;
	size_t result_cnt;
};

/* Descriptors of one atomic operation, as the core takes them. */
struct mrrc_atomic_desc {
	void *operand[MRRC_IOV_MAX];
	void *compare[MRRC_IOV_MAX];
	void *result[MRRC_IOV_MAX];
};

/* FI_ATOMIC_READ has no operand: its buffer is ignored, NULL as a rule */
static bool mrrc_has_operand(const struct fi_msg_atomic *msg)
{
	return msg->op != FI_ATOMIC_READ;
}

static int mrrc_atomic_resolve(struct mrrc_op *op,
			       const struct fi_msg_atomic *msg,
			       const struct mrrc_atomic_bufs *bufs,
			       struct mrrc_atomic_desc *desc)
{
	int ret = 0;

	if (mrrc_has_operand(msg))
		ret = mrrc_resolve_ioc(op, msg->msg_iov, msg->desc,
				       msg->iov_count, msg->datatype, MRRC_RO,
				       desc->operand);
	else
		memset(desc->operand, 0,
		       msg->iov_count * sizeof(*desc->operand));
	if (!ret)
		ret = mrrc_resolve_ioc(op, bufs->compare, bufs->compare_desc,
				       bufs->compare_cnt, msg->datatype,
				       MRRC_RO, desc->compare);
	if (!ret)
		ret = mrrc_resolve_ioc(op, bufs->result, bufs->result_desc,
				       bufs->result_cnt, msg->datatype, MRRC_RW,
				       desc->result);
	return ret;
}

static bool mrrc_atomic_given(const struct mrrc_ep *ep,
			      const struct fi_msg_atomic *msg,
			      const struct mrrc_atomic_bufs *bufs)
{
	return (mrrc_given_iov(&ep->tx, msg->desc, msg->iov_count,
			       msg->context) ||
		!mrrc_has_operand(msg)) &&
	       mrrc_given_iov(&ep->tx, bufs->compare_desc, bufs->compare_cnt,
			      msg->context) &&
	       mrrc_given_iov(&ep->tx, bufs->result_desc, bufs->result_cnt,
			      msg->context);
}

/*
 * Makes one of the core's three message calls, depending on which buffers
 * exist.
 */
static ssize_t mrrc_atomic_call(struct mrrc_ep *ep,
				const struct fi_msg_atomic *msg,
				const struct mrrc_atomic_bufs *bufs,
				void **compare_desc, void **result_desc,
				uint64_t flags)
{
	struct fi_ioc *result = (struct fi_ioc *) bufs->result;

	if (bufs->compare)
		return fi_compare_atomicmsg(ep->core, msg, bufs->compare,
					    compare_desc, bufs->compare_cnt,
					    result, result_desc,
					    bufs->result_cnt, flags);
	if (bufs->result)
		return fi_fetch_atomicmsg(ep->core, msg, result, result_desc,
					  bufs->result_cnt, flags);
	return fi_atomicmsg(ep->core, msg, flags);
}

static ssize_t mrrc_post_atomic(struct mrrc_ep *ep,
				const struct fi_msg_atomic *msg,
				const struct mrrc_atomic_bufs *bufs,
				uint64_t flags)
{
	struct fi_msg_atomic core_msg = *msg;
	struct mrrc_atomic_desc desc;
	struct mrrc_op *op;
	ssize_t ret;

	if (mrrc_atomic_given(ep, msg, bufs))
		return mrrc_atomic_call(ep, msg, bufs,
					(void **) bufs->compare_desc,
					(void **) bufs->result_desc, flags);
	if (msg->iov_count > ep->tx.iov_limit ||
	    bufs->compare_cnt > ep->tx.iov_limit ||
	    bufs->result_cnt > ep->tx.iov_limit)
		return -FI_EINVAL;

	ret = mrrc_op_begin(ep, &ep->tx, flags, msg->context, &op);
	if (ret)
		return ret;
	ret = mrrc_atomic_resolve(op, msg, bufs, &desc);
	if (ret)
		return mrrc_op_posted(op, ret);
	core_msg.desc = desc.operand;
	core_msg.context = op;
	return MRRC_OP_POST(op, mrrc_atomic_call(ep, &core_msg, bufs,
						 desc.compare, desc.result,
						 flags | FI_COMPLETION));
}

static size_t mrrc_ioc_count(const struct fi_ioc *ioc, size_t n)
{
	size_t count = 0;

	while (n--)
		count += ioc[n].count;
	return count;
}

static ssize_t mrrc_atomic_writev(struct fid_ep *ep_fid,
				  const struct fi_ioc *iov, void **desc,
				  size_t count, fi_addr_t dest_addr,
				  uint64_t addr, uint64_t key,
				  enum fi_datatype datatype, enum fi_op op,
				  void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	return mrrc_post_atomic(
		ep,
		&(struct fi_msg_atomic){
			.msg_iov = iov,
			.desc = desc,
			.iov_count = count,
			.addr = dest_addr,
			.rma_iov =
				&(struct fi_rma_ioc){
					addr, mrrc_ioc_count(iov, count), key },
			.rma_iov_count = 1,
			.datatype = datatype,
			.op = op,
			.context = context,
		},
		&(struct mrrc_atomic_bufs){ 0 }, ep->tx.op_flags);
}

static ssize_t mrrc_atomic_write(struct fid_ep *ep_fid, const void *buf,
				 size_t count, void *desc, fi_addr_t dest_addr,
				 uint64_t addr, uint64_t key,
				 enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	const struct fi_ioc ioc = { (void *) buf, count };

	return mrrc_atomic_writev(ep_fid, &ioc, &desc, 1, dest_addr, addr, key,
				  datatype, op, context);
}

static ssize_t mrrc_atomic_writemsg(struct fid_ep *ep_fid,
				    const struct fi_msg_atomic *msg,
				    uint64_t flags)
{
	return mrrc_post_atomic(mrrc_ep_of(ep_fid), msg,
				&(struct mrrc_atomic_bufs){ 0 }, flags);
}

static ssize_t mrrc_atomic_inject(struct fid_ep *ep_fid, const void *buf,
				  size_t count, fi_addr_t dest_addr,
				  uint64_t addr, uint64_t key,
				  enum fi_datatype datatype, enum fi_op op)
{
	return fi_inject_atomic(mrrc_ep_of(ep_fid)->core, buf, count, dest_addr,
				addr, key, datatype, op);
}

static ssize_t mrrc_atomic_readwritev(struct fid_ep *ep_fid,
				      const struct fi_ioc *iov, void **desc,
				      size_t count, struct fi_ioc *resultv,
				      void **result_desc, size_t result_count,
				      fi_addr_t dest_addr, uint64_t addr,
				      uint64_t key, enum fi_datatype datatype,
				      enum fi_op op, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	return mrrc_post_atomic(
		ep,
		&(struct fi_msg_atomic){
			.msg_iov = iov,
			.desc = desc,
			.iov_count = count,
			.addr = dest_addr,
			.rma_iov =
				&(struct fi_rma_ioc){
					addr,
					mrrc_ioc_count(resultv, result_count),
					key },
			.rma_iov_count = 1,
			.datatype = datatype,
			.op = op,
			.context = context,
		},
		&(struct mrrc_atomic_bufs){
			.result = resultv,
			.result_desc = result_desc,
			.result_cnt = result_count,
		},
		ep->tx.op_flags & ~FI_INJECT);
}

static ssize_t mrrc_atomic_readwrite(struct fid_ep *ep_fid, const void *buf,
				     size_t count, void *desc, void *result,
				     void *result_desc, fi_addr_t dest_addr,
				     uint64_t addr, uint64_t key,
				     enum fi_datatype datatype, enum fi_op op,
				     void *context)
{
	const struct fi_ioc ioc = { (void *) buf, count };
	struct fi_ioc result_ioc = { result, count };

	return mrrc_atomic_readwritev(ep_fid, &ioc, &desc, 1, &result_ioc,
				      &result_desc, 1, dest_addr, addr, key,
				      datatype, op, context);
}

static ssize_t mrrc_atomic_readwritemsg(struct fid_ep *ep_fid,
					const struct fi_msg_atomic *msg,
					struct fi_ioc *resultv,
					void **result_desc, size_t result_count,
					uint64_t flags)
{
	return mrrc_post_atomic(mrrc_ep_of(ep_fid), msg,
				&(struct mrrc_atomic_bufs){
					.result = resultv,
					.result_desc = result_desc,
					.result_cnt = result_count,
				},
				flags);
}

static ssize_t mrrc_atomic_compwritev(
	struct fid_ep *ep_fid, const struct fi_ioc *iov, void **desc,
	size_t count, const struct fi_ioc *comparev, void **compare_desc,
	size_t compare_count, struct fi_ioc *resultv, void **result_desc,
	size_t result_count, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
	enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	return mrrc_post_atomic(
		ep,
		&(struct fi_msg_atomic){
			.msg_iov = iov,
			.desc = desc,
			.iov_count = count,
			.addr = dest_addr,
			.rma_iov =
				&(struct fi_rma_ioc){
					addr, mrrc_ioc_count(iov, count), key },
			.rma_iov_count = 1,
			.datatype = datatype,
			.op = op,
			.context = context,
		},
		&(struct mrrc_atomic_bufs){
			.compare = comparev,
			.compare_desc = compare_desc,
			.compare_cnt = compare_count,
			.result = resultv,
			.result_desc = result_desc,
			.result_cnt = result_count,
		},
		ep->tx.op_flags & ~FI_INJECT);
}

static ssize_t mrrc_atomic_compwrite(struct fid_ep *ep_fid, const void *buf,
				     size_t count, void *desc,
				     const void *compare, void *compare_desc,
				     void *result, void *result_desc,
				     fi_addr_t dest_addr, uint64_t addr,
				     uint64_t key, enum fi_datatype datatype,
				     enum fi_op op, void *context)
{
	const struct fi_ioc ioc = { (void *) buf, count };
	const struct fi_ioc compare_ioc = { (void *) compare, count };
	struct fi_ioc result_ioc = { result, count };

	return mrrc_atomic_compwritev(ep_fid, &ioc, &desc, 1, &compare_ioc,
				      &compare_desc, 1, &result_ioc,
				      &result_desc, 1, dest_addr, addr, key,
				      datatype, op, context);
}

static ssize_t
mrrc_atomic_compwritemsg(struct fid_ep *ep_fid, const struct fi_msg_atomic *msg,
			 const struct fi_ioc *comparev, void **compare_desc,
			 size_t compare_count, struct fi_ioc *resultv,
			 void **result_desc, size_t result_count,
			 uint64_t flags)
{
	return mrrc_post_atomic(mrrc_ep_of(ep_fid), msg,
				&(struct mrrc_atomic_bufs){
					.compare = comparev,
					.compare_desc = compare_desc,
					.compare_cnt = compare_count,
					.result = resultv,
					.result_desc = result_desc,
					.result_cnt = result_count,
				},
				flags);
}

static int mrrc_atomic_writevalid(struct fid_ep *ep_fid,
				  enum fi_datatype datatype, enum fi_op op,
				  size_t *count)
{
	return fi_atomicvalid(mrrc_ep_of(ep_fid)->core, datatype, op, count);
}

static int mrrc_atomic_readwritevalid(struct fid_ep *ep_fid,
				      enum fi_datatype datatype, enum fi_op op,
				      size_t *count)
{
	return fi_fetch_atomicvalid(mrrc_ep_of(ep_fid)->core, datatype, op,
				    count);
}

static int mrrc_atomic_compwritevalid(struct fid_ep *ep_fid,
				      enum fi_datatype datatype, enum fi_op op,
				      size_t *count)
{
	return fi_compare_atomicvalid(mrrc_ep_of(ep_fid)->core, datatype, op,
				      count);
}

struct fi_ops_atomic mrrc_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = mrrc_atomic_write,
	.writev = mrrc_atomic_writev,
	.writemsg = mrrc_atomic_writemsg,
	.inject = mrrc_atomic_inject,
	.readwrite = mrrc_atomic_readwrite,
	.readwritev = mrrc_atomic_readwritev,
	.readwritemsg = mrrc_atomic_readwritemsg,
	.compwrite = mrrc_atomic_compwrite,
	.compwritev = mrrc_atomic_compwritev,
	.compwritemsg = mrrc_atomic_compwritemsg,
	.writevalid = mrrc_atomic_writevalid,
	.readwritevalid = mrrc_atomic_readwritevalid,
	.compwritevalid = mrrc_atomic_compwritevalid,
};
