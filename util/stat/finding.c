/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See finding.h. */
#include "config.h"
#include "stat/finding.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"

#define COLUMNS 80
#define INDENT	6

static const char *const state_name[] = { "ok", "note", "bad" };

static void no_memory(void)
{
	fputs("fi_mrrc_stat: no memory\n", stderr);
	exit(EXIT_FAILURE);
}

/* JSON takes UTF-8 alone. */
static void make_text(char *text)
{
	json_t *const whole = json_string(text);

	if (!whole)
		mrrc_text_plain(text);
	json_decref(whole);
}

void stat_find(struct stat_findings *findings, enum stat_state state,
	       const char *about, const char *cure, const char *fmt, ...)
{
	struct stat_finding *finding;
	va_list args;

	findings->finding = reallocarray(findings->finding, findings->count + 1,
					 sizeof(*finding));
	if (!findings->finding)
		no_memory();
	finding = &findings->finding[findings->count++];
	*finding = (struct stat_finding){
		.state = state,
		.about = about,
		.cure = cure ? strdup(cure) : NULL,
	};
	va_start(args, fmt);
	if (vasprintf(&finding->says, fmt, args) < 0 ||
	    (cure && !finding->cure))
		no_memory();
	va_end(args);
	make_text(finding->says);
	if (cure)
		make_text(finding->cure);
}

enum stat_state stat_findings_worst(const struct stat_findings *findings)
{
	enum stat_state worst = STAT_OK;
	size_t i;

	for (i = 0; i < findings->count; i++) {
		if (findings->finding[i].state > worst)
			worst = findings->finding[i].state;
	}
	return worst;
}

/* Prints words from column @at on; words longer than a line stay whole. */
static void print_words(const char *text, size_t at, FILE *out)
{
	size_t len;

	while (*(text += strspn(text, " \n"))) {
		len = strcspn(text, " \n");
		if (at + 1 + len > COLUMNS && at > INDENT) {
			fprintf(out, "\n%*s", INDENT - 1, "");
			at = INDENT - 1;
		}
		fprintf(out, " %.*s", (int) len, text);
		at += 1 + len;
		text += len;
	}
	fputc('\n', out);
}

void stat_findings_print(struct stat_findings *findings, FILE *out)
{
	const struct stat_finding *finding;

	for (; findings->printed < findings->count; findings->printed++) {
		finding = &findings->finding[findings->printed];
		print_words(finding->says,
			    fprintf(out, "%-*s%s:", INDENT,
				    state_name[finding->state], finding->about),
			    out);
		if (finding->cure)
			print_words(finding->cure,
				    fprintf(out, "%*scure:", INDENT, ""), out);
	}
	fflush(out);
}

json_t *stat_findings_json(const struct stat_findings *findings)
{
	const struct stat_finding *finding;
	json_t *array = json_array();
	int ret = array ? 0 : -1;
	size_t i;

	for (i = 0; !ret && i < findings->count; i++) {
		finding = &findings->finding[i];
		ret = json_array_append_new(
			array, json_pack("{s:s, s:s, s:s, s:s*}", "about",
					 finding->about, "state",
					 state_name[finding->state], "says",
					 finding->says, "cure", finding->cure));
	}
	if (!ret)
		return array;
	json_decref(array);
	return NULL;
}

void stat_findings_fini(struct stat_findings *findings)
{
	size_t i;

	for (i = 0; i < findings->count; i++) {
		free(findings->finding[i].says);
		free(findings->finding[i].cure);
	}
	free(findings->finding);
}
