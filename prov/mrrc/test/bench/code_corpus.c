/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints the system calls that the code of files can make, found with code.h: a
 * line for each file, and a line for each unknown place.
 */
#include "config.h"
#include "sys/proof/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NUMBERS 1024

struct file {
	const char *path;
	uintptr_t base;
	bool verbose;
	bool has[NUMBERS]; /* numbers that sites pass */
	uintptr_t known;   /* the last site that passes known numbers */
	unsigned knowns;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double) time.tv_sec * 1e3 + (double) time.tv_nsec / 1e6;
}

static bool site(void *arg, const struct mrrc_code_site *one)
{
	struct file *file = arg;

	if (one->number == MRRC_CODE_ANY) {
		printf("  %s+0x%zx: %s\n", file->path, one->at - file->base,
		       one->why);
		return true;
	}
	if (file->verbose)
		printf("  %s+0x%zx: %ld\n", file->path, one->at - file->base,
		       one->number);
	if (one->number < NUMBERS)
		file->has[one->number] = true;
	if (one->at != file->known)
		file->knowns++;
	file->known = one->at;
	return true;
}

static int look(struct mrrc_code_file *elf, struct file *file)
{
	struct mrrc_code_counts sum = { 0 }, counts = { 0 };
	struct mrrc_code_image image;
	const double start = now();
	unsigned nth;
	int ret = 0;

	file->base = elf->base;
	for (nth = 0; !ret && mrrc_code_segment(elf, nth, &image); nth++) {
		ret = mrrc_code_look(&image, site, file, &counts);
		if (ret)
			break;
		sum.pairs += counts.pairs;
		sum.instructions += counts.instructions;
		sum.data += counts.data;
		sum.unknown += counts.unknown;
	}
	if (ret)
		printf("%s: %s\n", file->path, strerror(-ret));
	else
		printf("%s %u %u %u %u %u %.2f\n", file->path, sum.pairs,
		       sum.instructions, file->knowns, sum.data, sum.unknown,
		       now() - start);
	return ret;
}

int main(int argc, char **argv)
{
	int i = 1, ret, failed = 0;
	bool verbose = false;
	struct mrrc_code_file elf = { 0 };
	struct file file;

	if (argc > 1 && !strcmp(argv[1], "-v")) {
		verbose = true;
		i++;
	}
	printf("file pairs instructions numbers-known data unknown ms\n");
	for (; i < argc; i++) {
		file = (struct file){ .path = argv[i], .verbose = verbose };
		ret = mrrc_code_open(argv[i], &elf);
		if (ret) {
			printf("%s: %s\n", argv[i], strerror(-ret));
			failed = 1;
			continue;
		}
		failed |= look(&elf, &file) != 0;
		mrrc_code_close(&elf);
	}
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
