/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The node's segment (node_shm.h).
 */
#include "config.h"
#include "sys/node/node_shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bsd/sys/queue.h>

#include "sys/base/fd_id.h"
#include "sys/base/file_limit.h"
#include "sys/base/own_file.h"

#define WORD_BITS 40
#define WORD_MASK (MRRC_NODE_UNITS - 1)
#define DEAF_MS	  1000 /* ms without an answer to the bell */

/* This process's knowledge about the slot of another one. */
struct seen {
	uint32_t dead;	/* generation that is dead; 0: none */
	uint32_t heard; /* the slot's @heard at the last look */
	/* ms: when the process first did not answer; 0: it answers */
	uint64_t since;
};

struct mrrc_node_shm {
	struct mrrc_node_head *head;
	int fd; /* has the slot's lock; -1 in a child */
	struct mrrc_fd_id id;
	unsigned mine;
	uint32_t generation;
	struct seen seen[MRRC_NODE_SLOTS];
	TAILQ_ENTRY(mrrc_node_shm) link; /* open_shms.lock */
};

static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	TAILQ_HEAD(, mrrc_node_shm) head;
} open_shms = {
	.once = PTHREAD_ONCE_INIT,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.head = TAILQ_HEAD_INITIALIZER(open_shms.head),
};

static void shm_fork_prepare(void)
{
	pthread_mutex_lock(&open_shms.lock);
}

static void shm_fork_parent(void)
{
	pthread_mutex_unlock(&open_shms.lock);
}

/* The slots belong to the parent, and must end with the parent. */
static void shm_fork_child(void)
{
	struct mrrc_node_shm *shm;

	while ((shm = TAILQ_FIRST(&open_shms.head))) {
		TAILQ_REMOVE(&open_shms.head, shm, link);
		if (mrrc_fd_is(shm->fd, &shm->id))
			close(shm->fd);
		shm->fd = -1;
	}
	pthread_mutex_unlock(&open_shms.lock);
}

static void shm_once(void)
{
	pthread_atfork(shm_fork_prepare, shm_fork_parent, shm_fork_child);
}

void mrrc_node_shm_init(void)
{
	pthread_once(&open_shms.once, shm_once);
}

/* ---- slots ---- */

/* F_OFD_GETLK: -ESRCH: no process has the slot. */
static int slot_lock(int fd, unsigned slot, int command, short type)
{
	struct flock lock = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = slot,
		.l_len = 1,
	};

	if (fcntl(fd, command, &lock))
		return -errno;
	return command != F_OFD_GETLK || lock.l_type != F_UNLCK ? 0 : -ESRCH;
}

static uint32_t word_generation(uint64_t word)
{
	return word >> WORD_BITS;
}

/*
 * Initialises the slot that is locked now: its contents were a dead process's.
 */
static void slot_begin(struct mrrc_node_shm *shm)
{
	struct mrrc_node_slot *slot = &shm->head->slot[shm->mine];
	uint32_t used = atomic_load(&shm->head->slots);
	size_t i;

	shm->generation = word_generation(atomic_load(&slot->word)) + 1;
	if (shm->generation >> (64 - WORD_BITS))
		shm->generation = 1;
	mrrc_node_shm_reserve(shm, 0);
	atomic_store(&slot->want, 0);
	atomic_store(&slot->used, 0);
	atomic_store(&slot->cpus, UINT64_MAX);
	for (i = 0; i < sizeof(slot->spare) / sizeof(*slot->spare); i++)
		atomic_store(&slot->spare[i], 0);
	atomic_store(&slot->heard, atomic_load(&shm->head->bell));
	atomic_store(&slot->flags, MRRC_NODE_LIVE | MRRC_NODE_ACTIVE);
	while (used <= shm->mine &&
	       !atomic_compare_exchange_weak(&shm->head->slots, &used,
					     shm->mine + 1))
		;
}

static int slot_claim(struct mrrc_node_shm *shm)
{
	int ret;

	for (shm->mine = 0; shm->mine < MRRC_NODE_SLOTS; shm->mine++) {
		ret = slot_lock(shm->fd, shm->mine, F_OFD_SETLK, F_WRLCK);
		if (!ret) {
			slot_begin(shm);
			return 0;
		}
		if (ret != -EAGAIN && ret != -EACCES)
			return ret;
	}
	return -EUSERS;
}

/* ---- the file ---- */

/*
 * Checks that the file is a segment, or empty and to become a segment, and
 * reserves its memory. The segment of another version may be longer.
 */
static int file_check(int fd)
{
	const off_t size = sizeof(struct mrrc_node_head);
	struct stat stat;

	if (fstat(fd, &stat))
		return -errno;
	/* mrrc_own_file_open() has checked the owner */
	if (!S_ISREG(stat.st_mode) || (stat.st_mode & 07777) != 0600)
		return -EPERM;
	if (!stat.st_size && !mrrc_file_may(size))
		return -EFBIG;
	if (!stat.st_size && fallocate(fd, 0, 0, size))
		return -errno;
	return !stat.st_size || stat.st_size >= size ? 0 : -EPROTO;
}

static int shm_map(struct mrrc_node_shm *shm, const char *path)
{
	uint64_t magic = 0;
	void *map = NULL;
	int fd, ret;

	fd = mrrc_own_file_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	ret = file_check(fd);
	if (!ret)
		ret = mrrc_fd_id(fd, &shm->id);
	if (!ret) {
		map = mmap(NULL, sizeof(*shm->head), PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, 0);
		ret = map == MAP_FAILED ? -errno : 0;
	}
	close(fd);
	if (ret)
		return ret;
	shm->head = map;
	if (atomic_compare_exchange_strong(&shm->head->magic, &magic,
					   MRRC_NODE_SHM_MAGIC) ||
	    magic == MRRC_NODE_SHM_MAGIC)
		return 0;
	munmap(map, sizeof(*shm->head));
	return -EPROTO;
}

/* Opens a separate file description, to which no mapping refers. */
static int shm_open_lock(struct mrrc_node_shm *shm, const char *path)
{
	shm->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (shm->fd < 0)
		return -errno;
	if (mrrc_fd_is(shm->fd, &shm->id))
		return 0;
	close(shm->fd);
	return -ESTALE;
}

int mrrc_node_shm_path(const char *dir, char *path, size_t size)
{
	const int len = snprintf(path, size, "%s/" MRRC_NODE_SHM_NAME, dir,
				 (unsigned) geteuid());

	return len < (int) size ? 0 : -ENAMETOOLONG;
}

int mrrc_node_shm_open(const char *dir, struct mrrc_node_shm **out)
{
	struct mrrc_node_shm *shm;
	char path[PATH_MAX];
	int ret;

	mrrc_node_shm_init();
	ret = mrrc_node_shm_path(dir, path, sizeof(path));
	if (ret)
		return ret;
	shm = calloc(1, sizeof(*shm));
	if (!shm)
		return -ENOMEM;
	ret = shm_map(shm, path);
	if (ret)
		goto err_free;
	ret = shm_open_lock(shm, path);
	if (ret)
		goto err_unmap;
	ret = slot_claim(shm);
	if (ret)
		goto err_close;
	pthread_mutex_lock(&open_shms.lock);
	TAILQ_INSERT_TAIL(&open_shms.head, shm, link);
	pthread_mutex_unlock(&open_shms.lock);
	*out = shm;
	return 0;

err_close:
	close(shm->fd);
err_unmap:
	munmap(shm->head, sizeof(*shm->head));
err_free:
	free(shm);
	return ret;
}

void mrrc_node_shm_close(struct mrrc_node_shm *shm)
{
	if (shm->fd >= 0) {
		pthread_mutex_lock(&open_shms.lock);
		TAILQ_REMOVE(&open_shms.head, shm, link);
		pthread_mutex_unlock(&open_shms.lock);
	}
	if (mrrc_node_shm_whole(shm)) {
		mrrc_node_shm_reserve(shm, 0);
		atomic_store(&mrrc_node_shm_mine(shm)->flags, 0);
		/* a child of a bare clone(2) may share this file description */
		slot_lock(shm->fd, shm->mine, F_OFD_SETLK, F_UNLCK);
		close(shm->fd);
	}
	munmap(shm->head, sizeof(*shm->head));
	free(shm);
}

const char *mrrc_node_shm_why(int err)
{
	switch (-err) {
	case EPERM:
		return "a file that is not this user's alone";
	case EPROTO:
		return "a file with other content";
	case EUSERS:
		return "no room for one more process";
	case ENOSPC:
		return "no memory left in it";
	default:
		return mrrc_own_file_why(err);
	}
}

bool mrrc_node_shm_whole(const struct mrrc_node_shm *shm)
{
	return shm->fd >= 0 && mrrc_fd_is(shm->fd, &shm->id);
}

struct mrrc_node_slot *mrrc_node_shm_mine(struct mrrc_node_shm *shm)
{
	return &shm->head->slot[shm->mine];
}

void mrrc_node_shm_reserve(struct mrrc_node_shm *shm, uint64_t units)
{
	if (units > WORD_MASK)
		units = WORD_MASK;
	atomic_store(&shm->head->slot[shm->mine].word,
		     (uint64_t) shm->generation << WORD_BITS | units);
}

/* ---- reading ---- */

/*
 * Reads the slot's word after the caller has published its own reservation: so
 * a process that took the slot in between sees the caller's reservation.
 */
static bool slot_dead(struct mrrc_node_shm *shm, unsigned i, bool look)
{
	const uint32_t generation =
		word_generation(atomic_load(&shm->head->slot[i].word));
	struct seen *seen = &shm->seen[i];

	if (i == shm->mine)
		return false;
	if (look && generation != seen->dead &&
	    slot_lock(shm->fd, i, F_OFD_GETLK, F_WRLCK) == -ESRCH)
		seen->dead = generation;
	/* the generation of a process is not 0 */
	return !generation || generation == seen->dead;
}

/* Has the slot's process left the bell unanswered for long? */
static bool slot_deaf(struct mrrc_node_shm *shm, unsigned i, uint64_t now)
{
	const uint32_t heard = atomic_load(&shm->head->slot[i].heard);
	struct seen *seen = &shm->seen[i];

	if (heard == atomic_load(&shm->head->bell))
		return false;
	if (heard != seen->heard || !seen->since) {
		seen->heard = heard;
		seen->since = now;
	}
	return i != shm->mine && now - seen->since > DEAF_MS;
}

static uint64_t slot_units(_Atomic uint64_t *from)
{
	return atomic_load(from) & WORD_MASK;
}

size_t mrrc_node_shm_read(struct mrrc_node_shm *shm, bool look, uint64_t now,
			  struct mrrc_node_share *share, size_t *self)
{
	uint32_t slots = atomic_load(&shm->head->slots);
	struct mrrc_node_slot *slot;
	uint32_t i, flags;
	size_t count = 0;

	if (slots <= shm->mine)
		slots = shm->mine + 1;
	if (slots > MRRC_NODE_SLOTS)
		slots = MRRC_NODE_SLOTS;
	for (i = 0; i < slots; i++) {
		slot = &shm->head->slot[i];
		flags = atomic_load(&slot->flags);
		if (i != shm->mine &&
		    (!(flags & MRRC_NODE_LIVE) || slot_dead(shm, i, look)))
			continue;
		if (i == shm->mine)
			*self = count;
		share[count++] = (struct mrrc_node_share){
			.reserved = slot_units(&slot->word),
			.want = slot_units(&slot->want),
			.used = slot_units(&slot->used),
			.cpus = atomic_load(&slot->cpus),
			.active = flags & MRRC_NODE_ACTIVE,
			.helper = flags & MRRC_NODE_HELPER,
			.deaf = slot_deaf(shm, i, now),
		};
	}
	return count;
}

/* ---- the bell ---- */

uint32_t mrrc_node_shm_bell(const struct mrrc_node_shm *shm)
{
	return atomic_load(&shm->head->bell);
}

void mrrc_node_shm_ring(struct mrrc_node_shm *shm)
{
	atomic_fetch_add(&shm->head->bell, 1);
	syscall(SYS_futex, &shm->head->bell, FUTEX_WAKE, INT_MAX, NULL, NULL,
		0);
}

void mrrc_node_shm_wait(struct mrrc_node_shm *shm, uint32_t bell, uint64_t ns)
{
	const struct timespec time = { ns / 1000000000, ns % 1000000000 };

	syscall(SYS_futex, &shm->head->bell, FUTEX_WAIT, bell,
		ns ? &time : NULL, NULL, 0);
}
