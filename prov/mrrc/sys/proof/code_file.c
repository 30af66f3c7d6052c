/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Maps an ELF file that is not loaded, as the loader would map it: for tools,
 * tests and copies (code_copy.h).
 *
 * Threading: one thread uses a file.
 */
#include "config.h"
#include "sys/proof/code_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sys/base/regular.h"

#define PHDRS 64
#define SPAN  ((uint64_t) 4 << 30) /* bytes of a file's segments, at most */

struct file_headers {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr[PHDRS];
};

static bool read_at(int fd, void *to, size_t len, uint64_t offset)
{
	return pread(fd, to, len, (off_t) offset) == (ssize_t) len;
}

static bool read_headers(int fd, struct file_headers *headers)
{
	Elf64_Ehdr *const ehdr = &headers->ehdr;

	return read_at(fd, ehdr, sizeof(*ehdr), 0) &&
	       !memcmp(ehdr->e_ident, ELFMAG, SELFMAG) &&
	       ehdr->e_ident[EI_CLASS] == ELFCLASS64 &&
	       ehdr->e_phentsize == sizeof(Elf64_Phdr) &&
	       ehdr->e_phnum <= PHDRS &&
	       read_at(fd, headers->phdr, ehdr->e_phnum * sizeof(Elf64_Phdr),
		       ehdr->e_phoff);
}

/*
 * Finds the range from the first segment's page to the last segment's end;
 * false: bad segments.
 */
static bool find_span(const struct file_headers *headers, uint64_t size,
		      uint64_t page, uint64_t *lo, uint64_t *hi)
{
	const Elf64_Phdr *phdr;
	unsigned i;

	*lo = UINT64_MAX;
	*hi = 0;
	for (i = 0; i < headers->ehdr.e_phnum; i++) {
		phdr = &headers->phdr[i];
		if (phdr->p_type != PT_LOAD)
			continue;
		if (phdr->p_offset > size ||
		    phdr->p_filesz > size - phdr->p_offset ||
		    phdr->p_filesz > phdr->p_memsz || phdr->p_memsz > SPAN ||
		    phdr->p_vaddr > UINT64_MAX / 2 ||
		    (phdr->p_vaddr - phdr->p_offset) % page)
			return false;
		if (phdr->p_vaddr < *lo)
			*lo = phdr->p_vaddr & ~(page - 1);
		if (phdr->p_vaddr + phdr->p_memsz > *hi)
			*hi = phdr->p_vaddr + phdr->p_memsz;
	}
	return *lo < *hi && *hi - *lo <= SPAN;
}

static int map_segments(int fd, const struct file_headers *headers,
			uint64_t page, struct mrrc_code_file *file)
{
	const Elf64_Phdr *phdr;
	uint64_t before;
	uint8_t *at;
	unsigned i;

	for (i = 0; i < headers->ehdr.e_phnum; i++) {
		phdr = &headers->phdr[i];
		if (phdr->p_type != PT_LOAD || !phdr->p_filesz)
			continue;
		before = phdr->p_vaddr % page;
		at = (uint8_t *) (file->base + phdr->p_vaddr - before);
		/* uprobes are placed in all other mappings of the file, too */
		if (mmap(at, phdr->p_filesz + before, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd,
			 (off_t) (phdr->p_offset - before)) == MAP_FAILED)
			return -errno;
	}
	return 0;
}

static int map_file(struct mrrc_code_file *file)
{
	const int fd = file->fd;
	const uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
	struct file_headers headers;
	struct stat stat;
	uint64_t lo, hi;
	int ret;

	if (fstat(fd, &stat))
		return -errno;
	file->device = (uint64_t) major(stat.st_dev) << 32 | minor(stat.st_dev);
	file->inode = stat.st_ino;
	if (!read_headers(fd, &headers) ||
	    !find_span(&headers, (uint64_t) stat.st_size, page, &lo, &hi))
		return -EINVAL;
	file->len = hi - lo;
	file->map = mmap(NULL, file->len, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file->map == MAP_FAILED)
		return -errno;
	file->base = (uintptr_t) file->map - lo;
	ret = map_segments(fd, &headers, page, file);
	/* The headers are at the start of the first segment, as a rule. */
	if (!ret && (mprotect(file->map, page, PROT_READ | PROT_WRITE) ||
		     memcmp(file->map, &headers.ehdr, sizeof(headers.ehdr))))
		ret = -EINVAL;
	if (ret)
		munmap(file->map, file->len);
	return ret;
}

int mrrc_code_open(const char *path, struct mrrc_code_file *file)
{
	const int fd = mrrc_regular_open(AT_FDCWD, path, 0);
	struct mrrc_code_file one = { .fd = fd };
	int ret;

	if (fd < 0)
		return fd;
	ret = map_file(&one);
	if (ret)
		close(fd);
	else
		*file = one;
	return ret;
}

static struct mrrc_code_image file_image(const struct mrrc_code_file *file)
{
	return (struct mrrc_code_image){
		.base = file->base,
		.ehdr = file->map,
		.lo = (uintptr_t) file->map,
		.hi = (uintptr_t) file->map + file->len,
		.start = (uintptr_t) file->map,
		.end = (uintptr_t) file->map + file->len,
		.fd = file->fd,
	};
}

/* The next dynamic entry of a type after @last; NULL: there is none. */
static const Elf64_Dyn *file_dynamic(const struct mrrc_code *code,
				     Elf64_Sxword tag, const Elf64_Dyn *last)
{
	const Elf64_Phdr *phdr = code->phdr;
	const Elf64_Dyn *dyn, *end;

	while (phdr < code->phdr + code->phdrs && phdr->p_type != PT_DYNAMIC)
		phdr++;
	if (phdr == code->phdr + code->phdrs ||
	    phdr->p_vaddr % _Alignof(Elf64_Dyn) ||
	    !mrrc_code_readable(code, code->image->base + phdr->p_vaddr,
				phdr->p_filesz))
		return NULL;
	dyn = (const Elf64_Dyn *) (code->image->base + phdr->p_vaddr);
	end = dyn + phdr->p_filesz / sizeof(*dyn);
	for (dyn = last ? last + 1 : dyn; dyn < end; dyn++) {
		if (dyn->d_tag == tag)
			return dyn;
	}
	return NULL;
}

bool mrrc_code_needs(const struct mrrc_code_file *file, const char *name)
{
	const struct mrrc_code_image image = file_image(file);
	const Elf64_Dyn *needed = NULL, *names;
	struct mrrc_code code;
	uintptr_t at;

	if (mrrc_code_headers(&code, &image))
		return false;
	names = file_dynamic(&code, DT_STRTAB, NULL);
	while (names && (needed = file_dynamic(&code, DT_NEEDED, needed))) {
		at = image.base + names->d_un.d_ptr + needed->d_un.d_val;
		if (mrrc_code_readable(&code, at, strlen(name)) &&
		    !strncmp((const char *) at, name, strlen(name)))
			return true;
	}
	return false;
}

bool mrrc_code_segment(const struct mrrc_code_file *file, unsigned nth,
		       struct mrrc_code_image *image)
{
	struct mrrc_code_image one = file_image(file);
	struct mrrc_code code;
	unsigned i;

	if (mrrc_code_headers(&code, &one))
		return false;
	for (i = 0; i < code.phdrs; i++) {
		if (code.phdr[i].p_type != PT_LOAD ||
		    !(code.phdr[i].p_flags & PF_X) || !code.phdr[i].p_filesz ||
		    nth--)
			continue;
		one.start = one.base + code.phdr[i].p_vaddr;
		one.end = one.start + code.phdr[i].p_filesz;
		one.offset = code.phdr[i].p_offset;
		*image = one;
		return true;
	}
	return false;
}

void mrrc_code_close(struct mrrc_code_file *file)
{
	munmap(file->map, file->len);
	close(file->fd);
}
