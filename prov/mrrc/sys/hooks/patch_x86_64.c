/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Patches libc on x86-64 (patch.h).
 *
 * glibc enters the kernel by one of
 *
 *	b8 NR NR NR NR  0f 05		mov $NR, %eax;         syscall
 *	4c 8b 4c 24 08  0f 05		mov 8(%rsp), %r9;      syscall
 *
 * the second in syscall(2), the first everywhere else. Both mov instructions
 * have the five bytes that a jump needs, and do not depend on their address, so
 * the stub can execute them; jumps in libc to the mov or to the syscall still
 * work. The stub makes the system call itself, unless mrrc_patch_called() has
 * made it and set rax.
 *
 * If the mov lies across two aligned words, a short jump to filler (bytes that
 * align labels and are never executed) replaces its first two bytes, and the
 * filler gets the long jump. If these two bytes also lie in two words, or the
 * number is loaded elsewhere (mmap in glibc 2.41), the short jump replaces the
 * two bytes of the syscall. If the syscall itself lies across two words, only
 * its first byte changes: 0f 05 becomes eb 05, a jump to the address seven
 * bytes further on, where filler has to be.
 */
#include "config.h"
#include "sys/hooks/patch.h"

#ifdef __x86_64__

#include <errno.h>
#include <string.h>

#define FIRST  5 /* bytes of the instruction that is replaced */
#define SECOND 2 /* bytes of the syscall after it */
#define LAST   (sizeof(uint64_t) - 1) /* last byte of a word */

const size_t mrrc_patch_reach = (size_t) 1 << 30;

/*
 * Keeps all registers except vector registers, which no caller of libc's
 * functions expects to survive.
 */
__asm__(".text\n"
	".macro mrrc_push reg\n"
	"	push \\reg\n"
	"	.cfi_adjust_cfa_offset 8\n"
	".endm\n"
	".macro mrrc_pop reg\n"
	"	pop \\reg\n"
	"	.cfi_adjust_cfa_offset -8\n"
	".endm\n"
	".p2align 4\n"
	".hidden mrrc_patch_entry\n"
	".globl mrrc_patch_entry\n"
	".type mrrc_patch_entry, @function\n"
	"mrrc_patch_entry:\n"
	".cfi_startproc\n"
	"	pushfq\n"
	".cfi_adjust_cfa_offset 8\n"
	"	mrrc_push %rbp\n"
	".cfi_rel_offset %rbp, 0\n"
	"	mrrc_push %rcx\n"
	"	mrrc_push %r11\n"
	/* struct mrrc_patch_call, from its end */
	"	mrrc_push %r9\n"
	"	mrrc_push %r8\n"
	"	mrrc_push %r10\n"
	"	mrrc_push %rdx\n"
	"	mrrc_push %rsi\n"
	"	mrrc_push %rdi\n"
	"	mrrc_push %rax\n"
	"	mov %rsp, %rdi\n"
	"	mov %rsp, %rbp\n"
	".cfi_def_cfa_register %rbp\n"
	"	and $-64, %rsp\n"
	"	cld\n"
	"	call mrrc_patch_called\n"
	/* for the stub, in rcx: a system call changes it anyway */
	"	movzbl %al, %ecx\n"
	"	mov %rcx, 64(%rbp)\n"
	"	mov %rbp, %rsp\n"
	".cfi_def_cfa_register %rsp\n"
	"	mrrc_pop %rax\n"
	"	mrrc_pop %rdi\n"
	"	mrrc_pop %rsi\n"
	"	mrrc_pop %rdx\n"
	"	mrrc_pop %r10\n"
	"	mrrc_pop %r8\n"
	"	mrrc_pop %r9\n"
	"	mrrc_pop %r11\n"
	"	mrrc_pop %rcx\n"
	"	mrrc_pop %rbp\n"
	".cfi_restore %rbp\n"
	"	popfq\n"
	".cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size mrrc_patch_entry, . - mrrc_patch_entry\n"
	".purgem mrrc_push\n"
	".purgem mrrc_pop\n"
	".hidden mrrc_patch_called\n");

void mrrc_patch_entry(void);

/* long mrrc_patch_raw(const struct mrrc_patch_call *call) */
__asm__(".text\n"
	".p2align 4\n"
	".hidden mrrc_patch_raw\n"
	".globl mrrc_patch_raw\n"
	".type mrrc_patch_raw, @function\n"
	"mrrc_patch_raw:\n"
	".cfi_startproc\n"
	"	mov %rdi, %r11\n"
	"	mov (%r11), %rax\n"
	"	mov 8(%r11), %rdi\n"
	"	mov 16(%r11), %rsi\n"
	"	mov 24(%r11), %rdx\n"
	"	mov 32(%r11), %r10\n"
	"	mov 40(%r11), %r8\n"
	"	mov 48(%r11), %r9\n"
	".hidden mrrc_patch_raw_at\n"
	".globl mrrc_patch_raw_at\n"
	"mrrc_patch_raw_at:\n"
	"	syscall\n"
	"	ret\n"
	".cfi_endproc\n"
	".size mrrc_patch_raw, . - mrrc_patch_raw\n");

long mrrc_patch_raw(const struct mrrc_patch_call *call);
extern const uint8_t mrrc_patch_raw_at[];

/*
 * The page for stubs is a part of the library's code, not mapped memory, so
 * that all unwinders and debuggers, whenever they are loaded, find the page's
 * unwind information. The unwind information gives the word at byte 48 of a
 * stub, the address to which the stub jumps back, as the stub's return address.
 * The unwind information also says that a stub changes no register, except that
 * the stack pointer is 128 bytes lower after the first lea instruction, until
 * the end of the second one (bytes 10 to 23). The DWARF expression has only
 * operations that valgrind's reader knows: valgrind aborts at other operations.
 */
__asm__(".text\n"
	".p2align 12\n"
	".hidden mrrc_libc_hook\n"
	".globl mrrc_libc_hook\n"
	".type mrrc_libc_hook, @function\n"
	"mrrc_libc_hook:\n"
	".cfi_startproc\n"
	".cfi_def_cfa %rsp, 0\n"
	/* DW_CFA_val_expression of rip: breg16 0; const1s -64; and; */
	".cfi_escape 0x16, 16, 8, 0x80, 0, 0x09, 0xc0, 0x1a\n"
	/* plus_uconst 48; deref */
	".cfi_escape 0x23, 48, 0x06\n"
	".rept 4096 / 64\n"
	"	.fill 10, 1, 0xcc\n"
	"	.cfi_adjust_cfa_offset 128\n"
	"	.fill 14, 1, 0xcc\n"
	"	.cfi_adjust_cfa_offset -128\n"
	"	.fill 40, 1, 0xcc\n"
	".endr\n"
	".cfi_endproc\n"
	".size mrrc_libc_hook, . - mrrc_libc_hook\n");

extern uint8_t mrrc_libc_hook[];

uint8_t *mrrc_patch_home(void)
{
	return mrrc_libc_hook;
}

/* A C function, as link-time optimization does not see symbols of assembly. */
long mrrc_patch_make(const struct mrrc_patch_call *call)
{
	return mrrc_patch_raw(call);
}

uintptr_t mrrc_patch_made(void)
{
	return (uintptr_t) mrrc_patch_raw_at;
}

/*
 * A stub's code around the call; libc's data may lie below the stack pointer.
 */
static const uint8_t stub_call[] = {
	0x48, 0x8d, 0x64, 0x24, 0x80,			/* lea -128(%rsp) */
	0xff, 0x15, 0x18, 0x00, 0x00, 0x00,		/* call *entry */
	0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00, /* lea 128(%rsp) */
	0xe3, 0x02,					/* jrcxz over */
	0x0f, 0x05,					/* syscall */
	0xff, 0x25, 0x0e, 0x00, 0x00, 0x00,		/* jmp *back */
};

#define STUB_ENTRY 40 /* offset of the address to call */
#define STUB_BACK  48 /* offset of the return address, for unwinders, too */

_Static_assert(STUB_ENTRY == FIRST + 5 + 6 + 0x18, "where call looks");
_Static_assert(STUB_BACK == FIRST + sizeof(stub_call) + 0x0e, "and jmp");
_Static_assert(FIRST + sizeof(stub_call) <= STUB_ENTRY, "its room");
_Static_assert(STUB_BACK + sizeof(void *) <= MRRC_PATCH_STUB, "its room");

/* jmp from @at to @to, within reach. */
static void put_jump(uint8_t *out, const uint8_t *at, const uint8_t *to)
{
	const int32_t offset = (int32_t) (to - (at + FIRST));

	out[0] = 0xe9;
	memcpy(out + 1, &offset, sizeof(offset));
}

/*
 * Writes a stub. @first: the instruction that the stub has to run; NULL: no
 * instruction, as the mov is not replaced.
 */
static void put_stub(uint8_t *stub, const uint8_t *first, const uint8_t *at)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	void (*const entry)(void) = mrrc_patch_entry;
	const uint8_t *const back = at + SECOND;

	memcpy(stub, first ? first : nop, FIRST);
	memcpy(stub + FIRST, stub_call, sizeof(stub_call));
	memcpy(stub + STUB_ENTRY, &entry, sizeof(entry));
	memcpy(stub + STUB_BACK, &back, sizeof(back));
}

/* jmp *0(%rip), and the address */
void mrrc_patch_lead(uint8_t *near, const uint8_t *stub)
{
	static const uint8_t jump[] = { 0xff, 0x25, 0, 0, 0, 0 };

	memcpy(near, jump, sizeof(jump));
	memcpy(near + sizeof(jump), &stub, sizeof(stub));
}

struct known {
	uint8_t bytes[FIRST + SECOND];
};

static struct known known_bytes(long number)
{
	struct known known = { { 0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05 } };
	const uint32_t imm = (uint32_t) number;

	if (number != MRRC_PATCH_ANY) {
		known.bytes[0] = 0xb8;
		memcpy(known.bytes + 1, &imm, sizeof(imm));
	}
	return known;
}

uint8_t *mrrc_patch_search(const struct mrrc_patch_code *code, long number)
{
	const struct known known = known_bytes(number);
	uint8_t *found = NULL;
	size_t i;

	for (i = 0; i + sizeof(known) <= code->len; i++) {
		if (memcmp(code->start + i, &known, sizeof(known)))
			continue;
		if (found)
			return NULL;
		found = code->start + i + FIRST;
	}
	return found;
}

static bool is_short(ptrdiff_t offset)
{
	return offset >= -128 && offset <= 127;
}

/*
 * Finds filler that a short jump at @place reaches. Filler is a no-op of ten
 * bytes behind a return: shorter filler does not count, as the byte of the
 * return may be the end of another instruction.
 */
static uint8_t *find_filler(const struct mrrc_patch_code *code,
			    const uint8_t *place)
{
	static const uint8_t want[] = { 0xc3, 0x66, 0x2e, 0x0f, 0x1f, 0x84,
					0x00, 0x00, 0x00, 0x00, 0x00 };
	ptrdiff_t offset;
	size_t i;

	if (code->filler)
		return code->filler;
	for (i = 0; i + sizeof(want) <= code->len; i++) {
		offset = code->start + i + 1 - (place + 2);
		if (!memcmp(code->start + i, want, sizeof(want)) &&
		    is_short(offset))
			return code->start + i + 1;
	}
	return NULL;
}

static bool is_inside(const uint8_t *at, const void *word)
{
	return at + FIRST > (const uint8_t *) word &&
	       at < (const uint8_t *) word + sizeof(uint64_t);
}

/*
 * Makes a short jump at @from, by a filler, to @near. The filler must not lie
 * in the word, as it is written before the word.
 */
static bool put_short(const struct mrrc_patch_code *code, const uint8_t *from,
		      uint8_t bytes[sizeof(uint64_t)], const uint8_t *near,
		      struct mrrc_patch *patch)
{
	const size_t at = (uintptr_t) from % sizeof(uint64_t);
	ptrdiff_t offset;

	patch->filler = find_filler(code, from);
	if (!patch->filler)
		return false;
	offset = patch->filler - (from + SECOND);
	if (!is_short(offset) || is_inside(patch->filler, patch->word) ||
	    (at == LAST && offset != from[1]))
		return false;
	memcpy(patch->filled, patch->filler, sizeof(patch->filled));
	put_jump(patch->filling, patch->filler, near);
	bytes[at] = 0xeb;
	if (at != LAST)
		bytes[at + 1] = (uint8_t) offset;
	return true;
}

/* Does @site make system call @number, as far as @before bytes tell? */
static bool is_call(const uint8_t *site, size_t before, long number)
{
	const struct known known = known_bytes(number);

	if (memcmp(site, known.bytes + FIRST, SECOND) || before < FIRST)
		return false;
	return number != MRRC_PATCH_ANY ||
	       !memcmp(site - FIRST, &known, sizeof(known));
}

uintptr_t mrrc_patch_word(const uint8_t *site, size_t before, long number)
{
	return is_call(site, before, number) ?
		       (uintptr_t) site & ~(uintptr_t) LAST :
		       0;
}

/* Replaces the instruction at @from: false if that is not possible. */
static bool put_patch(const struct mrrc_patch_code *code, const uint8_t *from,
		      uint8_t *site, const uint8_t *near,
		      struct mrrc_patch *patch)
{
	const size_t at = (uintptr_t) from % sizeof(uint64_t);
	uint8_t bytes[sizeof(uint64_t)];

	*patch = (struct mrrc_patch){
		.word = (uint64_t *) (from - at),
		.at = site,
	};
	memcpy(bytes, from - at, sizeof(bytes));
	memcpy(&patch->before, bytes, sizeof(bytes));
	if (from != site && at + FIRST <= sizeof(bytes))
		put_jump(bytes + at, from, near);
	else if ((from != site && at == LAST) ||
		 !put_short(code, from, bytes, near, patch))
		return false;
	memcpy(&patch->after, bytes, sizeof(bytes));
	return true;
}

int mrrc_patch_build(const struct mrrc_patch_code *code, uint8_t *site,
		     long number, uint8_t *stub, const uint8_t *near,
		     struct mrrc_patch *patch)
{
	const struct known known = known_bytes(number);
	const uint8_t *const place = site - FIRST;

	if (site < code->start || site + SECOND > code->start + code->len ||
	    !is_call(site, (size_t) (site - code->start), number))
		return -ENOENT;
	if (put_patch(code, site, site, near, patch)) {
		put_stub(stub, NULL, site);
		return 0;
	}
	if (memcmp(place, &known, sizeof(known)) ||
	    !put_patch(code, place, site, near, patch))
		return -ENOENT;
	put_stub(stub, place, site);
	return 0;
}

#endif /* __x86_64__ */
