/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory access, on endpoints that resolve null descriptors; as msg.c.
 * Remote keys and addresses are the application's and pass unchanged.
 */
#include "config.h"
#include "fi/data/resolve.h"

static ssize_t __attribute__((noinline))
mrrc_post_write(struct mrrc_ep *ep, const struct fi_msg_rma *msg,
		uint64_t flags)
{
	struct mrrc_bufs core;
	struct fi_msg_rma core_msg = *msg;
	struct mrrc_op *op;
	ssize_t ret;
	bool any;

	if (msg->iov_count > ep->tx.iov_limit)
		return -FI_EINVAL;
	if (mrrc_injectable(ep, msg->msg_iov, msg->desc, msg->iov_count,
			    msg->context, flags)) {
		if (!ep->domain->reg.hmem)
			core_msg.desc = NULL;
		return fi_writemsg(ep->core, &core_msg, flags | FI_INJECT);
	}

	ret = mrrc_op_begin(ep, &ep->tx, flags, msg->context, &op);
	if (ret)
		return ret;
	ret = mrrc_resolve(op, msg->msg_iov, msg->desc, msg->iov_count,
			   ep->write_split_limit, MRRC_RO, &core, &any);
	if (ret)
		return mrrc_op_posted(op, ret);
	core_msg.msg_iov = core.iov;
	core_msg.iov_count = core.count;
	core_msg.desc = any ? core.desc : NULL;
	core_msg.context = op;
	return MRRC_OP_POST(op, fi_writemsg(ep->core, &core_msg,
					    flags | FI_COMPLETION));
}

static ssize_t __attribute__((noinline))
mrrc_post_read(struct mrrc_ep *ep, const struct fi_msg_rma *msg,
	       uint64_t flags)
{
	struct mrrc_bufs core;
	struct fi_msg_rma core_msg = *msg;
	struct mrrc_op *op;
	ssize_t ret;
	bool any;

	if (msg->iov_count > ep->tx.iov_limit)
		return -FI_EINVAL;

	ret = mrrc_op_begin(ep, &ep->tx, flags, msg->context, &op);
	if (ret)
		return ret;
	ret = mrrc_resolve(op, msg->msg_iov, msg->desc, msg->iov_count,
			   ep->read_split_limit, MRRC_RW, &core, &any);
	if (ret)
		return mrrc_op_posted(op, ret);
	core_msg.msg_iov = core.iov;
	core_msg.iov_count = core.count;
	core_msg.desc = core.desc;
	core_msg.context = op;
	return MRRC_OP_POST(op, fi_readmsg(ep->core, &core_msg,
					   flags | FI_COMPLETION));
}

static ssize_t __attribute__((noinline))
mrrc_read_ask(struct mrrc_ep *ep, void *buf, size_t len, void *desc,
	      fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	struct mrrc_op *op;

	if (mrrc_resolve_born(ep, buf, len, context, &desc))
		return fi_read(ep->core, buf, len, desc, src_addr, addr, key,
			       context);
	op = mrrc_resolve_known(ep, buf, len, MRRC_RW, context, &desc, true);
	if (op)
		return MRRC_OP_POST(op, fi_read(ep->core, buf, len, desc,
						src_addr, addr, key, op));
	return mrrc_post_read(ep, &(struct fi_msg_rma) {
		.msg_iov = &(struct iovec) { buf, len },
		.desc = &desc,
		.iov_count = 1,
		.addr = src_addr,
		.rma_iov = &(struct fi_rma_iov) { addr, len, key },
		.rma_iov_count = 1,
		.context = context,
	}, ep->tx.op_flags & ~FI_INJECT);
}

static ssize_t __attribute__((noinline))
mrrc_read_null(struct mrrc_ep *ep, void *buf, size_t len, void *desc,
	       fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	struct mrrc_op *op;

	op = mrrc_resolve_known(ep, buf, len, MRRC_RW, context, &desc, false);
	if (op)
		return mrrc_op_posted(op, fi_read(ep->core, buf, len, desc,
						  src_addr, addr, key, op));
	return mrrc_read_ask(ep, buf, len, desc, src_addr, addr, key, context);
}

static ssize_t mrrc_read(struct fid_ep *ep_fid, void *buf, size_t len,
			 void *desc, fi_addr_t src_addr, uint64_t addr,
			 uint64_t key, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given(ep, desc, context))
		return fi_read(ep->core, buf, len, desc, src_addr, addr, key,
			       context);
	return mrrc_read_null(ep, buf, len, desc, src_addr, addr, key, context);
}

static ssize_t mrrc_readv(struct fid_ep *ep_fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t src_addr,
			  uint64_t addr, uint64_t key, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);
	size_t len = 0, i;

	if (mrrc_given_iov(ep, desc, count, context))
		return fi_readv(ep->core, iov, desc, count, src_addr, addr,
				key, context);

	for (i = 0; i < count; i++)
		len += iov[i].iov_len;
	return mrrc_post_read(ep, &(struct fi_msg_rma) {
		.msg_iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = src_addr,
		.rma_iov = &(struct fi_rma_iov) { addr, len, key },
		.rma_iov_count = 1,
		.context = context,
	}, ep->tx.op_flags & ~FI_INJECT);
}

static ssize_t mrrc_readmsg(struct fid_ep *ep_fid,
			    const struct fi_msg_rma *msg, uint64_t flags)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given_iov(ep, msg->desc, msg->iov_count, msg->context))
		return fi_readmsg(ep->core, msg, flags);
	return mrrc_post_read(ep, msg, flags);
}

static ssize_t __attribute__((noinline))
mrrc_write_ask(struct mrrc_ep *ep, const void *buf, size_t len, void *desc,
	       fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct mrrc_op *op;

	if (mrrc_resolve_born(ep, buf, len, context, &desc))
		return fi_write(ep->core, buf, len, desc, dest_addr, addr, key,
				context);
	op = mrrc_resolve_known(ep, buf, len, MRRC_RO, context, &desc, true);
	if (op)
		return MRRC_OP_POST(op, fi_write(ep->core, buf, len, desc,
						 dest_addr, addr, key, op));
	return mrrc_post_write(ep, &(struct fi_msg_rma) {
		.msg_iov = &(struct iovec) { (void *) buf, len },
		.desc = &desc,
		.iov_count = 1,
		.addr = dest_addr,
		.rma_iov = &(struct fi_rma_iov) { addr, len, key },
		.rma_iov_count = 1,
		.context = context,
	}, ep->tx.op_flags);
}

static ssize_t __attribute__((noinline))
mrrc_write_null(struct mrrc_ep *ep, const void *buf, size_t len, void *desc,
		fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct mrrc_op *op;

	op = mrrc_resolve_known(ep, buf, len, MRRC_RO, context, &desc, false);
	if (op)
		return mrrc_op_posted(op, fi_write(ep->core, buf, len, desc,
						   dest_addr, addr, key, op));
	return mrrc_write_ask(ep, buf, len, desc, dest_addr, addr, key,
			      context);
}

static ssize_t mrrc_write(struct fid_ep *ep_fid, const void *buf, size_t len,
			  void *desc, fi_addr_t dest_addr, uint64_t addr,
			  uint64_t key, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given(ep, desc, context))
		return fi_write(ep->core, buf, len, desc, dest_addr, addr, key,
				context);
	return mrrc_write_null(ep, buf, len, desc, dest_addr, addr, key,
			context);
}

static ssize_t mrrc_writev(struct fid_ep *ep_fid, const struct iovec *iov,
			   void **desc, size_t count, fi_addr_t dest_addr,
			   uint64_t addr, uint64_t key, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);
	size_t len = 0, i;

	if (mrrc_given_iov(ep, desc, count, context))
		return fi_writev(ep->core, iov, desc, count, dest_addr, addr,
				 key, context);

	for (i = 0; i < count; i++)
		len += iov[i].iov_len;
	return mrrc_post_write(ep, &(struct fi_msg_rma) {
		.msg_iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = dest_addr,
		.rma_iov = &(struct fi_rma_iov) { addr, len, key },
		.rma_iov_count = 1,
		.context = context,
	}, ep->tx.op_flags);
}

static ssize_t mrrc_writemsg(struct fid_ep *ep_fid,
			     const struct fi_msg_rma *msg, uint64_t flags)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given_iov(ep, msg->desc, msg->iov_count, msg->context))
		return fi_writemsg(ep->core, msg, flags);
	return mrrc_post_write(ep, msg, flags);
}

static ssize_t mrrc_inject_write(struct fid_ep *ep_fid, const void *buf,
				 size_t len, fi_addr_t dest_addr,
				 uint64_t addr, uint64_t key)
{
	return fi_inject_write(mrrc_ep_of(ep_fid)->core, buf, len, dest_addr,
			       addr, key);
}

static ssize_t __attribute__((noinline))
mrrc_writedata_null(struct mrrc_ep *ep, const void *buf, size_t len,
		void *desc, uint64_t data, fi_addr_t dest_addr, uint64_t addr,
		uint64_t key, void *context)
{
	return mrrc_post_write(ep, &(struct fi_msg_rma) {
		.msg_iov = &(struct iovec) { (void *) buf, len },
		.desc = &desc,
		.iov_count = 1,
		.addr = dest_addr,
		.rma_iov = &(struct fi_rma_iov) { addr, len, key },
		.rma_iov_count = 1,
		.context = context,
		.data = data,
	}, ep->tx.op_flags | FI_REMOTE_CQ_DATA);
}

static ssize_t mrrc_writedata(struct fid_ep *ep_fid, const void *buf,
			      size_t len, void *desc, uint64_t data,
			      fi_addr_t dest_addr, uint64_t addr,
			      uint64_t key, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given(ep, desc, context))
		return fi_writedata(ep->core, buf, len, desc, data, dest_addr,
				    addr, key, context);
	return mrrc_writedata_null(ep, buf, len, desc, data, dest_addr, addr,
			key, context);
}

static ssize_t mrrc_inject_writedata(struct fid_ep *ep_fid, const void *buf,
				     size_t len, uint64_t data,
				     fi_addr_t dest_addr, uint64_t addr,
				     uint64_t key)
{
	return fi_inject_writedata(mrrc_ep_of(ep_fid)->core, buf, len, data,
				   dest_addr, addr, key);
}

struct fi_ops_rma mrrc_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = mrrc_read,
	.readv = mrrc_readv,
	.readmsg = mrrc_readmsg,
	.write = mrrc_write,
	.writev = mrrc_writev,
	.writemsg = mrrc_writemsg,
	.inject = mrrc_inject_write,
	.writedata = mrrc_writedata,
	.injectdata = mrrc_inject_writedata,
};
