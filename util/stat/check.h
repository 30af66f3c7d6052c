/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_stat --check: finds why a program gains nothing from ofi_mrrc. Tries
 * the provider in child processes (stat/probe.h), looks at the machine's
 * limits, and runs an application if there is one (stat/application.h).
 */
#ifndef STAT_CHECK_H
#define STAT_CHECK_H

#include "stat/options.h"

/*
 * Uses the fields what and json of @options. Returns the exit status of the
 * program: with an application the application's status, else 0, or 1 if the
 * cache cannot work. With an application, the findings are printed on standard
 * error, since standard output is the application's.
 */
int stat_check(const struct stat_options *options);

#endif /* STAT_CHECK_H */
