/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parsing text that users write (text.h).
 *
 * Locale-free: an application may have set one.
 */
#include "config.h"
#include "core/text.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define TEXT_MAX 64 /* characters compared: no parameter's name is longer */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* Digits into *value; what follows them into *end. */
static int parse_digits(const char *text, size_t *value, const char **end)
{
	size_t sum = 0;
	unsigned int digit;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	for (; *text >= '0' && *text <= '9'; text++) {
		digit = *text - '0';
		if (sum > (SIZE_MAX - digit) / 10)
			return -ERANGE;
		sum = sum * 10 + digit;
	}
	*value = sum;
	*end = text;
	return 0;
}

int mrrc_text_count(const char *text, size_t *count)
{
	const char *end;
	size_t value;
	int ret;

	ret = parse_digits(text, &value, &end);
	if (ret)
		return ret;
	if (*end)
		return -EINVAL;
	if (value == SIZE_MAX)
		return -ERANGE;
	*count = value;
	return 0;
}

int mrrc_text_size(const char *text, size_t *bytes)
{
	static const char suffixes[] = "kmgt";
	const char *end, *suffix;
	unsigned int shift = 0;
	size_t value;
	int ret;

	ret = parse_digits(text, &value, &end);
	if (ret)
		return ret;
	if (*end) {
		suffix = strchr(suffixes, lower(*end));
		if (!suffix || end[1])
			return -EINVAL;
		shift = 10 * (suffix - suffixes + 1);
	}
	if (value == SIZE_MAX || value > SIZE_MAX >> shift)
		return -ERANGE;
	*bytes = value << shift;
	return 0;
}

/* Levenshtein's, by rows: row[j] is the distance of a's start to b's j. */
size_t mrrc_text_distance(const char *a, const char *b)
{
	size_t row[TEXT_MAX + 1], len = strnlen(b, TEXT_MAX);
	size_t i, j, diagonal, above, best;

	for (j = 0; j <= len; j++)
		row[j] = j;
	for (i = 0; a[i] && i < TEXT_MAX; i++) {
		diagonal = row[0];
		row[0] = i + 1;
		for (j = 1; j <= len; j++) {
			above = row[j];
			best = diagonal + (lower(a[i]) != lower(b[j - 1]));
			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = above;
			row[j] = best;
		}
	}
	return row[len];
}

size_t mrrc_text_nearest(const char *text, const char *const *names, size_t cnt)
{
	size_t i, distance, best = 0, best_distance = SIZE_MAX;

	for (i = 0; i < cnt; i++) {
		distance = mrrc_text_distance(text, names[i]);
		if (distance < best_distance) {
			best = i;
			best_distance = distance;
		}
	}
	return best;
}
