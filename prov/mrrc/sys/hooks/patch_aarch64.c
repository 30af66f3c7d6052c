/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Patches libc on 64-bit ARM (patch.h).
 *
 * glibc enters the kernel by one of
 *
 *	mov	x8, #NR		mov	x6, x7
 *	svc	#0		svc	#0
 *
 * the second in syscall(2), the first everywhere else. A branch replaces the
 * svc: svc and branch are among the instructions that the architecture lets one
 * processor replace while another processor executes them.
 */
#include "config.h"
#include "sys/hooks/patch.h"

#ifdef __aarch64__

#include <errno.h>
#include <string.h>

#define SVC	   0xd4000001u
#define MOV_X8(nr) (0xd2800008u | (uint32_t) (nr) << 5)
#define MOV_X6_X7  0xaa0703e6u
#define BRANCH	   0x14000000u

/* A branch reaches 128 MiB; the function has some length, too. */
const size_t mrrc_patch_reach = (size_t) 127 << 20;

/*
 * Keeps all general registers and flags, but no vector registers: no caller of
 * the patched functions expects these to survive. The stub keeps x29 and x30.
 */
__asm__(".text\n"
	".p2align 4\n"
	".hidden mrrc_patch_entry\n"
	".globl mrrc_patch_entry\n"
	".type mrrc_patch_entry, %function\n"
	"mrrc_patch_entry:\n"
	".cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	sub sp, sp, #192\n"
	".cfi_adjust_cfa_offset 192\n"
	"	str x30, [sp, #176]\n"
	".cfi_rel_offset x30, 176\n"
	/* struct mrrc_patch_call */
	"	stp x8, x0, [sp, #0]\n"
	"	str x8, [sp, #152]\n"
	"	stp x1, x2, [sp, #16]\n"
	"	stp x3, x4, [sp, #32]\n"
	"	stp x5, x6, [sp, #48]\n"
	"	stp x7, x9, [sp, #64]\n"
	"	stp x10, x11, [sp, #80]\n"
	"	stp x12, x13, [sp, #96]\n"
	"	stp x14, x15, [sp, #112]\n"
	"	stp x17, x18, [sp, #128]\n"
	"	mrs x9, nzcv\n"
	"	str x9, [sp, #144]\n"
	"	mov x0, sp\n"
	"	bl mrrc_patch_called\n"
	/* for the stub */
	"	and x0, x0, #1\n"
	"	str x0, [sp, #216]\n"
	"	ldr x9, [sp, #144]\n"
	"	msr nzcv, x9\n"
	"	ldp x17, x18, [sp, #128]\n"
	"	ldp x14, x15, [sp, #112]\n"
	"	ldp x12, x13, [sp, #96]\n"
	"	ldp x10, x11, [sp, #80]\n"
	"	ldp x7, x9, [sp, #64]\n"
	"	ldp x5, x6, [sp, #48]\n"
	"	ldp x3, x4, [sp, #32]\n"
	"	ldp x1, x2, [sp, #16]\n"
	"	ldr x30, [sp, #216]\n"
	"	cbnz x30, 1f\n"
	/* made: the number is the result */
	"	ldr x0, [sp, #0]\n"
	"	ldr x8, [sp, #152]\n"
	"	b 2f\n"
	"1:	ldp x8, x0, [sp, #0]\n"
	"2:\n"
	"	ldr x30, [sp, #176]\n"
	".cfi_restore x30\n"
	"	add sp, sp, #192\n"
	".cfi_adjust_cfa_offset -192\n"
	"	ret\n"
	".cfi_endproc\n"
	".size mrrc_patch_entry, . - mrrc_patch_entry\n"
	".hidden mrrc_patch_called\n");

void mrrc_patch_entry(void);

/* long mrrc_patch_raw(const struct mrrc_patch_call *call) */
__asm__(".text\n"
	".p2align 4\n"
	".hidden mrrc_patch_raw\n"
	".globl mrrc_patch_raw\n"
	".type mrrc_patch_raw, %function\n"
	"mrrc_patch_raw:\n"
	".cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	mov x9, x0\n"
	"	ldp x8, x0, [x9]\n"
	"	ldp x1, x2, [x9, #16]\n"
	"	ldp x3, x4, [x9, #32]\n"
	"	ldr x5, [x9, #48]\n"
	".hidden mrrc_patch_raw_at\n"
	".globl mrrc_patch_raw_at\n"
	"mrrc_patch_raw_at:\n"
	"	svc #0\n"
	"	ret\n"
	".cfi_endproc\n"
	".size mrrc_patch_raw, . - mrrc_patch_raw\n");

long mrrc_patch_raw(const struct mrrc_patch_call *call);
extern const uint8_t mrrc_patch_raw_at[];

/* A C function, as link-time optimization does not see symbols of assembly. */
long mrrc_patch_make(const struct mrrc_patch_call *call)
{
	return mrrc_patch_raw(call);
}

uintptr_t mrrc_patch_made(void)
{
	return (uintptr_t) mrrc_patch_raw_at;
}

static const uint32_t stub_call[] = {
	0xa9be7bfd,    /* stp x29, x30, [sp, #-32]! */
	0xf9000bf0,    /* str x16, [sp, #16] */
	0x58000190,    /* ldr x16, entry */
	0xd63f0200,    /* blr x16 */
	0xf9400ff0,    /* ldr x16, [sp, #24] */
	0xb40000b0,    /* cbz x16, made */
	0xf9400bf0,    /* ldr x16, [sp, #16] */
	0xa8c27bfd,    /* ldp x29, x30, [sp], #32 */
	SVC,	    0, /* the branch back */
	0xf9400bf0,    /* made: ldr x16, [sp, #16] */
	0xa8c27bfd,    /* ldp x29, x30, [sp], #32 */
	0,	       /* the branch back */
};

static const size_t stub_back[] = { 9, 12 }; /* words */
#define STUB_ENTRY 14			     /* words: the address to call */

static uint32_t branch(const uint32_t *at, const uint32_t *to)
{
	return BRANCH | ((uint32_t) (to - at) & 0x3ffffff);
}

static bool is_known(const uint32_t *at, long number)
{
	return at[0] == SVC &&
	       at[-1] ==
		       (number == MRRC_PATCH_ANY ? MOV_X6_X7 : MOV_X8(number));
}

uint8_t *mrrc_patch_search(const struct mrrc_patch_code *code, long number)
{
	uint32_t *const insn = (uint32_t *) code->start;
	uint8_t *found = NULL;
	size_t i;

	for (i = 1; i < code->len / sizeof(*insn); i++) {
		if (!is_known(&insn[i], number))
			continue;
		if (found)
			return NULL;
		found = (uint8_t *) &insn[i];
	}
	return found;
}

int mrrc_patch_build(const struct mrrc_patch_code *code, uint8_t *site,
		     long number, uint8_t *stub_at, const uint8_t *near,
		     struct mrrc_patch *patch)
{
	void (*const entry)(void) = mrrc_patch_entry;
	uint32_t *const stub = (uint32_t *) stub_at;
	uint32_t *const place = (uint32_t *) site;
	uint32_t half[2];
	size_t i;

	if (site < code->start + sizeof(*place) ||
	    site + sizeof(*place) > code->start + code->len ||
	    !is_known(place, number))
		return -ENOENT;
	memcpy(stub, stub_call, sizeof(stub_call));
	for (i = 0; i < 2; i++)
		stub[stub_back[i]] = branch(&stub[stub_back[i]], place + 1);
	memcpy(&stub[STUB_ENTRY], &entry, sizeof(entry));

	i = (uintptr_t) place / sizeof(*place) % 2;
	*patch = (struct mrrc_patch){
		.word = (uint64_t *) (place - i),
		.at = site,
	};
	memcpy(half, place - i, sizeof(half));
	memcpy(&patch->before, half, sizeof(half));
	half[i] = branch(place, stub);
	memcpy(&patch->after, half, sizeof(half));
	return 0;
}

#endif /* __aarch64__ */
