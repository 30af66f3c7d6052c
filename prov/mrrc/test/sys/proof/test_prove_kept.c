/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/code_kept: the sites of code are known again without decoding, as
 * long as file and memory are the same.
 */
#include "config.h"
#include "test/sys/proof/prove_fixture.h"
#include "test/case.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "sys/proof/code_kept.h"
#include "sys/hooks/libc_hooks.h"

#define ENTRY 256 /* size of a library's entry in bytes */

static char dir[] = "/tmp/mrrc_kept_XXXXXX";
static char path[64], fifo[64];
static atomic_bool loads, looked;
static bool image; /* files have times as in an image */

int __real_stat(const char *file, struct stat *st);
int __wrap_stat(const char *file, struct stat *st);

/* The machine that runs the tests may be made from an image. */
int __wrap_stat(const char *file, struct stat *st)
{
	const int ret = __real_stat(file, st);

	if (image)
		st->st_mtim = st->st_ctim = (struct timespec){ .tv_sec = 1 };
	else if (!ret && !st->st_ctim.tv_nsec)
		st->st_ctim.tv_nsec = 1;
	return ret;
}

/* The results of a look at a library. */
struct look {
	uintptr_t in;
	unsigned decoded; /* sites that were examined */
	unsigned sites;	  /* sites that were reported */
	long number;	  /* number of the last site */
};

static bool matters(void *arg, const struct mrrc_code_copy *copy,
		    const struct mrrc_code_site *site)
{
	struct look *look = arg;

	look->decoded++;
	return mrrc_libc_hooks_matters(site->number);
}

static bool each(void *arg, const struct mrrc_code_copy *copy,
		 const struct mrrc_code_site *site)
{
	struct look *look = arg;

	look->sites++;
	look->number = site->number;
	return true;
}

static bool found(void *arg, const struct mrrc_code_place *place)
{
	struct look *look = arg;

	if (look->in < place->start || look->in >= place->end)
		return true;
	ck_assert_int_eq(mrrc_code_sites(place, matters, each, look), 0);
	return false;
}

/* Looks as the next process would, with the findings in the file. */
static struct look look_at(const void *in)
{
	struct look look = { .in = (uintptr_t) in };

	mrrc_code_kept_open();
	mrrc_code_places(found, &look);
	mrrc_code_kept_close();
	return look;
}

static off_t size(void)
{
	struct stat st = { 0 };

	stat(path, &st);
	return st.st_size;
}

static void kept_setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/code", dir);
	mrrc_code_kept_at(path);
}

static void kept_teardown(void)
{
	unlink(path);
	snprintf(path, sizeof(path), "%s/lib.so", dir);
	unlink(path);
	rmdir(dir);
}

TEST_CASE(kept, kept_setup, kept_teardown);

/* Known code is not decoded again, and its numbers are the same. */
TEST(test_known)
{
	const void *in = dlsym(load("raw_site"), "raw_munmap");
	struct look look;
	struct stat st;

	ck_assert_ptr_nonnull(in);
	look = look_at(in);
	ck_assert_uint_gt(look.decoded, 0);
	ck_assert_uint_eq(look.sites, 1);
	ck_assert_int_eq(size(), ENTRY);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	look = look_at(in);
	ck_assert_uint_eq(look.decoded, 0);
	ck_assert_uint_eq(look.sites, 1);
	ck_assert_int_eq(look.number, SYS_munmap);
	/* Another process may have cut the file off. */
	ck_assert_int_eq(truncate(path, ENTRY + 1), 0);
	look = look_at(in);
	ck_assert_uint_gt(look.decoded, 0);
	ck_assert_int_eq(size() % ENTRY, 0);
}

/* Findings that another user may have written do not count. */
LOOP_TEST(test_others, 0, 2)
{
	const void *in = dlsym(load("raw_site"), "raw_munmap");
	struct look look = look_at(in);

	ck_assert_int_eq(chmod(path, _i ? 0606 : 0660), 0);
	ck_assert_int_eq(truncate(path, 0), 0);
	look = look_at(in);
	ck_assert_uint_eq(look.sites, 1);
	ck_assert_int_eq(size(), 0);
}

/* All versions of a file of an image may have the same times. */
TEST(test_image)
{
	const void *in = dlsym(load("raw_site"), "raw_munmap");

	image = true;
	ck_assert_uint_gt(look_at(in).decoded, 0);
	ck_assert_int_eq(size(), 0);
	ck_assert_uint_gt(look_at(in).decoded, 0);
}

static void *loader_main(void *arg)
{
	/* dlopen(3) waits for the FIFO's writer with the loader's lock held */
	dlopen(fifo, RTLD_NOW);
	return NULL;
}

static void *look_main(void *in)
{
	while (!loads)
		usleep(100);
	look_at(in);
	looked = true;
	return NULL;
}

/* A look at code waits for no thread that is inside dlopen(3). */
TEST(test_loader)
{
	void *const in = dlsym(load("raw_site"), "raw_munmap");
	pthread_t loader, looks;
	int fd = -1;
	bool in_time;

	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	loads = false;
	looked = false;
	/* first, as glibc 2.36 starts no thread during dlopen(3) */
	looks = thread_start(look_main, in);
	loader = thread_start(loader_main, NULL);
	/* the FIFO has a reader when the thread is inside dlopen(3) */
	ck_assert(comes(fd >= 0 ||
			(fd = open(fifo, O_WRONLY | O_NONBLOCK)) >= 0));
	loads = true;
	in_time = comes(atomic_load(&looked));
	close(fd);
	pthread_join(loader, NULL);
	pthread_join(looks, NULL);
	unlink(fifo);
	ck_assert(in_time);
}

#ifdef __x86_64__
/* Code that was changed in memory differs from that of its file. */
TEST(test_changed)
{
	static const uint8_t unmap[] = {
		0xb8, 0x0b, 0, 0, 0, 0x0f, 0x05, 0xc3
	};
	uint8_t *at, *code;
	struct look look;

	at = dlsym(dlopen("libresolv.so.2", RTLD_NOW), "ns_get16");
	ck_assert_ptr_nonnull(at);
	look = look_at(at);
	ck_assert_uint_eq(look.sites, 0);
	ck_assert_int_eq(size(), ENTRY);
	code = (uint8_t *) ((uintptr_t) at & ~(page - 1));
	ck_assert_int_eq(mprotect(code, 2 * page,
				  PROT_READ | PROT_WRITE | PROT_EXEC),
			 0);
	memcpy(at, unmap, sizeof(unmap));
	ck_assert_int_eq(mprotect(code, 2 * page, PROT_READ | PROT_EXEC), 0);
	look = look_at(at);
	ck_assert_uint_gt(look.sites, 0);
	/* The changed bytes are known now, but no other bytes. */
	ck_assert_int_gt(size(), ENTRY);
	ck_assert_uint_eq(look_at(at).decoded, 0);
	ck_assert_int_eq(mprotect(code, 2 * page,
				  PROT_READ | PROT_WRITE | PROT_EXEC),
			 0);
	at[1]++;
	ck_assert_int_eq(mprotect(code, 2 * page, PROT_READ | PROT_EXEC), 0);
	ck_assert_uint_gt(look_at(at).decoded, 0);
}
#endif

static void copy_file(const char *from, const char *to)
{
	static char bytes[4 << 20];
	const int in = open(from, O_RDONLY);
	const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	const ssize_t len = read(in, bytes, sizeof(bytes));

	ck_assert_int_gt(len, 0);
	ck_assert_int_eq(write(out, bytes, (size_t) len), len);
	close(in);
	close(out);
}

/* A file that was changed since counts as another file. */
TEST(test_changed_file)
{
	const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	char lib[64];
	Dl_info info;
	void *handle;
	off_t before;
	int i;

	handle = dlopen("libresolv.so.2", RTLD_NOW);
	ck_assert(dladdr(dlsym(handle, "ns_get16"), &info));
	snprintf(lib, sizeof(lib), "%s/lib.so", dir);
	copy_file(info.dli_fname, lib);
	dlclose(handle);
	for (i = 0; i < 3; i++) {
		before = size();
		handle = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
		ck_assert_msg(handle != NULL, "%s", dlerror());
		look_at(dlsym(handle, "ns_get16"));
		ck_assert_int_eq(size() > before, i != 1);
		dlclose(handle);
		if (i == 1)
			ck_assert_int_eq(utimensat(AT_FDCWD, lib, times, 0), 0);
	}
}

/* The findings for all code of this process are read from the file. */
TEST(test_process)
{
	off_t before;

	open_hooked(MRRC_PROBE_PROVEN);
	ck_assert(comes(mrrc_trusted()));
	before = size();
	ck_assert_int_gt(before, ENTRY);
	mrrc_mon_close(mon);
	open_hooked(MRRC_PROBE_PROVEN);
	ck_assert(comes(mrrc_trusted()));
	ck_assert_int_eq(size(), before);
}
