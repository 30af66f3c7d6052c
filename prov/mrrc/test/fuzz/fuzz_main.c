/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Passes files to LLVMFuzzerTestOneInput(), for make check (fuzz.h). */
#include "config.h"
#include "test/fuzz/fuzz.h"

#include <glob.h>

#define FILE_MAX (1 << 20)

static void fuzz_file(const char *name)
{
	static uint8_t data[FILE_MAX];
	FILE *file = fopen(name, "rb");
	uint8_t *exact, byte;
	unsigned value;
	size_t size, i;

	must(file);
	size = fread(data, 1, sizeof(data), file);
	fclose(file);
	/*
	 * The copy is as long as the input, so that AddressSanitizer reports
	 * reads beyond the input's end.
	 */
	exact = malloc(size ? size : 1);
	must(exact);
	memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	for (i = 0; fuzz_each_byte && i < size; i++) {
		byte = exact[i];
		for (value = 0; value < 256; value++) {
			exact[i] = (uint8_t) value;
			LLVMFuzzerTestOneInput(exact, size);
		}
		exact[i] = byte;
	}
	free(exact);
}

int main(int argc, char **argv)
{
	const char *src = getenv("srcdir");
	char pattern[4096];
	glob_t found;
	size_t i;

	if (argc > 1) {
		for (i = 1; i < (size_t) argc; i++)
			fuzz_file(argv[i]);
		return EXIT_SUCCESS;
	}
	snprintf(pattern, sizeof(pattern), "%s/%s/*", src ? src : ".",
		 fuzz_corpus);
	must(!glob(pattern, 0, NULL, &found));
	for (i = 0; i < found.gl_pathc; i++)
		fuzz_file(found.gl_pathv[i]);
	printf("%zu inputs\n", found.gl_pathc);
	globfree(&found);
	return EXIT_SUCCESS;
}
