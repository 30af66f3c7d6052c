/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/prove: a thread leaves a hook by a jump; hooks are dropped with the
 * pages of libc's code, or overwritten.
 */
#include "config.h"
#include "test/sys/proof/prove_fixture.h"
#include "test/case.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "sys/base/mappings.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/monitor/mon.h"
#include "sys/hooks/patch.h"
#include "sys/hooks/trust.h"

#define JUMPS 200
#define PAGES 1024 /* pages whose rights are changed at a time */

static sigjmp_buf away;
static atomic_bool jumps, sends;

static void on_signal(int sig)
{
	if (atomic_load(&jumps))
		siglongjmp(away, 1);
}

static void *sender_main(void *arg)
{
	const pthread_t *to = arg;

	while (atomic_load(&sends)) {
		pthread_kill(*to, SIGUSR1);
		usleep(100);
	}
	return NULL;
}

static void change(char *ptr, int rights)
{
	if (mprotect(ptr, PAGES * page, PROT_READ | rights))
		_exit(1);
}

TEST_CASE(lost, setup, NULL);

/* Signal handlers jump out of hooked calls: trust comes again all the same. */
TEST(test_jump)
{
	const struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread, self = pthread_self();
	volatile unsigned count = 0;
	char *ptr = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	ck_assert_ptr_ne(ptr, MAP_FAILED);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	atomic_store(&sends, true);
	ck_assert_int_eq(pthread_create(&thread, NULL, sender_main, &self), 0);
	if (sigsetjmp(away, 1))
		count++;
	atomic_store(&jumps, count < JUMPS);
	while (count < JUMPS) {
		change(ptr, PROT_EXEC);
		change(ptr, PROT_WRITE);
	}
	atomic_store(&sends, false);
	pthread_join(thread, NULL);
	munmap(ptr, PAGES * page);
	ck_assert_msg(trusted(true), "%s", why);
}

/* ---- libc's file ---- */

#ifdef __x86_64__
#define CALL_LEN   2
#define CALL_ALIGN 1
#else
#define CALL_LEN   4
#define CALL_ALIGN 4
#endif

struct text {
	uintptr_t in;
	size_t differs;	       /* number of different bytes */
	uint8_t *first;	       /* instruction with the first different byte */
	uint8_t was[CALL_LEN]; /* bytes of the file there: a system call */
	uintptr_t start, end;
	uint64_t offset; /* offset in the file */
	char file[256];
};

/* Compares the code around an address with its file, byte by byte. */
static bool compare(void *arg, const struct mrrc_mapping *mapping)
{
	struct text *text = arg;
	const uint8_t *live = (const uint8_t *) mapping->start;
	size_t i, len = mapping->end - mapping->start;
	uint8_t *file;
	int fd;

	if (!mapping->execute || text->in < mapping->start ||
	    text->in >= mapping->end)
		return true;
	fd = open(mapping->name, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	file = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, mapping->offset);
	close(fd);
	ck_assert_ptr_ne(file, MAP_FAILED);
	for (i = 0; i < len; i++) {
		if (live[i] == file[i])
			continue;
		if (!text->differs++) {
			text->first = (uint8_t *) live + i - i % CALL_ALIGN;
			memcpy(text->was, file + i - i % CALL_ALIGN,
			       sizeof(text->was));
		}
	}
	munmap(file, len);
	text->start = mapping->start;
	text->end = mapping->end;
	text->offset = mapping->offset;
	snprintf(text->file, sizeof(text->file), "%s", mapping->name);
	return false;
}

static void find_libc(struct text *libc)
{
	*libc = (struct text){ .in = (uintptr_t) dlsym(RTLD_DEFAULT, "shmdt") };
	mrrc_mappings_each(compare, libc);
	ck_assert(libc->first);
}

/* Returns the number of different bytes in libc and the dynamic loader. */
static size_t differs(void)
{
	struct text libc = { .in = (uintptr_t) dlsym(RTLD_DEFAULT, "shmdt") };
	struct text loader = { .in = _r_debug.r_brk };

	ck_assert(libc.in && loader.in);
	mrrc_mappings_each(compare, &libc);
	mrrc_mappings_each(compare, &loader);
	return libc.differs + loader.differs;
}

/*
 * A domain closes while another user keeps the monitor: the code of libc and of
 * the loader equals the code of their files again, and hooks can be placed
 * again.
 */
TEST(test_unhook)
{
	struct mrrc_mon *other;

	ck_assert_uint_gt(differs(), 0);
	ck_assert_int_eq(mrrc_mon_open(NULL, NULL, &other), 0);
	ck_assert_ptr_eq(other, mon);
	ck_assert_int_eq(mrrc_mon_hook(other, NULL), 0);
	mrrc_mon_unhook(mon);
	ck_assert_msg(trusted(true), "%s", why);
	mrrc_mon_unhook(mon);
	ck_assert(!mrrc_trusted());
	ck_assert_uint_eq(differs(), 0);
	ck_assert(mrrc_mon_works(mon));
	ck_assert_int_eq(mrrc_mon_hook(mon, NULL), 0);
	mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
	ck_assert_msg(trusted(true), "%s", why);
	ck_assert_uint_gt(differs(), 0);
	mrrc_mon_close(mon);
	ck_assert_uint_gt(differs(), 0);
	mrrc_mon_close(mon);
	ck_assert_uint_eq(differs(), 0);
}

/* ---- hooks that are removed ---- */

static bool drop(const struct text *libc)
{
	return !madvise((void *) libc->start, libc->end - libc->start,
			MADV_DONTNEED);
}

/* Drops by process_madvise(2), which older kernels do not allow. */
static bool drop_own(const struct text *libc)
{
	const struct iovec iov = { (void *) libc->start,
				   libc->end - libc->start };
	const int fd = (int) syscall(SYS_pidfd_open, getpid(), 0);

	return syscall(SYS_process_madvise, fd, &iov, 1, MADV_DONTNEED, 0) > 0;
}

static void *page_of(const uint8_t *at)
{
	return (void *) ((uintptr_t) at & ~(page - 1));
}

/* Maps the same page of the file over the hook. */
static bool map_over(const struct text *libc)
{
	const int fd = open(libc->file, O_RDONLY | O_CLOEXEC);
	void *const at = page_of(libc->first);

	return mmap(at, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
		    fd,
		    (off_t) (libc->offset + ((uintptr_t) at - libc->start))) ==
	       at;
}

/* Trust ends before the call returns, and no lookup goes without a probe. */
LOOP_TEST(test_gone, 0, 3)
{
	static bool (*const ways[])(const struct text *libc) = {
		drop,
		drop_own,
		map_over,
	};
	struct text libc;
	int i;

	find_libc(&libc);
	ck_assert_msg(trusted(true), "%s", why);
	if (!ways[_i](&libc)) {
		ck_assert_int_ne(_i, 0);
		skip("not on this kernel");
	}
	ck_assert(!mrrc_trusted());
	for (i = 0; i < 1000; i++)
		ck_assert(!mrrc_mon_told(mon));
	never_trusted("hook");
}

/* Dropping a range leaves the page of stubs out: trust and hooks stay. */
TEST(test_kept)
{
	uint8_t *const home = mrrc_patch_home();
	char *ptr = keep();

	if (!home)
		skip("no such page here");
	ck_assert_int_eq(madvise(home, page, MADV_DONTNEED), 0);
	ck_assert_int_eq(madvise(home - page, 3 * page, MADV_DONTNEED), 0);
	ck_assert_int_eq(madvise(home, 2 * page, MADV_DONTNEED), 0);
	ck_assert_msg(trusted(true), "%s", why);
	munmap(ptr, page);
	ck_assert_uint_eq(kept.end, 0);
	ck_assert(mrrc_trusted());
}

/*
 * A hook is overwritten without a hooked call. The next miss sees the change;
 * without a miss, the thread that reads events, which looks once a second, sees
 * the change.
 */
LOOP_TEST(test_overwritten_later, 0, 2)
{
	char *const other = map(PROT_READ | PROT_WRITE);
	struct text libc;
	uint64_t token;
	int fd;

	/* The write must come before, as a hooked call looks at hooks, too. */
	*other = 1;
	/* Without a kept page, there is no thread that reads events. */
	keep();
	find_libc(&libc);
	fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, libc.was, sizeof(libc.was),
				(off_t) libc.first),
			 sizeof(libc.was));
	if (_i) {
		ck_assert_int_eq(mrrc_mon_watch(mon, (uintptr_t) other, page,
						&token),
				 0);
		ck_assert(!mrrc_trusted());
	}
	ck_assert(comes(!mrrc_trusted()));
	never_trusted("hook");
}

static void put(const struct text *libc, const uint8_t *bytes)
{
	const int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, sizeof(libc->was),
				(off_t) libc->first),
			 sizeof(libc->was));
	close(fd);
}

/*
 * A hook that comes back, as when a debugger ends a breakpoint, is trusted
 * again. The next time that the hook is overwritten is seen, even if the hook
 * came back after the last look at all hooks and only the thread that looks at
 * code has found the hook.
 */
LOOP_TEST(test_overwritten_again, 0, 2)
{
	uint8_t ours[sizeof(((struct text *) NULL)->was)];
	struct text libc;
	uint64_t trust;

	find_libc(&libc);
	memcpy(ours, libc.first, sizeof(ours));
	put(&libc, libc.was);
	mrrc_libc_hooks_check();
	if (_i)
		ck_assert(!mrrc_trusted());
	else
		never_trusted("is not hooked");
	put(&libc, ours);
	if (_i)
		ck_assert(mrrc_libc_hooks_has((uintptr_t) libc.first));
	else
		ck_assert_msg(trusted(true), "%s", why);
	trust = atomic_load(&mrrc_trust_word);
	put(&libc, libc.was);
	mrrc_libc_hooks_check();
	ck_assert_uint_ne(atomic_load(&mrrc_trust_word), trust);
	ck_assert(!mrrc_trusted());
	never_trusted("is not hooked");
}
