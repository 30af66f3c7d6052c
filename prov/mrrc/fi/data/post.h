/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The common part of messages, tagged messages and remote memory access: the
 * paths from an application's call to the core's, from the shortest (one
 * buffer, a hit) to the general one.
 */
#ifndef MRRC_POST_H
#define MRRC_POST_H

#include "fi/data/resolve.h"

/*
 * Does the direction allow this many buffers? The limit is never higher than
 * that of struct mrrc_bufs.
 */
static inline bool mrrc_post_fits(const struct mrrc_ep_dir *dir, size_t count)
{
	return count <= dir->iov_limit;
}

/*
 * Begins a record for an operation in one direction of ep, and resolves iov to
 * the core's buffers. On an error the record has ended.
 */
static inline ssize_t
mrrc_post_begin(struct mrrc_ep *ep, struct mrrc_ep_dir *dir, uint64_t flags,
		void *context, const struct iovec *iov, void *const *desc,
		size_t count, size_t split, enum mrrc_access access,
		struct mrrc_bufs *core, bool *any, struct mrrc_op **op)
{
	ssize_t ret;

	ret = mrrc_op_begin(ep, dir, flags, context, op);
	if (ret)
		return ret;
	ret = mrrc_resolve(*op, iov, desc, count, split, access, core, any);
	return ret ? mrrc_op_posted(*op, ret) : 0;
}

/*
 * May this receive on an endpoint that resolves nothing go without a record? A
 * receive may do so if its completion tells no length, or if its context is
 * more than a pointer.
 */
static inline bool mrrc_recv_unseen(const struct mrrc_ep *ep, uint64_t flags)
{
	const struct mrrc_ep_dir *dir = &ep->rx;

	return mrrc_unlikely(!ep->domain->implicit) &&
	       (!dir->cq || (dir->selective && !(flags & FI_COMPLETION)) ||
		(flags & (FI_TRIGGER | FI_CLAIM)) ||
		((flags & FI_MULTI_RECV) && !ep->domain->multi_recv));
}

/* The message that the core gets in place of the application's. */
#define MRRC_POST_MSG(core_msg, core, op)              \
	({                                             \
		(core_msg)->msg_iov = (core)->iov;     \
		(core_msg)->iov_count = (core)->count; \
		(core_msg)->desc = (core)->desc;       \
		(core_msg)->context = (op);            \
	})

/*
 * Defines ssize_t name(ep, msg, flags): a transmission by @call, the core's
 * form for struct @type. Messages that the core copies in the call need no
 * record; the core copies up to @copies bytes without being asked.
 */
#define MRRC_POST_TX(name, type, call, split, access, copies)                  \
	static ssize_t __attribute__((noinline))                               \
	name(struct mrrc_ep *ep, const struct type *msg, uint64_t flags)       \
	{                                                                      \
		struct type core_msg = *msg;                                   \
		struct mrrc_bufs core;                                         \
		struct mrrc_op *op;                                            \
		ssize_t ret;                                                   \
		bool any;                                                      \
                                                                               \
		if (!mrrc_post_fits(&ep->tx, msg->iov_count))                  \
			return -FI_EINVAL;                                     \
		if ((access) == MRRC_RO &&                                     \
		    mrrc_copied(ep, msg->msg_iov, msg->desc, msg->iov_count,   \
				msg->context, copies, &flags)) {               \
			if (!mrrc_any_desc(ep, msg->desc, msg->iov_count))     \
				core_msg.desc = NULL;                          \
			return call(ep->core, &core_msg, flags);               \
		}                                                              \
		ret = mrrc_post_begin(ep, &ep->tx, flags, msg->context,        \
				      msg->msg_iov, msg->desc, msg->iov_count, \
				      split, access, &core, &any, &op);        \
		if (ret)                                                       \
			return ret;                                            \
		MRRC_POST_MSG(&core_msg, &core, op);                           \
		if ((access) == MRRC_RO && !any)                               \
			core_msg.desc = NULL;                                  \
		return MRRC_OP_POST(op, call(ep->core, &core_msg,              \
					     flags | FI_COMPLETION));          \
	}

#define MRRC_IN(...) __VA_ARGS__

/*
 * A function with MRRC_AS_IS gets all parameters of its caller, in the same
 * places: parameters that it does not use stay where they are, so that no
 * parameter is moved.
 */
#ifdef __clang__
#define MRRC_AS_IS __attribute__((noinline))
#else
#define MRRC_AS_IS __attribute__((noipa))
#endif

/*
 * ssize_t mrrc_NAME(ep, buf, len, desc, @params, context): one buffer. A call
 * that gives a descriptor goes to the core's @call as it is. A call without a
 * descriptor tries three steps, as separate functions, so that no step saves
 * registers for the next step: a region that this thread used before, without
 * function calls; such a region with function calls, or memory of
 * fi_mr_alloc(3); @post, with a struct @type of the remaining arguments.
 */
#define MRRC_ONE_BUFFER(name, call, pointer, access, least, params, args,      \
			post, type, flags, ...)                                \
	static ssize_t MRRC_UNGUARDED __attribute__((noinline))                \
	mrrc_##name##_ask(struct mrrc_ep *ep, pointer buf, size_t len,         \
			  void *desc, MRRC_IN params, void *context)           \
	{                                                                      \
		struct mrrc_op *op;                                            \
                                                                               \
		if (mrrc_resolve_born(ep, &ep->tx, buf, len, context, &desc))  \
			return call(ep->core, buf, len, desc, MRRC_IN args,    \
				    context);                                  \
		op = mrrc_resolve_known(ep, least, buf, len, access, context,  \
					&desc, true);                          \
		if (op)                                                        \
			return MRRC_OP_POST(op, call(ep->core, buf, len, desc, \
						     MRRC_IN args, op));       \
		return post(ep,                                                \
			    &(struct type){                                    \
				    .msg_iov = &(struct iovec){ (void *) buf,  \
								len },         \
				    .desc = &desc,                             \
				    .iov_count = 1,                            \
				    .context = context,                        \
				    __VA_ARGS__ },                             \
			    flags);                                            \
	}                                                                      \
                                                                               \
	static ssize_t MRRC_UNGUARDED MRRC_AS_IS mrrc_##name##_null(           \
		struct mrrc_ep *ep, pointer buf, size_t len, void *none,       \
		MRRC_IN params, void *context)                                 \
	{                                                                      \
		struct mrrc_op *op;                                            \
		void *desc;                                                    \
                                                                               \
		op = mrrc_resolve_known(ep, least, buf, len, access, context,  \
					&desc, false);                         \
		if (op)                                                        \
			return mrrc_op_posted(op,                              \
					      call(ep->core, buf, len, desc,   \
						   MRRC_IN args, op));         \
		return mrrc_##name##_ask(ep, buf, len, NULL, MRRC_IN args,     \
					 context);                             \
	}                                                                      \
                                                                               \
	static ssize_t mrrc_##name(struct fid_ep *ep_fid, pointer buf,         \
				   size_t len, void *desc, MRRC_IN params,     \
				   void *context)                              \
	{                                                                      \
		struct mrrc_ep *ep = mrrc_ep_of(ep_fid);                       \
                                                                               \
		if (mrrc_given(&ep->tx, desc, context))                        \
			return call(ep->core, buf, len, desc, MRRC_IN args,    \
				    context);                                  \
		if (desc)                                                      \
			return mrrc_##name##_ask(ep, buf, len, desc,           \
						 MRRC_IN args, context);       \
		return mrrc_##name##_null(ep, buf, len, desc, MRRC_IN args,    \
					  context);                            \
	}

#endif /* MRRC_POST_H */
