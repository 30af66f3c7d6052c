/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See lines.h. */
#include "config.h"
#include "stat/lines.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int start(char *const argv[], int out, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int ret;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
					 O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
					 O_WRONLY, 0);
	ret = posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -ret;
}

int stat_lines(char *const argv[], void (*look)(void *arg, char *line),
	       void *arg)
{
	char *line = NULL;
	size_t size = 0;
	FILE *list;
	pid_t pid;
	int fd[2];
	int ret;

	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	ret = start(argv, fd[1], &pid);
	close(fd[1]);
	list = ret ? NULL : fdopen(fd[0], "r");
	while (list && getline(&line, &size, list) > 0) {
		line[strcspn(line, "\n")] = '\0';
		look(arg, line);
	}
	free(line);
	if (list)
		fclose(list);
	else
		close(fd[0]);
	if (!ret && waitpid(pid, &ret, 0) < 0)
		ret = -errno;
	return ret;
}

const char *stat_loader(void)
{
	Dl_info info;

	return dladdr((const void *) getauxval(AT_BASE), &info) ?
		       info.dli_fname :
		       NULL;
}
