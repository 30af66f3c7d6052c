/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See probe.h. Each child loads another copy of libfabric, and looks the copy's
 * functions up by dlsym(). Structures differ between major versions: if the
 * major version of a copy is not that of the headers, the copy is asked for its
 * version and providers only.
 */
#include "config.h"
#include "stat/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stat/proc.h"

#define PROVIDER "ofi_mrrc"
#define FILENAME "libmrrc-fi.so"
/* time limit of a child: other providers may look for devices */
#define LIMIT_MS 60000

/* ---- the child ---- */

static struct {
	uint32_t (*version)(void);
	int (*getinfo)(uint32_t version, const char *node, const char *service,
		       uint64_t flags, const struct fi_info *hints,
		       struct fi_info **info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		      void *context);
} lib;

static bool load(const char *path, struct stat_probed *ed)
{
	/*
	 * RTLD_GLOBAL, as if the program were linked to libfabric: the provider
	 * looks up libfabric's functions
	 */
	void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (handle) {
		*(void **) &lib.version = dlsym(handle, "fi_version");
		*(void **) &lib.getinfo = dlsym(handle, "fi_getinfo");
		*(void **) &lib.dupinfo = dlsym(handle, "fi_dupinfo");
		*(void **) &lib.fabric = dlsym(handle, "fi_fabric");
	}
	if (handle && lib.version && lib.getinfo && lib.dupinfo && lib.fabric)
		return true;
	snprintf(ed->error, sizeof(ed->error), "%s",
		 handle ? "it lacks functions" : dlerror());
	return false;
}

static int find_file(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = strrchr(info->dlpi_name, '/');
	struct stat_probed *ed = arg;

	if (!name || strcmp(name + 1, FILENAME))
		return 0;
	snprintf(ed->file, sizeof(ed->file), "%s", info->dlpi_name);
	return 1;
}

/* Finds the first info of the provider and core in @name. */
static struct fi_info *ask(const char *name, struct stat_probed *ed)
{
	struct fi_info *hints = lib.dupinfo(NULL), *info = NULL;

	if (!hints)
		return NULL;
	hints->fabric_attr->prov_name = strdup(name);
	hints->mode = ~UINT64_C(0);
	hints->domain_attr->mode = ~UINT64_C(0);
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	ed->ret = lib.getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	strcpy(ed->call, "fi_getinfo");
	for (; info && !strstr(info->fabric_attr->prov_name, PROVIDER);
	     info = info->next)
		;
	if (info) {
		ed->provider = info->fabric_attr->prov_version;
		snprintf(ed->name, sizeof(ed->name), "%s",
			 info->fabric_attr->prov_name);
	}
	return info;
}

/*
 * Asks for ofi_mrrc by the names in FI_PROVIDER that have ofi_mrrc, or if
 * FI_PROVIDER has no such name, over verbs or tcp.
 */
static struct fi_info *ask_any(bool verbs, struct stat_probed *ed)
{
	const char *chosen = getenv("FI_PROVIDER");
	struct fi_info *info = NULL;
	char *copy, *rest, *name;

	if (stat_probe_named(chosen)) {
		copy = rest = strdup(chosen);
		while (!info && copy && (name = strsep(&rest, ",")))
			info = stat_probe_named(name) ? ask(name, ed) : NULL;
		free(copy);
		return info;
	}
	unsetenv("FI_PROVIDER");
	if (verbs)
		info = ask("verbs;" PROVIDER, ed);
	if (!info)
		info = ask("tcp;" PROVIDER, ed);
	return info;
}

static void open_domain(struct fi_info *info, struct stat_probed *ed)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	strcpy(ed->call, "fi_fabric");
	ed->ret = lib.fabric(info->fabric_attr, &fabric, NULL);
	if (ed->ret)
		return;
	strcpy(ed->call, "fi_domain");
	ed->ret = fi_domain(fabric, info, &domain, NULL);
}

static void set_environment(bool always)
{
	/*
	 * unset variables, so that the provider's lines have one form, and no
	 * file of the user is changed
	 */
	unsetenv("FI_LOG_LEVEL");
	unsetenv("FI_OFI_MRRC_TRACE");
	unsetenv("FI_HOOK");
	if (always)
		setenv("FI_OFI_MRRC_REGISTER", "always", 1);
}

static void child(const struct stat_probe_how *how, struct stat_probed *ed)
{
	struct fi_info *info = NULL;

	set_environment(how->always);
	if (!load(how->path, ed))
		return;
	ed->version = lib.version();
	if (FI_MAJOR(ed->version) == FI_MAJOR_VERSION)
		info = ask_any(how->verbs, ed);
	else
		lib.getinfo(ed->version, NULL, NULL, 0, NULL, &info);
	dl_iterate_phdr(find_file, ed);
	if (ed->provider && how->open)
		open_domain(info, ed);
}

/* ---- this process ---- */

bool stat_probe_named(const char *providers)
{
	return providers && *providers != '^' && strstr(providers, "mrrc");
}

static void read_said(struct stat_probe *probe, int fd)
{
	const off_t size = lseek(fd, 0, SEEK_END);
	ssize_t len = 0;

	probe->said = calloc(1, size > 0 ? size + 1 : 1);
	if (probe->said && size > 0)
		len = pread(fd, probe->said, size, 0);
	if (len < 0)
		probe->said[0] = '\0';
}

static void read_segment(struct stat_probe *probe)
{
	struct stat_sample sample = { 0 };

	if (!stat_proc_read(probe->pid, &sample) && sample.domains) {
		probe->segment = sample.domain[0].segment;
		probe->has_segment = true;
	}
	stat_sample_fini(&sample);
}

static int wait_answer(struct stat_probe *probe, int fd)
{
	struct pollfd poll_ = { .fd = fd, .events = POLLIN };

	if (poll(&poll_, 1, LIMIT_MS) <= 0)
		return -ETIMEDOUT;
	/*
	 * the answer is smaller than a pipe's buffer, so it is written at once,
	 * or not at all
	 */
	if (read(fd, &probe->ed, sizeof(probe->ed)) != sizeof(probe->ed))
		return -EPIPE;
	return 0;
}

static void run_child(const struct stat_probe_how *how, int said, int answer,
		      int hold)
{
	static struct stat_probed ed;
	char byte;

	if (dup2(said, STDERR_FILENO) < 0)
		_exit(1);
	child(how, &ed);
	if (write(answer, &ed, sizeof(ed)) != sizeof(ed))
		_exit(1);
	/* the child ends with its parent, however the parent ends */
	_exit(read(hold, &byte, 1) ? 1 : 0);
}

static int start(const struct stat_probe_how *how, struct stat_probe *probe,
		 int said)
{
	int answer[2], hold[2];
	int ret;

	if (pipe2(answer, O_CLOEXEC))
		return -errno;
	if (pipe2(hold, O_CLOEXEC)) {
		ret = -errno;
		goto err_answer;
	}
	probe->pid = fork();
	if (!probe->pid) {
		close(hold[1]);
		run_child(how, said, answer[1], hold[0]);
	}
	ret = probe->pid < 0 ? -errno : 0;
	close(answer[1]);
	close(hold[0]);
	probe->hold = hold[1];
	if (!ret)
		ret = wait_answer(probe, answer[0]);
	close(answer[0]);
	return ret;

err_answer:
	close(answer[0]);
	close(answer[1]);
	return ret;
}

int stat_probe(const struct stat_probe_how *how, struct stat_probe *probe)
{
	FILE *said = tmpfile();
	int ret;

	*probe = (struct stat_probe){ .pid = -1, .hold = -1 };
	if (!said)
		return -errno;
	fflush(NULL);
	ret = start(how, probe, fileno(said));
	read_said(probe, fileno(said));
	probe->loaded = *probe->ed.file && probe->said &&
			!strstr(probe->said, ": not used");
	if (!ret)
		read_segment(probe);
	fclose(said);
	return ret;
}

void stat_probe_fini(struct stat_probe *probe)
{
	if (probe->hold >= 0)
		close(probe->hold);
	if (probe->pid > 0) {
		kill(probe->pid, SIGKILL);
		waitpid(probe->pid, NULL, 0);
	}
	free(probe->said);
	*probe = (struct stat_probe){ .pid = -1, .hold = -1 };
}
