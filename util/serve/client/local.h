/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The client's copy of a file that is being fetched. Bytes are written in order
 * to a partial file next to the final name, so the partial file is always a
 * beginning of the whole file. The partial file is renamed to the file's name
 * when it is complete.
 */
#ifndef SERVE_LOCAL_H
#define SERVE_LOCAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "serve/wire/wire.h"

/* The permissions of fetched files */
struct local_perms {
	bool keep;   /* the original's permissions */
	mode_t mask; /* umask(2) to apply if permissions are not kept */
};

#define LOCAL_PREFIX   ".fi_mrrc_get."
#define LOCAL_PART_MAX (sizeof(LOCAL_PREFIX) + 16)

struct local {
	int dir; /* its directory */
	int fd;	 /* the partial file, or -1 */
	char name[SERVE_NAME_MAX + 1];
	char part[LOCAL_PART_MAX];
	uint64_t size; /* size of the partial file */
};

/* Is this the name of a partial file? */
bool local_is_part(const char *name, size_t len);

/*
 * Finds the file path beneath the directory dir, and creates nothing. @size
 * gets the size of an existing partial file, else 0. Returns 0, or a negative
 * errno.
 */
int local_find(int dir, const char *path, struct local *local);

/* Does the whole file exist already, with the size and time of ident? */
bool local_is_same(const struct local *local, const struct serve_ident *ident);

/*
 * Gives the existing complete file the permissions of ident. Fails if the file
 * has other names, perhaps outside of the directory, or is another user's; the
 * caller then fetches the file again.
 */
int local_set_perms(const struct local *local, const struct serve_ident *ident);

/*
 * Opens the partial file, or makes a new partial file. Returns -EBUSY if
 * another process fetches the file, -EPERM if the partial file is not a regular
 * file of this user.
 */
int local_begin(struct local *local);

/* Reads exactly len bytes of the partial file at off. */
int local_read(const struct local *local, uint64_t off, void *buf, size_t len);

/* Cuts the partial file. */
int local_cut(struct local *local, uint64_t size);

/* Appends to the partial file. An error leaves its contents unchanged. */
int local_append(struct local *local, const void *buf, size_t len);

/*
 * Sets the time, the permissions and the name of a partial file that has all
 * bytes. The permissions are ident's if permissions are kept, else the replaced
 * file's or, if no file is replaced, ident's less umask. If the bytes cannot be
 * written to the disk, the partial file is cut to length 0. With @sync the
 * bytes are on the disk when the call returns; the name is on the disk after
 * the caller has synced the directory.
 */
int local_finish(struct local *local, const struct serve_ident *ident,
		 const struct local_perms *perms, bool sync);

/* Keeps the partial file, unless it is empty. */
void local_close(struct local *local);

#endif /* SERVE_LOCAL_H */
