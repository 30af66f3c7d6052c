/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Announces libc's unmaps (libc_hooks.h).
 *
 * Flow: libc's function -> stub -> mrrc_patch_called (patch.h) -> is anything
 * watched there? -> block signals -> the monitors' callbacks -> unblock -> stub
 * -> the system call.
 *
 * "Is anything watched there?" is answered by a table of marks, one for all
 * chunks of the address space that hash to it: no lock, no system call, and a
 * wrong "yes" costs a lookup in the caches. A mark names its chunk, or says
 * that several chunks share the mark. A monitor makes a mark, under its lock,
 * before it watches a range, and removes the mark when an announcement finds
 * nothing in the mark's only chunk. The answer is never a wrong "no", since a
 * monitor may rely on announcements (mrrc_libc_hooks_rely).
 *
 * Signals are blocked during an announcement: otherwise a handler could unmap
 * inside the announcement, or leave it by a jump (siglongjmp, a cancelled
 * thread) with locks held.
 *
 * A child made by a raw clone(2) or by vfork(2) runs this code with a copy of
 * its parent's memory, or shares that memory: only the process that called
 * mrrc_libc_hooks_add() announces. A forked child must not announce, since its
 * announcement would end the parent's watch.
 */
#include "config.h"
#include "sys/hooks/libc_hooks_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/base/lock.h"
#include "sys/base/ours.h"
#include "sys/hooks/patch.h"
#include "sys/base/pause.h"
#include "sys/base/threads.h"
#include "sys/base/vm.h"

#define HOOKS_TELL    8 /* monitors at most */
#define HOOKS_MARKS   ((size_t) 1 << 16)
#define HOOKS_CODES   512
#define HOOKS_LOOK    512	 /* marks to look at, at most */
#define HOOKS_AROUND  8		 /* bytes before and behind a call */
#define HOOKS_SEVERAL UINT32_MAX /* a mark of several chunks */

static const struct {
	const char *name;
	long number;
} hooks_table[] = {
	{ "munmap", SYS_munmap },
	{ "mremap", SYS_mremap },
	{ "madvise", SYS_madvise },
	{ "mmap", SYS_mmap },
	{ "brk", SYS_brk },
	{ "shmat", SYS_shmat },
	{ "process_madvise", SYS_process_madvise }, /* glibc 2.36 */
	{ "syscall", MRRC_PATCH_ANY },
};

#define HOOKS_CNT  (sizeof(hooks_table) / sizeof(hooks_table[0]))
#define HOOKS_MORE 24 /* hooks at other places, at most */

static struct {
	/* REGISTRY lock; entries below @count are read by any thread */
	struct mrrc_patch patch[HOOKS_CNT + HOOKS_MORE];
	atomic_uint count; /* number of patches; 0: not searched yet */
	/* REGISTRY lock */
	/*
	 * 0, or the reason why the function cannot be patched; -ESRCH: there is
	 * no such function
	 */
	int found[HOOKS_CNT + HOOKS_MORE];
	atomic_bool placed[HOOKS_CNT + HOOKS_MORE]; /* on, as far as known */
	/* the patched word, when it was looked at */
	_Atomic uint64_t seen[HOOKS_CNT + HOOKS_MORE];
	_Atomic uintptr_t lo, hi; /* all patches lie between */
	/* any thread */
	_Atomic(mrrc_libc_hooks_cb) tell[HOOKS_TELL];
	_Atomic(void *) arg[HOOKS_TELL];
	atomic_uint added;  /* changed under the REGISTRY lock */
	atomic_uint inside; /* threads inside callbacks */
	/*
	 * @ours and @pid identify the process that announces; children that
	 * share its memory differ in @pid
	 */
	mrrc_ours *ours; /* changed under the REGISTRY lock */
	atomic_long pid;
	_Atomic uint64_t told;
	atomic_long left;		    /* calls of mmap until told */
	_Atomic uint32_t mark[HOOKS_MARKS]; /* 0: no chunk */
	/* two lists of code: one is read while the other is written */
	atomic_uint code_seq; /* number of lists so far: the last is read */
	struct {
		atomic_uint count; /* 0: none; over HOOKS_CODES: too many */
		struct {
			_Atomic uintptr_t start, end;
		} code[HOOKS_CODES];
	} list[2];
} hooks;

bool mrrc_libc_hooks_rely(enum mrrc_trust_mode mode)
{
	bool hooked = hooks.added;
	size_t i;

	/* code that is proven not to be executed needs no hook */
	for (i = 0; i < HOOKS_CNT && mode == MRRC_TRUST_HOOKED; i++)
		hooked = hooked &&
			 (hooks.placed[i] || hooks.found[i] == -ESRCH);
	return mrrc_trust_set(mode, hooked);
}

static void hooks_count(size_t calls)
{
	atomic_store(&hooks.left, (long) calls + 1);
}

bool mrrc_libc_hooks_on(long number)
{
	size_t i;

	for (i = 0; i < HOOKS_CNT; i++) {
		if (hooks_table[i].number == number)
			return hooks.patch[i].word &&
			       mrrc_patch_is_on(&hooks.patch[i]);
	}
	return false;
}

bool mrrc_libc_hooks_count(const void *arg, size_t calls)
{
	bool told = false;
	int i;

	hooks_count(calls);
	for (i = 0; i < HOOKS_TELL; i++)
		told = told || atomic_load(&hooks.arg[i]) == arg;
	/* the findings are written before the first callback is added */
	return told && mrrc_libc_hooks_on(SYS_mmap);
}

/* ---- marks ---- */

static inline _Atomic uint32_t *hooks_mark_of(uintptr_t addr)
{
	return &hooks.mark[addr / MRRC_LIBC_HOOKS_CHUNK % HOOKS_MARKS];
}

/*
 * All chunks share a mark beyond the addresses that Linux gives without a hint.
 */
static inline uint32_t hooks_chunk(uintptr_t addr)
{
	const uintptr_t chunk = addr / MRRC_LIBC_HOOKS_CHUNK + 1;

	return chunk < HOOKS_SEVERAL ? chunk : HOOKS_SEVERAL;
}

void mrrc_libc_hooks_mark(uintptr_t start, size_t len)
{
	/* chunks of so long a range share marks with each other */
	const bool several = len / MRRC_LIBC_HOOKS_CHUNK >= HOOKS_MARKS - 1;
	uintptr_t addr = start & ~(MRRC_LIBC_HOOKS_CHUNK - 1);
	_Atomic uint32_t *mark;
	uint32_t chunk, old;
	size_t n;

	for (n = 0; addr < start + len && n < HOOKS_MARKS; n++) {
		mark = hooks_mark_of(addr);
		chunk = several ? HOOKS_SEVERAL : hooks_chunk(addr);
		old = atomic_load_explicit(mark, memory_order_relaxed);
		while (old != chunk && old != HOOKS_SEVERAL &&
		       !atomic_compare_exchange_weak(
			       mark, &old, old ? HOOKS_SEVERAL : chunk))
			;
		addr += MRRC_LIBC_HOOKS_CHUNK;
	}
}

void mrrc_libc_hooks_unmark(uintptr_t addr)
{
	uint32_t chunk = hooks_chunk(addr);

	/* Another monitor may watch something there. */
	if (hooks.added == 1 && chunk != HOOKS_SEVERAL)
		atomic_compare_exchange_strong(hooks_mark_of(addr), &chunk, 0);
}

static inline bool hooks_marked(uintptr_t start, uintptr_t end)
{
	uintptr_t addr = start & ~(MRRC_LIBC_HOOKS_CHUNK - 1);
	uint32_t mark;

	if ((end - addr) / MRRC_LIBC_HOOKS_CHUNK >= HOOKS_LOOK)
		return true;
	for (; addr < end; addr += MRRC_LIBC_HOOKS_CHUNK) {
		mark = atomic_load_explicit(hooks_mark_of(addr),
					    memory_order_relaxed);
		if (mark == HOOKS_SEVERAL || mark == hooks_chunk(addr))
			return true;
	}
	return false;
}

/* ---- code ---- */

void mrrc_libc_hooks_code_begin(void)
{
	const unsigned next = (atomic_load(&hooks.code_seq) + 1) % 2;

	atomic_store(&hooks.list[next].count, 0);
}

void mrrc_libc_hooks_code(uintptr_t start, uintptr_t end)
{
	const unsigned next = (atomic_load(&hooks.code_seq) + 1) % 2;
	const unsigned i = atomic_load(&hooks.list[next].count);

	if (i < HOOKS_CODES) {
		atomic_store(&hooks.list[next].code[i].start, start);
		atomic_store(&hooks.list[next].code[i].end, end);
	}
	atomic_store(&hooks.list[next].count, i + 1);
}

void mrrc_libc_hooks_code_end(void)
{
	atomic_fetch_add(&hooks.code_seq, 1);
}

bool mrrc_libc_hooks_is_code(uintptr_t start, size_t len)
{
	const unsigned seq = atomic_load(&hooks.code_seq), last = seq % 2;
	const unsigned count = atomic_load(&hooks.list[last].count);
	unsigned i;

	if (!count || count > HOOKS_CODES)
		return true;
	for (i = 0; i < count; i++) {
		if (start < atomic_load(&hooks.list[last].code[i].end) &&
		    atomic_load(&hooks.list[last].code[i].start) < start + len)
			return true;
	}
	/* true if the list was rewritten during the search */
	return atomic_load(&hooks.code_seq) != seq;
}

/* ---- telling ---- */

/* Blocks all signals, libc's own included. errno is kept. */
static void hooks_signals(const uint64_t *set, uint64_t *old)
{
	const struct mrrc_patch_call call = {
		.number = SYS_rt_sigprocmask,
		.arg = { SIG_SETMASK, (long) set, (long) old, sizeof(*set) },
	};

	mrrc_patch_make(&call);
}

uint64_t mrrc_libc_hooks_block(void)
{
	const uint64_t all = UINT64_MAX;
	uint64_t old = 0;

	hooks_signals(&all, &old);
	return old;
}

void mrrc_libc_hooks_unblock(uint64_t old)
{
	hooks_signals(&old, NULL);
}

/*
 * Handles an unmap by a child that shares the memory. In mode PROVEN trust ends
 * until the call has returned (libc_hooks_call.c).
 */
static void hooks_missed(uintptr_t start, uintptr_t end)
{
	if (start != end && mrrc_trust_mode() == MRRC_TRUST_HOOKED)
		mrrc_trust_surprised();
}

static void hooks_tell_all(uintptr_t start, uintptr_t end,
			   enum mrrc_libc_hooks_how how)
{
	mrrc_libc_hooks_cb tell;
	void *arg;
	int i;

	/* mrrc_libc_hooks_remove() waits until @inside is zero. */
	atomic_fetch_add(&hooks.inside, 1);
	for (i = 0; i < HOOKS_TELL; i++) {
		/* mrrc_libc_hooks_add() writes them in the opposite order. */
		arg = atomic_load(&hooks.arg[i]);
		tell = atomic_load(&hooks.tell[i]);
		if (arg)
			tell(arg, start, end, how);
	}
	atomic_fetch_sub(&hooks.inside, 1);
	if (how != MRRC_LIBC_HOOKS_AFTER)
		atomic_fetch_add_explicit(&hooks.told, 1, memory_order_relaxed);
}

static __attribute__((noinline)) bool hooks_tell(uintptr_t start, uintptr_t end,
						 enum mrrc_libc_hooks_how how)
{
	const uint64_t old = mrrc_libc_hooks_block();
	const int error = errno;
	bool ours;

	ours = *hooks.ours && syscall(SYS_getpid) == atomic_load(&hooks.pid);
	if (ours)
		hooks_tell_all(start, end, how);
	else
		hooks_missed(start, end);
	errno = error;
	mrrc_libc_hooks_unblock(old);
	return ours;
}

bool mrrc_libc_hooks_tell(uintptr_t start, uintptr_t end,
			  enum mrrc_libc_hooks_how how)
{
	return !hooks_marked(start, end) || hooks_tell(start, end, how);
}

void mrrc_libc_hooks_clear(uintptr_t start, uintptr_t end)
{
	hooks_tell(start, end, MRRC_LIBC_HOOKS_CLEAR);
}

void mrrc_libc_hooks_mapping(void)
{
	if (atomic_fetch_sub_explicit(&hooks.left, 1, memory_order_relaxed) ==
	    1)
		hooks_tell(0, 0, MRRC_LIBC_HOOKS_BEFORE);
}

/* ---- placing ---- */

static const char *hooks_words(int ret)
{
	switch (ret) {
	case -EOPNOTSUPP:
		return "not for this processor or libc";
	case -ENOENT:
		return "unknown code, perhaps patched by another library";
	case -EBUSY:
		return "patched by another library";
	case -EACCES:
		return "code may not be changed here";
	default:
		return strerror(-ret);
	}
}

/* Notes a patch for mrrc_libc_hooks_use(), which is called at each unmap. */
static void hooks_found(const struct mrrc_patch *patch)
{
	const uintptr_t lo = (uintptr_t) patch->word - MRRC_PATCH_NEAR;
	const uintptr_t hi = (uintptr_t) (patch->word + 1) + MRRC_PATCH_NEAR;
	const uintptr_t old = atomic_load(&hooks.lo);

	if (!old || lo < old)
		atomic_store(&hooks.lo, lo);
	if (hi > atomic_load(&hooks.hi))
		atomic_store(&hooks.hi, hi);
}

static void hooks_search(void)
{
	size_t i;

	for (i = 0; i < HOOKS_CNT; i++) {
		hooks.found[i] = mrrc_patch_find(hooks_table[i].name,
						 hooks_table[i].number,
						 &hooks.patch[i]);
		if (!hooks.found[i])
			hooks_found(&hooks.patch[i]);
	}
	atomic_store(&hooks.count, HOOKS_CNT);
	mrrc_libc_hooks_page = mrrc_vm_page();
}

int mrrc_libc_hooks_place(uint8_t *at, long number, uintptr_t start,
			  uintptr_t end, uint8_t *filler)
{
	const unsigned i = atomic_load(&hooks.count);
	const uintptr_t site = (uintptr_t) at;
	struct mrrc_patch_code code = { .filler = filler };
	int ret;

	if (!i || i == HOOKS_CNT + HOOKS_MORE)
		return -ENOSPC;
	/*
	 * uses only code near the instruction, as filler farther away is out of
	 * a short jump's reach
	 */
	if (site - start > HOOKS_AROUND)
		start = site - HOOKS_AROUND;
	if (end - site > HOOKS_AROUND)
		end = site + HOOKS_AROUND;
	code.start = (uint8_t *) start;
	code.len = end - start;
	ret = mrrc_patch_site(&code, at, number, &hooks.patch[i]);
	if (!ret)
		ret = mrrc_patch_on(&hooks.patch[i]);
	if (ret)
		return ret;
	hooks_found(&hooks.patch[i]);
	atomic_store(&hooks.seen[i], hooks.patch[i].after);
	hooks.placed[i] = true;
	atomic_store(&hooks.count, i + 1);
	return 0;
}

bool mrrc_libc_hooks_has(uintptr_t at)
{
	const unsigned count = atomic_load(&hooks.count);
	unsigned i;

	for (i = 0; i < count; i++) {
		if ((uintptr_t) hooks.patch[i].at != at || !at)
			continue;
		if (!mrrc_patch_is_on(&hooks.patch[i]))
			return false;
		/*
		 * otherwise, if the hook has just come back, its next loss
		 * would not be noticed
		 */
		atomic_store(&hooks.seen[i], hooks.patch[i].after);
		return true;
	}
	return false;
}

void mrrc_libc_hooks_undo(uint8_t *copy, uintptr_t start, uintptr_t end)
{
	const unsigned count = atomic_load(&hooks.count);
	unsigned i;

	for (i = 0; i < count; i++)
		mrrc_patch_undo(&hooks.patch[i], copy, start, end);
	mrrc_patch_hide(copy, start, end);
}

bool mrrc_libc_hooks_use(uintptr_t start, size_t len)
{
	const unsigned count = atomic_load(&hooks.count);
	unsigned i;

	if (start >= atomic_load(&hooks.hi) ||
	    start + len <= atomic_load(&hooks.lo))
		return false;
	for (i = 0; i < count; i++) {
		if (mrrc_patch_uses(&hooks.patch[i], start, len))
			return true;
	}
	return false;
}

/* Ends trust until the code in the hook's place has been examined. */
static void hooks_changed(const struct mrrc_patch *patch)
{
	const uint64_t old = mrrc_libc_hooks_block();

	if (mrrc_trust_begin())
		mrrc_trust_end((uintptr_t) patch->word,
			       (uintptr_t) (patch->word + 1));
	else
		mrrc_trust_break("a hook of libc was overwritten");
	mrrc_libc_hooks_unblock(old);
}

void mrrc_libc_hooks_check(void)
{
	const unsigned count = atomic_load(&hooks.count);
	const struct mrrc_patch *patch;
	uint64_t now;
	unsigned i;

	for (i = 0; i < count; i++) {
		patch = &hooks.patch[i];
		now = atomic_load(&hooks.seen[i]);
		if (!atomic_load(&hooks.placed[i]) ||
		    __atomic_load_n(patch->word, __ATOMIC_RELAXED) == now)
			continue;
		now = mrrc_patch_now(patch);
		if (now == atomic_load(&hooks.seen[i]))
			continue;
		atomic_store(&hooks.seen[i], now);
		mrrc_patch_yield(patch);
		hooks_changed(patch);
	}
}

/*
 * Places hooks and returns the number placed; @why: the hooks that failed, and
 * the reason of the first failure.
 */
static unsigned hooks_place(char *why)
{
	unsigned count = 0;
	size_t i, len = 0;
	int first = 0;
	int ret;

	for (i = 0; i < hooks.count; i++) {
		ret = hooks.found[i];
		if (!ret)
			ret = mrrc_patch_on(&hooks.patch[i]);
		atomic_store(&hooks.seen[i], hooks.patch[i].after);
		hooks.placed[i] = !ret;
		count += !ret;
		if (!ret || ret == -ESRCH || i >= HOOKS_CNT ||
		    len >= MRRC_LIBC_HOOKS_WHY)
			continue;
		if (!first)
			first = ret;
		len += snprintf(why + len, MRRC_LIBC_HOOKS_WHY - len, "%s%s",
				len ? ", " : "not ", hooks_table[i].name);
	}
	if (!count)
		len = 0;
	if (first && len < MRRC_LIBC_HOOKS_WHY)
		snprintf(why + len, MRRC_LIBC_HOOKS_WHY - len, "%s%s",
			 len ? ": " : "", hooks_words(first));
	return count;
}

static void hooks_unplace(void)
{
	size_t i;

	for (i = 0; i < hooks.count; i++) {
		if (hooks.placed[i])
			mrrc_patch_off(&hooks.patch[i]);
		hooks.placed[i] = false;
	}
	mrrc_patch_clean(hooks.patch, hooks.count);
}

static int hooks_slot(void)
{
	int i;

	for (i = 0; i < HOOKS_TELL; i++) {
		if (!atomic_load(&hooks.arg[i]))
			return i;
	}
	return -1;
}

int mrrc_libc_hooks_add(mrrc_libc_hooks_cb tell, void *arg, char *why)
{
	char text[MRRC_LIBC_HOOKS_WHY] = "";
	const int slot = hooks_slot();
	int ret = 0;

	/* libc unmaps in threads that ThreadSanitizer has finished already */
	if (mrrc_threads_sanitized()) {
		snprintf(text, sizeof(text), "ThreadSanitizer is here");
		ret = -EOPNOTSUPP;
	} else if (slot < 0) {
		snprintf(text, sizeof(text), "too many memory monitors");
		ret = -ENOSPC;
	}
	if (!ret && !mrrc_libc_hooks_page)
		hooks_search();
	if (!ret) {
		if (!hooks.ours)
			hooks.ours = mrrc_ours_get();
		*hooks.ours = 1;
		atomic_store(&hooks.pid, getpid());
		atomic_store(&hooks.tell[slot], tell);
		atomic_store(&hooks.arg[slot], arg);
		if (hooks_place(text)) {
			hooks.added++;
		} else {
			atomic_store(&hooks.arg[slot], NULL);
			ret = -EOPNOTSUPP;
		}
	}
	if (why)
		memcpy(why, text, sizeof(text));
	return ret;
}

void mrrc_libc_hooks_remove(void *arg)
{
	unsigned tries = 0;
	int i;

	for (i = 0; i < HOOKS_TELL; i++) {
		if (atomic_load(&hooks.arg[i]) == arg)
			break;
	}
	if (i == HOOKS_TELL)
		return;
	atomic_store(&hooks.arg[i], NULL);
	if (!--hooks.added) {
		mrrc_trust_set(MRRC_TRUST_NOBODY, false);
		hooks_unplace();
	}
	while (atomic_load(&hooks.inside))
		mrrc_pause(&tries);
}

/*
 * The child's code stays patched: a new monitor in the child finds it patched.
 */
void mrrc_libc_hooks_forked(void)
{
	int i;

	for (i = 0; i < HOOKS_TELL; i++)
		atomic_store(&hooks.arg[i], NULL);
	if (hooks.ours)
		*hooks.ours = 0;
	atomic_store(&hooks.inside, 0);
	mrrc_trust_forked();
	hooks.added = 0;
}

void mrrc_libc_hooks_state(struct mrrc_libc_hooks_state *state)
{
	size_t i;

	*state = (struct mrrc_libc_hooks_state){
		.told = atomic_load(&hooks.told),
		.surprised = atomic_load(&mrrc_trust_word) & MRRC_TRUST_BROKEN,
	};
	for (i = 0; i < HOOKS_CNT; i++) {
		if (!hooks.placed[i])
			continue;
		if (mrrc_patch_is_on(&hooks.patch[i]))
			state->placed++;
		else
			state->lost++;
	}
}
