/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Notes the buffers of data calls that come without a descriptor, for a helper
 * that predicts uses.
 *
 * MRRC_NOTE(CALL): notes the buffers of a call of fi/data/calls.h that is no
 * atomic, with the cache and the call site in `cache` and `site`; tells whether
 * a buffer was noted.
 */
#ifndef MRRC_NOTE_H
#define MRRC_NOTE_H

#include "fi/mrrc_fi.h"
#include "sys/cache/cache_use.h"

static inline struct mrrc_cache_mt *mrrc_note_cache(struct fid_ep *ep)
{
	return mrrc_ep_of(ep)->domain->reg.cache;
}

static inline bool mrrc_note(struct mrrc_cache_mt *cache, const void *buf,
			     size_t len, const void *desc, const void *site)
{
	return !desc && mrrc_cache_use(cache, buf, len, site);
}

static inline bool mrrc_note_iov(struct mrrc_cache_mt *cache,
				 const struct iovec *iov, void *const *desc,
				 size_t count, const void *site)
{
	bool any = false;
	size_t i;

	for (i = 0; i < count; i++)
		any |= mrrc_note(cache, iov[i].iov_base, iov[i].iov_len,
				 desc ? desc[i] : NULL, site);
	return any;
}

#define MRRC_NOTE_BUF mrrc_note(cache, buf, len, desc, site)
#define MRRC_NOTE_IOV mrrc_note_iov(cache, iov, desc, count, site)
#define MRRC_NOTE_MSG \
	mrrc_note_iov(cache, msg->msg_iov, msg->desc, msg->iov_count, site)
/* FI_DISCARD ignores the buffers, which need not exist */
#define MRRC_NOTE_RECVMSG (!(flags & FI_DISCARD) && MRRC_NOTE_MSG)

#define MRRC_NOTE_recv	    MRRC_NOTE_BUF
#define MRRC_NOTE_recvv	    MRRC_NOTE_IOV
#define MRRC_NOTE_recvmsg   MRRC_NOTE_RECVMSG
#define MRRC_NOTE_send	    MRRC_NOTE_BUF
#define MRRC_NOTE_sendv	    MRRC_NOTE_IOV
#define MRRC_NOTE_sendmsg   MRRC_NOTE_MSG
#define MRRC_NOTE_senddata  MRRC_NOTE_BUF
#define MRRC_NOTE_read	    MRRC_NOTE_BUF
#define MRRC_NOTE_readv	    MRRC_NOTE_IOV
#define MRRC_NOTE_readmsg   MRRC_NOTE_MSG
#define MRRC_NOTE_write	    MRRC_NOTE_BUF
#define MRRC_NOTE_writev    MRRC_NOTE_IOV
#define MRRC_NOTE_writemsg  MRRC_NOTE_MSG
#define MRRC_NOTE_writedata MRRC_NOTE_BUF
#define MRRC_NOTE(call)	    MRRC_NOTE_##call

#endif /* MRRC_NOTE_H */
