/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data calls of endpoints that resolve no descriptors: each calls the core's
 * endpoint by a tail call, which adds three instructions. Receives have records
 * nevertheless, if the core passes on lengths that peers claim. When obj/ep.c
 * opens an endpoint, it chooses between the tables of forward.c and those of
 * msg.c, rma.c, tagged.c and atomic.c, so no call pays for the choice.
 *
 * The core's tables are read in each call, not copied: a core may change them
 * when an endpoint is bound, enabled or set up.
 *
 * Threading: the core's.
 */
#include "config.h"
#include "fi/data/calls.h"
#include "fi/data/tables.h"
#include "fi/mrrc_fi.h"

#define FWD(type, group, call, params, ...)                  \
	static type fwd_##group##_##call params              \
	{                                                    \
		struct fid_ep *core = mrrc_ep_of(ep)->core;  \
                                                             \
		return core->group->call(core, __VA_ARGS__); \
	}
#define FWD_CALL(group, call, what, peer, params, ...) \
	FWD(ssize_t, group, call, params, __VA_ARGS__)

#define ENTRY(type, group, call, ...) .call = fwd_##group##_##call,
#define ENTRY_CALL(group, call, ...)  .call = fwd_##group##_##call,

MRRC_MSG_CALLS(FWD_CALL)
MRRC_MSG_PLAIN_CALLS(FWD)

struct fi_ops_msg mrrc_msg_fwd_ops = { .size = sizeof(struct fi_ops_msg),
				       MRRC_MSG_CALLS(ENTRY_CALL)
					       MRRC_MSG_PLAIN_CALLS(ENTRY) };

MRRC_TAGGED_CALLS(FWD_CALL)
MRRC_TAGGED_PLAIN_CALLS(FWD)

struct fi_ops_tagged mrrc_tagged_fwd_ops = {
	.size = sizeof(struct fi_ops_tagged),
	MRRC_TAGGED_CALLS(ENTRY_CALL) MRRC_TAGGED_PLAIN_CALLS(ENTRY)
};

MRRC_RMA_CALLS(FWD_CALL)
MRRC_RMA_PLAIN_CALLS(FWD)

struct fi_ops_rma mrrc_rma_fwd_ops = { .size = sizeof(struct fi_ops_rma),
				       MRRC_RMA_CALLS(ENTRY_CALL)
					       MRRC_RMA_PLAIN_CALLS(ENTRY) };

MRRC_ATOMIC_CALLS(FWD_CALL)
MRRC_ATOMIC_PLAIN_CALLS(FWD)

struct fi_ops_atomic mrrc_atomic_fwd_ops = {
	.size = sizeof(struct fi_ops_atomic),
	MRRC_ATOMIC_CALLS(ENTRY_CALL) MRRC_ATOMIC_PLAIN_CALLS(ENTRY)
};

MRRC_COLLECTIVE_CALLS(FWD)

/* barrier2 is newer than the other calls: the core's table may lack it */
static ssize_t fwd_collective_barrier2(struct fid_ep *ep, fi_addr_t coll_addr,
				       uint64_t flags, void *context)
{
	struct fid_ep *core = mrrc_ep_of(ep)->core;

	if (!FI_CHECK_OP(core->collective, struct fi_ops_collective, barrier2))
		return -FI_ENOSYS;
	return core->collective->barrier2(core, coll_addr, flags, context);
}

struct fi_ops_collective mrrc_collective_fwd_ops = {
	.size = sizeof(struct fi_ops_collective),
	MRRC_COLLECTIVE_CALLS(ENTRY).barrier2 = fwd_collective_barrier2,
};

struct fi_ops_msg mrrc_msg_checked_ops;
struct fi_ops_tagged mrrc_tagged_checked_ops;

void mrrc_checked_init(void)
{
	mrrc_msg_checked_ops = mrrc_msg_fwd_ops;
	mrrc_msg_checked_ops.recv = mrrc_msg_ops.recv;
	mrrc_msg_checked_ops.recvv = mrrc_msg_ops.recvv;
	mrrc_msg_checked_ops.recvmsg = mrrc_msg_ops.recvmsg;
	mrrc_tagged_checked_ops = mrrc_tagged_fwd_ops;
	mrrc_tagged_checked_ops.recv = mrrc_tagged_ops.recv;
	mrrc_tagged_checked_ops.recvv = mrrc_tagged_ops.recvv;
	mrrc_tagged_checked_ops.recvmsg = mrrc_tagged_ops.recvmsg;
}
