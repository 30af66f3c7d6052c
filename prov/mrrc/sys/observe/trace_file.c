/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recorded requests in a mapped file (trace_file.h).
 */
#include "config.h"
#include "sys/observe/trace_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "sys/observe/stats_shm.h"
#include "sys/base/file_limit.h"
#include "sys/base/own_file.h"
#include "sys/base/vm.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define RECS_HEAD  (MRRC_TRACE_HEAD / sizeof(struct mrrc_trace_rec))
#define RECS_CHUNK (MRRC_TRACE_CHUNK / sizeof(struct mrrc_trace_rec))

/*
 * A chain is the number of a record and, in the bits above, the file's id, by
 * which a forked child recognises copies of its parent's chains.
 */
#define CHAIN_BITS 48
#define CHAIN_IDS  ((1ULL << (64 - CHAIN_BITS)) - 1)

/* The place in the file where the calling thread writes. */
struct trace_thread {
	struct mrrc_trace_file *file;
	uint64_t id; /* the file's id; 0: no file */
	struct mrrc_trace_rec *next;
	struct mrrc_trace_rec *end;
	uint32_t tid;
};

static _Thread_local struct trace_thread trace_thread
	__attribute__((tls_model("initial-exec")));

static _Atomic uint64_t trace_ids;
/* the id of the open file: the file may be closed when a thread ends */
static _Atomic uint64_t trace_current;
static pthread_key_t trace_key;
static int trace_key_rc;

/* ---- numbers of records: from 0, the header counted in records ---- */

static uint64_t trace_number(const struct mrrc_trace_file *file,
			     const struct mrrc_trace_rec *rec)
{
	return rec - (const struct mrrc_trace_rec *) file->head;
}

static struct mrrc_trace_rec *trace_rec(const struct mrrc_trace_file *file,
					uint64_t number)
{
	return (struct mrrc_trace_rec *) file->head + number;
}

/* The end of the chunk that has record @number. */
static struct mrrc_trace_rec *trace_limit(const struct mrrc_trace_file *file,
					  uint64_t number)
{
	number -= RECS_HEAD;
	number += RECS_CHUNK - number % RECS_CHUNK;
	return trace_rec(file, number + RECS_HEAD);
}

/* ---- threads ---- */

/* Called when a thread ends: another thread may use the rest of its chunk. */
static void trace_thread_end(void *arg)
{
	struct trace_thread *thread = arg;
	struct mrrc_trace_file *file = thread->file;
	uint64_t number;
	uint64_t none;
	int i;

	if (!thread->id || thread->id != atomic_load(&trace_current))
		return;
	thread->id = 0;
	if (thread->next == thread->end)
		return;
	number = trace_number(file, thread->next);
	for (i = 0; i < MRRC_TRACE_LEFT; i++) {
		none = 0;
		if (atomic_compare_exchange_strong(&file->left[i], &none,
						   number))
			return;
	}
}

static void trace_key_make(void)
{
	trace_key_rc = -pthread_key_create(&trace_key, trace_thread_end);
}

static bool trace_take_left(struct mrrc_trace_file *file,
			    struct trace_thread *thread)
{
	uint64_t number;
	int i;

	for (i = 0; i < MRRC_TRACE_LEFT; i++) {
		if (!atomic_load_explicit(&file->left[i], memory_order_relaxed))
			continue;
		number = atomic_exchange(&file->left[i], 0);
		if (!number)
			continue;
		thread->next = trace_rec(file, number);
		thread->end = trace_limit(file, number);
		return true;
	}
	return false;
}

/* ---- the file ---- */

/*
 * Writes zeroes, rather than call fallocate(): page faults on written pages are
 * several times faster than on pages that are only allocated (ext4), and every
 * file system can write.
 */
static int trace_write_zeroes(int fd, off_t offset, size_t len)
{
	static const char zero[4096]; /* small: it stays cached */
	struct iovec iov[MRRC_TRACE_CHUNK / sizeof(zero)];
	ssize_t ret;
	size_t i;

	for (i = 0; i < sizeof(iov) / sizeof(*iov); i++)
		iov[i] = (struct iovec){ (void *) zero, sizeof(zero) };
	/*
	 * all lengths are multiples of zero's size, but after a short write the
	 * rest need not be such a multiple
	 */
	while (len) {
		i = len / sizeof(zero);
		ret = i ? pwritev(fd, iov, i, offset) :
			  pwrite(fd, zero, len, offset);
		if (ret < 0 && errno == EINTR)
			continue;
		if (ret <= 0)
			return ret ? -errno : -ENOSPC;
		offset += ret;
		len -= ret;
	}
	return 0;
}

/*
 * Allocates space on disk, and memory of the mapping, for a part of the file:
 * if the space or the memory were missing, a write would raise SIGBUS.
 */
static int trace_grow(struct mrrc_trace_file *file, off_t offset, size_t len)
{
	int ret;

	if (!mrrc_file_may(offset + len))
		return -EFBIG;
	if (!mrrc_fd_is(file->fd, &file->fd_id))
		return -EBADF;
	ret = trace_write_zeroes(file->fd, offset, len);
	if (ret)
		return ret;
	/* MADV_POPULATE_WRITE exists since Linux 5.14 */
	if (file->head &&
	    madvise((char *) file->head + offset, len, MADV_POPULATE_WRITE) &&
	    errno != EINVAL)
		return errno == EFAULT ? -EIO : -errno;
	return 0;
}

static int trace_open_fd(const char *path, struct mrrc_trace_file *file)
{
	struct stat stat;
	int ret;

	file->fd = mrrc_own_file_open(path, O_RDWR);
	if (file->fd < 0)
		return file->fd;
	if (fstat(file->fd, &stat))
		ret = -errno;
	else if (!S_ISREG(stat.st_mode))
		ret = -EINVAL;
	else if (flock(file->fd, LOCK_EX | LOCK_NB))
		ret = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else if (ftruncate(file->fd, 0))
		ret = -errno;
	else
		ret = mrrc_fd_id(file->fd, &file->fd_id);
	if (!ret)
		return 0;
	close(file->fd);
	return ret;
}

static int trace_map(struct mrrc_trace_file *file)
{
	void *map;
	int ret;

	ret = trace_grow(file, 0, MRRC_TRACE_HEAD);
	if (ret)
		return ret;
	map = mmap(NULL, file->len, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_NORESERVE, file->fd, 0);
	if (map == MAP_FAILED)
		return errno == ENOMEM ? -E2BIG : -errno;
	file->head = map;
	return 0;
}

static uint64_t trace_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Writes the magic last: until then the file is no trace. */
static void trace_describe(struct mrrc_trace_file *file)
{
	struct mrrc_trace_head *head = file->head;

	*head = (struct mrrc_trace_head){
		.version = MRRC_TRACE_VERSION,
		.head_size = MRRC_TRACE_HEAD,
		.rec_size = sizeof(struct mrrc_trace_rec),
		.chunk_size = MRRC_TRACE_CHUNK,
		.pid = getpid(),
		.page = mrrc_vm_page(),
		.start = trace_clock(CLOCK_REALTIME),
		.max_bytes = file->len,
	};
	strncpy(head->program, program_invocation_short_name,
		sizeof(head->program) - 1);
	mrrc_trace_swap_head(head);
	/* ThreadSanitizer knows no fences, and sees no other processes */
#ifndef __SANITIZE_THREAD__
	atomic_thread_fence(memory_order_release);
#endif
	memcpy(head->magic, MRRC_TRACE_MAGIC, sizeof(head->magic));
}

int mrrc_trace_file_open(const char *path, uint64_t max_bytes,
			 struct mrrc_trace_file **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct mrrc_trace_file *file;
	int ret;

	pthread_once(&once, trace_key_make);
	if (trace_key_rc)
		return trace_key_rc;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->chunks = max_bytes <= MRRC_TRACE_HEAD ?
			       0 :
			       (max_bytes - MRRC_TRACE_HEAD) / MRRC_TRACE_CHUNK;
	if (!file->chunks)
		file->chunks = 1;
	if (file->chunks > SIZE_MAX / 2 / MRRC_TRACE_CHUNK) {
		ret = -E2BIG;
		goto err_free;
	}
	file->len = MRRC_TRACE_HEAD + file->chunks * MRRC_TRACE_CHUNK;
	ret = trace_open_fd(path, file);
	if (ret)
		goto err_free;
	ret = trace_map(file);
	if (ret)
		goto err_close;
	trace_describe(file);
	file->start = trace_clock(CLOCK_MONOTONIC) - 1;
	file->id = atomic_fetch_add(&trace_ids, 1) + 1;
	atomic_store(&trace_current, file->id);
	*out = file;
	return 0;

err_close:
	close(file->fd);
err_free:
	free(file);
	return ret;
}

void mrrc_trace_file_close(struct mrrc_trace_file *file)
{
	if (atomic_load(&trace_current) == file->id)
		atomic_store(&trace_current, 0);
	munmap(file->head, file->len);
	if (mrrc_fd_is(file->fd, &file->fd_id))
		close(file->fd);
	free(file);
}

void mrrc_trace_file_forked(struct mrrc_trace_file *file)
{
	atomic_store(&trace_current, 0);
	trace_thread.id = 0;
	if (mrrc_fd_is(file->fd, &file->fd_id))
		close(file->fd);
}

/* ---- domains ---- */

static void trace_copy(char *to, size_t size, const char *from)
{
	if (from)
		strncpy(to, from, size - 1);
}

unsigned mrrc_trace_file_domain(struct mrrc_trace_file *file,
				const struct mrrc_stats_shm_info *info,
				const struct mrrc_cost *cost)
{
	struct mrrc_trace_head *head = file->head;
	struct mrrc_trace_domain *domain;
	struct mrrc_trace_cost costs;
	uint32_t number;

	/* the file's byte order does not allow an atomic addition */
	number = le32toh(__atomic_load_n(&head->domains, __ATOMIC_RELAXED));
	while (!__atomic_compare_exchange_n(&head->domains,
					    &(uint32_t){ htole32(number) },
					    htole32(number + 1), false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		number = le32toh(
			__atomic_load_n(&head->domains, __ATOMIC_RELAXED));
	if (number < MRRC_TRACE_DOMAINS) {
		domain = &head->domain[number];
		trace_copy(domain->provider, sizeof(domain->provider),
			   info->provider);
		trace_copy(domain->policy, sizeof(domain->policy),
			   info->policy);
		trace_copy(domain->monitor, sizeof(domain->monitor),
			   info->monitor);
		domain->max_bytes = htole64(info->max_bytes);
		domain->max_regions = htole64(info->max_regions);
	}
	if (cost && number < MRRC_TRACE_COSTS) {
		mrrc_trace_put_cost(cost, &costs);
		mrrc_trace_swap_cost(&costs);
		head->cost[number] = costs;
	}
	return number < UINT16_MAX ? number : UINT16_MAX;
}

/* ---- records ---- */

static bool trace_new_chunk(struct mrrc_trace_file *file,
			    struct trace_thread *thread)
{
	uint64_t number;
	off_t offset;
	int ret;

	if (atomic_load(&file->error))
		return false;
	number = atomic_fetch_add(&file->next, 1);
	if (number >= file->chunks) {
		atomic_store(&file->error, -EOVERFLOW);
		return false;
	}
	offset = MRRC_TRACE_HEAD + number * MRRC_TRACE_CHUNK;
	ret = trace_grow(file, offset, MRRC_TRACE_CHUNK);
	if (ret) {
		atomic_store(&file->error, ret);
		return false;
	}
	thread->next = trace_rec(file, RECS_HEAD + number * RECS_CHUNK);
	thread->end = thread->next + RECS_CHUNK;
	return true;
}

/* Finds a place to write; counts requests that are dropped. */
static __attribute__((noinline)) bool trace_refill(struct mrrc_trace_file *file,
						   struct trace_thread *thread)
{
	uint64_t *dropped = &file->head->dropped;
	uint64_t old;

	if (thread->id != file->id) {
		thread->file = file;
		thread->next = thread->end = NULL;
		thread->tid = syscall(SYS_gettid);
		thread->id = file->id;
		/* if this fails, the rest of the thread's chunk stays empty */
		pthread_setspecific(trace_key, thread);
	}
	if (trace_take_left(file, thread) || trace_new_chunk(file, thread))
		return true;
	do {
		old = __atomic_load_n(dropped, __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(dropped, &old,
					      htole64(le64toh(old) + 1), true,
					      __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return false;
}

struct mrrc_trace_rec *mrrc_trace_file_next(struct mrrc_trace_file *file)
{
	struct trace_thread *thread = &trace_thread;
	struct mrrc_trace_rec *rec;

	if (__builtin_expect(
		    thread->id != file->id || thread->next == thread->end, 0) &&
	    !trace_refill(file, thread))
		return NULL;
	rec = thread->next++;
	rec->thread = htole32(thread->tid);
	return rec;
}

uint64_t mrrc_trace_file_now(const struct mrrc_trace_file *file)
{
	return trace_clock(CLOCK_MONOTONIC) - file->start;
}

/* The number of the record in a chain, or 0 if the chain is not this file's. */
static uint64_t trace_chained(const struct mrrc_trace_file *file,
			      uint64_t chain)
{
	return chain >> CHAIN_BITS == (file->id & CHAIN_IDS) ?
		       chain & (((uint64_t) 1 << CHAIN_BITS) - 1) :
		       0;
}

void mrrc_trace_file_chain(struct mrrc_trace_file *file,
			   struct mrrc_trace_rec *rec, uint64_t *chain)
{
	rec->end = htole64(MRRC_TRACE_OPEN | trace_chained(file, *chain));
	*chain = (file->id & CHAIN_IDS) << CHAIN_BITS | trace_number(file, rec);
}

void mrrc_trace_file_end(struct mrrc_trace_file *file, uint64_t *chain,
			 uint64_t now)
{
	uint64_t number = trace_chained(file, *chain), chunks, records;
	struct mrrc_trace_rec *rec;

	*chain = 0;
	/* other processes may write to the file: do not read beyond its end */
	chunks = atomic_load_explicit(&file->next, memory_order_relaxed);
	if (chunks > file->chunks)
		chunks = file->chunks;
	records = RECS_HEAD + chunks * RECS_CHUNK;
	while (number >= RECS_HEAD && number < records) {
		rec = trace_rec(file, number);
		number = le64toh(rec->end);
		__atomic_store_n(&rec->end, htole64(now), __ATOMIC_RELAXED);
		if (!(number & MRRC_TRACE_OPEN))
			return;
		number &= ~MRRC_TRACE_OPEN;
	}
}
