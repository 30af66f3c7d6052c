/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts with which the provider was built (parts.h). */
#include "config.h"
#include <stdio.h>
#include <string.h>

#include <rdma/fi_ext_mrrc.h>

#include "fi/parts.h"
#include "fi/say.h"

/* Parts that are features of each domain */
static const char part_features[] = " helper hooks node record ";

static struct {
	const char *part, *ops;
	atomic_bool said;
} part_ops[] = {
	{ "alloc", FI_MRRC_ALLOC_OPS, false },
	{ "cw", FI_MRRC_CW_OPS, false },
	{ "files", FI_MRRC_FILE_OPS, false },
};

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

void mrrc_part_asked(const char *ops)
{
	size_t i;

	for (i = 0; i < sizeof(part_ops) / sizeof(*part_ops); i++) {
		if (!strcmp(ops, part_ops[i].ops) &&
		    !mrrc_part(part_ops[i].part))
			mrrc_say(&part_ops[i].said, FI_LOG_CORE,
				 "no operations \"%s\": built without %s", ops,
				 part_ops[i].part);
	}
}
