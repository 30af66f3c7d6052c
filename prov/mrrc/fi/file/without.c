/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Linked by configure --disable-files in place of the other files of this folder:
 * no domain has fi_mrrc_file(3).
 */
#include "config.h"
#include "fi/file/file.h"

void mrrc_file_calls_init(void)
{
}
