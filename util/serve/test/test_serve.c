/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs the tests of parts of fi_mrrc_serve and fi_mrrc_get that need no
 * network, and makes the files that the tests use.
 */
#include "config.h"
#include "test_serve.h"

#include <fcntl.h>
#include <sys/stat.h>

static char root[] = "/tmp/test_serve.XXXXXX";
int top = -1, out = -1;

void write_file(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

void make_files(void)
{
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	top = open(root, O_RDONLY | O_DIRECTORY);
	ck_assert_int_eq(mkdirat(top, "served", 0755), 0);
	ck_assert_int_eq(mkdirat(top, "out", 0755), 0);
	out = openat(top, "out", O_RDONLY | O_DIRECTORY);
	write_file(out, "secret", "secret");
	close(top);
	top = open(root, O_PATH);
	top = openat(top, "served", O_RDONLY | O_DIRECTORY);
	write_file(top, "file", "0123456789");
	ck_assert_int_eq(mkdirat(top, "dir", 0755), 0);
	ck_assert_int_eq(symlinkat("../out/secret", top, "link"), 0);
	ck_assert_int_eq(symlinkat("file", top, "inner"), 0);
	ck_assert_int_eq(symlinkat("../out", top, "linked"), 0);
	ck_assert_int_eq(mkfifoat(top, "fifo", 0666), 0);
}

void remove_files(void)
{
	char command[64];

	close(top);
	close(out);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

int main(void)
{
	return run_cases(CK_FORK_GETENV);
}
