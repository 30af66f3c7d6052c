/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Publishes counters for other processes (stats_shm.h).
 *
 * A forked child shares the segment's pages with its parent. The child does not
 * write to these pages, as nothing is counted in a child (mrrc_mon_forked), and
 * closes only its own mapping and descriptor.
 */
#include "config.h"
#include "sys/observe/stats_shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bsd/sys/queue.h>

#include "sys/base/fd_id.h"
#include "sys/base/file_limit.h"
#include "sys/base/threads.h"
#include "sys/monitor/uffd.h"
#include "sys/base/vm.h"

#define SEGMENT_ALIGN 64

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
/* Seals: the size stays, and only the existing mapping may write. */
#define SEGMENT_SEALS \
	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

struct mrrc_stats_shm {
	struct mrrc_stats_shm_head *head;
	size_t size;
	int fd;
	struct mrrc_fd_id id; /* identity of fd */
	void (*asks)(void *arg, char why[MRRC_TRUST_WHY]);
	void (*lacks)(void *arg, char text[MRRC_STATS_SHM_LACKS]);
	void (*collect)(void *arg);
	void *arg;
	pthread_t thread;
	bool runs; /* the thread runs; not in a child */
	atomic_bool stop;
	bool listed;			  /* segments.lock */
	TAILQ_ENTRY(mrrc_stats_shm) link; /* segments.lock */
};

/* Published segments whose texts change. */
static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	TAILQ_HEAD(segment_head, mrrc_stats_shm) head;
} segments = {
	.once = PTHREAD_ONCE_INIT,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.head = TAILQ_HEAD_INITIALIZER(segments.head),
};

static void segment_fork_prepare(void)
{
	pthread_mutex_lock(&segments.lock);
}

static void segment_fork_parent(void)
{
	pthread_mutex_unlock(&segments.lock);
}

/* The child forgets the segments, which are the parent's. */
static void segment_fork_child(void)
{
	struct mrrc_stats_shm *segment;

	while ((segment = TAILQ_FIRST(&segments.head))) {
		TAILQ_REMOVE(&segments.head, segment, link);
		segment->listed = false;
		segment->runs = false;
	}
	pthread_mutex_unlock(&segments.lock);
}

static void segment_once(void)
{
	pthread_atfork(segment_fork_prepare, segment_fork_parent,
		       segment_fork_child);
}

static size_t segment_align(size_t size)
{
	return (size + SEGMENT_ALIGN - 1) & ~(size_t) (SEGMENT_ALIGN - 1);
}

static size_t segment_values(void)
{
	return segment_align(sizeof(struct mrrc_stats_shm_head));
}

static size_t segment_names(void)
{
	return segment_align(segment_values() + sizeof(struct mrrc_stats));
}

/* The size of the names, which it writes to @names unless that is NULL. */
static size_t segment_put_names(char *names)
{
	size_t size = 0;
	size_t len;
	int i;

	for (i = 0; i < MRRC_STAT_SHARED; i++) {
		len = strlen(mrrc_stat_name(i)) + 1;
		if (names)
			memcpy(names + size, mrrc_stat_name(i), len);
		size += len;
	}
	return size;
}

/*
 * Reserve memory for the file first: a page that is missing later is a SIGBUS.
 */
static int segment_map(struct mrrc_stats_shm *segment)
{
	void *map;
	int ret;

	if (!mrrc_file_may(segment->size))
		return -EFBIG;
	if (fallocate(segment->fd, 0, 0, segment->size))
		return -errno;
	ret = mrrc_fd_id(segment->fd, &segment->id);
	if (ret)
		return ret;
	map = mmap(NULL, segment->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   segment->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	if (fcntl(segment->fd, F_ADD_SEALS, SEGMENT_SEALS)) {
		ret = -errno;
		munmap(map, segment->size);
		return ret;
	}
	segment->head = map;
	return 0;
}

int mrrc_stats_shm_open(struct mrrc_stats_shm **out)
{
	const size_t page = mrrc_vm_page();
	struct mrrc_stats_shm *segment;
	int ret;

	pthread_once(&segments.once, segment_once);
	segment = calloc(1, sizeof(*segment));
	if (!segment)
		return -ENOMEM;
	segment->size = (segment_names() + segment_put_names(NULL) + page - 1) &
			~(page - 1);
	segment->fd = memfd_create(MRRC_STATS_SHM_NAME,
				   MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (segment->fd < 0) {
		ret = -errno;
		goto err_free;
	}
	ret = segment_map(segment);
	if (ret)
		goto err_close;
	*out = segment;
	return 0;

err_close:
	close(segment->fd);
err_free:
	free(segment);
	return ret;
}

struct mrrc_stats *mrrc_stats_shm_stats(struct mrrc_stats_shm *segment)
{
	return (struct mrrc_stats *) ((char *) segment->head +
				      segment_values());
}

static void segment_plain(char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}

/*
 * Writes the texts. segments.lock held. A reader finds the old text or the new
 * one, never a mixture.
 */
static void segment_say(struct mrrc_stats_shm *segment)
{
	struct mrrc_stats_shm_head *head = segment->head;
	const uint32_t asks_at = !head->asks_at;
	const uint32_t lacks_at = !head->lacks_at;

	memset(head->asks[asks_at], 0, MRRC_TRUST_WHY);
	if (segment->asks)
		segment->asks(segment->arg, head->asks[asks_at]);
	segment_plain(head->asks[asks_at]);
	__atomic_store_n(&head->asks_at, asks_at, __ATOMIC_RELEASE);
	memset(head->lacks[lacks_at], 0, MRRC_STATS_SHM_LACKS);
	if (segment->lacks)
		segment->lacks(segment->arg, head->lacks[lacks_at]);
	segment_plain(head->lacks[lacks_at]);
	__atomic_store_n(&head->lacks_at, lacks_at, __ATOMIC_RELEASE);
}

void mrrc_stats_shm_update(void)
{
	struct mrrc_stats_shm *segment;

	pthread_mutex_lock(&segments.lock);
	TAILQ_FOREACH(segment, &segments.head, link)
		segment_say(segment);
	pthread_mutex_unlock(&segments.lock);
}

static void segment_list(struct mrrc_stats_shm *segment,
			 const struct mrrc_stats_shm_info *info)
{
	segment->asks = info->asks;
	segment->lacks = info->lacks;
	segment->arg = info->arg;
	pthread_mutex_lock(&segments.lock);
	TAILQ_INSERT_TAIL(&segments.head, segment, link);
	segment->listed = true;
	segment_say(segment);
	pthread_mutex_unlock(&segments.lock);
}

/* ---- the thread ---- */

/*
 * Waits on a shared futex, which a reader can wake although its mapping cannot
 * be written to.
 */
static void segment_futex(uint32_t *word, int op, uint32_t value)
{
	syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static void *segment_serve(void *arg)
{
	struct mrrc_stats_shm *segment = arg;
	struct mrrc_stats_shm_head *head = segment->head;
	uint32_t ticket;

	for (;;) {
		ticket = __atomic_load_n(&head->wake, __ATOMIC_ACQUIRE);
		if (atomic_load(&segment->stop))
			return NULL;
		segment_futex(&head->wake, FUTEX_WAIT, ticket);
		if (atomic_load(&segment->stop))
			return NULL;
		segment->collect(segment->arg);
		pthread_mutex_lock(&segments.lock);
		segment_say(segment);
		pthread_mutex_unlock(&segments.lock);
		__atomic_add_fetch(&head->updates, 1, __ATOMIC_RELEASE);
		segment_futex(&head->updates, FUTEX_WAKE, INT_MAX);
	}
}

/*
 * Starts the segment's thread. Without the thread, the threads' hits are added
 * to the counters only with the next miss.
 */
static void segment_start(struct mrrc_stats_shm *segment)
{
	segment->runs = !mrrc_thread_start(&segment->thread, MRRC_UFFD_STACK,
					   segment_serve, segment);
	segment->head->serves = segment->runs;
	if (segment->runs)
		pthread_setname_np(segment->thread, "mrrc-stats");
}

void mrrc_stats_shm_still(struct mrrc_stats_shm *segment)
{
	if (!segment || !segment->runs)
		return;
	segment->runs = false;
	segment->head->serves = false;
	atomic_store(&segment->stop, true);
	__atomic_add_fetch(&segment->head->wake, 1, __ATOMIC_RELEASE);
	segment_futex(&segment->head->wake, FUTEX_WAKE, INT_MAX);
	mrrc_thread_join(segment->thread);
}

/* ---- life ---- */

void mrrc_stats_shm_publish(struct mrrc_stats_shm *segment,
			    const struct mrrc_stats_shm_info *info)
{
	struct mrrc_stats_shm_head *head = segment->head;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	head->version = MRRC_STATS_SHM_VERSION;
	head->head_size = sizeof(*head);
	head->size = segment->size;
	head->pid = getpid();
	head->opened = now.tv_sec * 1000000000ULL + now.tv_nsec;
	head->max_bytes = info->max_bytes;
	head->max_regions = info->max_regions;
	head->counters = MRRC_STAT_SHARED;
	head->values = segment_values();
	head->names = segment_names();
	head->names_size = segment_put_names((char *) head + segment_names());
	snprintf(head->provider, sizeof(head->provider), "%s", info->provider);
	snprintf(head->policy, sizeof(head->policy), "%s", info->policy);
	snprintf(head->monitor, sizeof(head->monitor), "%s", info->monitor);
	head->registers = info->registers;
	if (info->asks || info->lacks)
		segment_list(segment, info);
	segment->collect = info->collect;
	if (info->collect)
		segment_start(segment);
	atomic_thread_fence(memory_order_release);
	*(volatile uint64_t *) &head->magic = MRRC_STATS_SHM_MAGIC;
}

void mrrc_stats_shm_close(struct mrrc_stats_shm *segment)
{
	if (!segment)
		return;
	pthread_mutex_lock(&segments.lock);
	if (segment->listed)
		TAILQ_REMOVE(&segments.head, segment, link);
	pthread_mutex_unlock(&segments.lock);
	munmap(segment->head, segment->size);
	if (mrrc_fd_is(segment->fd, &segment->id))
		close(segment->fd);
	free(segment);
}
