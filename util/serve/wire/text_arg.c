/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arguments of options (serve/wire/text_arg.h).
 */
#include "config.h"
#include "serve/wire/text_arg.h"

#include "core/text/text.h"

unsigned arg_count(struct argp_state *state, const char *what, const char *text,
		   unsigned least, unsigned most)
{
	size_t count = 0;

	if (mrrc_text_count(text, &count) || count < least || count > most)
		argp_error(state, "%s: '%s' is not a number from %u to %u",
			   what, text, least, most);
	return (unsigned) count;
}

size_t arg_size(struct argp_state *state, const char *what, const char *text,
		size_t least, size_t most)
{
	size_t bytes = 0;

	if (mrrc_text_size(text, &bytes) || bytes < least || bytes > most)
		argp_error(state, "%s: '%s' is not from %zu to %zu bytes", what,
			   text, least, most);
	return bytes;
}

const char *arg_port(struct argp_state *state, const char *text)
{
	arg_count(state, "port", text, 1, 65535);
	return text;
}

void arg_secret(struct argp_state *state, const char *path,
		struct secret *secret)
{
	const char *why = secret_read(path, secret);

	if (why)
		argp_error(state, "secret: '%s': %s", path, why);
}
