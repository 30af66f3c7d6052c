/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the tests of sys/cache/cache_mt (mt_fixture.h). */
#include "config.h"
/* This header precedes headers that declare a global `cache`. */
#include "sys/cache/cache_mt_priv.h"
#include "test/sys/cache/mt_fixture.h"
#include "test/suites.h"

#include <errno.h>

#include "sys/cache/region_hints.h"
#include "sys/base/vm.h"

size_t page;
uintptr_t base;
struct fake_reg fake;
struct mrrc_mon *mt_mon;
struct mrrc_cache_mt *cache;
struct mrrc_plan plan;

int open_as(struct mrrc_cache_attr attr, struct mrrc_cache_mt **out)
{
	attr.max_bytes = attr.max_bytes ? attr.max_bytes : MT_PAGES * page;
	attr.max_regions = attr.max_regions ? attr.max_regions : MT_REGIONS;
	attr.ops = attr.ops ? attr.ops : &fake_reg_ops;
	attr.arg = &fake;
	attr.mon = mt_mon;
	return mrrc_cache_mt_open(&attr, out);
}

int open_cache(struct mrrc_cache_mt **out)
{
	return open_as((struct mrrc_cache_attr){ 0 }, out);
}

void reopen_as(struct mrrc_cache_attr attr)
{
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_int_eq(open_as(attr, &cache), 0);
}

void reopen(const char *policy)
{
	reopen_as((struct mrrc_cache_attr){ .policy = policy });
}

void mt_setup(void)
{
	page = mrrc_vm_page();
	base = 1024 * page;
	fake = (struct fake_reg){ .fail_rc = -EINVAL };
	ck_assert_int_eq(mrrc_mon_open_ops(&fake_mon_ops, NULL, &mt_mon), 0);
	fake_mon_of(mt_mon)->base = base;
	ck_assert_int_eq(open_cache(&cache), 0);
}

void mt_setup_pieces(void)
{
	mt_setup();
	reopen("lru:pieces=32");
}

void mt_teardown(void)
{
	ck_assert(mrrc_cache_mt_valid(cache));
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(fake.regs, fake.deregs);
	ck_assert(fake_mon_none(mt_mon, 0, 64) || !mrrc_mon_works(mt_mon));
	mrrc_mon_close(mt_mon);
}

uint64_t stat_of(enum mrrc_stat id)
{
	struct mrrc_stats stats;

	mrrc_cache_mt_stats(cache, &stats);
	return stats.value[id];
}

unsigned regions_live(void)
{
	return mrrc_pool_live(cache->pool);
}

bool pending_left(void)
{
	const bool left = !TAILQ_EMPTY(&cache->pending);

	TAILQ_INIT(&cache->pending);
	return left;
}

unsigned waiting(void)
{
	unsigned count;

	mrrc_lock_acquire(&cache->lock);
	count = cache->waiting;
	mrrc_lock_release(&cache->lock);
	return count;
}

uint64_t quick(void)
{
	struct mrrc_hints *hints = mrrc_hints_recent;

	return hints ? atomic_load(&hints->hits) : 0;
}

static bool held(const struct mrrc_region *region)
{
	unsigned count;

	mrrc_lock_acquire(&cache->lock);
	count = mrrc_region_held(region);
	mrrc_lock_release(&cache->lock);
	return count;
}

int try_get(unsigned first, unsigned pages, enum mrrc_access access,
	    struct mrrc_region **region)
{
	int ret = mrrc_cache_mt_get(cache, (void *) (base + first * page),
				    pages * page, access, region);

	ck_assert(mrrc_cache_mt_valid(cache));
	return ret;
}

struct mrrc_region *get_as(unsigned first, unsigned pages,
			   enum mrrc_access access)
{
	struct mrrc_region *region = NULL;

	ck_assert_int_eq(try_get(first, pages, access, &region), 0);
	ck_assert_ptr_nonnull(region);
	ck_assert(held(region));
	ck_assert_uint_le(fake_reg_start(region), base + first * page);
	ck_assert_uint_ge(fake_reg_start(region) + fake_reg_len(region),
			  base + (first + pages) * page);
	ck_assert(fake_reg_access(region) >= access);
	return region;
}

struct mrrc_region *get(unsigned first, unsigned pages)
{
	return get_as(first, pages, MRRC_RW);
}

void put(struct mrrc_region *region)
{
	mrrc_cache_mt_put(cache, region);
	ck_assert(mrrc_cache_mt_valid(cache));
}

void touch(unsigned first, unsigned pages)
{
	put(get(first, pages));
}

void touch_at(struct mrrc_cache_mt *in, uintptr_t start, size_t len,
	      enum mrrc_access access)
{
	struct mrrc_region *region;

	ck_assert_int_eq(
		mrrc_cache_mt_get(in, (void *) start, len, access, &region), 0);
	mrrc_cache_mt_put(in, region);
}

bool covered(const struct mrrc_plan *got, unsigned first, unsigned pages,
	     enum mrrc_access access)
{
	const struct mrrc_piece *piece = got->piece;
	uintptr_t at = piece->start;
	unsigned i;

	if (!got->count || at > base + first * page)
		return false;
	for (i = 0; i < got->count; i++) {
		if (piece[i].start != at || !piece[i].region ||
		    fake_reg_start(piece[i].region) > at ||
		    (access == MRRC_RW &&
		     fake_reg_access(piece[i].region) != MRRC_RW))
			return false;
		at += piece[i].len;
		if (fake_reg_start(piece[i].region) +
			    fake_reg_len(piece[i].region) <
		    at)
			return false;
	}
	return at >= base + (first + pages) * page;
}

int try_pieces(unsigned first, unsigned pages, enum mrrc_access access,
	       unsigned limit)
{
	int ret = mrrc_cache_mt_get_pieces(cache,
					   (void *) (base + first * page),
					   pages * page, access, limit, &plan);

	ck_assert(mrrc_cache_mt_valid(cache));
	return ret;
}

void get_pieces(unsigned first, unsigned pages, enum mrrc_access access,
		unsigned limit)
{
	unsigned i;

	ck_assert_int_eq(try_pieces(first, pages, access, limit), 0);
	ck_assert(covered(&plan, first, pages, access));
	ck_assert_uint_le(plan.count, limit);
	for (i = 0; i < plan.count; i++)
		ck_assert(held(plan.piece[i].region));
}

void put_pieces(void)
{
	unsigned i;

	for (i = 0; i < plan.count; i++)
		put(plan.piece[i].region);
}

void piece_is(unsigned i, unsigned first, unsigned pages,
	      const struct mrrc_region *region)
{
	ck_assert_uint_lt(i, plan.count);
	ck_assert_uint_eq(plan.piece[i].start, base + first * page);
	ck_assert_uint_eq(plan.piece[i].len, pages * page);
	if (region)
		ck_assert_ptr_eq(plan.piece[i].region, region);
}
