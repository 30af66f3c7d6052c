/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data calls of domains whose helper predicts uses: each notes its buffers,
 * makes the usual call, and then wakes the helper if the helper sleeps. So the
 * usual calls, made where nothing is predicted, contain no code for notes.
 * Atomics do not note their buffers, which are too small.
 *
 * The call site is the return address of the application's call, or of a call
 * by a library in between.
 */
#include "config.h"
#include "fi/data/calls.h"
#include "fi/data/note.h"
#include "fi/data/tables.h"

#define NOTED(group, call, what, peer, params, ...)                \
	static ssize_t noted_##group##_##call params               \
	{                                                          \
		const void *site = __builtin_return_address(0);    \
		struct mrrc_cache_mt *cache = mrrc_note_cache(ep); \
		const bool noted = MRRC_NOTE(call);                \
		ssize_t ret;                                       \
                                                                   \
		ret = mrrc_##group##_ops.call(ep, __VA_ARGS__);    \
		if (noted)                                         \
			mrrc_cache_use_wake(cache);                \
		return ret;                                        \
	}

#define ENTRY(group, call, ...) .call = noted_##group##_##call,

MRRC_MSG_CALLS(NOTED)

struct fi_ops_msg mrrc_noted_msg_ops = { .size = sizeof(struct fi_ops_msg),
					 MRRC_MSG_CALLS(ENTRY) };

MRRC_TAGGED_CALLS(NOTED)

struct fi_ops_tagged mrrc_noted_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged), MRRC_TAGGED_CALLS(ENTRY)
};

MRRC_RMA_CALLS(NOTED)

struct fi_ops_rma mrrc_noted_rma_ops = { .size = sizeof(struct fi_ops_rma),
					 MRRC_RMA_CALLS(ENTRY) };

/* Calls without memory to be registered are the usual ones. */
#define SAME(type, group, call, ...) \
	mrrc_noted_##group##_ops.call = mrrc_##group##_ops.call;

void mrrc_noted_init(void)
{
	MRRC_MSG_PLAIN_CALLS(SAME)
	MRRC_TAGGED_PLAIN_CALLS(SAME)
	MRRC_RMA_PLAIN_CALLS(SAME)
}
