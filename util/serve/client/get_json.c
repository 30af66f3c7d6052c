/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_get --format=json (serve/get.h).
 */
#include "config.h"
#include "serve/client/get.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/wire/path.h"

json_t *get_json_text(const char *text, size_t len)
{
	char *shown = path_shown(text, len);
	json_t *made = json_string(shown ? shown : "");

	free(shown);
	return made;
}

static void dump(json_t *value, size_t flags)
{
	char *text = json_dumps(value, flags);

	fputs(text ? text : "null", stdout);
	free(text);
	json_decref(value);
}

void get_json_item(struct get *get, json_t *item)
{
	printf(get->items ? ",\n  " : "{\n \"%s\": [\n  ",
	       get->options->list ? "entries" : "paths");
	get->items = true;
	dump(item, JSON_ENCODE_ANY);
}

void get_json_message(struct get *get, json_t *path, const char *why)
{
	json_t *message = json_object();

	if (!get->messages)
		get->messages = json_array();
	json_object_set_new(message, "path", path);
	json_object_set_new(message, "message", json_string(why));
	json_array_append_new(get->messages, message);
}

json_t *get_json_count(uint64_t value)
{
	return json_integer(value < INT64_MAX ? (json_int_t) value : INT64_MAX);
}

static void set_count(json_t *to, const char *key, uint64_t value)
{
	json_object_set_new(to, key, get_json_count(value));
}

void get_json_end(struct get *get, const char *error, int status)
{
	const struct progress *progress = &get->progress;
	json_t *end = json_object();
	char *text;

	if (!get->options->list) {
		set_count(end, "files", progress->files);
		set_count(end, "bytes", progress->bytes);
		set_count(end, "files_same", progress->same);
		set_count(end, "bytes_resumed", progress->resumed);
		set_count(end, "links_left_out", get->tree.links);
		set_count(end, "others_left_out", get->tree.left_out);
		set_count(end, "failed", get->failed);
		json_object_set_new(end, "seconds",
				    json_real(
					    progress->started ?
						    progress_seconds(progress) :
						    0));
	}
	json_object_set_new(end, "messages",
			    get->messages ? get->messages : json_array());
	set_count(end, "messages_not_listed",
		  get->complaints > GET_COMPLAINTS ?
			  get->complaints - GET_COMPLAINTS :
			  0);
	if (*error)
		json_object_set_new(end, "error",
				    get_json_text(error, strlen(error)));
	json_object_set_new(end, "status", json_integer(status));
	text = json_dumps(end, JSON_INDENT(1));
	/* continues the object that the items have begun */
	printf("%s%s\n", get->items ? "\n ],\n" : "",
	       !text	  ? "null" :
	       get->items ? text + 2 :
			    text);
	free(text);
	json_decref(end);
	get->messages = NULL;
}
