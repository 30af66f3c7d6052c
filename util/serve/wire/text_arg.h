/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads arguments of options of fi_mrrc_serve and fi_mrrc_get: numbers, and the
 * file of a secret. Errors are printed to stderr, and end the program with
 * status 2.
 */
#ifndef SERVE_TEXT_ARG_H
#define SERVE_TEXT_ARG_H

#include <argp.h>
#include <stddef.h>

#include "serve/wire/secret.h"

/* Parses a number from least to most. */
unsigned arg_count(struct argp_state *state, const char *what, const char *text,
		   unsigned least, unsigned most);

/* Parses a size, with or without K, M or G. */
size_t arg_size(struct argp_state *state, const char *what, const char *text,
		size_t least, size_t most);

/* Checks a number from 1 to 65535, which is returned as text. */
const char *arg_port(struct argp_state *state, const char *text);

void arg_secret(struct argp_state *state, const char *path,
		struct secret *secret);

#endif /* SERVE_TEXT_ARG_H */
