/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_CFI_H
#define STACKD_DAEMON_ELF_CFI_H

/*
 * Parses call frame information as compilers write it (DWARF 6.4, and .eh_frame of the LSB): finds
 * the functions in a section, and says for each address in one where the caller's registers are.
 * The caller owns all memory; no state, any thread. The bytes may be hostile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* x86-64 register numbers of DWARF. */
enum { CFI_BX = 3, CFI_BP = 6, CFI_SP = 7, CFI_PC = 16 };

struct cfi_section {
	const uint8_t *data;
	size_t size;
	uint64_t address; /* ELF virtual address of data */
	bool is_debug;	  /* .debug_frame, which encodes CIE offsets differently from .eh_frame */
};

enum cfi_rule_kind {
	CFI_SAME,	/* the callee has not changed it */
	CFI_UNDEFINED,	/* lost; for the pc: there is no caller */
	CFI_OFFSET,	/* saved at CFA + offset */
	CFI_REGISTER,	/* in the register whose number is offset */
	CFI_EXPRESSION, /* saved at the address that the expression computes */
	CFI_UNKNOWN,	/* anything else */
};

/* Where a register of the caller is. expression points into the section. */
struct cfi_rule {
	enum cfi_rule_kind kind;
	int64_t offset;
	const uint8_t *expression;
	size_t expression_size;
};

/* The caller's registers that a walk needs, as seen from one address. */
struct cfi_registers {
	bool is_expression; /* CFA: computed by cfa.expression, else cfa_register + cfa.offset */
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
	bool has_augmentation; /* its FDEs have augmentation data */
	unsigned int return_register;
	const uint8_t *code;
	size_t code_size;
	size_t offset; /* in the section */
};

struct cfi_function {
	const struct cfi_cie *cie;
	uint64_t start, end; /* ELF virtual addresses */
	const uint8_t *code;
	size_t code_size;
};

/* A callback that returns anything but 0 ends the reading. */
typedef int (*cfi_function_fn)(void *userdata, const struct cfi_function *function);
typedef int (*cfi_registers_fn)(void *userdata, uint64_t address,
				const struct cfi_registers *registers);

/*
 * Calls back for every function. An entry that cannot be parsed is skipped by its length; a length
 * beyond the section ends the reading. Returns 0, or what the callback returned.
 */
int cfi_for_each(const struct cfi_section *section, cfi_function_fn callback, void *userdata);

/*
 * Executes the function's instructions. Calls back with the registers at the function's start and
 * wherever they change, addresses ascending. The bytes executed are taken from *budget, because
 * many functions may share one long CIE: -E2BIG when it is used up. -EBADMSG at an instruction that
 * cannot be understood; callbacks made before it stand.
 */
int cfi_execute(const struct cfi_section *section, const struct cfi_function *function,
		uint64_t *budget, cfi_registers_fn callback, void *userdata);

#endif
