/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fills and checks buffers with contents that a seed determines.
 *
 * Every 8 bytes depend on seed and position, so data from another buffer, round
 * or offset are noticed.
 */
#include "ft_mrrc.h"

#include <dirent.h>

static inline uint64_t word_at(uint64_t seed, size_t i)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ULL + i;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ULL;
	return x ^ x >> 32;
}

void ft_fill(void *buf, size_t len, uint64_t seed)
{
	size_t i, words = len / 8;
	uint64_t w;

	for (i = 0; i < words; i++) {
		w = word_at(seed, i);
		memcpy((char *) buf + i * 8, &w, 8);
	}
	w = word_at(seed, words);
	memcpy((char *) buf + words * 8, &w, len % 8);
}

ssize_t ft_differs(const void *buf, size_t len, uint64_t seed)
{
	const char *p = buf;
	size_t i, off, n;
	uint64_t w;

	for (off = 0; off < len; off += 8) {
		w = word_at(seed, off / 8);
		n = len - off < 8 ? len - off : 8;
		if (!memcmp(p + off, &w, n))
			continue;
		for (i = 0; i < n; i++) {
			if (p[off + i] != ((char *) &w)[i])
				return (ssize_t) (off + i);
		}
	}
	return -1;
}

void ft_check_buf(const char *file, int line, const void *buf, size_t len,
		  uint64_t seed, const char *what)
{
	ssize_t at = ft_differs(buf, len, seed);

	if (at >= 0)
		ft_fail(file, line,
			"wrong data: %s: byte %zd of %zu at %p (seed %" PRIu64
			") is 0x%02x",
			what, at, len, buf, seed, ((const uint8_t *) buf)[at]);
}

void *ft_map(void *addr, size_t len)
{
	void *p;

	p = mmap(addr, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED : 0), -1, 0);
	FT_CHECK(p != MAP_FAILED, "mmap of %zu: %s", len, strerror(errno));
	return p;
}

/*
 * Maps memory into a hole that the test made. Returns false if another thread
 * has mapped memory there first.
 */
bool ft_map_hole(void *addr, size_t len)
{
	void *p;

	p = mmap(addr, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	FT_CHECK(p != MAP_FAILED || errno == EEXIST, "mmap of %zu: %s", len,
		 strerror(errno));
	return p != MAP_FAILED;
}

/*
 * Maps memory far below the addresses that mmap() gives to other threads: when
 * this memory is unmapped, its addresses stay unused.
 */
void *ft_map_apart(size_t len)
{
	const size_t far = 1 << 30;
	void *p = mmap(NULL, far, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	FT_CHECK(p != MAP_FAILED, "mmap of %zu: %s", far, strerror(errno));
	ft_unmap(p, far);
	return ft_map(p, len);
}

void ft_unmap(void *addr, size_t len)
{
	FT_CHECK(!munmap(addr, len), "munmap of %zu: %s", len, strerror(errno));
}

bool ft_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

/*
 * Is freed memory really freed? Sanitizers and valgrind keep freed memory, so
 * that uses of freed memory cannot be tested.
 */
static bool freed_is_freed(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return false;
#else
	return !ft_valgrind();
#endif
}

size_t ft_rss(void)
{
	unsigned long size = 0, rss = 0;
	FILE *file;

	if (!freed_is_freed())
		return 0;
	file = fopen("/proc/self/statm", "r");
	FT_CHECK(file, "/proc/self/statm: %s", strerror(errno));
	FT_CHECK(fscanf(file, "%lu %lu", &size, &rss) == 2,
		 "/proc/self/statm: wrong format");
	fclose(file);
	return rss * FT_PAGE;
}

size_t ft_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	size_t n = 0;
	int c;

	FT_CHECK(file, "/proc/self/maps: %s", strerror(errno));
	while ((c = getc(file)) != EOF)
		n += c == '\n';
	fclose(file);
	return n;
}

unsigned ft_fd_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned cnt = 0;

	FT_CHECK(dir, "/proc/self/fd");
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}
