/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See misspelt.h. Variables of other providers and of the project's own scripts
 * (OFI_MRRC_BUILD) look similar, and are not reported.
 */
#include "config.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/text/text.h"
#include "fi/misspelt.h"
#include "fi/say.h"

#define OUR_WORD "MRRC" /* in the prefix */

extern char **environ;

void mrrc_param_variable(const char *name, char *variable)
{
	char *to = variable + strlen(MRRC_PARAM_PREFIX);

	memcpy(variable, MRRC_PARAM_PREFIX, strlen(MRRC_PARAM_PREFIX));
	for (; *name && to < variable + MRRC_PARAM_NAME_MAX - 1; name++, to++)
		*to = *name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name;
	*to = '\0';
}

/*
 * Does @text begin with OUR_WORD, in which one letter may be wrong, and "_"?
 */
static bool almost_our_word(const char *text)
{
	char word[sizeof(OUR_WORD) + 1];
	size_t len = strcspn(text, "_=");

	if (text[len] != '_' || len >= sizeof(word))
		return false;
	snprintf(word, sizeof(word), "%.*s", (int) len, text);
	return mrrc_text_distance(word, OUR_WORD) <= 1;
}

/*
 * Returns the part of @variable that may be meant as a parameter's name, after
 * a prefix that is misspelt or shortened; NULL: there is no such part. @exact:
 * after this prefix only the exact name of a parameter counts.
 */
static const char *meant(const char *variable, bool *exact)
{
	static const char *const begins[] = { "FI_OFI_", "FI_", "OFI_" };
	const size_t joined = strlen(MRRC_PARAM_PREFIX) - 1;
	size_t i, len;

	*exact = false;
	if (!strncasecmp(variable, MRRC_PARAM_PREFIX, joined))
		return variable + joined + (variable[joined] == '_');
	for (i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		len = strlen(begins[i]);
		*exact = begins[i][0] == 'O';
		if (!strncasecmp(variable, begins[i], len) &&
		    almost_our_word(variable + len))
			return strchr(variable + len, '_') + 1;
	}
	return NULL;
}

void mrrc_misspelt_entry(const char *entry, const char *const *names,
			 size_t cnt)
{
	size_t nearest = mrrc_text_nearest(entry, names, cnt);

	mrrc_say(NULL, FI_LOG_CORE,
		 MRRC_PARAM_PREFIX "DEBUG: \"%s\" has no effect%s%s", entry,
		 nearest < cnt ? "; the nearest is NAME=VALUE with " : "",
		 nearest < cnt ? names[nearest] : "");
}

static void check(const char *variable, const char *const *names, size_t cnt)
{
	char own[MRRC_PARAM_NAME_MAX] = "", name[MRRC_PARAM_NAME_MAX];
	char text[MRRC_PARAM_NAME_MAX];
	const char *rest;
	size_t nearest;
	bool exact;

	rest = meant(variable, &exact);
	if (!rest)
		return;
	snprintf(text, sizeof(text), "%.*s", (int) strcspn(variable, "="),
		 variable);
	snprintf(name, sizeof(name), "%.*s", (int) strcspn(rest, "="), rest);
	nearest = mrrc_text_nearest(name, names, cnt);
	if (exact && (nearest == cnt || strcasecmp(name, names[nearest])))
		return;
	if (nearest < cnt)
		mrrc_param_variable(names[nearest], own);
	if (strcmp(text, own))
		mrrc_say(NULL, FI_LOG_CORE,
			 "%s is not a parameter and has no effect%s%s", text,
			 *own ? "; the nearest is " : "", own);
}

void mrrc_misspelt_say(const char *const *names, size_t cnt)
{
	char **variable;

	for (variable = environ; variable && *variable; variable++)
		check(*variable, names, cnt);
}
