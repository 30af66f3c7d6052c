/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lists the entries of a directory, a page at a time. No state is kept between
 * pages: the kernel's position in the directory is the cursor.
 */
#ifndef SERVE_LIST_H
#define SERVE_LIST_H

#include "serve/wire/wire.h"

struct source;

/*
 * Writes the entries of a directory of the source, from *cursor on, to buf of
 * SERVE_MSG_MAX bytes, as serve_entry_add() makes them. *cursor becomes the
 * position of the next page, 0 after the last page. Files that the server may
 * not read are listed, too. The call may block.
 */
enum serve_status list_page(const struct source *source, const char *path,
			    uint64_t *cursor, uint8_t *buf, size_t *len);

#endif /* SERVE_LIST_H */
