/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_serve: serves the files of a directory to fi_mrrc_get, by conditional
 * writes (fi_mrrc_serve(1)).
 */
#include "config.h"

#include <argp.h>

#include "out.h"
#include "serve/server/server.h"

int main(int argc, char **argv)
{
	struct serve_options options;

	argp_program_version = PACKAGE_STRING;
	out_check_at_exit("fi_mrrc_serve");
	serve_options_parse(argc, argv, &options);
	return server_run(&options);
}
