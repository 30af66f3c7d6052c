/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_get --list (serve/client/get.h).
 */
#include "config.h"
#include "serve/client/get.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/wire/path.h"

/*
 * Maximum number of entries that are sorted: a server may list any number of
 * entries.
 */
#define LIST_SORTED 100000

struct list {
	struct serve_entry *entry; /* names are copies */
	size_t count, room;
};

static void print_json(struct get *get, const char *source,
		       const struct serve_entry *entry)
{
	static const char *const type[] = { [SERVE_FILE] = "file",
					    [SERVE_DIR] = "directory",
					    [SERVE_SYMLINK] = "link",
					    [SERVE_OTHER] = "other" };
	json_t *item = json_object();

	json_object_set_new(item, "source",
			    get_json_text(source, strlen(source)));
	json_object_set_new(item, "name",
			    get_json_text(entry->name, entry->name_len));
	json_object_set_new(item, "type", json_string(type[entry->kind]));
	if (entry->kind == SERVE_FILE)
		json_object_set_new(item, "bytes", get_json_count(entry->size));
	get_json_item(get, item);
}

static void print(struct get *get, const char *source,
		  const struct serve_entry *entry)
{
	const enum serve_kind kind = entry->kind;
	char *shown;

	if (get->options->json) {
		print_json(get, source, entry);
		return;
	}
	shown = path_shown(entry->name, entry->name_len);
	if (kind == SERVE_FILE)
		printf("%16" PRIu64 " %s\n", entry->size, shown ? shown : "");
	else
		printf("%16s %s%s\n", "-", shown ? shown : "",
		       kind == SERVE_DIR ? "/" : "@");
	free(shown);
}

/* Lists a source that is a file */
static int list_file(struct get *get, const char *path,
		     enum serve_status *status)
{
	struct serve_msg msg = {
		.type = SERVE_OPEN,
		.path = path,
		.path_len = strlen(path),
	};
	struct session_pipe *pipe = session_idle(&get->session);
	int ret;

	ret = session_request(&get->session, pipe, &msg);
	if (!ret)
		ret = session_wait(&get->session, pipe);
	if (ret)
		return ret;
	*status = pipe->answer.status;
	if (*status == SERVE_OK)
		print(get, path,
		      &(struct serve_entry){ SERVE_FILE,
					     pipe->answer.ident.size, path,
					     strlen(path) });
	session_release(pipe);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct serve_entry *one = a, *other = b;

	return strcmp(one->name, other->name);
}

static void list_print(struct get *get, const char *path, struct list *list)
{
	size_t i;

	if (list->count)
		qsort(list->entry, list->count, sizeof(*list->entry), by_name);
	for (i = 0; i < list->count; i++) {
		print(get, path, &list->entry[i]);
		free((char *) list->entry[i].name);
	}
	list->count = 0;
}

static int list_add(struct get *get, const char *path, struct list *list,
		    const struct serve_entry *entry)
{
	struct serve_entry *more;
	const char *name;

	if (list->count == LIST_SORTED)
		list_print(get, path, list);
	if (list->count == list->room) {
		list->room = list->room ? 2 * list->room : 64;
		more = reallocarray(list->entry, list->room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		list->entry = more;
	}
	name = strndup(entry->name, entry->name_len);
	if (!name)
		return -ENOMEM;
	list->entry[list->count] = *entry;
	list->entry[list->count++].name = name;
	return 0;
}

static int list_dir(struct get *get, const char *path,
		    enum serve_status *status)
{
	struct list list = { 0 };
	const struct serve_msg *answer;
	struct session_pipe *pipe;
	struct serve_entry entry;
	const uint8_t *entries;
	uint64_t cursor = 0;
	size_t len;
	int ret;

	do {
		ret = tree_page(&get->session, path, cursor, &pipe);
		if (ret)
			break;
		answer = &pipe->answer;
		*status = answer->status;
		cursor = answer->cursor;
		entries = answer->entries;
		len = answer->entries_len;
		while (!ret && !serve_entry_next(&entries, &len, &entry)) {
			ret = tree_count(&get->tree);
			if (!ret)
				ret = list_add(get, path, &list, &entry);
		}
		session_release(pipe);
	} while (!ret && *status == SERVE_OK && cursor);
	list_print(get, path, &list);
	free(list.entry);
	if (ret)
		return ret;
	return *status == SERVE_NOT_DIR ? list_file(get, path, status) : 0;
}

int get_list(struct get *get)
{
	const struct get_options *options = get->options;
	enum serve_status status = SERVE_OK;
	int ret = 0, result = EXIT_SUCCESS;
	size_t i;

	for (i = 0; i < options->paths && !ret; i++) {
		ret = list_dir(get, options->path[i], &status);
		if (!ret && status != SERVE_OK) {
			get_complain(get, options->path[i],
				     serve_status_text(status));
			result = EXIT_FAILURE;
		}
	}
	if (ret)
		fprintf(stderr, "fi_mrrc_get: %s: %s\n", options->host,
			*get->session.err ? get->session.err : strerror(-ret));
	return ret ? EXIT_FAILURE : result;
}
