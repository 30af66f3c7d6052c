/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads the process's mappings from /proc/self/maps. Other threads may change
 * mappings meanwhile.
 *
 * Any thread. Allocates and maps no memory.
 */
#ifndef MRRC_MAPPINGS_H
#define MRRC_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrrc_mapping {
	uintptr_t start, end;
	bool read, write, execute, shared;
	uintptr_t offset;	/* offset in the file, bytes */
	uint64_t device, inode; /* the file's; inode 0: no file */
	const char *name;	/* "[heap]", the beginning of a path, or "" */
};

/*
 * Calls @each for the mappings in order of addresses, until @each returns
 * false. Returns false if /proc is not mounted.
 */
bool mrrc_mappings_each(bool (*each)(void *arg,
				     const struct mrrc_mapping *mapping),
			void *arg);

/* Parses a hexadecimal number without "0x"; returns where it ends. */
const char *mrrc_mappings_hex(const char *text, uintptr_t *value);

/* The number of mappings; 0: no /proc. */
size_t mrrc_mappings_count(void);

#endif /* MRRC_MAPPINGS_H */
