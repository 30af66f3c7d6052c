/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests what fi_mrrc_serve reads: files beneath a directory, versions of files,
 * and pages of directories.
 */
#include "config.h"
#include "test_serve.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "serve/server/list.h"
#include "serve/wire/path.h"
#include "serve/server/source.h"
#include "serve/wire/wire.h"

static enum serve_status open_status(const char *path)
{
	const struct source source = { .dir = top };
	struct source_file *file;
	enum serve_status status = source_open(&source, path, false, &file);

	if (status == SERVE_OK)
		source_put(file);
	return status;
}

static void check_dir_mode(const char *path, mode_t set, mode_t want)
{
	const struct source source = { .dir = top };
	uint16_t mode = 0777;

	ck_assert_int_eq(fchmodat(top, path, set, 0), 0);
	ck_assert_int_eq(source_dir_mode(&source, path, &mode), SERVE_IS_DIR);
	ck_assert_uint_eq(mode, want);
}

TEST_CASE(files, make_files, remove_files);

TEST(beneath)
{
	ck_assert_int_eq(open_status("file"), SERVE_OK);
	ck_assert_int_eq(open_status("dir"), SERVE_IS_DIR);
	ck_assert_int_eq(open_status(""), SERVE_IS_DIR);
	check_dir_mode("dir", 01750, 0750);
	check_dir_mode("dir", 0500, 0500);
	ck_assert_int_eq(open_status("none"), SERVE_NOENT);
	ck_assert_int_eq(open_status("file/x"), SERVE_NOENT);
	ck_assert_int_eq(open_status("link"), SERVE_LINK);
	ck_assert_int_eq(open_status("inner"), SERVE_LINK);
	ck_assert_int_eq(open_status("linked/secret"), SERVE_LINK);
	/* the decoder refuses these paths, and so does the kernel */
	ck_assert_int_eq(open_status("../out/secret"), SERVE_LINK);
	ck_assert_int_eq(open_status("/etc/passwd"), SERVE_LINK);
}

/* Denies openat2(2), as a container may. */
static int root_denied(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return -errno;
	return path_root("/");
}

/* Without openat2(2) the server must not begin: it would refuse each file. */
TEST(root_without_openat2)
{
	int dir = path_root("/"), status;
	pid_t pid;

	ck_assert_int_ge(dir, 0);
	close(dir);
	ck_assert_int_eq(path_root("/none"), -ENOENT);
	ck_assert_int_eq(path_root("/etc/passwd"), -ENOTDIR);
	pid = fork();
	if (!pid)
		_exit(root_denied() == -ENOSYS ? EXIT_SUCCESS : EXIT_FAILURE);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_ptr_nonnull(strstr(path_root_error(-ENOSYS), "seccomp"));
}

static enum serve_status list_status(const struct source *source,
				     const char *path)
{
	uint8_t buf[SERVE_MSG_MAX];
	uint64_t cursor = 0;
	size_t len;

	return list_page(source, path, &cursor, buf, &len);
}

/* Rights of a directory and a file in it, and the results for other users. */
static const struct {
	mode_t dir, file;
	enum serve_status open, list;
} rights[] = {
	{ 0755, 0644, SERVE_OK, SERVE_OK },
	{ 0755, 0640, SERVE_ACCES, SERVE_OK },
	{ 0750, 0644, SERVE_ACCES, SERVE_ACCES },
	{ 0711, 0644, SERVE_OK, SERVE_ACCES },
	{ 0754, 0644, SERVE_ACCES, SERVE_ACCES },
	{ 0701, 0604, SERVE_OK, SERVE_ACCES },
};

/* Files that not all users may read are served on request only. */
EACH_TEST(others, rights)
{
	struct source source = { .dir = top, .others = true };
	struct source_file *file;

	write_file(top, "dir/file", "0123456789");
	ck_assert_int_eq(fchmodat(top, "dir", rights[_i].dir, 0), 0);
	ck_assert_int_eq(fchmodat(top, "dir/file", rights[_i].file, 0), 0);
	ck_assert_int_eq(source_open(&source, "dir/file", false, &file),
			 rights[_i].open);
	if (rights[_i].open == SERVE_OK)
		source_put(file);
	else
		ck_assert_int_ne(source_open(&source, "dir/file", true, &file),
				 SERVE_OK);
	ck_assert_int_eq(list_status(&source, "dir"), rights[_i].list);
	ck_assert_int_eq(list_status(&source, ""), SERVE_OK);
	source.others = false;
	ck_assert_int_eq(source_open(&source, "dir/file", false, &file),
			 SERVE_OK);
	source_put(file);
	ck_assert_int_eq(list_status(&source, "dir"), SERVE_OK);
}

/* Directories above the served one count, too: mkdtemp()'s is closed. */
TEST(others_above)
{
	const int dir = open("/", O_PATH | O_DIRECTORY);

	ck_assert(path_root_others(dir));
	ck_assert(!path_root_others(top));
	ck_assert_int_eq(fchmodat(top, "..", 0711, 0), 0);
	ck_assert(path_root_others(top));
	ck_assert_int_eq(fchmod(top, 0750), 0);
	ck_assert(!path_root_others(top));
	close(dir);
}

/* Opening a FIFO would wait for a writer, or disturb a reader. */
TEST(fifo_is_not_opened)
{
	int fd = openat(top, "fifo", O_RDONLY | O_NONBLOCK);
	struct pollfd;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(open_status("fifo"), SERVE_SPECIAL);
	close(fd);
	ck_assert_int_eq(open_status("fifo"), SERVE_SPECIAL);
}

/* A lease, as of a Samba server: the holder is asked to release the file. */
TEST(leased)
{
	int fd = openat(top, "file", O_RDWR);

	signal(SIGIO, SIG_IGN);
	/* if the test may take leases, and the file system has them */
	if (!fcntl(fd, F_SETLEASE, F_WRLCK)) {
		ck_assert_int_eq(open_status("file"), SERVE_BUSY);
		ck_assert_int_eq(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
	}
	ck_assert_int_eq(open_status("file"), SERVE_OK);
	close(fd);
}

static struct source_file *opened(const char *path)
{
	const struct source source = { .dir = top };
	struct source_file *file = NULL;

	ck_assert_int_eq(source_open(&source, path, false, &file), SERVE_OK);
	return file;
}

static enum serve_status read_status(struct source_file *file, uint64_t off,
				     size_t max, uint32_t *len)
{
	static char buf[4096];
	struct source_block block = { .buf = buf, .size = sizeof(buf) };
	uint64_t hash;

	return source_read(file, off, max, &block, len, &hash);
}

/* Each kind of change is noticed, also within a tick of the clock. */
LOOP_TEST(changes, 0, 5)
{
	struct source_file *file;
	uint32_t len;
	int fd;

	write_file(top, "file", "0123456789");
	file = opened("file");
	fd = openat(top, "file", O_RDWR);
	switch (_i) {
	case 0: /* overwritten, same size */
		ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
		break;
	case 1: /* truncated */
		ck_assert_int_eq(ftruncate(fd, 5), 0);
		break;
	case 2: /* truncated, and as long as before */
		ck_assert_int_eq(ftruncate(fd, 5), 0);
		ck_assert_int_eq(ftruncate(fd, 10), 0);
		break;
	case 3: /* appended to */
		ck_assert_int_eq(pwrite(fd, "x", 1, 10), 1);
		break;
	case 4: /* overwritten, and the time put back */
		ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
		ck_assert_int_eq(
			futimens(fd,
				 (const struct timespec[]){
					 { .tv_nsec = UTIME_OMIT },
					 { file->ident.mtime_ns / 1000000000,
					   file->ident.mtime_ns % 1000000000 },
				 }),
			0);
		break;
	}
	close(fd);
	ck_assert_int_eq(read_status(file, 0, 10, &len), SERVE_CHANGED);
	source_put(file);
}

/* ---- requests without jobs ----------------------------------------------- */

#define WRITE_S 2 /* any write(2) of a small file is shorter */

/* The clock and the page cache that the server's code sees. */
static struct {
	int64_t clock_ns; /* CLOCK_REALTIME_COARSE stands here; 0: it goes */
	int error;	  /* of reads that must not wait; or 0 */
	unsigned reads;	  /* number of such reads */
} fake;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int count, off_t off,
		       int flags);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_REALTIME_COARSE || !fake.clock_ns)
		return __real_clock_gettime(clock, time);
	time->tv_sec = fake.clock_ns / 1000000000;
	time->tv_nsec = fake.clock_ns % 1000000000;
	return 0;
}

ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int count, off_t off,
		       int flags)
{
	if (flags & RWF_NOWAIT) {
		fake.reads++;
		errno = fake.error;
		if (errno)
			return -1;
	}
	return preadv(fd, iov, count, off);
}

static int64_t changed_ns(int dir, const char *path)
{
	struct stat st;

	ck_assert_int_eq(fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_ctim.tv_sec * 1000000000L + st.st_ctim.tv_nsec;
}

/*
 * Opens the file without waiting, @age_ns after its change. The kernel may
 * refuse to open without waiting while other paths are renamed, and always
 * refuses on some file systems.
 */
static bool opened_at_once(int dir, const char *path, int64_t age_ns,
			   struct source_file **file)
{
	const struct source source = { .dir = dir };
	bool opened = false;
	unsigned i;

	fake.clock_ns = changed_ns(dir, path) + age_ns;
	for (i = 0; i < 100 && !opened; i++)
		opened = source_open(&source, path, true, file) == SERVE_OK;
	fake.clock_ns = 0;
	return opened;
}

#define SECOND 1000000000L

static void check_old_enough(void)
{
	static const struct {
		int64_t age_ns;
		bool opened;
	} ages[] = {
		{ 0, false },
		{ WRITE_S * SECOND, false },
		{ WRITE_S * SECOND + 1, true },
		{ 1 - WRITE_S * SECOND, false },
		{ -WRITE_S * SECOND, true }, /* a time of another clock */
	};
	struct source_file *file;
	unsigned i;

	for (i = 0; i < sizeof(ages) / sizeof(*ages); i++) {
		ck_assert_int_eq(opened_at_once(top, "file", ages[i].age_ns,
						&file),
				 ages[i].opened);
		if (ages[i].opened)
			source_put(file);
	}
}

/*
 * A read without waiting returns the same bytes as other reads, or fails: it
 * fails for a file that was just changed, is not in memory, or is on some other
 * file system.
 */
TEST(at_once)
{
	static const char *refused[] = { "link", "dir", "large" };
	static char buf[SERVE_INLINE_MAX];
	struct source_block block = {
		.buf = buf, .size = sizeof(buf), .copy = true, .now = true
	};
	const struct source source = { .dir = top };
	struct source_file *file;
	uint32_t len;
	uint64_t hash;
	unsigned i;
	int fd;

	write_file(top, "large", "");
	fd = openat(top, "large", O_WRONLY);
	ck_assert_int_eq(ftruncate(fd, SERVE_INLINE_MAX + 1), 0);
	close(fd);
	for (i = 0; i < 3; i++)
		ck_assert(!opened_at_once(top, refused[i], 9 * SECOND, &file));
	ck_assert_int_ne(source_open(&source, "none", true, &file), SERVE_OK);
	/* a job opens large files, and files changed at this moment */
	source_put(opened("file"));
	source_put(opened("large"));
	ck_assert(!opened_at_once(top, "file", 0, &file));
	if (!opened_at_once(top, "file", 9 * SECOND, &file))
		return;
	source_put(file);
	check_old_enough();
	ck_assert(opened_at_once(top, "file", 9 * SECOND, &file));
	fake.error = EAGAIN;
	ck_assert_int_eq(source_read(file, 0, sizeof(buf), &block, &len, &hash),
			 SERVE_BUSY);
	/* tmpfs, whose pages are in memory */
	fake.error = EOPNOTSUPP;
	for (i = 2; i < 4; i++) {
		memset(buf, 0, 10);
		ck_assert_int_eq(source_read(file, 0, sizeof(buf), &block, &len,
					     &hash),
				 SERVE_OK);
		ck_assert_uint_eq(fake.reads, i);
		ck_assert_uint_eq(len, 10);
		ck_assert(!memcmp(buf, "0123456789", 10));
		fake.error = 0;
	}
	source_put(file);
}

/* No file is read at once on a file system that might wait. */
TEST(at_once_elsewhere)
{
	struct source source = { 0 };
	struct source_file *file;

	ck_assert_int_eq(fchdir(top), 0);
	/* if the test may mount */
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "dir", "ramfs", 0, NULL))
		return;
	/* top is a descriptor of the former mounts */
	source.dir = open("dir", O_PATH);
	write_file(source.dir, "file", "x");
	ck_assert_int_eq(source_open(&source, "file", false, &file), SERVE_OK);
	source_put(file);
	ck_assert(!opened_at_once(source.dir, "file", 9 * SECOND, &file));
	close(source.dir);
	ck_assert_int_eq(umount("dir"), 0);
}

#define PAGE 4096
#define SLOW 5000 /* bytes: two pages */

/* A write that waits for its second page. */
static struct {
	int faults; /* a userfaultfd */
	char *bytes;
} slow;

static void slow_page(size_t at, char byte)
{
	static char page[PAGE] __attribute__((aligned(PAGE)));
	struct uffdio_copy copy = { .dst = (uintptr_t) slow.bytes + at,
				    .src = (uintptr_t) page,
				    .len = PAGE };

	memset(page, byte, PAGE);
	if (ioctl(slow.faults, UFFDIO_COPY, &copy))
		abort();
}

static void *slow_write(void *arg)
{
	int fd = openat(top, "file", O_WRONLY);

	if (pwrite(fd, slow.bytes, SLOW, 0) != SLOW)
		abort();
	close(fd);
	return arg;
}

static void *slow_release(void *arg)
{
	usleep(100000);
	slow_page(PAGE, 'b');
	return arg;
}

/* Begins the slow write, which waits. false: this user may not. */
static bool slow_begin(pthread_t *writer)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	struct pollfd poll_fd = { .events = POLLIN };

	slow.faults = (int) syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (slow.faults < 0 || ioctl(slow.faults, UFFDIO_API, &api))
		return false;
	slow.bytes = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(slow.bytes, MAP_FAILED);
	reg.range.start = (uintptr_t) slow.bytes;
	reg.range.len = 2 * PAGE;
	ck_assert_int_eq(ioctl(slow.faults, UFFDIO_REGISTER, &reg), 0);
	slow_page(0, 'b');
	ck_assert_int_eq(pthread_create(writer, NULL, slow_write, NULL), 0);
	poll_fd.fd = slow.faults;
	ck_assert_int_eq(poll(&poll_fd, 1, 60000), 1);
	return true;
}

/*
 * A write changes the time first, and then the bytes, which takes time: a file
 * that is opened meanwhile has no version yet.
 */
TEST(being_written)
{
	static char text[SLOW + 1];
	struct source_file *file;
	pthread_t writer, release;
	uint64_t hash, later;
	uint32_t len;

	memset(text, 'a', SLOW);
	write_file(top, "file", text);
	if (!slow_begin(&writer))
		return;
	/* longer than a tick */
	ck_assert(!opened_at_once(top, "file", SECOND / 50, &file));
	pthread_create(&release, NULL, slow_release, NULL);
	file = opened("file");
	ck_assert_int_eq(source_read(file, 0, SLOW, NULL, &len, &hash),
			 SERVE_OK);
	pthread_join(release, NULL);
	pthread_join(writer, NULL);
	ck_assert_int_eq(source_read(file, 0, SLOW, NULL, &len, &later),
			 SERVE_OK);
	ck_assert_uint_eq(hash, later);
	source_put(file);
	munmap(slow.bytes, 2 * PAGE);
	close(slow.faults);
}

/*
 * No version of a file is determined within the clock tick of the file's last
 * change, as another change in the same tick would look the same.
 */
TEST(fresh)
{
	struct source_file *file;
	struct timespec now;
	unsigned i;

	for (i = 0; i < 20; i++) {
		write_file(top, "file", "0123456789");
		file = opened("file");
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
		ck_assert_int_lt(file->ident.ctime_ns,
				 now.tv_sec * SECOND + now.tv_nsec);
		source_put(file);
	}
}

/* All entries, each once, over many pages. */
TEST(pages)
{
	const struct source whole = { .dir = top };
	uint8_t buf[SERVE_MSG_MAX];
	const uint8_t *at;
	unsigned seen[1000] = { 0 }, count = 0, turns = 0, i;
	struct serve_entry entry;
	uint64_t cursor = 0;
	char name[32], text[32];
	size_t len;

	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "dir/entry-%04u", i);
		write_file(top, name, "");
	}
	do {
		ck_assert_int_eq(list_page(&whole, "dir", &cursor, buf, &len),
				 SERVE_OK);
		for (at = buf; !serve_entry_next(&at, &len, &entry); count++) {
			snprintf(text, sizeof(text), "%.*s",
				 (int) entry.name_len, entry.name);
			ck_assert_int_eq(sscanf(text, "entry-%u", &i), 1);
			ck_assert_uint_lt(i, 1000);
			ck_assert_uint_eq(seen[i]++, 0);
		}
		turns++;
	} while (cursor);
	ck_assert_uint_eq(count, 1000);
	ck_assert_uint_gt(turns, 2);
}

TEST(kinds)
{
	const struct source whole = { .dir = top };
	static const struct {
		const char *name;
		enum serve_kind kind;
	} want[] = {
		{ "file", SERVE_FILE },	   { "dir", SERVE_DIR },
		{ "link", SERVE_SYMLINK }, { "linked", SERVE_SYMLINK },
		{ "fifo", SERVE_OTHER },   { "inner", SERVE_SYMLINK },
	};
	const uint8_t *at;
	struct serve_entry entry;
	uint8_t buf[SERVE_MSG_MAX];
	unsigned i, count = 0;
	uint64_t cursor = 0;
	size_t len;

	ck_assert_int_eq(fchmodat(top, "dir", 01751, 0), 0);
	ck_assert_int_eq(list_page(&whole, "", &cursor, buf, &len), SERVE_OK);
	for (at = buf; !serve_entry_next(&at, &len, &entry); count++) {
		for (i = 0; i < 6; i++) {
			if (strlen(want[i].name) == entry.name_len &&
			    !memcmp(want[i].name, entry.name, entry.name_len))
				ck_assert_int_eq(entry.kind, want[i].kind);
		}
		if (entry.kind == SERVE_DIR)
			ck_assert_uint_eq(entry.size, 0751);
	}
	ck_assert_uint_eq(count, 6);
	cursor = 0;
	ck_assert_int_eq(list_page(&whole, "file", &cursor, buf, &len),
			 SERVE_NOT_DIR);
	ck_assert_int_eq(list_page(&whole, "linked", &cursor, buf, &len),
			 SERVE_LINK);
	/* a client may send any position */
	cursor = INT64_MAX;
	list_page(&whole, "", &cursor, buf, &len);
	ck_assert_uint_le(len, SERVE_MSG_MAX - SERVE_PAGE_HEAD);
}
