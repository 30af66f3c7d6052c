/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fake registrations (fake_reg.h). */
#include "config.h"
#include "test/fakes/fake_reg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FAKE_LIVE 0x6c697665u
#define FAKE_GONE 0x676f6e65u

struct fake_mr {
	unsigned magic;
	uintptr_t start;
	size_t len;
	enum mrrc_access access;
	atomic_int users;
};

static bool fake_hits(uintptr_t start, size_t len, uintptr_t from, uintptr_t to)
{
	return from < to && start < to && from < start + len;
}

static int fake_refuse(struct fake_reg *fake, uintptr_t start, size_t len,
		       enum mrrc_access access)
{
	int nth = atomic_load(&fake->fail_in);

	if (nth &&
	    atomic_compare_exchange_strong(&fake->fail_in, &nth, nth - 1) &&
	    nth == 1)
		return fake->fail_rc;
	if (fake_hits(start, len, fake->bad_start, fake->bad_end))
		return -EFAULT;
	if (access == MRRC_RW &&
	    fake_hits(start, len, fake->ro_start, fake->ro_end))
		return -EFAULT;
	if (fake->max_live && atomic_load(&fake->live) >= fake->max_live)
		return -ENOMEM;
	return 0;
}

static int fake_reg_reg(void *arg, uintptr_t start, size_t len,
			enum mrrc_access access, void **cookie, void **desc)
{
	struct fake_reg *fake = arg;
	struct fake_mr *mr;
	int ret;

	if (fake->hook)
		fake->hook(fake->hook_arg, start, len);
	ret = fake_refuse(fake, start, len, access);
	mr = ret ? NULL : malloc(sizeof(*mr));
	if (!mr) {
		atomic_fetch_add(&fake->fails, 1);
		return ret ? ret : -ENOMEM;
	}
	*mr = (struct fake_mr){ FAKE_LIVE, start, len, access, 0 };
	atomic_fetch_add(&fake->live, 1);
	atomic_fetch_add(&fake->live_bytes, len);
	atomic_fetch_add(&fake->regs, 1);
	*cookie = mr;
	*desc = mr;
	return 0;
}

static void fake_reg_dereg(void *arg, struct mrrc_region *const *regions,
			   size_t count)
{
	struct fake_reg *fake = arg;
	struct fake_mr *mr;
	size_t i;

	if (fake->on_dereg)
		fake->on_dereg();
	atomic_fetch_add(&fake->batches, 1);
	for (i = 0; i < count; i++) {
		mr = regions[i]->cookie;
		if (mr->magic != FAKE_LIVE || regions[i]->loose ||
		    atomic_load(&mr->users) || mr->start != regions[i]->start ||
		    mr->len != regions[i]->len) {
			fprintf(stderr, "fake_reg: wrong deregistration\n");
			abort();
		}
		mr->magic = FAKE_GONE;
		atomic_fetch_sub(&fake->live, 1);
		atomic_fetch_sub(&fake->live_bytes, mr->len);
		atomic_fetch_add(&fake->deregs, 1);
		free(mr);
	}
}

void fake_reg_use(const struct mrrc_region *region, int more)
{
	struct fake_mr *mr = region->cookie;

	if (mr->magic != FAKE_LIVE) {
		fprintf(stderr, "fake_reg: used when it is gone\n");
		abort();
	}
	atomic_fetch_add(&mr->users, more);
}

uintptr_t fake_reg_start(const struct mrrc_region *region)
{
	return ((struct fake_mr *) region->cookie)->start;
}

size_t fake_reg_len(const struct mrrc_region *region)
{
	return ((struct fake_mr *) region->cookie)->len;
}

enum mrrc_access fake_reg_access(const struct mrrc_region *region)
{
	return ((struct fake_mr *) region->cookie)->access;
}

const struct mrrc_reg_ops fake_reg_ops = {
	.reg = fake_reg_reg,
	.dereg = fake_reg_dereg,
};
