/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys/base/pages: memory that a failed mapping leaves. */
#include "config.h"
#include "test/case.h"

#include <stdint.h>

#include "test/fakes/fault.h"
#include "sys/base/pages.h"

#define MIB ((size_t) 1 << 20)

static char *others;
static bool others_done;
static char *failed; /* address that was being mapped */

/* Another thread maps the addresses behind, which have been given back. */
static void map_behind(char *addr, size_t len)
{
	failed = addr;
	others = mmap(addr + len, 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	others_done = others == addr + len;
	if (others_done)
		others[0] = 42;
}

TEST_CASE(pages, NULL, NULL);

/* At vm.max_map_count, the last step fails after the ends were unmapped. */
TEST(others_memory_stays)
{
	const struct mrrc_pages_attr attr = {
		.kind = MRRC_PAGES_4K,
		.node = -1,
		.exact = true,
	};
	enum mrrc_pages got;
	unsigned char there;
	size_t mapped;
	void *addr;
	int ret;

	others_done = false;
	fault_arm(2);
	fault_meanwhile(map_behind);
	ret = mrrc_pages_map(8192, MIB, &attr, &addr, &mapped, &got);
	ck_assert(fault_disarm());
	ck_assert_int_eq(ret, -ENOMEM);
	ck_assert(others_done);
	ck_assert_int_eq(mincore(others, 4096, &there), 0);
	ck_assert_int_eq(others[0], 42);
	munmap(others, 4096);
	/* The failed mapping itself is unmapped. */
	ck_assert_int_eq(mincore(failed - 8192, 4096, &there), -1);
	ck_assert_int_eq(mincore(failed, 4096, &there), -1);
}

/* At vm.max_map_count, the addresses stay, but no memory is behind them. */
TEST(memory_goes_unmapped_or_not)
{
	const struct mrrc_pages_attr attr = {
		.kind = MRRC_PAGES_4K,
		.node = -1,
	};
	enum mrrc_pages got;
	unsigned char there[64];
	size_t mapped, i;
	char *addr;
	void *map;

	ck_assert_int_eq(
		mrrc_pages_map(64 * 4096, MIB, &attr, &map, &mapped, &got), 0);
	addr = map;
	memset(addr, 42, mapped);
	fault_unmap(true);
	mrrc_pages_unmap(addr, mapped);
	fault_unmap(false);
	ck_assert_int_eq(mincore(addr, mapped, there), 0);
	for (i = 0; i < mapped / 4096; i++)
		ck_assert_msg(!(there[i] & 1), "page %zu", i);
	mrrc_pages_unmap(addr, mapped);
	ck_assert_int_eq(mincore(addr, mapped, there), -1);
}
