/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory to measure on: see measure.h.
 */
#include "config.h"
#include "prof/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN ((size_t) 1 << 20)

/* Maps memory in pages of exactly the given kind, or returns -ENOENT. */
static int map(enum mrrc_pages kind, size_t size, char **out, size_t *mapped)
{
	const struct mrrc_pages_attr attr = { .kind = kind, .node = -1 };
	enum mrrc_pages got;
	void *addr;
	int ret;

	ret = mrrc_pages_map(size, ALIGN, &attr, &addr, mapped, &got);
	if (ret)
		return ret;
	if (got != kind) {
		mrrc_pages_unmap(addr, *mapped);
		return -ENOENT;
	}
	*out = addr;
	return 0;
}

int prof_map_absent(struct prof_measure *m, const struct prof_cell *cell,
		    char **buf, size_t *mapped)
{
	const int ret = map(cell->kind, cell->size, buf, mapped);

	return ret ? prof_fail(m->err, ret,
			       "mapping %zu bytes in pages of "
			       "%s: %s",
			       cell->size, prof_pages_name(cell->kind),
			       strerror(-ret)) :
		     0;
}

static bool thp_exists(void)
{
	char text[64] = "";
	FILE *file;

	file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return !strstr(text, "[never]");
}

/*
 * Maps a touched buffer. A second buffer, of absent pages, must fit beside the
 * touched buffer.
 */
static int map_touched(struct prof_measure *m, enum mrrc_pages kind,
		       size_t size)
{
	size_t second_mapped, at;
	char *second;
	int ret;

	if (kind == MRRC_PAGES_THP && !thp_exists())
		return -ENOENT;
	ret = map(kind, size, &m->touched[kind], &m->mapped[kind]);
	if (ret)
		return ret;
	ret = map(kind, size, &second, &second_mapped);
	if (ret) {
		mrrc_pages_unmap(m->touched[kind], m->mapped[kind]);
		m->touched[kind] = NULL;
		return ret;
	}
	mrrc_pages_unmap(second, second_mapped);
	for (at = 0; at < size; at += PROF_PAGE)
		m->touched[kind][at] = 1;
	return 0;
}

/* Returns memory that is free without evicting other data; 0: unknown */
static size_t memory_available(void)
{
	unsigned long kib = 0;
	char line[128];
	FILE *file;

	file = fopen("/proc/meminfo", "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemAvailable: %lu", &kib) == 1)
			break;
	}
	fclose(file);
	return (size_t) kib << 10;
}

/*
 * Checks that memory suffices for the touched buffers and one range of absent
 * pages: if a process takes more, the kernel kills this or another process.
 * Reserved huge pages are separate memory, which is not checked here.
 */
static int check_memory(struct prof_measure *m, size_t largest)
{
	const bool *pages = m->options->pages;
	const size_t touched = pages[MRRC_PAGES_4K] + pages[MRRC_PAGES_THP];
	const size_t buffers = touched + 1;
	const size_t available = memory_available();

	if (!touched || !available || largest <= available / buffers)
		return 0;
	return prof_fail(m->err, -ENOMEM,
			 "%zu buffers of %zu bytes are more "
			 "than the %zu bytes of memory that are available; "
			 "leave out such sizes (--sizes)",
			 buffers, largest, available);
}

void prof_unmap_all(struct prof_measure *m)
{
	int kind;

	for (kind = 0; kind < MRRC_PAGES_CNT; kind++) {
		if (m->touched[kind])
			mrrc_pages_unmap(m->touched[kind], m->mapped[kind]);
	}
	free(m->copy);
}

/* Says how to get pages of the kinds to measure, all of which are lacking. */
static int no_pages(struct prof_measure *m, size_t largest)
{
	const enum mrrc_pages kind = m->options->pages[MRRC_PAGES_2M] ?
					     MRRC_PAGES_2M :
					     MRRC_PAGES_1G;
	const unsigned bits = kind == MRRC_PAGES_2M ? 21 : 30;

	if (m->cells->lacking[MRRC_PAGES_THP])
		return prof_fail(m->err, -ENOENT,
				 "transparent huge pages are off: as root, "
				 "write madvise to /sys/kernel/mm/"
				 "transparent_hugepage/enabled, or measure "
				 "others by --pages");
	return prof_fail(m->err, -ENOENT,
			 "too few pages of %s: as root, write %zu to "
			 "/sys/kernel/mm/hugepages/hugepages-%ukB/"
			 "nr_hugepages, or measure others by --pages",
			 prof_pages_name(kind), 2 * ((largest >> bits) + 1),
			 1U << (bits - 10));
}

int prof_map_all(struct prof_measure *m)
{
	const struct prof_options *options = m->options;
	const size_t largest = options->size[options->sizes - 1];
	enum mrrc_pages kind;
	bool any = false;
	int ret;

	ret = check_memory(m, largest);
	if (ret)
		return ret;
	m->copy = aligned_alloc(PROF_PAGE, PROF_COPY_MAX);
	if (!m->copy)
		return prof_fail(m->err, -ENOMEM, "%s", strerror(ENOMEM));
	memset(m->copy, 1, PROF_COPY_MAX);
	for (kind = MRRC_PAGES_4K; kind < MRRC_PAGES_CNT; kind++) {
		if (!options->pages[kind])
			continue;
		ret = map_touched(m, kind, largest);
		m->cells->lacking[kind] = ret;
		any |= !ret;
	}
	if (any)
		return 0;
	prof_unmap_all(m);
	return no_pages(m, largest);
}
