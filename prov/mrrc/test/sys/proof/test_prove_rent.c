/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/prove: code is looked at as soon as lookups have asked the kernel
 * so often that a look at the code would have cost less.
 */
#include "config.h"
#include "test/sys/proof/prove_fixture.h"
#include "test/case.h"

#include "sys/proof/prove.h"

TEST_CASE(rent, NULL, NULL);

/* When lookups have asked often, a thread looks at the code, and ends. */
TEST(test_rent)
{
	_Atomic uint64_t probes = 0;
	unsigned ours;
	uint64_t seq;

	open_hooked(MRRC_PROBE_AUTO);
	ours = atomic_load(&mrrc_threads.ours);
	while (probes < MRRC_PROVE_PRICE - 1)
		ck_assert_int_eq(mrrc_mon_quiet(mon, &seq, &probes), 0);
	mrrc_mon_asks(mon, why);
	ck_assert_str_eq(why,
			 "code is looked at when lookups have asked often");
	ck_assert_uint_eq(atomic_load(&mrrc_threads.ours), ours);
	ck_assert_int_eq(mrrc_mon_quiet(mon, &seq, &probes), 0);
	ck_assert(comes(mrrc_trusted()));
	ck_assert(comes(atomic_load(&mrrc_threads.ours) == ours));
	mrrc_mon_close(mon);
	ck_assert_uint_eq(atomic_load(&mrrc_threads.ours), 0);
}

/* After a look in vain, lookups have to ask more often before the next look. */
TEST(test_rent_in_vain)
{
	unsigned ours;
	char *ptr;

	open_hooked(MRRC_PROBE_AUTO);
	ours = atomic_load(&mrrc_threads.ours);
	ptr = map(PROT_READ | PROT_EXEC);
	mrrc_prove_rent(MRRC_PROVE_PRICE);
	ck_assert(comes((mrrc_prove_why(why), strstr(why, "of no file"))));
	ck_assert(comes(atomic_load(&mrrc_threads.ours) == ours));
	munmap(ptr, page);
	mrrc_prove_rent(MRRC_PROVE_PRICE);
	ck_assert_uint_eq(atomic_load(&mrrc_threads.ours), ours);
	mrrc_prove_rent(MRRC_PROVE_PRICE);
	ck_assert(comes(mrrc_trusted()));
}

/* The provider starts no thread before the first range is watched. */
TEST(test_no_thread)
{
	open_hooked(MRRC_PROBE_AUTO);
	ck_assert_uint_eq(atomic_load(&mrrc_threads.ours), 0);
	/* A hook marks memory like this; no cache knows it. */
	mrrc_libc_hooks_mark((uintptr_t) map(PROT_READ), page);
	ck_assert_int_eq(munmap(map(PROT_READ), page), 0);
	ck_assert_uint_eq(atomic_load(&mrrc_threads.ours), 0);
	keep();
	ck_assert_uint_gt(atomic_load(&mrrc_threads.ours), 0);
}

/* With MRRC_PROBE_PROVEN, code is looked at once, and when code comes. */
TEST(test_now)
{
	open_hooked(MRRC_PROBE_PROVEN);
	ck_assert(comes(mrrc_trusted()));
	munmap(map(PROT_READ | PROT_EXEC), page);
	ck_assert(!mrrc_trusted());
	ck_assert(comes((mrrc_prove_rent(1), mrrc_trusted())));
}
