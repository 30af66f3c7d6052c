/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_get: fetches files and directories from fi_mrrc_serve
 * (fi_mrrc_get(1)).
 */
#include "config.h"

#include <argp.h>
#include <signal.h>

#include "out.h"
#include "serve/client/get.h"

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = 1;
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_signal };
	struct get_options options;
	int ret;

	argp_program_version = PACKAGE_STRING;
	out_check_at_exit("fi_mrrc_get");
	get_options_parse(argc, argv, &options);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* with SIGXFSZ ignored a too large write fails, which is reported */
	signal(SIGXFSZ, SIG_IGN);
	ret = get_run(&options, &stop);
	get_options_free(&options);
	return ret;
}
