/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/text/stats: every counter has a name of its own and a text.
 */
#include "config.h"
#include "test/case.h"

#include "core/text/stats.h"

TEST_CASE(stats, NULL, NULL);

TEST(test_names)
{
	int i, j;

	for (i = 0; i < MRRC_STAT_CNT; i++) {
		ck_assert_str_ne(mrrc_stat_name(i), "");
		ck_assert_str_ne(mrrc_stat_text[i].help, "");
		for (j = 0; j < i; j++)
			ck_assert_str_ne(mrrc_stat_name(i), mrrc_stat_name(j));
	}
}
