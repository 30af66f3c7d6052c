/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * deny_uffd COMMAND [ARGUMENT...]: runs COMMAND where userfaultfd is denied, as
 * in many containers.
 */
#include "ft_mrrc.h"
#include "ft_priv.h"

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "Usage: %s COMMAND [ARGUMENT...]\n", argv[0]);
		return 2;
	}
	ft_deny_uffd();
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
