/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Declarations for fuzz tests. libFuzzer needs clang
 * -fsanitize=fuzzer,address,undefined. Without libFuzzer, fuzz_main.c makes a
 * program that reads the files named as arguments, or the corpus.
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

/* the test's folder of inputs, in the sources */
extern const char fuzz_corpus[];
/* inputs are also tried with each byte changed in turn */
extern const bool fuzz_each_byte;

#endif /* MRRC_TEST_FUZZ_H */
