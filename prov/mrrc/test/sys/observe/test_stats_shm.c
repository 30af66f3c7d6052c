/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/observe/stats_shm: the contents of a segment, the processes that may
 * write to it, and the counters of a cache. util/stat/test tests reading.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "test/fakes/fake_reg.h"
#include "test/fakes/fault.h"
#include "sys/observe/stats_shm.h"
#include "sys/cache/cache_mt.h"
#include "sys/base/vm.h"

#define LINK "/memfd:" MRRC_STATS_SHM_NAME " (deleted)"

static const struct mrrc_stats_shm_info info = {
	.provider = "a;b",
	.policy = "lru:pieces=2",
	.monitor = "none",
	.max_bytes = 1 << 20,
	.max_regions = 7,
	.registers = true,
};

/* Finds the path of the only segment of this process, or returns false. */
static bool find(char *path, size_t size)
{
	unsigned found = 0;
	char link[64];
	ssize_t len;
	int fd;

	for (fd = 0; fd < 256; fd++) {
		char name[64];

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		len = readlink(name, link, sizeof(link) - 1);
		if (len < 0)
			continue;
		link[len] = '\0';
		if (strcmp(link, LINK))
			continue;
		snprintf(path, size, "%s", name);
		found++;
	}
	ck_assert_uint_le(found, 1);
	return found;
}

static size_t read_segment(char *data, size_t size)
{
	char path[64];
	ssize_t len;
	int fd;

	ck_assert(find(path, sizeof(path)));
	fd = open(path, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	len = read(fd, data, size);
	close(fd);
	ck_assert_int_gt(len, 0);
	return len;
}

TEST_CASE(stats_shm, NULL, NULL);

TEST(test_sealed)
{
	struct mrrc_stats_shm *segment;
	char path[64];
	int fd;

	ck_assert_int_eq(mrrc_stats_shm_open(&segment), 0);
	ck_assert(find(path, sizeof(path)));
	fd = open(path, O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, 0), -1);
	ck_assert_int_eq(ftruncate(fd, 1 << 20), -1);
	ck_assert_int_eq(write(fd, "x", 1), -1);
	ck_assert_ptr_eq(mmap(NULL, mrrc_vm_page(), PROT_WRITE, MAP_SHARED, fd,
			      0),
			 MAP_FAILED);
	close(fd);
	mrrc_stats_shm_close(segment);
}

static void asks_what(void *arg, char why[MRRC_TRUST_WHY])
{
	snprintf(why, MRRC_TRUST_WHY, "%s", (const char *) arg);
}

static void says_that_it_asks(const char *why)
{
	_Alignas(8) char data[65536];
	const struct mrrc_stats_shm_head *head = (void *) data;

	read_segment(data, sizeof(data));
	ck_assert_uint_le(head->asks_at, 1);
	ck_assert_str_eq(head->asks[head->asks_at], why);
}

/* The segment has the current reason why lookups ask, not a child's reason. */
TEST(test_asks)
{
	char why[MRRC_TRUST_WHY] = "lib\xc3\xb6.so+0x12: a\nb";
	struct mrrc_stats_shm_info asking = info;
	struct mrrc_stats_shm *segment;
	pid_t pid;

	asking.asks = asks_what;
	asking.arg = why;
	ck_assert_int_eq(mrrc_stats_shm_open(&segment), 0);
	mrrc_stats_shm_update();
	mrrc_stats_shm_publish(segment, &asking);
	says_that_it_asks("lib??.so+0x12: a?b");
	strcpy(why, "");
	mrrc_stats_shm_update();
	says_that_it_asks("");
	memset(why, 'x', sizeof(why) - 1);
	mrrc_stats_shm_update();
	says_that_it_asks(why);
	pid = fork();
	if (!pid) {
		strcpy(why, "no");
		mrrc_stats_shm_update();
		mrrc_stats_shm_close(segment);
		raise(SIGKILL);
	}
	child_dies(pid);
	says_that_it_asks(why);
	mrrc_stats_shm_close(segment);
	mrrc_stats_shm_update();
}

static void lacks_what(void *arg, char text[MRRC_STATS_SHM_LACKS])
{
	snprintf(text, MRRC_STATS_SHM_LACKS, "%s", (const char *) arg);
}

/* The segment has what a cache lacks now, even if lookups never ask. */
TEST(test_lacks)
{
	_Alignas(8) char data[65536];
	const struct mrrc_stats_shm_head *head = (void *) data;
	char what[MRRC_STATS_SHM_LACKS] = "hooks:\tnone";
	struct mrrc_stats_shm_info lacking = info;
	struct mrrc_stats_shm *segment;
	uint32_t at;

	lacking.lacks = lacks_what;
	lacking.arg = what;
	ck_assert_int_eq(mrrc_stats_shm_open(&segment), 0);
	mrrc_stats_shm_publish(segment, &lacking);
	read_segment(data, sizeof(data));
	at = head->lacks_at;
	ck_assert_str_eq(head->lacks[at], "hooks:?none");
	strcpy(what, "more");
	mrrc_stats_shm_update();
	read_segment(data, sizeof(data));
	ck_assert_uint_eq(head->lacks_at, !at);
	ck_assert_str_eq(head->lacks[!at], "more");
	/* A reader of the old text still finds the whole text. */
	ck_assert_str_eq(head->lacks[at], "hooks:?none");
	mrrc_stats_shm_close(segment);
}

/* ---- readers that need current counters ---- */

static struct mrrc_stats_shm *served;

static void collect(void *arg)
{
	mrrc_stats_add(mrrc_stats_shm_stats(served), MRRC_STAT_HITS, 1);
}

/* Maps the segment as another process does, for reading only. */
static const struct mrrc_stats_shm_head *map_segment(void)
{
	const void *map;
	char path[64];
	int fd;

	ck_assert(find(path, sizeof(path)));
	fd = open(path, O_RDONLY);
	map = mmap(NULL, mrrc_vm_page(), PROT_READ, MAP_SHARED, fd, 0);
	ck_assert(map != MAP_FAILED);
	close(fd);
	return map;
}

/* Waits until the thread sleeps, and wakes it. */
static void wake(const struct mrrc_stats_shm_head *head)
{
	while (syscall(SYS_futex, &head->wake, FUTEX_WAKE, 1, NULL, NULL, 0) <
	       1)
		usleep(100);
}

static void open_served(const char *what)
{
	struct mrrc_stats_shm_info serving = info;

	serving.lacks = lacks_what;
	serving.collect = collect;
	serving.arg = (void *) what;
	ck_assert_int_eq(mrrc_stats_shm_open(&served), 0);
	mrrc_stats_shm_publish(served, &serving);
}

/* Counters and texts are updated only when a reader asks. */
TEST(test_update)
{
	const unsigned threads = fault_threads_left(FAULT_THREADS);
	const struct mrrc_stats_shm_head *head;
	char what[MRRC_STATS_SHM_LACKS] = "a";
	unsigned i;

	open_served(what);
	head = map_segment();
	ck_assert_uint_eq(head->serves, 1);
	strcpy(what, "b");
	usleep(20000);
	ck_assert_uint_eq(head->updates, 0);
	ck_assert_str_eq(head->lacks[head->lacks_at], "a");
	for (i = 1; i <= 100; i++) {
		wake(head);
		while (__atomic_load_n(&head->updates, __ATOMIC_ACQUIRE) < i)
			usleep(10);
		ck_assert_uint_eq(
			__atomic_load_n(&mrrc_stats_shm_stats(served)
						 ->value[MRRC_STAT_HITS],
					__ATOMIC_RELAXED),
			i);
	}
	ck_assert_str_eq(head->lacks[head->lacks_at], "b");
	mrrc_stats_shm_still(served);
	ck_assert_uint_eq(head->serves, 0);
	ck_assert_uint_eq(fault_threads_left(threads), threads);
	mrrc_stats_shm_still(served);
	mrrc_stats_shm_close(served);
	munmap((void *) head, mrrc_vm_page());
}

static atomic_int waits;

static void about_to_wait(void)
{
	atomic_store(&waits, 1);
	usleep(50000);
}

/* The thread is ended at the moment when it goes to sleep. */
TEST(test_still)
{
	fault_at_futex(about_to_wait);
	open_served("");
	while (!atomic_load(&waits))
		usleep(100);
	mrrc_stats_shm_still(served);
	fault_at_futex(NULL);
	mrrc_stats_shm_close(served);
}

/* A child has no thread that serves readers, and its parent keeps one. */
TEST(test_child_still)
{
	const struct mrrc_stats_shm_head *head;
	pid_t pid;

	open_served("");
	pid = fork();
	if (!pid) {
		end_in(60);
		mrrc_stats_shm_still(served);
		mrrc_stats_shm_close(served);
		raise(SIGKILL);
	}
	child_dies(pid);
	head = map_segment();
	ck_assert_uint_eq(head->serves, 1);
	wake(head);
	munmap((void *) head, mrrc_vm_page());
	mrrc_stats_shm_still(served);
	mrrc_stats_shm_close(served);
}

/* Without a thread that serves readers, readers do not wait for one. */
TEST(test_no_thread)
{
	struct mrrc_stats_shm_info serving = info;
	const struct mrrc_stats_shm_head *head;

	serving.collect = collect;
	ck_assert_int_eq(mrrc_stats_shm_open(&served), 0);
	fault_arm(1);
	mrrc_stats_shm_publish(served, &serving);
	ck_assert(fault_disarm());
	head = map_segment();
	ck_assert_uint_eq(head->magic, MRRC_STATS_SHM_MAGIC);
	ck_assert_uint_eq(head->serves, 0);
	munmap((void *) head, mrrc_vm_page());
	mrrc_stats_shm_still(served);
	mrrc_stats_shm_close(served);
}

static pthread_t main_thread;
/* 1: the function was called; 2: it is about to return */
static atomic_int asking;

static void asks_slowly(void *arg, char why[MRRC_TRUST_WHY])
{
	if (!pthread_equal(pthread_self(), main_thread)) {
		atomic_store(&asking, 1);
		usleep(50000);
		atomic_store(&asking, 2);
	}
	*why = '\0';
}

static void *update(void *arg)
{
	mrrc_stats_shm_update();
	return arg;
}

/* A segment that a thread writes to is closed afterwards. */
TEST(test_close_asking)
{
	struct mrrc_stats_shm_info asking_info = info;
	struct mrrc_stats_shm *segment;
	pthread_t thread;

	main_thread = pthread_self();
	asking_info.asks = asks_slowly;
	ck_assert_int_eq(mrrc_stats_shm_open(&segment), 0);
	mrrc_stats_shm_publish(segment, &asking_info);
	thread = thread_start(update, NULL);
	while (!atomic_load(&asking))
		usleep(100);
	mrrc_stats_shm_close(segment);
	ck_assert_int_eq(atomic_load(&asking), 2);
	pthread_join(thread, NULL);
}

/* The descriptor's number belongs to another file. */
TEST(test_fd_reused)
{
	struct mrrc_stats_shm *segment;
	char path[64];
	int fd, other;

	ck_assert_int_eq(mrrc_stats_shm_open(&segment), 0);
	ck_assert(find(path, sizeof(path)));
	fd = atoi(path + strlen("/proc/self/fd/"));
	other = open("/dev/null", O_RDONLY);
	ck_assert_int_eq(dup2(other, fd), fd);
	mrrc_stats_shm_close(segment);
	ck_assert_int_ne(fcntl(fd, F_GETFD), -1);
	close(fd);
	close(other);
}

/* Check itself writes files: the limit is only for the call under test. */
static void limit_files(rlim_t most)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
}

/* The limit on the size of files holds for the segment's memory, too. */
TEST(test_file_limit)
{
	struct mrrc_stats_shm *segment = NULL;
	int ret;

	limit_files(0);
	ret = mrrc_stats_shm_open(&segment);
	limit_files(RLIM_INFINITY);
	ck_assert_int_eq(ret, -EFBIG);
	ck_assert_ptr_null(segment);
}

TEST(test_open_fails)
{
	static const int error[] = { ENOMEM, EMFILE, ENOSPC, ENOMEM, EPERM };
	const unsigned fds = fault_fds();
	struct mrrc_stats_shm *segment = NULL;
	char path[64];
	unsigned n;
	int ret;

	for (n = 1;; n++) {
		fault_arm(n);
		ret = mrrc_stats_shm_open(&segment);
		if (!fault_disarm())
			break;
		ck_assert_uint_le(n, 5);
		ck_assert_int_eq(ret, -error[n - 1]);
		ck_assert_ptr_null(segment);
		ck_assert_uint_eq(fault_leaks(), 0);
		ck_assert_uint_eq(fault_fds(), fds);
		ck_assert(!find(path, sizeof(path)));
	}
	ck_assert_uint_eq(n, 6);
	ck_assert_int_eq(ret, 0);
	mrrc_stats_shm_close(segment);
	mrrc_stats_shm_close(NULL);
}
