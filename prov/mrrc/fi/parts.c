/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which parts the provider was built with (parts.h). */
#include "config.h"
#include <stdio.h>
#include <string.h>

#include "fi/parts.h"

/* Parts that are features of each domain */
static const char part_features[] = " hooks ";

static bool part_in(const char *list, const char *part)
{
	char word[16];

	return snprintf(word, sizeof(word), " %s ", part) <
		       (int) sizeof(word) &&
	       strstr(list, word);
}

bool mrrc_part(const char *part)
{
	return !part_in(MRRC_LEFT_OUT, part);
}

int mrrc_part_feature(const char *name)
{
	return part_in(part_features, name) && mrrc_part(name);
}
