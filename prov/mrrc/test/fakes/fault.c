/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fault injection (fault.h).
 */
#include "config.h"
#include "test/fakes/fault.h"
#include "test/suites.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>

static _Thread_local unsigned fault_left;
static _Thread_local bool fault_fired;
static _Thread_local void (*fault_call)(char *addr, size_t len);
static _Thread_local void (*fault_once[FAULT_PLACES])(void);
static _Atomic(void (*)(void)) fault_read;
static atomic_bool fault_refuses; /* membarrier(2) is refused */

/* The blocks allocated while the fault was armed. */
#define FAULT_BLOCKS 64
static _Thread_local void *fault_block[FAULT_BLOCKS];
static _Thread_local bool fault_tracking;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *ptr);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset);
int __real_mprotect(void *addr, size_t len, int prot);
int __real_munmap(void *addr, size_t len);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *), void *arg);
int __real_pthread_mutex_init(pthread_mutex_t *mutex,
			      const pthread_mutexattr_t *attr);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __real_sched_yield(void);
int __real_nanosleep(const struct timespec *time, struct timespec *left);
ssize_t __real_read(int fd, void *buf, size_t len);
int __real_socket(int domain, int type, int protocol);
int __real_ioctl(int fd, unsigned long request, void *arg);
long __real_syscall(long number, ...);
int __real_memfd_create(const char *name, unsigned flags);
int __real_fallocate(int fd, int mode, off_t offset, off_t len);
int __real_fcntl(int fd, int command, ...);
int __real_clock_gettime(clockid_t clock, struct timespec *time);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __wrap_free(void *ptr);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset);
int __wrap_mprotect(void *addr, size_t len, int prot);
int __wrap_munmap(void *addr, size_t len);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *), void *arg);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex,
			      const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_sched_yield(void);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
ssize_t __wrap_read(int fd, void *buf, size_t len);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
long __wrap_syscall(long number, ...);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t len);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

void fault_arm(unsigned nth)
{
	memset(fault_block, 0, sizeof(fault_block));
	fault_left = nth;
	fault_fired = false;
	fault_tracking = true;
}

static _Atomic(void (*)(void)) fault_futex;

void fault_at_futex(void (*call)(void))
{
	atomic_store(&fault_futex, call);
}

void fault_no_barrier(bool refused)
{
	atomic_store(&fault_refuses, refused);
}

void fault_meanwhile(void (*call)(char *addr, size_t len))
{
	fault_call = call;
}

bool fault_disarm(void)
{
	fault_left = 0;
	fault_call = NULL;
	fault_tracking = false;
	return fault_fired;
}

void fault_at(enum fault_place place, void (*call)(void))
{
	fault_once[place] = call;
}

void fault_at_read(void (*call)(void))
{
	atomic_store(&fault_read, call);
}

/* Returns whether there was a function to call. */
static bool fault_meet(enum fault_place place)
{
	void (*const call)(void) = fault_once[place];

	fault_once[place] = NULL;
	if (call)
		call();
	return call;
}

static bool fault_now(int error)
{
	if (!fault_left || --fault_left)
		return false;
	fault_fired = true;
	errno = error;
	return true;
}

static void fault_replace(void *from, void *to)
{
	int i;

	for (i = 0; i < FAULT_BLOCKS; i++) {
		if (fault_block[i] == from) {
			fault_block[i] = to;
			return;
		}
	}
}

static void *fault_track(void *ptr)
{
	if (ptr && fault_tracking)
		fault_replace(NULL, ptr);
	return ptr;
}

unsigned fault_leaks(void)
{
	unsigned count = 0;
	int i;

	for (i = 0; i < FAULT_BLOCKS; i++)
		count += fault_block[i] != NULL;
	return count;
}

static unsigned fault_entries(const char *path)
{
	unsigned count = 0;
	struct dirent *entry;
	DIR *dir;

	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

unsigned fault_fds(void)
{
	return fault_entries("/proc/self/fd");
}

unsigned fault_threads(void)
{
	return fault_entries("/proc/self/task");
}

/* A joined thread is still listed for a moment. */
unsigned fault_threads_left(unsigned expected)
{
	return comes(fault_threads() == expected) ? expected : fault_threads();
}

void *__wrap_malloc(size_t size)
{
	return fault_now(ENOMEM) ? NULL : fault_track(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fault_now(ENOMEM) ? NULL :
				   fault_track(__real_calloc(count, size));
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return fault_now(ENOMEM) ?
		       NULL :
		       fault_track(__real_aligned_alloc(align, size));
}

void __wrap_free(void *ptr)
{
	if (ptr)
		fault_replace(ptr, NULL);
	__real_free(ptr);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset)
{
	return fault_now(ENOMEM) ?
		       (void *) -1 :
		       __real_mmap(addr, len, prot, flags, fd, offset);
}

int __wrap_mprotect(void *addr, size_t len, int prot)
{
	fault_meet(FAULT_PROTECT);
	if (!fault_now(ENOMEM))
		return __real_mprotect(addr, len, prot);
	if (fault_call)
		fault_call(addr, len);
	errno = ENOMEM;
	return -1;
}

static _Thread_local bool fault_unmap_fails;

void fault_unmap(bool fails)
{
	fault_unmap_fails = fails;
}

#define UNMAPS 16384U
static struct {
	_Atomic uintptr_t start, end;
} unmaps[UNMAPS];
static atomic_uint unmaps_cnt;

unsigned fault_unmaps(void)
{
	return atomic_load(&unmaps_cnt);
}

bool fault_unmapped(const void *addr, unsigned since)
{
	const uintptr_t at = (uintptr_t) addr;
	const unsigned cnt = atomic_load(&unmaps_cnt);
	unsigned i;

	ck_assert_uint_le(cnt - since, UNMAPS);
	for (i = since; i != cnt; i++)
		if (at >= atomic_load(&unmaps[i % UNMAPS].start) &&
		    at < atomic_load(&unmaps[i % UNMAPS].end))
			return true;
	return false;
}

/*
 * Aborts if a part of the range is not mapped. Another thread or a sanitizer
 * may map memory into such a hole at any time, and a test that unmapped the hole
 * twice would unmap that memory.
 */
static void no_hole(char *addr, size_t len)
{
	unsigned char in[1024];
	const size_t most = sizeof(in) * sysconf(_SC_PAGESIZE);
	size_t at;

	for (at = 0; at < len; at += most) {
		if (!mincore(addr + at, MIN(len - at, most), in) ||
		    errno != ENOMEM)
			continue;
		fprintf(stderr, "munmap: %p of %zu bytes has a hole\n",
			(void *) addr, len);
		abort();
	}
}

int __wrap_munmap(void *addr, size_t len)
{
	unsigned i;

	no_hole(addr, len);
	if (fault_unmap_fails) {
		errno = ENOMEM;
		return -1;
	}
	i = atomic_fetch_add(&unmaps_cnt, 1) % UNMAPS;
	atomic_store(&unmaps[i].start, (uintptr_t) addr);
	atomic_store(&unmaps[i].end, (uintptr_t) addr + len);
	return __real_munmap(addr, len);
}

static void (*fault_thread_end)(void);

struct fault_thread {
	void *(*run)(void *);
	void *arg;
	void (*end)(void);
};

static struct fault_thread fault_thread[16]; /* Each element is used once. */
static unsigned fault_thread_cnt;

void fault_at_thread_end(void (*call)(void))
{
	fault_thread_end = call;
}

static void *fault_thread_run(void *arg)
{
	const struct fault_thread *own = arg;
	void *result = own->run(own->arg);

	own->end();
	return result;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *), void *arg)
{
	struct fault_thread *own;

	if (fault_now(EAGAIN))
		return EAGAIN;
	if (!fault_thread_end || fault_thread_cnt == 16)
		return __real_pthread_create(thread, attr, run, arg);
	own = &fault_thread[fault_thread_cnt++];
	*own = (struct fault_thread){ run, arg, fault_thread_end };
	return __real_pthread_create(thread, attr, fault_thread_run, own);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex,
			      const pthread_mutexattr_t *attr)
{
	return fault_now(ENOMEM) ? ENOMEM :
				   __real_pthread_mutex_init(mutex, attr);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	fault_meet(FAULT_LOCK);
	return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	fault_meet(FAULT_WAIT);
	return __real_pthread_cond_wait(cond, mutex);
}

int __wrap_sched_yield(void)
{
	/* On a busy machine, a hundred yields would take seconds. */
	return fault_meet(FAULT_YIELD) ? 0 : __real_sched_yield();
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	fault_meet(FAULT_SLEEP);
	return __real_nanosleep(time, left);
}

ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	void (*const call)(void) = atomic_load(&fault_read);

	if (call)
		call();
	return __real_read(fd, buf, len);
}

int __wrap_socket(int domain, int type, int protocol)
{
	return fault_now(EMFILE) ? -1 : __real_socket(domain, type, protocol);
}

static uintptr_t foreign_start, foreign_end;

void fault_foreign(const void *start, size_t len)
{
	foreign_start = (uintptr_t) start;
	foreign_end = foreign_start + len;
}

static void not_foreign(const struct uffdio_range *range)
{
	if (range->start >= foreign_end ||
	    range->start + range->len <= foreign_start)
		return;
	fprintf(stderr, "another userfaultfd's watch would end\n");
	abort();
}

/* Unwatching a range never fails: its unmapper would wait forever. */
int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	if (request == UFFDIO_UNREGISTER)
		not_foreign(arg);
	if (request != UFFDIO_UNREGISTER && fault_now(ENOMEM))
		return -1;
	return __real_ioctl(fd, request, arg);
}

/* Like syscall(2) itself, the wrapper always reads six arguments. */
__attribute__((no_sanitize_address)) long __wrap_syscall(long number, ...)
{
	void (*call)(void);
	long arg[6];
	va_list args;
	int i;

	va_start(args, number);
	for (i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_userfaultfd && fault_now(EPERM))
		return -1;
	call = number == SYS_futex && arg[1] == FUTEX_WAIT ?
		       atomic_load(&fault_futex) :
		       NULL;
	if (call)
		call();
	if (number == SYS_membarrier)
		fault_meet(FAULT_BARRIER);
	if (number == SYS_membarrier && atomic_load(&fault_refuses)) {
		errno = EPERM;
		return -1;
	}
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4],
			      arg[5]);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	return fault_now(EMFILE) ? -1 : __real_memfd_create(name, flags);
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t len)
{
	return fault_now(ENOSPC) ? -1 : __real_fallocate(fd, mode, offset, len);
}

int __wrap_fcntl(int fd, int command, ...)
{
	va_list args;
	long arg; /* an integer or a pointer */

	va_start(args, command);
	arg = va_arg(args, long);
	va_end(args);
	if (command == F_ADD_SEALS && fault_now(EPERM))
		return -1;
	return __real_fcntl(fd, command, arg);
}

static _Atomic uint64_t fault_ns;

void fault_clock(uint64_t ns)
{
	atomic_store(&fault_ns, ns);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	const uint64_t ns = atomic_load(&fault_ns);

	if (!ns ||
	    (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE))
		return __real_clock_gettime(clock, time);
	time->tv_sec = (time_t) (ns / 1000000000);
	time->tv_nsec = (long) (ns % 1000000000);
	return 0;
}
