/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pages of a directory (serve/server/list.h).
 */
#include "config.h"
#include "serve/server/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/wire/path.h"
#include "serve/server/source.h"

/*
 * Describes an entry of a directory, without following a link. Returns false if
 * the entry is left out.
 */
static bool describe(int fd, const struct dirent64 *dirent,
		     struct serve_entry *entry)
{
	struct stat st;

	entry->name = dirent->d_name;
	entry->name_len = strlen(dirent->d_name);
	if (!serve_name_valid(entry->name, entry->name_len) ||
	    fstatat(fd, dirent->d_name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	entry->kind = S_ISREG(st.st_mode) ? SERVE_FILE :
		      S_ISDIR(st.st_mode) ? SERVE_DIR :
		      S_ISLNK(st.st_mode) ? SERVE_SYMLINK :
					    SERVE_OTHER;
	entry->size = S_ISREG(st.st_mode) ? (uint64_t) st.st_size :
		      S_ISDIR(st.st_mode) ? st.st_mode & SERVE_MODE :
					    0;
	return true;
}

/*
 * Fills a page with entries. Returns 1 when the page is full, 0 at the
 * directory's end, or a negative errno.
 */
static int fill(int fd, uint64_t *cursor, uint8_t *buf, size_t *len)
{
	char chunk[4096] __attribute__((aligned(8)));
	const struct dirent64 *dirent;
	struct serve_entry entry;
	ssize_t got, at;

	while ((got = getdents64(fd, chunk, sizeof(chunk))) > 0) {
		for (at = 0; at < got; at += dirent->d_reclen) {
			dirent = (const struct dirent64 *) (chunk + at);
			if (describe(fd, dirent, &entry) &&
			    serve_entry_add(&entry, buf, len))
				return 1;
			/* d_off is the position of the next entry */
			*cursor = (uint64_t) dirent->d_off;
		}
	}
	return got < 0 ? -errno : 0;
}

enum serve_status list_page(const struct source *source, const char *path,
			    uint64_t *cursor, uint8_t *buf, size_t *len)
{
	struct stat st;
	int fd, ret;

	*len = 0;
	fd = path_open_data(source->dir, path, source->others ? PATH_OTHERS : 0,
			    &st);
	if (fd < 0)
		return source_status(fd);
	if (!S_ISDIR(st.st_mode))
		ret = -ENOTDIR;
	else if (*cursor && lseek(fd, (off_t) *cursor, SEEK_SET) < 0)
		ret = -errno;
	else
		ret = fill(fd, cursor, buf, len);
	close(fd);
	if (ret == -ENOTDIR)
		return SERVE_NOT_DIR;
	if (ret < 0)
		return source_status(ret);
	if (!ret)
		*cursor = 0;
	return SERVE_OK;
}
