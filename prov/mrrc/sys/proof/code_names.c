/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the addresses in code that a file names: the program's entry, and each
 * word of the file's tables that can be an address in code: values of symbols,
 * addends of relocations, entries of the dynamic section. Sums of a symbol and
 * an addend are computed, as no word has such a sum. Each pointer to code in
 * the data of a position-independent file is among these addresses; with packed
 * relocations such a pointer is a word of a writable section. Words that only
 * look like an address count, too.
 *
 * A program at a fixed address has pointers that no table names.
 */
#include "config.h"
#include "sys/proof/code_names.h"

#include <string.h>

#include "sys/base/apart.h"

static void names_add(struct mrrc_code *code, uint64_t value)
{
	const size_t room = code->names_room ? 2 * code->names_room : 512;
	const uintptr_t at = code->image->base + value;
	uintptr_t *name;

	if (at < code->image->start || at >= code->image->end)
		return;
	if (code->names == code->names_room) {
		name = mrrc_apart_grow(code->name, room * sizeof(*name));
		if (!name) {
			code->hidden = "no memory for its relocations";
			return;
		}
		code->name = name;
		code->names_room = room;
	}
	code->name[code->names++] = at;
}

/* The first section of a type; NULL: there is none. */
static const struct mrrc_code_section *
names_section(const struct mrrc_code *code, uint32_t type)
{
	const struct mrrc_code_section *at = code->section;

	for (; at < code->section + code->sections; at++) {
		if (at->type == type)
			return at;
	}
	return NULL;
}

/* Adds the words from @at on, @step bytes apart. */
static void names_words(struct mrrc_code *code, uintptr_t at, uintptr_t end,
			size_t step)
{
	uint64_t word;

	for (; at < end && end - at >= sizeof(word); at += step) {
		memcpy(&word, (const void *) at, sizeof(word));
		names_add(code, word);
	}
}

/* Adds the addresses to which relocations by symbols lead. */
static void names_sums(struct mrrc_code *code,
		       const struct mrrc_code_range *range,
		       const struct mrrc_code_range *symbols)
{
	uintptr_t at = range->start, of;
	Elf64_Sym symbol;
	Elf64_Rela rela;

	for (; range->end - at >= sizeof(rela); at += sizeof(rela)) {
		memcpy(&rela, (const void *) at, sizeof(rela));
		of = ELF64_R_SYM(rela.r_info) * sizeof(symbol);
		if (of >= symbols->end - symbols->start ||
		    !mrrc_code_readable(code, symbols->start + of,
					sizeof(symbol)))
			continue;
		memcpy(&symbol, (const void *) (symbols->start + of),
		       sizeof(symbol));
		names_add(code, symbol.st_value + (uint64_t) rela.r_addend);
	}
}

/*
 * The reason why code may be entered at addresses that the file's tables do not
 * name; NULL: the tables name all such addresses.
 */
static const char *names_why(const struct mrrc_code *code)
{
	unsigned i, count = 0;

	for (i = 0; i < code->phdrs; i++)
		count += code->phdr[i].p_type == PT_LOAD &&
			 code->phdr[i].p_flags & PF_X;
	if (code->ehdr->e_type != ET_DYN)
		return "a program at a fixed address";
	if (count != 1)
		return "code in more than one segment";
	if (!code->sections)
		return "no section headers";
	if (names_section(code, SHT_REL))
		return "relocations without addends";
	return NULL;
}

static void names_table(struct mrrc_code *code,
			const struct mrrc_code_section *table)
{
	const struct mrrc_code_section *const symbols =
		names_section(code, SHT_DYNSYM);
	const struct mrrc_code_range *const range = &table->range;
	const bool packed = names_section(code, SHT_RELR) && table->write &&
			    table->type != SHT_NOBITS;

	if (!packed && table->type != SHT_RELA && table->type != SHT_DYNSYM &&
	    table->type != SHT_DYNAMIC)
		return;
	if (!mrrc_code_readable(code, range->start, range->end - range->start))
		code->hidden = "tables that cannot be read";
	else if (packed) /* words at even addresses */
		names_words(code, (range->start + 1) & ~(uintptr_t) 1,
			    range->end, 2);
	else if (table->type == SHT_DYNSYM)
		names_words(code, range->start + offsetof(Elf64_Sym, st_value),
			    range->end, sizeof(Elf64_Sym));
	else
		names_words(code, range->start, range->end, sizeof(uint64_t));
	if (table->type == SHT_RELA && symbols && !code->hidden)
		names_sums(code, range, &symbols->range);
}

void mrrc_code_names(struct mrrc_code *code)
{
	const struct mrrc_code_section *at = code->section;

	if (code->named)
		return;
	code->named = true;
	code->hidden = names_why(code);
	names_add(code, code->ehdr->e_entry);
	for (; !code->hidden && at < code->section + code->sections; at++)
		names_table(code, at);
}
