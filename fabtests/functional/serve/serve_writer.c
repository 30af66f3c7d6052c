/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_serve_writer: changes a file in one way, again and again, while
 * fi_mrrc_serve serves the file; also tells whether a copy of the file equals
 * the file at some moment (test_serve.sh).
 *
 * Each word of a page is the number of the page's version. A writer overwrites
 * the pages in their order, so at any moment the file has pages of one version,
 * followed by pages of the previous version; in the way "punch" the file may
 * have a hole.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE  4096
#define WORDS (PAGE / sizeof(uint64_t))
#define PAGES 4096 /* pages of a whole file */

static const char *path;
static uint64_t worst_ns; /* longest time that an open waited */

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", path, what, strerror(errno));
	exit(EXIT_FAILURE);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}

static int open_file(const char *name, int flags)
{
	const uint64_t begin = now_ns();
	int fd = open(name, O_RDWR | flags, 0644);

	if (fd < 0)
		fail("open");
	if (now_ns() - begin > worst_ns)
		worst_ns = now_ns() - begin;
	return fd;
}

static void write_pages(int fd, uint64_t version, unsigned from, unsigned to)
{
	uint64_t page[WORDS];
	unsigned i;

	for (i = 0; i < WORDS; i++)
		page[i] = version;
	for (i = from; i < to; i++) {
		if (pwrite(fd, page, PAGE, (off_t) i * PAGE) != PAGE)
			fail("write");
	}
}

static void change(const char *how, uint64_t version)
{
	const unsigned some = 1 + (unsigned) rand() % PAGES;
	char name[4096];
	int fd;

	if (!strcmp(how, "rename")) {
		snprintf(name, sizeof(name), "%s.new", path);
		fd = open_file(name, O_CREAT | O_TRUNC);
		write_pages(fd, version, 0, PAGES);
		if (rename(name, path))
			fail("rename");
		close(fd);
		return;
	}
	fd = open_file(path, 0);
	if (!strcmp(how, "truncate")) {
		if (ftruncate(fd, (off_t) some * PAGE))
			fail("ftruncate");
	} else if (!strcmp(how, "append")) {
		if (ftruncate(fd, 0))
			fail("ftruncate");
		write_pages(fd, version, 0, some);
	} else if (!strcmp(how, "punch")) {
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t) some / 2 * PAGE, (off_t) some * PAGE))
			fail("fallocate");
	}
	write_pages(fd, version, 0, PAGES);
	close(fd);
}

static int run(const char *how, double seconds)
{
	const uint64_t end = now_ns() + (uint64_t) (seconds * 1e9);
	struct timespec pause = { 0 };
	uint64_t version = 1;

	srand((unsigned) getpid());
	write_pages(open_file(path, O_CREAT | O_TRUNC), version, 0, PAGES);
	puts("begun");
	fflush(stdout);
	while (now_ns() < end) {
		change(how, ++version);
		/*
		 * often make no pause, else a pause long enough to fetch the
		 * file
		 */
		pause.tv_nsec = rand() % 3 ? 0 : rand() % 400000000;
		nanosleep(&pause, NULL);
	}
	printf("%llu versions, opens waited %llu ms at most\n",
	       (unsigned long long) version,
	       (unsigned long long) worst_ns / 1000000);
	/* the kernel would let the writer go on after 45 s */
	return worst_ns < 40000000000 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool is_uniform(const uint64_t *page, size_t len)
{
	size_t i;

	for (i = 1; i < len / sizeof(*page); i++) {
		if (page[i] != page[0])
			return false;
	}
	return true;
}

/* Checks a copy of the file. @holes: pages of zeros are allowed. */
static int check(bool holes)
{
	uint64_t page[WORDS], before = 0, first = 0;
	unsigned at, changes = 0;
	ssize_t got;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		fail("open");
	for (at = 0; (got = read(fd, page, PAGE)) > 0; at++) {
		if (!is_uniform(page, (size_t) got) || (!page[0] && !holes)) {
			printf("page %u is torn\n", at);
			return EXIT_FAILURE;
		}
		if (!page[0])
			continue;
		if (!first)
			first = page[0];
		changes += before && page[0] != before;
		before = page[0];
		if (changes > 1 || before > first || first - before > 1) {
			printf("page %u is of version %llu, page 0 of %llu\n",
			       at, (unsigned long long) before,
			       (unsigned long long) first);
			return EXIT_FAILURE;
		}
	}
	close(fd);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc != 3 && argc != 4)
		return 2;
	path = argv[1];
	if (!strcmp(argv[2], "check"))
		return check(argc == 4);
	return argc == 4 ? run(argv[2], atof(argv[3])) : 2;
}
