/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data calls of recorded objects: each notes which call it is and makes the
 * usual call, so that the usual calls need no code for recording and cost
 * nothing more if nothing is recorded. Recorded calls also note uses for a
 * predicting helper, as noted.c does.
 *
 * The call site is the return address of the application's call, or of a call
 * by a library in between. A return address is cheap to get, and good enough to
 * tell calls apart.
 */
#include "config.h"
#include "fi/data/calls.h"
#include "fi/data/note.h"
#include "fi/data/tables.h"
#include "fi/record/record.h"

/* Records the peer; a connected endpoint stands for its peer. */
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

#define RECORD(group, call, what, peer, params, note, ...)                  \
	static ssize_t record_##group##_##call params                       \
	{                                                                   \
		const void *site = __builtin_return_address(0);             \
		const bool predicts = mrrc_ep_of(ep)->domain->reg.predicts; \
		struct mrrc_cache_mt *cache = mrrc_note_cache(ep);          \
		const bool noted = predicts && note;                        \
		ssize_t ret;                                                \
                                                                            \
		record_call(MRRC_TRACE_##what, ep, peer, site);             \
		ret = mrrc_##group##_ops.call(ep, __VA_ARGS__);             \
		if (noted)                                                  \
			mrrc_cache_use_wake(cache);                         \
		return ret;                                                 \
	}

#define RECORD_NOTED(group, call, what, peer, params, ...) \
	RECORD(group, call, what, peer, params, MRRC_NOTE(call), __VA_ARGS__)

#define RECORD_ATOMIC(group, call, what, peer, params, ...) \
	RECORD(group, call, what, peer, params, false, __VA_ARGS__)

#define ENTRY(group, call, ...) .call = record_##group##_##call,

MRRC_MSG_CALLS(RECORD_NOTED)

struct fi_ops_msg mrrc_recorded_msg_ops = { .size = sizeof(struct fi_ops_msg),
					    MRRC_MSG_CALLS(ENTRY) };

MRRC_TAGGED_CALLS(RECORD_NOTED)

struct fi_ops_tagged mrrc_recorded_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged), MRRC_TAGGED_CALLS(ENTRY)
};

MRRC_RMA_CALLS(RECORD_NOTED)

struct fi_ops_rma mrrc_recorded_rma_ops = { .size = sizeof(struct fi_ops_rma),
					    MRRC_RMA_CALLS(ENTRY) };

MRRC_ATOMIC_CALLS(RECORD_ATOMIC)

struct fi_ops_atomic mrrc_recorded_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic), MRRC_ATOMIC_CALLS(ENTRY)
};

/* Calls without memory to be registered are the usual ones. */
#define SAME(type, group, call, ...) \
	mrrc_recorded_##group##_ops.call = mrrc_##group##_ops.call;

void mrrc_recorded_init(void)
{
	MRRC_MSG_PLAIN_CALLS(SAME)
	MRRC_TAGGED_PLAIN_CALLS(SAME)
	MRRC_RMA_PLAIN_CALLS(SAME)
	MRRC_ATOMIC_PLAIN_CALLS(SAME)
}
