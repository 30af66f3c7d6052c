/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_stat --check: why does a program gain nothing? Tries the provider in
 * child processes (stat/probe.h), and looks at the machine's limits.
 */
#ifndef STAT_CHECK_H
#define STAT_CHECK_H

#include "stat/options.h"

/*
 * Of @options json. The exit status: 0, or 1 if the cache can't work.
 */
int stat_check(const struct stat_options *options);

#endif /* STAT_CHECK_H */
