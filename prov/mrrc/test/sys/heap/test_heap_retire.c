/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys/heap/heap_retire: the addresses of ended blocks. */
#include "config.h"
#include "test/case.h"

#include <sys/resource.h>

#include "test/fakes/fault.h"
#include "test/sys/heap/heap_fixture.h"
#include "sys/heap/heap_priv.h"
#include "sys/base/vm.h"

#define PAGE   ((size_t) 4096)
#define REMOTE (MRRC_RW | MRRC_REMOTE_WRITE)

static struct mrrc_heap *remote;
static unsigned unmaps; /* number of unmaps before the block ended */

static struct mrrc_heap *open_remote(enum mrrc_access access)
{
	struct mrrc_heap_attr attr = heap_plain;

	attr.access = access;
	return heap_open(&attr);
}

static void retire_setup(void)
{
	heap_setup();
	remote = open_remote(REMOTE);
}

static bool mapped(const char *addr)
{
	unsigned char there;

	return !mincore((void *) addr, PAGE, &there);
}

/* Whether the address is kept, so that no other mapping can take its place. */
static bool reserved(const char *addr)
{
	return !fault_unmapped(addr, unmaps) && mapped(addr);
}

static bool present(const char *addr)
{
	unsigned char there = 0;

	return !mincore((void *) addr, PAGE, &there) && there & 1;
}

/* Allocates an isolated object, writes to it, frees it. */
static char *retire_of(struct mrrc_heap *from, size_t len)
{
	char *addr = heap_get(from, 1, len, MRRC_HEAP_ISOLATED);

	unmaps = fault_unmaps();
	addr[0] = 42;
	heap_put(addr);
	return addr;
}

static char *retire(size_t len)
{
	return retire_of(remote, len);
}

TEST_CASE(heap_retire, retire_setup, heap_teardown);

LOOP_TEST(addresses_stay, 0, 3)
{
	const size_t lens[] = { 1, 300000, 5 * MIB };
	const enum mrrc_access access[] = {
		REMOTE,
		MRRC_RO | MRRC_REMOTE_READ,
		MRRC_RW,
	};
	struct mrrc_heap_place place;
	struct mrrc_heap *of;
	unsigned since[2], i, k;
	char *addr[2];

	of = open_remote(access[_i]);
	for (i = 0; i < 3; i++) {
		addr[0] = retire_of(of, lens[i]);
		since[0] = unmaps;
		addr[1] = heap_get(of, 1, lens[i], 0);
		since[1] = fault_unmaps();
		mrrc_heap_query(heaps, (uintptr_t) addr[1], &place);
		addr[1][0] = 42;
		heap_put(addr[1]);
		addr[1] = (char *) place.block;
		if (i == 2)
			mrrc_heap_close(of);
		else
			mrrc_heap_trim(of);
		for (k = 0; k < 2; k++) {
			unmaps = since[k];
			ck_assert_int_eq(reserved(addr[k]), _i < 2);
			/* The rest of the block's last MiB is kept, too. */
			ck_assert_int_eq(reserved(addr[k] + MIB - PAGE),
					 _i < 2);
			ck_assert(!reserved(addr[k]) || !present(addr[k]));
		}
	}
	ck_assert_uint_eq(heap_stats_of(remote).bytes, 0);
	ck_assert_uint_eq(heaps->retired_cnt, _i < 2 ? 6 : 0);
}

TEST(closing_gives_them_back)
{
	struct mrrc_heaps *others = heaps;
	char *addr;

	heap_domain(0);
	remote = open_remote(REMOTE);
	addr = retire(3 * MIB);
	ck_assert(reserved(addr));
	mrrc_heaps_close(heaps);
	heaps = others;
	ck_assert(!reserved(addr));
}

/* A transfer that goes on finds empty memory, and damages no other data. */
TEST(empty_memory_is_there)
{
	char *addr = retire(2 * MIB);

	if (mrrc_heap_watched || mrrc_vm_strict())
		skip("inaccessible there");
	ck_assert_int_eq(addr[0], 0);
	addr[MIB] = 1;
	ck_assert_int_eq(addr[MIB], 1);
}

TEST(the_oldest_go)
{
	char *addr[5];
	unsigned i;

	heaps->retired_max = 3;
	for (i = 0; i < 4; i++)
		addr[i] = retire(1);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(reserved(addr[i]), i >= 1);
	ck_assert_uint_eq(heaps->retired_cnt, 3);
	ck_assert_uint_eq(heaps->retired_bytes, 3 * MIB);
	/* The bytes of addresses are limited as well. */
	heaps->retired_max_bytes = 4 * MIB;
	addr[4] = retire(2 * MIB + 1);
	for (i = 1; i < 5; i++)
		ck_assert_int_eq(reserved(addr[i]), i >= 3);
	/* A block beyond the limit is not kept, and displaces no other. */
	addr[0] = retire(4 * MIB + 1);
	ck_assert(!reserved(addr[0]));
	ck_assert(reserved(addr[3]) && reserved(addr[4]));
	heaps->retired_max = 0;
	addr[0] = retire(1);
	ck_assert(!reserved(addr[0]));
}

/* Memory that was written to later is given back after some time. */
TEST(pages_are_given_back_again)
{
	char *addr = retire(MIB), *large;

	if (mrrc_heap_watched || mrrc_vm_strict())
		skip("inaccessible there");
	heaps->retired_purge = 3 * MIB + 1;
	memset(addr, 1, MIB);
	large = retire(2 * MIB);
	ck_assert(present(addr) && present(addr + PAGE));
	heap_put(heap_get(remote, 1, PAGE, MRRC_HEAP_ISOLATED));
	ck_assert(!present(addr) && !present(addr + PAGE));
	ck_assert(reserved(addr) && reserved(large));
	ck_assert_uint_eq(heaps->retired_cnt, 3);
}

/* If a block cannot be mapped, kept addresses are given back for it. */
TEST(room_for_new_blocks)
{
	bool released = false, fired = true;
	void *addr = NULL, *cookie;
	unsigned nth;
	int ret;

	for (nth = 1; fired; nth++) {
		retire(1);
		fault_arm(nth);
		ret = mrrc_heap_alloc(remote, 1, 3 * MIB, MRRC_HEAP_ISOLATED,
				      &addr, &cookie);
		fired = fault_disarm();
		if (ret)
			continue;
		released = released || (fired && !heaps->retired_cnt);
		heap_put(addr);
	}
	ck_assert(released);
}

/* If the addresses cannot be kept, the pages are given back all the same. */
TEST(without_a_mapping)
{
	char *addr = heap_get(remote, 1, MIB, MRRC_HEAP_ISOLATED);
	int ret;

	fault_arm(1);
	ret = mrrc_heap_free(heaps, addr);
	ck_assert(fault_disarm());
	ck_assert_int_eq(ret, 0);
	ck_assert(!reserved(addr));
	ck_assert_uint_eq(heaps->retired_cnt, 0);
}

TEST(locked_memory)
{
	char *addr;
	bool there;

	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		skip("mlockall: %s", strerror(errno));
	addr = retire(2 * MIB);
	there = present(addr) || present(addr + MIB);
	munlockall();
	ck_assert(reserved(addr));
	ck_assert(!there);
}

TEST(children_have_none)
{
	char *addr = retire(MIB);
	pid_t pid;

	if (mrrc_heap_watched || mrrc_vm_strict())
		skip("inaccessible there");
	addr[0] = 42;
	pid = fork();
	if (!pid) {
		/* A tool may have mapped other memory there by now. */
		end_in(60);
		_exit(present(addr) && addr[0] == 42);
	}
	ck_assert_int_gt(pid, 0);
	child_exits(pid);
	ck_assert_int_eq(addr[0], 42);
}

#define THREADS 4
#define ROUNDS	200

static void *race_run(void *arg)
{
	unsigned i;

	for (i = 0; i < ROUNDS; i++)
		heap_put(heap_get(remote, 1, i % 4 ? 1 : MIB,
				  MRRC_HEAP_ISOLATED));
	return NULL;
}

TEST(threads_retire)
{
	struct mrrc_heap_block *block;
	size_t count = 0, bytes = 0;

	heaps->retired_max = 8;
	heaps->retired_purge = 2 * MIB;
	threads_run(THREADS, race_run);
	retire(1);
	TAILQ_FOREACH(block, &heaps->retired, link) {
		ck_assert(mapped((char *) block->base));
		bytes += mrrc_pages_len(block->len);
		count++;
	}
	ck_assert_uint_eq(count, 8);
	ck_assert_uint_eq(count, heaps->retired_cnt);
	ck_assert_uint_eq(bytes, heaps->retired_bytes);
}

/* At most an eighth of a limit on addresses is spare. */
LOOP_TEST(spare_addresses, 0, 2)
{
	const int which = _i ? RLIMIT_DATA : RLIMIT_AS;
	const rlim_t tight = (rlim_t) 16 << 30;
	struct rlimit was, now;
	size_t spare, most = mrrc_vm_spare();

	ck_assert_int_eq(getrlimit(which, &was), 0);
	now = was;
	now.rlim_cur = tight;
	if (was.rlim_max < tight || setrlimit(which, &now))
		skip("limits are lower");
	spare = mrrc_vm_spare();
	setrlimit(which, &was);
	ck_assert_uint_le(spare, tight / 8);
	ck_assert_uint_ge(most, spare);
	ck_assert_uint_ge(spare, 512 * MIB);
}
