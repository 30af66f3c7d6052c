/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens and closes files, and asks for their leases (file/file.h). */
#include "config.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fi/alloc/alloc.h"
#include "fi/data/pending.h"
#include "fi/fid.h"
#include "fi/file/file.h"
#include "fi/obj/obj.h"
#include "fi/reg.h"
#include "fi/sized.h"
#include "sys/file/lease_file.h"
#include "sys/monitor/mon.h"

#define FILE_AGAIN_MS 10 /* pause after a writer was met */
#define FILE_IDLE_MAX 64 /* mappings kept after a close */

#define FILE_MODES (FI_MRRC_FILE_COPY | FI_MRRC_FILE_MAP | FI_MRRC_FILE_DIRECT)

bool mrrc_file_forked(const struct mrrc_file *file)
{
	return mrrc_mon_forked(file->domain->reg.mon);
}

/* ---- leases ---- */

/* May the reason for having no lease pass by itself? */
static bool file_passing(int why)
{
	return why == -EAGAIN || why == -ESTALE || why == -ENODATA ||
	       why == -ENOMEM || why == -EMFILE || why == -ENFILE;
}

static void file_no_lease(struct mrrc_file *file, int why)
{
	file->no_lease = why;
	file->again = file_passing(why) ? mrrc_now_ms() + FILE_AGAIN_MS :
					  INT64_MAX;
}

/*
 * Is no lease to be asked for, either because a writer came recently, or never
 * again? The file's lock is held.
 */
static bool file_barred(const struct mrrc_file *file)
{
	return file->again == INT64_MAX || mrrc_now_ms() < file->again;
}

bool mrrc_file_asks(struct mrrc_file *file)
{
	bool asks;

	mrrc_mutex_lock(&file->lock);
	asks = !file->lease && !file_barred(file);
	mrrc_mutex_unlock(&file->lock);
	return asks;
}

static int file_lease(struct mrrc_file *file)
{
	int ret;

	if (file->lease)
		return 0;
	if (file_barred(file))
		return -FI_EAGAIN;
	ret = mrrc_lease_get(file->shared->leases, file->fd, &file->id,
			     &file->lease);
	if (ret) {
		file_no_lease(file, ret);
		return -FI_EAGAIN;
	}
	file->leases++;
	return 0;
}

/* Lock held. */
static int file_hold(struct mrrc_file *file, uint64_t offset, size_t len,
		     struct mrrc_lease_hold *hold, char **addr)
{
	int ret;

	ret = file_lease(file);
	if (!ret)
		ret = mrrc_lease_hold(file->lease, offset, len, hold, addr);
	if (ret == -ESTALE) {
		mrrc_lease_put(file->lease);
		file->lease = NULL;
		file_no_lease(file, ret);
		ret = -FI_EAGAIN;
	}
	return ret;
}

int mrrc_file_hold(struct mrrc_file *file, uint64_t offset, size_t len,
		   struct mrrc_lease_hold *hold, char **addr)
{
	int ret;

	mrrc_mutex_lock(&file->lock);
	ret = file_hold(file, offset, len, hold, addr);
	mrrc_mutex_unlock(&file->lock);
	return ret;
}

int mrrc_file_leased(struct mrrc_file *file, uint64_t offset, size_t len,
		     uint64_t *lease, uint64_t *length)
{
	struct mrrc_lease_hold hold;
	char *addr;
	int ret;

	mrrc_mutex_lock(&file->lock);
	ret = file_hold(file, offset, len, &hold, &addr);
	if (!ret) {
		*lease = file->leases;
		*length = mrrc_lease_file(hold.lease)->len;
		mrrc_lease_release(&hold);
	}
	mrrc_mutex_unlock(&file->lock);
	return ret;
}

/*
 * Does the core refuse to register mappings of the file? FI_MRRC_FILE_DIRECT
 * needs no mappings.
 */
static bool file_refused(const struct mrrc_file *file)
{
	return !(file->flags & FI_MRRC_FILE_DIRECT) &&
	       atomic_load(&file->shared->refused);
}

static const char *file_why(const struct mrrc_file *file)
{
	if (file->flags & FI_MRRC_FILE_COPY)
		return "FI_MRRC_FILE_COPY";
	if (file_refused(file))
		return "the core registers no shared read-only mapping";
	switch (file->no_lease) {
	case 0:
		if (!file->shared->leases)
			return "file leases are not available";
		return atomic_load(&file->copied) ?
			       "parts were short, or read from disk in order" :
			       "nothing was sent yet";
	case -EAGAIN:
		return "the file is open for writing";
	case -ESTALE:
		return "the file was opened for writing";
	case -EACCES:
		return "the file belongs to another user";
	case -EOPNOTSUPP:
		return "its file system keeps no leases";
	case -ENOSYS:
		return "no leases on this system";
	case -ENODATA:
		return "the file is empty";
	default:
		return fi_strerror(-file->no_lease);
	}
}

int mrrc_file_query(struct fid_mrrc_file *file_fid,
		    struct fi_mrrc_file_stats *attr)
{
	struct mrrc_file *file = mrrc_file_of(file_fid);
	struct fi_mrrc_file_stats full = { 0 };
	struct stat stat;

	if (!mrrc_fd_is(file->fd, &file->id) || fstat(file->fd, &stat))
		return -FI_EBADF;
	full.length = stat.st_size;
	full.mapped = atomic_load(&file->mapped);
	full.mapped_bytes = atomic_load(&file->mapped_bytes);
	full.copied = atomic_load(&file->copied);
	full.copied_bytes = atomic_load(&file->copied_bytes);
	full.direct = atomic_load(&file->direct);
	full.direct_bytes = atomic_load(&file->direct_bytes);
	full.ahead_bytes = atomic_load(&file->ahead_bytes);
	mrrc_mutex_lock(&file->lock);
	full.leases = file->leases;
	if (!file->lease || file_refused(file))
		strncpy(full.why, file_why(file), sizeof(full.why) - 1);
	mrrc_mutex_unlock(&file->lock);
	return mrrc_sized_out(attr, &full, sizeof(full));
}

/* ---- the domain's ---- */

static void file_forget(void *arg, uintptr_t start, size_t len)
{
	struct mrrc_domain *domain = arg;

	/* all caches of the process: conditional writes have their own */
	mrrc_mon_invalidate(domain->reg.mon, start, len);
}

/*
 * Lets conditional writes without a tag give up their parts: otherwise a writer
 * of the file would have to wait until the tag comes.
 */
static void file_yield(struct mrrc_domain *domain,
		       const struct mrrc_domain_over *over)
{
	struct mrrc_spare spare = { 0 };
	struct mrrc_reg *reg = NULL;

	do {
		if (spare.len) {
			reg = &spare.domain->reg;
			if (mrrc_alloc_take(reg, 1, spare.len, &spare.buf))
				return;
		}
		over->yield(domain, &spare);
		if (spare.buf)
			mrrc_alloc_give(reg, spare.buf);
		spare.buf = NULL;
	} while (spare.len);
}

static void file_progress(void *arg)
{
	struct mrrc_domain *domain = arg;
	const struct mrrc_domain_over *over = atomic_load(&domain->over);

	if (!domain->any_thread)
		return;
	mrrc_domain_drain_all(domain);
	if (!over)
		return;
	over->progress(domain);
	file_yield(domain, over);
}

static void file_domain_free(struct mrrc_file_domain *shared)
{
	if (shared->leases)
		mrrc_leases_close(shared->leases);
	free(shared);
}

/* To be called with no file open. A child must not end its parent's leases. */
static void file_domain_close(struct mrrc_domain *domain)
{
	struct mrrc_file_domain *shared = atomic_exchange(&domain->files, NULL);
	struct mrrc_ring *ring = atomic_exchange(&domain->reg.ring, NULL);

	if (mrrc_mon_forked(domain->reg.mon))
		return;
	if (ring)
		mrrc_ring_close(ring);
	if (shared)
		file_domain_free(shared);
}

static int file_domain_get(struct mrrc_domain *domain,
			   struct mrrc_file_domain **out)
{
	const struct mrrc_leases_attr attr = {
		.arg = domain,
		.forget = file_forget,
		.progress = file_progress,
		.pins = !(domain->reg.below & MRRC_BELOW_BY_ADDRESS),
		.idle_max = FILE_IDLE_MAX,
	};
	struct mrrc_file_domain *shared = atomic_load(&domain->files), *fresh;
	int ret;

	if (!shared) {
		fresh = calloc(1, sizeof(*fresh));
		if (!fresh)
			return -FI_ENOMEM;
		ret = mrrc_leases_open(&attr, &fresh->leases);
		if (ret)
			MRRC_INFO(MR,
				  "parts of files are copied: file leases "
				  "are not available: %s\n",
				  fi_strerror(-ret));
		domain->files_close = file_domain_close;
		if (atomic_compare_exchange_strong(&domain->files, &shared,
						   fresh))
			shared = fresh;
		else
			file_domain_free(fresh);
	}
	*out = shared;
	return 0;
}

/* ---- open and close ---- */

/*
 * Returns a descriptor of our own, which stays open when the application closes
 * its own. Where the file may be opened again, our descriptor has its own
 * position.
 */
static int file_open_fd(int fd, struct mrrc_file *file)
{
	struct stat stat;
	char path[40];

	if (fstat(fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode)) {
		MRRC_WARN(MR, "descriptor %d is no regular file\n", fd);
		return -FI_EINVAL;
	}
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file->fd < 0)
		file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (file->fd < 0)
		return -errno;
	file->id = (struct mrrc_fd_id){ stat.st_dev, stat.st_ino };
	return 0;
}

static int file_close(struct fid *fid)
{
	struct mrrc_file *file = container_of(fid, struct mrrc_file, file.fid);
	const bool forked = mrrc_file_forked(file);

	if (atomic_load(&file->parts) && !forked)
		return -FI_EBUSY;
	if (file->flags & FI_MRRC_FILE_DIRECT)
		mrrc_direct_close(file);
	if (file->lease && !forked)
		mrrc_lease_put(file->lease);
	if (mrrc_fd_is(file->fd, &file->id))
		close(file->fd);
	mrrc_mutex_fini(&file->lock);
	mrrc_ref_put(&file->domain->ref);
	free(file);
	return 0;
}

static int file_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int file_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

static struct fi_ops file_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = file_close,
	.bind = file_bind,
	.control = file_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

/* May the domain open files, in this way? */
static int file_open_check(const struct mrrc_domain *domain, uint64_t flags)
{
	if ((flags & ~FILE_MODES) || (flags & (flags - 1)))
		return -FI_EBADFLAGS;
	if (!domain->implicit) {
		MRRC_WARN(MR, "operations on files need registrations: set "
			      "FI_OFI_MRRC_REGISTER=always\n");
		return -FI_EOPNOTSUPP;
	}
	return mrrc_mon_forked(domain->reg.mon) ? -FI_EOPNOTSUPP : 0;
}

/*
 * Sets up the descriptors of file, and everything else that can fail; the
 * file's domain and flags are set.
 */
static int file_setup(struct mrrc_file *file, int fd)
{
	int ret;

	ret = file_domain_get(file->domain, &file->shared);
	if (!ret)
		ret = file_open_fd(fd, file);
	if (ret || !(file->flags & FI_MRRC_FILE_DIRECT))
		return ret;
	TAILQ_INIT(&file->parts_ahead);
	ret = mrrc_direct_open(file);
	if (ret)
		close(file->fd);
	return ret;
}

static int file_open(struct fid_domain *domain_fid, int fd, uint64_t flags,
		     struct fid_mrrc_file **out, void *context)
{
	struct mrrc_domain *domain;
	struct mrrc_file *file;
	int ret;

	if (!mrrc_fid_core(&domain_fid->fid) || !out)
		return -FI_EINVAL;
	domain = mrrc_domain_of(domain_fid);
	ret = file_open_check(domain, flags);
	if (ret)
		return ret;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -FI_ENOMEM;
	file->domain = domain;
	file->flags = flags;
	ret = file_setup(file, fd);
	if (ret) {
		free(file);
		return ret;
	}
	if (!file->shared->leases || flags & FI_MRRC_FILE_COPY)
		file_no_lease(file, -ENOSYS);
	mrrc_mutex_init(&file->lock, MRRC_RANK_FILE);
	file->file.fid.fclass = FI_MRRC_CLASS_FILE;
	file->file.fid.context = context;
	file->file.fid.ops = &file_fid_ops;
	file->file.ops = &mrrc_file_ops;
	mrrc_ref_get(&domain->ref);
	*out = &file->file;
	return 0;
}

static const struct fi_mrrc_ops_files file_domain_ops = {
	.size = sizeof(struct fi_mrrc_ops_files),
	.file_open = file_open,
};

static int (*file_ops_open_else)(struct fid *fid, const char *name,
				 uint64_t flags, void **ops, void *context);

static int file_ops_open(struct fid *fid, const char *name, uint64_t flags,
			 void **ops, void *context)
{
	if (!name || strcmp(name, FI_MRRC_FILE_OPS))
		return file_ops_open_else(fid, name, flags, ops, context);
	if (flags)
		return -FI_EBADFLAGS;
	*ops = (void *) &file_domain_ops;
	return 0;
}

void mrrc_file_calls_init(void)
{
	file_ops_open_else = mrrc_domain_fid_ops.ops_open;
	mrrc_domain_fid_ops.ops_open = file_ops_open;
}
