/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/node/node_shm: which files are accepted as the node's segment, and which
 * processes count as alive.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "test/fakes/fault.h"
#include "test/seed.h"
#include "sys/node/node_dir.h"
#include "sys/node/node_shm.h"

#define NOBODY 65534
#define SIZE   ((off_t) sizeof(struct mrrc_node_head))

static char dir[64], path[128], other[160];
static struct mrrc_node_share share[MRRC_NODE_SLOTS];
static size_t self;

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/dev/shm/test_node.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	mrrc_node_shm_path(dir, path, sizeof(path));
	snprintf(other, sizeof(other), "%s.other", path);
}

static void teardown(void)
{
	unlink(path);
	unlink(other);
	rmdir(path);
	rmdir(dir);
}

static struct mrrc_node_shm *shm_open_here(void)
{
	struct mrrc_node_shm *shm = NULL;

	ck_assert_int_eq(mrrc_node_shm_open(dir, &shm), 0);
	return shm;
}

static void refused(int ret)
{
	struct mrrc_node_shm *shm = NULL;
	const unsigned fds = fault_fds();

	ck_assert_int_eq(mrrc_node_shm_open(dir, &shm), ret);
	ck_assert_ptr_null(shm);
	ck_assert_uint_eq(fault_fds(), fds);
}

/* Returns the number of live processes, according to the kernel. */
static size_t count(struct mrrc_node_shm *shm)
{
	return mrrc_node_shm_read(shm, true, 1, share, &self);
}

static void make(mode_t mode, off_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	ck_assert_int_eq(ftruncate(fd, size), 0);
	close(fd);
}

static struct mrrc_node_head *map(void)
{
	int fd = open(path, O_RDWR);
	void *head =
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	ck_assert_ptr_ne(head, MAP_FAILED);
	return head;
}

TEST_CASE(node_shm, setup, teardown);

/* ---- the segment's directory ---- */

static struct mrrc_node_dirs dirs;

static struct mrrc_node_shm *find(unsigned want)
{
	struct mrrc_node_shm *shm = NULL;
	char name[MRRC_NODE_DIR_MAX + 32];

	ck_assert_int_eq(mrrc_node_dirs_open(&dirs, &shm), 0);
	mrrc_node_shm_path(dirs.dir[want], name, sizeof(name));
	ck_assert_int_eq(access(name, F_OK), 0);
	return shm;
}

static void unlink_in(unsigned i)
{
	char name[MRRC_NODE_DIR_MAX + 32];

	mrrc_node_shm_path(dirs.dir[i], name, sizeof(name));
	unlink(name);
}

/* The first directory is used that has a segment, or can have one. */
TEST(test_dirs)
{
	struct mrrc_node_shm *shm, *second;
	unsigned i;

	dirs.count = 2;
	for (i = 0; i < 2; i++) {
		snprintf(dirs.dir[i], sizeof(dirs.dir[i]), "%s/%u", dir, i);
		ck_assert_int_eq(mkdir(dirs.dir[i], 0700), 0);
	}
	mrrc_node_shm_close(find(0));
	/* A process that knows only the second directory makes one. */
	unlink_in(0);
	ck_assert_int_eq(mrrc_node_shm_open(dirs.dir[1], &second), 0);
	shm = find(1);
	ck_assert_uint_eq(count(shm), 2);
	mrrc_node_shm_close(shm);
	mrrc_node_shm_close(second);
	unlink_in(1);
	/* The file of another user, or what looks like one, is not used. */
	mrrc_node_shm_path(dirs.dir[0], other, sizeof(other));
	ck_assert_int_eq(symlink("/dev/null", other), 0);
	mrrc_node_shm_close(find(1));
	unlink_in(1);
	rmdir(dirs.dir[1]);
	ck_assert_int_eq(mrrc_node_dirs_open(&dirs, &shm), -ENOENT);
	unlink_in(0);
	rmdir(dirs.dir[0]);
}

/*
 * The processes of a full segment have the whole budget: no other segment is
 * made.
 */
TEST(test_dirs_full)
{
	struct flock all = { .l_type = F_WRLCK, .l_len = MRRC_NODE_SLOTS };
	struct mrrc_node_shm *shm;
	int fd;

	make(0600, 0);
	fd = open(path, O_RDWR);
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &all), 0);
	dirs.count = 2;
	snprintf(dirs.dir[0], sizeof(dirs.dir[0]), "%s/none", dir);
	ck_assert_int_eq(mkdir(dirs.dir[0], 0700), 0);
	strcpy(dirs.dir[1], dir);
	ck_assert_int_eq(mrrc_node_dirs_open(&dirs, &shm), -EUSERS);
	ck_assert_int_eq(rmdir(dirs.dir[0]), 0);
	close(fd);
}

static bool is_first(const char *name)
{
	setenv("XDG_RUNTIME_DIR", name, 1);
	mrrc_node_dirs(&dirs);
	unsetenv("XDG_RUNTIME_DIR");
	ck_assert_str_eq(dirs.dir[dirs.count - 1], "/dev/shm");
	return !strcmp(dirs.dir[0], name);
}

/* A directory that others may use, or choose, is not used. */
TEST(test_dirs_private)
{
	char link[80];

	ck_assert(is_first(dir));
	ck_assert_int_eq(chmod(dir, 0750), 0);
	ck_assert(!is_first(dir));
	ck_assert_int_eq(chmod(dir, 0700), 0);
	snprintf(link, sizeof(link), "%s/link", dir);
	ck_assert_int_eq(symlink(dir, link), 0);
	ck_assert(!is_first(link));
	unlink(link);
	ck_assert(!is_first("relative"));
	if (geteuid())
		return;
	ck_assert_int_eq(chown(dir, NOBODY, -1), 0);
	ck_assert(!is_first(dir));
	ck_assert_int_eq(chown(dir, 0, -1), 0);
}

/* Files are refused that others own or can open, and other kinds of file. */
TEST(test_refused)
{
	make(0644, SIZE);
	refused(-EPERM);
	make(0600, SIZE - 1);
	refused(-EPROTO);
	make(0600, 0);
	ck_assert_int_eq(link(path, other), 0);
	refused(-EPERM);
	unlink(path);
	ck_assert_int_eq(symlink(other, path), 0);
	refused(-ELOOP);
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	refused(-EPERM);
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	refused(-EISDIR);
	rmdir(path);
	snprintf(dir + strlen(dir), 8, "/no");
	refused(-ENOENT);
	dir[strlen(dir) - 3] = '\0';
}

TEST(test_file_limit)
{
	struct rlimit before, limit;

	make(0600, 0);
	/* Check itself writes short files. */
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = SIZE - 1;
	setrlimit(RLIMIT_FSIZE, &limit);
	refused(-EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
}

TEST(test_foreign)
{
	if (geteuid())
		skip("only root can give a file away\n");
	make(0600, SIZE);
	ck_assert_int_eq(chown(path, NOBODY, -1), 0);
	refused(-EPERM);
	ck_assert_int_eq(truncate(path, 0), 0);
	refused(-EPERM);
}

TEST(test_content)
{
	struct mrrc_node_head *head;

	make(0600, SIZE);
	head = map();
	atomic_store(&head->magic, MRRC_NODE_SHM_MAGIC + 1);
	refused(-EPROTO);
	ck_assert_uint_eq(atomic_load(&head->slots), 0);
	atomic_store(&head->magic, 0);
	mrrc_node_shm_close(shm_open_here());
	ck_assert_uint_eq(atomic_load(&head->magic), MRRC_NODE_SHM_MAGIC);
	munmap(head, SIZE);
}

/*
 * The file has a process of a later version: the process counts, and its
 * unknown words stay, unless its slot is taken over.
 */
TEST(test_other_version)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };
	static const uint64_t theirs[] = {
		/* These words are word, want, used, cpus and flags. */
		UINT64_C(3) << 40 | 17, 5, 16, 1, UINT64_C(0x80000000) | 3,
		/* spare */ 1,		2, 3
	};
	struct mrrc_node_shm *shm;
	uint64_t *file;
	char name[160];
	int fd;

	snprintf(name, sizeof(name), "%s/ofi_mrrc-%u.1", dir,
		 (unsigned) geteuid());
	ck_assert_str_eq(path, name);
	make(0600, SIZE + 4096);
	file = (void *) map();
	file[0] = UINT64_C(0x65646f6e5f697201);
	file[1] = 1;
	memcpy(file + 8, theirs, sizeof(theirs));
	fd = open(path, O_RDWR);
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
	shm = shm_open_here();
	ck_assert_uint_eq(count(shm), 2);
	ck_assert_uint_eq(self, 1);
	ck_assert_uint_eq(share[0].reserved, 17);
	ck_assert_uint_eq(share[0].want, 5);
	ck_assert_uint_eq(share[0].used, 16);
	ck_assert(!memcmp(file + 8, theirs, sizeof(theirs)));
	mrrc_node_shm_close(shm);
	close(fd);
	shm = shm_open_here();
	ck_assert_uint_eq(count(shm), 1);
	ck_assert_uint_eq(file[13] | file[14] | file[15], 0);
	mrrc_node_shm_close(shm);
	munmap(file, SIZE);
}

/* No process has generation 0: a slot with this generation counts as free. */
TEST(test_no_generation)
{
	struct mrrc_node_shm *shm;
	struct mrrc_node_head *head;

	make(0600, SIZE);
	head = map();
	shm = shm_open_here();
	atomic_store(&head->slots, 2);
	atomic_store(&head->slot[1].flags, MRRC_NODE_LIVE);
	ck_assert_uint_eq(count(shm), 1);
	mrrc_node_shm_close(shm);
	munmap(head, SIZE);
}

/*
 * Whatever the file contains, there is no crash, no endless loop, and no live
 * process.
 */
LOOP_TEST(test_random, 0, 3)
{
	struct seed seed = seed_init("node_shm", _i);
	struct mrrc_node_shm *shm;
	struct mrrc_node_head *head;
	uint64_t *word;
	unsigned turn;
	size_t i, n;

	for (turn = 0; turn < 20; turn++) {
		make(0600, SIZE);
		head = map();
		word = (void *) head;
		for (i = 1; i < SIZE / sizeof(*word); i++)
			word[i] = seed_below(&seed, UINT64_MAX);
		atomic_store(&head->magic, turn & 1 ? MRRC_NODE_SHM_MAGIC : 0);
		shm = shm_open_here();
		n = mrrc_node_shm_read(shm, false, 1, share, &self);
		ck_assert_uint_le(n, MRRC_NODE_SLOTS);
		for (i = 0; i < n; i++)
			ck_assert_uint_lt(share[i].reserved, MRRC_NODE_UNITS);
		ck_assert_uint_eq(count(shm), 1);
		ck_assert_uint_eq(share[0].reserved, 0);
		/* The contents change again after the segment was opened. */
		mrrc_node_shm_reserve(shm, UINT64_MAX);
		for (i = 1; i < SIZE / sizeof(*word); i++)
			word[i] = seed_below(&seed, UINT64_MAX);
		n = mrrc_node_shm_read(shm, turn & 2, 5000, share, &self);
		ck_assert_uint_le(n, MRRC_NODE_SLOTS);
		ck_assert_uint_lt(self, n);
		mrrc_node_shm_reserve(shm, 9);
		ck_assert_uint_eq(count(shm), 1);
		ck_assert_uint_eq(share[0].reserved, 9);
		mrrc_node_shm_close(shm);
		munmap(head, SIZE);
	}
}

TEST(test_open_fails)
{
	struct mrrc_node_shm *shm = NULL;
	const unsigned fds = fault_fds();
	bool fired = true;
	int n, ret = 0;

	for (n = 1; fired; n++) {
		unlink(path);
		fault_arm(n);
		ret = mrrc_node_shm_open(dir, &shm);
		fired = fault_disarm();
		ck_assert(!fired == !ret);
		ck_assert(!fired || !fault_leaks());
		ck_assert(!fired || fault_fds() == fds);
	}
	ck_assert_int_gt(n, 3);
	mrrc_node_shm_close(shm);
}

/* ---- processes ---- */

static int told[2];

/*
 * Starts a process that has 5 units and forks @children that live on; returns
 * its pid.
 */
static pid_t start(unsigned children)
{
	unsigned missing = children + 1;
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (!pid) {
		/* The child ends with its parent, even if it is stopped. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0); /* a group for children, which outlive it */
		mrrc_node_shm_reserve(shm_open_here(), 5);
		for (; children; children--) {
			if (!fork()) {
				end_in(60);
				if (write(told[1], "c", 1) == 1)
					pause();
				_exit(1);
			}
		}
		if (write(told[1], "p", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	/* All processes have run their fork handlers then. */
	for (; missing; missing--)
		ck_assert_int_eq(read(told[0], &c, 1), 1);
	return pid;
}

static void finish(pid_t pid)
{
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	close(told[0]);
}

TEST(test_killed)
{
	struct mrrc_node_shm *shm;
	pid_t pid = start(0);

	shm = shm_open_here();
	ck_assert_uint_eq(count(shm), 2);
	ck_assert_uint_eq(share[0].reserved, 5);
	finish(pid);
	/* Without a check of processes, the ended process still counts. */
	ck_assert_uint_eq(mrrc_node_shm_read(shm, false, 1, share, &self), 2);
	ck_assert_uint_eq(count(shm), 1);
	ck_assert_uint_eq(mrrc_node_shm_read(shm, false, 1, share, &self), 1);
	/* Another process takes the same slot. */
	pid = start(0);
	ck_assert_uint_eq(mrrc_node_shm_read(shm, false, 1, share, &self), 2);
	ck_assert_uint_eq(share[0].reserved, 5);
	finish(pid);
	mrrc_node_shm_close(shm);
}

/* A child of a killed process lives on; the slot is free all the same. */
TEST(test_fork)
{
	struct mrrc_node_shm *shm;
	pid_t pid = start(2);

	shm = shm_open_here();
	ck_assert_uint_eq(count(shm), 2);
	finish(pid);
	ck_assert_uint_eq(count(shm), 1);
	ck_assert_int_eq(kill(-pid, SIGKILL), 0);
	mrrc_node_shm_close(shm);
}

/* A child closes the segment that it inherits; the parent's stays as it was. */
TEST(test_fork_close)
{
	struct mrrc_node_shm *shm = shm_open_here(), *b = shm_open_here();
	pid_t pid;

	mrrc_node_shm_reserve(shm, 4);
	pid = fork();
	if (!pid) {
		const bool whole = mrrc_node_shm_whole(shm);

		mrrc_node_shm_close(shm);
		_exit(whole);
	}
	child_exits(pid);
	ck_assert(mrrc_node_shm_whole(shm));
	ck_assert_uint_eq(count(b), 2);
	ck_assert_uint_eq(share[0].reserved, 4);
	mrrc_node_shm_close(shm);
	mrrc_node_shm_close(b);
}

TEST(test_stopped)
{
	struct mrrc_node_shm *shm;
	pid_t pid = start(0);

	shm = shm_open_here();
	kill(pid, SIGSTOP);
	ck_assert_uint_eq(count(shm), 2);
	ck_assert(!share[0].deaf);
	mrrc_node_shm_read(shm, true, 4000, share, &self);
	ck_assert(!share[0].deaf);
	mrrc_node_shm_ring(shm);
	mrrc_node_shm_read(shm, true, 4500, share, &self);
	ck_assert(!share[0].deaf);
	mrrc_node_shm_read(shm, true, 5600, share, &self);
	ck_assert(share[0].deaf);
	ck_assert(!share[self].deaf);
	ck_assert_uint_eq(share[0].reserved, 5);
	finish(pid);
	mrrc_node_shm_close(shm);
}

/* A process has time to answer, even if the last look was long ago. */
TEST(test_not_deaf)
{
	struct mrrc_node_shm *shm = shm_open_here(), *b = shm_open_here();

	mrrc_node_shm_read(shm, false, 1000, share, &self);
	mrrc_node_shm_ring(b);
	mrrc_node_shm_read(shm, false, 9000, share, &self);
	ck_assert(!share[1].deaf);
	mrrc_node_shm_read(shm, false, 10000, share, &self);
	ck_assert(!share[1].deaf);
	mrrc_node_shm_read(shm, false, 10001, share, &self);
	ck_assert(share[1].deaf);
	mrrc_node_shm_close(shm);
	mrrc_node_shm_close(b);
}

/* A program closes descriptors that it did not open. */
TEST(test_closed)
{
	struct mrrc_node_shm *shm = shm_open_here();
	struct stat want, got;
	int fd;

	ck_assert_int_eq(stat(path, &want), 0);
	for (fd = 3; fd < 256; fd++) {
		if (!fstat(fd, &got) && got.st_ino == want.st_ino &&
		    got.st_dev == want.st_dev)
			close(fd);
	}
	ck_assert(!mrrc_node_shm_whole(shm));
	mrrc_node_shm_close(shm);
	shm = shm_open_here();
	ck_assert_uint_eq(count(shm), 1);
	mrrc_node_shm_close(shm);
}
