/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways to unmap memory past all hooks (duel_way.h). The program itself has no
 * such code: the instructions that enter the kernel come with a library, or are
 * written to a page.
 */
#include "config.h"
#include "test/race/duel_way.h"

#include <dlfcn.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RW   (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

typedef long (*way_call)(long number, long a, long b, long c, long d, long e,
			 long f);

static way_call raw;

long duel_raw(long number, long a, long b, long c, long d, long e, long f)
{
	return raw(number, a, b, c, d, e, f);
}

static void must(bool right, const char *what)
{
	if (right)
		return;
	perror(what);
	abort();
}

static void raw_munmap(struct duel *duel)
{
	duel_raw(SYS_munmap, (long) duel->ptr, duel->len, 0, 0, 0, 0);
}

static void raw_dontneed(struct duel *duel)
{
	duel_raw(SYS_madvise, (long) duel->ptr, duel->len, MADV_DONTNEED, 0, 0,
		 0);
}

/* ---- a library ---- */

static void *library;

static bool library_come(void)
{
	char path[512];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);

	must(len > 0, "/proc");
	path[len] = '\0';
	snprintf(strrchr(path, '/'), 64, "/.libs/raw_any.so");
	library = dlopen(path, RTLD_NOW);
	must(library, path);
	raw = (way_call) dlsym(library, "duel_raw");
	must(raw, "duel_raw");
	return true;
}

static void library_go(void)
{
	dlclose(library);
}

const struct duel_way duel_library = { .come = library_come, .go = library_go };

/* ---- a page that becomes code ---- */

/* This code moves its arguments as libc's syscall() does. */
static const uint8_t page_code[] = {
#if defined(__x86_64__)
	0x48, 0x89, 0xf8,	      /* mov %rdi, %rax */
	0x48, 0x89, 0xf7,	      /* mov %rsi, %rdi */
	0x48, 0x89, 0xd6,	      /* mov %rdx, %rsi */
	0x48, 0x89, 0xca,	      /* mov %rcx, %rdx */
	0x4d, 0x89, 0xc2,	      /* mov %r8, %r10 */
	0x4d, 0x89, 0xc8,	      /* mov %r9, %r8 */
	0x4c, 0x8b, 0x4c, 0x24, 0x08, /* mov 8(%rsp), %r9 */
	0x0f, 0x05, 0xc3,	      /* syscall; ret */
#elif defined(__aarch64__)
	0xe8, 0x03, 0x00, 0xaa, /* mov x8, x0 */
	0xe0, 0x03, 0x01, 0xaa, /* mov x0, x1 */
	0xe1, 0x03, 0x02, 0xaa, /* mov x1, x2 */
	0xe2, 0x03, 0x03, 0xaa, /* mov x2, x3 */
	0xe3, 0x03, 0x04, 0xaa, /* mov x3, x4 */
	0xe4, 0x03, 0x05, 0xaa, /* mov x4, x5 */
	0xe5, 0x03, 0x06, 0xaa, /* mov x5, x6 */
	0x01, 0x00, 0x00, 0xd4, /* svc #0 */
	0xc0, 0x03, 0x5f, 0xd6, /* ret */
#endif
};

static void *code;

static bool page_come(void)
{
	if (!sizeof(page_code))
		return false;
	code = mmap(NULL, sizeof(page_code), RW, ANON, -1, 0);
	must(code != MAP_FAILED, "mmap");
	memcpy(code, page_code, sizeof(page_code));
	__builtin___clear_cache((char *) code,
				(char *) code + sizeof(page_code));
	must(!mprotect(code, sizeof(page_code), PROT_READ | PROT_EXEC),
	     "mprotect");
	raw = (way_call) (uintptr_t) code;
	return true;
}

static void page_go(void)
{
	munmap(code, sizeof(page_code));
}

/* ---- a thread or a child that runs the page's code, unknown to libc ---- */

static struct {
	_Atomic(void *(*) (void *) ) run; /* function to be run now */
	void *arg;
	atomic_bool has_code, end;
	_Atomic int tid; /* id of the thread; its end clears it */
	pid_t pid;	 /* id of the child */
	_Alignas(16) char stack[256 << 10];
} bare;

/* The thread shares thread-local storage with the waiting one, so no errno. */
static void bare_serve(void)
{
	void *(*run)(void *);

	while (!atomic_load(&bare.end)) {
		run = atomic_load(&bare.run);
		if (run) {
			run(bare.arg);
			atomic_store(&bare.run, NULL);
		}
		sched_yield();
	}
}

static bool bare_start(void *(*run)(void *), void *arg)
{
	bare.arg = arg;
	atomic_store(&bare.run, run);
	return true;
}

static void bare_join(void)
{
	while (atomic_load(&bare.run))
		sched_yield();
}

static const struct duel_thread bare_thread = { bare_start, bare_join };

#ifdef __x86_64__
static void thread_main(void)
{
	bare_serve();
	for (;;)
		duel_raw(SYS_exit, 0, 0, 0, 0, 0, 0);
}

/* The page's code makes the thread, which returns to thread_main(). */
static bool thread_come(void)
{
	uintptr_t *top = (uintptr_t *) (bare.stack + sizeof(bare.stack)) - 2;

	page_come();
	*top = (uintptr_t) thread_main;
	atomic_store(&bare.end, false);
	atomic_store(&bare.tid, 1);
	must(duel_raw(SYS_clone,
		      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			      CLONE_THREAD | CLONE_SYSVSEM |
			      CLONE_CHILD_CLEARTID,
		      (long) top, 0, (long) &bare.tid, 0, 0) > 0,
	     "a thread");
	return true;
}

static void thread_go(void)
{
	atomic_store(&bare.end, true);
	while (atomic_load(&bare.tid))
		sched_yield();
	page_go();
}
#endif

/* The child itself makes the page of code. */
static int child_main(void *arg)
{
	page_come();
	atomic_store(&bare.has_code, true);
	bare_serve();
	return 0;
}

static bool child_come(void)
{
	if (!sizeof(page_code))
		return false;
	atomic_store(&bare.end, false);
	atomic_store(&bare.has_code, false);
	bare.pid = clone(child_main, bare.stack + sizeof(bare.stack),
			 CLONE_VM | SIGCHLD, NULL);
	must(bare.pid > 0, "clone");
	while (!atomic_load(&bare.has_code))
		sched_yield();
	return true;
}

static void child_go(void)
{
	atomic_store(&bare.end, true);
	must(waitpid(bare.pid, NULL, 0) == bare.pid, "waitpid");
	page_go();
}

/* ---- io_uring ---- */

static struct {
	int fd;
	/* tail, mask and array of the submission queue */
	unsigned *tail, *mask, *array;
	/* head and mask of the completion queue */
	unsigned *done, *done_mask;
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
} ring;

static void *ring_map(size_t len, off_t offset)
{
	void *ptr =
		mmap(NULL, len, RW, MAP_SHARED | MAP_POPULATE, ring.fd, offset);

	must(ptr != MAP_FAILED, "a ring");
	return ptr;
}

static bool ring_come(void)
{
	struct io_uring_params params = { 0 };
	char *sq, *cq;

	ring.fd = (int) syscall(SYS_io_uring_setup, 1, &params);
	if (ring.fd < 0)
		return false;
	sq = ring_map(params.sq_off.array +
			      params.sq_entries * sizeof(unsigned),
		      IORING_OFF_SQ_RING);
	cq = ring_map(params.cq_off.cqes +
			      params.cq_entries * sizeof(struct io_uring_cqe),
		      IORING_OFF_CQ_RING);
	ring.sqe = ring_map(params.sq_entries * sizeof(*ring.sqe),
			    IORING_OFF_SQES);
	ring.tail = (unsigned *) (sq + params.sq_off.tail);
	ring.mask = (unsigned *) (sq + params.sq_off.ring_mask);
	ring.array = (unsigned *) (sq + params.sq_off.array);
	ring.done = (unsigned *) (cq + params.cq_off.head);
	ring.done_mask = (unsigned *) (cq + params.cq_off.ring_mask);
	ring.cqe = (struct io_uring_cqe *) (cq + params.cq_off.cqes);
	return true;
}

/* A kernel thread makes the madvise() call. */
static void ring_dontneed(struct duel *duel)
{
	const unsigned at = *ring.tail & *ring.mask;

	memset(&ring.sqe[at], 0, sizeof(ring.sqe[at]));
	ring.sqe[at].opcode = IORING_OP_MADVISE;
	ring.sqe[at].addr = (uintptr_t) duel->ptr;
	ring.sqe[at].len = duel->len;
	ring.sqe[at].fadvise_advice = MADV_DONTNEED;
	ring.array[at] = at;
	__atomic_store_n(ring.tail, *ring.tail + 1, __ATOMIC_RELEASE);
	must(syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS,
		     NULL, 0) == 1,
	     "io_uring_enter");
	must(!ring.cqe[*ring.done & *ring.done_mask].res, "IORING_OP_MADVISE");
	__atomic_store_n(ring.done, *ring.done + 1, __ATOMIC_RELEASE);
}

const struct duel_way duel_ways[] = {
	{ { "JIT munmap", 2, raw_munmap, duel_remap },
	  NULL,
	  page_come,
	  page_go },
	{ { "JIT DONTNEED", 1, raw_dontneed, duel_zero },
	  NULL,
	  page_come,
	  page_go },
#ifdef __x86_64__
	{ { "JIT thread", 1, raw_munmap, duel_remap },
	  &bare_thread,
	  thread_come,
	  thread_go },
#endif
	{ { "CLONE_VM child", 1, raw_munmap, duel_remap },
	  &bare_thread,
	  child_come,
	  child_go },
	/* io_uring is last, as lookups ask the kernel from then on. */
	{ { "io_uring DONTNEED", 1, ring_dontneed, duel_zero },
	  NULL,
	  ring_come,
	  NULL },
};

const unsigned duel_way_count = sizeof(duel_ways) / sizeof(duel_ways[0]);
