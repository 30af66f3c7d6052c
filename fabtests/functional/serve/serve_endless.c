/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_serve_endless: runs fi_mrrc_serve with directories that have no end,
 * for test_serve.sh. The first letter of the path selects the kind of all
 * entries: "links", "files", "dirs".
 */
#include <stdio.h>

#include "serve/server/list.h"

/* Replaces the library's function, so that its object is not linked. */
enum serve_status list_page(const struct source *source, const char *path,
			    uint64_t *cursor, uint8_t *buf, size_t *len)
{
	char name[32];
	struct serve_entry entry = {
		.kind = *path == 'f' ? SERVE_FILE :
			*path == 'd' ? SERVE_DIR :
				       SERVE_OTHER,
		.name = name,
	};

	*len = 0;
	do {
		++*cursor;
		entry.name_len = (size_t) sprintf(name, "entry-%llu",
						  (unsigned long long) *cursor);
	} while (!serve_entry_add(&entry, buf, len));
	return SERVE_OK;
}
