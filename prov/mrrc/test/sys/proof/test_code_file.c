/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/code: a file with errors is read within its bounds, and a system
 * call about which such a file tells too little counts as unknown.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "test/sys/proof/code_fixture.h"
#include "test/seed.h"

#define FLIPS 20000

TEST_CASE(code_file, elf_setup, elf_teardown);

#ifdef HAVE_ZYDIS

/* ---- tables of functions ------------------------------------------------- */

TEST(test_frames)
{
	Elf64_Sym *const symbol = (void *) (elf.bytes + ELF_TABLES);
	uint8_t *const frames = elf.bytes + ELF_FRAMES;
	static const struct {
		size_t at;
		uint8_t byte;
	} bad[] = {
		{ 0, 2 },	 { 1, 0xff },	  { 1, 0x01 }, { 2, 0x0b },
		{ 3, 0x1b },	 { 11, 0x80 },	  /* too many entries */
		{ 15, 0x70 },			  /* function is elsewhere */
		{ 19, 0x70 },			  /* FDE is elsewhere */
		{ 0x438, 1 },			  /* not the table's function */
		{ 0x43d, 0x10 }, { 0x43f, 0x70 }, /* wrong length */
	};
	uint8_t was;
	size_t i;

	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0xc3);
	/* A symbol enters the code, even if it is in no function. */
	elf_section(&elf, SHT_DYNSYM, SHF_ALLOC, ELF_TABLES, sizeof(*symbol));
	symbol->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	symbol->st_shndx = 1;
	symbol->st_value = ELF_TEXT + 0x100;
	elf_is(&elf, 1, 0x105, 9);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		was = frames[bad[i].at];
		ck_assert_int_ne(was, bad[i].byte);
		frames[bad[i].at] = bad[i].byte;
		elf_is(&elf, 1, 0x105, ANY);
		frames[bad[i].at] = was;
	}
	elf_phdr(&elf, 2)->p_memsz = 19;
	elf_is(&elf, 1, 0x105, ANY);
	elf_phdr(&elf, 2)->p_memsz = 10;
	elf_is(&elf, 1, 0x105, ANY);
	elf_phdr(&elf, 2)->p_type = PT_NULL;
	elf_is(&elf, 1, 0x105, ANY);
}

/* A table must not be read where memory cannot be read. */
TEST(test_frames_outside)
{
	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0xc3);
	elf_phdr(&elf, 2)->p_vaddr = ELF_LEN;
	elf_is(&elf, 1, 0x105, ANY);
	/* A segment reaches beyond the file's memory. */
	elf_phdr(&elf, 0)->p_filesz = ELF_LEN + 0x1000;
	elf_is(&elf, 1, 0x105, ANY);
	elf_phdr(&elf, 0)->p_filesz = ELF_LEN;
	elf_phdr(&elf, 2)->p_vaddr = ELF_FRAMES;
	elf_is(&elf, 1, 0x105, 9);
	/* The file is shorter than the memory. */
	elf_phdr(&elf, 0)->p_filesz = ELF_FRAMES + 0x438;
	elf_is(&elf, 1, 0x105, ANY);
	elf_phdr(&elf, 0)->p_filesz = ELF_LEN;
	elf.image.hi = elf.image.end;
	elf.image.lo = elf.image.start;
	elf_look(&elf);
	ck_assert_int_eq(elf.ret, -EINVAL);
}

TEST(test_signal)
{
	/* The bytes are: no instruction; mov $15, %rax; syscall */
	elf_bytes(&elf, 0x100, 0, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05);
	elf_function(&elf, 0x100, 10, true);
	elf_is(&elf, 1, 0x108, 15);
}

TEST(test_flips)
{
	struct seed seed = seed_init("code_file", 0);
	static uint8_t whole[ELF_LEN];
	unsigned i, j;
	size_t at;

	elf_code(&elf, 0x100, 0x41, 0xbc, 0xca, 0, 0, 0, 0xe8, 0, 2, 0, 0, 0x44,
		 0x89, 0xe0, 0x0f, 0x05, 0x74, 0xf9, 0xc3);
	elf_gap();
	elf_data();
	elf_section(&elf, SHT_DYNSYM, SHF_ALLOC, ELF_TABLES, 48);
	elf_section(&elf, SHT_RELA, SHF_ALLOC, ELF_TABLES + 64, 48);
	elf_section(&elf, SHT_DYNAMIC, SHF_ALLOC, ELF_TABLES + 128, 64);
	memcpy(whole, elf.bytes, ELF_LEN);
	for (i = 0; i < FLIPS; i++) {
		for (j = 0; j <= i % 4; j++) {
			at = seed_below(&seed, 5) * 0x1000;
			at = at == 0x4000 ? ELF_FRAMES : at;
			at += seed_below(&seed, 0x200);
			elf.bytes[at] ^= (uint8_t) (1u << seed_below(&seed, 8));
			if (!seed_below(&seed, 4))
				elf.bytes[at] = 0xff;
		}
		/*
		 * Bits are wrong in memory and in the file, or in only one of
		 * them.
		 */
		if (i % 3)
			elf_look(&elf);
		else
			mrrc_code_look(&elf.image, elf_count, &j, &elf.counts);
		memcpy(elf.bytes, whole, ELF_LEN);
	}
}

#endif /* HAVE_ZYDIS */

/* ---- headers ------------------------------------------------------------- */

TEST(test_headers)
{
	Elf64_Ehdr *const ehdr = elf_ehdr(&elf);
	const Elf64_Ehdr was = *ehdr;

#define BAD(field, value)                           \
	do {                                        \
		ehdr->field = value;                \
		elf_look(&elf);                     \
		ck_assert_int_eq(elf.ret, -EINVAL); \
		*ehdr = was;                        \
	} while (0)
	BAD(e_ident[0], 0);
	BAD(e_ident[EI_CLASS], ELFCLASS32);
	BAD(e_ident[EI_DATA], ELFDATA2MSB);
	BAD(e_phentsize, 32);
	BAD(e_phnum, 65535);
	BAD(e_phoff, ELF_LEN);
	BAD(e_phoff, UINT64_MAX - 7);
	BAD(e_phoff, ELF_LEN - 8);
	BAD(e_phoff, 65);
#undef BAD
	ehdr->e_machine = EM_RISCV;
	elf_look(&elf);
	ck_assert_int_eq(elf.ret, -EOPNOTSUPP);
}

/*
 * Known calls of glibc are recognised, and code that only begins like a known
 * call is not.
 */
LOOP_TEST(test_glibc, 0, 3)
{
	static const struct {
		uint8_t bytes[48];
		size_t before, after;
	} calls[] = {
		{ { 0x48, 0x8b, 0x73, 0x10, 0x48, 0x8b, 0x7b, 0x08, 0x48, 0x8b,
		    0x53, 0x18, 0x8b, 0x03, 0x0f, 0x05 },
		  14,
		  2 },
		{ { 0x49, 0x89, 0xfb, 0x48, 0x89, 0xf0, 0x48, 0x89, 0xd7,
		    0x48, 0x89, 0xce, 0x4c, 0x89, 0xc2, 0x4d, 0x89, 0xca,
		    0x4c, 0x8b, 0x44, 0x24, 0x08, 0x4c, 0x8b, 0x4c, 0x24,
		    0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05 },
		  33,
		  2 },
		{ { 0x48, 0x8b, 0x44, 0x24, 0x10, 0x0f, 0x05, 0x5b, 0xc3 },
		  5,
		  4 },
	};
	const size_t before = calls[_i].before, after = calls[_i].after;
	uint8_t bytes[48];
	size_t i;

	memcpy(bytes, calls[_i].bytes, sizeof(bytes));
	ck_assert(mrrc_code_glibc(bytes + before, before, after));
	ck_assert(!mrrc_code_glibc(bytes + before, before - 1, after));
	ck_assert(after == 2 ||
		  !mrrc_code_glibc(bytes + before, before, after - 1));
	for (i = 0; i < before + after; i++) {
		if (i == before || i == before + 1)
			continue;
		bytes[i] ^= 0x20;
		ck_assert(!mrrc_code_glibc(bytes + before, before, after));
		bytes[i] ^= 0x20;
	}
}

TEST(test_file)
{
	struct mrrc_code_image image;
	struct mrrc_code_file file;

	elf_look(&elf); /* writes the file */
	ck_assert_int_eq(mrrc_code_open(elf.path, &file), 0);
	ck_assert(mrrc_code_segment(&file, 0, &image));
	ck_assert_uint_eq(image.end - image.start, ELF_TEXT_LEN);
	ck_assert_mem_eq((void *) image.start, elf.bytes + ELF_TEXT,
			 ELF_TEXT_LEN);
	ck_assert(!mrrc_code_segment(&file, 1, &image));
	mrrc_code_close(&file);
	ck_assert_int_eq(ftruncate(elf.fd, ELF_TEXT + 1), 0);
	ck_assert_int_eq(mrrc_code_open(elf.path, &file), -EINVAL);
	ck_assert_int_eq(ftruncate(elf.fd, 10), 0);
	ck_assert_int_eq(mrrc_code_open(elf.path, &file), -EINVAL);
	ck_assert_int_eq(mrrc_code_open("/nowhere", &file), -ENOENT);
}

/* Opening a device, such as a tape, could change it. A FIFO stands for it. */
TEST(test_device)
{
	const int opens = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char folder[] = "/tmp/test_code.XXXXXX", path[64], events[4096];
	struct mrrc_code_file file;
	bool reports;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/fifo", folder);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	inotify_add_watch(opens, path, IN_OPEN);
	/* Linux before 6.5 sends IN_OPEN for an open(2) with O_PATH, too. */
	close(open(path, O_PATH | O_CLOEXEC));
	reports = read(opens, events, sizeof(events)) > 0;
	ck_assert_int_eq(mrrc_code_open(path, &file), -EINVAL);
	ck_assert(reports || read(opens, events, sizeof(events)) < 0);
	close(opens);
	unlink(path);
	rmdir(folder);
}
