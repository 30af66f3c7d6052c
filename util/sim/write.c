/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writing a file whole or not at all (write.h).
 */
#include "config.h"
#include "sim/write.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes to a descriptor, and closes it. */
static int put_fd(int fd, sim_put *put, void *arg, bool sync)
{
	FILE *file = fdopen(fd, "w");
	int ret;

	if (!file) {
		ret = -errno;
		close(fd);
		return ret;
	}
	ret = put(file, arg);
	if (!ret && sync && fsync(fd))
		ret = -errno;
	if (fclose(file) && !ret)
		ret = -errno;
	return ret;
}

static int put_in_place(sim_put *put, void *arg, const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : put_fd(fd, put, arg, false);
}

static char *temporary;

static void on_signal(int number)
{
	unlink(temporary);
	signal(number, SIG_DFL);
	raise(number);
}

/* Signals that would end the program remove the temporary file. */
static void change_signals(void (*from)(int), void (*to)(int))
{
	static const int numbers[] = { SIGHUP, SIGINT, SIGTERM, SIGXFSZ };
	struct sigaction action;
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (sigaction(numbers[i], NULL, &action) ||
		    action.sa_handler != from)
			continue;
		action.sa_handler = to;
		sigaction(numbers[i], &action, NULL);
	}
}

/*
 * Gives the file the owner and the mode of the file that it replaces, as far as
 * this user may. A group that is another one gets no rights.
 */
static void keep_mode(int fd, const struct stat *old)
{
	const mode_t group = fchown(fd, old->st_uid, old->st_gid) ? 0 : 070;
	const int ret = fchmod(fd, old->st_mode & (0707 | group));

	(void) ret;
}

/* @old: the file that is replaced, or NULL. */
static int put_renamed(sim_put *put, void *arg, const char *path,
		       const struct stat *old)
{
	int fd, ret;

	if (asprintf(&temporary, "%s.%ld.tmp", path, (long) getpid()) < 0)
		return -ENOMEM;
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		  old ? 0600 : 0666);
	if (fd < 0) {
		ret = -errno;
		goto out_free;
	}
	change_signals(SIG_DFL, on_signal);
	if (old)
		keep_mode(fd, old);
	ret = put_fd(fd, put, arg, true);
	if (!ret && rename(temporary, path))
		ret = -errno;
	if (ret)
		unlink(temporary);
	change_signals(on_signal, SIG_DFL);
out_free:
	free(temporary);
	return ret;
}

static int put_path(sim_put *put, void *arg, const char *path)
{
	struct stat st;
	char *real;
	int ret;

	if (stat(path, &st))
		return errno == ENOENT ? put_renamed(put, arg, path, NULL) :
					 -errno;
	if (!S_ISREG(st.st_mode))
		return put_in_place(put, arg, path);
	/* a symbolic link stays one */
	real = realpath(path, NULL);
	if (!real)
		return -errno;
	ret = put_renamed(put, arg, real, &st);
	free(real);
	return ret;
}

/* A file to which the shell has led stdout is not replaced. */
static bool is_stdout(const char *path)
{
	static const char *const names[] = { "-", "/dev/stdout", "/dev/fd/1",
					     "/proc/self/fd/1" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(path, names[i]))
			return true;
	}
	return false;
}

int sim_write(const char *path, sim_put *put, void *arg, char *err,
	      size_t err_len)
{
	const bool to_stdout = is_stdout(path);
	int ret;

	ret = to_stdout ? put(stdout, arg) : put_path(put, arg, path);
	if (ret)
		snprintf(err, err_len, "%s: %s", to_stdout ? "stdout" : path,
			 strerror(-ret));
	return ret;
}
