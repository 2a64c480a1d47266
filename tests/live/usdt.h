/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_USDT_H
#define STACKD_TESTS_USDT_H

/*
 * Defines static probes without arguments in the form that <sys/sdt.h> of SystemTap leaves in a
 * file: an instruction that does nothing, and a note of its address. A counter is a static unsigned
 * short that each tracer of the probe increases.
 */

#define USDT_COUNTER __attribute__((section(".probes"), used))

#define USDT_NOTE(provider, name, counter)                                    \
	__asm__ volatile("990: nop\n"                                         \
			 ".pushsection .note.stapsdt, \"\", \"note\"\n"       \
			 ".balign 4\n"                                        \
			 ".4byte 992f - 991f, 994f - 993f, 3\n"               \
			 "991: .asciz \"stapsdt\"\n"                          \
			 "992: .balign 4\n"                                   \
			 "993: .8byte 990b, _.stapsdt.base, " counter "\n"    \
			 ".asciz \"" provider "\", \"" name "\", \"\"\n"      \
			 "994: .balign 4\n"                                   \
			 ".popsection\n"                                      \
			 ".ifndef _.stapsdt.base\n"                           \
			 ".pushsection .stapsdt.base, \"aG\", \"progbits\", " \
			 ".stapsdt.base, comdat\n"                            \
			 ".weak _.stapsdt.base\n"                             \
			 ".hidden _.stapsdt.base\n"                           \
			 "_.stapsdt.base: .space 1\n"                         \
			 ".size _.stapsdt.base, 1\n"                          \
			 ".popsection\n"                                      \
			 ".endif\n")

#define USDT(provider, name)		      USDT_NOTE(#provider, #name, "0")
#define USDT_COUNTED(provider, name, counter) USDT_NOTE(#provider, #name, #counter)

#endif
