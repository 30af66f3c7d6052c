/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Harmless system calls (prove_site.h).
 */
#include "config.h"
#include "sys/proof/prove_site.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "sys/hooks/libc_hooks.h"
#include "sys/hooks/patch.h"

/* Bytes around the instruction by which the provider makes its calls. */
#define MADE_BEFORE 28
#define MADE_FROM   3

/*
 * System calls that libraries may make without a hook; @name: the beginning of
 * the library's name.
 */
static const struct {
	const char *name;
	long number;
	enum mrrc_prove_verdict verdict;
} site_may[] = {
	/*
	 * libucm calls brk only in place of libc's brk and sbrk, when it has
	 * overwritten these
	 */
	{ "libucm.so.", SYS_brk, MRRC_PROVE_BRK },
	/*
	 * liburing maps and unmaps only its own rings, which are shared memory
	 * and never cached, and calls madvise to keep rings from children. But
	 * requests in a ring can discard any memory (IORING_OP_MADVISE): only
	 * libfabric's rings, which serve sockets, are known to have no such
	 * request.
	 */
	{ "liburing.so.", SYS_mmap, MRRC_PROVE_RINGS },
	{ "liburing.so.", SYS_munmap, MRRC_PROVE_RINGS },
	{ "liburing.so.", SYS_madvise, MRRC_PROVE_RINGS },
	{ "liburing.so.", SYS_io_uring_setup, MRRC_PROVE_RINGS },
	{ "liburing.so.", SYS_io_uring_enter, MRRC_PROVE_RINGS },
};

/*
 * Beginnings of the names of libraries with system calls of their own whose
 * sources are known: only the function around a system call decides the call's
 * number. In other libraries a number that is found may not be the only one:
 * other code, or a table, may lead to the instruction with another number.
 */
static const char *const site_known[] = {
	"ld-", /* the dynamic loader */
	/* with the provider, perhaps */
	"libfabric.so.",
	"libhook_mrrc-fi.so",
	"libmrrc-fi.so",
	"libgomp",
	"libitm.so.",
	"libtcmalloc",
	"libucm.so.",
	"libunwind",
	"liburing.so.",
};

/* Does the system call pass the number that the function around it says? */
static bool site_numbers(const struct mrrc_prove_file *file)
{
	const struct mrrc_code_image *const image = file->image;
	const uintptr_t own = mrrc_patch_made() - file->live + image->base;
	const char *const name = mrrc_prove_name(file->path);
	bool known = file->libc ||
		     (file->live && own >= image->lo && own < image->hi);
	size_t i;

	for (i = 0; i < sizeof(site_known) / sizeof(site_known[0]); i++)
		known = known ||
			!strncmp(name, site_known[i], strlen(site_known[i]));
	return known;
}

enum mrrc_prove_verdict mrrc_prove_may(const char *name, long number)
{
	size_t i;

	for (i = 0; i < sizeof(site_may) / sizeof(site_may[0]); i++) {
		if (number == site_may[i].number &&
		    !strncmp(name, site_may[i].name, strlen(site_may[i].name)))
			return site_may[i].verdict;
	}
	return MRRC_PROVE_ASKS;
}

enum mrrc_prove_rings mrrc_prove_rings(const char *file, const char *path)
{
	static const char fabric[] = "libfabric.so.";
	struct mrrc_code_file elf;
	bool needs;

	if (mrrc_code_open(file, &elf))
		return MRRC_PROVE_RINGS_ANY;
	needs = mrrc_code_needs(&elf, "liburing");
	mrrc_code_close(&elf);
	if (!needs)
		return MRRC_PROVE_RINGS_NONE;
	return strncmp(mrrc_prove_name(path), fabric, sizeof(fabric) - 1) ?
		       MRRC_PROVE_RINGS_ANY :
		       MRRC_PROVE_RINGS_FABRIC;
}

const char *mrrc_prove_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : *path ? path : "anonymous memory";
}

/*
 * Is this the provider's own system-call instruction, or in a file that is not
 * loaded, an instruction between the same bytes?
 */
static bool site_made(const struct mrrc_prove_file *file, uintptr_t at)
{
	const struct mrrc_code_image *const image = file->image;
	const uintptr_t made = mrrc_patch_made();

	if (file->live)
		return file->live + (at - image->base) == made;
	return at - image->start >= MADE_BEFORE &&
	       image->end - at >= MADE_FROM &&
	       !memcmp((const void *) (at - MADE_BEFORE),
		       (const void *) (made - MADE_BEFORE),
		       MADE_BEFORE + MADE_FROM);
}

static bool site_bytes(const struct mrrc_prove_file *file, uintptr_t at)
{
	const struct mrrc_code_image *const image = file->image;

	return site_made(file, at) ||
	       (file->libc &&
		mrrc_code_glibc((const uint8_t *) at, at - image->start,
				image->end - at));
}

bool mrrc_prove_matters(struct mrrc_prove_file *file,
			const struct mrrc_code_copy *copy,
			const struct mrrc_code_site *site)
{
	file->image = &copy->image;
	file->live = mrrc_code_live(copy, copy->image.base);
	return site->number == MRRC_CODE_ANY ?
		       !site_bytes(file, site->at) :
		       mrrc_libc_hooks_matters(site->number) ||
			       !site_numbers(file);
}

bool mrrc_prove_is_libc(const struct mrrc_code_place *place)
{
	const uintptr_t libc = (uintptr_t) pthread_self;

	return libc >= place->lo && libc < place->hi;
}

enum mrrc_prove_verdict mrrc_prove_site(const struct mrrc_prove_file *file,
					const struct mrrc_code_site *site,
					char why[MRRC_TRUST_WHY])
{
	const char *const name = mrrc_prove_name(file->path);
	const uintptr_t at = site->at - file->image->base;
	const bool any = site->number == MRRC_CODE_ANY;
	const enum mrrc_prove_verdict may = mrrc_prove_may(name, site->number);

	const bool matters = !any && mrrc_libc_hooks_matters(site->number);

	if ((!any && !matters && site_numbers(file)) ||
	    (file->live && mrrc_libc_hooks_has(file->live + at)) ||
	    (any && site_bytes(file, site->at)))
		return MRRC_PROVE_HARMLESS;
	if (may != MRRC_PROVE_ASKS)
		return may;
	if (any)
		snprintf(why, MRRC_TRUST_WHY, "%.60s+0x%lx: %s", name,
			 (long) at, site->why);
	else
		snprintf(why, MRRC_TRUST_WHY, "%.60s+0x%lx: system call %ld %s",
			 name, (long) at, site->number,
			 matters ? "is not hooked" :
				   "of a library that is not known");
	return MRRC_PROVE_ASKS;
}
