/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/mon: lifecycle, coverage, and userfaultfd in every situation a process
 * can be in.
 */
#include "config.h"
#include "suites.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "fake_mon.h"
#include "fault.h"
#include "sys/vm.h"

#define SEEN	16

/* Remembers what it was told. */
struct probe_sub {
	struct mrrc_mon_sub sub;
	atomic_uint count;
	struct mrrc_range got[SEEN];	/* read once all is quiet */
	struct mrrc_range hull;		/* what notify answers */
	struct mrrc_range keep;		/* what cover answers */
};

static size_t page;
static struct mrrc_mon *mon;
static struct probe_sub probe;

static struct mrrc_range note(struct mrrc_mon_sub *sub, uintptr_t start,
			      uintptr_t end)
{
	struct probe_sub *self = (struct probe_sub *)sub;

	const unsigned i = atomic_load(&self->count);

	if (i < SEEN)
		self->got[i] = (struct mrrc_range) { start, end };
	atomic_store(&self->count, i + 1);
	return self->hull;
}

static struct mrrc_range keep(struct mrrc_mon_sub *sub, uintptr_t pos)
{
	struct probe_sub *self = (struct probe_sub *)sub;

	return self->keep.end > pos ? self->keep : (struct mrrc_range) { 0 };
}

static void subscribe(void)
{
	probe = (struct probe_sub) { .sub = { note, keep } };
	mrrc_mon_subscribe(mon, &probe.sub);
}

static void setup(void)
{
	page = mrrc_vm_page();
	mon = NULL;
	if (mrrc_mon_open("uffd", NULL, &mon))
		mon = NULL;
	else
		subscribe();
}

static void teardown(void)
{
	if (!mon)
		return;
	mrrc_mon_unsubscribe(mon, &probe.sub);
	mrrc_mon_close(mon);
}

static char *map(size_t pages)
{
	char *ptr = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(ptr, MAP_FAILED);
	memset(ptr, 1, pages * page);
	return ptr;
}

static int watch(void *ptr, size_t pages)
{
	return mrrc_mon_watch(mon, (uintptr_t)ptr, pages * page);
}

/* Events are read, not yet handled, when the call that caused them returns. */
static unsigned events(void)
{
	mrrc_mon_drain(mon);
	ck_assert_int_eq(mrrc_mon_check(mon), 0);
	return atomic_load(&probe.count);
}

static bool told(void *ptr, size_t pages)
{
	unsigned count = events();
	unsigned i;

	for (i = 0; i < count && i < SEEN; i++) {
		if (probe.got[i].start == (uintptr_t)ptr &&
		    probe.got[i].end == (uintptr_t)ptr + pages * page)
			return true;
	}
	return false;
}

static void expect(unsigned count, void *ptr, size_t pages)
{
	ck_assert_uint_eq(events(), count);
	ck_assert(told(ptr, pages) == !!count);
}

#define need_uffd()	do {						\
		if (!mon)						\
			skip("no userfaultfd here");			\
	} while (0)

START_TEST(test_registry)
{
	const char *const *name;
	char why[MRRC_MON_REASON];
	struct mrrc_mon *a = NULL;
	struct mrrc_mon *b = NULL;
	int rc;

	ck_assert_int_eq(mrrc_mon_open("no such", why, &a), -ENOENT);
	ck_assert_ptr_null(a);
	for (name = mrrc_mon_names(); *name; name++) {
		rc = mrrc_mon_open(*name, why, &a);
		if (rc) {
			fprintf(stderr, "%s: %s\n", *name, why);
			ck_assert_str_ne(why, "");
			continue;
		}
		ck_assert_int_eq(mrrc_mon_open(*name, why, &b), 0);
		ck_assert_ptr_eq(a, b);
		ck_assert_str_eq(mrrc_mon_name(a), *name);
		mrrc_mon_close(b);
		mrrc_mon_close(a);
	}
	ck_assert_int_eq(mrrc_mon_open(NULL, why, &a), 0);
	ck_assert_int_eq(mrrc_mon_open(MRRC_MON_AUTO, why, &b), 0);
	ck_assert_ptr_eq(a, b);
	if (mon) {
		ck_assert_ptr_eq(a, mon);
		ck_assert_str_eq(why, "");
	}
	mrrc_mon_close(b);
	mrrc_mon_close(a);
}
END_TEST

START_TEST(test_none)
{
	struct mrrc_mon *none;

	ck_assert_int_eq(mrrc_mon_open("none", NULL, &none), 0);
	ck_assert(!mrrc_mon_works(none));
	ck_assert(mrrc_mon_seq(none) & 1);
	ck_assert_str_ne(mrrc_mon_reason(none), "");
	ck_assert_int_eq(mrrc_mon_watch(none, page, page), -ENODEV);
	ck_assert_int_eq(mrrc_mon_check(none), -ENODEV);
	mrrc_mon_unwatch(none, page, page);
	mrrc_mon_drain(none);
	mrrc_mon_fail(none, "again");
	ck_assert_str_ne(mrrc_mon_reason(none), "again");
	mrrc_mon_close(none);
}
END_TEST

/* ---- what the kernel reports ---- */

static void do_munmap(char *ptr)
{
	munmap(ptr + page, 2 * page);
}

static void do_raw_munmap(char *ptr)
{
	syscall(SYS_munmap, ptr + page, 2 * page);
}

static void do_fixed(char *ptr)
{
	mmap(ptr + page, 2 * page, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void do_dontneed(char *ptr)
{
	madvise(ptr + page, 2 * page, MADV_DONTNEED);
}

static void do_free(char *ptr)
{
	madvise(ptr + page, 2 * page, MADV_FREE);
}

static void (*const changes[])(char *) = {
	do_munmap, do_raw_munmap, do_fixed, do_dontneed, do_free,
};

START_TEST(test_events)
{
	char *ptr = map(4);

	need_uffd();
	ck_assert_int_eq(watch(ptr, 4), 0);
	ck_assert_int_eq(mrrc_mon_check(mon), 0);
	changes[_i](ptr);
	expect(1, ptr + page, 2);
	munmap(ptr, 4 * page);
}
END_TEST

START_TEST(test_remap)
{
	char *ptr = map(4);
	char *to = map(8);
	unsigned count;

	need_uffd();
	ck_assert_int_eq(watch(ptr, 4), 0);
	ck_assert_ptr_eq(mremap(ptr, 4 * page, 4 * page,
				MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	/* Where it was, and where it is. */
	ck_assert(told(ptr, 4));
	ck_assert(told(to, 4));
	count = events();
	/* Nobody asked to watch the new place. */
	munmap(to, 8 * page);
	ck_assert_uint_eq(events(), count);
}
END_TEST

START_TEST(test_remap_shrink)
{
	char *ptr = map(4);

	need_uffd();
	ck_assert_int_eq(watch(ptr, 4), 0);
	ck_assert_ptr_eq(mremap(ptr, 4 * page, page, 0), ptr);
	expect(1, ptr + page, 3);
	munmap(ptr, page);
}
END_TEST

START_TEST(test_unwatched)
{
	char *ptr = map(4);

	need_uffd();
	ck_assert_int_eq(watch(ptr, 4), 0);
	probe.keep = (struct mrrc_range) { (uintptr_t)ptr + page,
					   (uintptr_t)ptr + 2 * page };
	mrrc_mon_unwatch(mon, (uintptr_t)ptr, 4 * page);
	munmap(ptr + 2 * page, 2 * page);
	munmap(ptr, page);
	expect(0, NULL, 0);
	munmap(ptr + page, page);
	expect(1, ptr + page, 1);
}
END_TEST

START_TEST(test_quiet_changes)
{
	char *ptr = map(4);

	need_uffd();
	/* Nothing of this moves a page. */
	ck_assert_int_eq(watch(ptr, 4), 0);
	mprotect(ptr, page, PROT_READ);
	madvise(ptr, 4 * page, MADV_WILLNEED);
	memset(ptr + page, 3, page);
	mprotect(ptr, page, PROT_READ | PROT_WRITE);
	expect(0, NULL, 0);
	munmap(ptr, 4 * page);
}
END_TEST

/* ---- what must not be cached ---- */

START_TEST(test_refused)
{
	const int rw = PROT_READ | PROT_WRITE;
	char path[] = "/var/tmp/mrrc_mon_XXXXXX";
	char *ptr;
	int fd, id;

	need_uffd();
	/* Refused, or watched in vain: holes punched would go unseen. */
	ptr = mmap(NULL, 4 * page, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_int_lt(watch(ptr, 4), 0);
	mrrc_mon_unwatch(mon, (uintptr_t)ptr, 4 * page);
	munmap(ptr, 4 * page);
	id = shmget(IPC_PRIVATE, 4 * page, IPC_CREAT | 0600);
	if (id >= 0) {
		ptr = shmat(id, NULL, 0);
		shmctl(id, IPC_RMID, NULL);
		ck_assert_int_lt(watch(ptr, 4), 0);
		mrrc_mon_unwatch(mon, (uintptr_t)ptr, 4 * page);
		shmdt(ptr);
	}
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_eq(ftruncate(fd, 4 * page), 0);
	ptr = mmap(NULL, 4 * page, rw, MAP_SHARED, fd, 0);
	ck_assert_int_lt(watch(ptr, 4), 0);
	mrrc_mon_unwatch(mon, (uintptr_t)ptr, 4 * page);
	munmap(ptr, 4 * page);
	close(fd);
	/* Nothing there at all. */
	ck_assert_int_lt(watch(ptr, 4), 0);
	expect(0, NULL, 0);
}
END_TEST

START_TEST(test_huge)
{
	const size_t huge = mrrc_vm_huge_page();
	char *ptr;

	need_uffd();
	if (!huge)
		skip("no huge pages");
	ptr = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (ptr == MAP_FAILED)
		skip("no huge page free");
	/* A few small pages of a huge one: watched whole. */
	ck_assert_int_eq(watch(ptr + 3 * page, 2), 0);
	munmap(ptr, 2 * huge);
	expect(1, ptr, 2 * huge / page);
}
END_TEST

/* ---- the probe ---- */

static void *unmapper(void *arg)
{
	munmap(arg, page);
	return NULL;
}

START_TEST(test_probe)
{
	struct timespec nap = { .tv_nsec = 1000000 };
	char *ptr = map(1);
	unsigned char vec;
	pthread_t thread;
	uint64_t seq;

	need_uffd();
	ck_assert_int_eq(watch(ptr, 1), 0);
	seq = mrrc_mon_seq(mon);
	ck_assert_uint_eq(seq & 1, 0);
	/* With the lock held, nobody can read the event. */
	pthread_mutex_lock(&mon->lock.mutex);
	ck_assert_int_eq(pthread_create(&thread, NULL, unmapper, ptr), 0);
	while (!mincore(ptr, page, &vec))
		nanosleep(&nap, NULL);
	ck_assert_int_eq(mrrc_mon_check(mon), -EAGAIN);
	ck_assert_uint_eq(mrrc_mon_seq(mon), seq);
	pthread_mutex_unlock(&mon->lock.mutex);
	pthread_join(thread, NULL);
	ck_assert_int_eq(mrrc_mon_check(mon), 0);
	ck_assert_uint_gt(mrrc_mon_seq(mon), seq);
	ck_assert_uint_eq(mrrc_mon_seq(mon) & 1, 0);
	expect(1, ptr, 1);
}
END_TEST

START_TEST(test_fail)
{
	struct mrrc_mon *other;
	char *ptr = map(4);

	need_uffd();
	ck_assert_int_eq(watch(ptr, 4), 0);
	mrrc_mon_fail(mon, "for %s", "a test");
	ck_assert_uint_eq(atomic_load(&probe.count), 1);
	ck_assert_uint_eq(probe.got[0].end, UINTPTR_MAX);
	ck_assert(!mrrc_mon_works(mon));
	ck_assert_str_eq(mrrc_mon_reason(mon), "for a test");
	ck_assert_uint_eq(mrrc_mon_seq(mon) & 1, 1);
	ck_assert_int_eq(mrrc_mon_check(mon), -ENODEV);
	ck_assert_int_eq(watch(ptr, 4), -ENODEV);
	mrrc_mon_fail(mon, "again");
	ck_assert_str_eq(mrrc_mon_reason(mon), "for a test");
	/* Nobody listens, so nobody may wait. */
	munmap(ptr, 4 * page);
	/* While in use, it is the one that everybody gets. */
	ck_assert_int_eq(mrrc_mon_open("uffd", NULL, &other), 0);
	ck_assert_ptr_eq(other, mon);
	mrrc_mon_close(other);
	/* Afterwards a new one works. */
	teardown();
	setup();
	ck_assert(mrrc_mon_works(mon));
}
END_TEST

/* A probe that is refused: as when a filter was installed meanwhile. */
START_TEST(test_probe_refused)
{
	struct mrrc_mon *fake;

	ck_assert_int_eq(mrrc_mon_open_ops(&fake_mon_ops, NULL, &fake), 0);
	ck_assert_int_eq(mrrc_mon_check(fake), 0);
	fake_mon_of(fake)->check_rc = -EPERM;
	ck_assert_int_eq(mrrc_mon_check(fake), -ENODEV);
	ck_assert(!mrrc_mon_works(fake));
	ck_assert_ptr_nonnull(strstr(mrrc_mon_reason(fake), "probe"));
	ck_assert_uint_eq(fake_mon_of(fake)->stops, 1);
	mrrc_mon_close(fake);
}
END_TEST

START_TEST(test_drain_fails)
{
	struct mrrc_mon *fake;

	ck_assert_int_eq(mrrc_mon_open_ops(&fake_mon_ops, NULL, &fake), 0);
	fake_mon_of(fake)->drain_rc = -EIO;
	mrrc_mon_drain(fake);
	ck_assert(!mrrc_mon_works(fake));
	ck_assert_str_eq(mrrc_mon_reason(fake), "drain failed");
	mrrc_mon_drain(fake);
	ck_assert_uint_eq(fake_mon_of(fake)->drains, 1);
	mrrc_mon_close(fake);
}
END_TEST

/* ---- coverage, with the fake ---- */

START_TEST(test_cover)
{
	struct probe_sub sub[2] = {
		{ .sub = { note, keep } }, { .sub = { note, keep } },
	};
	const uintptr_t base = 1024 * page;
	struct mrrc_mon *fake;
	int i;

	ck_assert_int_eq(mrrc_mon_open_ops(&fake_mon_ops, NULL, &fake), 0);
	fake_mon_of(fake)->base = base;
	for (i = 0; i < 2; i++)
		mrrc_mon_subscribe(fake, &sub[i].sub);
	ck_assert_int_eq(mrrc_mon_watch(fake, base, 40 * page), 0);
	sub[0].keep = (struct mrrc_range) { base + 5 * page, base + 9 * page };
	sub[1].keep = (struct mrrc_range) { base + 7 * page, base + 12 * page };
	mrrc_mon_unwatch(fake, base, 20 * page);
	ck_assert(fake_mon_none(fake, 0, 5));
	ck_assert(fake_mon_all(fake, 5, 12));
	ck_assert(fake_mon_none(fake, 12, 20));
	ck_assert(fake_mon_all(fake, 20, 40));
	/* Part of a kept range, and one that begins within one. */
	mrrc_mon_unwatch(fake, base + 8 * page, 2 * page);
	ck_assert(fake_mon_all(fake, 5, 12));
	mrrc_mon_unwatch(fake, base + 11 * page, 14 * page);
	ck_assert(fake_mon_all(fake, 5, 12));
	ck_assert(fake_mon_none(fake, 12, 25));
	ck_assert(fake_mon_all(fake, 25, 40));

	/* An unmap in the middle of a region: its rest goes, not the hole. */
	sub[0].hull = (struct mrrc_range) { base + 26 * page,
					    base + 36 * page };
	fake_mon_raise(fake, base + 30 * page, base + 32 * page,
		       MRRC_MON_UNMAP);
	mrrc_mon_drain(fake);
	ck_assert(fake_mon_all(fake, 25, 26));
	ck_assert(fake_mon_none(fake, 26, 30));
	ck_assert(fake_mon_all(fake, 30, 32));
	ck_assert(fake_mon_none(fake, 32, 36));
	ck_assert(fake_mon_all(fake, 36, 40));
	/* Dropped pages stay mapped: all of it goes. */
	sub[0].hull = (struct mrrc_range) { base + 36 * page,
					    base + 38 * page };
	fake_mon_raise(fake, base + 37 * page, base + 38 * page,
		       MRRC_MON_REMOVE);
	mrrc_mon_drain(fake);
	ck_assert(fake_mon_none(fake, 36, 38));
	ck_assert(fake_mon_all(fake, 38, 40));
	for (i = 0; i < 2; i++)
		mrrc_mon_unsubscribe(fake, &sub[i].sub);
	mrrc_mon_close(fake);
}
END_TEST

/* ---- processes ---- */

static void expect_child(pid_t pid)
{
	int status;

	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status),
		      "child: status %#x", status);
}

/* In a child: a monitor of its own works from start to end. */
static int try_new_monitor(void)
{
	struct probe_sub own = { .sub = { note, keep } };
	struct mrrc_mon *fresh;
	char *ptr;

	if (!CHILD_MAY_THREAD)
		return 0;
	if (mrrc_mon_open("uffd", NULL, &fresh))
		return 10;
	mrrc_mon_subscribe(fresh, &own.sub);
	ptr = mmap(NULL, page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mrrc_mon_watch(fresh, (uintptr_t)ptr, page))
		return 11;
	munmap(ptr, page);
	mrrc_mon_drain(fresh);
	if (atomic_load(&own.count) != 1)
		return 12;
	mrrc_mon_unsubscribe(fresh, &own.sub);
	mrrc_mon_close(fresh);
	return 0;
}

static int in_child(char *ptr)
{
	if (mrrc_mon_works(mon) || !mrrc_mon_forked(mon))
		return 1;
	if (mrrc_mon_check(mon) != -ENODEV)
		return 2;
	munmap(ptr, page);		/* no event, nobody to wait for */
	mrrc_mon_unsubscribe(mon, &probe.sub);
	mrrc_mon_close(mon);
	return try_new_monitor();
}

START_TEST(test_fork)
{
	char *ptr = map(4);
	pid_t pid;

	need_uffd();
	ck_assert_int_eq(watch(ptr, 4), 0);
	pid = fork();
	if (!pid)
		_exit(in_child(ptr));
	expect_child(pid);
	/* The parent has lost nothing, not even an event. */
	ck_assert(mrrc_mon_works(mon));
	expect(0, NULL, 0);
	munmap(ptr, 4 * page);
	expect(1, ptr, 4);
}
END_TEST

/* While another thread keeps the monitor busy. */
static void *churn(void *arg)
{
	atomic_bool *stop = arg;
	char *ptr;

	while (!atomic_load(stop)) {
		ptr = map(1);
		watch(ptr, 1);
		munmap(ptr, page);
	}
	return NULL;
}

START_TEST(test_fork_busy)
{
	atomic_bool stop = false;
	pthread_t thread;
	pid_t pid;
	int i;

	need_uffd();
	ck_assert_int_eq(pthread_create(&thread, NULL, churn, &stop), 0);
	for (i = 0; i < 20; i++) {
		pid = fork();
		if (!pid) {
			if (mrrc_mon_works(mon))
				_exit(1);
			mrrc_mon_unsubscribe(mon, &probe.sub);
			mrrc_mon_close(mon);
			_exit(0);
		}
		expect_child(pid);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ck_assert(mrrc_mon_works(mon));
}
END_TEST

static int deny_userfaultfd(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = filter,
	};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int in_denied_child(void)
{
	char why[MRRC_MON_REASON];
	struct mrrc_mon *other;
	int rc;

	if (deny_userfaultfd())
		return 1;
	/* Valgrind knows no userfaultfd to deny. */
	rc = mrrc_mon_open("uffd", why, &other);
	if ((rc != -EPERM && rc != -ENOSYS) || !why[0])
		return 2;
	if (mrrc_mon_open(MRRC_MON_AUTO, why, &other))
		return 3;
	if (strcmp(mrrc_mon_name(other), "none") || !why[0])
		return 4;
	mrrc_mon_close(other);
	return 0;
}

START_TEST(test_denied)
{
	pid_t pid = fork();

	if (!pid)
		_exit(in_denied_child());
	expect_child(pid);
}
END_TEST

START_TEST(test_unprivileged)
{
	pid_t pid;

	need_uffd();
	if (geteuid())
		skip("not privileged to begin with");
	pid = fork();
	if (!pid) {
		if (setresuid(65534, 65534, 65534))
			_exit(1);
		/* Else /proc/self belongs to root. */
		prctl(PR_SET_DUMPABLE, 1);
		_exit(try_new_monitor());
	}
	expect_child(pid);
}
END_TEST

/* ---- lifecycle ---- */

START_TEST(test_open_fails)
{
	char why[MRRC_MON_REASON];
	struct mrrc_mon *got = NULL;
	unsigned fds, threads;
	int rc, n;

	need_uffd();
	teardown();
	mon = NULL;
	fds = fault_fds();
	threads = fault_threads();
	for (n = 1;; n++) {
		fault_arm(n);
		rc = mrrc_mon_open("uffd", why, &got);
		if (!fault_disarm())
			break;
		/* A fault of the last probe is one more round of waiting. */
		if (!rc) {
			mrrc_mon_close(got);
			got = NULL;
		}
		ck_assert_ptr_null(got);
		ck_assert_uint_eq(fault_leaks(), 0);
		ck_assert_uint_eq(fault_fds(), fds);
		ck_assert_uint_eq(fault_threads(), threads);
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_gt(n, 8);
	mrrc_mon_close(got);
	ck_assert_uint_eq(fault_fds(), fds);
	ck_assert_uint_eq(fault_threads(), threads);
}
END_TEST

START_TEST(test_reopen)
{
	atomic_bool stop = false;
	struct mrrc_mon *again;
	unsigned fds;
	pthread_t thread;
	int i;

	need_uffd();
	fds = fault_fds();
	/* Opening and closing others, while memory is in motion. */
	ck_assert_int_eq(pthread_create(&thread, NULL, churn, &stop), 0);
	for (i = 0; i < 50; i++) {
		ck_assert_int_eq(mrrc_mon_open_ops(&mrrc_mon_uffd_ops, NULL,
						   &again), 0);
		mrrc_mon_close(again);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(fault_fds(), fds);
}
END_TEST

/* The last close with ranges watched: nobody waits for the dead. */
START_TEST(test_close_watched)
{
	char *ptr = map(4);

	need_uffd();
	ck_assert_int_eq(watch(ptr, 4), 0);
	teardown();
	mon = NULL;
	munmap(ptr, 4 * page);
}
END_TEST

Suite *mon_suite(void)
{
	Suite *suite = suite_create("mon");
	TCase *tcase = tcase_create("mon");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_registry);
	tcase_add_test(tcase, test_none);
	tcase_add_loop_test(tcase, test_events, 0,
			    sizeof(changes) / sizeof(changes[0]));
	tcase_add_test(tcase, test_remap);
	tcase_add_test(tcase, test_remap_shrink);
	tcase_add_test(tcase, test_unwatched);
	tcase_add_test(tcase, test_quiet_changes);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_huge);
	tcase_add_test(tcase, test_probe);
	tcase_add_test(tcase, test_fail);
	tcase_add_test(tcase, test_probe_refused);
	tcase_add_test(tcase, test_drain_fails);
	tcase_add_test(tcase, test_cover);
	tcase_add_test(tcase, test_fork);
	tcase_add_test(tcase, test_fork_busy);
	tcase_add_test(tcase, test_denied);
	tcase_add_test(tcase, test_unprivileged);
	tcase_add_test(tcase, test_open_fails);
	tcase_add_test(tcase, test_reopen);
	tcase_add_test(tcase, test_close_watched);
	suite_add_tcase(suite, tcase);
	return suite;
}
