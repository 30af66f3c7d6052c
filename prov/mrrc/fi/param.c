/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parameters: FI_OFI_MRRC_* in the environment, read once when libfabric loads
 * us. The table below has all parameters. man/check_params.sh compares it with
 * fi_mrrc_params(7), and internal parameters with prov/mrrc/README.md.
 * libfabric does not list internal parameters, which come from
 * FI_OFI_MRRC_DEBUG or from separate variables.
 *
 * libfabric is told that all parameters are strings: libfabric would read the
 * size "4M" as 4.
 *
 * Threading: set before other code runs; constant afterwards.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "core/policy/policy.h"
#include "core/text/text.h"
#include "fi/misspelt.h"
#include "fi/mrrc_fi.h"
#include "fi/param.h"
#include "fi/parts.h"
#include "fi/say.h"
#include "sys/proof/code_kept.h"
#include "sys/observe/cost_file.h"

#define BOUNCE_SIZE ((size_t) 64 * 1024) /* largest copied buffer */

struct mrrc_params mrrc_params = {
	.reg = MRRC_REGISTER_AUTO,
	.cache_max_size = SIZE_MAX,
	.cache_max_count = SIZE_MAX,
	.alloc_max_size = SIZE_MAX,
	.alloc_idle = 10000,
	.cw_cancel = 10000,
	.revoke = MRRC_REVOKE_AUTO,
	.node_max_size = SIZE_MAX,
	.policy = MRRC_POLICY_DEFAULT,
	.cost_measure = true,
	.cost_text = "measure",
	.bounce_size = BOUNCE_SIZE,
	.monitor = "auto",
	.hooks = MRRC_LIBC_HOOKS_AUTO,
	.trace_size = (size_t) 256 << 20,
};

struct mrrc_param {
	const char *name;
	/* changes nothing on failure */
	int (*set)(const struct mrrc_param *param, const char *value);
	void *at;		  /* the variable that it sets, if one */
	const char *const *words; /* for set_word, in the enum's order */
	bool file;		  /* the value may name a file */
	const char *part;	  /* part that it sets; NULL: any build */
	const char *part_value;	  /* the only value that needs the part */
	bool internal;		  /* an entry of the list in "debug" */
	const char *accepts;
	const char *otherwise; /* the default */
	const char *help;
};

static int set_word(const struct mrrc_param *param, const char *value)
{
	unsigned i;

	for (i = 0; param->words[i]; i++) {
		if (!strcasecmp(value, param->words[i])) {
			*(unsigned *) param->at = i;
			return 0;
		}
	}
	return -FI_EINVAL;
}

static int set_size(const struct mrrc_param *param, const char *value)
{
	return mrrc_text_size(value, param->at);
}

static int set_count(const struct mrrc_param *param, const char *value)
{
	return mrrc_text_count(value, param->at);
}

static int set_ms(const struct mrrc_param *param, const char *value)
{
	size_t ms;
	int ret = mrrc_text_count(value, &ms);

	if (ret)
		return ret;
	if (ms >= UINT32_MAX)
		return -ERANGE;
	*(size_t *) param->at = ms;
	return 0;
}

/* All paths have the same size. */
static int set_path(const struct mrrc_param *param, const char *value)
{
	if (!*value || strlen(value) >= PATH_MAX)
		return -FI_EINVAL;
	snprintf(param->at, PATH_MAX, "%s", value);
	return 0;
}

static int set_policy(const struct mrrc_param *param, const char *value)
{
	if (mrrc_policy_check(NULL, value) ||
	    strlen(value) >= sizeof(mrrc_params.policy))
		return -FI_EINVAL;
	snprintf(mrrc_params.policy, sizeof(mrrc_params.policy), "%s", value);
	return 0;
}

static int set_cost(const struct mrrc_param *param, const char *value)
{
	const bool measure = !strcmp(value, "measure");
	const size_t prefix = strlen(MRRC_COST_FILE);
	int ret = 0;

	if (strlen(value) >= sizeof(mrrc_params.cost_text))
		return -FI_EINVAL;
	if (!strncmp(value, MRRC_COST_FILE, prefix))
		ret = mrrc_cost_file_read(value + prefix, &mrrc_params.cost);
	else if (!measure)
		ret = mrrc_cost_parse(value, &mrrc_params.cost);
	if (ret)
		return ret;
	mrrc_params.cost_measure = measure;
	snprintf(mrrc_params.cost_text, sizeof(mrrc_params.cost_text), "%s",
		 value);
	return 0;
}

static int set_bounce_size(const struct mrrc_param *param, const char *value)
{
	size_t size;
	int ret;

	ret = mrrc_text_size(value, &size);
	if (ret || size > BOUNCE_SIZE)
		return ret ? ret : -ERANGE;
	mrrc_params.bounce_size = size;
	return 0;
}

static int set_monitor(const struct mrrc_param *param, const char *value)
{
	/* a word of these fits */
	if (strcmp(value, "auto") && strcmp(value, "uffd") &&
	    strcmp(value, "manual") && strcmp(value, "none"))
		return -FI_EINVAL;
	snprintf(mrrc_params.monitor, sizeof(mrrc_params.monitor), "%s", value);
	return 0;
}

static int set_revoke(const struct mrrc_param *param, const char *value)
{
	if (!strcmp(value, "auto"))
		mrrc_params.revoke = MRRC_REVOKE_AUTO;
	else if (!strcmp(value, "unlimited"))
		mrrc_params.revoke = MRRC_REVOKE_UNLIMITED;
	else
		return set_ms(param, value);
	return 0;
}

static int set_code_file(const struct mrrc_param *param, const char *value)
{
	if (!strcmp(value, "auto"))
		value = NULL;
	else if (!strcmp(value, "0"))
		value = "";
	else if (!*value || strlen(value) >= PATH_MAX)
		return -FI_EINVAL;
	mrrc_code_kept_at(value);
	return 0;
}

static int set_debug(const struct mrrc_param *param, const char *value);

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const struct mrrc_param param_table[] = {
	{ .name = "register",
	  .accepts = "auto, always or never",
	  .otherwise = "auto",
	  .help = "Register buffers passed without a descriptor: where the "
		  "core provider requires it (auto), everywhere (always), or "
		  "nowhere (never)",
	  .set = set_word,
	  .at = &mrrc_params.reg,
	  .words = WORDS("auto", "always", "never") },
	{ .name = "cache_max_size",
	  .accepts = "bytes, or a number followed by K, M, G or T",
	  .otherwise = "derived from the system's limits",
	  .help = "Most memory that a domain's cache keeps registered",
	  .set = set_size,
	  .at = &mrrc_params.cache_max_size },
	{ .name = "cache_max_count",
	  .internal = true,
	  .accepts = "a number",
	  .otherwise = "derived from the system's limits",
	  .help = "Most regions that a domain's cache keeps registered",
	  .set = set_count,
	  .at = &mrrc_params.cache_max_count },
	{ .name = "node_max_size",
	  .accepts = "bytes, or a number followed by K, M, G or T",
	  .otherwise = "none: each process has a limit of its own",
	  .help = "Most memory that the caches and fi_mr_alloc of all "
		  "processes of this user on the node keep registered",
	  .set = set_size,
	  .at = &mrrc_params.node_max_size,
	  .part = "node" },
	{ .name = "policy",
	  .internal = true,
	  .accepts = "gdl, lru, mre-text or mre-fig4, and perhaps "
		     "parameters of it, as gdl:pieces=2",
	  .otherwise = MRRC_POLICY_DEFAULT,
	  .help = "Which region the cache evicts to make room, how many may "
		  "serve one buffer (pieces), and how many go at once (batch)",
	  .set = set_policy },
	{ .name = "cost",
	  .internal = true,
	  .accepts = "measure, nanoseconds as " MRRC_COST_EXAMPLE ", or "
		     "file:PATH with such a line, as fi_mrrc_prof saves it",
	  .otherwise = "measure",
	  .help = "What registering a buffer of p pages takes, reg_page * p + "
		  "reg, deregistering it, dereg_page * p + dereg, and copying "
		  "it, copy_page * p + copy: by this the cache evicts and "
		  "copies",
	  .set = set_cost,
	  .file = true },
	{ .name = "bounce_size",
	  .internal = true,
	  .accepts = "bytes, at most 64K; 0: none",
	  .otherwise = "64K",
	  .help = "The largest buffer that is copied instead of registered, "
		  "where that is cheaper",
	  .set = set_bounce_size },
	{ .name = "revoke_ms",
	  .internal = true,
	  .accepts = "milliseconds; 0: at once; auto; or unlimited",
	  .otherwise = "auto",
	  .help = "How long the keys of closed registrations may go on "
		  "working, "
		  "in the hooking form, so that the next registration finds "
		  "them: 1000 (auto) where libfabric's own cache would keep "
		  "them for as long as the memory is mapped",
	  .set = set_revoke,
	  .at = &mrrc_params.revoke },
	{ .name = "monitor",
	  .accepts = "auto, uffd, manual or none",
	  .otherwise = "auto",
	  .help = "What tells the cache that memory was unmapped: the kernel "
		  "(uffd), or the application by fi_mrrc_invalidate (manual); "
		  "with none, nothing is kept beyond its operation",
	  .set = set_monitor },
	{ .name = "helper",
	  .accepts = "auto, always, never or predict",
	  .otherwise = "auto",
	  .help = "Deregister in a thread of its own: over verbs, where the "
		  "core provider can be called from another thread (auto), "
		  "wherever it can be opened like that (always), or nowhere "
		  "(never); or wherever, also between two uses of a large "
		  "buffer, and register again ahead of the next (predict)",
	  .set = set_word,
	  .at = &mrrc_params.helper,
	  .words = WORDS("auto", "always", "never", "predict"),
	  .part = "helper",
	  .part_value = "predict" },
	{ .name = "helper_node",
	  .internal = true,
	  .accepts = "auto, conservative or aggressive",
	  .otherwise = "auto",
	  .help = "Which processes of the node have a thread that predicts: "
		  "one for each idle processor, by measured idle time (auto) "
		  "or by the number of processes (conservative), or all, with "
		  "a larger margin of time (aggressive)",
	  .set = set_word,
	  .at = &mrrc_params.helper_node,
	  .words = WORDS("auto", "conservative", "aggressive"),
	  .part = "node" },
	{ .name = "hooks",
	  .accepts = "auto, 1 or 0",
	  .otherwise = "auto",
	  .help = "Patch libc in memory so that its unmaps are announced, "
		  "which makes them cheaper: where possible (auto), with a "
		  "warning where it is not (1), or never (0)",
	  .set = set_word,
	  .at = &mrrc_params.hooks,
	  .words = WORDS("auto", "1", "0"),
	  .part = "hooks" },
	{ .name = "probe",
	  .internal = true,
	  .accepts = "auto, always, proven or hooked",
	  .otherwise = "auto",
	  .help = "Ask the kernel before a cached registration is used "
		  "whether memory is being unmapped: where another thread "
		  "could (auto), always, or not as long as hooks have "
		  "announced every unmap (hooked); proven: as auto, but all "
		  "code is looked at first",
	  .set = set_word,
	  .at = &mrrc_params.probe,
	  .words = WORDS("auto", "always", "hooked", "proven") },
	{ .name = "code_file",
	  .internal = true,
	  .accepts = "auto, 0 or a path",
	  .otherwise = "auto",
	  .help = "Where is kept what was found in the code of libraries, for "
		  "the next processes: in the user's cache folder (auto), "
		  "nowhere (0), or in this file",
	  .set = set_code_file,
	  .file = true,
	  .part = "hooks" },
	{ .name = "alloc_max_size",
	  .internal = true,
	  .accepts = "bytes, or a number followed by K, M, G or T; 0: no limit",
	  .otherwise = "derived from the system's limits",
	  .help = "Most memory that fi_mr_alloc registers for a domain",
	  .set = set_size,
	  .at = &mrrc_params.alloc_max_size,
	  .part = "alloc" },
	{ .name = "alloc_pages",
	  .internal = true,
	  .accepts = "auto, 4k, thp, 2m or 1g",
	  .otherwise = "auto",
	  .help = "Pages that fi_mr_alloc takes memory in, where the call or "
		  "the heap does not say",
	  .set = set_word,
	  .at = &mrrc_params.alloc_pages,
	  .words = WORDS("auto", "4k", "thp", "2m", "1g"),
	  .part = "alloc" },
	{ .name = "alloc_idle",
	  .internal = true,
	  .accepts = "milliseconds",
	  .otherwise = "10000",
	  .help = "How long a block of fi_mr_alloc without allocations stays "
		  "registered",
	  .set = set_ms,
	  .at = &mrrc_params.alloc_idle,
	  .part = "alloc" },
	{ .name = "cw_cancel",
	  .internal = true,
	  .accepts = "milliseconds, or 0 for no limit",
	  .otherwise = "10000",
	  .help = "How long the peer has to confirm that it will not write to "
		  "a "
		  "buffer of a cancelled fi_cwtag, before its connection ends",
	  .set = set_ms,
	  .at = &mrrc_params.cw_cancel },
	{ .name = "stats_file",
	  .accepts = "a path, in which %p is the process",
	  .otherwise = "none",
	  .help = "Append a line of JSON with its counters to this file when "
		  "a domain is closed, or when the process exits",
	  .set = set_path,
	  .at = mrrc_params.stats_file,
	  .file = true,
	  .part = "record" },
	{ .name = "trace",
	  .accepts = "a path, in which %p is the process",
	  .otherwise = "none",
	  .help = "Record every request for registered memory in this file, "
		  "for fi_mrrc_trace and fi_mrrc_sim",
	  .set = set_path,
	  .at = mrrc_params.trace,
	  .file = true,
	  .part = "record" },
	{ .name = "trace_size",
	  .internal = true,
	  .accepts = "bytes, or a number followed by K, M, G or T",
	  .otherwise = "256M",
	  .help = "Most bytes of that file; further requests are only "
		  "counted",
	  .set = set_size,
	  .at = &mrrc_params.trace_size,
	  .part = "record" },
	{ .name = "debug",
	  .accepts = "NAME=VALUE, with commas between several",
	  .otherwise = "none",
	  .help = "Parameters for development, which prov/mrrc/README.md has",
	  .set = set_debug },
};

int mrrc_param_path(const char *pattern, char *path, size_t size)
{
	size_t len = 0;

	while (*pattern) {
		if (pattern[0] == '%' && pattern[1] == 'p') {
			len += snprintf(path + len, size - len, "%d",
					(int) getpid());
			pattern += 2;
		} else {
			path[len++] = *pattern++;
		}
		if (len + 1 >= size)
			return -FI_EINVAL;
	}
	path[len] = '\0';
	return 0;
}

/* The reason why a value is refused. */
static const char *param_why(int ret)
{
	switch (-ret) {
	case ERANGE:
		return "too large";
	case EINVAL:
		return "not understood";
	default:
		return fi_strerror(-ret); /* a file's error */
	}
}

/*
 * A program with rights that its caller lacks (set-uid, set-gid, capabilities)
 * must not read or write files that the caller names.
 */
static bool param_allowed(const struct mrrc_param *param)
{
	char variable[MRRC_PARAM_NAME_MAX];

	if (!param->file || !getauxval(AT_SECURE))
		return true;
	mrrc_param_variable(param->name, variable);
	MRRC_WARN(CORE,
		  "%s is ignored: this program has rights that its "
		  "caller lacks\n",
		  variable);
	return false;
}

/*
 * Has the parameter a meaning in this build? A parameter's default and 0 are
 * allowed in any build.
 */
static bool param_built(const struct mrrc_param *param, const char *value)
{
	char variable[MRRC_PARAM_NAME_MAX];

	if (!param->part || mrrc_part(param->part) || !strcmp(value, "0") ||
	    !strcasecmp(value, param->otherwise) ||
	    (param->part_value && strcasecmp(value, param->part_value)))
		return true;
	mrrc_param_variable(param->name, variable);
	mrrc_say(NULL, FI_LOG_CORE, "%s=%s has no effect: built without %s",
		 variable, value, param->part);
	return false;
}

/* Sets a parameter, or says why not. */
static void param_apply(const struct mrrc_param *param, const char *value)
{
	char variable[MRRC_PARAM_NAME_MAX];
	int ret;

	if (!param_allowed(param) || !param_built(param, value))
		return;
	ret = param->set(param, value);
	if (!ret)
		return;
	mrrc_param_variable(param->name, variable);
	mrrc_say(NULL, FI_LOG_CORE,
		 "%s: \"%s\" is %s%s; it takes %s; the default is used: %s",
		 variable, value,
		 ret == -ERANGE || ret == -EINVAL ? "" : "of no use: ",
		 param_why(ret), param->accepts, param->otherwise);
}

static void param_names(const char *names[count_of(param_table)])
{
	size_t i;

	for (i = 0; i < count_of(param_table); i++)
		names[i] = param_table[i].name;
}

static int set_debug(const struct mrrc_param *param, const char *value)
{
	const char *names[count_of(param_table)];
	char *list = strdup(value), *next = list, *name, *text;
	size_t i;

	if (!list)
		return -FI_ENOMEM;
	param_names(names);
	while ((name = strsep(&next, ","))) {
		text = strchr(name, '=');
		if (text)
			*text++ = '\0';
		for (i = 0; i < count_of(names); i++) {
			if (!strcasecmp(name, names[i]))
				break;
		}
		if (i == count_of(names) || !text)
			mrrc_misspelt_entry(name, names, count_of(names));
		else
			param_apply(&param_table[i], text);
	}
	free(list);
	return 0;
}

/* NULL: not set. libfabric does not know internal parameters. */
static const char *param_value(const struct mrrc_param *param)
{
	char variable[MRRC_PARAM_NAME_MAX], *value;

	mrrc_param_variable(param->name, variable);
	if (param->internal)
		return getenv(variable);
	if (fi_param_define(&mrrc_prov, param->name, FI_PARAM_STRING,
			    "%s. Values: %s (default: %s)", param->help,
			    param->accepts, param->otherwise) ||
	    fi_param_get_str(&mrrc_prov, param->name, &value))
		return NULL;
	return value;
}

void mrrc_params_init(void)
{
	const char *names[count_of(param_table)], *value;
	size_t i;

	mrrc_code_kept_at(NULL);
	for (i = 0; i < count_of(param_table); i++) {
		value = param_value(&param_table[i]);
		if (value)
			param_apply(&param_table[i], value);
	}
	param_names(names);
	mrrc_misspelt_say(names, count_of(names));
	if (mrrc_params.stats_file[0] &&
	    !strcmp(mrrc_params.stats_file, mrrc_params.trace)) {
		mrrc_say(NULL, FI_LOG_CORE,
			 MRRC_PARAM_PREFIX "STATS_FILE and " MRRC_PARAM_PREFIX
					   "TRACE are the same file: no "
					   "statistics are written");
		mrrc_params.stats_file[0] = '\0';
	}
}
