/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wakes a segment's thread and waits for the thread's update (stat/update.h).
 * The segment is mapped without write access, which is enough for futex(2). A
 * file that could become shorter while it is mapped is not mapped.
 */
#include "config.h"
#include "stat/update.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sys/observe/stats_shm.h"

#define TRIES  50
#define TRY_NS 2000000

static long futex(const uint32_t *word, int op, uint32_t value,
		  const struct timespec *limit)
{
	return syscall(SYS_futex, word, op, value, limit, NULL, 0);
}

/* Wakes the thread repeatedly, as the thread may have been about to sleep. */
static bool wake(const struct mrrc_stats_shm_head *head)
{
	const struct timespec limit = { .tv_nsec = TRY_NS };
	const uint32_t before =
		__atomic_load_n(&head->updates, __ATOMIC_ACQUIRE);
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		futex(&head->wake, FUTEX_WAKE, INT_MAX, NULL);
		futex(&head->updates, FUTEX_WAIT, before, &limit);
		if (__atomic_load_n(&head->updates, __ATOMIC_ACQUIRE) != before)
			return true;
	}
	return false;
}

bool stat_update(int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	const struct mrrc_stats_shm_head *head;
	struct stat stat;
	bool answers;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &stat) ||
	    stat.st_size < (off_t) sizeof(*head))
		return true;
	head = mmap(NULL, sizeof(*head), PROT_READ, MAP_SHARED, fd, 0);
	if (head == MAP_FAILED)
		return true;
	answers = head->magic != MRRC_STATS_SHM_MAGIC ||
		  head->version != MRRC_STATS_SHM_VERSION ||
		  head->head_size < sizeof(*head) || !head->serves ||
		  wake(head);
	munmap((void *) head, sizeof(*head));
	return answers;
}
