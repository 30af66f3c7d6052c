/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hooks in libraries that may be unloaded (sites.h).
 */
#include "config.h"
#include "sys/sites.h"

#include <errno.h>

#include "sys/libc_hooks.h"
#include "sys/mappings.h"
#include "sys/patch.h"

static struct {
	uintptr_t at;  /* 0: free */
	int ret;       /* it cannot be hooked */
	uint8_t *stub; /* stays when the site goes */
	struct mrrc_patch patch;
} sites[MRRC_SITES_MAX];

/* ---- what is hooked ---- */

mrrc_sites_set mrrc_sites_undo(uint8_t *copy, uintptr_t start, uintptr_t end)
{
	mrrc_sites_set set = 0;
	unsigned i;

	for (i = 0; i < MRRC_SITES_MAX; i++) {
		if (sites[i].at &&
		    mrrc_patch_undo(&sites[i].patch, copy, start, end))
			set |= UINT64_C(1) << i;
	}
	return set;
}

bool mrrc_sites_on(mrrc_sites_set set, uintptr_t at)
{
	unsigned i;

	for (i = 0; i < MRRC_SITES_MAX; i++) {
		if (set >> i & 1 && sites[i].at == at)
			return true;
	}
	return false;
}

bool mrrc_sites_use(mrrc_sites_set set, uintptr_t start, size_t len)
{
	unsigned i;

	for (i = 0; i < MRRC_SITES_MAX; i++) {
		if (set >> i & 1 &&
		    mrrc_patch_uses(&sites[i].patch, start, len))
			return true;
	}
	return mrrc_libc_hooks_use(start, len);
}

/* ---- where a hook fits ---- */

uintptr_t mrrc_sites_filler(const struct mrrc_code_image *image, uintptr_t at,
			    long number, bool inside,
			    bool (*used)(void *arg, uintptr_t at, size_t len),
			    void *arg)
{
	const size_t near = MRRC_PATCH_NEAR, size = MRRC_PATCH_FILLER;
	const uintptr_t word = mrrc_patch_word((const uint8_t *) at,
					       at - image->start, number,
					       inside);
	uintptr_t found = image->start, end = image->end;

	if (!word || used(arg, word, sizeof(uint64_t)))
		return 0;
	if (at - found > near)
		found = at - near;
	if (end - at > near)
		end = at + near;
	/* it lies across two words: see patch_x86_64.c */
	if (at % sizeof(uint64_t) == sizeof(uint64_t) - 1) {
		found = at + MRRC_PATCH_FIXED;
		end = found + size <= end ? found + size : found;
	}
	while ((found = mrrc_code_filler(image, found, end, size))) {
		if ((found + size <= word ||
		     found >= word + sizeof(uint64_t)) &&
		    !used(arg, found, size))
			break;
		found++;
	}
	return found;
}

/* ---- placing ---- */

bool mrrc_sites_refused(uintptr_t at)
{
	unsigned i;

	for (i = 0; i < MRRC_SITES_MAX; i++) {
		if (sites[i].at == at && sites[i].ret)
			return true;
	}
	return false;
}

/* The site's own of before, else a free one; MRRC_SITES_MAX: there is none. */
static unsigned sites_slot(uintptr_t at)
{
	unsigned i, slot = MRRC_SITES_MAX;

	for (i = 0; i < MRRC_SITES_MAX; i++) {
		if (sites[i].at == at)
			return i;
		/* rather one that has a stub already */
		if (!sites[i].at && (slot == MRRC_SITES_MAX ||
				     (sites[i].stub && !sites[slot].stub)))
			slot = i;
	}
	return slot;
}

int mrrc_sites_place(uintptr_t at, long number, uintptr_t filler)
{
	const unsigned i = sites_slot(at);
	const struct mrrc_patch_code code = {
		.start = (uint8_t *) at,
		.len = 2,
		.filler = (uint8_t *) filler,
		.inside = true,
		.stub = i < MRRC_SITES_MAX ? sites[i].stub : NULL,
	};
	int ret;

	if (i == MRRC_SITES_MAX)
		return -ENOSPC;
	sites[i].at = at;
	ret = mrrc_patch_site(&code, (uint8_t *) at, number, &sites[i].patch);
	if (!ret) {
		sites[i].stub = sites[i].patch.stub;
		ret = mrrc_patch_on(&sites[i].patch);
	}
	sites[i].ret = ret;
	return ret;
}

static bool sites_there(void *arg, const struct mrrc_mapping *mapping)
{
	mrrc_sites_set *there = arg;
	unsigned i;

	for (i = 0; i < MRRC_SITES_MAX; i++) {
		if (sites[i].at >= mapping->start && sites[i].at < mapping->end)
			*there |= UINT64_C(1) << i;
	}
	return true;
}

/* Code that cannot be executed just now is there, too: it may be again. */
void mrrc_sites_sweep(void)
{
	mrrc_sites_set there = 0;
	unsigned i;

	if (!mrrc_mappings_each(sites_there, &there))
		return;
	for (i = 0; i < MRRC_SITES_MAX; i++) {
		if (there >> i & 1)
			continue;
		sites[i].at = 0;
		sites[i].ret = 0;
		sites[i].patch = (struct mrrc_patch){ 0 };
	}
}

unsigned mrrc_sites_count(void)
{
	unsigned i, count = 0;

	for (i = 0; i < MRRC_SITES_MAX; i++)
		count += sites[i].at != 0;
	return count;
}
