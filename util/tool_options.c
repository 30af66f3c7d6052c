/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options of all tools (tool_options.h).
 */
#include "config.h"
#include "tool_options.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key != 'h')
		return ARGP_ERR_UNKNOWN;
	argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
	return 0;
}

/* argp has -?, which a shell may take for a pattern. */
static const struct argp_option option_table[] = {
	{ NULL, 'h', NULL, 0, "The same as --help", -1 },
	{ 0 },
};

static const struct argp argp = { .options = option_table, .parser = parse };

const struct argp_child tool_options[] = { { &argp, 0, NULL, 0 }, { 0 } };
