/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The addresses in code that a file's tables name (code_priv.h): dynamic
 * symbols, relocations (packed ones, too), initialisation, the program's entry.
 * Each pointer to code that a position-independent file has in its data is
 * among them. The tables are read from the file: tools that enlarge them move
 * them behind a gap that is not part of the copy of a mapping, and packed
 * relocations are overwritten in memory.
 *
 * A program at a fixed address has pointers that no table names.
 */
#include "config.h"
#include "sys/proof/code_priv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sys/base/apart.h"

#define TABLE ((uint64_t) 256 << 20) /* bytes of one, at most */

static void names_hidden(struct mrrc_code *code, const char *why)
{
	if (!code->hidden)
		code->hidden = why;
}

static void names_add(struct mrrc_code *code, uintptr_t at)
{
	const size_t room = code->names_room ? 2 * code->names_room : 512;
	uintptr_t *name;

	if (at < code->image->start || at >= code->image->end)
		return;
	if (code->names == code->names_room) {
		name = mrrc_apart_grow(code->name, room * sizeof(*name));
		if (!name) {
			names_hidden(code, "no memory for its relocations");
			return;
		}
		code->name = name;
		code->names_room = room;
	}
	code->name[code->names++] = at;
}

/*
 * The first section of a type, or the next one after @last; NULL: there is
 * none.
 */
static const struct mrrc_code_section *
names_section(const struct mrrc_code *code, uint32_t type,
	      const struct mrrc_code_section *last)
{
	const struct mrrc_code_section *at = last ? last + 1 : code->section;

	for (; at < code->section + code->sections; at++) {
		if (at->type == type)
			return at;
	}
	return NULL;
}

/* Reads a table from the file; NULL: it cannot be read. */
static void *names_table(struct mrrc_code *code,
			 const struct mrrc_code_section *section, size_t *len)
{
	void *table = NULL;

	*len = section->range.end - section->range.start;
	if (*len <= TABLE)
		table = mrrc_apart_grow(NULL, *len);
	if (table && pread(code->fd, table, *len, (off_t) section->offset) ==
			     (ssize_t) *len)
		return table;
	names_hidden(code, "tables that cannot be read");
	mrrc_apart_free(table);
	return NULL;
}

static void names_symbols(struct mrrc_code *code, const Elf64_Sym *symbol,
			  size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (symbol[i].st_shndx != SHN_UNDEF &&
		    ELF64_ST_TYPE(symbol[i].st_info) != STT_OBJECT &&
		    ELF64_ST_TYPE(symbol[i].st_info) != STT_TLS)
			names_add(code, code->image->base + symbol[i].st_value);
	}
}

/* Handles a relocation, whose addend counts from 0, or from its symbol. */
static void names_rela(struct mrrc_code *code, const Elf64_Rela *rela,
		       size_t count, const Elf64_Sym *symbol, size_t symbols)
{
	uintptr_t at;
	size_t i, of;

	for (i = 0; i < count; i++) {
		at = code->image->base + (uintptr_t) rela[i].r_addend;
		of = ELF64_R_SYM(rela[i].r_info);
		names_add(code, of < symbols ? at + symbol[of].st_value : at);
	}
}

/* Reads the address in the file at the place of a packed relocation. */
static void names_packed(struct mrrc_code *code, uint64_t place)
{
	uint64_t word;

	if (mrrc_code_filed(code, code->image->base + place, &word,
			    sizeof(word)))
		names_add(code, code->image->base + word);
	else
		names_hidden(code, "tables that cannot be read");
}

/*
 * Handles packed relocations: an even word is an address; an odd word has a bit
 * for each of the 63 words after the last one.
 */
static void names_relr(struct mrrc_code *code, const uint64_t *relr,
		       size_t count)
{
	uint64_t place = 0;
	unsigned bit;
	size_t i;

	for (i = 0; i < count && !code->hidden; i++) {
		if (!(relr[i] & 1)) {
			names_packed(code, relr[i]);
			place = relr[i] + sizeof(place);
			continue;
		}
		for (bit = 1; bit < 64; bit++, place += sizeof(place)) {
			if (relr[i] >> bit & 1)
				names_packed(code, place);
		}
	}
}

static void names_dynamic(struct mrrc_code *code, const Elf64_Dyn *dyn,
			  size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (dyn[i].d_tag == DT_INIT || dyn[i].d_tag == DT_FINI)
			names_add(code, code->image->base + dyn[i].d_un.d_ptr);
	}
}

/* All tables of a type. The symbols are those of the relocations. */
static void names_each(struct mrrc_code *code, uint32_t type,
		       const Elf64_Sym *symbol, size_t symbols)
{
	const struct mrrc_code_section *section = NULL;
	size_t len;
	void *table;

	while ((section = names_section(code, type, section))) {
		table = names_table(code, section, &len);
		if (!table)
			return;
		if (type == SHT_RELA)
			names_rela(code, table, len / sizeof(Elf64_Rela),
				   symbol, symbols);
		else if (type == SHT_RELR)
			names_relr(code, table, len / sizeof(uint64_t));
		else
			names_dynamic(code, table, len / sizeof(Elf64_Dyn));
		mrrc_apart_free(table);
	}
}

/* The reason why the file's tables are incomplete; NULL: they are complete. */
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
	if (names_section(code, SHT_REL, NULL))
		return "relocations without addends";
	return NULL;
}

void mrrc_code_names(struct mrrc_code *code)
{
	const struct mrrc_code_section *section;
	Elf64_Sym *symbol = NULL;
	size_t len = 0;

	if (code->named)
		return;
	code->named = true;
	code->hidden = names_why(code);
	if (code->hidden)
		return;
	names_add(code, code->image->base + code->ehdr->e_entry);
	section = names_section(code, SHT_DYNSYM, NULL);
	if (section)
		symbol = names_table(code, section, &len);
	len /= sizeof(*symbol);
	if (symbol)
		names_symbols(code, symbol, len);
	names_each(code, SHT_RELA, symbol, symbol ? len : 0);
	names_each(code, SHT_RELR, NULL, 0);
	names_each(code, SHT_DYNAMIC, NULL, 0);
	mrrc_apart_free(symbol);
}
