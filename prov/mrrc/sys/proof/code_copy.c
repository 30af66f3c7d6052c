/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of code (code_copy.h).
 */
#include "config.h"
#include "sys/proof/code_copy.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sys/hooks/libc_hooks.h"
#include "sys/base/mappings.h"

#define COPY_CODES 16			/* executable mappings of one file */
#define COPY_MAX   ((size_t) 512 << 20) /* memory, for some time */

/* ---- the mappings ---- */

/* The mappings of one file that are adjacent, in order of addresses. */
struct copy_search {
	bool (*each)(void *arg, const struct mrrc_code_place *place);
	void *arg;
	uintptr_t lo, hi;
	uint64_t device, inode;
	struct mrrc_code_place code[COPY_CODES];
	unsigned codes;
};

/* Returns whether to go on. */
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

	/* a file begins anew at its offset 0; one that is full, too */
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
	/* an instruction may lie in two */
	if (!mapping->execute)
		return true;
	code = search->codes ? &search->code[search->codes - 1] : NULL;
	if (code && code->end == mapping->start &&
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

/* The file's own path, if that is still the file. */
static const char *copy_path(const struct mrrc_code_place *place)
{
	struct stat st;

	return mrrc_code_stat(place, &st) ? place->name : NULL;
}

/*
 * The kernel copies: the code may be gone. Gaps between segments are not
 * readable.
 */
static int copy_read(const struct mrrc_code_place *place, uint8_t *map)
{
	const int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	const size_t page = sysconf(_SC_PAGESIZE);
	size_t done = 0, len = place->hi - place->lo;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while (done < len) {
		got = pread(fd, map + done, len - done,
			    (off_t) (place->lo + done));
		if (got > 0)
			done += got;
		else
			done = (done + page) & ~(page - 1);
	}
	close(fd);
	return 0;
}

static const ElfW(Ehdr) * copy_header(const struct mrrc_code_copy *copy)
{
	const ElfW(Ehdr) *ehdr = copy->map;

	if (copy->len < sizeof(*ehdr) ||
	    memcmp(ehdr->e_ident, ELFMAG, SELFMAG) ||
	    ehdr->e_phentsize != sizeof(ElfW(Phdr)) ||
	    ehdr->e_phoff > copy->len ||
	    ehdr->e_phnum > (copy->len - ehdr->e_phoff) / sizeof(ElfW(Phdr)))
		return NULL;
	return ehdr;
}

/* The address that the file gives to its first byte. */
static uintptr_t copy_first(const ElfW(Ehdr) * ehdr)
{
	const ElfW(Phdr) *phdr =
		(const void *) ((const uint8_t *) ehdr + ehdr->e_phoff);
	unsigned i;

	for (i = 0; i < ehdr->e_phnum; i++) {
		if (phdr[i].p_type == PT_LOAD && !phdr[i].p_offset)
			return phdr[i].p_vaddr;
	}
	return 0;
}

int mrrc_code_copy(const struct mrrc_code_place *place,
		   struct mrrc_code_copy *copy)
{
	const ElfW(Ehdr) * ehdr;
	int ret;

	copy->live = place->lo;
	copy->len = place->hi - place->lo;
	if (copy->len > COPY_MAX)
		return -EFBIG;
	copy->map = mmap(NULL, copy->len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (copy->map == MAP_FAILED)
		return -ENOMEM;
	ret = copy_read(place, copy->map);
	ehdr = copy_header(copy);
	if (!ret && !ehdr)
		ret = -EINVAL;
	if (ret) {
		mrrc_code_free(copy);
		return ret;
	}
	mrrc_libc_hooks_undo(copy->map, place->lo, place->hi);
	copy->image = (struct mrrc_code_image){
		.base = (uintptr_t) copy->map - copy_first(ehdr),
		.ehdr = ehdr,
		.lo = (uintptr_t) copy->map,
		.hi = (uintptr_t) copy->map + copy->len,
		.start = (uintptr_t) copy->map + place->start - place->lo,
		.end = (uintptr_t) copy->map + place->end - place->lo,
		.path = copy_path(place),
	};
	return 0;
}

void mrrc_code_free(struct mrrc_code_copy *copy)
{
	munmap(copy->map, copy->len);
}
