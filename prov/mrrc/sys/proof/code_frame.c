/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the beginning and end of the function around an address, by the tables
 * for unwinding exceptions: .eh_frame_hdr, sorted, leads to the function's
 * entry (FDE) in .eh_frame. Both tables have the encodings that compilers for
 * 64-bit processors use: distances of four bytes, from the distance's own place
 * or from the table's. Tables with other encodings are refused: an entry's
 * first bytes do not lead to the address that the table names.
 */
#include "config.h"
#include "sys/proof/code_frame.h"

#include <errno.h>
#include <string.h>

/* .eh_frame_hdr, as far as it is read, and an entry of its table. */
struct frame_header {
	uint8_t version, encoding[3];
	int32_t frames;
	uint32_t count;
};

struct frame_entry {
	int32_t start, fde; /* distances from the header */
};

struct frame_fde {
	uint32_t len, cie;
	int32_t start; /* distance from this field */
	uint32_t size;
};

/* offset of the augmentation string in a common entry (CIE) */
#define NAME 9

static int read_function(const struct mrrc_code *code, uintptr_t at,
			 uintptr_t start, struct mrrc_code_range *function)
{
	const uintptr_t place = at + offsetof(struct frame_fde, start);
	struct frame_fde fde;
	uintptr_t name;

	if (!mrrc_code_readable(code, at, sizeof(fde)))
		return -EINVAL;
	memcpy(&fde, (const void *) at, sizeof(fde));
	if (place + (uintptr_t) (intptr_t) fde.start != start)
		return -EINVAL;
	*function = (struct mrrc_code_range){ start, start + fde.size };
	/*
	 * Unwinding looks up the byte before a return address. Before the code
	 * to which a signal handler returns there is no call, so this code's
	 * entry begins one byte early.
	 */
	name = at + offsetof(struct frame_fde, cie) - fde.cie + NAME;
	if (fde.size && mrrc_code_readable(code, name, sizeof("zRS")) &&
	    !memcmp((const void *) name, "zRS", sizeof("zRS")))
		function->start++;
	return 0;
}

static struct frame_entry read_entry(const struct mrrc_code *code, size_t i)
{
	struct frame_entry entry;

	memcpy(&entry,
	       (const void *) (code->frames.start +
			       sizeof(struct frame_header) + i * sizeof(entry)),
	       sizeof(entry));
	return entry;
}

static uintptr_t entry_start(const struct mrrc_code *code, size_t i)
{
	return code->frames.start +
	       (uintptr_t) (intptr_t) read_entry(code, i).start;
}

/* The number of functions in the table; 0: the table is malformed. */
static size_t count_entries(const struct mrrc_code *code)
{
	static const uint8_t as[] = { 1, 0x1b, 0x03, 0x3b };
	const size_t len = code->frames.end - code->frames.start;
	struct frame_header header;

	if (len < sizeof(header))
		return 0;
	memcpy(&header, (const void *) code->frames.start, sizeof(header));
	if (memcmp(&header, as, sizeof(as)) ||
	    header.count > (len - sizeof(header)) / sizeof(struct frame_entry))
		return 0;
	return header.count;
}

int mrrc_code_function(const struct mrrc_code *code, uintptr_t at,
		       struct mrrc_code_range *function,
		       struct mrrc_code_range *gap)
{
	const struct mrrc_code_image *const image = code->image;
	const size_t count = count_entries(code);
	size_t lo = 0, hi = count, mid;
	int ret;

	if (!count)
		return -ENOENT;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (entry_start(code, mid) <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	*gap = (struct mrrc_code_range){ image->start, image->end };
	*function = (struct mrrc_code_range){ 0 };
	if (lo < count && entry_start(code, lo) > at &&
	    entry_start(code, lo) < image->end)
		gap->end = entry_start(code, lo);
	if (!lo)
		return 0;
	ret = read_function(
		code,
		code->frames.start +
			(uintptr_t) (intptr_t) read_entry(code, lo - 1).fde,
		entry_start(code, lo - 1), function);
	if (ret)
		return ret;
	if (function->start < image->start || function->end > gap->end ||
	    function->end < function->start || function->start > at)
		return -EINVAL;
	gap->start = function->end;
	return 0;
}
