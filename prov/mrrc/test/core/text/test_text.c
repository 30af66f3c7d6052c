/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core/text/text: numbers, sizes, and names with spelling errors. */
#include <stdint.h>

#include "core/text/text.h"
#include "test/case.h"

#define UNTOUCHED 77

static const struct {
	const char *text;
	int ret;
	size_t value;
} counts[] = {
	{ "0", 0, 0 },
	{ "1", 0, 1 },
	{ "00012", 0, 12 },
	{ "1048576", 0, 1048576 },
	{ "18446744073709551614", 0, SIZE_MAX - 1 },
	{ "18446744073709551615", -ERANGE, 0 },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "99999999999999999999999", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "+1", -EINVAL, 0 },
	{ " 1", -EINVAL, 0 },
	{ "1 ", -EINVAL, 0 },
	{ "0x10", -EINVAL, 0 },
	{ "1K", -EINVAL, 0 },
	{ "many", -EINVAL, 0 },
}, sizes[] = {
	{ "0", 0, 0 },
	{ "0T", 0, 0 },
	{ "4096", 0, 4096 },
	{ "1K", 0, 1024 },
	{ "1k", 0, 1024 },
	{ "4M", 0, 4194304 },
	{ "4m", 0, 4194304 },
	{ "3G", 0, 3221225472 },
	{ "2t", 0, 2199023255552 },
	{ "16777215T", 0, 18446742974197923840U },
	{ "16777216T", -ERANGE, 0 },
	{ "18446744073709551615", -ERANGE, 0 },
	{ "18446744073709551615K", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "M", -EINVAL, 0 },
	{ "-4M", -EINVAL, 0 },
	{ "4MB", 0, 4194304 },
	{ "4MiB", 0, 4194304 },
	{ "1GB", 0, 1073741824 },
	{ "1gib", 0, 1073741824 },
	{ "4Mi", -EINVAL, 0 },
	{ "4MBs", -EINVAL, 0 },
	{ "4MBB", -EINVAL, 0 },
	{ "4MiiB", -EINVAL, 0 },
	{ "4B", -EINVAL, 0 },
	{ "4 M", -EINVAL, 0 },
	{ "1.5G", -EINVAL, 0 },
	{ "4P", -EINVAL, 0 },
	{ "unlimited", -EINVAL, 0 },
};

TEST_CASE(text, NULL, NULL);

EACH_TEST(test_count, counts)
{
	size_t value = UNTOUCHED;
	int ret;

	ret = mrrc_text_count(counts[_i].text, &value);
	ck_assert_int_eq(ret, counts[_i].ret);
	ck_assert_uint_eq(value, ret ? UNTOUCHED : counts[_i].value);
}

EACH_TEST(test_size, sizes)
{
	size_t value = UNTOUCHED;
	int ret;

	ret = mrrc_text_size(sizes[_i].text, &value);
	ck_assert_int_eq(ret, sizes[_i].ret);
	ck_assert_uint_eq(value, ret ? UNTOUCHED : sizes[_i].value);
}

TEST(test_plain)
{
	char text[] = "\x01\033[2J \n\t~\x7f\x80\xff.";

	mrrc_text_plain(text);
	ck_assert_str_eq(text, "??[2J ??~???.");
}

TEST(test_distance)
{
	ck_assert_uint_eq(mrrc_text_distance("", ""), 0);
	ck_assert_uint_eq(mrrc_text_distance("", "abc"), 3);
	ck_assert_uint_eq(mrrc_text_distance("abc", ""), 3);
	ck_assert_uint_eq(mrrc_text_distance("abc", "abc"), 0);
	ck_assert_uint_eq(mrrc_text_distance("abc", "ABC"), 0);
	ck_assert_uint_eq(mrrc_text_distance("abc", "abd"), 1);
	ck_assert_uint_eq(mrrc_text_distance("abc", "bc"), 1);
	ck_assert_uint_eq(mrrc_text_distance("bc", "abc"), 1);
	ck_assert_uint_eq(mrrc_text_distance("kitten", "sitting"), 3);
	ck_assert_uint_eq(mrrc_text_distance("sitting", "kitten"), 3);
}

/* A text longer than any name is cut, without an overrun. */
TEST(test_distance_long)
{
	char text[1000];
	size_t i;

	for (i = 0; i < sizeof(text) - 1; i++)
		text[i] = 'x';
	text[i] = '\0';
	ck_assert_uint_eq(mrrc_text_distance(text, text), 0);
	ck_assert_uint_eq(mrrc_text_distance(text, ""), 64);
	ck_assert_uint_eq(mrrc_text_distance("", text), 64);
	ck_assert_uint_eq(mrrc_text_distance("yy", text), 64);
}

TEST(test_nearest)
{
	static const char *const names[] = {
		"register", "cache_max_size", "cache_max_count",
		"policy",   "monitor",
	};
	static const char *const more[] = {
		"trace",
		"trace_size",
		"cache_max_size",
		"alloc_idle",
	};

	ck_assert_uint_eq(mrrc_text_nearest("REGISTER", names, 5), 0);
	ck_assert_uint_eq(mrrc_text_nearest("regster", names, 5), 0);
	ck_assert_uint_eq(mrrc_text_nearest("max_size", names, 5), 1);
	ck_assert_uint_eq(mrrc_text_nearest("CACHE_SIZE", names, 5), 1);
	ck_assert_uint_eq(mrrc_text_nearest("cache_max_cnt", names, 5), 2);
	ck_assert_uint_eq(mrrc_text_nearest("polices", names, 5), 3);
	ck_assert_uint_eq(mrrc_text_nearest("mr_monitor", names, 5), 4);
	/* Names are compared word by word. */
	ck_assert_uint_eq(mrrc_text_nearest("MAX_SIZE", more, 4), 2);
	ck_assert_uint_eq(mrrc_text_nearest("TRACE_SIZ", more, 4), 1);
	ck_assert_uint_eq(mrrc_text_nearest("idle", more, 4), 3);
	/* Of equally near names, the first is returned. */
	ck_assert_uint_eq(mrrc_text_nearest("cache_max", names, 5), 1);
	/* No name is near enough: at most a third may be wrong. */
	ck_assert_uint_eq(mrrc_text_nearest("__", more, 4), 4);
	ck_assert_uint_eq(mrrc_text_nearest("x", names, 5), 5);
	ck_assert_uint_eq(mrrc_text_nearest("polxxy", names, 5), 3);
	ck_assert_uint_eq(mrrc_text_nearest("poxxxy", names, 5), 5);
	ck_assert_uint_eq(mrrc_text_nearest("", names, 5), 5);
}
