/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mappings of the process (mappings.h).
 */
#include "config.h"
#include "sys/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define LINE	160	/* bytes of a line that are looked at */
#define FIELDS	5	/* before the name */

struct mappings_file {
	int fd;
	size_t at, len;
	char buf[2048];
	char line[LINE];
};

/* The next byte; -1: there is none. */
static int mappings_byte(struct mappings_file *file)
{
	ssize_t len;

	if (file->at == file->len) {
		do {
			len = read(file->fd, file->buf, sizeof(file->buf));
		} while (len < 0 && errno == EINTR);
		if (len <= 0)
			return -1;
		file->at = 0;
		file->len = len;
	}
	return (unsigned char)file->buf[file->at++];
}

/* The next line, its end cut off if it is long. */
static bool mappings_line(struct mappings_file *file)
{
	size_t len = 0;
	int byte;

	while ((byte = mappings_byte(file)) >= 0 && byte != '\n') {
		if (len < LINE - 1)
			file->line[len++] = (char)byte;
	}
	file->line[len] = '\0';
	return byte >= 0;
}

/*
 * A hexadecimal number; where it ends. Not scanf() or strtoul(), for the
 * reason in vm.c.
 */
static const char *mappings_hex(const char *text, uintptr_t *value)
{
	*value = 0;
	for (;; text++) {
		if (*text >= '0' && *text <= '9')
			*value = *value << 4 | (uintptr_t)(*text - '0');
		else if (*text >= 'a' && *text <= 'f')
			*value = *value << 4 | (uintptr_t)(*text - 'a' + 10);
		else
			return text;
	}
}

static void mappings_parse(const char *line, struct mrrc_mapping *mapping)
{
	const char *at = mappings_hex(line, &mapping->start);
	int i;

	mapping->end = 0;
	if (*at == '-')
		at = mappings_hex(at + 1, &mapping->end);
	for (i = 1; i < FIELDS; i++) {
		at += strspn(at, " ");
		at += strcspn(at, " ");
	}
	mapping->name = at + strspn(at, " ");
}

bool mrrc_mappings_each(bool (*each)(void *arg,
				     const struct mrrc_mapping *mapping),
			void *arg)
{
	struct mappings_file file = { 0 };
	struct mrrc_mapping mapping;
	int cancel;

	/* in read(2) it would leave with the caller's locks held */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	file.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	while (file.fd >= 0 && mappings_line(&file)) {
		mappings_parse(file.line, &mapping);
		if (!each(arg, &mapping))
			break;
	}
	if (file.fd >= 0)
		close(file.fd);
	pthread_setcancelstate(cancel, NULL);
	return file.fd >= 0;
}

static bool mappings_one_more(void *arg, const struct mrrc_mapping *mapping)
{
	size_t *count = arg;

	(void)mapping;
	++*count;
	return true;
}

size_t mrrc_mappings_count(void)
{
	size_t count = 0;

	mrrc_mappings_each(mappings_one_more, &count);
	return count;
}
