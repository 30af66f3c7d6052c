/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/prove: libraries that may make system calls by themselves, as UCX's
 * libucm may. Each test runs in a new process.
 */
#include "config.h"
#include "test/sys/proof/prove_fixture.h"
#include "test/case.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "sys/proof/code_copy.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/hooks/patch.h"
#include "sys/proof/prove.h"
#include "sys/proof/prove_site.h"

#ifdef __x86_64__

/* ---- libraries that may make calls ---- */

TEST_CASE(site, setup, NULL);

TEST(test_may)
{
	static const struct {
		const char *name;
		long number;
		enum mrrc_prove_verdict verdict;
	} calls[] = {
		{ "libucm.so.0.0.0", SYS_brk, MRRC_PROVE_BRK },
		{ "libucm.so.0.0.0", SYS_munmap, MRRC_PROVE_ASKS },
		{ "libucm.so.0.0.0", MRRC_PATCH_ANY, MRRC_PROVE_ASKS },
		{ "liblibucm.so.0", SYS_brk, MRRC_PROVE_ASKS },
		{ "raw_brk.so", SYS_brk, MRRC_PROVE_ASKS },
		{ "liburing.so.2", SYS_munmap, MRRC_PROVE_RINGS },
		{ "liburing.so.2", SYS_io_uring_setup, MRRC_PROVE_RINGS },
		{ "liburing.so.2", SYS_mremap, MRRC_PROVE_ASKS },
		{ "liburing.so.2", MRRC_PATCH_ANY, MRRC_PROVE_ASKS },
		{ "liburing-ffi.so.2", SYS_munmap, MRRC_PROVE_ASKS },
	};
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		ck_assert_int_eq(mrrc_prove_may(calls[i].name, calls[i].number),
				 calls[i].verdict);
}

static void copy(const char *from, const char *to)
{
	FILE *in = fopen(from, "re"), *out = fopen(to, "we");
	int c;

	ck_assert(in && out);
	while ((c = getc(in)) != EOF)
		putc(c, out);
	fclose(in);
	ck_assert_int_eq(fclose(out), 0);
}

static char dir[] = "/tmp/mrrc_XXXXXX", path[64];

/* Loads a library that calls brk(2), by its own name, then as UCX's libucm. */
static void *load_ucm(void)
{
	void *lib = load("raw_brk");
	Dl_info info;

	never_trusted("raw_brk.so+0x");
	ck_assert(dladdr(dlsym(lib, "raw_brk"), &info));
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/libucm.so.0", dir);
	copy(info.dli_fname, path);
	dlclose(lib);
	ck_assert_msg(trusted(true), "%s", why);
	lib = dlopen(path, RTLD_NOW);
	ck_assert_ptr_nonnull(lib);
	return lib;
}

/* The library stays loaded until here, as its tables are read each time. */
static void unload_ucm(void)
{
	unlink(path);
	rmdir(dir);
}

static const char *const brks[] = { "brk", "sbrk" };

/* The brk of libucm may stay while libc's brk is not overwritten. */
EACH_TEST(test_ucm, brks)
{
	load_ucm();
	ck_assert_msg(trusted(true), "%s", why);
	overwrite_near(brks[_i], "shmdt");
	ck_assert(!mrrc_trusted());
	never_trusted("libucm.so.0: libc's brk was overwritten");
	unload_ucm();
}

static bool trusted_inside;

static void inside_dlclose(void)
{
	char *code = map(PROT_READ | PROT_WRITE);

	mprotect(code, page, PROT_READ | PROT_EXEC);
	munmap(code, page);
	trusted_inside = !mrrc_trusted() && trusted(true);
}

/* The proving thread does not wait for a thread that is inside dlclose(3). */
TEST(test_ucm_unload)
{
	void *const lib = load_ucm();
	void (**unload)(void) = dlsym(lib, "raw_unload");

	ck_assert_msg(trusted(true), "%s", why);
	*unload = inside_dlclose;
	dlclose(lib);
	unload_ucm();
	ck_assert_msg(trusted_inside, "%s", why);
}

/* Loads the library at @path_ by another name. */
static void *load_as(const char *path_, const char *name)
{
	void *lib;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	copy(path_, path);
	lib = dlopen(path, RTLD_NOW);
	ck_assert_msg(lib != NULL, "%s", dlerror());
	return lib;
}

static const struct {
	const char *name, *own, *known; /* why lookups ask; NULL: they do not */
} knowns[] = {
	{ "raw_getpid", "39 of a library that is not known", NULL },
	{ "raw_site", "11 is not hooked", "11 is not hooked" },
};

/*
 * A library is loaded by its own name, then by a known name, which permits some
 * numbers.
 */
EACH_TEST(test_known, knowns)
{
	void *lib = load(knowns[_i].name);
	char from[512];

	strcpy(from, ((struct link_map *) lib)->l_name);
	never_trusted(knowns[_i].own);
	dlclose(lib);
	ck_assert_msg(trusted(true), "%s", why);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	lib = load_as(from, "libgomp-1.so.1");
	if (knowns[_i].known)
		never_trusted(knowns[_i].known);
	else
		ck_assert_msg(trusted(true), "%s", why);
	dlclose(lib);
	unload_ucm();
}

/* liburing counts as harmless if libfabric alone is linked to it. */
TEST(test_rings)
{
	char rings[512], stub[512];
	void *lib, *user, *fabric;

	lib = load("liburing_stub");
	strcpy(stub, ((struct link_map *) lib)->l_name);
	dlclose(lib);
	lib = load("raw_rings");
	strcpy(rings, ((struct link_map *) lib)->l_name);
	dlclose(lib);
	ck_assert_msg(trusted(true), "%s", why);
	ck_assert_ptr_nonnull(mkdtemp(dir));

	lib = load_as(stub, "liburing.so.2");
	never_trusted("liburing.so.2: it is not there for libfabric alone");
	fabric = load_as(rings, "libfabric.so.1");
	ck_assert_msg(trusted(true), "%s", why);
	user = load_as(rings, "another.so.1");
	never_trusted("liburing.so.2: it is not there for libfabric alone");
	dlclose(user);
	ck_assert_msg(trusted(true), "%s", why);
	dlclose(fabric);
	dlclose(lib);
	unlink(path);
	snprintf(path, sizeof(path), "%s/libfabric.so.1", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/liburing.so.2", dir);
	unlink(path);
	rmdir(dir);
}

/* ---- what fi_mrrc_stat says of a file ---- */

#define SITES 4096

struct sites {
	const struct mrrc_code_image *image;
	struct {
		uintptr_t at;
		long number;
	} site[SITES];
	unsigned count;
};

static bool sites_add(void *arg, const struct mrrc_code_site *site)
{
	struct sites *sites = arg;

	ck_assert_uint_lt(sites->count, SITES);
	sites->site[sites->count].at = site->at - sites->image->base;
	sites->site[sites->count++].number = site->number;
	return true;
}

static void sites_look(struct sites *sites, const struct mrrc_code_image *image)
{
	struct mrrc_code_counts counts;

	sites->image = image;
	ck_assert_int_eq(mrrc_code_look(image, sites_add, sites, &counts), 0);
}

/* A library in memory has the same system calls as its file. */
static bool sites_same(void *arg, const struct mrrc_code_place *place)
{
	static struct sites here, there;
	struct mrrc_code_image image;
	struct mrrc_code_file file;
	struct mrrc_code_copy copy;
	unsigned *files = arg, i;

	if (place->name[0] != '/')
		return true;
	here.count = there.count = 0;
	ck_assert_int_eq(mrrc_code_copy(place, &copy), 0);
	sites_look(&here, &copy.image);
	mrrc_code_free(&copy);
	ck_assert_int_eq(mrrc_code_open(place->name, &file), 0);
	for (i = 0; mrrc_code_segment(&file, i, &image); i++)
		sites_look(&there, &image);
	mrrc_code_close(&file);
	ck_assert_uint_eq(here.count, there.count);
	for (i = 0; i < here.count; i++) {
		ck_assert_uint_eq(here.site[i].at, there.site[i].at);
		ck_assert_int_eq(here.site[i].number, there.site[i].number);
	}
	++*files;
	return true;
}

/* fi_mrrc_stat --code decides as the provider does. */
TEST(test_same)
{
	static const char *const names[] = { "libgomp.so.1", "liburing.so.2",
					     "libcrypto.so.3", "libstdc++.so.6",
					     "libunwind.so.8" };
	unsigned files = 0;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	ck_assert(mrrc_code_places(sites_same, &files));
	ck_assert_uint_ge(files, 3);
}

/* Code in a memfd makes lookups ask: who has the memfd can change the code. */
TEST(test_memfd)
{
	const int fd = memfd_create("code", MFD_CLOEXEC);
	const struct link_map *map;
	void *lib;

	map = lib = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
	ck_assert_ptr_nonnull(lib);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	copy(map->l_name, path);
	ck_assert_msg(trusted(true), "%s", why);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(lib != NULL, "%s", dlerror());
	never_trusted("code of a memfd");
	dlclose(lib);
	ck_assert_msg(trusted(true), "%s", why);
}

#endif /* __x86_64__ */
