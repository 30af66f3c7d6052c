/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys/hooks/patch: which code is patched and how, with the test's own code. */
#include "config.h"
#include "test/sys/hooks/patch_fixture.h"

#include <sys/syscall.h>

#include "test/case.h"
#include "test/fakes/fault.h"
#include "sys/hooks/patch.h"
#include "sys/base/vm.h"

#define RW   (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static size_t page;
static uint64_t *own_code; /* a page of code, as libc's is */

static void own_set(const void *bytes, size_t at, size_t len)
{
	ck_assert_int_eq(mprotect(own_code, page, RW), 0);
	memcpy((char *) own_code + at, bytes, len);
	ck_assert_int_eq(mprotect(own_code, page, PROT_READ | PROT_EXEC), 0);
}

static void own_setup(void)
{
	page = mrrc_vm_page();
	own_code = mmap(NULL, page, RW, ANON, -1, 0);
	ck_assert_ptr_ne(own_code, MAP_FAILED);
}

static void own_teardown(void)
{
	munmap(own_code, page);
}

static void change_word(void)
{
	own_set(&(uint64_t){ 3 }, 0, sizeof(uint64_t));
}

TEST_CASE(own, own_setup, own_teardown);

/* Another patcher changes the word before the check, or before the write. */
LOOP_TEST(test_changed, 0, 2)
{
	const struct mrrc_patch own = {
		.word = own_code,
		.before = 1,
		.after = 2,
		.filler = (uint8_t *) (own_code + 1),
		.filling = "ours",
	};
	int ret;

	own_set(&(uint64_t){ 1 }, 0, sizeof(uint64_t));
	if (_i)
		fault_at(FAULT_PROTECT, change_word);
	else
		change_word();
	ret = mrrc_patch_on(&own);
	fault_at(FAULT_PROTECT, NULL);
	ck_assert_int_eq(ret, -EBUSY);
	ck_assert_uint_eq(*own_code, 3);
	/*
	 * The filler is unchanged, unless the word changed just before the
	 * write.
	 */
	if (!_i)
		ck_assert_uint_eq(own_code[1], 0);
}

/* Another copy of the provider uses the same word and the same filler. */
TEST(test_other_copy)
{
	const struct mrrc_patch own = {
		.word = own_code,
		.before = 1,
		.after = 2,
		.filler = (uint8_t *) (own_code + 1),
		.filling = "ours",
		.filled = "free",
	};
	struct mrrc_patch other = own;

	memcpy(other.filling, "them", sizeof(other.filling));
	own_set(&own.before, 0, sizeof(own.before));
	own_set(own.filled, 8, sizeof(own.filled));
	ck_assert_int_eq(mrrc_patch_on(&other), 0);
	ck_assert(mrrc_patch_is_on(&other));
	ck_assert(!mrrc_patch_is_on(&own));
	ck_assert_int_eq(mrrc_patch_on(&own), -EBUSY);
	ck_assert_int_eq(mrrc_patch_off(&own), -EBUSY);
	ck_assert(mrrc_patch_is_on(&other));
	/* The other copy's jump may stay, as a thread may be about to run it */
	ck_assert_int_eq(mrrc_patch_off(&other), 0);
	ck_assert_int_eq(mrrc_patch_on(&own), -EBUSY);
	ck_assert_str_eq((char *) own.filler, "them");
	mrrc_patch_unfill(&other);
	ck_assert_int_eq(mrrc_patch_on(&own), 0);
	ck_assert(mrrc_patch_is_on(&own));
}

/* A patch fails if code may not be changed. */
TEST(test_denied)
{
	const struct mrrc_patch own = {
		.word = own_code,
		.before = 1,
		.after = 2,
	};
	int ret;

	own_set(&(uint64_t){ 1 }, 0, sizeof(uint64_t));
	fault_arm(1);
	ret = mrrc_patch_on(&own);
	ck_assert(fault_disarm());
	ck_assert_int_eq(ret, -EACCES);
	ck_assert_uint_eq(*own_code, 1);
}

#ifdef __x86_64__
/*
 * Puts a call at @at, another at @again unless @again is 0, and filler at
 * @filler.
 */
static int build(size_t at, size_t again, size_t filler, struct mrrc_patch *own)
{
	static const uint8_t call[] = { 0xb8, SYS_munmap, 0, 0, 0, 0x0f, 5 };
	static const uint8_t end[] = { 0xc3, 0x66, 0x2e, 0x0f, 0x1f, 0x84,
				       0,    0,	   0,	 0,    0 };
	const struct mrrc_patch_code code = {
		.start = (uint8_t *) own_code,
		.len = 1024,
	};
	uint8_t stub[MRRC_PATCH_STUB];
	uint8_t *site;

	own_set(call, at, sizeof(call));
	if (again)
		own_set(call, again, sizeof(call));
	own_set(end, filler, sizeof(end));
	site = mrrc_patch_search(&code, SYS_munmap);
	return site ? mrrc_patch_build(&code, site, SYS_munmap, stub, stub,
				       own) :
		      -ENOENT;
}

LOOP_TEST(test_build, 0, 9)
{
	static const struct {
		size_t at, again, filler;
		int ret;
		/* replaced byte; by a short jump if far is false */
		size_t from;
		bool far;
	} codes[] = {
		/* The system call is replaced, as the first byte must stay. */
		{ 16, 0, 64, 0, 21, false },
		{ 16, 32, 64, -ENOENT, 0, false },
		{ 20, 0, 153, 0, 25, false },
		{ 180, 0, 58, 0, 185, false },
		/* No filler is near, so the instruction before is replaced. */
		{ 16, 0, 200, 0, 16, true },
		{ 180, 0, 57, 0, 180, false },
		/* The instruction lies in two words. */
		{ 20, 0, 154, -ENOENT, 0, false },
		{ 180, 0, 52, -ENOENT, 0, false },
		/* The system call lies in two words. */
		{ 18, 0, 64, 0, 18, true },
	};
	struct mrrc_patch own;

	ck_assert_int_eq(build(codes[_i].at, codes[_i].again, codes[_i].filler,
			       &own),
			 codes[_i].ret);
	if (codes[_i].ret)
		return;
	ck_assert_ptr_eq(own.word, own_code + codes[_i].from / 8);
	ck_assert_int_eq(((uint8_t *) &own.after)[codes[_i].from % 8],
			 codes[_i].far ? 0xe9 : 0xeb);
	ck_assert_ptr_eq(own.filler,
			 codes[_i].far ?
				 NULL :
				 (uint8_t *) own_code + codes[_i].filler + 1);
}

/* The number is not set by the instruction right before the system call. */
LOOP_TEST(test_build_apart, 0, 8)
{
	static const uint8_t call[] = { 0xb8, SYS_munmap, 0,	0,    0, 0x41,
					0x83, 0xca,	  0x40, 0x0f, 5 };
	static const uint8_t end[] = { 0xc3, 0x66, 0x2e, 0x0f, 0x1f, 0x84,
				       0,    0,	   0,	 0,    0 };
	const struct mrrc_patch_code code = {
		.start = (uint8_t *) own_code,
		.len = 1024,
	};
	uint8_t *const site = (uint8_t *) own_code + 32 + _i;
	uint8_t stub[MRRC_PATCH_STUB];
	struct mrrc_patch own;

	own_set(call, 32 + _i + 2 - sizeof(call), sizeof(call));
	own_set(end, 64, sizeof(end));
	ck_assert_int_eq(mrrc_patch_build(&code, site, MRRC_PATCH_ANY, stub,
					  stub, &own),
			 -ENOENT);
	ck_assert_int_eq(mrrc_patch_build(&code, site + 1, SYS_munmap, stub,
					  stub, &own),
			 -ENOENT);
	ck_assert_int_eq(mrrc_patch_build(&code, site, SYS_munmap, stub, stub,
					  &own),
			 _i == 7 ? -ENOENT : 0);
	if (_i == 7)
		return;
	ck_assert_ptr_eq(own.at, site);
	ck_assert_ptr_eq(own.filler, (uint8_t *) own_code + 65);
	/* A short jump replaces the system call, and nothing else changes. */
	ck_assert_int_eq(((uint8_t *) &own.after)[_i], 0xeb);
	((uint8_t *) &own.after)[_i] = 0x0f;
	((uint8_t *) &own.after)[_i + 1] = 0x05;
	ck_assert_uint_eq(own.after, own.before);
}

/* The filler, written first, must not be in the word that changes next. */
TEST(test_build_word)
{
	static const uint8_t call[] = { 0xb8, SYS_munmap, 0, 0, 0, 0x0f, 5 };
	uint8_t *const site = (uint8_t *) own_code + 35;
	struct mrrc_patch_code code = {
		.start = (uint8_t *) own_code,
		.len = 1024,
		.filler = (uint8_t *) own_code + 32 - MRRC_PATCH_FILLER + 1,
	};
	uint8_t stub[MRRC_PATCH_STUB];
	struct mrrc_patch own;

	own_set(call, 30, sizeof(call));
	ck_assert_int_eq(mrrc_patch_build(&code, site, SYS_munmap, stub, stub,
					  &own),
			 -ENOENT);
	code.filler--;
	ck_assert_int_eq(
		mrrc_patch_build(&code, site, SYS_munmap, stub, stub, &own), 0);
}
#endif

#ifdef __x86_64__
/* pause(2), and a ret, at which a thread that sleeps there goes on */
#define ASLEEP_AT 7
static const uint8_t asleep[] = { 0xb8, SYS_pause, 0,	 0,    0,
				  0x0f, 0x05,	   0xc3, 0xcc, 0xcc };

static atomic_int sleeper; /* id of the sleeping thread */
static atomic_bool spins;

static void on_wake(int sig)
{
}

static void *sleep_main(void *arg)
{
	void (*const code)(void) = (void (*)(void))(uintptr_t) own_code;

	atomic_store(&sleeper, gettid());
	while (atomic_load(&spins))
		;
	code();
	return NULL;
}

static bool is_asleep(void)
{
	char path[64], line[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall",
		 atomic_load(&sleeper));
	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file))
		line[0] = '\0';
	if (file)
		fclose(file);
	return atoi(line) == SYS_pause;
}

/* A jump stays if a thread may be about to run it. */
TEST(test_clean)
{
	const struct sigaction action = { .sa_handler = on_wake };
	struct mrrc_patch own = {
		.word = own_code + 8,
		.filler = (uint8_t *) own_code + ASLEEP_AT,
		.filling = { 0xc3, 0xcc, 0xcc },
		.filled = "was",
	};
	pthread_t thread;

	own_set(asleep, 0, sizeof(asleep));
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	atomic_store(&sleeper, 0);
	atomic_store(&spins, true);
	thread = thread_start(sleep_main, NULL);
	ck_assert(comes(atomic_load(&sleeper)));
	mrrc_patch_clean(&own, 1);
	ck_assert_int_eq(*own.filler, 0xc3);
	atomic_store(&spins, false);
	ck_assert(comes(is_asleep()));
	mrrc_patch_clean(&own, 1);
	ck_assert_int_eq(*own.filler, 0xc3);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	/* Another jump leads to the filler. */
	own.before = 1;
	mrrc_patch_clean(&own, 1);
	ck_assert_int_eq(*own.filler, 0xc3);
	own.before = 0;
	mrrc_patch_clean(&own, 1);
	ck_assert_str_eq((char *) own.filler, "was");
}
#endif

/* A copy counts as patched if both its word and its filler are as written. */
TEST(test_undo_both)
{
	uint64_t at[3] = { 0 }, copy[3];
	const struct mrrc_patch own = {
		.word = at,
		.before = 1,
		.after = 2,
		.filler = (uint8_t *) &at[1],
		.filling = "ours",
		.filled = "was",
	};
	const uintptr_t start = (uintptr_t) at, end = (uintptr_t) (at + 3);

	copy[0] = 2;
	copy[2] = 3;
	memcpy(&copy[1], "ours\0\0\0", 8);
	ck_assert(mrrc_patch_undo(&own, (uint8_t *) copy, start, end));
	ck_assert_uint_eq(copy[0], 1);
	ck_assert_uint_eq(copy[2], 3);
	ck_assert_str_eq((char *) &copy[1], "was");
	ck_assert(!mrrc_patch_undo(&own, (uint8_t *) copy, start, end));
	copy[0] = 2;
	ck_assert(!mrrc_patch_undo(&own, (uint8_t *) copy, start, end));
	ck_assert_uint_eq(copy[0], 2);
	/* The copy ends before the filler. */
	memcpy(&copy[1], "ours\0\0\0", 8);
	ck_assert(!mrrc_patch_undo(&own, (uint8_t *) copy, start, start + 8));
}

/*
 * At a probe, a copy has the byte of the file. A probe in the jump cuts the
 * jump; a probe beside the jump does not cut the jump. A byte of the jump that
 * only looks like a probe is no probe.
 */
TEST(test_undo_probe)
{
	uint64_t at[2] = { 0 }, copy[2];
	const struct mrrc_patch own = {
		.word = at,
		.before = 0x1111050f11111111,
		.after = 0x1111cceb11111111,
		.filler = (uint8_t *) &at[1],
		.filling = { 0xe9, 0xcc, 1, 2, 3 },
		.filled = { 4, 5, 6, 7, 8 },
	};
	const uintptr_t start = (uintptr_t) at, end = (uintptr_t) (at + 2);

	copy[0] = 0x111105eb11111111;
	copy[1] = 0x03020105e9;
	ck_assert(mrrc_patch_undo(&own, (uint8_t *) copy, start, end));
	ck_assert_uint_eq(copy[0], own.before);
	ck_assert_uint_eq(copy[1], 0x0807060504);
	copy[0] = 0x1111cceb111111cc;
	copy[1] = 0x030201cce9;
	ck_assert(mrrc_patch_undo(&own, (uint8_t *) copy, start, end));
	ck_assert_uint_eq(copy[0], 0x1111050f111111cc);
	copy[0] = 0x1111cc0f11111111;
	ck_assert(!mrrc_patch_undo(&own, (uint8_t *) copy, start, end));
	ck_assert_uint_eq(copy[0], own.before);
	/* This byte is another patcher's. */
	copy[0] = 0x1111cc9011111111;
	ck_assert(!mrrc_patch_undo(&own, (uint8_t *) copy, start, end));
	ck_assert_uint_eq(copy[0], 0x1111cc9011111111);
}

/* A patch uses its word and its filler, each to the last byte. */
TEST(test_uses)
{
	const struct mrrc_patch own = {
		.word = (uint64_t *) 64,
		.filler = (uint8_t *) 101,
	};

	ck_assert(!mrrc_patch_uses(&own, 60, 4));
	ck_assert(mrrc_patch_uses(&own, 60, 5));
	ck_assert(mrrc_patch_uses(&own, 71, 1));
	ck_assert(!mrrc_patch_uses(&own, 72, 29));
	ck_assert(mrrc_patch_uses(&own, 72, 30));
	ck_assert(mrrc_patch_uses(&own, 105, 1));
	ck_assert(!mrrc_patch_uses(&own, 106, 9));
	ck_assert(!mrrc_patch_uses(&(struct mrrc_patch){ 0 }, 0, 100));
}
