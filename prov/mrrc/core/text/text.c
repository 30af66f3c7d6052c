/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parsing text that users write (text.h).
 *
 * The parser ignores the locale, which an application may have set.
 */
#include "config.h"
#include "core/text/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TEXT_MAX 64 /* characters compared: no parameter's name is longer */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* Parses digits into *value; sets *end to the text after them. */
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

/* Is @text the end of a unit, after K, M, G or T: nothing, B or iB? */
static bool is_unit(const char *text)
{
	if (lower(*text) == 'i' && text[1])
		text++;
	return !*text || (lower(*text) == 'b' && !text[1]);
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
		if (!suffix || !is_unit(end + 1))
			return -EINVAL;
		shift = 10 * (suffix - suffixes + 1);
	}
	if (value == SIZE_MAX || value > SIZE_MAX >> shift)
		return -ERANGE;
	*bytes = value << shift;
	return 0;
}

/*
 * Returns the Levenshtein distance, computed by rows: row[j] is the distance
 * from a prefix of a to the first j characters of b.
 */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t row[TEXT_MAX + 1];
	size_t i, j, diagonal, above, best;

	for (j = 0; j <= b_len; j++)
		row[j] = j;
	for (i = 0; i < a_len; i++) {
		diagonal = row[0];
		row[0] = i + 1;
		for (j = 1; j <= b_len; j++) {
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
	return row[b_len];
}

size_t mrrc_text_distance(const char *a, const char *b)
{
	return distance(a, strnlen(a, TEXT_MAX), b, strnlen(b, TEXT_MAX));
}

/*
 * Reads the word of at most TEXT_MAX characters at @text, up to "_"; returns
 * the text after the word.
 */
static const char *next_word(const char *text, size_t *len)
{
	*len = strcspn(text, "_");
	text += *len;
	if (*len > TEXT_MAX)
		*len = TEXT_MAX;
	return *text ? text + 1 : text;
}

/*
 * Returns the distance from @word to the nearest word of @name; *cnt: the
 * number of words of @name
 */
static size_t word_distance(const char *word, size_t len, const char *name,
			    size_t *cnt)
{
	size_t best = SIZE_MAX, cur, name_len;
	const char *next;

	for (*cnt = 0; *name; name = next, (*cnt)++) {
		next = next_word(name, &name_len);
		cur = distance(word, len, name, name_len);
		if (cur < best)
			best = cur;
	}
	return best;
}

/*
 * Returns the distance word by word; a word of name that text lacks counts as
 * one character.
 */
static size_t words_distance(const char *text, const char *name)
{
	size_t sum = 0, words = 0, name_words = 0, len;
	const char *next;

	for (; *text; text = next, words++) {
		next = next_word(text, &len);
		sum += word_distance(text, len, name, &name_words);
	}
	return name_words > words ? sum + name_words - words : sum;
}

size_t mrrc_text_nearest(const char *text, const char *const *names, size_t cnt)
{
	const size_t len = strnlen(text, TEXT_MAX);
	size_t i, cur, words, best = cnt, best_distance = len / 3 + !!len;

	for (i = 0; i < cnt; i++) {
		cur = mrrc_text_distance(text, names[i]);
		words = words_distance(text, names[i]);
		if (words < cur)
			cur = words;
		if (cur < best_distance) {
			best = i;
			best_distance = cur;
		}
	}
	return best;
}

void mrrc_text_plain(char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}
