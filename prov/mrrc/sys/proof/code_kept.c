/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps the system calls found in code, in memory and in a file of the user
 * (code_kept.h).
 */
#include "config.h"
#include "sys/proof/code_kept.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef HAVE_ZYDIS
#include <Zydis/Zydis.h>
#endif

#include "core/text/hash.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/base/mappings.h"
#include "sys/base/own_file.h"

#define KEPT  1024 /* files; a full table drops all files */
#define SITES 29   /* system calls that are kept of one file */
#define LANES 4
#define ODD   0x9e3779b97f4a7c15

struct kept_key {
	uint64_t word[2];
};

/* A system call's offset from the image's base, and its number. */
struct kept_site {
	uint32_t at;
	int32_t number;
};

struct kept_entry {
	struct kept_key key;
	uint64_t count;
	struct kept_site site[SITES];
};

static struct {
	char path[PATH_MAX];
	bool none;	       /* no file, until a path is named */
	int fd;		       /* -1: there is no file */
	struct kept_key rules; /* key of this library and the decoder */
	bool ruled;	       /* @rules is known */
	struct kept_entry entry[KEPT];
	size_t count;
} kept = { .fd = -1, .none = true };

void mrrc_code_kept_at(const char *path)
{
	kept.none = path && !*path;
	snprintf(kept.path, sizeof(kept.path), "%s", path ? path : "");
}

/* ---- the file ---- */

/* Is this a folder that no other user can write to? */
static bool kept_dir(const char *dir)
{
	struct stat st;

	return (!mkdir(dir, 0700) || errno == EEXIST) && !lstat(dir, &st) &&
	       S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 022);
}

static bool kept_default(void)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME");
	const char *home = secure_getenv("HOME");
	char *const path = kept.path;
	int len;

	if (cache && *cache == '/')
		len = snprintf(path, PATH_MAX, "%s", cache);
	else if (home && *home == '/')
		len = snprintf(path, PATH_MAX, "%s/.cache", home);
	else
		return false;
	if (len < 0 || (size_t) len + sizeof("/ofi_mrrc/code") > PATH_MAX ||
	    !kept_dir(path))
		return false;
	strcat(path, "/ofi_mrrc");
	if (!kept_dir(path))
		return false;
	strcat(path, "/code");
	return true;
}

void mrrc_code_kept_close(void)
{
	if (kept.fd >= 0)
		close(kept.fd);
	kept.fd = -1;
}

/* Can another user write to the file, and so say what code is harmless? */
static bool kept_open_to_others(void)
{
	struct stat st;

	return fstat(kept.fd, &st) || st.st_mode & 022;
}

/* ---- keys ---- */

static void key_add(struct kept_key *key, uint64_t value)
{
	key->word[0] = mrrc_hash(key->word[0] ^ value);
	key->word[1] = mrrc_hash(key->word[1] + ~value);
}

/*
 * Adds the identity of a file. false: the file's times may not tell its
 * versions apart. A time of change without nanoseconds is an image's, as of
 * squashfs, whose builder may give all versions of a file the same times.
 */
static bool key_file(struct kept_key *key, const struct stat *st)
{
	key_add(key, st->st_dev);
	key_add(key, st->st_ino);
	key_add(key, (uint64_t) st->st_size);
	key_add(key, (uint64_t) st->st_mtim.tv_sec);
	key_add(key, (uint64_t) st->st_mtim.tv_nsec);
	key_add(key, (uint64_t) st->st_ctim.tv_sec);
	key_add(key, (uint64_t) st->st_ctim.tv_nsec);
	return st->st_ctim.tv_nsec;
}

struct key_search {
	uintptr_t at;
	struct stat st; /* the file mapped at @at */
	bool found;
};

static bool key_mapped(void *arg, const struct mrrc_mapping *mapping)
{
	struct key_search *search = arg;

	if (search->at < mapping->start || search->at >= mapping->end)
		return true;
	search->found = mapping->name[0] == '/' &&
			!stat(mapping->name, &search->st);
	return false;
}

/*
 * Adds the identity of the file that a function is mapped from to a key. Does
 * not use dladdr(3), which waits for a thread that is inside dlopen(3) or
 * dlclose(3); that thread may be waiting for this one.
 */
static bool key_code(struct kept_key *key, const void *function)
{
	struct key_search search = { .at = (uintptr_t) function };

	mrrc_mappings_each(key_mapped, &search);
	return search.found && key_file(key, &search.st);
}

/* Sets the part of keys that names this library and the decoder. */
static void key_rules(void)
{
	kept.rules = (struct kept_key){ 0 };
	kept.ruled = key_code(&kept.rules,
			      (const void *) (uintptr_t) mrrc_code_kept_close);
#ifdef HAVE_ZYDIS
	kept.ruled = kept.ruled &&
		     key_code(&kept.rules,
			      (const void *) (uintptr_t) ZydisDecoderInit);
#endif
}

static bool key_own(void *arg, uintptr_t at)
{
	return false;
}

/* Adds the identity of the file that holds the code. */
static bool key_identity(const struct mrrc_code_place *place,
			 struct kept_key *key)
{
	struct stat st;

	*key = kept.rules;
	if (!kept.ruled || !mrrc_code_stat(place, &st) || !key_file(key, &st))
		return false;
	key_add(key, place->offset);
	key_add(key, place->end - place->start);
	key_add(key, place->start - place->lo);
	key_add(key, place->hi - place->lo);
	return true;
}

/*
 * Adds bytes to the key. Each step can be reversed, so that every byte matters.
 */
static void key_bytes(struct kept_key *key, uintptr_t start, uintptr_t end)
{
	uint64_t lane[LANES] = { 0 }, word[LANES];
	size_t len = end - start;
	unsigned i;

	while (len) {
		memset(word, 0, sizeof(word));
		memcpy(word, (const void *) (end - len),
		       len < sizeof(word) ? len : sizeof(word));
		for (i = 0; i < LANES; i++)
			lane[i] = mrrc_rotl(lane[i] ^ word[i], 29) * ODD;
		len -= len < sizeof(word) ? len : sizeof(word);
	}
	for (i = 0; i < LANES; i++)
		key_add(key, lane[i]);
}

void mrrc_code_kept_open(void)
{
	ssize_t len;

	key_rules();
	kept.none = kept.none || (!*kept.path && !kept_default());
	kept.fd = kept.none ? -1 :
			      mrrc_own_file_open(kept.path, O_RDWR | O_APPEND);
	if (kept.fd >= 0 && kept_open_to_others())
		mrrc_code_kept_close();
	if (kept.fd < 0)
		return;
	len = pread(kept.fd, kept.entry, sizeof(kept.entry), 0);
	/*
	 * empties the file if it is full, or if another process wrote only a
	 * part of an entry
	 */
	if (len < 0 || (size_t) len == sizeof(kept.entry) ||
	    len % sizeof(*kept.entry)) {
		len = 0;
		if (ftruncate(kept.fd, 0))
			mrrc_code_kept_close();
	}
	kept.count = (size_t) len / sizeof(*kept.entry);
}

/* ---- entries ---- */

/* The kept findings of a key; NULL: no findings are kept. */
static const struct kept_entry *kept_get(const struct kept_key *key)
{
	size_t i;

	for (i = 0; i < kept.count; i++) {
		if (!memcmp(&kept.entry[i].key, key, sizeof(*key)) &&
		    kept.entry[i].count <= SITES)
			return &kept.entry[i];
	}
	return NULL;
}

static void kept_put(const struct kept_entry *entry)
{
	if (kept.count == KEPT)
		kept.count = 0;
	kept.entry[kept.count++] = *entry;
	if (kept.fd >= 0 && write(kept.fd, entry, sizeof(*entry)) < 0)
		mrrc_code_kept_close();
}

/* ---- looking ---- */

struct kept_look {
	const struct mrrc_code_copy *copy;
	mrrc_code_kept_site matters, each;
	void *arg;
	struct kept_entry entry;
	bool keeps; /* all findings can be kept */
	bool told;  /* the caller wants no more */
};

static bool kept_found(void *arg, const struct mrrc_code_site *site)
{
	struct kept_look *look = arg;

	if (!look->matters(look->arg, look->copy, site))
		return true;
	/*
	 * keeps a call whose number is not known only if it is hooked, as the
	 * call in syscall(2): for other calls the reason has to be found and
	 * reported each time
	 */
	look->keeps =
		look->keeps && look->entry.count < SITES &&
		(site->number != MRRC_CODE_ANY ||
		 mrrc_libc_hooks_has(mrrc_code_live(look->copy, site->at)));
	if (look->keeps)
		look->entry.site[look->entry.count++] = (struct kept_site){
			.at = (uint32_t) (site->at - look->copy->image.base),
			.number = (int32_t) site->number,
		};
	look->told = look->told || !look->each(look->arg, look->copy, site);
	return look->keeps || !look->told;
}

/* Decodes the copy, unless its findings are kept. */
static int kept_look(struct kept_look *look)
{
	const struct kept_entry *const known =
		look->keeps ? kept_get(&look->entry.key) : NULL;
	struct mrrc_code_counts counts;
	struct mrrc_code_site site;
	unsigned i;
	int ret;

	for (i = 0; known && i < known->count; i++) {
		site = (struct mrrc_code_site){
			.at = look->copy->image.base + known->site[i].at,
			.number = known->site[i].number,
			.why = "the number is not known",
		};
		if (!look->each(look->arg, look->copy, &site))
			break;
	}
	if (known)
		return 0;
	ret = mrrc_code_look(&look->copy->image, kept_found, look, &counts);
	if (!ret && look->keeps)
		kept_put(&look->entry);
	return ret;
}

int mrrc_code_sites(const struct mrrc_code_place *place,
		    mrrc_code_kept_site matters, mrrc_code_kept_site each,
		    void *arg)
{
	struct mrrc_code_copy copy;
	struct kept_look look = {
		.copy = &copy, .matters = matters, .each = each, .arg = arg
	};
	const struct kept_entry *known;
	bool same;
	int ret;

	look.keeps = key_identity(place, &look.entry.key);
	same = look.keeps &&
	       mrrc_code_own(place->start, place->end, key_own, NULL);
	known = same ? kept_get(&look.entry.key) : NULL;
	if (known && !known->count)
		return 0;
	ret = mrrc_code_copy(place, &copy);
	if (ret)
		return ret;
	if (look.keeps && !same)
		key_bytes(&look.entry.key, copy.image.start, copy.image.end);
	ret = kept_look(&look);
	mrrc_code_free(&copy);
	return ret;
}
