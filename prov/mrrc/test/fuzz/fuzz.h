/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What programs that are given any bytes share. With libFuzzer: clang
 * -fsanitize=fuzzer,address,undefined. Without, with fuzz_main.c: a program that
 * reads the files named as arguments, or the corpus.
 */
#ifndef MRRC_TEST_FUZZ_H
#define MRRC_TEST_FUZZ_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define must(condition)                                              \
	do {                                                         \
		if (!(condition)) {                                  \
			fprintf(stderr, "not so: %s\n", #condition); \
			abort();                                     \
		}                                                    \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const char fuzz_corpus[]; /* its folder, in the sources */
extern const bool
	fuzz_each_byte; /* files also with every byte changed in turn */

#endif /* MRRC_TEST_FUZZ_H */
