/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Examines the code in files (stat/code.h) as the provider examines the code of
 * its own process (sys/proof/prove.c).
 */
#include "config.h"
#include "stat/code.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text/text.h"
#include "stat/lines.h"
#include "stat/proc.h"
#include "sys/proof/code.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/proof/prove.h"
#include "sys/proof/prove_site.h"

#define SITES 4 /* maximum number of sites printed for a file */

struct code {
	FILE *out, *err;
	struct {
		dev_t dev;
		ino_t ino;
	} * file; /* examined files */
	size_t files;
	size_t calls; /* instructions that enter the kernel */
	size_t asks;  /* reasons for lookups to ask the kernel */
	bool failed;
	bool own_page;	      /* the process's page of hooks was found */
	char rings[64];	      /* name of code that may make io_urings, or "" */
	bool has_rings[3];    /* a file has: by enum mrrc_prove_rings */
	Dl_info libc, loader; /* libc and loader of this program, with hooks */
};

/* The file that is examined now. */
struct one {
	struct code *code;
	struct mrrc_prove_file file;
	size_t asks;
};

static void complain(struct code *code, const char *what, const char *why)
{
	fprintf(code->err, "fi_mrrc_stat: %s: %s\n", what, why);
	code->failed = true;
}

static void no_memory(struct code *code, const char *what)
{
	complain(code, what, strerror(ENOMEM));
	exit(EXIT_FAILURE);
}

static bool same_file(const char *path, const struct stat *as)
{
	struct stat stat_;

	return path && !stat(path, &stat_) && stat_.st_dev == as->st_dev &&
	       stat_.st_ino == as->st_ino;
}

/* ---- one file ---- */

static bool look_site(void *arg, const struct mrrc_code_site *site)
{
	char why[MRRC_TRUST_WHY];
	struct one *one = arg;

	switch (mrrc_prove_site(&one->file, site, why)) {
	case MRRC_PROVE_RINGS:
		snprintf(one->code->rings, sizeof(one->code->rings), "%s",
			 mrrc_prove_name(one->file.path));
		return true;
	case MRRC_PROVE_ASKS:
		break;
	default:
		return true;
	}
	one->code->asks++;
	if (one->asks++ < SITES)
		fprintf(one->code->out, "%s\n", why);
	return true;
}

/* @place: the file to read; @path: its name. */
static void look_file(struct code *code, const char *place, const char *path)
{
	struct mrrc_code_counts counts;
	struct mrrc_code_file elf;
	struct mrrc_code_image image;
	struct one one = { .code = code,
			   .file = { .path = path, .image = &image } };
	struct stat stat_;
	unsigned nth;
	size_t i;
	int ret;

	if (stat(place, &stat_)) {
		complain(code, path, strerror(errno));
		return;
	}
	for (i = 0; i < code->files; i++) {
		if (code->file[i].dev == stat_.st_dev &&
		    code->file[i].ino == stat_.st_ino)
			return;
	}
	code->file =
		reallocarray(code->file, code->files + 1, sizeof(*code->file));
	if (!code->file)
		no_memory(code, path);
	code->file[code->files].dev = stat_.st_dev;
	code->file[code->files++].ino = stat_.st_ino;

	code->has_rings[mrrc_prove_rings(place, path)] = true;
	ret = mrrc_code_open(place, &elf);
	if (ret) {
		complain(code, path,
			 ret == -EINVAL ? "not a file of 64-bit code" :
					  strerror(-ret));
		return;
	}
	one.file.libc = same_file(code->libc.dli_fname, &stat_);
	if (one.file.libc)
		one.file.live = (uintptr_t) code->libc.dli_fbase;
	else if (same_file(code->loader.dli_fname, &stat_))
		one.file.live = (uintptr_t) code->loader.dli_fbase;
	for (nth = 0; mrrc_code_segment(&elf, nth, &image); nth++) {
		ret = mrrc_code_look(&image, look_site, &one, &counts);
		if (ret) {
			complain(code, path,
				 ret == -EOPNOTSUPP ?
					 "built without a decoder" :
					 strerror(-ret));
			break;
		}
		code->calls += counts.instructions;
	}
	if (one.asks > SITES)
		fprintf(code->out, "%s: %zu more\n", mrrc_prove_name(path),
			one.asks - SITES);
	mrrc_code_close(&elf);
}

/* ---- a file and what it is linked to ---- */

/* The loader's list has lines "NAME => PATH (ADDRESS)" and "PATH (ADDRESS)". */
static void look_listed(void *arg, char *line)
{
	struct code *code = arg;
	const char *to = strstr(line, "=> /");
	const char *path = to ? to + 3 : strchr(line, '/');
	char *end = strstr(line, " (0x");
	char *place = NULL;

	if (path && end && end >= path) {
		place = strndup(path, end - path);
		if (!place)
			no_memory(code, path);
		*end = '\0';
	}
	mrrc_text_plain(line + strspn(line, "\t")); /* it is printed */
	if (strstr(line, "=> not found"))
		complain(code, line + strspn(line, "\t"),
			 "it is linked to that");
	if (place)
		look_file(code, place, path);
	free(place);
}

static void look_linked(struct code *code, char *path)
{
	char *argv[] = { (char *) stat_loader(), "--list", path, NULL };
	char *here = NULL;

	/* the loader searches its own folders for a name without a slash */
	if (!strchr(path, '/')) {
		if (asprintf(&here, "./%s", path) < 0)
			no_memory(code, path);
		argv[2] = here;
	}
	if (!argv[0])
		complain(code, path, "the loader cannot be asked");
	else if (stat_lines(argv, look_listed, code))
		complain(code, path,
			 "the loader does not list what it is "
			 "linked to");
	free(here);
}

/* ---- a process ---- */

static bool has_hooks(pid_t pid)
{
	struct stat_sample sample = { 0 };
	bool hooks = false;
	size_t i;

	if (!stat_proc_read(pid, &sample)) {
		for (i = 0; i < sample.domains; i++)
			hooks |= !strcmp(sample.domain[i].segment.monitor,
					 "uffd+hooks");
	}
	stat_sample_fini(&sample);
	return hooks;
}

/*
 * Is this range the page with the code of ofi_mrrc's hooks, which the provider
 * itself knows? Only the first such page of a process is taken for the hooks'.
 */
static bool is_ours(struct code *code, pid_t pid, unsigned long start,
		    unsigned long end)
{
	if (code->own_page ||
	    end - start != (unsigned long) sysconf(_SC_PAGESIZE))
		return false;
	code->own_page = has_hooks(pid);
	return code->own_page;
}

static void look_mapping(struct code *code, pid_t pid, char *line)
{
	unsigned long start, end, inode;
	char perms[5], path[PATH_MAX + 32];
	const char *why = NULL;
	char *name;
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%lx-%lx %4s %*s %*s %lu %n", &start, &end, perms,
		   &inode, &at) != 4 ||
	    perms[2] != 'x')
		return;
	name = line + at;
	if (!strcmp(name, "[vdso]") || !strcmp(name, "[vsyscall]"))
		return;
	if (perms[1] == 'w')
		why = "code that can be written";
	else if (perms[3] == 's')
		why = "code that is shared";
	else if (!inode && !is_ours(code, pid, start, end))
		why = "code of no file";
	else if (!strncmp(name, "/memfd:", 7))
		why = "code of a memfd, which can be written";
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int) pid, name);
	mrrc_text_plain(name); /* it is printed */
	if (why) {
		fprintf(code->out, "%s: %s\n", mrrc_prove_name(name), why);
		code->asks++;
	} else if (inode) {
		look_file(code, path, name);
	}
}

static void look_process(struct code *code, const char *what)
{
	char path[64];
	char *line = NULL;
	size_t pid, size = 0;
	FILE *maps = NULL;

	errno = ENOENT;
	if (!mrrc_text_count(what, &pid) && pid <= INT_MAX) {
		snprintf(path, sizeof(path), "/proc/%zu/maps", pid);
		maps = fopen(path, "re");
	}
	code->own_page = false;
	if (!maps) {
		complain(code, what,
			 errno == ENOENT ? "there is no such process" :
					   strerror(errno));
		return;
	}
	while (getline(&line, &size, maps) > 0)
		look_mapping(code, (pid_t) pid, line);
	if (ferror(maps))
		complain(code, what, "/proc/PID/maps cannot be read");
	free(line);
	fclose(maps);
}

static void tell_nothing(void *arg, uintptr_t start, uintptr_t end,
			 enum mrrc_libc_hooks_how how)
{
}

/* Hooks libc and the loader of this process, as the provider does. */
static void hook_own(struct code *code)
{
	if (!dladdr((const void *) (uintptr_t) pthread_self, &code->libc) ||
	    !dladdr((const void *) getauxval(AT_BASE), &code->loader) ||
	    mrrc_libc_hooks_add(tell_nothing, code, NULL))
		return;
	mrrc_prove_seal();
}

int stat_code(char *const *what, size_t count, FILE *out, FILE *err)
{
	struct code code = { .out = out, .err = err };
	size_t i;

	hook_own(&code);
	for (i = 0; i < count; i++) {
		if (what[i][strspn(what[i], "0123456789")] == '\0') {
			look_process(&code, what[i]);
			continue;
		}
		look_file(&code, what[i], what[i]);
		look_linked(&code, what[i]);
	}
	if (*code.rings && (code.has_rings[MRRC_PROVE_RINGS_ANY] ||
			    !code.has_rings[MRRC_PROVE_RINGS_FABRIC])) {
		fprintf(out, "%s: not only libfabric uses it\n", code.rings);
		code.asks++;
	}
	fprintf(out, "%zu files, %zu system calls: lookups %s\n", code.files,
		code.calls,
		code.asks   ? "ask the kernel" :
		code.failed ? "may ask the kernel: some code is unread" :
			      "make no system call");
	mrrc_libc_hooks_remove(&code);
	free(code.file);
	return code.asks || code.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
