/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of code (code_copy.h).
 */
#include "config.h"
#include "sys/proof/code_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sys/hooks/libc_hooks.h"
#include "sys/hooks/patch.h"
#include "sys/base/mappings.h"

#define COPY_CODES 16			/* executable mappings of one file */
#define COPY_MAX   ((size_t) 512 << 20) /* bytes of a copy, at most */

/* /proc/PID/pagemap */
#define PAGE_PRESENT ((uint64_t) 1 << 63)
#define PAGE_SWAPPED ((uint64_t) 1 << 62)
#define PAGE_FILE    ((uint64_t) 1 << 61)

/* ---- the mappings ---- */

/* The adjacent mappings of one file, in order of addresses. */
struct copy_search {
	bool (*each)(void *arg, const struct mrrc_code_place *place);
	void *arg;
	uintptr_t lo, hi;
	uint64_t device, inode;
	struct mrrc_code_place code[COPY_CODES];
	unsigned codes;
};

/* Reports the executable mappings of a file. Returns whether to go on. */
static bool copy_flush(struct copy_search *search)
{
	bool more = true;
	unsigned i;

	for (i = 0; i < search->codes && more; i++) {
		search->code[i].lo = search->lo;
		search->code[i].hi = search->hi;
		more = search->each(search->arg, &search->code[i]);
	}
	search->codes = 0;
	return more;
}

static bool copy_next(void *arg, const struct mrrc_mapping *mapping)
{
	struct copy_search *search = arg;
	struct mrrc_code_place *code;

	/*
	 * a search begins anew at a file's offset 0, and when the table is full
	 */
	if (!mapping->inode || mapping->inode != search->inode ||
	    mapping->device != search->device || !mapping->offset ||
	    search->codes == COPY_CODES) {
		if (!copy_flush(search))
			return false;
		search->lo = mapping->start;
		search->device = mapping->device;
		search->inode = mapping->inode;
	}
	search->hi = mapping->end;
	/* joins adjacent mappings: an instruction may lie in two of them */
	if (!mapping->execute)
		return true;
	code = search->codes ? &search->code[search->codes - 1] : NULL;
	if (code && code->end == mapping->start &&
	    code->offset + (code->end - code->start) == mapping->offset &&
	    code->write == mapping->write && code->shared == mapping->shared) {
		code->end = mapping->end;
		return true;
	}
	code = &search->code[search->codes++];
	*code = (struct mrrc_code_place){
		.start = mapping->start,
		.end = mapping->end,
		.offset = mapping->offset,
		.device = mapping->device,
		.inode = mapping->inode,
		.write = mapping->write,
		.shared = mapping->shared,
	};
	snprintf(code->name, sizeof(code->name), "%s", mapping->name);
	return true;
}

bool mrrc_code_places(bool (*each)(void *arg,
				   const struct mrrc_code_place *place),
		      void *arg)
{
	struct copy_search search = { .each = each, .arg = arg };

	if (!mrrc_mappings_each(copy_next, &search))
		return false;
	copy_flush(&search);
	return true;
}

/* ---- copying ---- */

bool mrrc_code_stat(const struct mrrc_code_place *place, struct stat *st)
{
	return place->name[0] == '/' && !stat(place->name, st) &&
	       st->st_ino == place->inode &&
	       ((uint64_t) major(st->st_dev) << 32 | minor(st->st_dev)) ==
		       place->device;
}

struct copy_file_of {
	uintptr_t at;
	uint64_t device, inode;
};

static bool copy_mapped(void *arg, const struct mrrc_mapping *mapping)
{
	struct copy_file_of *const of = arg;

	if (of->at < mapping->start || of->at >= mapping->end)
		return true;
	of->device = mapping->device;
	of->inode = mapping->inode;
	return false;
}

/*
 * Is @file the file of @place? On an overlay file system /proc/self/maps shows
 * another device than stat(2).
 */
static bool copy_same(const struct mrrc_code_place *place,
		      const struct mrrc_code_file *file)
{
	struct copy_file_of of = { .at = (uintptr_t) file->map };

	if (place->inode == file->inode && place->device == file->device)
		return true;
	return mrrc_mappings_each(copy_mapped, &of) &&
	       place->inode == of.inode && place->device == of.device;
}

/*
 * Maps the file once more, if the file is the same and has the layout that it
 * has in memory. Reads the file's pages now, so that an unreadable page causes
 * an error, not a signal later.
 */
static bool copy_file(const struct mrrc_code_place *place,
		      struct mrrc_code_copy *copy)
{
	const uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
	struct mrrc_code_image *const image = &copy->image;
	struct mrrc_code_file file;
	uintptr_t map;
	unsigned nth;
	bool same;

	if (place->name[0] != '/' || mrrc_code_open(place->name, &file))
		return false;
	map = (uintptr_t) file.map;
	same = copy_same(place, &file);
	for (nth = 0; same && mrrc_code_segment(&file, nth, image); nth++) {
		image->start &= ~(page - 1);
		image->end = (image->end + page - 1) & ~(page - 1);
		if (place->offset == (image->offset & ~(page - 1)) &&
		    place->start - place->lo == image->start - map &&
		    place->end - place->lo == image->end - map &&
		    (!madvise((void *) image->start, image->end - image->start,
			      MADV_POPULATE_READ) ||
		     errno == EINVAL)) {
			copy->file = file;
			return true;
		}
	}
	mrrc_code_close(&file);
	return false;
}

bool mrrc_code_own(uintptr_t start, uintptr_t end,
		   bool (*each)(void *arg, uintptr_t at), void *arg)
{
	const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const size_t page = (size_t) sysconf(_SC_PAGESIZE);
	uint64_t entry[512];
	size_t i = 0, count = 0;
	bool more = true;

	for (; more && start < end; start += page, i++) {
		if (i == count) {
			i = 0;
			count = (end - start) / page;
			if (count > sizeof(entry) / sizeof(*entry))
				count = sizeof(entry) / sizeof(*entry);
			/* if an entry cannot be read, its page may be a copy */
			memset(entry, 0xff, sizeof(entry));
			if (fd < 0 ||
			    pread(fd, entry, count * sizeof(*entry),
				  (off_t) (start / page * sizeof(*entry))) < 0)
				memset(entry, 0xff, sizeof(entry));
		}
		if (entry[i] & PAGE_SWAPPED ||
		    (entry[i] & PAGE_PRESENT && !(entry[i] & PAGE_FILE)))
			more = each(arg, start);
	}
	if (fd >= 0)
		close(fd);
	return more;
}

#define COPY_PIECE 512 /* bytes; divides the size of a page */

struct copy_page {
	uint8_t *to; /* the copy of @from */
	uintptr_t from;
	size_t page;
	int fd;
};

/*
 * Copies a page of the process over the file's page, by reading /proc/self/mem,
 * as the code may be unmapped meanwhile. Does not copy uprobes, as the kernel
 * runs the file's instructions in their places. A uprobe is a breakpoint that
 * is a single changed byte; a breakpoint beside other changed bytes is no
 * uprobe.
 */
static bool copy_own(void *arg, uintptr_t at)
{
	const struct copy_page *const copy = arg;
	uint8_t *to = copy->to + (at - copy->from);
	uint8_t piece[COPY_PIECE];
	bool probe, same, alone = true;
	size_t done, i;

	for (done = 0; done < copy->page; done += sizeof(piece)) {
		if (pread(copy->fd, piece, sizeof(piece),
			  (off_t) (at + done)) != sizeof(piece))
			break;
		for (i = 0; i < sizeof(piece); i++, to++) {
			same = piece[i] == *to;
			probe = piece[i] == MRRC_PATCH_PROBE && alone &&
				(i + 1 == sizeof(piece) ||
				 piece[i + 1] == to[1] ||
				 piece[i + 1] == MRRC_PATCH_PROBE);
			if (!probe)
				*to = piece[i];
			alone = same || probe;
		}
	}
	return true;
}

int mrrc_code_copy(const struct mrrc_code_place *place,
		   struct mrrc_code_copy *copy)
{
	struct copy_page own = {
		.from = place->lo,
		.page = (size_t) sysconf(_SC_PAGESIZE),
	};
	int fd;

	if (place->hi - place->lo > COPY_MAX)
		return -EFBIG;
	fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	own.fd = fd;
	if (copy_file(place, copy)) {
		copy->live = place->lo;
		own.to = copy->file.map;
		mrrc_code_own(place->start, place->end, copy_own, &own);
		mrrc_libc_hooks_undo((uint8_t *) copy->image.start,
				     place->start, place->end);
	}
	close(fd);
	return own.to ? 0 : -ESTALE;
}

void mrrc_code_free(struct mrrc_code_copy *copy)
{
	mrrc_code_close(&copy->file);
}
