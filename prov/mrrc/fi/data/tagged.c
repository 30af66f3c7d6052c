/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tagged messages, on endpoints that resolve null descriptors; as msg.c.
 */
#include "config.h"
#include "fi/data/post.h"

#include "fi/data/complete.h"
#include "fi/data/tables.h"

MRRC_POST_TX(mrrc_post_tsend, fi_msg_tagged, fi_tsendmsg, ep->tx.split_limit,
	     MRRC_RO, ep->copied)

/* Posts msg's buffers with the record op. */
static ssize_t mrrc_trecv_op(struct mrrc_ep *ep, struct mrrc_op *op,
			     const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct fi_msg_tagged core_msg = *msg;
	struct mrrc_bufs core;
	ssize_t ret;
	bool any;

	ret = mrrc_resolve(op, msg->msg_iov, msg->desc, msg->iov_count,
			   flags & FI_MULTI_RECV ? 0 : ep->rx.split_limit,
			   MRRC_RW, &core, &any);
	if (ret)
		return mrrc_op_posted(op, ret);
	MRRC_POST_MSG(&core_msg, &core, op);
	if (mrrc_unlikely(flags & FI_MULTI_RECV)) {
		mrrc_op_multi(op, ep, msg->msg_iov, msg->iov_count);
		return mrrc_op_posted_multi(
			op, ep->rx.cq,
			MRRC_OP_TRY(op, fi_trecvmsg(ep->core, &core_msg,
						    flags | FI_COMPLETION)));
	}
	return MRRC_OP_POST(op, fi_trecvmsg(ep->core, &core_msg,
					    flags | FI_COMPLETION));
}

/* Like mrrc_recv_buffered() in msg.c. */
static ssize_t mrrc_trecv_buffered(struct mrrc_ep *ep,
				   const struct fi_msg_tagged *msg,
				   uint64_t flags)
{
	struct fi_recv_context *recv_context = msg->context;
	struct fi_msg_tagged core_msg = *msg;
	struct mrrc_bufs core;
	struct mrrc_op *op;
	ssize_t ret;
	bool any;

	/* buffered messages are in no queue that could be peeked at */
	if (flags & FI_PEEK)
		return -FI_EINVAL;
	if ((flags & (FI_CLAIM | FI_DISCARD)) == FI_DISCARD)
		return fi_trecvmsg(ep->core, msg, flags);
	if (!mrrc_post_fits(&ep->rx, msg->iov_count))
		return -FI_EINVAL;
	if (!(flags & FI_CLAIM))
		return fi_trecvv(ep->core, msg->msg_iov, msg->desc,
				 msg->iov_count, msg->addr, msg->tag,
				 msg->ignore, msg->context);
	ret = mrrc_post_begin(ep, &ep->rx, (flags & ~FI_CLAIM) | FI_COMPLETION,
			      recv_context->context, msg->msg_iov, msg->desc,
			      msg->iov_count, ep->rx.split_limit, MRRC_RW,
			      &core, &any, &op);
	if (ret)
		return ret;
	MRRC_POST_MSG(&core_msg, &core, recv_context);
	recv_context->context = op;
	ret = MRRC_OP_TRY(op, fi_trecvmsg(ep->core, &core_msg, flags));
	if (ret)
		recv_context->context = op->context;
	return mrrc_op_posted(op, ret);
}

/*
 * Peeks for a message, or claims a message that was found: see op.h. Peeking
 * and discarding need no buffer.
 */
static ssize_t __attribute__((noinline))
mrrc_trecv_peek(struct mrrc_ep *ep, const struct fi_msg_tagged *msg,
		uint64_t flags)
{
	struct fi_msg_tagged core_msg = *msg;
	struct mrrc_op *op;
	ssize_t ret;

	if (ep->buffered)
		return mrrc_trecv_buffered(ep, msg, flags);
	if (!(flags & FI_CLAIM) ||
	    (flags & (FI_PEEK | FI_DISCARD)) == (FI_PEEK | FI_DISCARD) ||
	    (!ep->domain->implicit && !ep->rx.cq))
		return fi_trecvmsg(ep->core, msg, flags);
	if (!msg->context || (!(flags & (FI_PEEK | FI_DISCARD)) &&
			      !mrrc_post_fits(&ep->rx, msg->iov_count)))
		return -FI_EINVAL;
	ret = flags & FI_PEEK ? mrrc_op_peek(ep, flags, msg->context, &op) :
				mrrc_op_retrieve(ep, flags, msg->context, &op);
	if (ret)
		return ret;
	if (!(flags & (FI_PEEK | FI_DISCARD)))
		return mrrc_trecv_op(ep, op, msg, flags);
	core_msg.context = op;
	return MRRC_OP_POST(op, fi_trecvmsg(ep->core, &core_msg,
					    flags | FI_COMPLETION));
}

static ssize_t __attribute__((noinline))
mrrc_post_trecv(struct mrrc_ep *ep, const struct fi_msg_tagged *msg,
		uint64_t flags)
{
	struct mrrc_op *op;
	ssize_t ret;

	if (mrrc_unlikely(ep->buffered))
		return mrrc_trecv_buffered(ep, msg, flags);
	if (!mrrc_post_fits(&ep->rx, msg->iov_count))
		return -FI_EINVAL;
	if (mrrc_recv_unseen(ep, flags))
		return fi_trecvmsg(ep->core, msg, flags);

	ret = mrrc_op_begin(ep, &ep->rx, flags, msg->context, &op);
	return ret ? ret : mrrc_trecv_op(ep, op, msg, flags);
}

static ssize_t __attribute__((noinline))
mrrc_trecv_null(struct mrrc_ep *ep, void *buf, size_t len, void *desc,
		fi_addr_t src_addr, uint64_t tag, uint64_t ignore,
		void *context)
{
	if (mrrc_resolve_born(ep, &ep->rx, buf, len, context, &desc))
		return fi_trecv(ep->core, buf, len, desc, src_addr, tag, ignore,
				context);
	return mrrc_post_trecv(ep,
			       &(struct fi_msg_tagged){
				       .msg_iov = &(struct iovec){ buf, len },
				       .desc = &desc,
				       .iov_count = 1,
				       .addr = src_addr,
				       .tag = tag,
				       .ignore = ignore,
				       .context = context,
			       },
			       ep->rx.op_flags);
}

static ssize_t mrrc_trecv(struct fid_ep *ep_fid, void *buf, size_t len,
			  void *desc, fi_addr_t src_addr, uint64_t tag,
			  uint64_t ignore, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given(&ep->rx, desc, context))
		return fi_trecv(ep->core, buf, len, desc, src_addr, tag, ignore,
				context);
	return mrrc_trecv_null(ep, buf, len, desc, src_addr, tag, ignore,
			       context);
}

static ssize_t mrrc_trecvv(struct fid_ep *ep_fid, const struct iovec *iov,
			   void **desc, size_t count, fi_addr_t src_addr,
			   uint64_t tag, uint64_t ignore, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given_iov(&ep->rx, desc, count, context))
		return fi_trecvv(ep->core, iov, desc, count, src_addr, tag,
				 ignore, context);

	return mrrc_post_trecv(ep,
			       &(struct fi_msg_tagged){
				       .msg_iov = iov,
				       .desc = desc,
				       .iov_count = count,
				       .addr = src_addr,
				       .tag = tag,
				       .ignore = ignore,
				       .context = context,
			       },
			       ep->rx.op_flags);
}

static ssize_t mrrc_trecvmsg(struct fid_ep *ep_fid,
			     const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_unlikely(flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)))
		return mrrc_trecv_peek(ep, msg, flags);
	if (mrrc_given_iov(&ep->rx, msg->desc, msg->iov_count, msg->context))
		return fi_trecvmsg(ep->core, msg, flags);
	return mrrc_post_trecv(ep, msg, flags);
}

MRRC_ONE_BUFFER(tsend, fi_tsend, const void *, MRRC_RO, &ep->least_msg,
		(fi_addr_t dest_addr, uint64_t tag), (dest_addr, tag),
		mrrc_post_tsend, fi_msg_tagged, ep->tx.op_flags,
		.addr = dest_addr, .tag = tag)

static ssize_t mrrc_tsendv(struct fid_ep *ep_fid, const struct iovec *iov,
			   void **desc, size_t count, fi_addr_t dest_addr,
			   uint64_t tag, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given_iov(&ep->tx, desc, count, context))
		return fi_tsendv(ep->core, iov, desc, count, dest_addr, tag,
				 context);

	return mrrc_post_tsend(ep,
			       &(struct fi_msg_tagged){
				       .msg_iov = iov,
				       .desc = desc,
				       .iov_count = count,
				       .addr = dest_addr,
				       .tag = tag,
				       .context = context,
			       },
			       ep->tx.op_flags);
}

static ssize_t mrrc_tsendmsg(struct fid_ep *ep_fid,
			     const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given_iov(&ep->tx, msg->desc, msg->iov_count, msg->context))
		return fi_tsendmsg(ep->core, msg, flags);
	return mrrc_post_tsend(ep, msg, flags);
}

static ssize_t mrrc_tinject(struct fid_ep *ep_fid, const void *buf, size_t len,
			    fi_addr_t dest_addr, uint64_t tag)
{
	return fi_tinject(mrrc_ep_of(ep_fid)->core, buf, len, dest_addr, tag);
}

static ssize_t __attribute__((noinline))
mrrc_tsenddata_null(struct mrrc_ep *ep, const void *buf, size_t len, void *desc,
		    uint64_t data, fi_addr_t dest_addr, uint64_t tag,
		    void *context)
{
	return mrrc_post_tsend(ep,
			       &(struct fi_msg_tagged){
				       .msg_iov = &(struct iovec){ (void *) buf,
								   len },
				       .desc = &desc,
				       .iov_count = 1,
				       .addr = dest_addr,
				       .tag = tag,
				       .context = context,
				       .data = data,
			       },
			       ep->tx.op_flags | FI_REMOTE_CQ_DATA);
}

static ssize_t mrrc_tsenddata(struct fid_ep *ep_fid, const void *buf,
			      size_t len, void *desc, uint64_t data,
			      fi_addr_t dest_addr, uint64_t tag, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given(&ep->tx, desc, context))
		return fi_tsenddata(ep->core, buf, len, desc, data, dest_addr,
				    tag, context);
	return mrrc_tsenddata_null(ep, buf, len, desc, data, dest_addr, tag,
				   context);
}

static ssize_t mrrc_tinjectdata(struct fid_ep *ep_fid, const void *buf,
				size_t len, uint64_t data, fi_addr_t dest_addr,
				uint64_t tag)
{
	return fi_tinjectdata(mrrc_ep_of(ep_fid)->core, buf, len, data,
			      dest_addr, tag);
}

struct fi_ops_tagged mrrc_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = mrrc_trecv,
	.recvv = mrrc_trecvv,
	.recvmsg = mrrc_trecvmsg,
	.send = mrrc_tsend,
	.sendv = mrrc_tsendv,
	.sendmsg = mrrc_tsendmsg,
	.inject = mrrc_tinject,
	.senddata = mrrc_tsenddata,
	.injectdata = mrrc_tinjectdata,
};
