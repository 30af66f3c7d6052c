/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asks a process to bring its segment up to date (sys/observe/stats_shm.h)
 * before the segment is read.
 */
#ifndef STAT_UPDATE_H
#define STAT_UPDATE_H

#include <stdbool.h>

/*
 * Asks the process for an update of its segment @fd, and waits a tenth of a
 * second at most. Returns false if the process has not answered, since it is
 * stopped or had no time; counters that the process published before can be
 * read. Files that are no segments, or that belong to a provider without
 * updates, need no update.
 */
bool stat_update(int fd);

#endif /* STAT_UPDATE_H */
