/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hooks the system calls of libc and the dynamic loader that are not in the
 * functions hooked by name (prove.h).
 */
#include "config.h"
#include "sys/proof/prove.h"

#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

#include "sys/proof/code_kept.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/hooks/patch.h"
#include "sys/proof/prove_site.h"

struct prove_seal {
	struct mrrc_prove_file file;
	const struct mrrc_code_copy *copy;
	const struct mrrc_code_place *place;
};

/*
 * Do patches of ours or of others use these bytes? The copy has none of ours.
 */
static bool prove_seal_uses(void *arg, uintptr_t at, size_t len)
{
	const struct prove_seal *seal = arg;
	const uintptr_t live = mrrc_code_live(seal->copy, at);

	return mrrc_libc_hooks_use(live, len) ||
	       memcmp((const void *) live, (const void *) at, len);
}

/*
 * Finds filler for the jump from the system call to its stub: bytes that no
 * other patch uses. 0: there are no such bytes.
 */
static uintptr_t prove_seal_filler(struct prove_seal *seal,
				   const struct mrrc_code_site *site)
{
	const struct mrrc_code_image *const image = &seal->copy->image;
	const size_t near = MRRC_PATCH_NEAR, size = MRRC_PATCH_FILLER;
	const uintptr_t at = site->at;
	const uintptr_t word = mrrc_patch_word((const uint8_t *) at,
					       at - image->start, site->number);
	uintptr_t found = image->start, end = image->end;

	if (!word || prove_seal_uses(seal, word, sizeof(uint64_t)))
		return 0;
	if (at - found > near)
		found = at - near;
	if (end - at > near)
		end = at + near;
	/* the instruction lies across two words: see patch_x86_64.c */
	if (at % sizeof(uint64_t) == sizeof(uint64_t) - 1) {
		found = at + MRRC_PATCH_FIXED;
		end = found + size <= end ? found + size : found;
	}
	while ((found = mrrc_code_filler(image, found, end, size))) {
		if ((found + size <= word ||
		     found >= word + sizeof(uint64_t)) &&
		    !prove_seal_uses(seal, found, size))
			break;
		found++;
	}
	return found;
}

static bool prove_seal_matters(void *arg, const struct mrrc_code_copy *copy,
			       const struct mrrc_code_site *site)
{
	struct prove_seal *seal = arg;

	return mrrc_prove_matters(&seal->file, copy, site);
}

static bool prove_seal_site(void *arg, const struct mrrc_code_copy *copy,
			    const struct mrrc_code_site *site)
{
	struct prove_seal *seal = arg;
	const uintptr_t at = mrrc_code_live(copy, site->at);
	uintptr_t filler;

	seal->copy = copy;
	if (!mrrc_libc_hooks_knows(site->number) || mrrc_libc_hooks_has(at))
		return true;
	filler = prove_seal_filler(seal, site);
	if (filler)
		filler = mrrc_code_live(seal->copy, filler);
	mrrc_libc_hooks_place((uint8_t *) at, site->number, seal->place->start,
			      seal->place->end, (uint8_t *) filler);
	return true;
}

static bool prove_seal_place(void *arg, const struct mrrc_code_place *place)
{
	const uintptr_t *addr = arg;
	struct prove_seal seal = {
		.file = { .path = place->name,
			  .libc = mrrc_prove_is_libc(place) },
		.place = place,
	};

	if (*addr >= place->lo && *addr < place->hi)
		mrrc_code_sites(place, prove_seal_matters, prove_seal_site,
				&seal);
	return true;
}

void mrrc_prove_seal(void)
{
	static bool done;
	uintptr_t addr[] = { (uintptr_t) pthread_self, getauxval(AT_BASE) };
	size_t i;

	if (done)
		return;
	done = true;
	mrrc_code_kept_open();
	for (i = 0; i < sizeof(addr) / sizeof(addr[0]); i++)
		mrrc_code_places(prove_seal_place, &addr[i]);
	mrrc_code_kept_close();
}
