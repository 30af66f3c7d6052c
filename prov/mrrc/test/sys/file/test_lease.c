/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/file/lease: files that change while parts of them are held. A pipe that
 * has references to the pages (vmsplice(2)) stands for a device that has pinned
 * the pages.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "sys/file/lease.h"
#include "sys/file/lease_file.h"

#define LEN	20000
#define PAGE	4096
#define NOBODY	65534
#define LONG_MS 600000 /* longer than the test runs */

static char dir[64], path[96];
static struct mrrc_leases *leases;
static atomic_uint forgotten, signals;
/* number of errors: assertions of Check are not for threads */
static atomic_uint wrong;
/* slow: progress() is to wait; slowed: it waits */
static atomic_bool done, slow, slowed;
/* time for a writer in the next set; 0: the kernel's */
static atomic_uint break_ms;

static void forget(void *arg, uintptr_t start, size_t len)
{
	if (arg != dir || start % PAGE || len != LEN)
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&forgotten, 1);
}

static void progress(void *arg)
{
	if (arg != dir)
		atomic_fetch_add(&wrong, 1);
	while (slow) {
		slowed = true;
		usleep(1000);
	}
}

static void open_set(bool pins, unsigned wait_ms)
{
	const struct mrrc_leases_attr attr = {
		.arg = dir,
		.forget = forget,
		.progress = progress,
		.pins = pins,
		.idle_max = 2,
		.wait_ms = wait_ms,
		.break_ms = break_ms ? &break_ms : NULL,
	};

	ck_assert_int_eq(mrrc_leases_open(&attr, &leases), 0);
}

static void file_write(const char *name, char byte, size_t len)
{
	char *bytes = malloc(len + 1);
	int fd;

	memset(bytes, byte, len);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, bytes, len) != (ssize_t) len)
		atomic_fetch_add(&wrong, 1);
	close(fd);
	free(bytes);
}

static int get(const char *name, struct mrrc_lease **lease)
{
	struct mrrc_fd_id id;
	int fd = open(name, O_RDONLY), ret;

	if (fd < 0)
		return -errno;
	mrrc_fd_id(fd, &id);
	ret = mrrc_lease_get(leases, fd, &id, lease);
	close(fd);
	return ret;
}

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/dev/shm/test_lease.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	chmod(dir, 0755);
	snprintf(path, sizeof(path), "%s/file", dir);
	forgotten = signals = wrong = break_ms = 0;
	done = slow = slowed = false;
	file_write(path, 'a', LEN);
}

static void teardown(void)
{
	slow = false;
	mrrc_leases_close(leases);
	unlink(path);
	rmdir(dir);
	ck_assert_uint_eq(wrong, 0);
}

/*
 * Writes to the file. The lease is given up before the write returns; the file
 * then has new bytes.
 */
static void *writer(void *arg)
{
	file_write(path, 'b', LEN);
	atomic_store(&done, true);
	return arg;
}

static pthread_t writer_start(void)
{
	pthread_t thread;

	thread = thread_start(writer, NULL);
	return thread;
}

/* Waits until holds fail, which is when the lease has noticed the writer. */
static void wait_broken(struct mrrc_lease *lease)
{
	struct mrrc_lease_hold hold;
	char *addr;

	while (mrrc_lease_hold(lease, 0, 1, &hold, &addr) != -ESTALE) {
		mrrc_lease_release(&hold);
		usleep(1000);
	}
}

static bool has_bytes(const char *bytes, char byte, size_t len)
{
	size_t i;

	for (i = 0; i < len && bytes[i] == byte; i++)
		;
	return i == len;
}

TEST_CASE(lease, setup, teardown);

TEST(refused)
{
	struct mrrc_lease *lease;
	int fd;
	pid_t pid;

	open_set(true, 0);
	fd = open(path, O_RDWR);
	ck_assert_int_eq(get(path, &lease), -EAGAIN);
	close(fd);
	ck_assert_int_eq(get("/proc/self/stat", &lease), -EOPNOTSUPP);
	if (!geteuid()) {
		pid = fork();
		if (!pid)
			_exit(seteuid(NOBODY) || get(path, &lease) != -EACCES);
		child_exits(pid);
	}
	ck_assert_int_eq(truncate(path, 0), 0);
	ck_assert_int_eq(get(path, &lease), -ENODATA);
	/* A refused lease leaves no lease behind. */
	ck_assert_int_ge(fd = open(path, O_WRONLY | O_NONBLOCK), 0);
	close(fd);
}

/* A writable mapping prevents a lease, as a writable descriptor does. */
TEST(refused_for_a_mapping)
{
	struct mrrc_lease *lease;
	int fd = open(path, O_RDWR);
	void *map = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	open_set(true, 0);
	ck_assert_int_eq(get(path, &lease), -EAGAIN);
	munmap(map, LEN);
	ck_assert_int_eq(get(path, &lease), 0);
	mrrc_lease_put(lease);
}

TEST(parts)
{
	struct mrrc_lease *lease, *same;
	struct mrrc_lease_hold hold;
	char *addr;

	open_set(true, 0);
	ck_assert_int_eq(get(path, &lease), 0);
	ck_assert_uint_eq(mrrc_lease_file(lease)->len, LEN);
	ck_assert_int_eq(get(path, &same), 0);
	ck_assert_ptr_eq(lease, same);
	ck_assert_int_eq(mrrc_lease_hold(lease, 100, LEN - 100, &hold, &addr),
			 0);
	ck_assert(has_bytes(addr, 'a', LEN - 100));
	mrrc_lease_release(&hold);
	ck_assert_int_eq(mrrc_lease_hold(lease, 100, LEN - 99, &hold, &addr),
			 -ENODATA);
	ck_assert_int_eq(mrrc_lease_hold(lease, UINT64_MAX, 2, &hold, &addr),
			 -ENODATA);
	mrrc_lease_put(lease);
	mrrc_lease_put(same);
	ck_assert_uint_eq(forgotten, 0);
	/* A lease without users is kept. */
	ck_assert_int_eq(get(path, &same), 0);
	ck_assert_ptr_eq(lease, same);
	mrrc_lease_put(same);
}

/* The writer waits for held parts, whose bytes stay. */
TEST(writer_waits)
{
	struct mrrc_lease *lease, *fresh;
	struct mrrc_lease_hold hold;
	struct iovec iov = { .iov_len = 3 * PAGE };
	pthread_t thread;
	int device[2];
	char *addr, got[3 * PAGE];

	open_set(true, LONG_MS);
	ck_assert_int_eq(pipe(device), 0);
	ck_assert_int_eq(get(path, &lease), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, 3 * PAGE, &hold, &addr), 0);
	iov.iov_base = addr;
	ck_assert_int_eq(vmsplice(device[1], &iov, 1, 0), 3 * PAGE);
	thread = writer_start();
	wait_broken(lease);
	usleep(100000);
	ck_assert(!done);
	ck_assert_int_eq(read(device[0], got, sizeof(got)), sizeof(got));
	ck_assert(has_bytes(got, 'a', sizeof(got)));
	ck_assert(!atomic_load(&hold.failed));
	ck_assert_uint_eq(forgotten, 0);
	mrrc_lease_release(&hold);
	pthread_join(thread, NULL);
	/*
	 * The lease is given up after the release of its last part; otherwise
	 * the test runs out of time.
	 */
	while (!forgotten)
		usleep(1000);
	ck_assert_uint_eq(forgotten, 1);
	/* The new file gets a new lease, and the old lease fails. */
	ck_assert_int_eq(get(path, &fresh), 0);
	ck_assert_ptr_ne(fresh, lease);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), -ESTALE);
	mrrc_lease_put(lease);
	ck_assert_int_eq(mrrc_lease_hold(fresh, 0, LEN, &hold, &addr), 0);
	ck_assert(has_bytes(addr, 'b', LEN));
	mrrc_lease_release(&hold);
	mrrc_lease_put(fresh);
	close(device[0]);
	close(device[1]);
}

/* A writer does not wait forever: parts that a device reads are lost then. */
TEST(held_too_long)
{
	struct mrrc_lease_hold hold;
	struct mrrc_lease *lease;
	char *addr;

	open_set(true, 50);
	ck_assert_int_eq(get(path, &lease), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), 0);
	pthread_join(writer_start(), NULL);
	ck_assert(atomic_load(&hold.failed));
	ck_assert_uint_eq(forgotten, 0);
	mrrc_lease_put(lease);
	mrrc_lease_release(&hold);
}

/* A part that a processor reads by its address is replaced by a copy. */
TEST(held_too_long_is_copied)
{
	struct mrrc_lease_hold hold[3];
	struct mrrc_lease *lease;
	char *addr[3];

	open_set(false, 50);
	ck_assert_int_eq(get(path, &lease), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 5, 100, &hold[0], &addr[0]), 0);
	ck_assert_int_eq(
		mrrc_lease_hold(lease, PAGE - 1, 2, &hold[1], &addr[1]), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 3 * PAGE + 9,
					 LEN - 3 * PAGE - 9, &hold[2],
					 &addr[2]),
			 0);
	pthread_join(writer_start(), NULL);
	ck_assert_int_eq(truncate(path, 0), 0);
	ck_assert(has_bytes(addr[0], 'a', 100));
	ck_assert(has_bytes(addr[1], 'a', 2));
	ck_assert(has_bytes(addr[2], 'a', LEN - 3 * PAGE - 9));
	ck_assert(!atomic_load(&hold[0].failed));
	mrrc_lease_release(&hold[0]);
	mrrc_lease_release(&hold[1]);
	ck_assert_uint_eq(forgotten, 0);
	mrrc_lease_release(&hold[2]);
	mrrc_lease_put(lease);
}

/* The copy is no file, whose length would be limited. */
TEST(held_too_long_with_short_files)
{
	const struct rlimit few = { PAGE, RLIM_INFINITY };
	struct mrrc_lease_hold hold;
	struct mrrc_lease *lease;
	struct rlimit limit;
	char *addr;
	int fd;

	open_set(false, 50);
	ck_assert_int_eq(get(path, &lease), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), 0);
	getrlimit(RLIMIT_FSIZE, &limit);
	setrlimit(RLIMIT_FSIZE, &few);
	while ((fd = open(path, O_WRONLY | O_NONBLOCK)) < 0)
		usleep(1000);
	setrlimit(RLIMIT_FSIZE, &limit);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	close(fd);
	ck_assert(!atomic_load(&hold.failed));
	ck_assert(has_bytes(addr, 'a', LEN));
	mrrc_lease_release(&hold);
	mrrc_lease_put(lease);
}

/* A child that lives longer than its parent would keep the parent's lease. */
TEST(not_inherited)
{
	struct mrrc_fd_id id = { 0 };
	struct mrrc_lease *lease;
	struct stat stat;
	pid_t pid;
	int fd;

	open_set(true, 0);
	ck_assert_int_eq(get(path, &lease), 0);
	fd = open(path, O_RDONLY);
	mrrc_fd_id(fd, &id);
	close(fd);
	pid = fork();
	if (!pid) {
		for (fd = 3; fd < 100; fd++) {
			if (!fstat(fd, &stat) && stat.st_ino == id.ino)
				_exit(1);
		}
		_exit(0);
	}
	child_exits(pid);
	/* the parent's lease is whole */
	ck_assert_int_eq(open(path, O_WRONLY | O_NONBLOCK), -1);
	mrrc_lease_put(lease);
}

/*
 * Closes the lease's descriptor, and opens the named file with the same number,
 * which is returned.
 */
static int descriptor_reuse(const char *name)
{
	struct mrrc_fd_id id = { 0 }, found = { 0 };
	int fd = open(path, O_RDONLY), reused = -1;
	const int other = open(name, O_RDONLY);

	mrrc_fd_id(fd, &id);
	close(fd);
	for (fd = 3; fd < 100; fd++) {
		if (!mrrc_fd_id(fd, &found) && found.ino == id.ino)
			reused = dup2(other, fd);
	}
	close(other);
	ck_assert_int_ge(reused, 0);
	return reused;
}

/*
 * The application closed the lease's descriptor, and opened another file, whose
 * bytes are not copied: the operation fails.
 */
TEST(held_too_long_without_descriptor)
{
	struct mrrc_lease_hold hold;
	struct mrrc_lease *lease;
	char name[112], *addr;
	int reused;

	snprintf(name, sizeof(name), "%s/other", dir);
	file_write(name, 'c', LEN);
	open_set(false, 50);
	ck_assert_int_eq(get(path, &lease), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), 0);
	reused = descriptor_reuse(name);
	ck_assert_int_eq(open(path, O_WRONLY | O_NONBLOCK), -1);
	while (!mrrc_lease_lost(&hold) && *addr == 'a')
		usleep(1000);
	ck_assert(mrrc_lease_lost(&hold));
	mrrc_lease_put(lease);
	mrrc_lease_release(&hold);
	close(reused);
	unlink(name);
}

/* A part that cannot be copied stays until its operations have failed. */
TEST(copy_fails)
{
	const struct mrrc_lease_file *file;
	struct mrrc_lease_hold hold;
	struct mrrc_lease *lease;
	char *addr;
	int reused;

	open_set(false, LONG_MS);
	ck_assert_int_eq(get(path, &lease), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), 0);
	reused = descriptor_reuse("/dev/null");
	file = mrrc_lease_file(lease);
	ck_assert_int_ne(mrrc_lease_file_copy(file, PAGE, PAGE), 0);
	ck_assert(has_bytes(addr, 'a', LEN));
	mrrc_lease_file_zero(file, PAGE, PAGE);
	ck_assert(has_bytes(addr, 'a', PAGE));
	ck_assert(has_bytes(addr + PAGE, 0, PAGE));
	ck_assert(has_bytes(addr + 2 * PAGE, 'a', LEN - 2 * PAGE));
	mrrc_lease_release(&hold);
	mrrc_lease_put(lease);
	close(reused);
}

/* After a long stop, the lease counts as lost: the kernel may have ended it. */
TEST(stopped)
{
	struct mrrc_lease_hold hold;
	struct mrrc_lease *lease;
	pthread_t thread;
	char *addr;

	break_ms = 100;
	open_set(true, LONG_MS);
	ck_assert_int_eq(get(path, &lease), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), 0);
	usleep(150000);
	/* No writer waits. */
	ck_assert(!mrrc_lease_lost(&hold));
	thread = writer_start();
	wait_broken(lease);
	ck_assert(mrrc_lease_lost(&hold));
	mrrc_lease_release(&hold);
	pthread_join(thread, NULL);
	mrrc_lease_put(lease);
}

/* The kernel's time was shortened after the set was opened. */
TEST(stopped_for_less)
{
	struct mrrc_lease_hold hold;
	struct mrrc_lease *lease;
	pthread_t thread;
	unsigned i;
	char *addr;

	break_ms = LONG_MS;
	open_set(true, LONG_MS);
	ck_assert_int_eq(get(path, &lease), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), 0);
	break_ms = 20;
	thread = writer_start();
	wait_broken(lease);
	for (i = 0; i < 2000 && !mrrc_lease_lost(&hold); i++)
		usleep(1000);
	ck_assert(mrrc_lease_lost(&hold));
	mrrc_lease_release(&hold);
	pthread_join(thread, NULL);
	mrrc_lease_put(lease);
}

/* A copy that is made too late may be of the changed file. */
TEST(stopped_before_the_copy)
{
	struct mrrc_lease_hold hold;
	struct mrrc_lease *lease;
	bool lost = true;
	pthread_t thread;
	char *addr;

	break_ms = 20;
	open_set(false, 50);
	ck_assert_int_eq(get(path, &lease), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), 0);
	thread = writer_start();
	while (!mrrc_lease_lost(&hold) && !done)
		;
	/* The lease stays lost while the thread gives it up. */
	while (!done)
		lost &= mrrc_lease_lost(&hold);
	pthread_join(thread, NULL);
	ck_assert(lost);
	ck_assert(mrrc_lease_lost(&hold));
	mrrc_lease_release(&hold);
	mrrc_lease_put(lease);
}

/* A copy that is made in time stays right. */
TEST(stopped_after_the_copy)
{
	struct mrrc_lease_hold hold;
	struct mrrc_lease *lease;
	char *addr;

	break_ms = LONG_MS;
	open_set(false, 10);
	ck_assert_int_eq(get(path, &lease), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), 0);
	pthread_join(writer_start(), NULL);
	/* The thread has read the time; its lock says so to ThreadSanitizer. */
	wait_broken(lease);
	hold.since -= break_ms;
	ck_assert(!mrrc_lease_lost(&hold));
	ck_assert(has_bytes(addr, 'a', LEN));
	mrrc_lease_release(&hold);
	mrrc_lease_put(lease);
}

static void handler(int signal)
{
	(void) signal;
	atomic_fetch_add(&signals, 1);
}

LOOP_TEST(no_handler_runs, 0, 2)
{
	struct sigaction action = { .sa_handler = handler }, old;
	const int signal = _i ? SIGIO : MRRC_LEASE_SIGNAL;
	struct mrrc_lease *lease;

	sigaction(signal, &action, &old);
	open_set(true, 0);
	ck_assert_int_eq(get(path, &lease), 0);
	file_write(path, 'b', LEN);
	wait_broken(lease);
	ck_assert_uint_eq(signals, 0);
	sigaction(signal, &old, NULL);
	mrrc_lease_put(lease);
}

/* The application waits for its own SIGIO, which is sent to the process. */
TEST(no_signal_is_taken)
{
	const struct timespec limit = { .tv_sec = 2 };
	struct mrrc_lease *lease;
	sigset_t set, old;
	unsigned i;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	open_set(true, 0);
	ck_assert_int_eq(get(path, &lease), 0);
	for (i = 0; i < 100; i++) {
		kill(getpid(), SIGIO);
		usleep(100);
		ck_assert_int_eq(sigtimedwait(&set, NULL, &limit), SIGIO);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	mrrc_lease_put(lease);
}

/* The application closed the lease's descriptor, and opened another file. */
TEST(descriptor_of_another)
{
	struct mrrc_fd_id id = { 0 };
	struct mrrc_lease *lease;
	char name[112];
	int fd;

	open_set(true, 0);
	snprintf(name, sizeof(name), "%s/other", dir);
	file_write(name, 'c', LEN);
	fd = open(path, O_RDONLY);
	mrrc_fd_id(fd, &id);
	close(fd);
	fd = open(name, O_RDONLY);
	ck_assert_int_eq(mrrc_lease_get(leases, fd, &id, &lease), -EBADF);
	close(fd);
	/* No lease is left on this file. */
	fd = open(name, O_WRONLY | O_NONBLOCK);
	ck_assert_int_ge(fd, 0);
	close(fd);
	unlink(name);
}

/*
 * A program that becomes a daemon closes all descriptors, and opens another
 * file, with a lease of its own, under the number of the lease's descriptor.
 */
TEST(descriptor_is_closed)
{
	struct mrrc_fd_id id = { 0 }, found = { 0 };
	struct mrrc_lease_hold hold;
	struct mrrc_lease *lease;
	char name[112], *addr;
	int fd, other, type, reused = -1;

	open_set(true, 0);
	ck_assert_int_eq(get(path, &lease), 0);
	snprintf(name, sizeof(name), "%s/other", dir);
	file_write(name, 'c', LEN);
	other = open(name, O_RDONLY);
	fd = open(path, O_RDONLY);
	mrrc_fd_id(fd, &id);
	close(fd);
	for (fd = 3; fd < 100; fd++) {
		if (mrrc_fd_id(fd, &found) || found.ino != id.ino)
			continue;
		ck_assert_int_eq(dup2(other, fd), fd);
		reused = fd;
	}
	ck_assert_int_eq(fcntl(other, F_SETLEASE, F_RDLCK), 0);
	file_write(path, 'b', LEN);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), -ESTALE);
	mrrc_lease_put(lease);
	ck_assert_int_eq(get(path, &lease), 0);
	mrrc_lease_put(lease);
	/* The reused descriptor is not closed, and its lease stays. */
	mrrc_leases_close(leases);
	type = fcntl(reused, F_GETLEASE);
	open_set(true, 0);
	ck_assert_int_eq(type, F_RDLCK);
	close(other);
	close(reused);
	unlink(name);
}

/* The lease is lost without a signal, as if the kernel had ended it. */
TEST(lease_is_lost)
{
	struct mrrc_fd_id id = { 0 }, found = { 0 };
	struct mrrc_lease_hold hold;
	struct mrrc_lease *lease;
	char *addr;
	int fd;

	open_set(true, 0);
	ck_assert_int_eq(get(path, &lease), 0);
	fd = open(path, O_RDONLY);
	mrrc_fd_id(fd, &id);
	close(fd);
	for (fd = 3; fd < 100; fd++) {
		if (!mrrc_fd_id(fd, &found) && found.ino == id.ino)
			ck_assert_int_eq(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
	}
	file_write(path, 'b', LEN);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), -ESTALE);
	mrrc_lease_put(lease);
}

TEST(kept_without_users)
{
	struct mrrc_lease *lease;
	char name[4][112];
	unsigned i;
	int fd;

	open_set(true, 0);
	for (i = 0; i < 4; i++) {
		snprintf(name[i], sizeof(name[i]), "%s/%u", dir, i);
		file_write(name[i], 'a', LEN);
		ck_assert_int_eq(get(name[i], &lease), 0);
		mrrc_lease_put(lease);
	}
	ck_assert_uint_eq(forgotten, 2);
	for (i = 0; i < 4; i++) {
		fd = open(name[i], O_WRONLY | O_NONBLOCK);
		ck_assert_int_eq(fd < 0, i >= 2);
		close(fd);
		/* A writer of a kept lease waits for the thread alone. */
		file_write(name[i], 'b', LEN);
		unlink(name[i]);
	}
}

/*
 * A lost lease has no user any more, but parts of the lease are held while the
 * thread is busy: no other lease takes the place of the lost lease.
 */
TEST(kept_for_holds)
{
	struct mrrc_lease *lease, *lost;
	struct mrrc_lease_hold hold, lost_hold, none;
	char name[3][112], *addr, *lost_addr;
	unsigned i;

	open_set(true, LONG_MS);
	for (i = 0; i < 3; i++) {
		snprintf(name[i], sizeof(name[i]), "%s/%u", dir, i);
		file_write(name[i], 'a', LEN);
	}
	ck_assert_int_eq(get(path, &lost), 0);
	ck_assert_int_eq(mrrc_lease_hold(lost, 0, LEN, &lost_hold, &lost_addr),
			 0);
	ck_assert_int_eq(get(name[0], &lease), 0);
	ck_assert_int_eq(mrrc_lease_hold(lease, 0, LEN, &hold, &addr), 0);
	slow = true;
	ck_assert_int_eq(open(name[0], O_WRONLY | O_NONBLOCK), -1);
	while (!slowed)
		usleep(1000);
	ck_assert_int_eq(open(path, O_WRONLY | O_NONBLOCK), -1);
	ck_assert_int_eq(mrrc_lease_hold(lost, 0, LEN, &none, &addr), -ESTALE);
	mrrc_lease_put(lost);
	for (i = 1; i < 3; i++) {
		ck_assert_int_eq(get(name[i], &lost), 0);
		mrrc_lease_put(lost);
	}
	ck_assert_uint_eq(forgotten, 0);
	ck_assert(has_bytes(lost_addr, 'a', LEN));
	slow = false;
	mrrc_lease_release(&lost_hold);
	mrrc_lease_put(lease);
	mrrc_lease_release(&hold);
	for (i = 0; i < 3; i++)
		unlink(name[i]);
}

/*
 * Threads hold parts while the file is written: no held part has bytes of two
 * files.
 */
static void *reader(void *arg)
{
	struct mrrc_lease_hold hold;
	struct mrrc_lease *lease;
	atomic_uint *held = arg;
	char *addr;

	while (!done) {
		if (get(path, &lease))
			continue;
		if (!mrrc_lease_hold(lease, 0, LEN, &hold, &addr)) {
			if (!has_bytes(addr, addr[0], LEN))
				atomic_fetch_add(&wrong, 1);
			atomic_fetch_add(held, 1);
			mrrc_lease_release(&hold);
		}
		mrrc_lease_put(lease);
	}
	return NULL;
}

TEST(crowd)
{
	atomic_uint held[2] = { 0 };
	pthread_t thread[2];
	unsigned i;

	open_set(true, 0);
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, reader, &held[i]);
	for (i = 0; i < 200 || !held[0] || !held[1]; i++) {
		file_write(path, (char) ('a' + i % 26), LEN);
		usleep(i % 4 * 500);
	}
	done = true;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}
