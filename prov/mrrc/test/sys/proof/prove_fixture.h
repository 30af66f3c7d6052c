/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the tests of sys/proof/prove, defined in test_prove.c: a hooked
 * monitor, and libraries to be loaded.
 */
#ifndef MRRC_PROVE_FIXTURE_H
#define MRRC_PROVE_FIXTURE_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

/* These headers precede `mon`, which their parameters would shadow. */
#include "sys/monitor/mon.h"
#include "sys/hooks/trust.h"

extern struct mrrc_mon *mon;
extern size_t page;
extern char why[MRRC_TRUST_WHY];

void open_hooked(enum mrrc_mon_probe probe);
void setup(void);	/* opens mon, and waits until trust is given */
void setup_alone(void); /* like setup(), but without another thread */

/* Whether trust is or becomes @wanted, as if lookups had asked often. */
bool trusted(bool wanted);

/*
 * Checks that trust is not given, now or after a look at the code, and that the
 * reason contains @text.
 */
void never_trusted(const char *text);

void *load(const char *name); /* loads a library next to this program */
char *map(int prot);	      /* maps a page */

/* Maps and watches a page that a subscriber knows until it is unmapped. */
char *keep(void);
extern struct mrrc_range kept; /* the page's range; zeros: unmapped */
extern struct mrrc_mon_sub kept_sub;

/* Makes the function of libc begin with a jump to another function. */
void overwrite_near(const char *name, const char *to);

#endif /* MRRC_PROVE_FIXTURE_H */
