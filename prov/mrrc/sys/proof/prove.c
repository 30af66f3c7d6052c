/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread that proves that no unmap goes unannounced (prove.h).
 *
 * The thread keeps a mapping's result until a call brings code to the mapping.
 * The thread reads copies of code, as another thread may unload a library
 * meanwhile.
 */
#include "config.h"
#include "sys/proof/prove.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sys/base/apart.h"
#include "sys/proof/code_copy.h"
#include "sys/proof/code_kept.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/base/mappings.h"
#include "sys/hooks/patch.h"
#include "sys/proof/prove_site.h"
#include "sys/base/threads.h"
#include "sys/hooks/trust.h"

/*
 * Calls that bring code come in bursts: pauses before code is looked at again.
 */
#define PROVE_PAUSE_MIN_NS 1000000
#define PROVE_PAUSE_MAX_NS 100000000
/* calls that were in the kernel when hooks were placed take less time */
#define PROVE_FIRST_NS 50000000
/* limit of probes before the next look, after looks in vain */
#define PROVE_PRICE_MAX (64 * MRRC_PROVE_PRICE)
#define PROVE_BEGINS	32  /* bytes of a function that patchers overwrite */
#define PROVE_AROUND	256 /* bytes each way where our patch may lie */

/* An executable mapping, and the result for its code. */
struct prove_code {
	struct mrrc_code_place place;
	bool there; /* found in this look */
	bool decided;
	bool may; /* depends on other code: mrrc_prove_may() */
	bool rings_known;
	enum mrrc_prove_rings rings;
	char why[MRRC_TRUST_WHY]; /* why the code is not proven; "": proven */
};

static struct {
	pthread_mutex_t lock; /* taken by start and stop */
	pthread_t thread;
	bool runs;	       /* the thread runs, or is to be joined */
	atomic_bool over;      /* the thread has ended */
	_Atomic uint32_t stop; /* a futex */
	atomic_bool afresh;    /* calls may have evaded the hooks */
	atomic_bool now;       /* whatever lookups have cost so far */
	_Atomic uint64_t rent; /* probes since the thread's start */
	_Atomic uint64_t price;
	const struct mrrc_prove_ops *ops;
	pthread_mutex_t why_lock; /* guards why */
	char why[MRRC_TRUST_WHY];
	void (*tell)(const char *why);
	/* used by the thread alone, from here on */
	char said[MRRC_TRUST_WHY];
	bool said_any;
	struct prove_code *code;
	size_t count, room;
	bool dirty;	   /* code came since the last look */
	void *left_behind; /* in a child: the parent's @code */
} prove = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.price = MRRC_PROVE_PRICE,
	.why_lock = PTHREAD_MUTEX_INITIALIZER,
};

void mrrc_prove_why(char why[MRRC_TRUST_WHY])
{
	const char *broken = mrrc_trust_broken();

	if (broken) {
		snprintf(why, MRRC_TRUST_WHY, "%s", broken);
		return;
	}
	pthread_mutex_lock(&prove.why_lock);
	memcpy(why, prove.why, sizeof(prove.why));
	pthread_mutex_unlock(&prove.why_lock);
}

static void prove_say(const char *why)
{
	pthread_mutex_lock(&prove.why_lock);
	snprintf(prove.why, sizeof(prove.why), "%s", why);
	pthread_mutex_unlock(&prove.why_lock);
}

void mrrc_prove_tell(void (*tell)(const char *why))
{
	prove.tell = tell;
}

/* Tells each new reason once: code comes and goes. */
static void prove_told(void)
{
	char why[MRRC_TRUST_WHY];

	mrrc_prove_why(why);
	if (!prove.tell || (prove.said_any && !strcmp(why, prove.said)))
		return;
	prove.said_any = true;
	memcpy(prove.said, why, sizeof(prove.said));
	prove.tell(why);
}

/* ---- one mapping ---- */

struct prove_look {
	struct mrrc_prove_file *file;
	struct prove_code *code;
};

/* Does a function begin as in libc's file, but for our hook? */
static bool prove_begins(const struct mrrc_code_file *file,
			 const struct mrrc_code_place *libc, uintptr_t function)
{
	const uintptr_t at = function & ~(sizeof(uint64_t) - 1);
	const uintptr_t offset = at - libc->lo;
	uint8_t copy[2 * PROVE_AROUND];

	if (at < libc->lo || at >= libc->hi || offset > file->len)
		return false;
	memcpy(copy, (const void *) (at - PROVE_AROUND), sizeof(copy));
	mrrc_libc_hooks_undo(copy, at - PROVE_AROUND, at + PROVE_AROUND);
	return !memcmp(copy + PROVE_AROUND,
		       (const void *) (file->base + offset), PROVE_BEGINS);
}

/*
 * Is libc's brk hooked, and are brk and sbrk otherwise as in libc's file? Asks
 * the loader nothing: a thread that has the loader's lock, inside dlclose(3),
 * may be waiting for this thread.
 */
static bool prove_brk(void)
{
	const struct prove_code *code = prove.code;
	struct mrrc_code_file file;
	bool begins;

	if (!mrrc_libc_hooks_on(SYS_brk))
		return false;
	while (code < prove.code + prove.count &&
	       !mrrc_prove_is_libc(&code->place))
		code++;
	if (code == prove.code + prove.count ||
	    mrrc_code_open(code->place.name, &file))
		return false;
	begins = prove_begins(&file, &code->place, (uintptr_t) brk) &&
		 prove_begins(&file, &code->place, (uintptr_t) sbrk);
	mrrc_code_close(&file);
	return begins;
}

/* Is liburing there for libfabric, and is no other file linked to liburing? */
static bool prove_rings(void)
{
	struct prove_code *code = prove.code;
	bool fabric = false;

	for (; code < prove.code + prove.count; code++) {
		if (code->place.name[0] != '/')
			continue;
		if (!code->rings_known)
			code->rings = mrrc_prove_rings(code->place.name,
						       code->place.name);
		code->rings_known = true;
		if (code->rings == MRRC_PROVE_RINGS_ANY)
			return false;
		fabric = fabric || code->rings == MRRC_PROVE_RINGS_FABRIC;
	}
	return fabric;
}

static bool prove_no_ring(void *arg, const struct mrrc_mapping *mapping)
{
	static const char name[] = "anon_inode:[io_uring]";
	bool *ring = arg;

	*ring = !strncmp(mapping->name, name, sizeof(name) - 1);
	return !*ring;
}

/*
 * Is, or may be, an io_uring mapped that is not libfabric's? A thread of the
 * kernel may read requests from a ring (IORING_SETUP_SQPOLL), so that a ring
 * that was made before there were hooks needs no system call.
 */
static bool prove_ring(void)
{
	bool ring = false;

	if (!mrrc_mappings_each(prove_no_ring, &ring))
		return true;
	return ring && !prove_rings();
}

static void prove_unknown(struct prove_code *code, const char *why)
{
	snprintf(code->why, sizeof(code->why), "%.60s: %s",
		 mrrc_prove_name(code->place.name), why);
}

static bool prove_matters(void *arg, const struct mrrc_code_copy *copy,
			  const struct mrrc_code_site *site)
{
	struct prove_look *look = arg;

	return mrrc_prove_matters(look->file, copy, site);
}

static bool prove_site(void *arg, const struct mrrc_code_copy *copy,
		       const struct mrrc_code_site *site)
{
	struct prove_look *look = arg;
	struct prove_code *code = look->code;

	look->file->image = &copy->image;
	look->file->live = mrrc_code_live(copy, copy->image.base);
	switch (mrrc_prove_site(look->file, site, code->why)) {
	case MRRC_PROVE_HARMLESS:
		return true;
	case MRRC_PROVE_BRK:
		code->may = true;
		if (prove_brk())
			return true;
		prove_unknown(code, "libc's brk was overwritten");
		return false;
	case MRRC_PROVE_RINGS:
		code->may = true;
		if (prove_rings())
			return true;
		prove_unknown(code, "it is not there for libfabric alone");
		return false;
	default:
		return false;
	}
}

static void prove_look(struct prove_code *code)
{
	struct mrrc_prove_file file = {
		.path = code->place.name,
		.libc = mrrc_prove_is_libc(&code->place),
	};
	struct prove_look look = { .file = &file, .code = code };
	int ret;

	code->why[0] = '\0';
	code->may = false;
	if (mrrc_patch_stubs(code->place.start, code->place.end) ||
	    !strcmp(code->place.name, "[vdso]") ||
	    /* the kernel's page of instructions that have probes */
	    !strncmp(code->place.name, "[uprobes", 8) ||
	    !strcmp(code->place.name, "[vsyscall]"))
		return;
	if (code->place.write)
		prove_unknown(code, "code that can be written");
	else if (code->place.shared)
		prove_unknown(code, "code that is shared");
	else if (!code->place.inode)
		prove_unknown(code, "code of no file");
	else if (!strncmp(code->place.name, "/memfd:", 7))
		prove_unknown(code, "code of a memfd, which can be written");
	if (*code->why)
		return;
	ret = mrrc_code_sites(&code->place, prove_matters, prove_site, &look);
	if (ret && !*code->why)
		prove_unknown(code,
			      ret == -EFBIG ?
				      "its file is too large" :
			      ret == -ESTALE ?
				      "its file has gone, or has changed" :
			      ret == -EOPNOTSUPP ? "built without a decoder" :
						   strerror(-ret));
}

/* ---- all mappings ---- */

/* Waits for @ns nanoseconds, or until the thread is to stop. */
static void prove_pause(long ns)
{
	const struct timespec time = { .tv_nsec = ns };

	syscall(SYS_futex, &prove.stop, FUTEX_WAIT_PRIVATE, 0, &time);
}

static bool prove_same(const struct mrrc_code_place *a,
		       const struct mrrc_code_place *b)
{
	return a->start == b->start && a->end == b->end && a->lo == b->lo &&
	       a->offset == b->offset && a->device == b->device &&
	       a->inode == b->inode && a->write == b->write &&
	       a->shared == b->shared;
}

static bool prove_found(void *arg, const struct mrrc_code_place *place)
{
	bool *complete = arg;
	struct prove_code *code;
	size_t i;

	mrrc_libc_hooks_code(place->start, place->end);
	for (i = 0; i < prove.count; i++) {
		if (!prove_same(&prove.code[i].place, place))
			continue;
		prove.code[i].there = true;
		return true;
	}
	if (prove.count == prove.room) {
		prove.room = prove.room * 2 + 64;
		code = mrrc_apart_grow(prove.code, prove.room * sizeof(*code));
		if (!code) {
			prove.room = prove.count;
			*complete = false;
			return false;
		}
		prove.code = code;
	}
	prove.code[prove.count++] = (struct prove_code){
		.place = *place,
		.there = true,
	};
	return true;
}

static void prove_touched(void *arg, uintptr_t start, uintptr_t end)
{
	struct prove_code *code;

	prove.dirty = true;
	for (code = prove.code; code < prove.code + prove.count; code++)
		code->decided = code->decided && (code->place.end <= start ||
						  code->place.start >= end);
}

/* Drops mappings that are gone: other code may come to their addresses. */
static void prove_forget(void)
{
	size_t i = 0;

	while (i < prove.count) {
		if (prove.code[i].there)
			prove.code[i++].there = false;
		else
			prove.code[i] = prove.code[--prove.count];
	}
}

/* Returns whether all is proven; if not, says why. */
static bool prove_all(void)
{
	bool complete = true;
	size_t i;

	if (personality(0xffffffff) & READ_IMPLIES_EXEC) {
		prove_say("all that can be read can be executed");
		return false;
	}
	mrrc_libc_hooks_code_begin();
	complete = mrrc_code_places(prove_found, &complete) && complete;
	mrrc_libc_hooks_code_end();
	if (!complete) {
		prove_say("/proc/self/maps cannot be read");
		return false;
	}
	prove_forget();
	for (i = 0; i < prove.count && !atomic_load(&prove.stop); i++) {
		if (!prove.code[i].decided || prove.code[i].may)
			prove_look(&prove.code[i]);
		prove.code[i].decided = true;
		if (*prove.code[i].why)
			prove_say(prove.code[i].why);
		if (*prove.code[i].why)
			return false;
	}
	if (prove_ring()) {
		prove_say("io_uring is in use");
		return false;
	}
	return i == prove.count;
}

/* ---- the thread ---- */

/*
 * Gives trust, if it is wanted and all is proven. false: look once more, soon.
 */
static bool prove_give(void)
{
	uint64_t word;

	if (!mrrc_trust_wanted(&word))
		return true;
	if (!prove.ops->enter())
		return false;
	mrrc_thread_outside();
	mrrc_prove_seal();
	prove.ops->leave();
	if (atomic_exchange(&prove.afresh, false)) {
		prove_pause(PROVE_FIRST_NS);
		prove_touched(NULL, 0, UINTPTR_MAX);
	}
	mrrc_trust_touched(prove_touched, NULL);
	if (prove.dirty) {
		mrrc_code_kept_open();
		prove.dirty = !prove_all();
		mrrc_code_kept_close();
	}
	mrrc_thread_inside();
	if (prove.dirty)
		return true;
	if (!prove.ops->settle() || !mrrc_trust_give(word))
		return false;
	prove_say("");
	return true;
}

static void *prove_main(void *arg)
{
	long pause = PROVE_PAUSE_MIN_NS;
	uint64_t price = MRRC_PROVE_PRICE;

	mrrc_libc_hooks_check();
	while (!prove_give() && !atomic_load(&prove.stop) &&
	       pause < PROVE_PAUSE_MAX_NS) {
		prove_pause(pause);
		pause *= 2;
	}
	if (!mrrc_trusted())
		price = 2 * atomic_load(&prove.price);
	atomic_store(&prove.price,
		     price < PROVE_PRICE_MAX ? price : PROVE_PRICE_MAX);
	if (!atomic_load(&prove.stop))
		prove_told();
	mrrc_thread_over();
	atomic_store(&prove.over, true);
	return NULL;
}

void mrrc_prove_ready(const struct mrrc_prove_ops *ops, bool now)
{
	pthread_mutex_lock(&prove.lock);
	if (mrrc_trust_mode() != MRRC_TRUST_PROVEN) {
		atomic_store(&prove.afresh, true);
		prove_say("code is looked at when lookups have asked often");
	}
	atomic_store(&prove.now, now);
	prove.ops = ops;
	pthread_mutex_unlock(&prove.lock);
}

/* prove.lock held. */
static void prove_start(void)
{
	if (prove.runs && atomic_load(&prove.over)) {
		pthread_join(prove.thread, NULL);
		prove.runs = false;
	}
	if (prove.runs)
		return;
	atomic_store(&prove.rent, 0);
	atomic_store(&prove.stop, 0);
	atomic_store(&prove.over, false);
	prove.runs = !mrrc_thread_start(&prove.thread, 0, prove_main, NULL);
	if (!prove.runs)
		prove_say("there is no thread to look at code");
}

void mrrc_prove_rent(unsigned probes)
{
	uint64_t word;
	int cancel;

	if (atomic_fetch_add(&prove.rent, probes) + probes <
		    atomic_load(&prove.price) &&
	    !atomic_load(&prove.now))
		return;
	/* a signal handler may have interrupted the lock's holder */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (mrrc_trust_wanted(&word) && !pthread_mutex_trylock(&prove.lock)) {
		prove_start();
		pthread_mutex_unlock(&prove.lock);
	}
	pthread_setcancelstate(cancel, NULL);
}

void mrrc_prove_stop(void)
{
	pthread_mutex_lock(&prove.lock);
	if (mrrc_trust_mode() == MRRC_TRUST_NOBODY) {
		if (prove.runs) {
			atomic_store(&prove.stop, 1);
			syscall(SYS_futex, &prove.stop, FUTEX_WAKE_PRIVATE,
				INT_MAX);
			pthread_join(prove.thread, NULL);
		}
		prove.runs = false;
		prove.said_any = false;
		mrrc_apart_free(prove.code);
		prove.code = NULL;
		prove.count = prove.room = 0;
	}
	pthread_mutex_unlock(&prove.lock);
}

void mrrc_prove_forked(void)
{
	pthread_mutex_init(&prove.lock, NULL);
	pthread_mutex_init(&prove.why_lock, NULL);
	prove.runs = false;
	/*
	 * does not free the list, which the parent's thread may have been
	 * changing
	 */
	prove.left_behind = prove.code;
	prove.code = NULL;
	prove.count = prove.room = 0;
}
