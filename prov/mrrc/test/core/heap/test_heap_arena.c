/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Size classes and arenas. An arena touches no memory of its blocks, so the
 * blocks here are addresses only.
 */
#include "config.h"
#include "test/case.h"

#include "core/heap/heap_arena.h"

#define MIB  ((size_t) 1 << 20)
#define BASE ((uintptr_t) 1 << 40)

/* Check writes to a file for each assertion that holds, so loops use must(). */
#define must(cond, ...)                            \
	do {                                       \
		if (!(cond))                       \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)

static struct mrrc_arena arena;

/* ---- blocks -------------------------------------------------------------- */

static struct mrrc_heap_block *block_at(uintptr_t base, size_t len)
{
	struct mrrc_heap_block *block = calloc(1, sizeof(*block));
	uintptr_t addr;

	block->base = base;
	block->len = len;
	block->pages = len / MRRC_HEAP_PAGE;
	block->mib = aligned_alloc(64, len / MIB * MRRC_MIB_BYTES);
	memset(block->mib, 0, len / MIB * MRRC_MIB_BYTES);
	for (addr = base; addr < base + len; addr += MIB)
		mrrc_mib_init(mrrc_block_mib(block, addr), block, 0);
	block->page = calloc(block->pages, sizeof(*block->page));
	return block;
}

static void block_free(struct mrrc_heap_block *block)
{
	free(block->mib);
	free(block->page);
	free(block);
}

static void arena_setup(void)
{
	mrrc_arena_init(&arena);
}

/* Frees all idle blocks; all blocks must be idle by then. */
static void arena_teardown(void)
{
	struct mrrc_heap_block *block;

	ck_assert(mrrc_arena_valid(&arena));
	while ((block = mrrc_arena_idle(&arena, UINT64_MAX)))
		block_free(block);
	ck_assert(TAILQ_EMPTY(&arena.blocks));
	ck_assert_uint_eq(arena.pages, 0);
	ck_assert_uint_eq(arena.used, 0);
	ck_assert_uint_eq(arena.out_bytes, 0);
	ck_assert(mrrc_arena_valid(&arena));
}

static void set_mark(struct mrrc_heap_block *block, uintptr_t object,
		     unsigned mark)
{
	*mrrc_mib_mark(mrrc_block_mib(block, object), object) = mark;
}

static unsigned get_mark(struct mrrc_heap_block *block, uintptr_t object)
{
	return *mrrc_mib_mark(mrrc_block_mib(block, object), object);
}

TEST_CASE(heap_arena, arena_setup, arena_teardown);

/* ---- classes ------------------------------------------------------------- */

TEST(classes_hold_and_are_close)
{
	size_t len, size;
	unsigned class;

	for (len = 1; len <= MRRC_CLASS_MAX; len += len < 70000 ? 1 : 97) {
		class = mrrc_class_of(len);
		size = mrrc_class_size(class);
		must(class < MRRC_CLASSES, "%zu: class %u", len, class);
		must(size >= len, "%zu gets %zu", len, size);
		must(!class || mrrc_class_size(class - 1) < len,
		     "%zu gets %zu, not the smallest", len, size);
		must(len <= 128 || 8 * (size - len) < len, "%zu gets %zu", len,
		     size);
	}
	ck_assert_uint_eq(mrrc_class_of(MRRC_CLASS_MAX), MRRC_CLASSES - 1);
	ck_assert_uint_eq(mrrc_class_size(MRRC_CLASSES - 1), MRRC_CLASS_MAX);
}

TEST(classes_keep_alignment)
{
	unsigned class;
	size_t align, len;

	for (class = 0; class < MRRC_CLASSES; class ++) {
		ck_assert_uint_eq(mrrc_class_size(class) % MRRC_HEAP_GRAIN, 0);
		ck_assert_uint_eq(mrrc_class_of(mrrc_class_size(class)), class);
		if (class >= MRRC_CLASS_SMALL)
			ck_assert_uint_eq(
				mrrc_class_size(class) % MRRC_HEAP_PAGE, 0);
	}
	ck_assert_uint_eq(mrrc_class_size(MRRC_CLASS_SMALL - 1),
			  MRRC_CLASS_SMALL_MAX);
	for (align = 16; align <= 4096; align *= 2) {
		for (len = 1; len < 20000; len += 7) {
			class = mrrc_class_aligned(len, align);
			must(mrrc_class_size(class) >= len, "%zu", len);
			must(!(mrrc_class_size(class) % align), "%zu", len);
		}
	}
}

/* ---- arenas -------------------------------------------------------------- */

TEST(idle_blocks_by_age)
{
	struct mrrc_heap_block *block;
	uintptr_t object;

	arena.now = 10;
	mrrc_arena_add(&arena, block_at(BASE, MIB));
	ck_assert_ptr_null(mrrc_arena_idle(&arena, 9));
	ck_assert_uint_eq(mrrc_arena_take(&arena, 5, 1, &object), 1);
	ck_assert_ptr_null(mrrc_arena_idle(&arena, UINT64_MAX));
	arena.now = 20;
	mrrc_arena_give(&arena, TAILQ_FIRST(&arena.blocks), object, 5);
	ck_assert_ptr_null(mrrc_arena_idle(&arena, 19));
	block = mrrc_arena_idle(&arena, 20);
	ck_assert_ptr_nonnull(block);
	block_free(block);
	ck_assert_uint_eq(mrrc_arena_take(&arena, 5, 1, &object), 0);
}

TEST(find_by_any_address)
{
	static const size_t lens[] = { 1,     48,    1000,   5000,
				       30000, 40000, 300000, 1 << 20 };
	struct mrrc_heap_block *block;
	uintptr_t object[8], found, at;
	unsigned i, class, c;
	size_t size, pos;

	mrrc_arena_add(&arena, block_at(BASE, 4 * MIB));
	block = TAILQ_FIRST(&arena.blocks);
	for (i = 0; i < 8; i++) {
		class = mrrc_class_of(lens[i]);
		size = mrrc_class_size(class);
		ck_assert(mrrc_arena_take(&arena, class, 1, &object[i]));
		ck_assert(!mrrc_arena_find(block, object[i], &found, &c));
		set_mark(block, object[i], MRRC_MARK_LIVE(object[i]));
		for (at = 0; at < size; at += at + 1 < size ? size - 1 : 1) {
			ck_assert(mrrc_arena_find(block, object[i] + at, &found,
						  &c));
			ck_assert_uint_eq(found, object[i]);
			ck_assert_uint_eq(c, class);
		}
		if (mrrc_arena_find(block, object[i] + size, &found, &c))
			ck_assert_uint_ne(found, object[i]);
	}
	for (i = 0, pos = 0; mrrc_arena_next(block, &pos, &found, &c); i++)
		;
	ck_assert_uint_eq(i, 8);
	for (i = 0; i < 8; i++) {
		class = mrrc_class_of(lens[i]);
		set_mark(block, object[i], MRRC_MARK_FREED(object[i]));
		ck_assert(!mrrc_arena_find(block, object[i], &found, &c));
		mrrc_arena_give(&arena, block, object[i], class);
	}
	pos = 0;
	ck_assert(!mrrc_arena_next(block, &pos, &found, &c));
}

/* Takes objects until no room is left, marks them live; returns the number. */
static unsigned take_live(struct mrrc_heap_block *block, unsigned class,
			  uintptr_t *object)
{
	unsigned n;

	for (n = 0; mrrc_arena_take(&arena, class, 1, &object[n]); n++)
		set_mark(block, object[n], MRRC_MARK_LIVE(object[n]));
	return n;
}

static void give_freed(struct mrrc_heap_block *block, unsigned class,
		       const uintptr_t *object, unsigned n)
{
	while (n--) {
		set_mark(block, object[n], MRRC_MARK_FREED(object[n]));
		mrrc_arena_give(&arena, block, object[n], class);
	}
}

/* Pages are cut for one class, then for another with parts of equal size. */
TEST(pages_cut_anew)
{
	static const size_t lens[][2] = { { 512, 576 },
					  { 1024, 1152 },
					  { 2048, 4096 },
					  { 64 << 10, 128 << 10 } };
	static uintptr_t was[MIB / 512], is[MIB / 512];
	struct mrrc_heap_block *block = block_at(BASE, MIB);
	unsigned i, k, n, m, old, class, c;
	uintptr_t found, last;

	mrrc_arena_add(&arena, block);
	for (i = 0; i < 4; i++) {
		old = mrrc_class_of(lens[i][0]);
		n = take_live(block, old, was);
		give_freed(block, old, was, n);
		class = mrrc_class_of(lens[i][1]);
		m = take_live(block, class, is);
		for (k = 0; k < n; k++)
			must(get_mark(block, was[k]) != MRRC_MARK_FREED(was[k]),
			     "%zu bytes: %#lx is freed", lens[i][1], was[k]);
		for (k = 0; k < m; k++) {
			last = is[k] + mrrc_class_size(class) - 1;
			must(mrrc_arena_find(block, last, &found, &c) &&
				     found == is[k],
			     "%zu bytes: %#lx is in none", lens[i][1], last);
		}
		give_freed(block, class, is, m);
	}
}

/* ---- against a naive model ----------------------------------------------- */

#define MODEL_BLOCKS 4
#define MODEL_LEN    (8 * MIB)
#define MODEL_LIVE   4000

struct model {
	struct mrrc_heap_block *block[MODEL_BLOCKS];
	/* the object that owns each grain */
	uint16_t owner[MODEL_BLOCKS * MODEL_LEN / MRRC_HEAP_GRAIN];
	uintptr_t object[MODEL_LIVE];
	uint8_t class[MODEL_LIVE];
};

static uint64_t rnd(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void model_own(struct model *model, unsigned i, unsigned was,
		      unsigned is)
{
	const size_t first = (model->object[i] - BASE) / MRRC_HEAP_GRAIN;
	const size_t n = mrrc_class_size(model->class[i]) / MRRC_HEAP_GRAIN;
	size_t k;

	for (k = first; k < first + n; k++) {
		must(model->owner[k] == was, "grain %zu of object %u is %u's",
		     k, i, model->owner[k]);
		model->owner[k] = is;
	}
}

static void model_take(struct model *model, unsigned i, uint64_t *seed)
{
	/* Each power of two of sizes is equally likely. */
	const size_t len = 1 + rnd(seed) % ((size_t) 16 << rnd(seed) % 18);
	unsigned class = mrrc_class_of(len);
	uintptr_t object;

	if (class >= MRRC_CLASS_SMALL && !(rnd(seed) % 4))
		object = mrrc_arena_take_aligned(&arena, class,
						 8192 << rnd(seed) % 6);
	else if (!mrrc_arena_take(&arena, class, 1, &object))
		object = 0;
	if (!object)
		return;
	model->object[i] = object;
	model->class[i] = class;
	model_own(model, i, 0, i + 1);
}

static void model_give(struct model *model, unsigned i)
{
	const size_t at = (model->object[i] - BASE) / MODEL_LEN;

	model_own(model, i, i + 1, 0);
	mrrc_arena_give(&arena, model->block[at], model->object[i],
			model->class[i]);
	model->object[i] = 0;
}

TEST(random_against_model)
{
	static struct model model;
	const char *env = getenv("HEAP_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 20260101;
	unsigned i, step;

	printf("heap_arena: HEAP_SEED=%llu\n", (unsigned long long) seed);
	memset(&model, 0, sizeof(model));
	for (i = 0; i < MODEL_BLOCKS; i++) {
		model.block[i] = block_at(BASE + i * MODEL_LEN, MODEL_LEN);
		mrrc_arena_add(&arena, model.block[i]);
	}
	for (step = 0; step < 400000; step++) {
		i = rnd(&seed) % MODEL_LIVE;
		if (model.object[i])
			model_give(&model, i);
		else
			model_take(&model, i, &seed);
		if (!(step % 20000))
			ck_assert(mrrc_arena_valid(&arena));
	}
	for (i = 0; i < MODEL_LIVE; i++) {
		if (model.object[i])
			model_give(&model, i);
	}
}
