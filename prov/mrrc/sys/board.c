/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters that others may read (board.h).
 *
 * A forked child shares the pages with its parent. It does not write to them,
 * as nothing is counted there (mrrc_mon_forked), and closes only its own copy.
 */
#include "config.h"
#include "sys/board.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bsd/sys/queue.h>

#include "sys/fd_id.h"
#include "sys/vm.h"

#define BOARD_ALIGN	64

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE	0x0010
#endif
/* The size stays, and only the mapping that exists may write. */
#define BOARD_SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | \
			 F_SEAL_SEAL)

struct mrrc_board {
	struct mrrc_board_head *head;
	size_t size;
	int fd;
	struct mrrc_fd_id id;	/* of fd */
	void (*asks)(void *arg, char why[MRRC_TRUST_WHY]);
	void *arg;
	bool listed;		/* boards.lock */
	TAILQ_ENTRY(mrrc_board) link;	/* boards.lock */
};

/* That are published, and say why lookups ask. */
static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	TAILQ_HEAD(board_head, mrrc_board) head;
} boards = {
	.once = PTHREAD_ONCE_INIT,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.head = TAILQ_HEAD_INITIALIZER(boards.head),
};

static void board_fork_prepare(void)
{
	pthread_mutex_lock(&boards.lock);
}

static void board_fork_parent(void)
{
	pthread_mutex_unlock(&boards.lock);
}

/* The boards are the parent's. */
static void board_fork_child(void)
{
	struct mrrc_board *board;

	while ((board = TAILQ_FIRST(&boards.head))) {
		TAILQ_REMOVE(&boards.head, board, link);
		board->listed = false;
	}
	pthread_mutex_unlock(&boards.lock);
}

static void board_once(void)
{
	pthread_atfork(board_fork_prepare, board_fork_parent,
		       board_fork_child);
}

static size_t board_align(size_t size)
{
	return (size + BOARD_ALIGN - 1) & ~(size_t)(BOARD_ALIGN - 1);
}

static size_t board_values(void)
{
	return board_align(sizeof(struct mrrc_board_head));
}

static size_t board_names(void)
{
	return board_align(board_values() + sizeof(struct mrrc_stats));
}

/* Their size; written to @names unless that is NULL. */
static size_t board_put_names(char *names)
{
	size_t size = 0;
	size_t len;
	int i;

	for (i = 0; i < MRRC_STAT_CNT; i++) {
		len = strlen(mrrc_stat_name(i)) + 1;
		if (names)
			memcpy(names + size, mrrc_stat_name(i), len);
		size += len;
	}
	return size;
}

/* Memory for the file first: a page that cannot be had later is a SIGBUS. */
static int board_map(struct mrrc_board *board)
{
	void *map;
	int rc;

	if (fallocate(board->fd, 0, 0, board->size))
		return -errno;
	rc = mrrc_fd_id(board->fd, &board->id);
	if (rc)
		return rc;
	map = mmap(NULL, board->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   board->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	if (fcntl(board->fd, F_ADD_SEALS, BOARD_SEALS)) {
		rc = -errno;
		munmap(map, board->size);
		return rc;
	}
	board->head = map;
	return 0;
}

int mrrc_board_open(struct mrrc_board **out)
{
	const size_t page = mrrc_vm_page();
	struct mrrc_board *board;
	int rc;

	pthread_once(&boards.once, board_once);
	board = calloc(1, sizeof(*board));
	if (!board)
		return -ENOMEM;
	board->size = (board_names() + board_put_names(NULL) + page - 1) &
		      ~(page - 1);
	board->fd = memfd_create(MRRC_BOARD_NAME,
				 MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (board->fd < 0) {
		rc = -errno;
		goto err_free;
	}
	rc = board_map(board);
	if (rc)
		goto err_close;
	*out = board;
	return 0;

err_close:
	close(board->fd);
err_free:
	free(board);
	return rc;
}

struct mrrc_stats *mrrc_board_stats(struct mrrc_board *board)
{
	return (struct mrrc_stats *)((char *)board->head + board_values());
}

/* boards.lock held. A reader finds the one or the other whole. */
static void board_say(struct mrrc_board *board)
{
	struct mrrc_board_head *head = board->head;
	const uint32_t at = !head->asks_at;
	char *text = head->asks[at];

	memset(text, 0, MRRC_TRUST_WHY);
	board->asks(board->arg, text);
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
	__atomic_store_n(&head->asks_at, at, __ATOMIC_RELEASE);
}

void mrrc_board_update(void)
{
	struct mrrc_board *board;

	pthread_mutex_lock(&boards.lock);
	TAILQ_FOREACH(board, &boards.head, link)
		board_say(board);
	pthread_mutex_unlock(&boards.lock);
}

static void board_list(struct mrrc_board *board,
		       const struct mrrc_board_info *info)
{
	board->asks = info->asks;
	board->arg = info->arg;
	pthread_mutex_lock(&boards.lock);
	TAILQ_INSERT_TAIL(&boards.head, board, link);
	board->listed = true;
	board_say(board);
	pthread_mutex_unlock(&boards.lock);
}

void mrrc_board_publish(struct mrrc_board *board,
			const struct mrrc_board_info *info)
{
	struct mrrc_board_head *head = board->head;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	head->version = MRRC_BOARD_VERSION;
	head->head_size = sizeof(*head);
	head->size = board->size;
	head->pid = getpid();
	head->opened = now.tv_sec * 1000000000ULL + now.tv_nsec;
	head->max_bytes = info->max_bytes;
	head->max_regions = info->max_regions;
	head->counters = MRRC_STAT_CNT;
	head->values = board_values();
	head->names = board_names();
	head->names_size = board_put_names((char *)head + board_names());
	snprintf(head->provider, sizeof(head->provider), "%s", info->provider);
	snprintf(head->policy, sizeof(head->policy), "%s", info->policy);
	snprintf(head->monitor, sizeof(head->monitor), "%s", info->monitor);
	if (info->asks)
		board_list(board, info);
	atomic_thread_fence(memory_order_release);
	*(volatile uint64_t *)&head->magic = MRRC_BOARD_MAGIC;
}

void mrrc_board_close(struct mrrc_board *board)
{
	if (!board)
		return;
	pthread_mutex_lock(&boards.lock);
	if (board->listed)
		TAILQ_REMOVE(&boards.head, board, link);
	pthread_mutex_unlock(&boards.lock);
	munmap(board->head, board->size);
	if (mrrc_fd_is(board->fd, &board->id))
		close(board->fd);
	free(board);
}
