/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory access, on endpoints that resolve null descriptors, in the way
 * of msg.c. Remote keys and addresses are the application's and pass unchanged.
 */
#include "config.h"
#include "fi/data/post.h"

#include "fi/data/tables.h"

MRRC_POST_TX(mrrc_post_write, fi_msg_rma, fi_writemsg, ep->write_split_limit,
	     MRRC_RO, 0)

MRRC_POST_TX(mrrc_post_read, fi_msg_rma, fi_readmsg, ep->read_split_limit,
	     MRRC_RW, 0)

MRRC_ONE_BUFFER(read, fi_read, void *, MRRC_RW, &ep->least_rma,
		(fi_addr_t src_addr, uint64_t addr, uint64_t key),
		(src_addr, addr, key), mrrc_post_read, fi_msg_rma,
		ep->tx.op_flags & ~FI_INJECT, .addr = src_addr,
		.rma_iov = &(struct fi_rma_iov){ addr, len, key },
		.rma_iov_count = 1)

static ssize_t mrrc_readv(struct fid_ep *ep_fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t src_addr,
			  uint64_t addr, uint64_t key, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);
	size_t len = 0, i;

	if (mrrc_given_iov(&ep->tx, desc, count, context))
		return fi_readv(ep->core, iov, desc, count, src_addr, addr, key,
				context);

	for (i = 0; i < count; i++)
		len += iov[i].iov_len;
	return mrrc_post_read(
		ep,
		&(struct fi_msg_rma){
			.msg_iov = iov,
			.desc = desc,
			.iov_count = count,
			.addr = src_addr,
			.rma_iov = &(struct fi_rma_iov){ addr, len, key },
			.rma_iov_count = 1,
			.context = context,
		},
		ep->tx.op_flags & ~FI_INJECT);
}

static ssize_t mrrc_readmsg(struct fid_ep *ep_fid, const struct fi_msg_rma *msg,
			    uint64_t flags)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given_iov(&ep->tx, msg->desc, msg->iov_count, msg->context))
		return fi_readmsg(ep->core, msg, flags);
	return mrrc_post_read(ep, msg, flags);
}

MRRC_ONE_BUFFER(write, fi_write, const void *, MRRC_RO, &ep->least_rma,
		(fi_addr_t dest_addr, uint64_t addr, uint64_t key),
		(dest_addr, addr, key), mrrc_post_write, fi_msg_rma,
		ep->tx.op_flags, .addr = dest_addr,
		.rma_iov = &(struct fi_rma_iov){ addr, len, key },
		.rma_iov_count = 1)

static ssize_t mrrc_writev(struct fid_ep *ep_fid, const struct iovec *iov,
			   void **desc, size_t count, fi_addr_t dest_addr,
			   uint64_t addr, uint64_t key, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);
	size_t len = 0, i;

	if (mrrc_given_iov(&ep->tx, desc, count, context))
		return fi_writev(ep->core, iov, desc, count, dest_addr, addr,
				 key, context);

	for (i = 0; i < count; i++)
		len += iov[i].iov_len;
	return mrrc_post_write(
		ep,
		&(struct fi_msg_rma){
			.msg_iov = iov,
			.desc = desc,
			.iov_count = count,
			.addr = dest_addr,
			.rma_iov = &(struct fi_rma_iov){ addr, len, key },
			.rma_iov_count = 1,
			.context = context,
		},
		ep->tx.op_flags);
}

static ssize_t mrrc_writemsg(struct fid_ep *ep_fid,
			     const struct fi_msg_rma *msg, uint64_t flags)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given_iov(&ep->tx, msg->desc, msg->iov_count, msg->context))
		return fi_writemsg(ep->core, msg, flags);
	return mrrc_post_write(ep, msg, flags);
}

static ssize_t mrrc_inject_write(struct fid_ep *ep_fid, const void *buf,
				 size_t len, fi_addr_t dest_addr, uint64_t addr,
				 uint64_t key)
{
	return fi_inject_write(mrrc_ep_of(ep_fid)->core, buf, len, dest_addr,
			       addr, key);
}

static ssize_t __attribute__((noinline))
mrrc_writedata_null(struct mrrc_ep *ep, const void *buf, size_t len, void *desc,
		    uint64_t data, fi_addr_t dest_addr, uint64_t addr,
		    uint64_t key, void *context)
{
	return mrrc_post_write(
		ep,
		&(struct fi_msg_rma){
			.msg_iov = &(struct iovec){ (void *) buf, len },
			.desc = &desc,
			.iov_count = 1,
			.addr = dest_addr,
			.rma_iov = &(struct fi_rma_iov){ addr, len, key },
			.rma_iov_count = 1,
			.context = context,
			.data = data,
		},
		ep->tx.op_flags | FI_REMOTE_CQ_DATA);
}

static ssize_t mrrc_writedata(struct fid_ep *ep_fid, const void *buf,
			      size_t len, void *desc, uint64_t data,
			      fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			      void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given(&ep->tx, desc, context))
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
