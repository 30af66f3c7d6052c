/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/sites: libraries that unmap by system calls of their own are hooked, and
 * may be unloaded at any time. Each test in a process of its own.
 */
#include "config.h"
#include "prove_fixture.h"
#include "suites.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/libc_hooks.h"
#include "sys/libc_hooks_priv.h"
#include "sys/patch.h"
#include "sys/prove.h"
#include "sys/sites.h"

#ifdef __x86_64__

#define LOADS	100
#define PLACES	4 /* where it cannot be loaded again */
#define THREADS 4

typedef long (*raw_call)(void *ptr, size_t len);

static const char *const unmaps[] = {
	"raw_word",   "raw_across", "raw_first",
	"raw_second", "raw_third",  "raw_fourth",
};

#define UNMAPS (sizeof(unmaps) / sizeof(unmaps[0]))

static raw_call find(void *lib, const char *name)
{
	raw_call call = (raw_call) (uintptr_t) dlsym(lib, name);

	ck_assert_msg(call, "%s", dlerror());
	return call;
}

static uint64_t told(void)
{
	struct mrrc_libc_hooks_state state;

	mrrc_libc_hooks_state(&state);
	return state.told;
}

static bool surprised(void)
{
	struct mrrc_libc_hooks_state state;

	mrrc_mon_drain(mon);
	mrrc_libc_hooks_state(&state);
	return state.surprised;
}

/* Is that call of the library announced, so that the kernel reports nothing? */
static bool hooked(const char *name, void *lib)
{
	const uint64_t before = told();
	char *ptr;
	bool was;

	ptr = keep();
	ck_assert_int_eq(find(lib, name)(ptr, page), 0);
	was = told() == before + 1 && !surprised() && !kept.end;
	mrrc_mon_unsubscribe(mon, &kept_sub);
	return was;
}

static atomic_bool told_site;

static void tell(const char *text)
{
	if (strstr(text, "raw_site"))
		atomic_store(&told_site, true);
}

/* All of them are announced; errors are the kernel's. */
START_TEST(test_hooked)
{
	void *lib;
	size_t i;

	mrrc_prove_tell(tell);
	lib = load("raw_site");
	ck_assert_msg(trusted(true), "%s", why);
	/* what is being hooked is no reason to ask */
	ck_assert(!atomic_load(&told_site));
	for (i = 0; i < UNMAPS; i++) {
		ck_assert_msg(hooked(unmaps[i], lib), "%s", unmaps[i]);
		ck_assert_int_eq(find(lib, unmaps[i])((void *) 1, page),
				 -EINVAL);
	}
	ck_assert_uint_eq(mrrc_sites_count(), UNMAPS + 1);
	ck_assert_ptr_eq((void *) find(lib, "raw_brk")(NULL, 0), sbrk(0));
	ck_assert(mrrc_trusted());
}
END_TEST

/* The kernel keeps vector registers, so compilers rely on it. */
START_TEST(test_vectors)
{
	static const uint64_t in[2] = { 0x0123456789abcdef,
					0xfedcba9876543210 };
	uint64_t out[16][2] = { 0 };
	void *lib = load("raw_site");
	raw_call call = find(lib, "raw_word");
	long len = (long) page;
	long ret;
	int i;

	ck_assert_msg(trusted(true), "%s", why);
	ret = (long) keep();
	__asm__ volatile("movdqu %[in], %%xmm0\n"
			 "movdqa %%xmm0, %%xmm1\n"
			 "movdqa %%xmm0, %%xmm2\n"
			 "movdqa %%xmm0, %%xmm3\n"
			 "movdqa %%xmm0, %%xmm4\n"
			 "movdqa %%xmm0, %%xmm5\n"
			 "movdqa %%xmm0, %%xmm6\n"
			 "movdqa %%xmm0, %%xmm7\n"
			 "lea -128(%%rsp), %%rsp\n"
			 "call *%[call]\n"
			 "lea 128(%%rsp), %%rsp\n"
			 "movdqu %%xmm0, (%[out])\n"
			 "movdqu %%xmm1, 16(%[out])\n"
			 "movdqu %%xmm2, 32(%[out])\n"
			 "movdqu %%xmm3, 48(%[out])\n"
			 "movdqu %%xmm4, 64(%[out])\n"
			 "movdqu %%xmm5, 80(%[out])\n"
			 "movdqu %%xmm6, 96(%[out])\n"
			 "movdqu %%xmm7, 112(%[out])\n"
			 : "+D"(ret), "+S"(len)
			 : [in] "m"(in), [call] "r"(call), [out] "r"(out)
			 : "rax", "rcx", "r11", "memory", "xmm0", "xmm1",
			   "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
	for (i = 0; i < 8; i++)
		ck_assert_msg(!memcmp(out[i], in, sizeof(in)), "xmm%d", i);
	ck_assert(!surprised());
}
END_TEST

/* ---- it goes, and comes again ---- */

/* Where it was, or elsewhere: nothing of before counts, and nothing piles up. */
START_TEST(test_reload)
{
	void *lib, *block[PLACES] = { 0 };
	uintptr_t at, first = 0;
	unsigned same = 0;
	int i;

	for (i = 0; i < LOADS; i++) {
		lib = load("raw_site");
		at = (uintptr_t) find(lib, "raw_word") & ~(page - 1);
		first = first ? first : at;
		same += at == first;
		ck_assert_msg(trusted(true), "%d: %s", i, why);
		ck_assert_msg(hooked(unmaps[i % UNMAPS], lib), "%d", i);
		dlclose(lib);
		ck_assert_msg(trusted(true), "%d: %s", i, why);
		if (block[i % PLACES])
			munmap(block[i % PLACES], page);
		block[i % PLACES] = mmap((void *) at, page, PROT_NONE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	for (i = 0; i < PLACES; i++)
		munmap(block[i], page);
	load("raw_site");
	ck_assert_msg(trusted(true), "%s", why);
	ck_assert_uint_ge(same, 2);
	ck_assert_uint_lt(same, LOADS);
	ck_assert_uint_le(mrrc_sites_count(), 2 * (UNMAPS + 1));
}
END_TEST

/* Another library takes its place, and is not taken for it. */
START_TEST(test_other)
{
	void *lib;
	int i;

	for (i = 0; i < 5; i++) {
		lib = load("raw_site");
		ck_assert_msg(trusted(true), "%s", why);
		dlclose(lib);
		lib = load("raw_none");
		never_trusted("raw_none.so+0x");
		dlclose(lib);
		lib = load("raw_memory");
		never_trusted("raw_memory.so+0x");
		dlclose(lib);
	}
	ck_assert_msg(trusted(true), "%s", why);
}
END_TEST

/* What was hooked stays so while there are no monitors. */
START_TEST(test_again)
{
	void *lib = load("raw_site");

	ck_assert_msg(trusted(true), "%s", why);
	mrrc_mon_close(mon);
	ck_assert_int_eq(find(lib, "raw_across")(map(PROT_READ), page), 0);
	setup_alone();
	ck_assert(hooked("raw_across", lib));
	ck_assert_uint_eq(mrrc_sites_count(), UNMAPS + 1);
	/* or it goes meanwhile */
	mrrc_mon_close(mon);
	dlclose(lib);
	setup_alone();
}
END_TEST

static int site_child(void *lib)
{
	if (find(lib, "raw_word")(map(PROT_READ), page))
		return 1;
	if (mrrc_mon_open(NULL, NULL, &mon) || mrrc_mon_hook(mon, why))
		return 2;
	mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
	if (!trusted(true) || !hooked("raw_word", lib))
		return 3;
	dlclose(lib);
	return trusted(true) ? 0 : 4;
}

/* A child has its own monitor, and the parent's code. */
START_TEST(test_child)
{
	void *lib = load("raw_site");

	ck_assert_msg(trusted(true), "%s", why);
	expect_child(site_child(lib));
	ck_assert(hooked("raw_word", lib));
}
END_TEST

/* ---- threads ---- */

static atomic_bool stop;
static atomic_ulong rounds, wrong;
static void *loaded;

static void *run_main(void *arg)
{
	const raw_call call = find(loaded, unmaps[(size_t) arg % UNMAPS]);
	const raw_call to = find(loaded, "raw_brk");

	while (!atomic_load(&stop)) {
		if (call((void *) 1, page) != -EINVAL ||
		    call(map(PROT_READ), page) || to(NULL, 0) < (long) page)
			atomic_fetch_add(&wrong, 1);
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

/* It is hooked while threads are in it. */
START_TEST(test_running)
{
	pthread_t thread[THREADS];
	size_t i;
	int n;

	for (n = 0; n < 3; n++) {
		mrrc_mon_set_probe(mon, MRRC_PROBE_ALWAYS);
		loaded = load("raw_site");
		atomic_store(&stop, false);
		atomic_store(&rounds, 0);
		for (i = 0; i < THREADS; i++)
			pthread_create(&thread[i], NULL, run_main, (void *) i);
		while (atomic_load(&rounds) < 1000)
			usleep(100);
		mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
		ck_assert_msg(trusted(true), "%s", why);
		usleep(10000);
		atomic_store(&stop, true);
		for (i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		ck_assert_msg(trusted(true), "%s", why);
		ck_assert(hooked(unmaps[n % UNMAPS], loaded));
		ck_assert_uint_eq(atomic_load(&wrong), 0);
		dlclose(loaded);
	}
}
END_TEST

static void *churn_main(void *arg)
{
	unsigned seed = (unsigned) (size_t) arg, i;
	void *lib;

	for (i = 0; i < 300; i++) {
		lib = load("raw_site");
		if (find(lib, unmaps[i % UNMAPS])(map(PROT_READ), page))
			atomic_fetch_add(&wrong, 1);
		usleep(rand_r(&seed) % (i % 2 ? 200 : 20000));
		dlclose(lib);
		usleep(rand_r(&seed) % 200);
	}
	return NULL;
}

/* It is unloaded while it is looked at and hooked. */
START_TEST(test_unloading)
{
	pthread_t thread[2];
	size_t i;

	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, churn_main, (void *) i);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(atomic_load(&wrong), 0);
	ck_assert_msg(trusted(true), "%s", why);
	ck_assert(!surprised());
}
END_TEST

/* ---- code stays while it is hooked ---- */

static atomic_bool gone_from;

static void *close_main(void *arg)
{
	dlclose(arg);
	atomic_store(&gone_from, true);
	return NULL;
}

/*
 * A thread that unloads waits, and the hooking thread sees one that has begun.
 */
START_TEST(test_stop)
{
	void *lib = load("raw_site");
	volatile const uint8_t *code;
	pthread_t thread;
	uint64_t word;

	load("raw_memory");
	code = (const uint8_t *) (uintptr_t) find(lib, "raw_word");
	never_trusted("raw_memory");
	word = atomic_load(&mrrc_trust_word);
	ck_assert(mrrc_libc_hooks_stop(word));
	pthread_create(&thread, NULL, close_main, lib);
	usleep(50000);
	ck_assert(!atomic_load(&gone_from));
	ck_assert_uint_ne(code[0], 0xff);
	mrrc_libc_hooks_go();
	pthread_join(thread, NULL);
	ck_assert(!mrrc_libc_hooks_stop(word));
	word = atomic_load(&mrrc_trust_word);
	ck_assert(mrrc_trust_begin());
	ck_assert(!mrrc_libc_hooks_stop(word));
	mrrc_trust_end(0, 0);
	/* and no thread waits for what was not stopped */
	dlclose(load("raw_site"));
}
END_TEST

/* The thread that stopped others is not there in a child. */
START_TEST(test_stop_child)
{
	void *lib = load("raw_site");
	pid_t pid;

	load("raw_memory");
	never_trusted("raw_memory");
	ck_assert(mrrc_libc_hooks_stop(atomic_load(&mrrc_trust_word)));
	pid = syscall(SYS_fork);
	if (!pid) {
		dlclose(lib);
		_exit(0);
	}
	expect_ended(pid);
	mrrc_libc_hooks_go();
}
END_TEST

static void take_munmap(char *code)
{
	munmap(code, page);
}

static void take_mprotect(char *code)
{
	mprotect(code, page, PROT_READ);
}

static void take_mmap(char *code)
{
	mmap(code, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	     0);
}

static void take_madvise(char *code)
{
	madvise(code, page, MADV_DONTNEED);
}

static void take_mremap(char *code)
{
	mremap(map(PROT_READ), page, page, MREMAP_MAYMOVE | MREMAP_FIXED, code);
}

static void (*const takes[])(char *code) = {
	take_munmap, take_mprotect, take_mmap, take_madvise, take_mremap,
};

/* Each call that takes code away or changes it is seen. */
START_TEST(test_takes)
{
	char *code = map(PROT_READ | PROT_EXEC);
	char *data = map(PROT_READ);
	uint64_t word;

	never_trusted("code of no file");
	word = atomic_load(&mrrc_trust_word);
	mprotect(data, page, PROT_READ | PROT_WRITE);
	madvise(data, page, MADV_DONTNEED);
	munmap(data, page);
	ck_assert_uint_eq(atomic_load(&mrrc_trust_word), word);
	takes[_i](code);
	ck_assert_uint_ne(atomic_load(&mrrc_trust_word), word);
}
END_TEST

/* Until code that came is listed, all that is unmapped may be code. */
START_TEST(test_unlisted)
{
	char *data = map(PROT_READ);
	uint64_t word;

	load("raw_memory");
	never_trusted("raw_memory");
	mrrc_libc_hooks_brought();
	word = atomic_load(&mrrc_trust_word);
	munmap(data, page);
	ck_assert_uint_ne(atomic_load(&mrrc_trust_word), word);
}
END_TEST

/* Also what comes before trust is wanted. */
START_TEST(test_brought)
{
	ck_assert(!mrrc_libc_hooks_is_new());
	mrrc_mon_set_probe(mon, MRRC_PROBE_ALWAYS);
	mrrc_prove_stop();
	load("raw_memory");
	ck_assert(mrrc_libc_hooks_is_new());
}
END_TEST

/* Sanitizers make system calls where nothing of ours must run. */
START_TEST(test_sanitizer)
{
	Dl_info info;
	void *lib = load("raw_sanitizer");

	ck_assert(dladdr(dlsym(lib, "__sanitizer_set_report_path"), &info));
	ck_assert_ptr_nonnull(
		dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL));
	setup();
	load("raw_site");
	never_trusted("raw_site.so+0x");
	ck_assert_uint_eq(mrrc_sites_count(), 0);
}
END_TEST

#endif /* __x86_64__ */

TCase *prove_sanitizer_tcase(void)
{
	TCase *tcase = tcase_create("sanitizer");

#ifdef __x86_64__
	tcase_add_test(tcase, test_sanitizer);
#endif
	return tcase;
}

TCase *prove_site_tcase(void)
{
	TCase *tcase = tcase_create("site");

	tcase_add_checked_fixture(tcase, setup, NULL);
#ifdef __x86_64__
	tcase_add_test(tcase, test_hooked);
	tcase_add_test(tcase, test_vectors);
	tcase_add_test(tcase, test_reload);
	tcase_add_test(tcase, test_other);
	tcase_add_test(tcase, test_again);
	tcase_add_test(tcase, test_child);
	tcase_add_test(tcase, test_running);
	tcase_add_test(tcase, test_unloading);
	tcase_add_test(tcase, test_stop);
	tcase_add_test(tcase, test_stop_child);
	add_each(tcase, test_takes, takes);
	tcase_add_test(tcase, test_unlisted);
	tcase_add_test(tcase, test_brought);
#endif
	return tcase;
}
