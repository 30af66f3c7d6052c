/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Under a version of libfabric that the provider cannot work with, the provider
 * prints a message and declines.
 *
 * Usage: test_version MODULE. The module finds the fi_version() that this
 * program defines.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint32_t fi_version(void);

static uint32_t version;

__attribute__((visibility("default"))) uint32_t fi_version(void)
{
	return version;
}

/* Returns what the module answered; @text gets its messages. */
static void *ini(void *(*prov_ini)(void), uint32_t major, uint32_t minor,
		 char *text, size_t len)
{
	int pipe_fd[2], saved = dup(STDERR_FILENO);
	ssize_t n = 0;
	void *prov;

	if (pipe(pipe_fd))
		exit(EXIT_FAILURE);
	/* The write end is closed later, so that the read does not wait. */
	dup2(pipe_fd[1], STDERR_FILENO);
	version = major << 16 | minor;
	prov = prov_ini();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(pipe_fd[1]);
	n = read(pipe_fd[0], text, len - 1);
	text[n > 0 ? n : 0] = '\0';
	close(pipe_fd[0]);
	return prov;
}

int main(int argc, char **argv)
{
	static const uint32_t refused[][2] = {
		{ 1, 3 }, { 1, 16 }, { 0, 99 }, { 3, 0 }, { 77, 1 },
	};
	void *(*prov_ini)(void);
	char text[512];
	void *module;
	int failed = 0;
	size_t i;

	module = dlopen(argc > 1 ? argv[1] : ".libs/libmrrc-fi.so", RTLD_NOW);
	if (!module) {
		fprintf(stderr, "%s\n", dlerror());
		return EXIT_FAILURE;
	}
	*(void **) &prov_ini = dlsym(module, "fi_prov_ini");
	if (!prov_ini)
		return EXIT_FAILURE;

	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (ini(prov_ini, refused[i][0], refused[i][1], text,
			sizeof(text)) ||
		    !strstr(text, "rebuild")) {
			printf("version %u.%u: not refused in words: %s\n",
			       refused[i][0], refused[i][1], text);
			failed++;
		}
	}
	if (!ini(prov_ini, MRRC_TEST_MAJOR, 99, text, sizeof(text)) || *text) {
		printf("version %d.99: refused: %s\n", MRRC_TEST_MAJOR, text);
		failed++;
	}
	printf("%zu passed, %d failed\n", i + 1 - failed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
