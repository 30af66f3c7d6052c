/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps a core's own registration cache away from our domains, without
 * disabling it for others in the process (import.c).
 */
#ifndef MRRC_IMPORT_H
#define MRRC_IMPORT_H

#include <stdbool.h>

/*
 * Between mrrc_core_open_begin() and mrrc_core_open_end() this thread opens
 * domains for us, which get no cache of the core, nor of the hooking provider.
 * local: the core requires registration, so the core may have a cache. Calls do
 * not nest.
 */
void mrrc_core_open_begin(bool local);
void mrrc_core_open_end(void);

/*
 * Does the environment let a core that has a cache use the cache, and so keep
 * the keys of closed registrations?
 */
bool mrrc_core_keeps_keys(void);

/* Is this thread between mrrc_core_open_begin() and mrrc_core_open_end()? */
bool mrrc_core_opening(void);

#endif /* MRRC_IMPORT_H */
