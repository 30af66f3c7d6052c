/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See copies.h. */
#include "config.h"
#include "stat/copies.h"

#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stat/lines.h"

#define SONAME "libfabric.so.1"

/* Can this process load the library? Some libraries may be 32-bit ones. */
static bool is_loadable(const char *path)
{
	unsigned char ident[EI_NIDENT];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool is = fd >= 0 &&
			read(fd, ident, sizeof(ident)) == sizeof(ident) &&
			!memcmp(ident, ELFMAG, SELFMAG) &&
			ident[EI_CLASS] == ELFCLASS64;

	if (fd >= 0)
		close(fd);
	return is;
}

static void add(struct stat_copies *copies, const char *path)
{
	struct stat stat_;
	size_t i;

	if (copies->count == STAT_COPIES_MAX || stat(path, &stat_) ||
	    !is_loadable(path))
		return;
	for (i = 0; i < copies->count; i++) {
		if (copies->copy[i].dev == stat_.st_dev &&
		    copies->copy[i].ino == stat_.st_ino)
			return;
	}
	copies->copy[i].dev = stat_.st_dev;
	copies->copy[i].ino = stat_.st_ino;
	snprintf(copies->copy[i].path, PATH_MAX, "%s", path);
	copies->count++;
}

static void add_matching(struct stat_copies *copies, const char *folder,
			 const char *pattern)
{
	char path[PATH_MAX];
	glob_t found;
	size_t i;

	snprintf(path, sizeof(path), "%s/%s", folder, pattern);
	if (glob(path, 0, NULL, &found))
		return;
	for (i = 0; i < found.gl_pathc; i++)
		add(copies, found.gl_pathv[i]);
	globfree(&found);
}

/* Calls @look with each folder of a list separated by colons. */
static void each_folder(const char *list,
			void (*look)(void *arg, const char *folder), void *arg)
{
	char *copy = strdup(list ? list : ""), *rest = copy, *folder;

	while (copy && (folder = strsep(&rest, ":"))) {
		if (*folder)
			look(arg, folder);
	}
	free(copy);
}

static void look_folder(void *arg, const char *folder)
{
	add_matching(arg, folder, SONAME);
}

/*
 * Looks for a copy of libfabric in a line of the loader's list: "NAME => PATH",
 * followed by " (ADDRESS)".
 */
static void look_listed(void *arg, char *line)
{
	char *to = strstr(line, "=> /");

	line += strspn(line, "\t ");
	if (!to || strncmp(line, "libfabric", strlen("libfabric")))
		return;
	to[3 + strcspn(to + 3, " ")] = '\0';
	add(arg, to + 3);
}

/*
 * Looks for copies of libfabric in a folder of packages, and in the folders of
 * libraries beside the packages.
 */
static void look_python(void *arg, char *folder)
{
	static const char *const pattern[] = {
		"libfabric*.so*",
		"*.libs/libfabric*.so*",
		"*/libfabric*.so*",
		"*/lib/libfabric*.so*",
		"opt/mpi/libfabric/lib/libfabric*.so*",
	};
	size_t i;

	for (i = 0; *folder && i < sizeof(pattern) / sizeof(*pattern); i++)
		add_matching(arg, folder, pattern[i]);
}

struct program {
	const char *name;
	char path[PATH_MAX];
};

static void look_program(void *arg, const char *folder)
{
	struct program *program = arg;
	char path[PATH_MAX];

	if (*program->path)
		return;
	snprintf(path, sizeof(path), "%s/%s", folder, program->name);
	if (!access(path, X_OK))
		snprintf(program->path, sizeof(program->path), "%s", path);
}

static void add_application(struct stat_copies *copies, const char *name)
{
	struct program program = { .name = name };
	char *argv[] = { (char *) stat_loader(), "--list", program.path, NULL };

	if (strchr(name, '/'))
		snprintf(program.path, sizeof(program.path), "%s", name);
	else
		each_folder(getenv("PATH"), look_program, &program);
	if (argv[0] && *program.path)
		stat_lines(argv, look_listed, copies);
}

static void add_first(struct stat_copies *copies, const char *path)
{
	struct stat stat_ = { 0 };

	stat(path, &stat_);
	copies->copy[0].dev = stat_.st_dev;
	copies->copy[0].ino = stat_.st_ino;
	snprintf(copies->copy[0].path, PATH_MAX, "%s", path);
	copies->count = 1;
}

void stat_copies_find(const char *libfabric, const char *application,
		      struct stat_copies *copies)
{
	char *ldconfig[] = { "/sbin/ldconfig", "-p", NULL };
	char *python[] = { "python3", "-c",
			   "import sys\n"
			   "print(*sys.path, sys.prefix + '/lib', sep='\\n')",
			   NULL };

	copies->count = 0;
	if (libfabric)
		add_first(copies, libfabric);
	if (application)
		add_application(copies, application);
	each_folder(getenv("LD_LIBRARY_PATH"), look_folder, copies);
	stat_lines(ldconfig, look_listed, copies);
	stat_lines(python, look_python, copies);
}
