/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of providers: see names.h.
 */
#include "config.h"
#include <stdio.h>

#include "fi/names.h"

const char *const mrrc_alone[MRRC_ALONE_CNT][MRRC_ALONE_MAX] = {
	{ "verbs", "verbs;ofi_rxm" },
	{ "tcp", "net", "tcp;ofi_rxm" },
};
#define MRRC_MARK '|'

const char *mrrc_fabric_name_split(char *name)
{
	char *mark = name ? strrchr(name, MRRC_MARK) : NULL;

	if (!mark)
		return NULL;
	*mark = '\0';
	return mark + 1;
}

static bool alone_core(const char *name)
{
	size_t i;

	for (i = 0; i < MRRC_ALONE_CNT; i++) {
		if (!strcmp(name, mrrc_alone[i][0]))
			return true;
	}
	return false;
}

void mrrc_fabric_name_mark(struct fi_fabric_attr *attr)
{
	char *name;

	if (alone_core(attr->prov_name) ||
	    asprintf(&name, "%s%c%s", attr->name, MRRC_MARK, attr->prov_name) <
		    0)
		return;
	free(attr->name);
	attr->name = name;
}

static bool is_us(const char *name, size_t len)
{
	return len == strlen(MRRC_PROV_NAME) &&
	       !strncasecmp(name, MRRC_PROV_NAME, len);
}

static bool names_us(const char *name, size_t len)
{
	const char *end = name + len, *sep;

	for (; name <= end; name = sep + 1) {
		sep = memchr(name, ';', end - name);
		if (!sep)
			sep = end;
		if (is_us(name, sep - name))
			return true;
	}
	return false;
}

/* A malloc'd copy of a provider name without our part */
static char *name_strip(const char *name, size_t len)
{
	const char *end = name + len, *sep;
	char *below, *out;

	below = out = calloc(1, len + 1);
	if (!below)
		return NULL;

	for (; name < end; name = sep + 1) {
		sep = memchr(name, ';', end - name);
		if (!sep)
			sep = end;
		if (is_us(name, sep - name))
			continue;
		if (out != below)
			*out++ = ';';
		memcpy(out, name, sep - name);
		out += sep - name;
	}
	return below;
}

char *mrrc_prov_name_below(const char *name)
{
	return name_strip(name, strlen(name));
}

void mrrc_names_fini(struct mrrc_names *names)
{
	while (names->cnt)
		free(names->below[--names->cnt]);
}

static int names_add(struct mrrc_names *names, const char *name, size_t len)
{
	char *below;

	if (names->cnt == MRRC_NAMES_MAX)
		return 0;
	below = name_strip(name, len);
	if (!below)
		return -FI_ENOMEM;
	names->below[names->cnt++] = below;
	return 0;
}

/*
 * libfabric compares FI_PROVIDER with the names of the infos, in which our name
 * is last: any other order matches no info, silently.
 */
static void names_check(const char *name, size_t len, const char *below)
{
	static atomic_bool said;
	const size_t us = strlen(MRRC_PROV_NAME);

	if (is_us(name + len - us, us) || atomic_exchange(&said, true))
		return;
	MRRC_WARN(CORE,
		  "FI_PROVIDER=\"%.*s\" matches nothing: " MRRC_PROV_NAME
		  " must come last: \"%s;" MRRC_PROV_NAME "\"\n",
		  (int) len, name, below);
}

/*
 * Do hints that name @wanted take the core @below? As in libfabric, a core's
 * name without a utility provider takes the utility providers over it, too.
 */
static bool names_takes(const char *wanted, const char *below)
{
	const size_t len = strlen(wanted);

	return !strncasecmp(below, wanted, len) &&
	       (!below[len] || (below[len] == ';' && !strchr(wanted, ';')));
}

/*
 * Adds the provider names with ours from FI_PROVIDER, which may also be set in
 * libfabric.conf. wanted: the only name to add, or NULL
 */
static int names_env(struct mrrc_names *names, const char *wanted)
{
	const char *list, *end;
	char *value;
	size_t len;
	int ret;

	if (fi_param_get_str(NULL, "provider", &value) || *value == '^')
		return 0;
	list = value;
	names->only = *list != '\0';

	for (; *list; list = *end ? end + 1 : end) {
		end = strchrnul(list, ',');
		len = end - list;
		if (!names_us(list, len))
			continue;
		if (is_us(list, len))
			names->alone = true;
		ret = names_add(names, list, len);
		if (ret)
			return ret;
		names_check(list, len, names->below[names->cnt - 1]);
		if (!wanted)
			continue;
		/* the application wants this core, with or without us */
		if (!*names->below[names->cnt - 1]) {
			free(names->below[--names->cnt]);
			ret = names_add(names, wanted, strlen(wanted));
			if (ret)
				return ret;
		} else if (!names_takes(wanted, names->below[names->cnt - 1])) {
			free(names->below[--names->cnt]);
		}
	}
	return 0;
}

int mrrc_names_init(struct mrrc_names *names, const struct fi_info *hints)
{
	const char *prov_name = NULL;
	int ret;

	memset(names, 0, sizeof(*names));
	if (hints && hints->fabric_attr)
		prov_name = hints->fabric_attr->prov_name;

	ret = names_env(names, NULL);
	if (ret)
		goto err;
	if (!prov_name)
		return 0;

	if (!names_us(prov_name, strlen(prov_name))) {
		mrrc_names_fini(names);
		ret = names_env(names, prov_name);
	} else if (!is_us(prov_name, strlen(prov_name)) || !names->cnt) {
		/* hints go before FI_PROVIDER, which filters afterwards */
		mrrc_names_fini(names);
		ret = names_add(names, prov_name, strlen(prov_name));
	}
	if (ret)
		goto err;
	return 0;

err:
	mrrc_names_fini(names);
	return ret;
}
