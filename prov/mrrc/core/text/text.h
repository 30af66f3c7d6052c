/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parsing text that users write: numbers, sizes, and misspelt names; and text
 * of other processes and files, which may be hostile.
 *
 * Part of core: pure functions of their arguments.
 */
#ifndef MRRC_TEXT_H
#define MRRC_TEXT_H

#include <stddef.h>

/*
 * Parses digits, and nothing else. -EINVAL: not a number; -ERANGE: the number
 * does not fit, or is SIZE_MAX, which callers use for "not set".
 */
int mrrc_text_count(const char *text, size_t *count);

/*
 * Reads a number of bytes: digits as for mrrc_text_count(), and perhaps a unit:
 * K, M, G or T, alone or with B or iB, in upper or lower case; a power of 1024.
 */
int mrrc_text_size(const char *text, size_t *bytes);

/*
 * Returns the number of insertions, deletions and changes from a to b; case
 * does not matter.
 */
size_t mrrc_text_distance(const char *a, const char *b);

/*
 * Returns the index of the name nearest to text, as a whole or word by word
 * ("_"); of equally near names the first. Returns @cnt if no name is like text:
 * more than a third of the letters of text would have to change.
 */
size_t mrrc_text_nearest(const char *text, const char *const *names,
			 size_t cnt);

/*
 * Replaces each byte that is not printable ASCII by '?', so that the text cannot
 * control a terminal.
 */
void mrrc_text_plain(char *text);

#endif /* MRRC_TEXT_H */
