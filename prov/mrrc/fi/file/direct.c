/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads parts past the page cache, and reads the next parts ahead (direct.h).
 *
 * A part that was read ahead has the bytes that the file had before the
 * posting. The part is used only under the lease under which it was read: while
 * that lease holds, the file does not change. Reading ahead takes no hold, so
 * that a writer need not wait: when a writer comes, the file loses the lease,
 * and with the lease the parts read ahead.
 *
 * The application posts a part again if the core had no room for it. So a part
 * that was not posted is put in front of the parts read ahead.
 */
#include "config.h"
#include <stdlib.h>
#include <unistd.h>

#include "fi/alloc/alloc.h"
#include "fi/file/file.h"

#define DIRECT_AHEAD	 ((size_t) 16 << 20) /* most for a file */
#define DIRECT_AHEAD_ALL ((size_t) 64 << 20) /* most for a domain */

/* ---- one part ---- */

static void direct_free(struct mrrc_file *file, struct mrrc_direct *direct)
{
	mrrc_alloc_give(&file->domain->reg, direct->read.buf);
	free(direct);
}

static int direct_start(struct mrrc_file *file, uint64_t offset, size_t len,
			uint64_t lease, struct mrrc_direct **out)
{
	struct mrrc_reg *reg = &file->domain->reg;
	const uint64_t mask = file->direct_align - 1;
	const uint64_t from = offset & ~mask;
	const uint64_t end = (offset + len + mask) & ~mask;
	struct mrrc_direct *direct = calloc(1, sizeof(*direct));
	void *buf;
	int ret;

	if (!direct)
		return -FI_ENOMEM;
	ret = mrrc_alloc_take(reg, file->direct_align, end - from, &buf);
	if (ret) {
		free(direct);
		return ret;
	}
	direct->offset = offset;
	direct->len = len;
	direct->addr = (char *) buf + (offset - from);
	direct->lease = lease;
	direct->read = (struct mrrc_ring_read){
		.fd = file->direct_fd,
		.slot = mrrc_alloc_slot(reg, buf, end - from),
		.buf = buf,
		.len = end - from,
		.need = offset + len - from,
		.offset = from,
	};
	mrrc_ring_start(atomic_load(&reg->ring), &direct->read);
	*out = direct;
	return 0;
}

/* ---- parts ahead; the file's lock held ---- */

static void ahead_add(struct mrrc_file *file, struct mrrc_direct *direct)
{
	TAILQ_INSERT_TAIL(&file->parts_ahead, direct, link);
	file->ahead += direct->len;
	atomic_fetch_add(&file->shared->ahead, direct->len);
}

static void ahead_take(struct mrrc_file *file, struct mrrc_direct *direct)
{
	TAILQ_REMOVE(&file->parts_ahead, direct, link);
	file->ahead -= direct->len;
	atomic_fetch_sub(&file->shared->ahead, direct->len);
}

static void ahead_drop(struct mrrc_file *file, struct mrrc_direct *direct)
{
	ahead_take(file, direct);
	mrrc_ring_cancel(atomic_load(&file->domain->reg.ring), &direct->read);
	direct_free(file, direct);
}

static void ahead_drop_all(struct mrrc_file *file)
{
	struct mrrc_direct *direct;

	while ((direct = TAILQ_FIRST(&file->parts_ahead)))
		ahead_drop(file, direct);
}

/*
 * Takes the part at offset, if it was read ahead under this lease; drops all
 * parts before it.
 */
static struct mrrc_direct *ahead_find(struct mrrc_file *file, uint64_t offset,
				      size_t len, uint64_t lease)
{
	struct mrrc_direct *direct;

	while ((direct = TAILQ_FIRST(&file->parts_ahead))) {
		if (lease && direct->lease == lease &&
		    direct->offset == offset && direct->len == len) {
			ahead_take(file, direct);
			return direct;
		}
		ahead_drop(file, direct);
	}
	return NULL;
}

/* Reads parts of this length ahead, from offset on, more parts each time. */
static void ahead_more(struct mrrc_file *file, uint64_t offset, size_t len,
		       uint64_t length, uint64_t lease)
{
	const size_t most = len << file->run < DIRECT_AHEAD ? len << file->run :
							      DIRECT_AHEAD;
	struct mrrc_direct *last =
		TAILQ_LAST(&file->parts_ahead, mrrc_direct_list);

	if (last)
		offset = last->offset + last->len;
	while (offset < length && file->ahead + len <= most &&
	       atomic_load(&file->shared->ahead) + len <= DIRECT_AHEAD_ALL) {
		if (len > length - offset)
			len = length - offset;
		if (direct_start(file, offset, len, lease, &last))
			break;
		ahead_add(file, last);
		offset += len;
	}
}

/* ---- calls ---- */

static int direct_get(struct mrrc_file *file, uint64_t offset, size_t len,
		      bool follows, uint64_t lease, uint64_t length,
		      struct mrrc_direct **out)
{
	struct mrrc_direct *direct;
	int ret = 0;

	if (!follows)
		file->run = 0;
	direct = ahead_find(file, offset, len, lease);
	if (direct)
		atomic_fetch_add(&file->ahead_bytes, len);
	else
		ret = direct_start(file, offset, len, lease, &direct);
	if (ret)
		return ret;
	if (lease && follows && len <= DIRECT_AHEAD) {
		ahead_more(file, offset + len, len, length, lease);
		if (len << file->run < DIRECT_AHEAD)
			file->run++;
	}
	*out = direct;
	return 0;
}

int mrrc_direct_get(struct mrrc_file *file, uint64_t offset, size_t len,
		    bool follows, struct mrrc_direct **out)
{
	uint64_t lease = 0, length = 0;
	struct mrrc_direct *direct;
	int ret;

	if (!mrrc_fd_is(file->direct_fd, &file->id))
		return -FI_EAGAIN;
	ret = mrrc_file_leased(file, offset, len, &lease, &length);
	if (ret && ret != -FI_EAGAIN)
		return ret;
	mrrc_mutex_lock(&file->lock);
	ret = direct_get(file, offset, len, follows, lease, length, &direct);
	mrrc_mutex_unlock(&file->lock);
	if (ret)
		return ret;
	/* checked again: the bytes may be another file's */
	if (!mrrc_ring_wait(atomic_load(&file->domain->reg.ring),
			    &direct->read) ||
	    !mrrc_fd_is(file->direct_fd, &file->id)) {
		direct_free(file, direct);
		return -FI_EAGAIN;
	}
	*out = direct;
	return 0;
}

void mrrc_direct_put(struct mrrc_file *file, struct mrrc_direct *direct,
		     bool again)
{
	if (mrrc_file_forked(file)) {
		free(direct);
		return;
	}
	if (!again || !direct->lease) {
		direct_free(file, direct);
		return;
	}
	mrrc_mutex_lock(&file->lock);
	ahead_add(file, direct);
	TAILQ_REMOVE(&file->parts_ahead, direct, link);
	TAILQ_INSERT_HEAD(&file->parts_ahead, direct, link);
	mrrc_mutex_unlock(&file->lock);
}

/* ---- open and close ---- */

static int direct_ring(struct mrrc_reg *reg)
{
	struct mrrc_ring *ring = atomic_load(&reg->ring), *fresh;
	int ret;

	if (ring)
		return 0;
	ret = mrrc_ring_open(&fresh);
	if (ret)
		return ret;
	if (!atomic_compare_exchange_strong(&reg->ring, &ring, fresh))
		mrrc_ring_close(fresh);
	return 0;
}

int mrrc_direct_open(struct mrrc_file *file)
{
	int ret;

	ret = direct_ring(&file->domain->reg);
	if (ret == -EOPNOTSUPP) {
		MRRC_WARN(MR, "FI_MRRC_FILE_DIRECT: built without liburing\n");
		return -FI_EOPNOTSUPP;
	}
	if (ret == -ELIBACC) {
		MRRC_WARN(MR, "FI_MRRC_FILE_DIRECT: liburing.so.2 cannot be "
			      "loaded; Debian has it in liburing2\n");
		return -FI_EOPNOTSUPP;
	}
	if (ret == -EPERM || ret == -ENOSYS) {
		MRRC_WARN(MR,
			  "FI_MRRC_FILE_DIRECT: io_uring is refused: %s; see "
			  "/proc/sys/kernel/io_uring_disabled, or the "
			  "container's seccomp profile\n",
			  fi_strerror(-ret));
		return -FI_EOPNOTSUPP;
	}
	if (!ret)
		ret = mrrc_ring_file(file->fd, &file->direct_align,
				     &file->direct_fd);
	if (ret == -EOPNOTSUPP)
		MRRC_WARN(MR, "FI_MRRC_FILE_DIRECT: the file system of the "
			      "file does not support O_DIRECT\n");
	return ret;
}

void mrrc_direct_close(struct mrrc_file *file)
{
	struct mrrc_direct *direct;

	if (mrrc_file_forked(file)) {
		while ((direct = TAILQ_FIRST(&file->parts_ahead))) {
			ahead_take(file, direct);
			free(direct);
		}
	} else {
		ahead_drop_all(file);
	}
	if (mrrc_fd_is(file->direct_fd, &file->id))
		close(file->direct_fd);
}
