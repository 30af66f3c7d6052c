/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The option -h, which all tools have in addition to argp's options. An option
 * letter, and a long name, mean the same in all tools, as util/test_options.sh
 * checks.
 */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

#include <argp.h>

/* The option's entry in a struct argp's children. */
extern const struct argp_child tool_options[];

#endif /* TOOL_OPTIONS_H */
