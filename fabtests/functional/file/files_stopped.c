/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_files_stopped: tests a process that is stopped while one part of a
 * file is sent and another part is written for the peer's tag. The process is
 * stopped so long that the kernel takes the file's lease by force and lets a
 * writer go on. The send and the write both have to end with an error. A device
 * ends the write at once, so over a device the part is only sent. The kernel
 * waits for 45 seconds if /proc/sys/fs/lease-break-time was not changed. With
 * FT_PERCENT below 100 the process is not stopped: its clock advances by the
 * kernel's waiting time.
 */
#include "fakes/clock.h"
#include "ft_mrrc.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

/* more bytes than sockets take; a device waits for the receive */
#define LEN_TCP	  (48UL << 20)
#define LEN_VERBS (1UL << 20)
#define SEED	  7
#define TAG	  9

static struct ft_pair pair;
static char dir[64], path[80], *target;

static unsigned long break_us(void)
{
	FILE *file = fopen("/proc/sys/fs/lease-break-time", "re");
	unsigned long seconds;

	FT_CHECK(file && fscanf(file, "%lu", &seconds) == 1,
		 "lease-break-time");
	fclose(file);
	return seconds * 1000000;
}

/*
 * Changes the file in another process, if possible while the parent is stopped.
 */
static int change(bool stops)
{
	const pid_t parent = getppid();
	const char other[FT_PAGE] = { 1 };
	ssize_t written;
	int fd;

	if (stops && kill(parent, SIGSTOP))
		return 1;
	fd = open(path, O_WRONLY);
	written = write(fd, other, sizeof(other));
	return (stops && kill(parent, SIGCONT)) || written != sizeof(other);
}

static void stop(void)
{
	const bool stops = ft_iters(100) >= 100;
	int status;
	pid_t pid;

	ft_stage("stopped, until the kernel takes the lease");
	if (!stops)
		clock_advance(break_us());
	pid = fork();
	if (!pid)
		_exit(change(stops));
	FT_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status,
		 "the writer: %d", status);
}

/* Posts a conditional write of the file for the peer's tag. */
static void write_it(struct fid_mrrc_file *file, size_t len)
{
	struct fi_mrrc_file_msg msg =
		fi_mrrc_file_part(0, len, pair.c.to, file);

	msg.tag = TAG;
	FT_POST(&pair.s,
		fi_cwtag(pair.s.cw, target, len, NULL, pair.s.to, TAG, target));
	usleep(20000);
	ft_progress(&pair.c);
	FT_POST(&pair.c,
		fi_mrrc_file_cwritemsg(file, pair.c.ep, &msg, FI_COMPLETION));
}

static void ended(struct fid_mrrc_file *file)
{
	struct ft_comp comp;

	ft_wait_any(&pair.c, FT_TX, &comp);
	FT_CHECK(comp.err == FI_EIO && comp.ctx == file, "error %d, context %p",
		 comp.err, comp.ctx);
	ft_wait_any(&pair.s, FT_RX, &comp);
}

static void stopped(size_t len, bool writes)
{
	struct fi_mrrc_file_stats attr = { .size = sizeof(attr) };
	char *in = ft_map(NULL, len), *data = ft_map(NULL, len);
	struct fid_mrrc_file *file;
	int fd;

	target = ft_map(NULL, len);
	ft_fill(data, len, SEED);
	fd = ft_file_make(path, data, len);
	FT_CALL(fi_mrrc_file_open(pair.dom[1].domain, fd, FI_MRRC_FILE_MAP,
				  &file, NULL));
	FT_POST(&pair.c,
		fi_mrrc_file_send(file, pair.c.ep, 0, len, pair.c.to, file));
	if (writes)
		write_it(file, len);
	FT_CALL(fi_mrrc_file_query(file, &attr));
	FT_CHECK(attr.mapped == 1u + writes, "not mapped: %s", attr.why);
	stop();
	FT_POST(&pair.s, fi_recv(pair.s.ep, in, len, NULL, FT_ANY, in));
	ended(file);
	if (writes)
		ended(file);
	FT_CALL(fi_close(&file->fid));
	close(fd);
	ft_unmap(in, len);
	ft_unmap(data, len);
	ft_unmap(target, len);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	bool maps;

	attr.cw = attr.cw_pep = true;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("files are ofi_mrrc's");
	if (ft_rdm())
		ft_skip("what takes a minute runs once, over FI_EP_MSG");
	ft_pair_open(&pair, &attr);
	ft_file_dir(FT_FS_MEMORY, dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	maps = ft_file_maps(&pair.dom[1], dir);
	if (maps && ft_core("verbs"))
		stopped(LEN_VERBS, false);
	else if (maps)
		stopped(LEN_TCP, true);
	unlink(path);
	rmdir(dir);
	ft_pair_close(&pair);
	if (!maps)
		ft_skip("files are not mapped here");
	return ft_done();
}
