/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_check: derived datatypes, which the library packs or hands on as they
 * are. What lies between their parts must stay as it was.
 */
#include "mpi_check.h"

/* Blocks of a vector: how many, how long, how far apart, in bytes. */
struct shape {
	int count;
	int block;
	int stride;
};

static const struct shape shapes[] = {
	{ 3, 1, 2 },	       { 10, 8, 24 },	    { 100, 100, 301 },
	{ 64, 4096, 8192 },    { 7, 30000, 30001 }, { 2000, 64, 128 },
	{ 3, 400000, 500000 },
};

static size_t shape_data(const struct shape *shape)
{
	return (size_t) shape->count * (size_t) shape->block;
}

static size_t shape_extent(const struct shape *shape)
{
	return (size_t) (shape->count - 1) * (size_t) shape->stride +
	       (size_t) shape->block;
}

static void scatter_out(uint8_t *to, const uint8_t *from,
			const struct shape *shape)
{
	int i;

	for (i = 0; i < shape->count; i++)
		memcpy(to + (size_t) i * (size_t) shape->stride,
		       from + (size_t) i * (size_t) shape->block,
		       (size_t) shape->block);
}

/* Takes the blocks out of a buffer and checks them, and what is between. */
static void check_shape(const uint8_t *in, const struct shape *shape,
			uint64_t seed)
{
	uint8_t *flat = malloc(shape_data(shape));
	const uint8_t *block;
	int i;

	for (i = 0; i < shape->count; i++) {
		block = in + (size_t) i * (size_t) shape->stride;
		memcpy(flat + (size_t) i * (size_t) shape->block, block,
		       (size_t) shape->block);
		if (i + 1 < shape->count)
			mc_check_byte(block + shape->block,
				      (size_t) (shape->stride - shape->block),
				      MC_POISON, "between blocks");
	}
	mc_check(flat, shape_data(shape), seed, "blocks");
	free(flat);
}

/* From blocks to blocks, to flat memory, and from it. */
static void exchange_shape(const struct shape *shape, uint64_t number)
{
	size_t data = shape_data(shape), extent = shape_extent(shape);
	struct mc_buf flat_out, flat_in, out, in;
	MPI_Datatype type;
	int way;

	MPI_Type_vector(shape->count, shape->block, shape->stride, MPI_BYTE,
			&type);
	MPI_Type_commit(&type);
	for (way = 1; way < 4; way++) {
		mc_buf_get(&flat_out, data, 0);
		mc_buf_get(&flat_in, data, 0);
		mc_buf_get(&out, extent, 3);
		mc_buf_get(&in, extent, 5);
		mc_fill(flat_out.data, data, mc_seed(mc.rank, number));
		scatter_out(out.data, flat_out.data, shape);
		MPI_Sendrecv(way & 1 ? out.data : flat_out.data,
			     way & 1 ? 1 : (int) data,
			     way & 1 ? type : MPI_BYTE, mc.next, 1,
			     way & 2 ? in.data : flat_in.data,
			     way & 2 ? 1 : (int) data,
			     way & 2 ? type : MPI_BYTE, mc.prev, 1,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (way & 2)
			check_shape(in.data, shape, mc_seed(mc.prev, number));
		else
			mc_check(flat_in.data, data, mc_seed(mc.prev, number),
				 "flat memory");
		mc_buf_put(&flat_out);
		mc_buf_put(&flat_in);
		mc_buf_put(&out);
		mc_buf_put(&in);
	}
	MPI_Type_free(&type);
}

static void test_vector(void)
{
	size_t i;

	for (i = 0; i < MC_ARRAY_SIZE(shapes); i++) {
		if (shape_data(&shapes[i]) <= mc.max_size)
			exchange_shape(&shapes[i], i);
	}
}

struct record {
	char letter;
	double number;
	short pair[2];
	int64_t large;
};

static void record_type(MPI_Datatype *type)
{
	int lengths[] = { 1, 1, 2, 1 };
	MPI_Aint places[] = {
		offsetof(struct record, letter),
		offsetof(struct record, number),
		offsetof(struct record, pair),
		offsetof(struct record, large),
	};
	MPI_Datatype types[] = {
		MPI_CHAR,
		MPI_DOUBLE,
		MPI_SHORT,
		MPI_INT64_T,
	};
	MPI_Datatype packed;

	MPI_Type_create_struct(4, lengths, places, types, &packed);
	MPI_Type_create_resized(packed, 0, sizeof(struct record), type);
	MPI_Type_commit(type);
	MPI_Type_free(&packed);
}

static struct record record_of(int rank, int i)
{
	return (struct record){
		.letter = (char) ('a' + (rank + i) % 26),
		.number = rank * 1000.0 + i / 3.0,
		.pair = { (short) i, (short) -i },
		.large = (int64_t) i * 1000003 * (rank + 1),
	};
}

/* Arrays of structs with padding in them. */
static void test_struct(void)
{
	static const int counts[] = { 1, 100, 1000, 50000 };
	struct record *out, *in, want;
	MPI_Datatype type;
	size_t c;
	int i, n;

	record_type(&type);
	for (c = 0; c < MC_ARRAY_SIZE(counts); c++) {
		n = counts[c];
		if ((size_t) n * sizeof(*out) > mc.max_size)
			break;
		out = calloc((size_t) n, sizeof(*out));
		in = calloc((size_t) n, sizeof(*in));
		for (i = 0; i < n; i++)
			out[i] = record_of(mc.rank, i);
		out[n / 2].large = mc_value(out[n / 2].large);
		MPI_Sendrecv(out, n, type, mc.next, 2, in, n, type, mc.prev, 2,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (i = 0; i < n; i++) {
			want = record_of(mc.prev, i);
			if (in[i].letter == want.letter &&
			    in[i].number == want.number &&
			    !memcmp(in[i].pair, want.pair, sizeof(want.pair)) &&
			    in[i].large == want.large)
				continue;
			mc_fail("record %d of %d is wrong", i, n);
			break;
		}
		free(out);
		free(in);
	}
	MPI_Type_free(&type);
}

/* The border columns of a matrix, as programs with a grid do. */
static void test_subarray(void)
{
	enum { ROWS = 300, COLS = 257, WIDE = 3 };
	int sizes[] = { ROWS, COLS }, part[] = { ROWS, WIDE };
	int first[] = { 0, 0 }, last[] = { 0, COLS - WIDE };
	static int grid[ROWS][COLS];
	MPI_Datatype left, right;
	int r, c, want;

	MPI_Type_create_subarray(2, sizes, part, first, MPI_ORDER_C, MPI_INT,
				 &left);
	MPI_Type_create_subarray(2, sizes, part, last, MPI_ORDER_C, MPI_INT,
				 &right);
	MPI_Type_commit(&left);
	MPI_Type_commit(&right);
	for (r = 0; r < ROWS; r++) {
		for (c = 0; c < COLS; c++)
			grid[r][c] = (mc.rank * ROWS + r) * COLS + c;
	}
	grid[7][1] = (int) mc_value(grid[7][1]);
	MPI_Sendrecv(grid, 1, left, mc.prev, 1, grid, 1, right, mc.next, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (r = 0; r < ROWS; r++) {
		for (c = WIDE; c < COLS; c++) {
			want = (mc.rank * ROWS + r) * COLS + c;
			if (c >= COLS - WIDE)
				want = (mc.next * ROWS + r) * COLS + c -
				       (COLS - WIDE);
			if (grid[r][c] != want)
				mc_fail("row %d, column %d: %d for %d", r, c,
					grid[r][c], want);
		}
	}
	MPI_Type_free(&left);
	MPI_Type_free(&right);
}

/* Sent packed, taken apart by hand. */
static void test_pack(void)
{
	static const int counts[] = { 1, 500, 20000, 100000 };
	int i, n, room, at;
	double *out, *in;
	char *packed;
	size_t c;

	for (c = 0; c < MC_ARRAY_SIZE(counts); c++) {
		n = counts[c];
		if ((size_t) n * sizeof(*out) > mc.max_size)
			break;
		MPI_Pack_size(n, MPI_DOUBLE, MPI_COMM_WORLD, &room);
		packed = malloc((size_t) room);
		out = malloc((size_t) n * sizeof(*out));
		in = calloc((size_t) n, sizeof(*in));
		for (i = 0; i < n; i++)
			out[i] = mc.rank + i * 0.25;
		out[n / 2] = (double) mc_value((int64_t) out[n / 2]) +
			     out[n / 2] - (double) (int64_t) out[n / 2];
		at = 0;
		MPI_Pack(out, n, MPI_DOUBLE, packed, room, &at, MPI_COMM_WORLD);
		MPI_Sendrecv_replace(packed, at, MPI_PACKED, mc.next, 3,
				     mc.prev, 3, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
		room = at;
		at = 0;
		MPI_Unpack(packed, room, &at, in, n, MPI_DOUBLE,
			   MPI_COMM_WORLD);
		for (i = 0; i < n && in[i] == mc.prev + i * 0.25; i++)
			;
		if (i < n)
			mc_fail("element %d of %d is %f", i, n, in[i]);
		free(packed);
		free(out);
		free(in);
	}
}

const struct mc_test mc_type_tests[] = {
	{ .name = "vector", .run = test_vector },
	{ .name = "struct", .run = test_struct },
	{ .name = "subarray", .run = test_subarray },
	{ .name = "pack", .run = test_pack },
	{ .name = NULL },
};
