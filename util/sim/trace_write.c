/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writing a trace (trace.h): to a temporary file beside the wanted one, which
 * takes its name when all is on disk. What exists and is no file (a pipe,
 * /dev/null) is written in place.
 */
#include "config.h"
#include "sim/read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_access(const struct sim_trace *trace)
{
	size_t i;

	for (i = 0; i < trace->count; i++) {
		if (trace->req[i].access != SIM_RW)
			return true;
	}
	return false;
}

int sim_trace_write_file(const struct sim_trace *trace, const char *comment,
			 FILE *file)
{
	bool access = has_access(trace), procs = trace->procs > 1;
	const struct sim_req *req;

	errno = 0;
	if (comment)
		fprintf(file, "# %s\n", comment);
	fprintf(file, "time_us,addr,len%s%s\n", procs ? ",proc" : "",
		access ? ",access" : "");
	for (req = trace->req; req < trace->req + trace->count; req++) {
		fprintf(file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, req->time,
			req->addr, req->len);
		if (procs)
			fprintf(file, ",%" PRIu32, req->proc);
		if (access)
			fprintf(file, ",%s", sim_access_name(req->access));
		if (putc('\n', file) == EOF)
			break;
	}
	if (fflush(file) || ferror(file))
		return errno ? -errno : -EIO;
	return 0;
}

/* Closes it as well. */
static int put_fd(int fd, const struct sim_trace *trace, const char *comment,
		  bool sync)
{
	FILE *file = fdopen(fd, "w");
	int ret;

	if (!file) {
		ret = -errno;
		close(fd);
		return ret;
	}
	ret = sim_trace_write_file(trace, comment, file);
	if (!ret && sync && fsync(fd))
		ret = -errno;
	if (fclose(file) && !ret)
		ret = -errno;
	return ret;
}

static int put_in_place(const struct sim_trace *trace, const char *comment,
			const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : put_fd(fd, trace, comment, false);
}

static int put_renamed(const struct sim_trace *trace, const char *comment,
		       const char *path)
{
	char *temporary;
	int fd, ret;

	if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0)
		return -ENOMEM;
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		ret = -errno;
		goto out_free;
	}
	ret = put_fd(fd, trace, comment, true);
	if (!ret && rename(temporary, path))
		ret = -errno;
	if (ret)
		unlink(temporary);
out_free:
	free(temporary);
	return ret;
}

static int put_path(const struct sim_trace *trace, const char *comment,
		    const char *path)
{
	struct stat st;
	char *real;
	int ret;

	/* a name for a file that has another (/dev/stdout) keeps it */
	real = realpath(path, NULL);
	if (!real && errno != ENOENT)
		return -errno;
	if (!real)
		return put_renamed(trace, comment, path);
	if (stat(real, &st))
		ret = -errno;
	else if (S_ISREG(st.st_mode))
		ret = put_renamed(trace, comment, real);
	else
		ret = put_in_place(trace, comment, real);
	free(real);
	return ret;
}

int sim_trace_write(const struct sim_trace *trace, const char *comment,
		    const char *path, char *err, size_t err_len)
{
	bool to_stdout = !strcmp(path, "-");
	int ret;

	if (to_stdout)
		ret = sim_trace_write_file(trace, comment, stdout);
	else
		ret = put_path(trace, comment, path);
	if (ret)
		snprintf(err, err_len, "%s: %s", to_stdout ? "stdout" : path,
			 strerror(-ret));
	return ret;
}
