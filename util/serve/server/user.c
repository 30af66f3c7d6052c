/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Another user (serve/server/user.h).
 */
#include "config.h"
#include "serve/server/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

static const struct passwd *find(const char *name)
{
	const struct passwd *entry = getpwnam(name);
	unsigned long uid;
	char *end;

	if (entry || *name < '0' || *name > '9')
		return entry;
	uid = strtoul(name, &end, 10);
	return *end || uid != (uid_t) uid ? NULL : getpwuid((uid_t) uid);
}

int user_find(const char *name, struct user *user)
{
	const struct passwd *entry = find(name);

	if (!entry)
		return -ENOENT;
	*user = (struct user){ name, entry->pw_uid, entry->pw_gid };
	return 0;
}

int user_become(const struct user *user)
{
	/*
	 * by name, since several names may share one number, and differ in
	 * their groups
	 */
	const struct passwd *entry = find(user->name);

	if (!entry)
		return -ENOENT;
	if (initgroups(entry->pw_name, user->gid) ||
	    setresgid(user->gid, user->gid, user->gid) ||
	    setresuid(user->uid, user->uid, user->uid))
		return -errno;
	/* root must not come back */
	return user->uid && !setuid(0) ? -EPERM : 0;
}
