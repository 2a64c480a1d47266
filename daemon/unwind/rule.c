/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind/rule.h"

#include <string.h>

#include <dwarf.h>

/* RSP_AT: offset of the saved rsp in the struct ucontext at which a trampoline's rsp points */
enum { WORD = 8, RSP_AT = 160 };

/*
 * A DWARF expression in the only form that compilers write: a register plus an offset. Optionally,
 * the word at that address is loaded and a number is added to it.
 */
struct simple {
	unsigned int reg;
	int64_t offset;
	bool is_loaded; /* the result is `add` plus the word in memory at reg + offset */
	int64_t add;
};

static bool leb_take(const uint8_t **at, const uint8_t *end, bool is_signed, int64_t *out)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		if (*at == end || shift > 28)
			return false;
		byte = *(*at)++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && byte & 0x40)
		value |= ~UINT64_C(0) << shift;
	*out = (int64_t)value;
	return true;
}

/* Parses an expression of the form: breg off [deref [plus_uconst n | lit n plus]]. False for any
 * other form. */
static bool expression_parse(const struct cfi_rule *rule, struct simple *out)
{
	const uint8_t *at = rule->expression, *end = at + rule->expression_size;
	struct simple simple = { 0 };

	if (at == end || *at < DW_OP_breg0 || *at > DW_OP_breg16)
		return false;
	simple.reg = (unsigned int)(*at++ - DW_OP_breg0);
	if (!leb_take(&at, end, true, &simple.offset))
		return false;
	if (at < end && *at == DW_OP_deref) {
		simple.is_loaded = true;
		at++;
	}
	if (at < end && simple.is_loaded && *at == DW_OP_plus_uconst) {
		at++;
		if (!leb_take(&at, end, false, &simple.add))
			return false;
	} else if (end - at == 2 && simple.is_loaded && at[0] >= DW_OP_lit0 &&
		   at[0] <= DW_OP_lit31 && at[1] == DW_OP_plus) {
		simple.add = at[0] - DW_OP_lit0;
		at += 2;
	}
	*out = simple;
	return at == end;
}

/*
 * True if the CFA is that of code in a procedure linkage table: sp + 8 + ((pc & 15) >= N) * 8. Each
 * entry of the table has 16 bytes and one instruction that pushes a word; N is the offset of the
 * byte behind that instruction. If true, fills the frame.
 */
static bool is_plt(const struct cfi_registers *registers, struct unwind_frame *frame)
{
	static const uint8_t start[] = {
		DW_OP_breg7, WORD, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and
	};
	static const uint8_t end[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	const uint8_t *at = registers->cfa.expression;

	if (!registers->is_expression ||
	    registers->cfa.expression_size != sizeof(start) + 1 + sizeof(end) ||
	    memcmp(at, start, sizeof(start)) || memcmp(at + sizeof(start) + 1, end, sizeof(end)))
		return false;
	at += sizeof(start);
	if (*at < DW_OP_lit0 || *at > DW_OP_lit15)
		return false;
	frame->kind = UNWIND_PLT;
	frame->cfa = *at - DW_OP_lit0;
	return true;
}

static uint8_t bx_of(const struct cfi_rule *bx)
{
	if (bx->kind == CFI_SAME)
		return 0;
	if (bx->kind != CFI_OFFSET || bx->offset >= 0 || bx->offset % WORD ||
	    -bx->offset / WORD >= UNWIND_BX_LOST)
		return UNWIND_BX_LOST;
	return (uint8_t)(-bx->offset / WORD);
}

static bool is_plain(const struct cfi_registers *registers, struct unwind_frame *frame)
{
	int64_t cfa = registers->cfa.offset, bp = registers->bp.offset;

	if (registers->is_expression || registers->pc.kind != CFI_OFFSET ||
	    registers->pc.offset != -WORD)
		return false;
	if (registers->cfa_register != CFI_SP && registers->cfa_register != CFI_BP)
		return false;
	if (cfa % WORD || cfa / WORD > INT32_MAX || cfa / WORD < INT32_MIN)
		return false;
	if (registers->bp.kind == CFI_SAME)
		bp = 0;
	else if (registers->bp.kind != CFI_OFFSET || !bp || bp % WORD || bp / WORD > INT16_MAX ||
		 bp / WORD < INT16_MIN)
		return false;
	frame->kind = registers->cfa_register == CFI_SP ? UNWIND_SP : UNWIND_BP;
	frame->cfa = (int32_t)(cfa / WORD);
	frame->bp = (int16_t)(bp / WORD);
	frame->bx = bx_of(&registers->bx);
	return true;
}

static bool cfa_rule(const struct cfi_registers *registers, struct unwind_rule *rule)
{
	struct simple simple;

	rule->cfa_kind = UNWIND_CFA_REGISTER;
	if (!registers->is_expression) {
		simple = (struct simple){ .reg = registers->cfa_register,
					  .offset = registers->cfa.offset };
	} else if (!expression_parse(&registers->cfa, &simple)) {
		return false;
	}
	if (simple.is_loaded)
		rule->cfa_kind = UNWIND_CFA_MEMORY;
	if (simple.reg >= CFI_PC || simple.offset != (int32_t)simple.offset ||
	    simple.add != (int16_t)simple.add)
		return false;
	rule->cfa_register = (uint8_t)simple.reg;
	rule->cfa_offset = (int32_t)simple.offset;
	rule->cfa_add = (int16_t)simple.add;
	return true;
}

static bool bp_rule(const struct cfi_rule *bp, struct unwind_rule *rule)
{
	struct simple simple;

	switch (bp->kind) {
	case CFI_SAME:
		rule->bp_kind = UNWIND_SAVED_NOT;
		return true;
	case CFI_OFFSET:
		rule->bp_kind = UNWIND_SAVED_CFA;
		rule->bp_offset = (int32_t)bp->offset;
		return bp->offset == rule->bp_offset;
	case CFI_EXPRESSION:
		if (!expression_parse(bp, &simple) || simple.is_loaded ||
		    (simple.reg != CFI_BP && simple.reg != CFI_SP))
			break;
		rule->bp_kind = simple.reg == CFI_BP ? UNWIND_SAVED_BP : UNWIND_SAVED_SP;
		rule->bp_offset = (int32_t)simple.offset;
		return true;
	default:
		break;
	}
	rule->bp_kind = UNWIND_SAVED_LOST;
	return true;
}

static bool pc_rule(const struct cfi_rule *pc, struct unwind_rule *rule)
{
	if (pc->offset != (int16_t)pc->offset)
		return false;
	rule->pc_offset = (int16_t)pc->offset;
	rule->pc_kind = pc->kind == CFI_OFFSET ? UNWIND_SAVED_CFA : UNWIND_SAVED_IN;
	return pc->kind == CFI_OFFSET || (pc->kind == CFI_REGISTER && pc->offset < CFI_PC);
}

/*
 * True if the CFA is what the kernel has saved of rsp before it called a signal handler: the code
 * is the trampoline to which handlers return. Other code may call itself a signal frame, too, so
 * that its pc is not taken for a return address.
 */
static bool is_trampoline(const struct cfi_registers *registers)
{
	struct simple cfa;

	return registers->is_expression && expression_parse(&registers->cfa, &cfa) &&
	       cfa.is_loaded && cfa.reg == CFI_SP && cfa.offset == RSP_AT && !cfa.add;
}

bool unwind_rule_make(const struct cfi_registers *registers, bool is_signal,
		      struct unwind_frame *frame, struct unwind_rule *rule)
{
	*frame = (struct unwind_frame){ 0 };
	if (is_signal && is_trampoline(registers)) {
		frame->kind = UNWIND_SIGNAL;
		return true;
	}
	if (registers->pc.kind == CFI_UNDEFINED) {
		frame->kind = UNWIND_END;
		return true;
	}
	/* Walks take the CFA for the caller's sp. Code that switches stacks says otherwise. */
	if (registers->sp.kind != CFI_SAME) {
		frame->kind = UNWIND_INVALID;
		return true;
	}
	if (is_plain(registers, frame) || is_plt(registers, frame))
		return true;
	*rule = (struct unwind_rule){ 0 };
	if (!cfa_rule(registers, rule) || !bp_rule(&registers->bp, rule) ||
	    !pc_rule(&registers->pc, rule)) {
		frame->kind = UNWIND_INVALID;
		return false;
	}
	frame->kind = UNWIND_RULE;
	frame->bx = bx_of(&registers->bx);
	return false;
}
