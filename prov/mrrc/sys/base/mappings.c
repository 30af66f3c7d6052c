/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mappings of the process (mappings.h).
 */
#include "config.h"
#include "sys/base/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define LINE  512  /* bytes of a line that are read */
#define CHUNK 2048 /* bytes read at a time; threads may have small stacks */

struct mappings_file {
	int fd;
	size_t at, len;
	char buf[CHUNK];
	char line[LINE];
};

/* The next byte of the file; -1: no byte is left. */
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
	return (unsigned char) file->buf[file->at++];
}

/* Reads the next line, and cuts off the end of a long one. */
static bool mappings_line(struct mappings_file *file)
{
	size_t len = 0;
	int byte;

	while ((byte = mappings_byte(file)) >= 0 && byte != '\n') {
		if (len < LINE - 1)
			file->line[len++] = (char) byte;
	}
	file->line[len] = '\0';
	return byte >= 0;
}

/* Uses neither scanf() nor strtoul(), for the reason given in vm.c. */
const char *mrrc_mappings_hex(const char *text, uintptr_t *value)
{
	*value = 0;
	for (;; text++) {
		if (*text >= '0' && *text <= '9')
			*value = *value << 4 | (uintptr_t) (*text - '0');
		else if (*text >= 'a' && *text <= 'f')
			*value = *value << 4 | (uintptr_t) (*text - 'a' + 10);
		else
			return text;
	}
}

static const char *mappings_decimal(const char *text, uint64_t *value)
{
	for (*value = 0; *text >= '0' && *text <= '9'; text++)
		*value = *value * 10 + (uint64_t) (*text - '0');
	return text;
}

static const char *mappings_skip(const char *text, char byte)
{
	return *text == byte ? text + 1 : text;
}

/* start-end rwxp offset major:minor inode name */
static void mappings_parse(const char *line, struct mrrc_mapping *mapping)
{
	uintptr_t major, minor;
	const char *at;

	at = mappings_skip(mrrc_mappings_hex(line, &mapping->start), '-');
	at = mappings_skip(mrrc_mappings_hex(at, &mapping->end), ' ');
	mapping->read = at[0] == 'r';
	mapping->write = at[0] && at[1] == 'w';
	mapping->execute = strcspn(at, "x") < strcspn(at, " ");
	mapping->shared = strcspn(at, "s") < strcspn(at, " ");
	at = mappings_skip(at + strcspn(at, " "), ' ');
	at = mappings_skip(mrrc_mappings_hex(at, &mapping->offset), ' ');
	at = mappings_skip(mrrc_mappings_hex(at, &major), ':');
	at = mappings_skip(mrrc_mappings_hex(at, &minor), ' ');
	mapping->device = (uint64_t) major << 32 | minor;
	at = mappings_decimal(at, &mapping->inode);
	mapping->name = at + strspn(at, " ");
}

bool mrrc_mappings_each(bool (*each)(void *arg,
				     const struct mrrc_mapping *mapping),
			void *arg)
{
	struct mappings_file file = { 0 };
	struct mrrc_mapping mapping;
	int cancel;

	/*
	 * a thread cancelled in read(2) would end with the caller's locks held
	 */
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

/* Each mapping has one line in the file; a line end in a name is escaped. */
size_t mrrc_mappings_count(void)
{
	char buf[CHUNK];
	size_t count = 0;
	ssize_t len, i;
	int cancel;
	int fd;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	do {
		len = fd < 0 ? 0 : read(fd, buf, sizeof(buf));
		for (i = 0; i < len; i++)
			count += buf[i] == '\n';
	} while (len > 0 || (len < 0 && errno == EINTR));
	if (fd >= 0)
		close(fd);
	pthread_setcancelstate(cancel, NULL);
	return count;
}
