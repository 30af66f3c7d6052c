/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys/file/ring: reads past the page cache. */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "sys/file/ring.h"

#define LEN	((5ul << 20) + 100)
#define BUF	(6ul << 20)
#define PAGE	4096ul
#define THREADS 4
#define ROUNDS	200

static struct mrrc_ring *ring;
static char path[64], *content;
static int file = -1, direct = -1;
static size_t align;
/* number of errors: assertions of Check are not for threads */
static atomic_uint wrong;

/* Returns false if there is no io_uring here, or no disk. */
static bool opened(void)
{
	return ring && direct >= 0;
}

static char *buffer(void)
{
	char *buf = mmap(NULL, BUF, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(buf != MAP_FAILED);
	memset(buf, 0x5a, BUF);
	return buf;
}

static void setup(void)
{
	size_t i;
	int ret;

	snprintf(path, sizeof(path), "/var/tmp/test_ring.XXXXXX");
	file = mkstemp(path);
	content = malloc(LEN);
	ck_assert(file >= 0 && content);
	for (i = 0; i < LEN; i++)
		content[i] = (char) (i % 251 + i / PAGE);
	ck_assert_int_eq(write(file, content, LEN), LEN);
	wrong = 0;
	ring = NULL;
	direct = -1;
	ret = mrrc_ring_open(&ring);
	if (!ret)
		ret = mrrc_ring_file(file, &align, &direct);
	if (ret)
		printf("note: no direct reads here: %s\n", strerror(-ret));
}

static void teardown(void)
{
	if (ring)
		mrrc_ring_close(ring);
	if (direct >= 0)
		close(direct);
	close(file);
	unlink(path);
	free(content);
	ck_assert_uint_eq(wrong, 0);
}

static struct mrrc_ring_read part(char *buf, int slot, size_t offset,
				  size_t need)
{
	return (struct mrrc_ring_read){
		.fd = direct,
		.slot = slot,
		.buf = buf,
		.len = (need + align - 1) / align * align,
		.need = need,
		.offset = offset,
	};
}

static bool whole(struct mrrc_ring_read *read)
{
	mrrc_ring_start(ring, read);
	return mrrc_ring_wait(ring, read);
}

static void reads_to(char *buf, int slot)
{
	static const size_t lens[] = { 1,	4096,	 5000, 1 << 20,
				       1048577, 3 << 20, LEN };
	struct mrrc_ring_read read;
	unsigned i;

	for (i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		read = part(buf, slot, 0, lens[i]);
		ck_assert(whole(&read));
		ck_assert(!memcmp(buf, content, lens[i]));
		read = part(buf, slot, align, LEN - align);
		ck_assert(whole(&read));
		ck_assert(!memcmp(buf, content + align, LEN - align));
	}
	/* The file ends before the end of the read. */
	read = part(buf, slot, 0, LEN + 1);
	ck_assert(!whole(&read));
	read = part(buf, slot, 1 << 20, LEN);
	ck_assert(!whole(&read));
	read = part(buf, slot, 16 << 20, 1);
	ck_assert(!whole(&read));
}

TEST_CASE(ring, setup, teardown);

TEST(reads)
{
	char *buf = buffer();
	int slot;

	if (opened()) {
		reads_to(buf, -1);
		slot = mrrc_ring_pin(ring, buf, BUF);
		reads_to(buf, slot);
		if (slot >= 0)
			mrrc_ring_unpin(ring, slot);
	}
	munmap(buf, BUF);
}

/* A read to memory without a slot works, too, and slots are used again. */
TEST(slots)
{
	char *buf = buffer();
	int slot, last, n = 0;

	if (!opened() || (slot = mrrc_ring_pin(ring, buf, BUF)) < 0)
		return;
	while ((last = mrrc_ring_pin(ring, buf, PAGE)) >= 0)
		n++;
	ck_assert_int_eq(n, 255);
	mrrc_ring_unpin(ring, slot);
	ck_assert_int_eq(mrrc_ring_pin(ring, buf, BUF), slot);
	munmap(buf, BUF);
}

/* A cancelled read writes nothing to the memory any more. */
TEST(cancelled)
{
	struct mrrc_ring_read read[16];
	char *buf[16];
	size_t at;
	unsigned i, n;

	if (!opened())
		return;
	for (i = 0; i < 16; i++)
		buf[i] = buffer();
	for (n = 0; n < 10; n++) {
		for (i = 0; i < 16; i++) {
			read[i] = part(buf[i], -1, 0, LEN);
			mrrc_ring_start(ring, &read[i]);
		}
		for (i = 0; i < 16; i++) {
			mrrc_ring_cancel(ring, &read[15 - i]);
			memset(buf[15 - i], 0x5a, BUF);
		}
		usleep(2000);
		for (i = 0; i < 16; i++) {
			for (at = 0; at < BUF; at += PAGE)
				ck_assert_int_eq(buf[i][at], 0x5a);
		}
	}
	for (i = 0; i < 16; i++)
		munmap(buf[i], BUF);
}

static void *reader(void *arg)
{
	unsigned seed = (uintptr_t) arg, i;
	char *buf = buffer();
	struct mrrc_ring_read read;
	size_t offset, len;

	for (i = 0; i < ROUNDS; i++) {
		offset = rand_r(&seed) % (LEN / align) * align;
		len = 1 + rand_r(&seed) % (LEN - offset);
		read = part(buf, -1, offset, len);
		if (!whole(&read) || memcmp(buf, content + offset, len))
			atomic_fetch_add(&wrong, 1);
	}
	munmap(buf, BUF);
	return NULL;
}

TEST(threads)
{

	if (!opened())
		return;
	threads_run(THREADS, reader);
}

/* The end of a read does not interrupt a system call of the application. */
TEST(calls_go_on)
{
	struct mrrc_ring_read read;
	char *buf = buffer();
	struct epoll_event event;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	unsigned i;

	for (i = 0; opened() && i < 20; i++) {
		read = part(buf, -1, 0, 1 << 20);
		mrrc_ring_start(ring, &read);
		ck_assert_int_eq(epoll_wait(epoll, &event, 1, 20), 0);
		ck_assert(mrrc_ring_wait(ring, &read));
	}
	close(epoll);
	munmap(buf, BUF);
}

static int ring_fd(void)
{
	char name[64], target[64] = "";
	int fd;

	for (fd = 0; fd < 1024; fd++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		memset(target, 0, sizeof(target));
		if (readlink(name, target, sizeof(target) - 1) > 0 &&
		    strstr(target, "io_uring"))
			return fd;
	}
	return -1;
}

/* The application closes descriptors that it did not open. */
TEST(descriptor_is_closed)
{
	struct mrrc_ring_read read[8];
	char *buf = buffer();
	struct stat stat_;
	unsigned i;
	int fd;

	if (!opened())
		return;
	for (i = 0; i < 8; i++) {
		read[i] = part(buf, -1, 0, LEN);
		mrrc_ring_start(ring, &read[i]);
	}
	fd = ring_fd();
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(dup2(file, fd), fd);
	for (i = 0; i < 8; i++)
		mrrc_ring_wait(ring, &read[i]);
	for (i = 0; i < 8; i++)
		ck_assert(!whole(&read[i]));
	mrrc_ring_close(ring);
	ring = NULL;
	ck_assert_int_eq(fstat(fd, &stat_), 0);
	close(fd);
	munmap(buf, BUF);
}

TEST(file_systems)
{
	int fd = open("/proc/self/status", O_RDONLY), out;

	if (ring)
		ck_assert_int_eq(mrrc_ring_file(fd, &align, &out), -EOPNOTSUPP);
	close(fd);
}
