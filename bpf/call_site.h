/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_CALL_SITE_H
#define STACKD_BPF_CALL_SITE_H

/*
 * Recognizes x86-64 instructions by which a walk of frame pointers proves its steps. Instructions
 * are given as 8 bytes of code in a word, the byte with the lowest address in the lowest bits.
 */

#include <linux/types.h>

/*
 * True if the last bytes of `code` are a call instruction, so that the address behind them can be a
 * return address. The instruction is `call rel32`, or `call` with a register or memory operand. In
 * the latter, the byte 0xff is followed by a byte whose bits 3 to 5 are 2, and whose other bits say
 * how many bytes follow.
 */
static inline int call_site_is(__u64 code)
{
	__u32 last4 = (__u32)(code >> 32);

	return (code >> 24 & 0xff) == 0xe8 ||
	       /* call *%rax; of 8 registers */
	       (last4 >> 16 & 0xf8ff) == 0xd0ff ||
	       /* call *(%rax), but not the operands that have more bytes */
	       ((last4 >> 16 & 0xf8ff) == 0x10ff && (code >> 56) != 0x14 && (code >> 56) != 0x15) ||
	       /* call *8(%rax), call *(%rax,%rbx) */
	       ((last4 >> 8 & 0xf8ff) == 0x50ff && (last4 >> 16 & 0xff) != 0x54) ||
	       (last4 >> 8 & 0xffff) == 0x14ff ||
	       /* call *8(%rax,%rbx) */
	       (last4 & 0xffff) == 0x54ff ||
	       /* call *0x1000(%rax), call *0x1000(%rip) */
	       ((code >> 16 & 0xf8ff) == 0x90ff && (code >> 24 & 0xff) != 0x94) ||
	       (code >> 16 & 0xffff) == 0x15ff ||
	       /* call *0x1000(%rax,%rbx), call *0x1000(,%rbx,8) */
	       (code >> 8 & 0xffff) == 0x94ff || (code >> 8 & 0xffff) == 0x14ff;
}

/*
 * True if the code is that to which signal handlers return. The C library sets their return address
 * to it: mov $15,%rax or mov $15,%eax, then syscall, where 15 is the number of rt_sigreturn.
 */
static inline int call_site_is_signal(__u64 code)
{
	return code == 0x0f0000000fc0c748ULL || (code & 0xffffffffffffffULL) == 0x050f0000000fb8ULL;
}

/*
 * True if the code ends its thread: mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall, where 60 is
 * the number of exit. In musl, the function that begins all threads has it behind its call.
 */
static inline int call_site_exits(__u64 code)
{
	return code == 0x050f3cb0c031c789ULL;
}

/* Says what a function that keeps a frame pointer has done before its next instruction. */
enum call_site_frame {
	CALL_SITE_SET,	 /* bp is its frame pointer, as far as `code` tells */
	CALL_SITE_NONE,	 /* sp points to its return address */
	CALL_SITE_SAVED, /* sp points to the caller's bp, and the return address lies above that */
};

/*
 * Returns an enum call_site_frame. The first byte of `code` is the one before the next
 * instruction.
 */
static inline int call_site_frame(__u64 code)
{
	__u64 next = code >> 8;

	/* push %rbp, also behind endbr64; ret */
	if ((next & 0xff) == 0x55 || (next & 0xffffffffffULL) == 0x55fa1e0ff3ULL ||
	    (next & 0xff) == 0xc3)
		return CALL_SITE_NONE;
	/* mov %rsp,%rbp in its two encodings, right behind push %rbp */
	if ((code & 0xff) == 0x55 &&
	    ((next & 0xffffff) == 0xe58948 || (next & 0xffffff) == 0xec8b48))
		return CALL_SITE_SAVED;
	return CALL_SITE_SET;
}

/*
 * Returns how many bytes of the stack the code gives back before it returns, if it does nothing
 * else: add $N,%rsp; ret. 0 for other code. A function may have such code right behind its last
 * call. Those that CPython makes for functions of Python (-X perf, since 3.12) have it and keep no
 * frame pointer.
 */
static inline __u32 call_site_leaves(__u64 code)
{
	__u32 bytes = code >> 24 & 0xff;

	if ((code & 0xff00ffffffULL) != 0xc300c48348ULL || bytes >= 0x80 || bytes & 7)
		return 0;
	return bytes;
}

#endif
