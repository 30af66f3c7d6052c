/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A library that unmaps by system calls of its own, with constant numbers, at
 * places where they can be hooked. With RAW_NONE there is no room for the hook,
 * with RAW_FUTURE the call's effect is unknown. With RAW_SANITIZER there is no
 * call, but a function that sanitizers have.
 */
#ifdef __x86_64__

/* @name begins at a multiple of 32 bytes, behind which @skip bytes come. */
#define SITE(name, skip, number, behind)                 \
	__asm__(".text\n"                                \
		".p2align 5\n"                           \
		".globl " name "\n"                      \
		".type " name ", @function\n" name ":\n" \
		".cfi_startproc\n"                       \
		".nops " #skip "\n"                      \
		"	mov $" #number ", %eax\n"        \
		"	syscall\n"                             \
		"	ret\n"                                 \
		".cfi_endproc\n"                         \
		".size " name ", . - " name "\n" behind)

/* code that leaves no room */
#define NEXT(name)                               \
	".globl " name "\n"                      \
	".type " name ", @function\n" name ":\n" \
	".cfi_startproc\n"                       \
	".rept 64\n"                             \
	"	lea 1(%rdi), %rdi\n"                   \
	".endr\n"                                \
	"	ret\n"                                 \
	".cfi_endproc\n"                         \
	".size " name ", . - " name "\n"

#if defined(RAW_FUTURE)
SITE("raw_future", 8, 4095, "");
SITE("raw_getpid", 8, 39, "");
#elif defined(RAW_SANITIZER)
__attribute__((visibility("default"))) void
__sanitizer_set_report_path(const char *path);

void __sanitizer_set_report_path(const char *path)
{
}
#elif defined(RAW_NONE)
SITE("raw_word", 8, 11, "");
SITE("raw_none", 2, 11, NEXT("raw_next"));
#else
/* the call in a word, with a filler behind it; across two; the same */
SITE("raw_word", 8, 11, "");
SITE("raw_across", 2, 11, "");
SITE("raw_brk", 10, 12, "");
/* the nearest filler is the same */
SITE("raw_third", 8, 11, "");
SITE("raw_fourth", 8, 11, "");
/* no filler of their own */
SITE("raw_first", 8, 11, NEXT("raw_between"));
SITE("raw_second", 8, 11, NEXT("raw_behind"));
#endif

#else
extern int raw_no_code;
int raw_no_code;
#endif
