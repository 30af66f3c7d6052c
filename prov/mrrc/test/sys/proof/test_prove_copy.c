/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/code_copy: a copy of code equals the code in memory; code whose
 * file was removed has no copy.
 */
#include "config.h"
#include "test/sys/proof/prove_fixture.h"
#include "test/case.h"

#include <dlfcn.h>
#include <fcntl.h>

#include "sys/proof/code_copy.h"

static char dir[] = "/tmp/mrrc_copy_XXXXXX";
static char lib[64], other[80];
static uint8_t *at;	 /* address of a function of the library */
static uintptr_t offset; /* the function's offset in its file */
static int copied;	 /* result of the copy */

static bool alike(void *arg, const struct mrrc_code_place *place)
{
	struct mrrc_code_copy copy;

	if ((uintptr_t) at < place->start || (uintptr_t) at >= place->end)
		return true;
	offset = place->offset + ((uintptr_t) at - place->start);
	copied = mrrc_code_copy(place, &copy);
	if (copied)
		return false;
	ck_assert_mem_eq((const void *) copy.image.start,
			 (const void *) place->start,
			 place->end - place->start);
	mrrc_code_free(&copy);
	return false;
}

static void copy_lib(const char *from, const char *to, bool changed)
{
	static uint8_t bytes[4 << 20];
	const int in = open(from, O_RDONLY);
	const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	const ssize_t len = read(in, bytes, sizeof(bytes));

	ck_assert_int_gt(len, 0);
	if (changed)
		bytes[offset]++;
	ck_assert_int_eq(write(out, bytes, (size_t) len), len);
	close(in);
	close(out);
}

static void copy_setup(void)
{
	Dl_info info;
	void *handle;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(lib, sizeof(lib), "%s/lib.so", dir);
	snprintf(other, sizeof(other), "%s (deleted)", lib);
	handle = dlopen("libresolv.so.2", RTLD_NOW);
	ck_assert(dladdr(dlsym(handle, "ns_get16"), &info));
	copy_lib(info.dli_fname, lib, false);
	dlclose(handle);
	handle = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(handle != NULL, "%s", dlerror());
	at = dlsym(handle, "ns_get16");
	mrrc_code_places(alike, NULL);
	ck_assert_int_eq(copied, 0);
}

static void copy_teardown(void)
{
	unlink(lib);
	unlink(other);
	rmdir(dir);
}

static void change(const uint8_t *bytes, size_t len)
{
	void *code = (void *) ((uintptr_t) at & ~(page - 1));

	ck_assert_int_eq(mprotect(code, page, PROT_READ | PROT_WRITE), 0);
	memcpy(at, bytes, len);
	ck_assert_int_eq(mprotect(code, page, PROT_READ | PROT_EXEC), 0);
	mrrc_code_places(alike, NULL);
	ck_assert_int_eq(copied, 0);
}

TEST_CASE(copy, copy_setup, copy_teardown);

TEST(test_changed)
{
	const uint8_t byte = (uint8_t) (at[0] + 1);

	change(&byte, 1);
}

/* A jump that another patcher wrote looks like a uprobe, but is none. */
TEST(test_like_probe)
{
	static const uint8_t jump[] = { 0xe9, 0xcc, 0xcc, 0xcc, 0x01 };

	change(jump, sizeof(jump));
}

/* A mapped library was removed, and another file has its path. */
TEST(test_replaced)
{
	copy_lib(lib, other, true);
	ck_assert_int_eq(unlink(lib), 0);
	mrrc_code_places(alike, NULL);
	ck_assert_int_eq(copied, -ESTALE);
}

TEST(test_deleted)
{
	ck_assert_int_eq(unlink(lib), 0);
	mrrc_code_places(alike, NULL);
	ck_assert_int_eq(copied, -ESTALE);
}
