/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages, on endpoints that resolve null descriptors. A call that gives all
 * descriptors goes to the core unchanged; other calls become the core's message
 * form with a record of the provider as context.
 */
#include "config.h"
#include "fi/data/post.h"

#include "fi/data/complete.h"
#include "fi/data/tables.h"

MRRC_POST_TX(mrrc_post_send, fi_msg, fi_sendmsg, ep->tx.split_limit, MRRC_RO,
	     ep->copied)

/*
 * Receives into NULL go to the core, which accepts or refuses them: programs
 * post such receives for messages without data (upstream's fi_shared_ctx does),
 * though messages with data may come, too.
 */
static bool mrrc_recv_nowhere(const struct fi_msg *msg)
{
	size_t i;

	for (i = 0; i < msg->iov_count; i++) {
		if (msg->msg_iov[i].iov_base)
			return false;
	}
	return true;
}

static int mrrc_resolve_nowhere(struct mrrc_op *op, const struct fi_msg *msg,
				struct mrrc_bufs *core)
{
	size_t i;
	int ret = 0;

	mrrc_op_room(op, msg->msg_iov, msg->iov_count);
	/* verbs reads the array of descriptors, which may be NULL in @msg */
	core->desc[0] = NULL;
	if (op->ep->desc_always)
		ret = mrrc_resolve_nothing(op, &core->desc[0]);
	for (i = 0; !ret && i < msg->iov_count; i++) {
		core->iov[i] = msg->msg_iov[i];
		core->desc[i] = core->desc[0];
	}
	core->count = msg->iov_count;
	return ret;
}

/*
 * With FI_BUFFERED_RECV the context is a structure of the core, which contains
 * the context of the completion. A discarded message does not complete. A
 * receive with neither FI_CLAIM nor FI_DISCARD never matches a message, so the
 * receive's buffers are not registered; fi_recvmsg() would take the receive's
 * context for the core's structure.
 */
static ssize_t mrrc_recv_buffered(struct mrrc_ep *ep, const struct fi_msg *msg,
				  uint64_t flags)
{
	struct fi_recv_context *recv_context = msg->context;
	struct fi_msg core_msg = *msg;
	struct mrrc_bufs core;
	struct mrrc_op *op;
	ssize_t ret;
	bool any;

	/* FI_DISCARD ignores the buffers */
	if ((flags & (FI_CLAIM | FI_DISCARD)) == FI_DISCARD)
		return fi_recvmsg(ep->core, msg, flags);
	if (!mrrc_post_fits(&ep->rx, msg->iov_count))
		return -FI_EINVAL;
	if (!(flags & FI_CLAIM))
		return fi_recvv(ep->core, msg->msg_iov, msg->desc,
				msg->iov_count, msg->addr, msg->context);
	ret = mrrc_post_begin(ep, &ep->rx, (flags & ~FI_CLAIM) | FI_COMPLETION,
			      recv_context->context, msg->msg_iov, msg->desc,
			      msg->iov_count, ep->rx.split_limit, MRRC_RW,
			      &core, &any, &op);
	if (ret)
		return ret;
	MRRC_POST_MSG(&core_msg, &core, recv_context);
	recv_context->context = op;
	ret = MRRC_OP_TRY(op, fi_recvmsg(ep->core, &core_msg, flags));
	if (ret)
		recv_context->context = op->context;
	return mrrc_op_posted(op, ret);
}

static ssize_t __attribute__((noinline))
mrrc_post_recv(struct mrrc_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct mrrc_bufs core;
	struct fi_msg core_msg = *msg;
	struct mrrc_op *op;
	bool any, nowhere;
	ssize_t ret;

	if (mrrc_unlikely(ep->buffered))
		return mrrc_recv_buffered(ep, msg, flags);
	if (!mrrc_post_fits(&ep->rx, msg->iov_count))
		return -FI_EINVAL;
	if (mrrc_recv_unseen(ep, flags))
		return fi_recvmsg(ep->core, msg, flags);
	nowhere = ep->domain->implicit && mrrc_recv_nowhere(msg);

	ret = mrrc_op_begin(ep, &ep->rx, flags, msg->context, &op);
	if (ret)
		return ret;
	ret = mrrc_unlikely(nowhere) ?
		      mrrc_resolve_nowhere(op, msg, &core) :
		      mrrc_resolve(op, msg->msg_iov, msg->desc, msg->iov_count,
				   flags & FI_MULTI_RECV ? 0 :
							   ep->rx.split_limit,
				   MRRC_RW, &core, &any);
	if (ret)
		return mrrc_op_posted(op, ret);
	MRRC_POST_MSG(&core_msg, &core, op);
	if (mrrc_unlikely(flags & FI_MULTI_RECV)) {
		mrrc_op_multi(op, ep, msg->msg_iov, msg->iov_count);
		return mrrc_op_posted_multi(
			op, ep->rx.cq,
			MRRC_OP_TRY(op, fi_recvmsg(ep->core, &core_msg,
						   flags | FI_COMPLETION)));
	}
	return MRRC_OP_POST(op, fi_recvmsg(ep->core, &core_msg,
					   flags | FI_COMPLETION));
}

static ssize_t __attribute__((noinline))
mrrc_recv_null(struct mrrc_ep *ep, void *buf, size_t len, void *desc,
	       fi_addr_t src_addr, void *context)
{
	if (mrrc_resolve_born(ep, &ep->rx, buf, len, context, &desc))
		return fi_recv(ep->core, buf, len, desc, src_addr, context);
	return mrrc_post_recv(ep,
			      &(struct fi_msg){
				      .msg_iov = &(struct iovec){ buf, len },
				      .desc = &desc,
				      .iov_count = 1,
				      .addr = src_addr,
				      .context = context,
			      },
			      ep->rx.op_flags);
}

static ssize_t mrrc_recv(struct fid_ep *ep_fid, void *buf, size_t len,
			 void *desc, fi_addr_t src_addr, void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given(&ep->rx, desc, context))
		return fi_recv(ep->core, buf, len, desc, src_addr, context);
	return mrrc_recv_null(ep, buf, len, desc, src_addr, context);
}

static ssize_t mrrc_recvv(struct fid_ep *ep_fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t src_addr,
			  void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given_iov(&ep->rx, desc, count, context))
		return fi_recvv(ep->core, iov, desc, count, src_addr, context);

	return mrrc_post_recv(ep,
			      &(struct fi_msg){
				      .msg_iov = iov,
				      .desc = desc,
				      .iov_count = count,
				      .addr = src_addr,
				      .context = context,
			      },
			      ep->rx.op_flags);
}

static ssize_t mrrc_recvmsg(struct fid_ep *ep_fid, const struct fi_msg *msg,
			    uint64_t flags)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given_iov(&ep->rx, msg->desc, msg->iov_count, msg->context))
		return fi_recvmsg(ep->core, msg, flags);
	return mrrc_post_recv(ep, msg, flags);
}

MRRC_ONE_BUFFER(send, fi_send, const void *, MRRC_RO, &ep->least_msg,
		(fi_addr_t dest_addr), (dest_addr), mrrc_post_send, fi_msg,
		ep->tx.op_flags, .addr = dest_addr)

static ssize_t mrrc_sendv(struct fid_ep *ep_fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest_addr,
			  void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given_iov(&ep->tx, desc, count, context))
		return fi_sendv(ep->core, iov, desc, count, dest_addr, context);

	return mrrc_post_send(ep,
			      &(struct fi_msg){
				      .msg_iov = iov,
				      .desc = desc,
				      .iov_count = count,
				      .addr = dest_addr,
				      .context = context,
			      },
			      ep->tx.op_flags);
}

static ssize_t mrrc_sendmsg(struct fid_ep *ep_fid, const struct fi_msg *msg,
			    uint64_t flags)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given_iov(&ep->tx, msg->desc, msg->iov_count, msg->context))
		return fi_sendmsg(ep->core, msg, flags);
	return mrrc_post_send(ep, msg, flags);
}

static ssize_t mrrc_inject(struct fid_ep *ep_fid, const void *buf, size_t len,
			   fi_addr_t dest_addr)
{
	return fi_inject(mrrc_ep_of(ep_fid)->core, buf, len, dest_addr);
}

static ssize_t __attribute__((noinline))
mrrc_senddata_null(struct mrrc_ep *ep, const void *buf, size_t len, void *desc,
		   uint64_t data, fi_addr_t dest_addr, void *context)
{
	return mrrc_post_send(ep,
			      &(struct fi_msg){
				      .msg_iov = &(struct iovec){ (void *) buf,
								  len },
				      .desc = &desc,
				      .iov_count = 1,
				      .addr = dest_addr,
				      .context = context,
				      .data = data,
			      },
			      ep->tx.op_flags | FI_REMOTE_CQ_DATA);
}

static ssize_t mrrc_senddata(struct fid_ep *ep_fid, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest_addr,
			     void *context)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);

	if (mrrc_given(&ep->tx, desc, context))
		return fi_senddata(ep->core, buf, len, desc, data, dest_addr,
				   context);
	return mrrc_senddata_null(ep, buf, len, desc, data, dest_addr, context);
}

static ssize_t mrrc_injectdata(struct fid_ep *ep_fid, const void *buf,
			       size_t len, uint64_t data, fi_addr_t dest_addr)
{
	return fi_injectdata(mrrc_ep_of(ep_fid)->core, buf, len, data,
			     dest_addr);
}

struct fi_ops_msg mrrc_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = mrrc_recv,
	.recvv = mrrc_recvv,
	.recvmsg = mrrc_recvmsg,
	.send = mrrc_send,
	.sendv = mrrc_sendv,
	.sendmsg = mrrc_sendmsg,
	.inject = mrrc_inject,
	.senddata = mrrc_senddata,
	.injectdata = mrrc_injectdata,
};
