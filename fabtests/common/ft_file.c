/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Makes folders on several file systems, for tests that send parts of files. */
#include "ft_mrrc.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/*
 * Mounts an overlay over two folders in memory, in a separate mount namespace.
 */
static bool overlay(char *dir, size_t size)
{
	const char *base = "/dev/shm";
	static bool mounted;

	if (!mounted) {
		if (unshare(CLONE_NEWNS) ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("fi_mrrc", base, "tmpfs", 0, NULL))
			return false;
		mkdir("/dev/shm/lower", 0700);
		mkdir("/dev/shm/upper", 0700);
		mkdir("/dev/shm/work", 0700);
		mkdir("/dev/shm/merged", 0700);
		if (mount("fi_mrrc", "/dev/shm/merged", "overlay", 0,
			  "lowerdir=/dev/shm/lower,upperdir=/dev/shm/upper,"
			  "workdir=/dev/shm/work"))
			return false;
		mounted = true;
	}
	snprintf(dir, size, "/dev/shm/merged/fi_mrrc.XXXXXX");
	return mkdtemp(dir);
}

bool ft_file_dir(enum ft_fs fs, char *dir, size_t size)
{
	const char *tmp = getenv("TMPDIR");

	switch (fs) {
	case FT_FS_MEMORY:
		snprintf(dir, size, "/dev/shm/fi_mrrc.XXXXXX");
		break;
	case FT_FS_DISK:
		snprintf(dir, size, "%s/fi_mrrc.XXXXXX", tmp ? tmp : "/tmp");
		break;
	default:
		return overlay(dir, size);
	}
	FT_CHECK(mkdtemp(dir), "%s: %s", dir, strerror(errno));
	return true;
}

int ft_file_make(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	FT_CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	FT_CHECK(pwrite(fd, data, len, 0) == (ssize_t) len, "%s: %s", path,
		 strerror(errno));
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	FT_CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	return fd;
}

/*
 * Does the device register shared read-only mappings? Before Linux 6.2 devices
 * do not.
 */
static bool registrable(struct ft_dom *dom, int fd)
{
	struct fid_mr *mr;
	void *p;
	int ret;

	if (!ft_core("verbs"))
		return true;
	p = mmap(NULL, FT_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	FT_CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno));
	ret = fi_mr_reg(dom->domain, p, FT_PAGE, FI_SEND, 0, 4712, 0, &mr,
			NULL);
	if (!ret)
		FT_CALL(fi_close(&mr->fid));
	munmap(p, FT_PAGE);
	return !ret;
}

bool ft_file_maps(struct ft_dom *dom, const char *dir)
{
	const uint32_t keeps[] = { 0xef53, 0x58465342, 0x9123683e, 0x01021994 };
	struct statfs fs;
	char path[128];
	bool can = false;
	unsigned i;
	int fd;

	FT_CHECK(!statfs(dir, &fs), "%s: %s", dir, strerror(errno));
	for (i = 0; i < sizeof(keeps) / sizeof(*keeps); i++)
		can |= (uint32_t) fs.f_type == keeps[i];
	snprintf(path, sizeof(path), "%s/maps", dir);
	fd = ft_file_make(path, path, sizeof(path));
	unlink(path);
	can = can && !fcntl(fd, F_SETLEASE, F_RDLCK) && registrable(dom, fd);
	close(fd);
	return can;
}

bool ft_file_direct(struct ft_dom *dom, const char *dir)
{
	static bool said;
	struct fid_mrrc_file *file;
	char path[128];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/direct", dir);
	fd = ft_file_make(path, path, sizeof(path));
	unlink(path);
	ret = fi_mrrc_file_open(dom->domain, fd, FI_MRRC_FILE_DIRECT, &file,
				NULL);
	close(fd);
	if (!ret) {
		FT_CALL(fi_close(&file->fid));
		return true;
	}
	FT_CHECK(ret == -FI_EOPNOTSUPP, "direct: %d (%s)", ret,
		 fi_strerror(-ret));
	if (!said)
		printf("note: %s: files are not read directly here\n", dir);
	said = true;
	return false;
}
