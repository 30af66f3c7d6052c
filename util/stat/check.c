/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See check.h. */
#include "config.h"
#include "stat/check.h"

#include <errno.h>
#include <jansson.h>
#include <rdma/fabric.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stat/application.h"
#include "stat/code.h"
#include "stat/copies.h"
#include "stat/finding.h"
#include "stat/machine.h"
#include "stat/probe.h"

#define SAID "ofi_mrrc: " /* beginning of the provider's lines */

#define ASKS_ALWAYS "they always are to" /* FI_OFI_MRRC_PROBE=always */
#define ASKS_COST \
	"those of threads ask the kernel, some 400 ns a hit instead of 6: %s"

struct check {
	struct stat_findings findings;
	struct stat_copies copies;
	struct stat_probe probe; /* probe of the first copy of libfabric */
	bool verbs;
};

/* ---- lines of the provider ---- */

/* Returns the provider's next line, without its beginning; or NULL. */
static char *next_said(char **said)
{
	char *line;

	while ((line = strsep(said, "\n"))) {
		if (!strncmp(line, SAID, strlen(SAID)))
			return line + strlen(SAID);
	}
	return NULL;
}

/* Is the problem also reported by a line about a limit? */
static bool is_limit(const char *line)
{
	return strstr(line, "never kept");
}

static void find_variables(struct check *check)
{
	char *said = check->probe.said, *line;

	while ((line = next_said(&said))) {
		if (!is_limit(line))
			stat_find(&check->findings, STAT_NOTE, "variables",
				  NULL, "%s", line);
	}
}

/*
 * Checks whether the application can make the file that the setting @variable
 * names, since the probe does not write such files.
 */
static void find_file(struct check *check, const char *variable)
{
	const char *path = getenv(variable);
	char folder[4096];
	char *end;

	if (!path || !*path || !access(path, W_OK))
		return;
	snprintf(folder, sizeof(folder), "%s", path);
	end = strrchr(folder, '/');
	if (!end)
		strcpy(folder, ".");
	else
		end[end == folder] = '\0';
	if (!strchr(folder, '%') && access(folder, W_OK | X_OK))
		stat_find(&check->findings, STAT_NOTE, "variables", NULL,
			  "%s: no file can be made in %s: %s", variable, folder,
			  strerror(errno));
}

/* Returns the reason why the provider refuses a libfabric; or NULL. */
static char *find_refusal(char *said)
{
	char *line;

	while ((line = next_said(&said))) {
		if (strstr(line, ": not used"))
			return line;
	}
	return NULL;
}

/* ---- copies of libfabric ---- */

static bool has_provider(const char *folder)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/libmrrc-fi.so", folder);
	return !access(path, R_OK);
}

static void find_unloaded(struct check *check, enum stat_state state,
			  const char *path, struct stat_probe *probe)
{
	const char *folders = getenv("FI_PROVIDER_PATH");
	const char *line = find_refusal(probe->said);
	char cure[4200];

	if (line)
		snprintf(cure, sizeof(cure),
			 "build it for this libfabric: "
			 "configure --with-libfabric");
	else if (has_provider(STAT_PROVDIR))
		snprintf(cure, sizeof(cure), "export FI_PROVIDER_PATH=%s",
			 STAT_PROVDIR);
	else
		snprintf(cure, sizeof(cure),
			 "make install, or export FI_PROVIDER_PATH=FOLDER, "
			 "where libmrrc-fi.so is");
	stat_find(&check->findings, state, "libfabric", cure,
		  "%u.%u, %s, does not load ofi_mrrc%s%s",
		  FI_MAJOR(probe->ed.version), FI_MINOR(probe->ed.version),
		  path,
		  line	  ? ": " :
		  folders ? ": FI_PROVIDER_PATH is " :
			    "",
		  line	  ? line :
		  folders ? folders :
			    "");
}

/* @first: the copy that the application, or any program, loads first. */
static void find_copy(struct check *check, const char *path, bool first,
		      struct stat_probe *probe, int ret)
{
	const enum stat_state bad = first ? STAT_BAD : STAT_NOTE;
	const struct stat_probed *ed = &probe->ed;

	if (ret || *ed->error)
		stat_find(&check->findings, bad, "libfabric",
			  "install libfabric again", "%s can't be loaded: %s",
			  path, ret ? strerror(-ret) : ed->error);
	else if (!probe->loaded)
		find_unloaded(check, bad, path, probe);
	else
		stat_find(&check->findings, STAT_OK, "libfabric", NULL,
			  "%u.%u, %s, loads %s", FI_MAJOR(ed->version),
			  FI_MINOR(ed->version), path, ed->file);
}

static void probe_copy(struct check *check, size_t i)
{
	struct stat_probe_how how = {
		.path = check->copies.copy[i].path,
		.verbs = check->verbs,
		.open = !i,
	};
	struct stat_probe other, *probe = i ? &other : &check->probe;
	int ret;

	ret = stat_probe(&how, probe);
	find_copy(check, how.path, !i, probe, ret);
	if (i)
		stat_probe_fini(probe);
}

static void find_copies(struct check *check, const struct stat_options *options)
{
	size_t i;

	stat_copies_find(options->libfabric,
			 options->whats ? options->what[0] : NULL,
			 &check->copies);
	if (!check->copies.count)
		stat_find(&check->findings, STAT_BAD, "libfabric",
			  "apt-get install libfabric1, or set LD_LIBRARY_PATH",
			  "no libfabric.so.1 is found");
	for (i = 0; i < check->copies.count; i++)
		probe_copy(check, i);
}

/* ---- the provider ---- */

static void find_choice(struct check *check)
{
	const char *provider = getenv("FI_PROVIDER");
	const char *hook = getenv("FI_HOOK");

	if (stat_probe_named(provider))
		stat_find(&check->findings, STAT_OK, "choice", NULL,
			  "FI_PROVIDER=%s", provider);
	else if (stat_probe_named(hook))
		stat_find(&check->findings, STAT_OK, "choice", NULL,
			  "FI_HOOK=%s", hook);
	else
		stat_find(&check->findings, STAT_NOTE, "choice",
			  STAT_PROBE_CHOOSE,
			  "nothing chooses ofi_mrrc: FI_PROVIDER is %s",
			  provider ? provider : "not set");
}

/*
 * Handles a domain that registers nothing: reports the reason, and opens a
 * domain that registers buffers.
 */
static int probe_registering(struct check *check)
{
	const struct stat_probe_how how = {
		.path = check->copies.copy[0].path,
		.verbs = check->verbs,
		.open = true,
		.always = true,
	};
	char *why = check->probe.segment.lacks;
	char *cure = strstr(why, ": FI_");
	const bool never = cure && strstr(cure, "=never");

	if (cure)
		*cure = '\0';
	stat_find(&check->findings, never ? STAT_BAD : STAT_NOTE,
		  "registration",
		  never ? "unset FI_OFI_MRRC_REGISTER" :
		  cure	? cure + 2 :
			  NULL,
		  "off: the provider %s", why);
	stat_probe_fini(&check->probe);
	return stat_probe(&how, &check->probe);
}

/*
 * Checks the code that the probe's process has loaded, which is all code that
 * libfabric loads.
 */
static void find_code(struct check *check)
{
	const struct stat_segment *segment = &check->probe.segment;
	char pid[16], *what = pid, *text = NULL;
	size_t size;
	FILE *out;
	int ret;

	snprintf(pid, sizeof(pid), "%d", (int) check->probe.pid);
	out = open_memstream(&text, &size);
	if (!out)
		return;
	ret = stat_code(&what, 1, out, out);
	fclose(out);
	text[strcspn(text, "\n")] = '\0';
	if (!strcmp(segment->asks, ASKS_ALWAYS))
		stat_find(&check->findings, STAT_NOTE, "lookups",
			  "unset FI_OFI_MRRC_PROBE", ASKS_COST, segment->asks);
	else if (ret)
		stat_find(&check->findings, STAT_NOTE, "lookups",
			  "fi_mrrc_stat --code names all such code", ASKS_COST,
			  text);
	else
		stat_find(&check->findings, STAT_OK, "lookups", NULL,
			  "no code that libfabric loads makes them ask the "
			  "kernel; for more: fi_mrrc_stat --code FILE");
	free(text);
}

static void find_unopened(struct check *check)
{
	const struct stat_probed *ed = &check->probe.ed;
	const char *chosen = getenv("FI_PROVIDER");

	if (!ed->provider)
		stat_find(&check->findings, STAT_BAD, "provider",
			  "FI_PROVIDER=\"tcp;ofi_mrrc\" works without a device",
			  "%s offers nothing here",
			  stat_probe_named(chosen) ? chosen : "ofi_mrrc");
	else
		stat_find(&check->findings, STAT_BAD, "provider",
			  "unset FI_OFI_MRRC_MONITOR; FI_LOG_LEVEL=warn tells "
			  "more",
			  "%s opens no domain: %s: %s", ed->name, ed->call,
			  strerror(-ed->ret));
}

static void find_provider(struct check *check)
{
	struct stat_probe *probe = &check->probe;
	int ret = 0;

	if (!probe->loaded)
		return;
	find_variables(check);
	find_file(check, "FI_OFI_MRRC_TRACE");
	find_file(check, "FI_OFI_MRRC_STATS_FILE");
	if (probe->has_segment && !probe->segment.registers)
		ret = probe_registering(check);
	if (ret || !probe->has_segment) {
		find_unopened(check);
		return;
	}
	if (check->verbs && strncmp(probe->ed.name, "verbs", 5))
		stat_find(&check->findings, STAT_NOTE, "provider",
			  "fi_info -p verbs: the device needs an address",
			  "%s is tried: verbs offers nothing here",
			  probe->ed.name);
	else
		stat_find(&check->findings, STAT_OK, "provider", NULL,
			  "%s, version %u.%u", probe->ed.name,
			  FI_MAJOR(probe->ed.provider),
			  FI_MINOR(probe->ed.provider));
	stat_machine_limits(&probe->segment, &check->findings);
	if (!strcmp(probe->segment.monitor, "uffd+hooks"))
		find_code(check);
}

/* ---- the whole check ---- */

static int print_json(const struct check *check, json_t *application, FILE *out)
{
	json_t *all =
		json_pack("{s:b, s:o, s:o*}", "works",
			  stat_findings_worst(&check->findings) != STAT_BAD,
			  "findings", stat_findings_json(&check->findings),
			  "application", application);
	char *text = all ? json_dumps(all, 0) : NULL;

	json_decref(all);
	if (!text) {
		fputs("fi_mrrc_stat: no memory\n", stderr);
		return EXIT_FAILURE;
	}
	fprintf(out, "%s\n", text);
	free(text);
	return EXIT_SUCCESS;
}

int stat_check(const struct stat_options *options)
{
	FILE *out = options->whats ? stderr : stdout;
	struct check check = { .probe = { .pid = -1, .hold = -1 } };
	json_t *application = NULL;
	int status;

	check.verbs = stat_machine_devices(&check.findings);
	find_copies(&check, options);
	find_choice(&check);
	find_provider(&check);
	stat_probe_fini(&check.probe);
	status = stat_findings_worst(&check.findings) == STAT_BAD;
	if (!options->json)
		stat_findings_print(&check.findings, out);
	if (options->whats)
		status = stat_application(options->what, &check.findings,
					  &application);
	if (!options->json)
		stat_findings_print(&check.findings, out);
	else if (print_json(&check, application, out))
		status = EXIT_FAILURE;
	stat_findings_fini(&check.findings);
	return status;
}
