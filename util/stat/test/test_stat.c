/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests parts of fi_mrrc_stat: segments as the provider writes segments, broken
 * segments, finding segments, and printing.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "stat/code.h"
#include "stat/segment.h"
#include "stat/proc.h"
#include "stat/show.h"
#include "stat/update.h"
#include "sys/observe/stats_shm.h"

static const char *asks = "libx.so: why";

static void asks_what(void *arg, char why[MRRC_TRUST_WHY])
{
	strcpy(why, asks);
}

static const struct mrrc_stats_shm_info info = {
	.asks = asks_what,
	.provider = "tcp",
	.policy = "lru:pieces=2",
	.monitor = "none",
	.max_bytes = 1 << 20,
	.max_regions = 7,
	.registers = true,
};

static struct mrrc_stats_shm *own;
static struct stat_segment segment;

/* ---- the parser ---- */

#define TWO 2

/* A segment of two counters, to be broken. */
struct image {
	struct mrrc_stats_shm_head head;
	uint64_t value[TWO];
	char names[16];
};

static const struct image sound = {
	.head = {
		.magic = MRRC_STATS_SHM_MAGIC,
		.version = MRRC_STATS_SHM_VERSION,
		.head_size = sizeof(struct mrrc_stats_shm_head),
		.size = sizeof(struct image),
		.pid = 12,
		.counters = TWO,
		.values = offsetof(struct image, value),
		.names = offsetof(struct image, names),
		.names_size = 16,
		.provider = "p", .policy = "q", .monitor = "m",
	},
	.value = { 3, UINT64_MAX },
	.names = "first\0second_2",
};

/* Parses a copy in a block of its size, so that ASan sees reads beyond it. */
static int parse(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);
	int ret;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, data, size);
	ret = stat_segment_parse(copy, size, &segment);
	free(copy);
	return ret;
}

TEST_CASE(parser, NULL, NULL);

TEST(test_sound)
{
	ck_assert_int_eq(parse(&sound, sizeof(sound)), 0);
	ck_assert_int_eq(segment.pid, 12);
	ck_assert_uint_eq(segment.counters, TWO);
	ck_assert_str_eq(segment.counter[1].name, "second_2");
	ck_assert_uint_eq(stat_segment_value(&segment, "first"), 3);
	ck_assert_uint_eq(stat_segment_value(&segment, "second_2"), UINT64_MAX);
	ck_assert_uint_eq(stat_segment_value(&segment, "third"), 0);
}

TEST(test_short)
{
	size_t size;

	ck_assert_int_eq(parse(&sound, 0), -EAGAIN);
	for (size = 1; size < sizeof(sound); size++)
		ck_assert_int_eq(parse(&sound, size), -EPROTO);
}

/* A newer provider's head is longer, with unknown counters. */
TEST(test_newer)
{
	struct {
		char more[64];
		struct image image;
	} newer = {
		.image = sound,
	};
	struct mrrc_stats_shm_head head = sound.head;

	head.head_size += 8;
	head.size = sizeof(newer);
	head.values += 64;
	head.names += 64;
	memcpy(&newer, &head, sizeof(head));
	ck_assert_int_eq(parse(&newer, sizeof(newer)), 0);
	ck_assert_uint_eq(stat_segment_value(&segment, "first"), 3);
}

/*
 * Segments of older providers have shorter heads, so their counters begin
 * earlier. A head of the second size has the reason why lookups ask the kernel,
 * but no `lacks`.
 */
static const size_t older_sizes[] = {
	offsetof(struct mrrc_stats_shm_head, asks_at),
	/* a multiple of eight */
	(offsetof(struct mrrc_stats_shm_head, lacks_at) + 7) & ~7UL,
};

EACH_TEST(test_older, older_sizes)
{
	const size_t size = older_sizes[_i];
	const size_t less = sizeof(struct mrrc_stats_shm_head) - size;
	struct image older = sound;
	struct mrrc_stats_shm_head *head = &older.head;

	if (_i)
		strcpy(head->asks[0], "why");
	head->head_size -= less;
	head->size -= less;
	head->values -= less;
	head->names -= less;
	memmove((char *) head + size, older.value,
		sizeof(older) - offsetof(struct image, value));
	ck_assert_int_eq(parse(&older, head->size), 0);
	ck_assert_int_eq(segment.says_asks, _i);
	ck_assert_str_eq(segment.asks, _i ? "why" : "");
	ck_assert(!segment.says_lacks);
	ck_assert(segment.registers);
	ck_assert_str_eq(segment.lacks, "");
	ck_assert_uint_eq(stat_segment_value(&segment, "first"), 3);
}

#define FIELD(field, number, error)                                       \
	{                                                                 \
#field, offsetof(struct image, head.field),               \
			sizeof(((struct image *) 0)->head.field), number, \
			error                                             \
	}

static const struct {
	const char *name;
	size_t offset;
	size_t size;
	uint64_t number;
	int ret;
} broken[] = {
	FIELD(magic, 0, -EAGAIN),
	FIELD(magic, 1, -EPROTO),
	FIELD(version, 0, -EPROTONOSUPPORT),
	FIELD(version, 2, -EPROTONOSUPPORT),
	FIELD(head_size, 0, -EPROTO),
	FIELD(head_size, offsetof(struct mrrc_stats_shm_head, asks_at) - 1,
	      -EPROTO),
	FIELD(head_size, sizeof(struct mrrc_stats_shm_head) + 1, -EPROTO),
	FIELD(head_size, UINT32_MAX, -EPROTO),
	FIELD(size, 0, -EPROTO),
	FIELD(size, sizeof(struct image) - 1, -EPROTO),
	FIELD(size, sizeof(struct image) + 1, -EPROTO),
	FIELD(size, UINT32_MAX, -EPROTO),
	FIELD(pid, 0, -EPROTO),
	FIELD(pid, UINT32_MAX, -EPROTO),
	FIELD(counters, TWO + 1, -EPROTO),
	FIELD(counters, STAT_COUNTERS_MAX + 1, -EPROTO),
	FIELD(counters, UINT32_MAX, -EPROTO),
	FIELD(values, 0, -EPROTO),
	FIELD(values, offsetof(struct image, value) + 1, -EPROTO),
	FIELD(values, sizeof(struct image) - 8, -EPROTO),
	FIELD(values, UINT32_MAX & ~7U, -EPROTO),
	FIELD(names, 0, -EPROTO),
	FIELD(names, offsetof(struct image, names) + 1, -EPROTO),
	FIELD(names, UINT32_MAX, -EPROTO),
	FIELD(names_size, 0, -EPROTO),
	FIELD(names_size, 14, -EPROTO),
	FIELD(names_size, 17, -EPROTO),
	FIELD(names_size, UINT32_MAX, -EPROTO),
	/* not printable */
	FIELD(provider[0], '\033', -EPROTO),
	FIELD(policy[0], 0x80, -EPROTO),
	FIELD(monitor[0], '\n', -EPROTO),
	FIELD(asks[0][0], '\n', -EPROTO),
	FIELD(asks[1][0], '\n', 0),
	FIELD(asks_at, 2, -EPROTO),
	FIELD(lacks[0][0], '\n', -EPROTO),
	FIELD(lacks[1][0], '\n', 0),
	FIELD(lacks_at, 2, -EPROTO),
};

EACH_TEST(test_broken, broken)
{
	struct image image = sound;
	const char *bytes = (const char *) &broken[_i].number;

	memcpy((char *) &image + broken[_i].offset, bytes, broken[_i].size);
	ck_assert_msg(parse(&image, sizeof(image)) == broken[_i].ret, "%s",
		      broken[_i].name);
}

TEST(test_endless)
{
	struct image image = sound;

	memset(image.head.provider, 'x', sizeof(image.head.provider));
	ck_assert_int_eq(parse(&image, sizeof(image)), -EPROTO);
	image.head.provider[31] = '\0';
	ck_assert_int_eq(parse(&image, sizeof(image)), 0);
	memset(image.head.monitor, 'x', sizeof(image.head.monitor));
	ck_assert_int_eq(parse(&image, sizeof(image)), -EPROTO);
}

TEST(test_names)
{
	static const char bad[][16] = {
		"first\0first\0", "\0second\0",	   "First\0second\0",
		"a b\0second\0",  "a\"\0second\0", "\033[2J\0second\0",
	};
	struct image image = sound;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(image.names, bad[i], sizeof(bad[i]));
		ck_assert_int_eq(parse(&image, sizeof(image)), -EPROTO);
	}
}

/* Any bytes are refused, or give a result that can be printed. */
TEST(test_random)
{
	struct image image;
	unsigned seed = 1;
	size_t i, at;
	int round, changes;

	for (round = 0; round < 200000; round++) {
		image = sound;
		for (changes = rand_r(&seed) % 4; changes >= 0; changes--) {
			at = rand_r(&seed) % sizeof(image);
			((char *) &image)[at] = rand_r(&seed);
		}
		if (parse(&image, rand_r(&seed) % 8 ?
					  sizeof(image) :
					  rand_r(&seed) % sizeof(image)))
			continue;
		ck_assert_uint_le(segment.counters, TWO);
		for (i = 0; i < segment.counters; i++)
			ck_assert_uint_lt(strlen(segment.counter[i].name),
					  STAT_NAME_MAX);
	}
}

/* ---- processes ---- */

static void publish(void)
{
	ck_assert_int_eq(mrrc_stats_shm_open(&own), 0);
	mrrc_stats_shm_publish(own, &info);
	mrrc_stats_shm_stats(own)->value[MRRC_STAT_LOOKUPS] = 10;
	mrrc_stats_shm_stats(own)->value[MRRC_STAT_HITS] = 9;
	mrrc_stats_shm_stats(own)->value[MRRC_STAT_PINNED] = 3 << 20;
}

static void unpublish(void)
{
	mrrc_stats_shm_close(own);
}

TEST_CASE(proc, publish, unpublish);

TEST(test_self)
{
	struct stat_sample sample = { 0 };
	size_t i;

	ck_assert_int_eq(stat_proc_read(getpid(), &sample), 0);
	ck_assert_uint_eq(sample.domains, 1);
	ck_assert_int_eq(sample.domain->pid, getpid());
	ck_assert_str_eq(sample.domain->segment.policy, info.policy);
	ck_assert_uint_eq(sample.domain->segment.max_regions, 7);
	ck_assert_uint_eq(sample.domain->segment.counters, MRRC_STAT_SHARED);
	for (i = 0; i < MRRC_STAT_SHARED; i++) {
		ck_assert_str_eq(sample.domain->segment.counter[i].name,
				 mrrc_stat_name(i));
		ck_assert_uint_eq(sample.domain->segment.counter[i].value,
				  mrrc_stats_shm_stats(own)->value[i]);
	}
	stat_sample_fini(&sample);
}

/* A child does not show the segment that it inherited. */
TEST(test_child)
{
	struct stat_sample sample = { 0 };
	const pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	ck_assert_int_eq(stat_proc_read(pid, &sample), 0);
	ck_assert_uint_eq(sample.domains, 0);
	kill(pid, SIGKILL);
	/* the child is a zombie until waitpid() */
	while (stat_proc_started(pid))
		usleep(1000);
	ck_assert_int_eq(stat_proc_read(pid, &sample), -ESRCH);
	waitpid(pid, NULL, 0);
	ck_assert_int_eq(stat_proc_read(pid, &sample), -ESRCH);
}

#define GROUPS 2000

/*
 * Starts a process that has many groups, a new PID name space and one domain.
 * Returns how many domains the statistics tool finds in this process; -1: this
 * user, who is not root, may not start such a process.
 */
static int found_in_groups(void)
{
	struct stat_sample sample = { 0 };
	gid_t group[GROUPS];
	int ready[2], i, found;
	pid_t pid;
	char c;

	for (i = 0; i < GROUPS; i++)
		group[i] = 1000000 + i;
	if (setgroups(GROUPS, group) || unshare(CLONE_NEWPID) || pipe(ready))
		return -1;
	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid) {
		if (mrrc_stats_shm_open(&own))
			_exit(1);
		mrrc_stats_shm_publish(own, &info);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) == 1)
		stat_proc_read(pid, &sample);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	found = (int) sample.domains;
	stat_sample_fini(&sample);
	return found;
}

/* The line of a process's groups can be long. */
TEST(test_groups)
{
	const pid_t pid = fork();
	int status, found;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		found = found_in_groups();
		_exit(found < 0 ? 77 : found);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip("only root may have many groups");
	ck_assert_int_eq(WEXITSTATUS(status), 1);
}

static void collect(void *arg)
{
	mrrc_stats_shm_stats(own)->value[MRRC_STAT_HITS]++;
}

/*
 * Number of times that this thread waited for another process's answer; limit:
 * if set, the maximum time of each wait.
 */
static _Thread_local struct {
	unsigned count;
	const struct timespec *limit;
} waits;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	va_list args;
	long arg[6];
	unsigned i;

	va_start(args, number);
	for (i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_futex && arg[1] == FUTEX_WAIT) {
		waits.count++;
		if (waits.limit)
			arg[3] = (long) waits.limit;
	}
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4],
			      arg[5]);
}

/* Each sample has current counters, however slow the other thread is. */
TEST(test_news)
{
	const struct timespec second = { .tv_sec = 1 };
	struct mrrc_stats_shm_info serving = info;
	struct stat_sample sample = { 0 };
	uint64_t hits, before = 0;
	unsigned i;

	unpublish();
	serving.collect = collect;
	ck_assert_int_eq(mrrc_stats_shm_open(&own), 0);
	mrrc_stats_shm_publish(own, &serving);
	waits.limit = &second;
	for (i = 1; i < 20; i++) {
		ck_assert_int_eq(stat_proc_read(getpid(), &sample), 0);
		ck_assert_uint_eq(sample.domains, 1);
		hits = stat_segment_value(&sample.domain->segment, "hits");
		ck_assert_uint_gt(hits, before);
		before = hits;
		stat_sample_fini(&sample);
	}
	waits.limit = NULL;
	mrrc_stats_shm_still(own);
}

#define STOPPED 20 /* number of domains */

/* A sample waits once for a stopped process, and shows its old counters. */
TEST(test_stopped)
{
	struct mrrc_stats_shm_info serving = info;
	struct stat_sample sample = { 0 };
	int ready[2], i;
	pid_t pid;
	char c;

	serving.collect = collect;
	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		for (i = 0; i < STOPPED; i++) {
			if (mrrc_stats_shm_open(&own))
				_exit(1);
			mrrc_stats_shm_publish(own, &serving);
		}
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	waits.count = 0;
	ck_assert_int_eq(stat_proc_read(pid, &sample), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_uint_eq(sample.domains, STOPPED);
	/* the waits are as many as for one domain */
	ck_assert_uint_gt(waits.count, 0);
	ck_assert_uint_le(waits.count, 50);
	stat_sample_fini(&sample);
}

/* A segment without seals could shrink while it is mapped: a SIGBUS. */
TEST(test_unsealed)
{
	const int fd = memfd_create(MRRC_STATS_SHM_NAME, MFD_CLOEXEC);
	struct image image = sound;

	image.head.serves = 1;
	ck_assert_int_eq(pwrite(fd, &image, sizeof(image), 0), sizeof(image));
	/* false: the segment was mapped, and waited for */
	ck_assert(stat_update(fd));
	close(fd);
}

/* A file of the right name, but empty or with other content. */
TEST(test_impostor)
{
	const int fd = memfd_create(MRRC_STATS_SHM_NAME, MFD_CLOEXEC);
	struct image image = sound;
	struct stat_sample sample = { 0 };

	ck_assert_int_eq(stat_proc_read(getpid(), &sample), 0);
	ck_assert_uint_eq(sample.domains, 1);
	ck_assert_int_eq(pwrite(fd, "x", 1, 1 << 20), 1);
	ck_assert_int_eq(stat_proc_read(getpid(), &sample), 0);
	ck_assert_uint_eq(sample.domains, 1);
	image.head.version++;
	ck_assert_int_eq(pwrite(fd, &image, sizeof(image), 0), sizeof(image));
	ck_assert_int_eq(stat_proc_read(getpid(), &sample), 0);
	ck_assert_uint_eq(sample.domains, 1);
	ck_assert_uint_eq(sample.unknown, 1);
	stat_sample_fini(&sample);
	close(fd);
}

/*
 * A file with a segment's name that is on another file system may be a device,
 * and is not opened. One of huge pages can be made without rights.
 */
TEST(test_other_fs)
{
	const int fd =
		memfd_create(MRRC_STATS_SHM_NAME, MFD_CLOEXEC | MFD_HUGETLB);
	const int opens = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct stat_sample sample = { 0 };
	char name[32], events[4096];
	bool reports;

	if (fd < 0)
		skip("a kernel without huge pages");
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	inotify_add_watch(opens, name, IN_OPEN);
	/* Linux before 6.5 sends IN_OPEN for an open(2) with O_PATH, too. */
	close(open(name, O_PATH | O_CLOEXEC));
	reports = read(opens, events, sizeof(events)) > 0;
	ck_assert_int_eq(stat_proc_read(getpid(), &sample), 0);
	ck_assert_uint_eq(sample.domains, 1);
	ck_assert(reports || read(opens, events, sizeof(events)) < 0);
	stat_sample_fini(&sample);
	close(opens);
	close(fd);
}

/* ---- the code of a process ---- */

/* Number of mappings that are told to have code of no file. */
static unsigned pages_told(const char *monitor)
{
	struct mrrc_stats_shm_info hooked = info;
	char pid[16], *what = pid, *text = NULL, *at;
	unsigned told = 0;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	unpublish();
	hooked.monitor = monitor;
	ck_assert_int_eq(mrrc_stats_shm_open(&own), 0);
	mrrc_stats_shm_publish(own, &hooked);
	snprintf(pid, sizeof(pid), "%d", (int) getpid());
	stat_code(&what, 1, out, out);
	fclose(out);
	for (at = text; (at = strstr(at, "code of no file")); at++)
		told++;
	free(text);
	return told;
}

/* One page of code is that of the hooks, if there are hooks. */
TEST(test_pages)
{
	const size_t page = (size_t) sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned told;

	if (pages == MAP_FAILED || under_valgrind())
		skip("no pages of code, or valgrind");
	ck_assert_int_eq(mprotect(pages + page, page, PROT_NONE), 0);
	told = pages_told("none");
	ck_assert_uint_ge(told, 2);
	ck_assert_uint_eq(pages_told("uffd+hooks"), told - 1);
	munmap(pages, 3 * page);
}

/* ---- what is printed ---- */

static char *printed(int (*show)(const struct stat_sample *, FILE *),
		     const struct stat_sample *sample)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ck_assert_int_eq(show(sample, out), 0);
	fclose(out);
	return text;
}

TEST(test_json)
{
	struct stat_sample sample = { 0 };
	json_t *array, *object;
	json_int_t pid, max_regions, hits;
	const char *why;
	char *text;

	text = printed(stat_show_json, &sample);
	ck_assert_str_eq(text, "[]\n");
	free(text);
	ck_assert_int_eq(stat_proc_read(getpid(), &sample), 0);
	text = printed(stat_show_json, &sample);
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
	array = json_loads(text, 0, NULL);
	ck_assert_uint_eq(json_array_size(array), 1);
	object = json_array_get(array, 0);
	ck_assert_int_eq(json_unpack(object, "{s:I, s:s, s:I, s:{s:I}}", "pid",
				     &pid, "asks", &why, "max_regions",
				     &max_regions, "counters", "hits", &hits),
			 0);
	ck_assert_str_eq(why, asks);
	ck_assert_int_eq(pid, getpid());
	ck_assert_int_eq(max_regions, 7);
	ck_assert_int_eq(hits, 9);
	ck_assert_uint_eq(json_object_size(json_object_get(object, "counters")),
			  MRRC_STAT_SHARED);
	json_decref(array);
	free(text);
	stat_sample_fini(&sample);
}

static struct stat_sample before;

static int show_table(const struct stat_sample *sample, FILE *out)
{
	return stat_show_table(sample, &before, out);
}

static void has(const char *text, const char *line)
{
	ck_assert_msg(strstr(text, line) != NULL, "no '%s' in:\n%s", line,
		      text);
}

TEST(test_table)
{
	struct stat_sample sample = { 0 };
	char *text;

	ck_assert_int_eq(stat_proc_read(getpid(), &before), 0);
	before.domain->when -= 2;
	mrrc_stats_shm_stats(own)->value[MRRC_STAT_LOOKUPS] += 30;
	mrrc_stats_shm_stats(own)->value[MRRC_STAT_HITS] += 15;
	ck_assert_int_eq(stat_proc_read(getpid(), &sample), 0);
	sample.domain->when = before.domain->when + 2;
	text = printed(show_table, &sample);
	has(text,
	    ": tcp, policy lru:pieces=2, monitor none\n"
	    "at most 1.0 MiB in 7 regions, lookups of threads ask the kernel: "
	    "libx.so: why\n");
	has(text, "\nlookups                   40          15.0\n");
	has(text, "\nhit ratio              60.0%         50.0%\n");
	has(text, "\npinned               3.0 MiB\n");
	ck_assert_ptr_null(strstr(text, "tags"));
	free(text);
	stat_sample_fini(&before);
	text = printed(show_table, &sample);
	has(text, "\nlookups                   40\n");
	free(text);
	stat_sample_fini(&sample);
	text = printed(show_table, &sample);
	has(text, "no domain is open now\n");
	free(text);
}

/* Misses that were registered for one use, by reason, and what hits saved. */
TEST(test_table_misses)
{
	struct mrrc_stats *stats = mrrc_stats_shm_stats(own);
	struct stat_sample sample = { 0 };
	char *text;

	mrrc_stats_add(stats, MRRC_STAT_MISSES, 9);
	mrrc_stats_add(stats, MRRC_STAT_UNCACHED_NOT_PRIVATE, 4);
	mrrc_stats_add(stats, MRRC_STAT_UNCACHED_FULL, 1);
	mrrc_stats_add(stats, MRRC_STAT_COST_REG_PAGE, 1000);
	mrrc_stats_add(stats, MRRC_STAT_COST_REG, 20000);
	mrrc_stats_add(stats, MRRC_STAT_COST_DEREG_PAGE, 300);
	mrrc_stats_add(stats, MRRC_STAT_COST_DEREG, 4000);
	/* no use here: no cost of registering */
	mrrc_stats_add(stats, MRRC_STAT_COST_COPY_PAGE, 1 << 20);
	ck_assert_int_eq(stat_proc_read(getpid(), &sample), 0);
	text = printed(show_table, &sample);
	has(text,
	    "\ntime saved            228 us\nmisses                     9\n"
	    "  not_private              4\n  full                     1\n"
	    "probes ");
	free(text);
	stat_sample_fini(&sample);
}

static void lacks_what(void *arg, char text[MRRC_STATS_SHM_LACKS])
{
	snprintf(text, MRRC_STATS_SHM_LACKS, "%s", (const char *) arg);
}

static char *printed_lacking(bool registers, const char *what)
{
	struct mrrc_stats_shm_info lacking = info;
	struct stat_sample sample = { 0 };
	char *text;

	unpublish();
	lacking.registers = registers;
	lacking.lacks = lacks_what;
	lacking.arg = (void *) what;
	ck_assert_int_eq(mrrc_stats_shm_open(&own), 0);
	mrrc_stats_shm_publish(own, &lacking);
	ck_assert_int_eq(stat_proc_read(getpid(), &sample), 0);
	text = printed(show_table, &sample);
	stat_sample_fini(&sample);
	return text;
}

TEST(test_table_lacks)
{
	char *text = printed_lacking(true, "a monitor: allow it");

	has(text, "\nlacks a monitor: allow it\n");
	has(text, "\nlookups ");
	free(text);
	/* no counters, which would all be 0 */
	text = printed_lacking(false, "registers nothing: allow it");
	has(text, ": open, but registers nothing: allow it\n");
	ck_assert_ptr_null(strstr(text, "lookups"));
	free(text);
}

/* Errors of writing are reported. */
TEST(test_full_disk)
{
	struct stat_sample none = { 0 };
	FILE *full = fopen("/dev/full", "w");

	if (!full)
		return;
	ck_assert_int_eq(stat_show_table(&none, &none, full), -ENOSPC);
	fclose(full);
	full = fopen("/dev/full", "w");
	ck_assert_ptr_nonnull(full);
	ck_assert_int_eq(stat_show_json(&none, full), -ENOSPC);
	fclose(full);
}

TEST(test_table_cw)
{
	struct mrrc_stats *stats = mrrc_stats_shm_stats(own);
	struct stat_sample sample = { 0 };
	char *text;

	mrrc_stats_add(stats, MRRC_STAT_CW_WRITES, 9);
	mrrc_stats_add(stats, MRRC_STAT_CW_WRITES_ENDED, 4);
	mrrc_stats_add(stats, MRRC_STAT_CW_TAGS, 2);
	ck_assert_int_eq(stat_proc_read(getpid(), &sample), 0);
	text = printed(show_table, &sample);
	has(text,
	    "\ncond. writes               9\n  pending                  5\n"
	    "tags                       2\n  pending                  2\n\n");
	free(text);
	stat_sample_fini(&sample);
}
