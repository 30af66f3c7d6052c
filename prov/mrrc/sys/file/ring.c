/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads past the page cache, and the thread that submits these reads (ring.h).
 *
 * A read has a request for each MiB. The thread submits the queued requests,
 * waits for the next completion, but only a short while, since reads may be
 * queued meanwhile, and counts completed requests. Even after a failure the
 * thread waits for submitted requests, since the kernel writes into their
 * memory: if the application has closed the ring's descriptor, the thread polls
 * the mapped completion queue.
 */
#include "config.h"
#include "sys/file/ring.h"

#include <errno.h>

#ifdef HAVE_LIBURING

#include <dlfcn.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sys/base/fd_id.h"
#include "sys/base/lock.h"
#include "sys/base/threads.h"
#include "sys/base/vm.h"

#define RING_CHUNK   ((size_t) 1 << 20)
#define RING_ENTRIES 64u /* requests at a time */
#define RING_SLOTS   256
#define RING_POLL_NS 500000
#define RING_LAST    ((uintptr_t) 1) /* flag of a read's last request */

struct mrrc_ring {
	struct io_uring ring;
	struct mrrc_fd_id id;
	pthread_t thread;
	bool fixed;	       /* constant: memory can be registered */
	struct mrrc_lock lock; /* guards the next fields */
	pthread_cond_t wake, ended;
	TAILQ_HEAD(, mrrc_ring_read) queue;
	unsigned flight;
	int started; /* 1: not yet; 0: yes; else -E* */
	bool failed; /* nothing is submitted any more */
	bool stop;
	bool used[RING_SLOTS];
};

/* ---- the library ---- */

#define URING_FN(name) __typeof__(io_uring_##name) *name

/*
 * Functions of liburing, which the first ring loads, not the provider's start:
 * liburing calls mmap and munmap past libc, in places that are not hooked, so
 * that in a process that has loaded liburing lookups must ask the kernel
 * (prove.h).
 */
static struct {
	pthread_once_t once;
	bool loaded;
	URING_FN(queue_init);
	URING_FN(queue_exit);
	URING_FN(ring_dontfork);
	URING_FN(register_buffers_sparse);
	URING_FN(register_buffers_update_tag);
	URING_FN(submit);
	URING_FN(wait_cqe_timeout);
} uring = { .once = PTHREAD_ONCE_INIT };

static void uring_load(void)
{
	static const struct {
		const char *name;
		void *at;
	} symbol[] = {
		{ "io_uring_queue_init", &uring.queue_init },
		{ "io_uring_queue_exit", &uring.queue_exit },
		{ "io_uring_ring_dontfork", &uring.ring_dontfork },
		{ "io_uring_register_buffers_sparse",
		  &uring.register_buffers_sparse },
		{ "io_uring_register_buffers_update_tag",
		  &uring.register_buffers_update_tag },
		{ "io_uring_submit", &uring.submit },
		{ "io_uring_wait_cqe_timeout", &uring.wait_cqe_timeout },
	};
	void *library = dlopen("liburing.so.2", RTLD_NOW | RTLD_LOCAL);
	void *found;
	size_t i;

	for (i = 0; library && i < sizeof(symbol) / sizeof(*symbol); i++) {
		found = dlsym(library, symbol[i].name);
		if (!found)
			return;
		memcpy(symbol[i].at, &found, sizeof(found));
	}
	uring.loaded = library;
}

/*
 * Is the descriptor still the ring's? The application may have closed the
 * descriptor, and its number may be another file's.
 */
static bool ring_whole(const struct mrrc_ring *ring)
{
	return mrrc_fd_is(ring->ring.ring_fd, &ring->id);
}

/* Removes the queued requests of this read. Lock held. */
static void ring_unqueue(struct mrrc_ring *ring, struct mrrc_ring_read *read)
{
	if (!read->queued)
		return;
	TAILQ_REMOVE(&ring->queue, read, link);
	read->queued = false;
	if (!read->flight)
		pthread_cond_broadcast(&ring->ended);
}

/*
 * Fails all reads. Lock held. A request that the kernel did not take stays in
 * the queue.
 */
static void ring_fail(struct mrrc_ring *ring)
{
	struct mrrc_ring_read *read;

	ring->failed = true;
	while ((read = TAILQ_FIRST(&ring->queue))) {
		read->missing = true;
		ring_unqueue(ring, read);
	}
}

/* ---- the thread ---- */

/*
 * Asks the kernel for the next bytes of a read. Lock held. false: that fails.
 */
static bool ring_ask(struct mrrc_ring *ring, struct mrrc_ring_read *read)
{
	const size_t left = read->len - read->asked;
	const size_t len = left < RING_CHUNK ? left : RING_CHUNK;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->ring);
	char *buf = read->buf + read->asked;
	const uint64_t at = read->offset + read->asked;

	if (!sqe)
		return false;
	if (read->slot < 0)
		io_uring_prep_read(sqe, read->fd, buf, len, at);
	else
		io_uring_prep_read_fixed(sqe, read->fd, buf, len, at,
					 read->slot);
	sqe->user_data = (uintptr_t) read | (len == left ? RING_LAST : 0);
	if (uring.submit(&ring->ring) < 1)
		return false;
	read->asked += len;
	read->flight++;
	ring->flight++;
	if (len == left)
		ring_unqueue(ring, read);
	return true;
}

/* Lock held. */
static void ring_submit(struct mrrc_ring *ring)
{
	struct mrrc_ring_read *read;

	while (ring->flight < RING_ENTRIES &&
	       (read = TAILQ_FIRST(&ring->queue))) {
		if (ring->failed || !ring_whole(ring) || !ring_ask(ring, read))
			ring_fail(ring);
	}
}

/* Lock held: a request has ended. */
static void ring_count(struct mrrc_ring *ring, uintptr_t data, int got)
{
	struct mrrc_ring_read *read = (void *) (data & ~RING_LAST);
	size_t want = RING_CHUNK;

	if (data & RING_LAST)
		want = read->need - (read->len - 1) / RING_CHUNK * RING_CHUNK;
	if (got < 0 || (size_t) got < want)
		read->missing = true;
	ring->flight--;
	read->flight--;
	if (!read->flight && !read->queued)
		pthread_cond_broadcast(&ring->ended);
}

/* Lock held. */
static void ring_reap(struct mrrc_ring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;

	io_uring_for_each_cqe(&ring->ring, head, cqe)
	{
		ring_count(ring, cqe->user_data, cqe->res);
		n++;
	}
	io_uring_cq_advance(&ring->ring, n);
}

/* Waits until a request has ended, or a short time. */
static void ring_block(struct mrrc_ring *ring)
{
	struct __kernel_timespec wait = { .tv_nsec = RING_POLL_NS };
	const struct timespec poll = { .tv_nsec = RING_POLL_NS };
	struct io_uring_cqe *cqe;
	int ret = -EBADF;

	if (ring_whole(ring))
		ret = uring.wait_cqe_timeout(&ring->ring, &cqe, &wait);
	if (ret && ret != -ETIME)
		nanosleep(&poll, NULL);
}

static int ring_setup(struct mrrc_ring *ring)
{
	int ret;

	ret = uring.queue_init(RING_ENTRIES, &ring->ring, 0);
	if (ret)
		return ret;
	ret = mrrc_fd_id(ring->ring.ring_fd, &ring->id);
	if (!ret && !(ring->ring.features & IORING_FEAT_EXT_ARG))
		ret = -ENOSYS; /* before Linux 5.11: no timed wait */
	if (ret) {
		uring.queue_exit(&ring->ring);
		return ret;
	}
	uring.ring_dontfork(&ring->ring);
	/* succeeds from Linux 5.19 on */
	ring->fixed = !uring.register_buffers_sparse(&ring->ring, RING_SLOTS);
	return 0;
}

static void ring_exit(struct mrrc_ring *ring)
{
	if (!ring_whole(ring))
		ring->ring.ring_fd = -1; /* the file is not ours to close */
	uring.queue_exit(&ring->ring);
}

static void *ring_run(void *arg)
{
	struct mrrc_ring *ring = arg;
	const int ret = ring_setup(ring);

	mrrc_lock_acquire(&ring->lock);
	ring->started = ret;
	pthread_cond_broadcast(&ring->ended);
	while (!ret && !ring->stop) {
		ring_submit(ring);
		if (!ring->flight) {
			mrrc_lock_wait(&ring->lock, &ring->wake);
			continue;
		}
		mrrc_lock_release(&ring->lock);
		ring_block(ring);
		mrrc_lock_acquire(&ring->lock);
		ring_reap(ring);
	}
	mrrc_lock_release(&ring->lock);
	if (!ret)
		ring_exit(ring);
	return NULL;
}

/* ---- open and close ---- */

static void ring_free(struct mrrc_ring *ring)
{
	pthread_cond_destroy(&ring->wake);
	pthread_cond_destroy(&ring->ended);
	mrrc_lock_fini(&ring->lock);
	free(ring);
}

int mrrc_ring_open(struct mrrc_ring **out)
{
	struct mrrc_ring *ring;
	int ret;

	pthread_once(&uring.once, uring_load);
	if (!uring.loaded)
		return -ELIBACC;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	ret = mrrc_lock_init(&ring->lock, MRRC_RANK_LEAF);
	if (ret) {
		free(ring);
		return ret;
	}
	TAILQ_INIT(&ring->queue);
	pthread_cond_init(&ring->wake, NULL);
	pthread_cond_init(&ring->ended, NULL);
	ring->started = 1;
	ret = mrrc_thread_start(&ring->thread, 0, ring_run, ring);
	if (ret)
		goto err_free;
	mrrc_lock_acquire(&ring->lock);
	while (ring->started > 0)
		mrrc_lock_wait(&ring->lock, &ring->ended);
	ret = ring->started;
	mrrc_lock_release(&ring->lock);
	if (ret)
		goto err_join;
	*out = ring;
	return 0;

err_join:
	mrrc_thread_join(ring->thread);
err_free:
	ring_free(ring);
	return ret;
}

void mrrc_ring_close(struct mrrc_ring *ring)
{
	mrrc_lock_acquire(&ring->lock);
	ring->stop = true;
	pthread_cond_signal(&ring->wake);
	mrrc_lock_release(&ring->lock);
	mrrc_thread_join(ring->thread);
	ring_free(ring);
}

/* ---- memory ---- */

static bool ring_slot_set(struct mrrc_ring *ring, int slot, void *addr,
			  size_t len)
{
	const struct iovec iov = { addr, len };
	const __u64 tag = 0;

	return ring_whole(ring) &&
	       uring.register_buffers_update_tag(&ring->ring, slot, &iov, &tag,
						 1) == 1;
}

static void ring_slot_free(struct mrrc_ring *ring, int slot)
{
	mrrc_lock_acquire(&ring->lock);
	ring->used[slot] = false;
	mrrc_lock_release(&ring->lock);
}

int mrrc_ring_pin(struct mrrc_ring *ring, void *addr, size_t len)
{
	int slot = 0;

	if (!ring->fixed)
		return -1;
	mrrc_lock_acquire(&ring->lock);
	while (slot < RING_SLOTS && ring->used[slot])
		slot++;
	if (slot < RING_SLOTS)
		ring->used[slot] = true;
	mrrc_lock_release(&ring->lock);
	if (slot == RING_SLOTS)
		return -1;
	if (ring_slot_set(ring, slot, addr, len))
		return slot;
	ring_slot_free(ring, slot);
	return -1;
}

void mrrc_ring_unpin(struct mrrc_ring *ring, int slot)
{
	ring_slot_set(ring, slot, NULL, 0);
	ring_slot_free(ring, slot);
}

/* ---- reads ---- */

void mrrc_ring_start(struct mrrc_ring *ring, struct mrrc_ring_read *read)
{
	read->asked = 0;
	read->flight = 0;
	mrrc_lock_acquire(&ring->lock);
	read->missing = false;
	read->queued = true;
	TAILQ_INSERT_TAIL(&ring->queue, read, link);
	pthread_cond_signal(&ring->wake);
	mrrc_lock_release(&ring->lock);
}

bool mrrc_ring_wait(struct mrrc_ring *ring, struct mrrc_ring_read *read)
{
	bool whole;

	mrrc_lock_acquire(&ring->lock);
	while (read->queued || read->flight)
		mrrc_lock_wait(&ring->lock, &ring->ended);
	whole = !read->missing;
	mrrc_lock_release(&ring->lock);
	return whole;
}

void mrrc_ring_cancel(struct mrrc_ring *ring, struct mrrc_ring_read *read)
{
	mrrc_lock_acquire(&ring->lock);
	read->missing = true;
	ring_unqueue(ring, read);
	mrrc_lock_release(&ring->lock);
	mrrc_ring_wait(ring, read);
}

/* The number of which the file's offsets and addresses have to be multiples. */
static size_t ring_file_align(int fd)
{
	size_t align = mrrc_vm_page();
#ifdef STATX_DIOALIGN /* Linux 6.1 */
	struct statx stat;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stat) &&
	    stat.stx_mask & STATX_DIOALIGN) {
		if (!stat.stx_dio_offset_align)
			return 0;
		while (align < stat.stx_dio_offset_align ||
		       align < stat.stx_dio_mem_align)
			align *= 2;
	}
#endif
	return align;
}

int mrrc_ring_file(int fd, size_t *align, int *direct_fd)
{
	char path[40];
	size_t of;
	int new;

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	new = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	if (new < 0)
		return errno == EINVAL ? -EOPNOTSUPP : -errno;
	of = ring_file_align(new);
	if (!of || of > RING_CHUNK) {
		close(new);
		return -EOPNOTSUPP;
	}
	*align = of;
	*direct_fd = new;
	return 0;
}

#else /* HAVE_LIBURING */

int mrrc_ring_open(struct mrrc_ring **ring)
{
	return -EOPNOTSUPP;
}

void mrrc_ring_close(struct mrrc_ring *ring)
{
}

int mrrc_ring_pin(struct mrrc_ring *ring, void *addr, size_t len)
{
	return -1;
}

void mrrc_ring_unpin(struct mrrc_ring *ring, int slot)
{
}

void mrrc_ring_start(struct mrrc_ring *ring, struct mrrc_ring_read *read)
{
}

bool mrrc_ring_wait(struct mrrc_ring *ring, struct mrrc_ring_read *read)
{
	return false;
}

void mrrc_ring_cancel(struct mrrc_ring *ring, struct mrrc_ring_read *read)
{
}

int mrrc_ring_file(int fd, size_t *align, int *direct_fd)
{
	return -EOPNOTSUPP;
}

#endif /* HAVE_LIBURING */
