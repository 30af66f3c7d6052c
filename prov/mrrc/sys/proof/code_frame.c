/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where the function around an address begins and ends, by the tables that
 * exceptions are unwound with: .eh_frame_hdr, sorted, leads to the function's
 * entry (FDE) in .eh_frame, and that to what entries have in common (CIE).
 * Encodings but those that compilers for 64-bit processors use are refused.
 */
#include "config.h"
#include "sys/proof/code_priv.h"

#include <errno.h>
#include <string.h>

/* DW_EH_PE_* */
#define ABSPTR	0x00
#define UDATA4	0x03
#define SDATA4	0x0b
#define SDATA8	0x0c
#define UDATA8	0x04
#define FORM	0x0f
#define PCREL	0x10
#define DATAREL 0x30
#define PLACE	0x70
#define ALIGNED 0x50
#define OMIT	0xff

/* What is read next, and where it ends; after a failure, nothing. */
struct frame_bytes {
	uintptr_t at, end;
};

static uint64_t take(struct frame_bytes *bytes, size_t len)
{
	uint64_t value = 0;

	if (bytes->end - bytes->at < len) {
		bytes->at = bytes->end = 0;
		return 0;
	}
	memcpy(&value, (const void *) bytes->at, len);
	bytes->at += len;
	return value;
}

/* Of either sign: the value does not matter. */
static void skip_leb(struct frame_bytes *bytes)
{
	while (bytes->at && take(bytes, 1) & 0x80)
		;
}

/* 0: no form that is known. */
static size_t form_len(uint8_t encoding)
{
	switch (encoding & FORM) {
	case UDATA4:
	case SDATA4:
		return 4;
	case ABSPTR:
	case UDATA8:
	case SDATA8:
		return 8;
	default:
		return 0;
	}
}

/* The bytes of the entry at @at behind its length. */
static int open_entry(const struct mrrc_code *code, uintptr_t at,
		      struct frame_bytes *bytes)
{
	uint32_t len;

	if (!mrrc_code_readable(code, at, sizeof(len)))
		return -EINVAL;
	memcpy(&len, (const void *) at, sizeof(len));
	at += sizeof(len);
	if (len < 8 || len == UINT32_MAX || !mrrc_code_readable(code, at, len))
		return -EINVAL;
	*bytes = (struct frame_bytes){ at, at + len };
	return 0;
}

/* What functions have in common. */
struct frame_common {
	uint8_t encoding; /* of their addresses */
	bool signal;	  /* they return from a signal's handler */
};

static int find_common(const struct mrrc_code *code, uintptr_t at,
		       struct frame_common *common)
{
	struct frame_bytes bytes;
	uint8_t version, personality;
	uintptr_t name;
	int ret;

	ret = open_entry(code, at, &bytes);
	if (ret)
		return ret;
	if (take(&bytes, 4))
		return -EINVAL;
	version = (uint8_t) take(&bytes, 1);
	name = bytes.at;
	while (take(&bytes, 1))
		;
	if ((version != 1 && version != 3) || !bytes.at)
		return -EINVAL;
	*common = (struct frame_common){ .encoding = ABSPTR };
	if (!*(const char *) name)
		return 0;
	if (*(const char *) name++ != 'z')
		return -EINVAL;
	skip_leb(&bytes); /* alignment of code */
	skip_leb(&bytes); /* and of data */
	if (version == 1)
		take(&bytes, 1); /* register of the return address */
	else
		skip_leb(&bytes);
	skip_leb(&bytes); /* length of what follows */
	for (; *(const char *) name; name++) {
		switch (*(const char *) name) {
		case 'R':
			common->encoding = (uint8_t) take(&bytes, 1);
			break;
		case 'P':
			personality = (uint8_t) take(&bytes, 1);
			if (!form_len(personality) ||
			    (personality & PLACE) == ALIGNED)
				return -EINVAL;
			take(&bytes, form_len(personality));
			break;
		case 'L':
			take(&bytes, 1);
			break;
		case 'S':
			common->signal = true;
			break;
		case 'B':
			break;
		default:
			return -EINVAL;
		}
	}
	return bytes.at ? 0 : -EINVAL;
}

/* An address or a length. */
static uint64_t take_form(struct frame_bytes *bytes, uint8_t encoding)
{
	const uint64_t value = take(bytes, form_len(encoding));

	if ((encoding & FORM) == SDATA4)
		return (uint64_t) (int64_t) (int32_t) value;
	return value;
}

/* The function of the FDE at @at, which the table says begins at @start. */
static int read_function(const struct mrrc_code *code, uintptr_t at,
			 uintptr_t start, struct mrrc_code_range *function)
{
	struct frame_common common;
	struct frame_bytes bytes;
	uintptr_t place;
	uint64_t len;
	uint32_t back;
	int ret;

	ret = open_entry(code, at, &bytes);
	if (ret)
		return ret;
	place = bytes.at;
	back = (uint32_t) take(&bytes, sizeof(back));
	if (!back || back > place)
		return -EINVAL;
	ret = find_common(code, place - back, &common);
	if (ret)
		return ret;
	if (!form_len(common.encoding) ||
	    (common.encoding & ~FORM && (common.encoding & ~FORM) != PCREL))
		return -EINVAL;
	place = common.encoding & PCREL ? bytes.at : code->image->base;
	if (take_form(&bytes, common.encoding) + place != start)
		return -EINVAL;
	len = take_form(&bytes, common.encoding & FORM);
	if (!bytes.at || len > UINTPTR_MAX - start)
		return -EINVAL;
	*function = (struct mrrc_code_range){ start, start + len };
	/*
	 * Unwinding looks for the byte before a return address. There is no
	 * call before a signal's return, so its entry begins a byte early.
	 */
	if (common.signal && len)
		function->start++;
	return 0;
}

/* The sorted table: an entry is a function's address and its FDE's. */
struct frame_table {
	uintptr_t entries, base;
	size_t count;
};

static int open_table(const struct mrrc_code *code, struct frame_table *table)
{
	struct frame_bytes bytes = { code->frames.start, code->frames.end };
	uint8_t version, eh, count, entries;

	if (!bytes.at)
		return -ENOENT;
	version = (uint8_t) take(&bytes, 1);
	eh = (uint8_t) take(&bytes, 1);
	count = (uint8_t) take(&bytes, 1);
	entries = (uint8_t) take(&bytes, 1);
	if (!bytes.at || version != 1 || count != UDATA4 ||
	    entries != (DATAREL | SDATA4) || eh == OMIT || !form_len(eh))
		return -EINVAL;
	take(&bytes, form_len(eh));
	table->count = take(&bytes, 4);
	table->entries = bytes.at;
	table->base = code->frames.start;
	if (!bytes.at || table->count > (bytes.end - bytes.at) / 8)
		return -EINVAL;
	return table->count ? 0 : -ENOENT;
}

static uintptr_t table_entry(const struct frame_table *table, size_t i,
			     bool fde)
{
	int32_t value;

	memcpy(&value, (const void *) (table->entries + i * 8 + (fde ? 4 : 0)),
	       sizeof(value));
	return table->base + (uintptr_t) (intptr_t) value;
}

/* How many entries are of functions that begin at @at or before. */
static size_t table_find(const struct frame_table *table, uintptr_t at)
{
	size_t lo = 0, hi = table->count, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (table_entry(table, mid, false) <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int mrrc_code_function(const struct mrrc_code *code, uintptr_t at,
		       struct mrrc_code_range *function,
		       struct mrrc_code_range *gap)
{
	const struct mrrc_code_image *const image = code->image;
	struct frame_table table;
	size_t i;
	int ret;

	ret = open_table(code, &table);
	if (ret)
		return ret;
	*gap = (struct mrrc_code_range){ image->start, image->end };
	*function = (struct mrrc_code_range){ 0 };
	i = table_find(&table, at);
	if (i < table.count && table_entry(&table, i, false) > at &&
	    table_entry(&table, i, false) < image->end)
		gap->end = table_entry(&table, i, false);
	if (!i)
		return 0;
	ret = read_function(code, table_entry(&table, i - 1, true),
			    table_entry(&table, i - 1, false), function);
	if (ret)
		return ret;
	if (function->start < image->start || function->end > gap->end ||
	    function->start > at)
		return -EINVAL;
	gap->start = function->end;
	return 0;
}
