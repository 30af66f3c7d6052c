/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fake registrations that pin pages (fake_pin.h). */
#include "config.h"
#include "test/fakes/fake_pin.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sys/base/vm.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define PIN_SLOTS 16 /* slots of a new pipe */

struct pin {
	int pipe[2];
	int tee[2];
	pthread_mutex_t lock; /* guards tee */
	unsigned pages;
};

static void pin_die(const char *what)
{
	perror(what);
	abort();
}

static int pin_pages(struct pin *pin, uintptr_t start)
{
	const size_t page = mrrc_vm_page();
	struct iovec iov;
	unsigned i;

	if (pin->pages > PIN_SLOTS &&
	    (fcntl(pin->pipe[1], F_SETPIPE_SZ, pin->pages * page) < 0 ||
	     fcntl(pin->tee[1], F_SETPIPE_SZ, pin->pages * page) < 0))
		pin_die("F_SETPIPE_SZ");
	for (i = 0; i < pin->pages; i++) {
		iov.iov_base = (void *) (start + i * page);
		iov.iov_len = sizeof(uint64_t);
		if (vmsplice(pin->pipe[1], &iov, 1, SPLICE_F_NONBLOCK) !=
		    sizeof(uint64_t))
			return -EFAULT;
	}
	return 0;
}

static void pin_close(struct pin *pin)
{
	close(pin->pipe[0]);
	close(pin->pipe[1]);
	close(pin->tee[0]);
	close(pin->tee[1]);
	pthread_mutex_destroy(&pin->lock);
	free(pin);
}

static int fake_pin_reg(void *arg, uintptr_t start, size_t len,
			enum mrrc_access access, void **cookie, void **desc)
{
	struct fake_pin *fake = arg;
	struct pin *pin;

	/*
	 * A device pins pages for writing: a pinned page is never the zero
	 * page, and is not copied on write later.
	 */
	if (madvise((void *) start, len,
		    access == MRRC_RW ? MADV_POPULATE_WRITE :
					MADV_POPULATE_READ))
		return -EFAULT;
	pin = malloc(sizeof(*pin));
	if (!pin)
		return -ENOMEM;
	pthread_mutex_init(&pin->lock, NULL);
	pin->pages = len / mrrc_vm_page();
	if (pipe2(pin->pipe, O_CLOEXEC) || pipe2(pin->tee, O_CLOEXEC))
		pin_die("pipe2");
	if (pin_pages(pin, start)) {
		pin_close(pin);
		return -EFAULT;
	}
	atomic_fetch_add(&fake->live, 1);
	atomic_fetch_add(&fake->regs, 1);
	*cookie = pin;
	*desc = pin;
	return 0;
}

static void fake_pin_dereg(void *arg, struct mrrc_region *const *regions,
			   size_t count)
{
	struct fake_pin *fake = arg;
	size_t i;

	for (i = 0; i < count; i++) {
		pin_close(regions[i]->cookie);
		atomic_fetch_sub(&fake->live, 1);
	}
}

uint64_t fake_pin_read(const struct mrrc_region *region, uintptr_t addr)
{
	const unsigned page = (addr - region->start) / mrrc_vm_page();
	struct pin *pin = region->cookie;
	const size_t len = (page + 1) * sizeof(uint64_t);
	uint64_t word[page + 1];

	/* Threads share regions, so this is a copy of the references. */
	pthread_mutex_lock(&pin->lock);
	if (tee(pin->pipe[0], pin->tee[1], len, 0) != (ssize_t) len ||
	    read(pin->tee[0], word, len) != (ssize_t) len)
		pin_die("tee");
	pthread_mutex_unlock(&pin->lock);
	return word[page];
}

bool fake_pin_sees(const struct mrrc_plan *plan, uintptr_t addr, unsigned pages,
		   uint64_t word)
{
	const struct mrrc_piece *piece = plan->piece;
	const struct mrrc_piece *end = piece + plan->count;
	unsigned i;

	for (i = 0; i < pages; i++, addr += mrrc_vm_page()) {
		while (piece < end && addr >= piece->start + piece->len)
			piece++;
		if (piece == end ||
		    fake_pin_read(piece->region, addr) != word + i)
			return false;
	}
	return true;
}

const struct mrrc_reg_ops fake_pin_ops = {
	.reg = fake_pin_reg,
	.dereg = fake_pin_dereg,
};
