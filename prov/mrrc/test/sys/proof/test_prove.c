/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/prove: trust is given when all code is proven, and has ended when a
 * call that brings code returns. Each test runs in a process of its own.
 */
#include "config.h"
#include "test/sys/proof/prove_fixture.h"
#include "test/case.h"

#include <dlfcn.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "sys/proof/code_copy.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/base/mappings.h"
#include "sys/monitor/mon.h"
#include "sys/hooks/patch.h"
#include "sys/proof/prove.h"
#include "sys/base/vm.h"

#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

struct mrrc_mon *mon;
size_t page;
char why[MRRC_TRUST_WHY];

/* Acts as if lookups had asked often; returns whether trust is given. */
static bool is_trusted(void)
{
	mrrc_prove_rent(UINT_MAX);
	return mrrc_trusted();
}

/* Waits for as long as a busy machine may take. */
bool trusted(bool wanted)
{
	const bool is = comes(is_trusted() == wanted) == wanted;

	mrrc_prove_why(why);
	return is;
}

static bool said(const char *text)
{
	mrrc_prove_rent(UINT_MAX);
	mrrc_prove_why(why);
	return strstr(why, text);
}

/* Checks that trust is not given, now or after a look at the code. */
void never_trusted(const char *text)
{
	ck_assert(!mrrc_trusted());
	ck_assert(!mrrc_mon_told(mon));
	ck_assert_msg(comes(said(text)), "said \"%s\", not \"%s\"", why, text);
	usleep(20000);
	ck_assert(!mrrc_trusted());
}

static void *idle_main(void *arg)
{
	pause();
	return arg;
}

void open_hooked(enum mrrc_mon_probe probe)
{
	ck_assert_int_eq(mrrc_mon_open(NULL, NULL, &mon), 0);
	ck_assert_int_eq(mrrc_mon_hook(mon, NULL), 0);
	mrrc_mon_set_probe(mon, probe);
}

void setup_alone(void)
{
	open_hooked(MRRC_PROBE_AUTO);
	ck_assert_msg(trusted(true), "%s", why);
}

void setup(void)
{
	pthread_t thread;

	/* Without another thread, none could have unmapped memory. */
	ck_assert_int_eq(pthread_create(&thread, NULL, idle_main, NULL), 0);
	setup_alone();
}

/* Loads a library next to this program. */
void *load(const char *name)
{
	char path[512];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);
	void *lib;

	ck_assert_int_gt(len, 0);
	path[len] = '\0';
	snprintf(strrchr(path, '/'), 64, "/.libs/%s.so", name);
	lib = dlopen(path, RTLD_NOW);
	ck_assert_msg(lib != NULL, "%s", dlerror());
	return lib;
}

char *map(int prot)
{
	char *ptr = mmap(NULL, page, prot, ANON, -1, 0);

	ck_assert_ptr_ne(ptr, MAP_FAILED);
	return ptr;
}

/* ---- a cache of one page ---- */

struct mrrc_range kept;

static struct mrrc_range kept_gone(struct mrrc_mon_sub *sub, uintptr_t start,
				   uintptr_t end)
{
	const struct mrrc_range was = kept;

	if (start >= kept.end || end <= kept.start)
		return (struct mrrc_range){ 0 };
	kept = (struct mrrc_range){ 0 };
	return was;
}

static struct mrrc_range kept_cover(struct mrrc_mon_sub *sub, uintptr_t pos)
{
	return pos < kept.end ? kept : (struct mrrc_range){ 0 };
}

static struct mrrc_lock kept_lock;

struct mrrc_mon_sub kept_sub = {
	.lock = &kept_lock,
	.notify = kept_gone,
	.cover = kept_cover,
};

char *keep(void)
{
	char *ptr = map(PROT_READ | PROT_WRITE);
	uint64_t token;

	mrrc_lock_init(&kept_lock, MRRC_RANK_CACHE);
	mrrc_mon_subscribe(mon, &kept_sub);
	ck_assert_int_eq(mrrc_mon_watch(mon, (uintptr_t) ptr, page, &token), 0);
	kept = (struct mrrc_range){ (uintptr_t) ptr, (uintptr_t) ptr + page };
	return ptr;
}

TEST_CASE(prove, setup, NULL);

TEST(test_given)
{
	ck_assert_str_eq(why, "");
	ck_assert(mrrc_mon_told(mon));
	/* The functions of libc and the loader were hooked at the start. */
}

/* ---- code that comes ---- */

/* While new code is being proven, lookups ask; then they no longer do. */
TEST(test_library)
{
	void *lib = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);

	ck_assert_ptr_nonnull(lib);
	ck_assert_msg(trusted(true), "%s", why);
	dlclose(lib);
	ck_assert_msg(trusted(true), "%s", why);
}

static const struct {
	const char *name, *why;
} raws[] = {
#ifdef __x86_64__
	{ "raw_memory", "comes from memory" },
	{ "raw_any", "an argument of the function" },
	{ "raw_site", "system call 11 is not hooked" },
	{ "raw_getpid", "system call 39 of a library that is not known" },
#else
	{ "raw_memory", "not a constant" },
	{ "raw_any", "not a constant" },
	{ "raw_site", "system call 215 is not hooked" },
	{ "raw_getpid", "system call 172 of a library that is not known" },
#endif
	{ "raw_future", "system call 4095 is not hooked" },
};

/* A library that unmaps by itself makes lookups ask until it is unloaded. */
EACH_TEST(test_raw_library, raws)
{
	void *lib = load(raws[_i].name);

	never_trusted(raws[_i].why);
	dlclose(lib);
	ck_assert_msg(trusted(true), "%s", why);
}

static void code_mmap(char **ptr)
{
	*ptr = map(PROT_READ | PROT_EXEC);
}

static void code_mprotect(char **ptr)
{
	*ptr = map(PROT_READ | PROT_WRITE);
	ck_assert(mrrc_trusted());
	mprotect(*ptr, page, PROT_READ | PROT_EXEC);
}

static void code_writable(char **ptr)
{
	*ptr = map(PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void code_syscall(char **ptr)
{
	*ptr = (char *) syscall(SYS_mmap, NULL, page, PROT_READ | PROT_EXEC,
				ANON, -1, 0L);
}

static void code_shared(char **ptr)
{
	const int fd = memfd_create("code", MFD_CLOEXEC);

	ck_assert_int_eq(ftruncate(fd, (off_t) page), 0);
	*ptr = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	close(fd);
}

static void code_shmat(char **ptr)
{
	const int id = shmget(IPC_PRIVATE, page, IPC_CREAT | 0700);

	*ptr = shmat(id, NULL, SHM_EXEC);
	shmctl(id, IPC_RMID, NULL);
}

static const struct {
	void (*bring)(char **ptr);
	const char *why;
} codes[] = {
	{ code_mmap, "code of no file" },
	{ code_mprotect, "code of no file" },
	{ code_writable, "can be written" },
	{ code_syscall, "of no file" },
	{ code_shared, "is shared" },
	{ code_shmat, "can be written" },
};

/* Code that cannot be looked at makes lookups ask until it is unmapped. */
EACH_TEST(test_unknown, codes)
{
	char *ptr = MAP_FAILED;

	codes[_i].bring(&ptr);
	ck_assert_ptr_ne(ptr, MAP_FAILED);
	never_trusted(codes[_i].why);
	munmap(ptr, page);
	ck_assert_msg(trusted(true), "%s", why);
}

static bool find_stub(void *arg, const struct mrrc_mapping *mapping)
{
	uintptr_t *end = arg, at = mapping->start;

	while (at < mapping->end && mrrc_patch_stubs(at, at + page))
		at += page;
	if (mapping->execute && at != mapping->start)
		*end = at;
	return !*end;
}

/* The kernel merges a mapping beside the provider's stubs with theirs. */
TEST(test_beside)
{
	uintptr_t end = 0;
	char *ptr;

	ck_assert(mrrc_mappings_each(find_stub, &end));
	ck_assert(mrrc_patch_stubs(end - page, end));
	ck_assert(!mrrc_patch_stubs(end - page, end + page));
	ptr = mmap((void *) end, page, PROT_READ | PROT_EXEC,
		   ANON | MAP_FIXED_NOREPLACE, -1, 0);
	if (ptr == MAP_FAILED) /* the place is taken */
		return;
	never_trusted("code of no file");
	munmap(ptr, page);
	ck_assert_msg(trusted(true), "%s", why);
}

TEST(test_personality)
{
	ck_assert_int_ge(personality(READ_IMPLIES_EXEC), 0);
	never_trusted("can be executed");
}

/* A system call that is not known may unmap memory, as those of x32 do. */
TEST(test_new_call)
{
	syscall(5000);
	never_trusted("an unknown system call");
}

/* io_uring bypasses all hooks, so even a failing call ends trust. */
TEST(test_io_uring)
{
	syscall(SYS_io_uring_setup, 0, NULL);
	never_trusted("io_uring");
}

/* Many changes come at once, and none is forgotten. */
TEST(test_many)
{
	char *ptr = map(PROT_READ | PROT_WRITE);
	void *lib = load("raw_memory");
	int i;

	for (i = 0; i < 1000; i++)
		mprotect(ptr, page, PROT_READ | PROT_EXEC);
	munmap(ptr, page);
	never_trusted("raw_memory");
	dlclose(lib);
	ck_assert_msg(trusted(true), "%s", why);
}

/* Proven code is looked at again after a write to it. */
TEST(test_rewritten)
{
#ifdef __x86_64__
	const uint8_t unmap[] = { 0x31, 0xc0, 0xb0, 0x0b, 0x0f, 0x05, 0xc3 };
#else
	/* mov x8, #215; svc #0; ret */
	const uint32_t unmap[] = { 0xd2801ae8, 0xd4000001, 0xd65f03c0 };
#endif
	uint8_t *at = dlsym(RTLD_DEFAULT, "shmctl"), *code;
	uint8_t was[sizeof(unmap)];

	/* Another patcher writes to the beginning of a function like this. */
	code = (uint8_t *) ((uintptr_t) at & ~(uintptr_t) (page - 1));
	memcpy(was, at, sizeof(was));
	ck_assert_int_eq(mprotect(code, 2 * page,
				  PROT_READ | PROT_WRITE | PROT_EXEC),
			 0);
	ck_assert(!mrrc_trusted());
	memcpy(at, unmap, sizeof(unmap));
	mprotect(code, 2 * page, PROT_READ | PROT_EXEC);
	never_trusted("libc.so.6+0x");
	mprotect(code, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(at, was, sizeof(was));
	mprotect(code, 2 * page, PROT_READ | PROT_EXEC);
	ck_assert_msg(trusted(true), "%s", why);
}

/* ---- calls that are not announced ---- */

static struct mrrc_mon_ops counting;
static atomic_uint drains;

static int count_drain(struct mrrc_mon *self)
{
	if (!mrrc_trusted())
		atomic_fetch_add(&drains, 1);
	return mrrc_mon_uffd_ops.drain(self);
}

/* Events that the kernel has reported are handled before trust is given. */
TEST(test_settled)
{
	const struct mrrc_mon_ops *plain = mon->ops;
	void *lib;

	counting = *plain;
	counting.drain = count_drain;
	mon->ops = &counting;
	lib = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(trusted(true), "%s", why);
	mon->ops = plain;
	ck_assert_uint_gt(atomic_load(&drains), 0);
	dlclose(lib);
}

/* Code that was not seen unmaps memory: the test's own, past all hooks. */
TEST(test_surprised)
{
	const struct mrrc_patch_call call = {
		.number = SYS_munmap,
		.arg = { (long) keep(), (long) page },
	};

	mrrc_patch_make(&call);
	mrrc_mon_drain(mon);
	never_trusted("nothing announces");
	/* Trust ends for good. */
	ck_assert(mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO));
	ck_assert(!mrrc_mon_set_probe(mon, MRRC_PROBE_HOOKED));
	ck_assert(!mrrc_trusted());
}

/* ---- its life ---- */

static int fork_child(void)
{
	struct mrrc_mon *own;

	if (mrrc_trusted() || mrrc_mon_works(mon))
		return 1;
	if (mrrc_mon_open(NULL, NULL, &own) || mrrc_mon_hook(own, why))
		return 2;
	mrrc_mon_set_probe(own, MRRC_PROBE_AUTO);
	if (!trusted(true))
		return 3;
	mrrc_mon_close(own);
	return mrrc_trusted() ? 4 : 0;
}

TEST(test_fork)
{
	expect_child(fork_child());
	ck_assert(mrrc_trusted());
}

TEST(test_reopen)
{
	int i;

	for (i = 0; i < 5; i++) {
		mrrc_mon_close(mon);
		ck_assert(!mrrc_trusted());
		ck_assert_int_eq(mrrc_mon_open(NULL, NULL, &mon), 0);
		ck_assert_int_eq(mrrc_mon_hook(mon, NULL), 0);
		mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
		ck_assert_msg(i % 2 || trusted(true), "%s", why);
	}
}

TEST(test_always)
{
	mrrc_mon_set_probe(mon, MRRC_PROBE_ALWAYS);
	ck_assert(!mrrc_mon_told(mon));
	mrrc_mon_asks(mon, why);
	ck_assert_str_eq(why, "they always are to");
	usleep(20000);
	ck_assert(!mrrc_trusted());
	mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
	ck_assert_msg(trusted(true), "%s", why);
	mrrc_mon_asks(mon, why);
	ck_assert_str_eq(why, "");
}

/* If hooks cannot be relied on, lookups ask, and the reason is told. */
TEST(test_not_hooked)
{
	ck_assert(!mrrc_trust_set(MRRC_TRUST_HOOKED, false));
	ck_assert(!mrrc_mon_told(mon));
	mrrc_mon_asks(mon, why);
	ck_assert_str_eq(why, "libc's calls are not hooked");
	mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
	ck_assert_msg(trusted(true), "%s", why);
}

/* Code came while no code was counted. */
TEST(test_afresh)
{
	ck_assert(mrrc_mon_set_probe(mon, MRRC_PROBE_HOOKED));
	load("raw_memory");
	ck_assert(mrrc_trusted());
	mrrc_mon_asks(mon, why);
	ck_assert_str_eq(why, "");
	mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
	never_trusted("raw_memory");
	mrrc_mon_asks(mon, why);
	ck_assert_ptr_nonnull(strstr(why, "raw_memory.so+0x"));
}

static void some(void *arg, uintptr_t start, uintptr_t end)
{
	*(bool *) arg |= start < end;
}

/* Code that comes before trust is wanted is noticed, too. */
TEST(test_counted)
{
	bool any = false;
	char *ptr = map(PROT_READ);

	mrrc_mon_set_probe(mon, MRRC_PROBE_ALWAYS);
	mrrc_prove_stop();
	mrrc_trust_touched(some, &any);
	any = false;
	mprotect(ptr, page, PROT_READ | PROT_EXEC);
	mrrc_trust_touched(some, &any);
	ck_assert(any);
}

/* A file that is too large to copy is refused. */
TEST(test_large)
{
	const struct mrrc_code_place place = {
		.start = page,
		.end = 2 * page,
		.lo = page,
		.hi = (uintptr_t) 514 << 20,
	};
	struct mrrc_code_copy copy;

	ck_assert_int_eq(mrrc_code_copy(&place, &copy), -EFBIG);
}

/* Returns how often trust has ended in calls so far. */
static uint64_t ends(void)
{
	return atomic_load(&mrrc_trust_word) / MRRC_TRUST_CHANGE;
}

/* A child that shares memory ends trust, which soon comes again. */
TEST(test_vfork)
{
	static char *volatile ptr;
	static volatile uint64_t before;
	pid_t pid;

	ptr = keep();
	before = ends();
	pid = vfork();
	if (!pid) {
		munmap(ptr, page);
		_exit(ends() == before);
	}
	expect_ended(pid);
	ck_assert_msg(trusted(true), "%s", why);
}

TEST_CASE(prove_ring, NULL, NULL);

/*
 * The kernel may read requests from a ring by itself, past all hooks: lookups
 * ask until the ring is unmapped.
 */
TEST(test_ring_before)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQPOLL };
	const int fd = (int) syscall(SYS_io_uring_setup, 1, &params);
	pthread_t thread;
	void *ring;

	if (fd < 0)
		skip("no io_uring here");
	ring = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	ck_assert_ptr_ne(ring, MAP_FAILED);
	close(fd);
	ck_assert_int_eq(pthread_create(&thread, NULL, idle_main, NULL), 0);
	open_hooked(MRRC_PROBE_AUTO);
	never_trusted("io_uring is in use");
	munmap(ring, page);
	ck_assert_msg(trusted(true), "%s", why);
}

/* Tries hooks in a child, as hooks stay. */
static bool has_hooks(void)
{
	const pid_t pid = fork();
	int status;

	if (!pid) {
		mrrc_mon_open(NULL, NULL, &mon);
		_exit(mrrc_mon_hook(mon, why) ? 1 : 0);
	}
	return waitpid(pid, &status, 0) == pid && !status;
}

int main(void)
{
	page = mrrc_vm_page();
	setenv("CK_DEFAULT_TIMEOUT", "600", 0); /* ends a test that hangs */
	if (under_valgrind()) {
		fprintf(stderr, "valgrind runs code as it was: skipped\n");
		return 77;
	}
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	fprintf(stderr, "sanitizers make system calls of their own: skipped\n");
	return 77;
#endif
	if (!MRRC_PROVE_CAN) {
		fprintf(stderr, "built without Zydis: skipped\n");
		return 77;
	}
	if (!has_hooks()) {
		fprintf(stderr, "no hooks here: skipped\n");
		return 77;
	}
	return run_cases(CK_FORK);
}
