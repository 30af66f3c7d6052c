/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Linked in place of the other files of this folder except trust.c if configure
 * was called with --disable-hooks: there are no hooks.
 */
#include "config.h"
#include "sys/hooks/libc_hooks.h"

#include <errno.h>
#include <string.h>

int mrrc_libc_hooks_add(mrrc_libc_hooks_cb tell, void *arg, char *why)
{
	if (why)
		strcpy(why, "built without hooks");
	return -EOPNOTSUPP;
}

void mrrc_libc_hooks_remove(void *arg)
{
}

void mrrc_libc_hooks_forked(void)
{
}

void mrrc_libc_hooks_mark(uintptr_t start, size_t len)
{
}

void mrrc_libc_hooks_unmark(uintptr_t addr)
{
}

bool mrrc_libc_hooks_count(const void *arg, size_t calls)
{
	return false;
}

bool mrrc_libc_hooks_rely(enum mrrc_trust_mode mode)
{
	return false;
}

void mrrc_libc_hooks_check(void)
{
}

void mrrc_libc_hooks_state(struct mrrc_libc_hooks_state *state)
{
	*state = (struct mrrc_libc_hooks_state){ 0 };
}
