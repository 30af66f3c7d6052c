/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The part of fi_mrrc_info that sets variables in libfabric.conf, which
 * libfabric reads since 1.18. fopen() of this file, in place of libc's, gives
 * libfabric a file of the test.
 */
#include "info/info.h"

#include <dlfcn.h>
#include <sys/mman.h>

static const char *conf; /* contents of libfabric.conf; NULL: the system's */

__attribute__((visibility("default"))) FILE *fopen(const char *path,
						   const char *mode)
{
	FILE *(*libc_fopen)(const char *path_, const char *mode_);
	const char *base = strrchr(path, '/');
	int fd;

	if (!conf || strcmp(base ? base + 1 : path, "libfabric.conf")) {
		*(void **) &libc_fopen = dlsym(RTLD_NEXT, "fopen");
		return libc_fopen(path, mode);
	}
	fd = memfd_create("conf", MFD_CLOEXEC);
	FT_CHECK(fd >= 0 && dprintf(fd, "%s", conf) > 0 &&
			 !lseek(fd, 0, SEEK_SET),
		 "libfabric.conf");
	return fdopen(fd, mode);
}

/* libfabric's name for fopen() if it was built for large files */
__attribute__((visibility("default"))) FILE *fopen64(const char *path,
						     const char *mode)
{
	return fopen(path, mode);
}

void named_in_conf(void)
{
	struct fi_info *hints, *info, *i;
	char text[128];
	int ret;

	if (FI_VERSION_LT(fi_version(), FI_VERSION(1, 18)))
		return;
	hints = info_hints(NULL);
	snprintf(text, sizeof(text), "FI_PROVIDER=%s\n", ft_opts.prov);
	conf = text;
	ret = fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			 &info);
	FT_CHECK(!ret, "FI_PROVIDER of the file: %s", fi_strerror(-ret));
	for (i = info; i; i = i->next)
		FT_CHECK(!strcmp(i->fabric_attr->prov_name, ft_opts.prov),
			 "FI_PROVIDER of the file names us, %s answers",
			 i->fabric_attr->prov_name);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}
