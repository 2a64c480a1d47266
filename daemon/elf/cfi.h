/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_CFI_H
#define STACKD_DAEMON_ELF_CFI_H

/*
 * Parses call frame information as compilers write it (DWARF 6.4, and .eh_frame of the LSB): finds
 * the functions that a section describes, and for each address in a function the places where the
 * registers of its caller are. The caller of this code owns all memory; no state, any thread. The
 * bytes may be hostile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers that DWARF gives to registers of x86-64. */
enum { CFI_BX = 3, CFI_BP = 6, CFI_SP = 7, CFI_PC = 16 };

struct cfi_section {
	const uint8_t *data;
	size_t size;
	uint64_t address; /* ELF virtual address of the first byte of data */
	bool is_debug;	  /* true: .debug_frame; false: .eh_frame, with other CIE offsets */
};

enum cfi_rule_kind {
	CFI_SAME,	/* the function has not changed the register */
	CFI_UNDEFINED,	/* the register is lost; as the rule of the pc: there is no caller */
	CFI_OFFSET,	/* the register is saved at CFA + offset */
	CFI_REGISTER,	/* the value is in the register whose number is offset */
	CFI_EXPRESSION, /* the register is saved at the address that expression computes */
	CFI_UNKNOWN,	/* a rule of another kind, which is not supported */
};

/* Says where the value of a caller's register is. expression points into the section. */
struct cfi_rule {
	enum cfi_rule_kind kind;
	int64_t offset;
	const uint8_t *expression;
	size_t expression_size;
};

/* Rules for those of the caller's registers that unwinding needs, valid at one address. */
struct cfi_registers {
	/*
	 * True: cfa.expression computes the CFA (canonical frame address). False: the CFA is
	 * cfa_register + cfa.offset.
	 */
	bool is_expression;
	unsigned int cfa_register;
	struct cfi_rule cfa;
	struct cfi_rule bp;
	struct cfi_rule bx;
	struct cfi_rule pc;
};

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding;
	bool is_signal;
	bool has_augmentation; /* the FDEs of this CIE have augmentation data */
	unsigned int return_register;
	const uint8_t *code;
	size_t code_size;
	size_t offset; /* of this CIE in the section */
};

struct cfi_function {
	const struct cfi_cie *cie;
	uint64_t start, end; /* ELF virtual addresses */
	const uint8_t *code;
	size_t code_size;
};

/* A callback that returns anything but 0 ends the function that calls it. */
typedef int (*cfi_function_fn)(void *userdata, const struct cfi_function *function);
typedef int (*cfi_registers_fn)(void *userdata, uint64_t address,
				const struct cfi_registers *registers);

/*
 * Calls callback for every function of the section. Skips an entry that it cannot parse; stops at
 * an entry that is longer than the rest of the section. Returns 0, or what the callback returned.
 */
int cfi_for_each(const struct cfi_section *section, cfi_function_fn callback, void *userdata);

/*
 * Executes the call frame instructions of a function. Calls callback with the rules that hold at
 * the start of the function, and again for each address at which they change, in ascending order.
 * Subtracts the number of executed bytes from *budget and returns -E2BIG when it is used up,
 * because many functions may share one long CIE. Returns -EBADMSG at an instruction that it does
 * not know; the calls made before remain valid. Else returns 0, or what the callback returned.
 */
int cfi_execute(const struct cfi_section *section, const struct cfi_function *function,
		uint64_t *budget, cfi_registers_fn callback, void *userdata);

#endif
