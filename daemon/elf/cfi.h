/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_CFI_H
#define STACKD_DAEMON_ELF_CFI_H

/*
 * Parses call frame information as compilers write it (DWARF 6.4, and .eh_frame of the LSB): finds
 * the functions that a section describes, and where the registers of the caller are saved for each
 * address in a function. The user of this code owns all memory; no state, any thread. The bytes may
 * be hostile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DWARF numbers of x86-64 registers. */
enum { CFI_BX = 3, CFI_BP = 6, CFI_SP = 7, CFI_PC = 16 };

struct cfi_section {
	const uint8_t *data;
	size_t size;
	size_t stored; /* size of the section in the file, where it is compressed; 0: it is not */
	uint64_t address; /* ELF virtual address of the first byte of data */
	bool is_debug;	  /* the section is .debug_frame; false: .eh_frame, which has another
			     format */
};

enum cfi_rule_kind {
	CFI_SAME,	/* the register still has the value that it had in the caller */
	CFI_UNDEFINED,	/* the caller's value is lost; if this is the rule of the pc, the function
			   has no caller */
	CFI_OFFSET,	/* the caller's value is saved in memory at CFA + offset */
	CFI_REGISTER,	/* the caller's value is in another register; `offset` is the number of
			   this register */
	CFI_EXPRESSION, /* the caller's value is saved at the address that `expression` computes */
	CFI_UNKNOWN,	/* a rule of another kind, which is not supported */
};

/*
 * Says where to find the value that a register had in the caller. `expression` points into the
 * section.
 */
struct cfi_rule {
	enum cfi_rule_kind kind;
	int64_t offset;
	const uint8_t *expression;
	size_t expression_size;
};

/* Rules that hold at one address: how to find the CFA, and the bp, bx, sp and pc of the caller. */
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
	struct cfi_rule sp; /* CFI_SAME: no rule; the sp of the caller is the CFA */
	struct cfi_rule pc;
};

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding;
	bool is_signal;
	bool has_augmentation; /* FDEs that refer to this CIE have augmentation data */
	unsigned int return_register;
	const uint8_t *code;
	size_t code_size;
	size_t offset; /* offset of this CIE in the section */
};

struct cfi_function {
	const struct cfi_cie *cie;
	uint64_t start, end; /* ELF virtual addresses; end is excluded */
	const uint8_t *code;
	size_t code_size;
};

/* Called for each function of a section; any result but 0 ends the enumeration. */
typedef int (*cfi_function_fn)(void *userdata, const struct cfi_function *function);
typedef int (*cfi_registers_fn)(void *userdata, uint64_t address,
				const struct cfi_registers *registers);

/*
 * Calls `callback` for every function of the section. Skips entries that it cannot parse. Stops at
 * an entry whose length is more than the rest of the section. Returns 0, or the result of the
 * callback.
 */
int cfi_for_each(const struct cfi_section *section, cfi_function_fn callback, void *userdata);

/*
 * Executes the call frame instructions of a function. Calls `callback` with the rules that hold at
 * the start of the function, and again for each address at which they change, in ascending order.
 * Returns 0, or what the callback returned. Returns -EBADMSG at an unknown instruction; the rules
 * passed to the callback before are still valid. Subtracts the number of executed bytes from
 * *budget and returns -E2BIG when the budget is used up, because many functions may share one long
 * CIE.
 */
int cfi_execute(const struct cfi_section *section, const struct cfi_function *function,
		uint64_t *budget, cfi_registers_fn callback, void *userdata);

#endif
