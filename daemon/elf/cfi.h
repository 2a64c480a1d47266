/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_CFI_H
#define STACKD_DAEMON_ELF_CFI_H

/*
 * Call frame information as compilers write it (DWARF 6.4, and .eh_frame of the LSB): in goes a
 * section's bytes, out come functions and, for each place in one, where the caller's registers are.
 * Owned by the caller; no state, any thread. The bytes may be hostile.
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
	bool is_debug;	  /* .debug_frame, which counts offsets another way */
};

enum cfi_rule_kind {
	CFI_SAME,	/* unchanged by the callee */
	CFI_UNDEFINED,	/* not to be had */
	CFI_OFFSET,	/* saved at CFA + offset */
	CFI_REGISTER,	/* in the register whose number is offset */
	CFI_EXPRESSION, /* saved at what the expression gives */
	CFI_UNKNOWN,	/* anything else */
};

/* An expression is bytes of the section. */
struct cfi_rule {
	enum cfi_rule_kind kind;
	int64_t offset;
	const uint8_t *expression;
	size_t expression_size;
};

/* The registers that matter to a walk, at one place. */
struct cfi_registers {
	bool is_expression; /* the CFA is what cfa.expression gives, else register + cfa.offset */
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

/* Goes on while it returns 0; what else it returns ends the reading. */
typedef int (*cfi_function_fn)(void *userdata, const struct cfi_function *function);
typedef int (*cfi_registers_fn)(void *userdata, uint64_t address,
				const struct cfi_registers *place);

/*
 * Calls back for every function. What cannot be read is skipped by its length; a length beyond the
 * section ends the reading, with 0. Otherwise what the callback returned.
 */
int cfi_for_each(const struct cfi_section *section, cfi_function_fn callback, void *userdata);

/*
 * Calls back at the function's start and where something changes, addresses ascending. Takes the
 * bytes of code run from *budget: -E2BIG when there are no more, for a function may name as long a
 * common part as it likes. -EBADMSG when the code cannot be understood, from there on.
 */
int cfi_execute(const struct cfi_section *section, const struct cfi_function *function,
		uint64_t *budget, cfi_registers_fn callback, void *userdata);

#endif
