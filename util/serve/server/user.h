/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The user that the server runs as, once all objects that need root are open.
 */
#ifndef SERVE_USER_H
#define SERVE_USER_H

#include <sys/types.h>

struct user {
	const char *name;
	uid_t uid;
	gid_t gid;
};

/* Finds a user by name or number; -ENOENT if there is no such user. */
int user_find(const char *name, struct user *user);

/*
 * Changes all threads permanently to this user, with the user's groups. Returns
 * 0, or a negative errno.
 */
int user_become(const struct user *user);

#endif /* SERVE_USER_H */
