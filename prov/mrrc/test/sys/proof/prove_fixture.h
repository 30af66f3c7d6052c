/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the tests of sys/proof/prove share: a hooked monitor, and libraries to be
 * loaded. In test_prove.c.
 */
#ifndef MRRC_PROVE_FIXTURE_H
#define MRRC_PROVE_FIXTURE_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

/* before "mon", which its parameters would hide */
#include "sys/monitor/mon.h"
#include "sys/hooks/trust.h"

extern struct mrrc_mon *mon;
extern size_t page;
extern char why[MRRC_TRUST_WHY];

void open_hooked(enum mrrc_mon_probe probe);
void setup(void);	/* trust has been given */
void setup_alone(void); /* the same without another thread */

/* As if lookups had asked often; within what a busy machine may take. */
bool trusted(bool wanted);

/* Not now, and not once it has been looked at: @text says why. */
void never_trusted(const char *text);

void *load(const char *name); /* next to this program */
char *map(int prot);	      /* a page */

/* A page that is watched, and known to a subscriber until it is unmapped. */
char *keep(void);
extern struct mrrc_range kept; /* zeros: none */
extern struct mrrc_mon_sub kept_sub;

/* The function of libc begins with a jump to the other from now on. */
void overwrite_near(const char *name, const char *to);

#endif /* MRRC_PROVE_FIXTURE_H */
