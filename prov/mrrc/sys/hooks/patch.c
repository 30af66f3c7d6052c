/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Patches libc in place: the part that is the same on all architectures
 * (patch.h).
 */
#include "config.h"
#include "sys/hooks/patch.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "sys/base/mappings.h"
#include "sys/base/vm.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define FILLER 16		   /* bytes between two functions */
#define GROWTH ((size_t) 64 << 20) /* bytes left to the heap, or the stack */

/* One thread at a time writes; the proving thread reads. */
static struct {
	size_t home; /* bytes used of mrrc_patch_home() */
	struct {
		_Atomic(uint8_t *) at; /* near the code it serves, or NULL */
		size_t used;
	} page[MRRC_PATCH_PAGES];
} patch_stubs;

#if !defined(__x86_64__) && !defined(__aarch64__)
const size_t mrrc_patch_reach = 0;

uint8_t *mrrc_patch_search(const struct mrrc_patch_code *code, long number)
{
	return NULL;
}

int mrrc_patch_build(const struct mrrc_patch_code *code, uint8_t *site,
		     long number, uint8_t *stub, const uint8_t *near,
		     struct mrrc_patch *patch)
{
	return -EOPNOTSUPP;
}

long mrrc_patch_make(const struct mrrc_patch_call *call)
{
	return -ENOSYS;
}

uintptr_t mrrc_patch_made(void)
{
	return 0;
}
#endif

#ifndef __x86_64__
uint8_t *mrrc_patch_home(void)
{
	return NULL;
}

void mrrc_patch_lead(uint8_t *near, const uint8_t *stub)
{
}

uintptr_t mrrc_patch_word(const uint8_t *site, size_t before, long number)
{
	return 0;
}
#endif

/* ---- pages of stubs ---- */

/* The address of a page in [end, next), as close to @near as can be; or 0. */
static uintptr_t patch_fit(uintptr_t end, uintptr_t next, uintptr_t near,
			   size_t page)
{
	if (next < end || next - end < page)
		return 0;
	return near >= next ? next - page : end;
}

static size_t patch_distance(uintptr_t a, uintptr_t b)
{
	return a > b ? a - b : b - a;
}

struct patch_search {
	uintptr_t near;
	uintptr_t best;
	uintptr_t spare; /* @best where the heap or the stack may grow */
	uintptr_t end;	 /* end of the last mapping */
	bool heap;	 /* the last mapping is the heap */
};

static void patch_nearer(uintptr_t *best, uintptr_t fit, uintptr_t near)
{
	if (fit &&
	    (!*best || patch_distance(fit, near) < patch_distance(*best, near)))
		*best = fit;
}

/*
 * Compares a hole between mappings with the best one so far. The heap grows up,
 * and the stack down: so a hole beside the heap or the stack is used, at its
 * far end, only if no other hole is near enough.
 */
static bool patch_look(void *arg, const struct mrrc_mapping *mapping)
{
	struct patch_search *search = arg;
	const size_t page = mrrc_vm_page();
	const bool stack = !strcmp(mapping->name, "[stack]");

	if (!search->end)
		; /* memory below the first mapping is not for us */
	else if (!search->heap && !stack)
		patch_nearer(&search->best,
			     patch_fit(search->end, mapping->start,
				       search->near, page),
			     search->near);
	else if (search->heap != stack &&
		 mapping->start - search->end >= GROWTH)
		patch_nearer(&search->spare,
			     stack ? search->end : mapping->start - page,
			     search->near);
	search->end = mapping->end;
	search->heap = !strcmp(mapping->name, "[heap]");
	return !stack; /* above the stack addresses end */
}

static bool patch_reaches(uintptr_t at, uintptr_t near)
{
	return at && patch_distance(at, near) < mrrc_patch_reach;
}

/* A free page near @near. */
static uintptr_t patch_hole(uintptr_t near)
{
	struct patch_search search = { .near = near };

	mrrc_mappings_each(patch_look, &search);
	if (patch_reaches(search.best, near))
		return search.best;
	return patch_reaches(search.spare, near) ? search.spare : 0;
}

/*
 * Maps a page for stubs. The page becomes executable later, and can be written
 * to only while a stub is made.
 */
static int patch_page(uintptr_t near, uint8_t **out)
{
	const size_t page = mrrc_vm_page();
	uintptr_t at;
	int tries;
	void *got;

	/* Several tries: other threads map at the same time. */
	for (tries = 0; tries < 8; tries++) {
		at = patch_hole(near);
		if (!at)
			return -ENOMEM;
		got = mmap((void *) at, page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			   -1, 0);
		if (got == (void *) at) {
			*out = got;
			return 0;
		}
		if (got != MAP_FAILED)
			munmap(got, page);
	}
	return -ENOMEM;
}

static int patch_protect(void *at, size_t len, int prot)
{
	const size_t page = mrrc_vm_page();
	const uintptr_t start = (uintptr_t) at & ~(page - 1);
	const uintptr_t end = ((uintptr_t) at + len + page - 1) & ~(page - 1);

	return mprotect((void *) start, end - start, prot) ? -EACCES : 0;
}

/* ---- finding ---- */

/* Finds libc's own function, even if another library defines the same name. */
static int patch_function(const char *name, struct mrrc_patch_code *out)
{
	const ElfW(Sym) * sym;
	Dl_info info;
	void *libc, *code;
	void *extra = NULL;

	libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	if (!libc)
		return -EOPNOTSUPP;
	code = dlsym(libc, name);
	dlclose(libc);
	if (!code)
		return -ESRCH;
	if (!dladdr1(code, &info, &extra, RTLD_DL_SYMENT) || !extra)
		return -ENOENT;
	sym = extra;
	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || !sym->st_size ||
	    info.dli_saddr != code)
		return -ENOENT;
	*out = (struct mrrc_patch_code){
		.start = code,
		.len = sym->st_size + FILLER,
	};
	return 0;
}

static uint8_t *patch_page_of(const uint8_t *stub)
{
	return (uint8_t *) ((uintptr_t) stub & ~(mrrc_vm_page() - 1));
}

/* Room for a stub near @near. */
static int patch_stub(uintptr_t near, unsigned *page)
{
	uint8_t *at;
	unsigned i;
	int ret;

	for (i = 0; i < MRRC_PATCH_PAGES; i++) {
		at = patch_stubs.page[i].at;
		if (!at)
			break;
		if (patch_stubs.page[i].used + MRRC_PATCH_STUB <=
			    mrrc_vm_page() &&
		    patch_reaches((uintptr_t) at + patch_stubs.page[i].used,
				  near)) {
			*page = i;
			return 0;
		}
	}
	if (i == MRRC_PATCH_PAGES)
		return -ENOMEM;
	ret = patch_page(near, &at);
	if (ret)
		return ret;
	patch_stubs.page[i].used = 0;
	patch_stubs.page[i].at = at;
	*page = i;
	return 0;
}

static int patch_open(uint8_t *stub, bool on)
{
	return patch_protect(patch_page_of(stub), 1,
			     PROT_READ | PROT_EXEC | (on ? PROT_WRITE : 0));
}

/*
 * Writes the stub and, if the stub is not at @near, code at @near that leads to
 * the stub; fills in the patch.
 */
static int patch_write(const struct mrrc_patch_code *code, uint8_t *site,
		       long number, uint8_t *stub, uint8_t *near,
		       struct mrrc_patch *patch)
{
	int ret = -EACCES;

	if (!patch_open(stub, true) && !patch_open(near, true)) {
		ret = mrrc_patch_build(code, site, number, stub, near, patch);
		if (near != stub)
			mrrc_patch_lead(near, stub);
	}
	__builtin___clear_cache((char *) stub, (char *) stub + MRRC_PATCH_STUB);
	if (patch_open(stub, false) || patch_open(near, false))
		ret = -EACCES;
	return ret;
}

/* Room for a stub in our own page, or NULL. */
static uint8_t *patch_home(void)
{
	uint8_t *const home = mrrc_patch_home();

	return home && patch_stubs.home < MRRC_PATCH_HOME ?
		       home + patch_stubs.home :
		       NULL;
}

int mrrc_patch_site(const struct mrrc_patch_code *code, uint8_t *site,
		    long number, struct mrrc_patch *patch)
{
	uint8_t *const home = patch_home();
	uint8_t *near = home;
	unsigned page = 0;
	int ret = 0;

	*patch = (struct mrrc_patch){ 0 };
	if (!patch_reaches((uintptr_t) home, (uintptr_t) site)) {
		ret = patch_stub((uintptr_t) site, &page);
		if (ret)
			return ret;
		near = patch_stubs.page[page].at + patch_stubs.page[page].used;
	}
	ret = patch_write(code, site, number, home ? home : near, near, patch);
	if (ret) {
		*patch = (struct mrrc_patch){ 0 };
		return ret;
	}
	if (home)
		patch_stubs.home += MRRC_PATCH_STUB;
	if (near != home)
		patch_stubs.page[page].used += MRRC_PATCH_STUB;
	patch->stub = near;
	return 0;
}

int mrrc_patch_find(const char *name, long number, struct mrrc_patch *patch)
{
	struct mrrc_patch_code function;
	uint8_t *site;
	int ret;

	*patch = (struct mrrc_patch){ 0 };
	if (!mrrc_patch_reach)
		return -EOPNOTSUPP;
	ret = patch_function(name, &function);
	if (ret)
		return ret;
	site = mrrc_patch_search(&function, number);
	return site ? mrrc_patch_site(&function, site, number, patch) : -ENOENT;
}

static bool patch_is_stub(uintptr_t addr)
{
	unsigned i;

	for (i = 0; i < MRRC_PATCH_PAGES; i++) {
		if (patch_stubs.page[i].at &&
		    addr - (uintptr_t) patch_stubs.page[i].at < mrrc_vm_page())
			return true;
	}
	return false;
}

bool mrrc_patch_stubs(uintptr_t start, uintptr_t end)
{
	while (start < end && patch_is_stub(start))
		start += mrrc_vm_page();
	return start >= end;
}

/* ---- words ---- */

/* All bits of the bytes that the jump changes. */
static uint64_t patch_bytes(const struct mrrc_patch *patch)
{
	const uint64_t change = patch->before ^ patch->after;
	uint64_t mask, bytes = 0;

	for (mask = 0xff; mask; mask <<= 8)
		bytes |= change & mask ? mask : 0;
	return bytes;
}

/*
 * patch_first(): the bit at which the first byte in memory that the jump
 * changes begins; patch_rest(): all bits of the other bytes that the jump
 * changes.
 */
static unsigned patch_first(const struct mrrc_patch *patch)
{
	return (unsigned) __builtin_ctzll(patch_bytes(patch));
}

static uint64_t patch_rest(const struct mrrc_patch *patch)
{
	return patch_bytes(patch) & ~(UINT64_C(0xff) << patch_first(patch));
}

static uint64_t patch_seen(const struct mrrc_patch *patch, uint64_t now)
{
	const uint64_t bytes = patch_bytes(patch);
	const uint64_t probe = UINT64_MAX / 0xff * MRRC_PATCH_PROBE;
	uint64_t mask;

	for (mask = 0xff; mask; mask <<= 8) {
		if (!(bytes & mask) && (!((now ^ probe) & mask) ||
					!((patch->after ^ probe) & mask)))
			now = (now & ~mask) | (patch->after & mask);
	}
	return now;
}

/*
 * Is the jump whole, except for its first byte, which is a probe's or the
 * file's?
 */
static bool patch_is_cut(const struct mrrc_patch *patch, uint64_t now)
{
	const unsigned first = patch_first(patch);
	const uint8_t byte = (uint8_t) (now >> first);

	return !((now ^ patch->after) & patch_rest(patch)) &&
	       (byte == MRRC_PATCH_PROBE ||
		byte == (uint8_t) (patch->before >> first));
}

/* ---- patching ---- */

/* The code stays executable throughout: other threads may run it. */
static int patch_writable(const struct mrrc_patch *patch, bool on)
{
	const int prot = PROT_READ | PROT_EXEC | (on ? PROT_WRITE : 0);
	int ret;

	ret = patch_protect(patch->word, sizeof(*patch->word), prot);
	if (!ret && patch->filler)
		ret = patch_protect(patch->filler, sizeof(patch->filling),
				    prot);
	return ret;
}

/* Does the filler have these bytes, if the patch has a filler? */
static bool patch_fills(const struct mrrc_patch *patch,
			const uint8_t bytes[MRRC_PATCH_FILLER])
{
	return !patch->filler ||
	       !memcmp(patch->filler, bytes, MRRC_PATCH_FILLER);
}

static int patch_store(const struct mrrc_patch *patch, uint64_t from,
		       uint64_t to)
{
	char *const at = (char *) patch->word;
	const uint64_t bytes = patch_bytes(patch);
	uint64_t now = __atomic_load_n(patch->word, __ATOMIC_RELAXED);
	int ret;

	/* another copy of the provider chooses the same filler */
	if (patch_seen(patch, now) != from ||
	    (!patch_fills(patch, patch->filling) &&
	     !patch_fills(patch, patch->filled)))
		return -EBUSY;
	ret = patch_writable(patch, true);
	if (ret) {
		patch_writable(patch, false);
		return ret;
	}
	/*
	 * Taking the patch back leaves the jump in the filler, as a thread may
	 * be executing this jump (patch_clean.c).
	 */
	if (!patch_fills(patch, patch->filling))
		memcpy(patch->filler, patch->filling, sizeof(patch->filling));
	to = (now & ~bytes) | (to & bytes);
	if (!__atomic_compare_exchange_n(patch->word, &now, to, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		ret = -EBUSY;
	patch_writable(patch, false);
	__builtin___clear_cache(at, at + sizeof(*patch->word));
	return ret;
}

void mrrc_patch_unfill(const struct mrrc_patch *patch)
{
	char *const at = (char *) patch->filler;

	if (memcmp(at, patch->filling, sizeof(patch->filling)) ||
	    patch_protect(at, sizeof(patch->filled),
			  PROT_READ | PROT_WRITE | PROT_EXEC))
		return;
	memcpy(at, patch->filled, sizeof(patch->filled));
	patch_protect(at, sizeof(patch->filled), PROT_READ | PROT_EXEC);
	__builtin___clear_cache(at, at + sizeof(patch->filled));
}

int mrrc_patch_on(const struct mrrc_patch *patch)
{
	return mrrc_patch_is_on(patch) ?
		       0 :
		       patch_store(patch, patch->before, patch->after);
}

int mrrc_patch_off(const struct mrrc_patch *patch)
{
	return patch_store(patch, patch->after, patch->before);
}

uint64_t mrrc_patch_now(const struct mrrc_patch *patch)
{
	const uint64_t now = __atomic_load_n(patch->word, __ATOMIC_RELAXED);

	return now == patch->after ? now : patch_seen(patch, now);
}

bool mrrc_patch_is_on(const struct mrrc_patch *patch)
{
	return mrrc_patch_now(patch) == patch->after &&
	       patch_fills(patch, patch->filling);
}

/* ---- probes ---- */

/*
 * Reads or writes a file of /proc, by raw system calls: hooks of libc's calls
 * use this function.
 */
static long patch_proc(const char *name, long how, long number, void *bytes,
		       size_t len, uintptr_t at)
{
	struct mrrc_patch_call call = {
		.number = SYS_openat,
		.arg = { AT_FDCWD, (long) name, how | O_CLOEXEC },
	};
	const long fd = mrrc_patch_make(&call);
	long ret;

	if (fd < 0)
		return fd;
	call = (struct mrrc_patch_call){
		.number = number,
		.arg = { fd, (long) bytes, (long) len, (long) at },
	};
	ret = mrrc_patch_make(&call);
	call = (struct mrrc_patch_call){ .number = SYS_close, .arg = { fd } };
	mrrc_patch_make(&call);
	return ret;
}

/*
 * Is there a debugger? A debugger that removes a breakpoint writes the byte
 * that it found when it placed the breakpoint, not the file's byte.
 */
static bool patch_debugged(void)
{
	static const char none[] = "\nTracerPid:\t0\n";
	char text[512];
	const long len = patch_proc("/proc/self/status", O_RDONLY, SYS_pread64,
				    text, sizeof(text), 0);

	return len <= 0 || !memmem(text, (size_t) len, none, sizeof(none) - 1);
}

void mrrc_patch_yield(const struct mrrc_patch *patch)
{
	const uint64_t rest = patch_rest(patch);
	uint8_t *const at = (uint8_t *) patch->word;
	uint64_t before = patch->before;
	size_t from;

	if (!rest || !patch_is_cut(patch, mrrc_patch_now(patch)) ||
	    patch_debugged())
		return;
	/* this write never happens while the kernel places or ends a probe */
	from = (size_t) __builtin_ctzll(rest) / 8;
	patch_proc("/proc/self/mem", O_RDWR, SYS_pwrite64,
		   (uint8_t *) &before + from,
		   sizeof(rest) - (size_t) __builtin_clzll(rest) / 8 - from,
		   (uintptr_t) (at + from));
}

/*
 * The bytes of the copy for the @len bytes at @at, if the copy has all of them.
 */
static uint8_t *patch_in(uint8_t *copy, uintptr_t start, uintptr_t end,
			 const void *at, size_t len)
{
	return (uintptr_t) at >= start && (uintptr_t) at + len <= end ?
		       copy + ((uintptr_t) at - start) :
		       NULL;
}

/*
 * A byte of our patch may have the value of a probe's instruction: then the
 * copy has the file's byte in its place. Puts these bytes of our patch into the
 * copy.
 */
static void patch_unprobe(uint8_t *copy, const void *patched, const void *was,
			  size_t len)
{
	const uint8_t *const ours = patched, *const file = was;
	size_t i;

	for (i = 0; i < len; i++) {
		if (ours[i] == MRRC_PATCH_PROBE && copy[i] == file[i])
			copy[i] = ours[i];
	}
}

bool mrrc_patch_undo(const struct mrrc_patch *patch, uint8_t *copy,
		     uintptr_t start, uintptr_t end)
{
	uint8_t *word =
		patch_in(copy, start, end, patch->word, sizeof(*patch->word));
	uint8_t *filler = patch_in(copy, start, end, patch->filler,
				   sizeof(patch->filling));
	uint8_t filling[MRRC_PATCH_FILLER];
	const uint64_t bytes = word ? patch_bytes(patch) : 0;
	uint64_t now = patch->before;
	bool on;

	if (filler) {
		memcpy(filling, filler, sizeof(filling));
		patch_unprobe(filling, patch->filling, patch->filled,
			      sizeof(filling));
		if (memcmp(filling, patch->filling, sizeof(filling)))
			filler = NULL;
	}
	if (word) {
		memcpy(&now, word, sizeof(now));
		patch_unprobe((uint8_t *) &now, &patch->after, &patch->before,
			      sizeof(now));
	}
	on = word && patch_seen(patch, now) == patch->after &&
	     (!patch->filler || filler);
	if (on || (word && patch_is_cut(patch, now))) {
		now = (now & ~bytes) | (patch->before & bytes);
		memcpy(word, &now, sizeof(now));
	}
	if (filler)
		memcpy(filler, patch->filled, sizeof(patch->filled));
	return on;
}

void mrrc_patch_hide(uint8_t *copy, uintptr_t start, uintptr_t end)
{
	uint8_t *const home =
		patch_in(copy, start, end, mrrc_patch_home(), MRRC_PATCH_HOME);

	if (home)
		memset(home, 0xcc, MRRC_PATCH_HOME);
}

static bool patch_overlaps(uintptr_t a, size_t a_len, uintptr_t b, size_t b_len)
{
	return a < b + b_len && b < a + a_len;
}

bool mrrc_patch_uses(const struct mrrc_patch *patch, uintptr_t start,
		     size_t len)
{
	return (patch->word &&
		patch_overlaps(start, len, (uintptr_t) patch->word,
			       sizeof(*patch->word))) ||
	       (patch->filler &&
		patch_overlaps(start, len, (uintptr_t) patch->filler,
			       sizeof(patch->filling)));
}
