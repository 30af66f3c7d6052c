/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/hooks/patch: libc's calls come to mrrc_patch_called() with unchanged
 * arguments, results and errno; code is patched while others call it; unknown
 * code is left alone.
 */
#include "config.h"
#include "test/case.h"

#include <sys/syscall.h>

#include "test/sys/hooks/patch_fixture.h"
#include "sys/base/mappings.h"
#include "sys/hooks/patch.h"
#include "sys/base/vm.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define RW	(PROT_READ | PROT_WRITE)
#define ANON	(MAP_PRIVATE | MAP_ANONYMOUS)
#define TOGGLES 500
#define THREADS 2

static const struct {
	const char *name;
	long number;
} functions[] = {
	{ "munmap", SYS_munmap },   { "mremap", SYS_mremap },
	{ "madvise", SYS_madvise }, { "mmap", SYS_mmap },
	{ "brk", SYS_brk },	    { "syscall", MRRC_PATCH_ANY },
};

#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

static struct mrrc_patch patch[FUNCTIONS];
static bool tried, known;
static atomic_ulong calls;
static _Thread_local struct mrrc_patch_call last;
static _Thread_local bool mine;
static size_t page;

static _Thread_local bool make; /* make the call here, not in libc */

unsigned long patch_calls(void)
{
	return atomic_load(&calls);
}

bool mrrc_patch_called(struct mrrc_patch_call *call)
{
	atomic_fetch_add(&calls, 1);
	if (!mine)
		return true;
	last = *call;
	if (make)
		call->number = mrrc_patch_make(call);
	errno = EXDEV; /* libc sets errno afterwards, or does not set it */
	return !make;
}

/* The fifth argument may be a file descriptor, of which 32 bits count. */
static void seen(long number, long a, long b, long c, long d, long e)
{
	ck_assert_int_eq(last.number, number);
	ck_assert_int_eq(last.arg[0], a);
	ck_assert_int_eq(last.arg[1], b);
	ck_assert_int_eq(last.arg[2], c);
	ck_assert_int_eq(last.arg[3], d);
	ck_assert(last.arg[4] == e || (int) last.arg[4] == e);
	last.number = -2;
}

static void turn(bool on)
{
	size_t i;

	for (i = 0; i < FUNCTIONS; i++)
		ck_assert_int_eq(on ? mrrc_patch_on(&patch[i]) :
				      mrrc_patch_off(&patch[i]),
				 0);
}

void patch_make(bool on)
{
	mine = make = on;
}

/* The search is made once, as its fillers are in use afterwards. */
static void find_all(void)
{
	size_t i;
	int ret;

	if (tried)
		return;
	tried = known = true;
	for (i = 0; i < FUNCTIONS; i++) {
		ret = mrrc_patch_find(functions[i].name, functions[i].number,
				      &patch[i]);
		if (!ret)
			continue;
		known = false;
		ck_assert_ptr_null(patch[i].word);
		fprintf(stderr, "%s: %s\n", functions[i].name, strerror(-ret));
	}
}

const struct mrrc_patch *patch_of(const char *name)
{
	size_t i;

	find_all();
	for (i = 0; i < FUNCTIONS; i++) {
		if (!strcmp(functions[i].name, name))
			return patch[i].word ? &patch[i] : NULL;
	}
	return NULL;
}

TEST_CASE(patch, NULL, NULL);

/* Every caller must check whether there is anything to patch. */
TEST(test_find)
{
	find_all();
	ck_assert_int_eq(mrrc_patch_find("no such function", SYS_munmap,
					 &(struct mrrc_patch){ 0 }),
			 mrrc_patch_reach ? -ESRCH : -EOPNOTSUPP);
	/* This function makes another system call. */
	ck_assert_int_ne(mrrc_patch_find("munmap", SYS_mremap,
					 &(struct mrrc_patch){ 0 }),
			 0);
	ck_assert_int_ne(mrrc_patch_find("printf", MRRC_PATCH_ANY,
					 &(struct mrrc_patch){ 0 }),
			 0);
}

LOOP_TEST(test_calls, 0, 2)
{
	char *ptr, *to;

	if (!known)
		skip("another libc");
	turn(true);
	mine = true;
	make = _i;
	ptr = mmap(NULL, 4 * page, RW, ANON, -1, 0);
	ck_assert_ptr_ne(ptr, MAP_FAILED);
	seen(SYS_mmap, 0, 4 * page, RW, ANON, -1);
	to = ptr + 2 * page;
	/* mremap() with MREMAP_FIXED is another system call on 64-bit ARM. */
	ck_assert_ptr_eq(mremap(ptr, 4 * page, 3 * page, 0), ptr);
	ck_assert_int_eq(last.number, SYS_mremap);
	ck_assert_int_eq(last.arg[0], (long) ptr);
	ck_assert_int_eq(last.arg[2], 3 * page);
	ck_assert_int_eq(madvise(to, page, MADV_DONTNEED), 0);
	ck_assert_int_eq(last.number, SYS_madvise);
	ck_assert_int_eq(last.arg[2], MADV_DONTNEED);
	ck_assert_int_eq(munmap(to, page), 0);
	ck_assert_int_eq(last.number, SYS_munmap);
	ck_assert_int_eq(last.arg[0], (long) to);
	ck_assert_ptr_ne(sbrk(page), (void *) -1);
	ck_assert_int_eq(last.number, SYS_brk);
	ck_assert_ptr_ne(sbrk(-(long) page), (void *) -1);
	ck_assert_int_eq(last.number, SYS_brk);
	ck_assert_int_eq(syscall(SYS_munmap, ptr, page, 1, 2, 3), 0);
	seen(SYS_munmap, (long) ptr, page, 1, 2, 3);
	/* All six arguments are passed, the last of them from the stack. */
	ck_assert_int_eq(syscall(SYS_mmap, ptr, page, RW, ANON | MAP_FIXED, -1,
				 0L),
			 (long) ptr);
	seen(SYS_mmap, (long) ptr, page, RW, ANON | MAP_FIXED, -1);
	ck_assert_int_eq(last.arg[5], 0);
	/* Errors are those of libc: the result, and errno after it. */
	ck_assert_int_eq(munmap(ptr + 1, page), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_eq(mmap(NULL, 0, RW, ANON, -1, 0), MAP_FAILED);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(madvise(ptr + 1, page, MADV_DONTNEED), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(syscall(SYS_close, -1), -1);
	ck_assert_int_eq(errno, EBADF);
	ck_assert_int_eq(munmap(ptr, 2 * page), 0);
	mine = make = false;
	turn(false);
	atomic_store(&calls, 0);
	ptr = mmap(NULL, page, RW, ANON, -1, 0);
	munmap(ptr, page);
	syscall(SYS_getpid);
	ck_assert_uint_eq(atomic_load(&calls), 0);
}

/* Code that was patched once is unknown to a second patcher. */
TEST(test_taken)
{
	struct mrrc_patch other = { 0 };
	uint64_t foreign;

	if (!known)
		skip("another libc");
	ck_assert_int_eq(mrrc_patch_on(&patch[0]), 0);
	ck_assert_int_eq(mrrc_patch_find("munmap", SYS_munmap, &other),
			 -ENOENT);
	ck_assert_ptr_null(other.word);
	/* Another patcher restores the old code, and the check sees this. */
	other = patch[0];
	ck_assert_int_eq(mrrc_patch_off(&other), 0);
	ck_assert(!mrrc_patch_is_on(&patch[0]));
	ck_assert_int_eq(mrrc_patch_off(&patch[0]), -EBUSY);
	/* The word has changed: it is neither patched nor restored. */
	other.before ^= 1;
	ck_assert_int_eq(mrrc_patch_on(&other), -EBUSY);
	foreign = *patch[0].word;
	ck_assert_int_eq(mrrc_patch_off(&other), -EBUSY);
	ck_assert_uint_eq(*patch[0].word, foreign);
}

/* ---- where stubs lie ---- */

#define ALL	 4096		    /* mappings of the process */
#define FAR	 ((size_t) 2 << 30) /* beyond a jump's reach */
#define GROWTH	 ((size_t) 64 << 20)
#define NO_HOLES 99

enum hole { HOLE_STACK, HOLE_HEAP, HOLE_NONE };

static struct around {
	struct {
		uintptr_t start, end;
		bool heap, stack;
	} all[ALL];
	size_t count;
} around;

static bool around_add(void *arg, const struct mrrc_mapping *mapping)
{
	if (around.count == ALL)
		return false;
	around.all[around.count].start = mapping->start;
	around.all[around.count].end = mapping->end;
	around.all[around.count].heap = !strcmp(mapping->name, "[heap]");
	around.all[around.count].stack = !strcmp(mapping->name, "[stack]");
	return !around.all[around.count++].stack;
}

static bool fill(uintptr_t start, uintptr_t end)
{
	return start >= end || mmap((void *) start, end - start, PROT_NONE,
				    ANON | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				    -1, 0) == (void *) start;
}

/*
 * Fills all free addresses within the reach of a jump, except the hole @but,
 * and half of the room that stack and heap have for growth. Returns false if
 * this process has no such hole.
 */
static bool fill_holes(uintptr_t near, enum hole but)
{
	const uintptr_t low = (near & ~(page - 1)) - FAR, high = low + 2 * FAR;
	bool filled = true, has = but == HOLE_NONE;
	uintptr_t start, end;
	enum hole hole;
	size_t i;

	for (i = 1; i < around.count && filled; i++) {
		start = around.all[i - 1].end;
		end = around.all[i].start;
		if (around.all[i - 1].heap)
			start += GROWTH / 2;
		if (around.all[i].stack)
			end -= GROWTH / 2;
		if (start >= high || end <= low)
			continue;
		hole = around.all[i].stack    ? HOLE_STACK :
		       around.all[i - 1].heap ? HOLE_HEAP :
						HOLE_NONE;
		if (hole == but && hole != HOLE_NONE)
			has = true;
		else
			filled = fill(start > low ? start : low,
				      end < high ? end : high);
	}
	return filled && has;
}

/* Returns whether heap and stack have room to grow. */
static bool is_apart(uintptr_t stub)
{
	size_t i;

	for (i = 0; i < around.count; i++) {
		if (around.all[i].heap && stub > around.all[i].end &&
		    stub - around.all[i].end < GROWTH / 2)
			return false;
		if (around.all[i].stack && stub < around.all[i].start &&
		    around.all[i].start - stub < GROWTH / 2)
			return false;
	}
	return true;
}

/* In a child: finds the first stub in another page than before. */
static int fill_and_find(enum hole but)
{
	const uintptr_t first = (uintptr_t) patch[0].stub / page;
	struct mrrc_patch more = patch[0];
	void *own = mmap(NULL, page, RW, ANON, -1, 0);
	int ret = 0;

	mrrc_mappings_each(around_add, NULL);
	if (!fill_holes((uintptr_t) patch[0].at, but))
		return NO_HOLES;
	while (!ret && (uintptr_t) more.stub / page == first)
		ret = mrrc_patch_find("munmap", SYS_munmap, &more);
	if (ret)
		return -ret;
	atomic_store(&calls, 0);
	if (!is_apart((uintptr_t) more.stub) || mrrc_patch_on(&more) ||
	    munmap(own, page) || mrrc_patch_off(&more))
		return EIO;
	return atomic_load(&calls) ? 0 : EIO;
}

/*
 * Large mappings surround libc: a stub is then placed where the stack or the
 * heap could grow, but far from both.
 */
LOOP_TEST(test_crowded, HOLE_STACK, HOLE_NONE + 1)
{
	int status;
	pid_t pid;

	if (!known)
		skip("another libc");
	pid = fork();
	if (!pid)
		_exit(fill_and_find((enum hole) _i));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_HOLES)
		skip("other holes here");
	ck_assert_int_eq(WEXITSTATUS(status), _i == HOLE_NONE ? ENOMEM : 0);
}

/* ---- unpatched code stays as it was ---- */

#define SEGMENTS 256

struct segment {
	uintptr_t start, end;
	uint64_t sum;
};

/* Returns the FNV-1a sum of words, including the gaps between variables. */
static __attribute__((no_sanitize_address)) uint64_t sum_of(uintptr_t at,
							    uintptr_t end)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (; at < end; at += sizeof(uint64_t))
		sum = (sum ^ *(const uint64_t *) at) * 0x100000001b3;
	return sum;
}

/* Reads segments that are never written: code, PLTs, GOTs after relocation. */
static size_t read_segments(struct segment *segment)
{
	char line[512], mode[5];
	unsigned long inode;
	size_t count = 0;
	FILE *file = fopen("/proc/self/maps", "re");
	struct segment *at;

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		ck_assert_uint_lt(count, SEGMENTS);
		at = &segment[count];
		ck_assert_int_eq(sscanf(line, "%lx-%lx %4s %*x %*s %lu",
					&at->start, &at->end, mode, &inode),
				 4);
		/* No mapping is both writable and executable. */
		ck_assert(mode[1] != 'w' || mode[2] != 'x');
		if (!inode || mode[0] != 'r' || mode[1] == 'w')
			continue;
		at->sum = sum_of(at->start, at->end);
		count++;
	}
	fclose(file);
	return count;
}

static bool has_patch(const struct segment *segment)
{
	uintptr_t at;
	size_t i;

	for (i = 0; i < FUNCTIONS; i++) {
		at = (uintptr_t) patch[i].word;
		if (at >= segment->start && at < segment->end)
			return true;
	}
	return false;
}

/* Only segments with a patch differ while patches are on, and none after. */
TEST(test_restored)
{
	static struct segment before[SEGMENTS], on[SEGMENTS], after[SEGMENTS];
	size_t count, i;

	if (!known)
		skip("another libc");
	/* Fillers stay once they are used. */
	turn(true);
	turn(false);
	count = read_segments(before);
	turn(true);
	ck_assert_uint_eq(read_segments(on), count);
	turn(false);
	ck_assert_uint_eq(read_segments(after), count);
	for (i = 0; i < count; i++) {
		ck_assert_uint_eq(before[i].start, after[i].start);
		ck_assert_uint_eq(before[i].end, after[i].end);
		ck_assert_uint_eq(before[i].sum, after[i].sum);
		ck_assert_int_eq(before[i].sum != on[i].sum, has_patch(&on[i]));
	}
}

/* A copy of patched code, undone, is equal to the code before. */
TEST(test_undo)
{
	uint8_t *was = malloc(2 * page), *copy = malloc(2 * page);
	uint8_t *code;
	size_t i;

	if (!known)
		skip("another libc");
	for (i = 0; i < FUNCTIONS; i++) {
		code = (uint8_t *) ((uintptr_t) patch[i].at & ~(page - 1)) -
		       page;
		memcpy(was, code, 2 * page);
		/* The jump in the filler was there already. */
		if (patch[i].filler)
			memcpy(was + (patch[i].filler - code), patch[i].filled,
			       sizeof(patch[i].filled));
		ck_assert_int_eq(mrrc_patch_on(&patch[i]), 0);
		memcpy(copy, code, 2 * page);
		ck_assert_int_eq(mrrc_patch_off(&patch[i]), 0);
		ck_assert_int_ne(memcmp(was, copy, 2 * page), 0);
		mrrc_patch_undo(&patch[i], copy, (uintptr_t) code,
				(uintptr_t) code + 2 * page);
		ck_assert_int_eq(memcmp(was, copy, 2 * page), 0);
	}
	free(was);
	free(copy);
}

struct spinner {
	pthread_t thread;
	atomic_bool stop;
	atomic_ulong done;
};

/* Each call works as usual, whichever code it meets. */
static void *spin(void *arg)
{
	struct spinner *self = arg;
	unsigned char vec;
	char *ptr, *to;

	while (!atomic_load(&self->stop)) {
		ptr = mmap(NULL, 2 * page, RW, ANON, -1, 0);
		if (ptr == MAP_FAILED)
			abort();
		memset(ptr, 1, 2 * page);
		if (madvise(ptr, page, MADV_DONTNEED) || ptr[0])
			abort();
		to = mremap(ptr, 2 * page, 3 * page, MREMAP_MAYMOVE);
		if (to == MAP_FAILED || to[page] != 1)
			abort();
		if (syscall(SYS_mincore, to, page, &vec) ||
		    munmap(to, 3 * page))
			abort();
		atomic_fetch_add(&self->done, 1);
	}
	return NULL;
}

/* Each thread has made calls; that takes a while on a busy machine. */
static bool all_called(struct spinner *spinner)
{
	int i;

	for (i = 0; i < THREADS; i++) {
		if (!atomic_load(&spinner[i].done))
			return false;
	}
	return atomic_load(&calls);
}

TEST(test_toggle)
{
	struct spinner spinner[THREADS] = { 0 };
	int i;

	if (!known)
		skip("another libc");
	atomic_store(&calls, 0);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&spinner[i].thread, NULL, spin,
						&spinner[i]),
				 0);
	for (i = 0; i < TOGGLES || !all_called(spinner); i++) {
		turn(true);
		usleep(10);
		turn(false);
	}
	for (i = 0; i < THREADS; i++) {
		atomic_store(&spinner[i].stop, true);
		pthread_join(spinner[i].thread, NULL);
	}
}

/* More stubs are requested than there is room for. */
TEST(test_many)
{
	struct mrrc_patch many;
	size_t i;
	int ret = 0;

	if (!known)
		skip("another libc");
	for (i = 0; i <= (MRRC_PATCH_PAGES * page + MRRC_PATCH_HOME) /
				    MRRC_PATCH_STUB &&
		    !ret;
	     i++)
		ret = mrrc_patch_find("munmap", SYS_munmap, &many);
	ck_assert_int_eq(ret, -ENOMEM);
	ck_assert_uint_gt(i, page / MRRC_PATCH_STUB);
}

int main(void)
{
	page = mrrc_vm_page();
	if (under_valgrind()) {
		fprintf(stderr, "valgrind runs code as it was: skipped\n");
		return 77;
	}
#ifdef __SANITIZE_THREAD__
	fprintf(stderr, "libc unmaps where ThreadSanitizer is gone: skipped\n");
	return 77;
#endif
	return run_cases(CK_NOFORK);
}
