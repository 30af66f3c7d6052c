/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Preregistered memory for code that knows no domain (process.h). This file has
 * the list of the process's open domains, the oldest first.
 *
 * The list's lock is held while memory is allocated and freed, since another
 * thread may close the domain. So a thread may hold the lock at a fork, with
 * the list half changed: a child begins with a new lock and list.
 */
#include "config.h"

#include "fi/alloc/alloc_priv.h"
#include "fi/alloc/process.h"
#include "sys/heap/heap_fast.h"

static struct {
	struct mrrc_mutex lock; /* guards the rest */
	TAILQ_HEAD(, mrrc_reg) regs;
} process = {
	.lock = MRRC_MUTEX_INIT(MRRC_RANK_PROCESS),
	.regs = TAILQ_HEAD_INITIALIZER(process.regs),
};

static int process_alloc(size_t len, void **buf)
{
	struct mrrc_reg *reg;
	int ret = -FI_ENOSYS;

	mrrc_mutex_lock(&process.lock);
	TAILQ_FOREACH(reg, &process.regs, process) {
		ret = mrrc_alloc_take(reg, 1, len, buf);
		if (!ret) {
			atomic_load(&reg->alloc)->process = true;
			break;
		}
	}
	mrrc_mutex_unlock(&process.lock);
	return ret;
}

static int process_release(void *buf)
{
	struct mrrc_heaps *heaps;
	int ret = -FI_ENOENT;

	mrrc_mutex_lock(&process.lock);
	heaps = mrrc_heap_owner(buf);
	if (heaps)
		ret = mrrc_heap_free(heaps, buf);
	mrrc_mutex_unlock(&process.lock);
	return ret;
}

static const struct mrrc_process_alloc process_calls = {
	.size = sizeof(struct mrrc_process_alloc),
	.alloc = process_alloc,
	.release = process_release,
};

/* The child has one thread, and no domain that may serve it. */
static void process_fork_child(void)
{
	process.lock = (struct mrrc_mutex) MRRC_MUTEX_INIT(MRRC_RANK_PROCESS);
	TAILQ_INIT(&process.regs);
}

void mrrc_process_init(void)
{
	if (mrrc_process_alloc_ready &&
	    !pthread_atfork(NULL, NULL, process_fork_child))
		mrrc_process_alloc_ready(&process_calls);
}

void mrrc_process_add(struct mrrc_reg *reg)
{
	mrrc_mutex_lock(&process.lock);
	TAILQ_INSERT_TAIL(&process.regs, reg, process);
	reg->serves = true;
	mrrc_mutex_unlock(&process.lock);
}

bool mrrc_alloc_busy(struct mrrc_reg *reg)
{
	bool busy;

	/*
	 * a domain that the provider opened for itself takes no lock here: its
	 * close holds locks that come after process.lock
	 */
	if (!reg->serves || reg->pid != getpid())
		return mrrc_alloc_has_live(reg);
	mrrc_mutex_lock(&process.lock);
	busy = mrrc_alloc_has_live(reg);
	if (!busy) {
		TAILQ_REMOVE(&process.regs, reg, process);
		reg->serves = false;
	}
	mrrc_mutex_unlock(&process.lock);
	return busy;
}
