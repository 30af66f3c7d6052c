/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys/hooks/trust: one word; trust is given for the word that was looked at. */
#include "config.h"
#include "test/case.h"

#include "sys/monitor/mon.h"
#include "sys/hooks/trust.h"

static void teardown(void)
{
	mrrc_trust_set(MRRC_TRUST_NOBODY, false);
}

TEST_CASE(trust, NULL, teardown);

/* Trust is given only for the word that was looked at. */
TEST(test_word)
{
	uint64_t word, later;

	ck_assert(mrrc_trust_set(MRRC_TRUST_PROVEN, true));
	ck_assert(mrrc_trust_wanted(&word));
	ck_assert(mrrc_trust_begin());
	ck_assert(!mrrc_trust_give(word));
	ck_assert(!mrrc_trust_wanted(&later));
	ck_assert(!mrrc_trust_give(later));
	mrrc_trust_end(0, 0);
	ck_assert(!mrrc_trust_give(word));
	ck_assert(mrrc_trust_wanted(&word));
	ck_assert(mrrc_trust_give(word));
	ck_assert(mrrc_trusted());
	ck_assert_ptr_null(mrrc_trust_broken());
	ck_assert(mrrc_trust_begin());
	ck_assert(!mrrc_trusted());
	ck_assert_ptr_nonnull(mrrc_trust_broken());
	mrrc_trust_end(0, 0);
	ck_assert(!mrrc_trusted());
	ck_assert_ptr_null(mrrc_trust_broken());
}

/* A call that began before trust was wanted must end first. */
TEST(test_early)
{
	uint64_t word;

	ck_assert(mrrc_trust_begin());
	ck_assert(mrrc_trust_set(MRRC_TRUST_PROVEN, true));
	ck_assert(!mrrc_trust_wanted(&word));
	mrrc_trust_end(0, 0);
	ck_assert(mrrc_trust_wanted(&word));
}

static void hull(void *arg, uintptr_t start, uintptr_t end)
{
	struct mrrc_range *range = arg;

	if (start < range->start)
		range->start = start;
	if (end > range->end)
		range->end = end;
}

/* All ranges count, even if more came than are kept. */
TEST(test_ranges)
{
	struct mrrc_range range = { UINTPTR_MAX, 0 };
	int i;

	ck_assert(mrrc_trust_set(MRRC_TRUST_PROVEN, true));
	mrrc_trust_touched(hull, &range);
	range = (struct mrrc_range){ UINTPTR_MAX, 0 };
	for (i = 0; i < 100; i++) {
		ck_assert(mrrc_trust_begin());
		mrrc_trust_end(i ? 2 : 1, 3);
	}
	mrrc_trust_touched(hull, &range);
	ck_assert_uint_le(range.start, 1);
	ck_assert_uint_ge(range.end, 3);
	range = (struct mrrc_range){ UINTPTR_MAX, 0 };
	mrrc_trust_touched(hull, &range);
	ck_assert_uint_eq(range.end, 0);
}

/* A call that counts its range just now may not have written the range yet. */
TEST(test_ranges_inside)
{
	struct mrrc_range range = { UINTPTR_MAX, 0 };

	ck_assert(mrrc_trust_set(MRRC_TRUST_PROVEN, true));
	mrrc_trust_touched(hull, &range);
	range = (struct mrrc_range){ UINTPTR_MAX, 0 };
	ck_assert(mrrc_trust_begin());
	ck_assert(mrrc_trust_begin());
	mrrc_trust_end(1, 3);
	mrrc_trust_touched(hull, &range);
	ck_assert_uint_eq(range.end, 0);
	mrrc_trust_end(2, 4);
	mrrc_trust_touched(hull, &range);
	ck_assert_uint_eq(range.start, 1);
	ck_assert_uint_eq(range.end, 4);
}
