/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads ranges of files into blocks, and sends ranges from blocks or from the
 * files' own pages (serve/server/source.h).
 *
 * A file's times change with the kernel's clock tick, so two changes within one
 * tick look like one. The server therefore determines a file's version only
 * once the clock is past the file's change time: any later change then gets a
 * later change time, which the server sees after each read. The kernel sets a
 * file's times before it changes the bytes, and not again afterwards: so a
 * version is determined only while no write is under way. A write holds the
 * inode's lock, for which lseek(SEEK_DATA) waits; on XFS reads wait for a write
 * instead.
 */
#include "config.h"
#include "serve/server/source.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/fi_ext_mrrc.h>

#include <xxhash.h>

#include "serve/wire/path.h"

#define TRIES 3
/* ms; more than a clock tick, which is at most 10 ms */
#define TRY_MS	  12
#define FUTURE_NS 2000000000 /* ns beyond now: the time is of another clock */
/* ns; a write(2) of a small file takes less time */
#define WRITE_NS 2000000000

/* Sending a file's own pages costs as much as reading some MiB. */
#define PAGES_MIN ((uint64_t) 4 << 20)
/* Bytes read and hashed at a time, which stay in the processor's cache. */
#define CHUNK ((size_t) 64 << 10)

enum serve_status source_status(int ret)
{
	switch (-ret) {
	case 0:
		return SERVE_OK;
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		return SERVE_NOENT;
	case EACCES:
	case EPERM:
		return SERVE_ACCES;
	case ELOOP:
	case EXDEV:
		return SERVE_LINK;
	case ENOTSUP:
	case ENXIO:
	case ENODEV:
		return SERVE_SPECIAL;
	case EAGAIN: /* the file was under a lease, which this open has ended */
		return SERVE_BUSY;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return SERVE_NO_RESOURCE;
	default:
		return SERVE_IO;
	}
}

static int64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME_COARSE, &ts);
	return (int64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/*
 * Did the file change at most @age ns before @now? Clocks may differ slightly.
 */
static bool is_fresh(const struct serve_ident *ident, int64_t now, int64_t age)
{
	return ident->ctime_ns >= now - age &&
	       ident->ctime_ns - now < FUTURE_NS;
}

/* Determines the version of the file. now: without waiting. */
static enum serve_status identify(int fd, struct stat *st, bool now,
				  struct serve_ident *ident)
{
	const struct timespec pause = { .tv_nsec = TRY_MS * 1000000 };
	int64_t begin;
	unsigned i;

	path_ident(st, ident);
	if (now)
		return is_fresh(ident, clock_ns(), WRITE_NS) ? SERVE_BUSY :
							       SERVE_OK;
	for (i = 0; i < TRIES; i++) {
		begin = clock_ns();
		/* wait for the end of a write(2) that is under way */
		lseek(fd, 0, SEEK_DATA);
		if (fstat(fd, st))
			return SERVE_IO;
		path_ident(st, ident);
		if (!is_fresh(ident, begin, 0))
			return SERVE_OK;
		nanosleep(&pause, NULL);
	}
	return SERVE_BUSY;
}

/*
 * Opens the file in the provider, where sending the file's own pages may pay.
 */
static void open_pages(const struct source *source, struct source_file *file)
{
	if (source->copies || file->ident.size < PAGES_MIN ||
	    fi_mrrc_file_open(source->domain, file->fd, 0, &file->pages, NULL))
		file->pages = NULL;
}

enum serve_status source_open(const struct source *source, const char *path,
			      bool now, struct source_file **file)
{
	struct source_file *made;
	enum serve_status status;
	struct stat st;
	int fd;

	fd = path_open_data(source->dir, path,
			    (now ? PATH_NOW : 0) |
				    (source->others ? PATH_OTHERS : 0),
			    &st);
	if (fd < 0)
		return source_status(fd);
	if (S_ISDIR(st.st_mode) || (now && st.st_size > SERVE_INLINE_MAX)) {
		close(fd);
		return SERVE_IS_DIR;
	}
	made = calloc(1, sizeof(*made));
	status = made ? identify(fd, &st, now, &made->ident) :
			SERVE_NO_RESOURCE;
	if (status != SERVE_OK) {
		free(made);
		close(fd);
		return status;
	}
	made->fd = fd;
	made->uses = 1;
	open_pages(source, made);
	*file = made;
	return SERVE_OK;
}

enum serve_status source_dir_mode(const struct source *source, const char *path,
				  uint16_t *mode)
{
	struct serve_ident ident;
	struct stat st;
	int fd;

	fd = path_open_data(source->dir, path, source->others ? PATH_OTHERS : 0,
			    &st);
	if (fd < 0)
		return source_status(fd);
	close(fd);
	if (!S_ISDIR(st.st_mode))
		return SERVE_CHANGED;
	path_ident(&st, &ident);
	*mode = ident.mode;
	return SERVE_IS_DIR;
}

void source_get(struct source_file *file)
{
	file->uses++;
}

void source_put(struct source_file *file)
{
	if (--file->uses)
		return;
	if (file->pages)
		fi_close(&file->pages->fid);
	close(file->fd);
	free(file);
}

int source_block_need(struct source_block *block)
{
	struct fid_mr *mr;

	return block->buf ? 0 :
			    fi_mr_alloc(block->domain, block->size, 0, 0,
					&block->buf, &mr);
}

void source_block_free(struct source_block *block)
{
	if (block->buf)
		fi_mr_free(block->domain, block->buf);
	block->buf = NULL;
}

/*
 * Reads some bytes. A file that PATH_NOW opens but that cannot be read without
 * waiting is on tmpfs: the read waits only for swapped pages, as for the
 * server's own memory.
 */
static ssize_t read_some(int fd, void *buf, size_t len, uint64_t off, bool now)
{
	const struct iovec iov = { buf, len };
	ssize_t ret;

	if (now) {
		ret = preadv2(fd, &iov, 1, (off_t) off, RWF_NOWAIT);
		if (ret >= 0 || errno != EOPNOTSUPP)
			return ret;
	}
	return pread(fd, buf, len, (off_t) off);
}

/* Reads len bytes, or up to the file's end; returns the number of bytes. */
static ssize_t read_all(int fd, void *buf, size_t len, uint64_t off, bool now)
{
	size_t done = 0;
	ssize_t ret;

	while (done < len) {
		ret = read_some(fd, (char *) buf + done, len - done, off + done,
				now);
		if (ret < 0 && errno == EINTR)
			continue;
		if (ret < 0)
			return -errno;
		if (!ret)
			break;
		done += (size_t) ret;
	}
	return (ssize_t) done;
}

/* Like read_all(), into buf, which may be NULL; hashes the bytes read. */
static ssize_t read_hashed(int fd, char *buf, size_t len, uint64_t off,
			   bool now, XXH3_state_t *state)
{
	char chunk[CHUNK];
	size_t done = 0, want;
	ssize_t ret;
	char *at;

	while (done < len) {
		at = buf ? buf + done : chunk;
		want = len - done < CHUNK ? len - done : CHUNK;
		ret = read_all(fd, at, want, off + done, now);
		if (ret < 0)
			return ret;
		XXH3_64bits_update(state, at, (size_t) ret);
		done += (size_t) ret;
		if ((size_t) ret < want)
			break;
	}
	return (ssize_t) done;
}

static ssize_t read_range(int fd, char *buf, size_t len, uint64_t off, bool now,
			  uint64_t *hash)
{
	XXH3_state_t *state = XXH3_createState();
	ssize_t ret;

	if (!state)
		return -ENOMEM;
	XXH3_64bits_reset(state);
	ret = read_hashed(fd, buf, len, off, now, state);
	*hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return ret;
}

static bool from_pages(struct source_file *file)
{
	return file->pages &&
	       !atomic_load_explicit(&file->copied, memory_order_relaxed);
}

enum serve_status source_read(struct source_file *file, uint64_t off,
			      size_t max, struct source_block *block,
			      uint32_t *len, uint64_t *hash)
{
	const uint64_t size = file->ident.size;
	struct serve_ident now;
	struct stat st;
	ssize_t got;

	if (off >= size)
		max = 0;
	else if (max > size - off)
		max = size - off;
	if (block) {
		block->off = off;
		block->filled = max && (block->copy || !from_pages(file));
		if (block->filled &&
		    (max > block->size || source_block_need(block)))
			return SERVE_NO_RESOURCE;
	}
	got = read_range(file->fd, block && block->filled ? block->buf : NULL,
			 max, off, block && block->now, hash);
	if (got < 0)
		return source_status((int) got);
	if (fstat(file->fd, &st))
		return SERVE_IO;
	path_ident(&st, &now);
	if ((size_t) got != max || !path_ident_same(&now, &file->ident))
		return SERVE_CHANGED;
	*len = (uint32_t) max;
	return SERVE_OK;
}

/* Does the provider now copy the file's pages? Then blocks are cheaper. */
static bool look_copied(struct source_file *file)
{
	struct fi_mrrc_file_stats attr = { .size = sizeof(attr) };
	bool copied;

	copied = fi_mrrc_file_query(file->pages, &attr) || attr.copied;
	atomic_store_explicit(&file->copied, copied, memory_order_relaxed);
	return copied;
}

ssize_t source_send(struct source_file *file, const struct net_link *link,
		    struct source_block *block, size_t len, uint64_t tag,
		    void *context, bool *own)
{
	ssize_t ret;

	*own = len && !block->filled;
	if (!*own)
		return fi_cwrite(link->cw, len ? block->buf : NULL, len, NULL,
				 link->addr, tag, context);
	ret = fi_mrrc_file_cwrite(file->pages, link->ep, block->off, len,
				  link->addr, tag, context);
	if (!ret)
		*own = !look_copied(file);
	return ret;
}
