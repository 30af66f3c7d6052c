/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/prove beside uprobes (uprobe.h), which are set before or after
 * hooks. No call fails, with a probe or after its end, and lookups ask the
 * kernel while a probe keeps a hook from being called. The tests are skipped
 * where there are no uprobes.
 */
#include "config.h"
#include "test/sys/proof/prove_fixture.h"
#include "test/case.h"

#include <dlfcn.h>

#include "test/race/duel.h"
#include "test/fakes/fake_pin.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/proof/prove.h"
#include "test/sys/hooks/uprobe.h"

#ifdef __x86_64__

#define RW     (PROT_READ | PROT_WRITE)
#define LOOK   96 /* first bytes of a function, which have its call */
#define CALLS  20
#define FUNCTS 4
#define ROUNDS 100 /* rounds after the last probe */

static const char *const functions[FUNCTS] = { "munmap", "mmap", "madvise",
					       "brk" };

enum place { ENTRY, CALL, BEHIND, RETURN, PLACES };

/* Returns the system call of a function, before there are hooks. */
static const uint8_t *call_of(const char *name)
{
	static const uint8_t bytes[] = { 0x0f, 0x05 };
	const uint8_t *const call =
		memmem(uprobe_libc(name), LOOK, bytes, sizeof(bytes));

	ck_assert_ptr_nonnull(call);
	return call;
}

static int probe(const char *name, enum place place, const uint8_t *call)
{
	switch (place) {
	case CALL:
		return uprobe_set(call, false);
	case BEHIND:
		return uprobe_set(call + 2, false);
	default:
		return uprobe_set(uprobe_libc(name), place == RETURN);
	}
}

static void works(void)
{
	char *ptr, *end;
	int i;

	for (i = 0; i < CALLS; i++) {
		ptr = map(RW);
		*ptr = 1;
		ck_assert_int_eq(madvise(ptr, page, MADV_DONTNEED), 0);
		ck_assert_int_eq(*ptr, 0);
		end = sbrk(0);
		ck_assert_int_eq(brk(end + page), 0);
		end[page - 1] = 1;
		ck_assert_int_eq(brk(end), 0);
		ck_assert_msg(!munmap(ptr, page), "%s", strerror(errno));
		/* The page is unmapped. */
		ck_assert_int_eq(msync(ptr, page, MS_ASYNC), -1);
	}
}

/* Checks that a lookup knows of an unmap, by the hook or from the kernel. */
static void noticed(void)
{
	char *const ptr = keep();
	const bool asks = !mrrc_trusted();

	munmap(ptr, page);
	if (asks)
		mrrc_mon_drain(mon);
	ck_assert_uint_eq(kept.end, 0);
	mrrc_mon_unsubscribe(mon, &kept_sub);
}

static bool broken(const char *name, enum place place)
{
	/*
	 * Beside a probed call, the kernel runs one more instruction elsewhere.
	 * In brk, this instruction is relative to its place, which fails
	 * without the provider, too.
	 */
	return place == CALL && !strcmp(name, "brk");
}

static const uint8_t *calls[FUNCTS];

static void find_calls(void)
{
	int i;

	for (i = 0; i < FUNCTS; i++)
		calls[i] = call_of(functions[i]);
}

/* Sets probes at @place of each function; returns -1 without uprobes. */
static int probe_all(enum place place, int fd[FUNCTS])
{
	int i;

	for (i = 0; i < FUNCTS; i++) {
		fd[i] = -1;
		if (!broken(functions[i], place))
			fd[i] = probe(functions[i], place, calls[i]);
	}
	return fd[0];
}

static void unprobe(const int fd[FUNCTS])
{
	int i;

	for (i = 0; i < FUNCTS; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
	}
}

TEST_CASE(probe, NULL, NULL);

/* The probes are set after all code was looked at. */
LOOP_TEST(test_after, 0, PLACES)
{
	int fd[FUNCTS], i;

	find_calls();
	setup();
	if (probe_all(_i, fd) < 0)
		skip("no uprobes here: %s", strerror(errno));
	works();
	for (i = 0; i < FUNCTS; i++)
		ck_assert(fd[i] < 0 || uprobe_count(fd[i]) >= CALLS);
	if (_i == CALL)
		never_trusted("is not hooked");
	else
		ck_assert_msg(trusted(true), "%s", why);
	noticed();
	unprobe(fd);
	works();
	if (_i == CALL)
		never_trusted("is not hooked");
	else
		ck_assert_msg(trusted(true), "%s", why);
	noticed();
	mrrc_mon_close(mon);
	works();
}

/* The probes are set before hooks, which then may not be placed. */
LOOP_TEST(test_before, 0, PLACES)
{
	int fd[FUNCTS];

	find_calls();
	if (probe_all(_i, fd) < 0)
		skip("no uprobes here: %s", strerror(errno));
	open_hooked(MRRC_PROBE_AUTO);
	works();
	if (_i == BEHIND)
		ck_assert_msg(trusted(true), "%s", why);
	else
		never_trusted("is not hooked");
	noticed();
	unprobe(fd);
	works();
	noticed();
	mrrc_mon_close(mon);
	works();
}

/* After code was looked at without a probe, the next probe is seen. */
TEST(test_again)
{
	const uint8_t *const call = call_of("munmap");
	char *const ptr = map(RW);
	int fd, i;

	setup();
	for (i = 0; i < 2; i++) {
		fd = probe("mmap", ENTRY, NULL);
		if (fd < 0)
			skip("no uprobes here: %s", strerror(errno));
		works();
		close(fd);
		ck_assert_msg(trusted(true), "%s", why);
	}
	fd = probe("munmap", CALL, call);
	ck_assert_int_ge(fd, 0);
	/* Any hooked call sees the probe, before the call is made. */
	madvise(ptr, page, MADV_DONTNEED);
	ck_assert(!mrrc_trusted());
	close(fd);
	works();
	never_trusted("is not hooked");
}

/* A library unmaps by itself, and has a probe on its system call. */
TEST(test_library)
{
	static const uint8_t bytes[] = { 0x0f, 0x05 };
	void *const lib = load("raw_site");
	const uint8_t *const from = dlsym(lib, "raw_munmap");
	const uint8_t *call;
	int fd;

	ck_assert_ptr_nonnull(from);
	call = memmem(from, LOOK, bytes, sizeof(bytes));
	ck_assert_ptr_nonnull(call);
	fd = uprobe_set(call, false);
	if (fd < 0)
		skip("no uprobes here: %s", strerror(errno));
	open_hooked(MRRC_PROBE_AUTO);
	never_trusted("system call 11 is not hooked");
	close(fd);
	never_trusted("system call 11 is not hooked");
}

/* ---- lookups while probes come and go ---- */

static struct fake_pin fake;
static struct mrrc_cache_mt *cache;
static uint64_t word; /* each value is written only once */
static unsigned rounds, stale;
static atomic_bool probed;

static void use(void *arg, char *ptr, unsigned pages, bool fresh)
{
	const uint64_t first = word + 1;
	struct mrrc_plan plan;
	unsigned i;

	for (i = 0; i < pages; i++)
		*(volatile uint64_t *) (ptr + i * page) = ++word;
	ck_assert_int_eq(mrrc_cache_mt_get_pieces(cache, ptr, pages * page, RW,
						  1, &plan),
			 0);
	stale += !fake_pin_sees(&plan, (uintptr_t) ptr, pages, first);
	while (plan.count)
		mrrc_cache_mt_put(cache, plan.piece[--plan.count].region);
}

static bool is_over(void *arg)
{
	mrrc_prove_rent(UINT32_MAX);
	rounds += atomic_load(&probed);
	return rounds > ROUNDS;
}

/*
 * The last probe is on the call of munmap itself, and stays until it was
 * noticed: otherwise the next call would fail. Calls of mmap and madvise get no
 * such probe: the duel makes no other hooked call before its hit, so the hit
 * might be stale.
 */
static void *probe_main(void *arg)
{
	static const enum place places[] = { ENTRY, BEHIND, RETURN };
	int fd[FUNCTS], i;

	for (i = 0; i < 6; i++) {
		probe_all(places[i % 3], fd);
		usleep(1000);
		unprobe(fd);
	}
	fd[0] = probe(functions[0], CALL, calls[0]);
	while (__atomic_load_n(&calls[0][1], __ATOMIC_RELAXED) != 0x05)
		usleep(100);
	close(fd[0]);
	atomic_store(&probed, true);
	return NULL;
}

static const char *const moves[] = { "munmap", "middle page", "DONTNEED" };

EACH_TEST(test_duel, moves)
{
	struct mrrc_cache_attr attr = {
		.ops = &fake_pin_ops,
		.arg = &fake,
	};
	pthread_t thread;
	int fd[FUNCTS];
	unsigned i;

	find_calls();
	if (probe_all(ENTRY, fd) < 0)
		skip("no uprobes here: %s", strerror(errno));
	unprobe(fd);
	setup();
	attr.mon = mon;
	ck_assert_int_eq(mrrc_cache_mt_open(&attr, &cache), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, probe_main, NULL), 0);
	for (i = 0; strcmp(duel_moves[i].name, moves[_i]); i++)
		ck_assert_uint_lt(i + 1, duel_count);
	duel_fight(&duel_moves[i], NULL, use, is_over, NULL);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(stale, 0);
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	works();
}

#endif
