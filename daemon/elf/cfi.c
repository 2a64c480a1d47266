/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/elf/cfi.h"

#include <errno.h>
#include <string.h>

#include <dwarf.h>

enum { AUGMENTATION_MAX = 8, REMEMBERED_MAX = 16 };

/* A read position in a range of bytes. A read past the end returns 0 and sets is_bad. */
struct cursor {
	const uint8_t *at, *end;
	bool is_bad;
};

static uint64_t take(struct cursor *c, size_t size)
{
	uint64_t value = 0;

	if (c->is_bad || (size_t)(c->end - c->at) < size) {
		c->is_bad = true;
		return 0;
	}
	memcpy(&value, c->at, size);
	c->at += size;
	return value;
}

static const uint8_t *take_bytes(struct cursor *c, uint64_t size)
{
	const uint8_t *bytes = c->at;

	if (c->is_bad || (uint64_t)(c->end - c->at) < size) {
		c->is_bad = true;
		return c->end;
	}
	c->at += size;
	return bytes;
}

static uint64_t take_uleb(struct cursor *c)
{
	uint64_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = take(c, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 128);
	return value;
}

static int64_t take_sleb(struct cursor *c)
{
	uint64_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = take(c, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 128);
	if (shift < 64 && byte & 0x40)
		value |= ~UINT64_C(0) << shift;
	return (int64_t)value;
}

static uint64_t take_formatted(struct cursor *c, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return take(c, 8);
	case DW_EH_PE_udata2:
		return take(c, 2);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)take(c, 2);
	case DW_EH_PE_udata4:
		return take(c, 4);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)(int32_t)take(c, 4);
	case DW_EH_PE_uleb128:
		return take_uleb(c);
	case DW_EH_PE_sleb128:
		return (uint64_t)take_sleb(c);
	default:
		c->is_bad = true;
		return 0;
	}
}

/*
 * Reads the address of a function. It is either absolute, or relative to the address where it is
 * stored (pcrel). Compilers use no other forms.
 */
static uint64_t take_address(struct cursor *c, const struct cfi_section *section, uint8_t encoding)
{
	uint64_t base = section->address + (uint64_t)(c->at - section->data);
	uint64_t value = take_formatted(c, encoding);

	switch (encoding & 0xf0) {
	case DW_EH_PE_absptr:
		return value;
	case DW_EH_PE_pcrel:
		return base + value;
	default:
		c->is_bad = true;
		return 0;
	}
}

/* An entry of a section: a CIE or an FDE. */
struct entry {
	struct cursor body; /* the bytes that follow `id` in the entry */
	size_t offset;	    /* offset of the entry in the section */
	size_t id_offset;   /* offset of `id` in the section */
	/*
	 * CIE id or CIE pointer: the field that says whether the entry is a CIE or an FDE, and to
	 * which CIE an FDE refers
	 */
	uint64_t id;
};

/*
 * Reads the entry at *offset, and sets *offset to the offset of the next entry. False at the
 * section's end.
 */
static bool entry_next(const struct cfi_section *section, size_t *offset, struct entry *out)
{
	struct cursor c = { section->data + *offset, section->data + section->size, false };
	uint64_t length = take(&c, 4);
	size_t id_size = 4;

	if (length == UINT32_MAX) {
		length = take(&c, 8);
		id_size = section->is_debug ? 8 : 4;
	}
	if (c.is_bad || (uint64_t)(c.end - c.at) < length)
		return false;
	out->offset = *offset;
	*offset = (size_t)(c.at - section->data) + length;
	c.end = c.at + length;
	out->id_offset = (size_t)(c.at - section->data);
	out->id = length ? take(&c, id_size) : 0;
	if (section->is_debug && id_size == 4 && out->id == UINT32_MAX)
		out->id = UINT64_MAX;
	out->body = c;
	return true;
}

static bool entry_is_cie(const struct cfi_section *section, const struct entry *entry)
{
	return entry->id == (section->is_debug ? UINT64_MAX : 0);
}

static void augmentation_read(struct cursor *c, const char *letters, struct cfi_cie *cie)
{
	for (; *letters; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'R':
			cie->encoding = (uint8_t)take(c, 1);
			break;
		case 'L':
			take(c, 1);
			break;
		case 'P':
			encoding = (uint8_t)take(c, 1);
			take_formatted(c, encoding);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		case 'B': /* pointer authentication on arm64; it has no data to read */
			break;
		default: /* unknown augmentation letter: the caller skips its data */
			return;
		}
	}
}

static bool cie_parse(struct entry *entry, struct cfi_cie *out)
{
	struct cfi_cie cie = { .encoding = DW_EH_PE_absptr, .offset = entry->offset };
	struct cursor *c = &entry->body, data;
	char letters[AUGMENTATION_MAX + 1] = "";
	uint64_t version = take(c, 1), n;
	size_t i = 0;

	while (i <= AUGMENTATION_MAX && (letters[i] = (char)take(c, 1)))
		i++;
	if (c->is_bad || i > AUGMENTATION_MAX)
		return false;
	/* both must be as expected: address size 8, segment selector size 0 */
	if (version == 4 && (take(c, 1) != 8 || take(c, 1) != 0))
		return false;
	cie.code_align = take_uleb(c);
	cie.data_align = take_sleb(c);
	cie.return_register = (unsigned int)(version == 1 ? take(c, 1) : take_uleb(c));
	if (letters[0] == 'z') {
		cie.has_augmentation = true;
		n = take_uleb(c);
		data.at = take_bytes(c, n);
		data.end = c->at;
		data.is_bad = c->is_bad;
		augmentation_read(&data, letters + 1, &cie);
		if (data.is_bad)
			return false;
	} else if (letters[0]) {
		return false;
	}
	cie.code = c->at;
	cie.code_size = (size_t)(c->end - c->at);
	*out = cie;
	return !c->is_bad && (version == 1 || version == 3 || version == 4);
}

/*
 * Parses the CIE to which an FDE refers, and stores it in *cie. Does nothing if *cie holds this CIE
 * already; *is_known is true if *cie is valid.
 */
static bool cie_find(const struct cfi_section *section, const struct entry *fde,
		     struct cfi_cie *cie, bool *is_known)
{
	size_t offset = section->is_debug ? (size_t)fde->id : fde->id_offset - (size_t)fde->id;
	struct entry entry;

	if (*is_known && cie->offset == offset)
		return true;
	*is_known = offset < section->size && entry_next(section, &offset, &entry) &&
		    entry_is_cie(section, &entry) && cie_parse(&entry, cie);
	return *is_known;
}

static bool fde_parse(const struct cfi_section *section, struct entry *entry,
		      const struct cfi_cie *cie, struct cfi_function *out)
{
	struct cursor *c = &entry->body;
	uint64_t start = take_address(c, section, cie->encoding), size;

	size = take_formatted(c, cie->encoding & 0x07);
	if (cie->has_augmentation)
		take_bytes(c, take_uleb(c));
	*out = (struct cfi_function){
		.cie = cie,
		.start = start,
		.end = start + size,
		.code = c->at,
		.code_size = (size_t)(c->end - c->at),
	};
	return !c->is_bad && size && out->end > start;
}

int cfi_for_each(const struct cfi_section *section, cfi_function_fn callback, void *userdata)
{
	struct cfi_function function;
	struct cfi_cie cie = { 0 };
	bool is_known = false;
	struct entry entry;
	size_t offset = 0;
	int r = 0;

	while (!r && entry_next(section, &offset, &entry)) {
		/* Skip entries of length 0, which linkers leave even in the middle of a section. */
		if (entry.body.is_bad || entry.body.at == entry.body.end ||
		    entry_is_cie(section, &entry))
			continue;
		if (cie_find(section, &entry, &cie, &is_known) &&
		    fde_parse(section, &entry, &cie, &function))
			r = callback(userdata, &function);
	}
	return r;
}

/* The state of a run through the call frame instructions of one function. */
struct machine {
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	struct cfi_registers registers;
	struct cfi_registers initial;
	struct cfi_registers remembered[REMEMBERED_MAX];
	size_t n_remembered;
	uint64_t address, end;
	cfi_registers_fn callback;
	void *userdata;
};

static struct cfi_rule *rule_of(const struct machine *m, struct cfi_registers *registers,
				uint64_t reg)
{
	if (reg == m->cie->return_register)
		return &registers->pc;
	switch (reg) {
	case CFI_BX:
		return &registers->bx;
	case CFI_BP:
		return &registers->bp;
	case CFI_SP:
		return &registers->sp;
	default:
		return NULL;
	}
}

static void rule_set(struct machine *m, uint64_t reg, enum cfi_rule_kind kind, int64_t offset)
{
	struct cfi_rule *rule = rule_of(m, &m->registers, reg);

	if (rule)
		*rule = (struct cfi_rule){ .kind = kind, .offset = offset };
}

static void rule_set_factored(struct machine *m, uint64_t reg, int64_t factored)
{
	int64_t offset;

	if (__builtin_mul_overflow(factored, m->cie->data_align, &offset))
		rule_set(m, reg, CFI_UNKNOWN, 0);
	else
		rule_set(m, reg, CFI_OFFSET, offset);
}

static void rule_restore(struct machine *m, uint64_t reg)
{
	struct cfi_rule *rule = rule_of(m, &m->registers, reg);

	if (rule)
		*rule = *rule_of(m, &m->initial, reg);
}

static void rule_set_expression(struct machine *m, uint64_t reg, struct cursor *c,
				enum cfi_rule_kind kind)
{
	struct cfi_rule *rule = rule_of(m, &m->registers, reg);
	uint64_t size = take_uleb(c);
	const uint8_t *bytes = take_bytes(c, size);

	if (rule)
		*rule = (struct cfi_rule){ .kind = kind,
					   .expression = bytes,
					   .expression_size = (size_t)size };
}

static void cfa_set(struct machine *m, uint64_t reg, int64_t offset)
{
	m->registers.is_expression = false;
	m->registers.cfa_register = reg > UINT8_MAX ? UINT8_MAX : (unsigned int)reg;
	m->registers.cfa = (struct cfi_rule){ .kind = CFI_OFFSET, .offset = offset };
}

static void cfa_set_factored(struct machine *m, uint64_t reg, int64_t factored)
{
	int64_t offset;

	if (__builtin_mul_overflow(factored, m->cie->data_align, &offset))
		reg = UINT8_MAX; /* an invalid register number */
	cfa_set(m, reg, offset);
}

static void cfa_set_expression(struct machine *m, struct cursor *c)
{
	uint64_t size = take_uleb(c);

	m->registers.is_expression = true;
	m->registers.cfa = (struct cfi_rule){ .kind = CFI_EXPRESSION,
					      .expression = take_bytes(c, size),
					      .expression_size = (size_t)size };
}

/*
 * Advances the current address. Before that, calls the callback with the rules that hold from the
 * current address up to the new address.
 */
static int advance(struct machine *m, uint64_t factored)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(factored, m->cie->code_align, &bytes) ||
	    bytes > m->end - m->address)
		return -EBADMSG;
	if (!bytes)
		return 0;
	if (m->callback) {
		int r = m->callback(m->userdata, m->address, &m->registers);

		if (r)
			return r;
	}
	m->address += bytes;
	return 0;
}

static int set_location(struct machine *m, struct cursor *c)
{
	uint64_t to = take_address(c, m->section, m->cie->encoding);

	if (c->is_bad || to < m->address || to > m->end || m->cie->code_align == 0)
		return -EBADMSG;
	return advance(m, (to - m->address) / m->cie->code_align);
}

static int remember(struct machine *m)
{
	if (m->n_remembered == REMEMBERED_MAX)
		return -EBADMSG;
	m->remembered[m->n_remembered++] = m->registers;
	return 0;
}

static int restore(struct machine *m)
{
	if (!m->n_remembered)
		return -EBADMSG;
	m->registers = m->remembered[--m->n_remembered];
	return 0;
}

/* Executes an instruction that defines the CFA (canonical frame address). */
static int execute_cfa(struct machine *m, struct cursor *c, uint8_t op)
{
	uint64_t reg = m->registers.cfa_register;

	if (op == DW_CFA_def_cfa_expression) {
		cfa_set_expression(m, c);
		return 0;
	}
	if (op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_sf || op == DW_CFA_def_cfa_register)
		reg = take_uleb(c);
	if (op == DW_CFA_def_cfa_register)
		cfa_set(m, reg, m->registers.cfa.offset);
	else if (op == DW_CFA_def_cfa_sf || op == DW_CFA_def_cfa_offset_sf)
		cfa_set_factored(m, reg, take_sleb(c));
	else
		cfa_set(m, reg, (int64_t)take_uleb(c));
	return 0;
}

/* Executes an instruction that sets the rule of the register given by its first operand. */
static int execute_rule(struct machine *m, struct cursor *c, uint8_t op)
{
	uint64_t reg = take_uleb(c);

	switch (op) {
	case DW_CFA_offset_extended:
		rule_set_factored(m, reg, (int64_t)take_uleb(c));
		return 0;
	case DW_CFA_offset_extended_sf:
		rule_set_factored(m, reg, take_sleb(c));
		return 0;
	case DW_CFA_GNU_negative_offset_extended:
		rule_set_factored(m, reg, (int64_t)(0 - take_uleb(c)));
		return 0;
	case DW_CFA_restore_extended:
		rule_restore(m, reg);
		return 0;
	case DW_CFA_undefined:
		rule_set(m, reg, CFI_UNDEFINED, 0);
		return 0;
	case DW_CFA_same_value:
		rule_set(m, reg, CFI_SAME, 0);
		return 0;
	case DW_CFA_register:
		rule_set(m, reg, CFI_REGISTER, (int64_t)(take_uleb(c) & UINT8_MAX));
		return 0;
	case DW_CFA_expression:
		rule_set_expression(m, reg, c, CFI_EXPRESSION);
		return 0;
	case DW_CFA_val_expression:
		rule_set_expression(m, reg, c, CFI_UNKNOWN);
		return 0;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		take_uleb(c);
		rule_set(m, reg, CFI_UNKNOWN, 0);
		return 0;
	default:
		return -EBADMSG;
	}
}

static int execute_one(struct machine *m, struct cursor *c)
{
	uint8_t op = (uint8_t)take(c, 1), low = op & 0x3f;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(m, low);
	case DW_CFA_offset:
		rule_set_factored(m, low, (int64_t)take_uleb(c));
		return 0;
	case DW_CFA_restore:
		rule_restore(m, low);
		return 0;
	}
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return set_location(m, c);
	case DW_CFA_advance_loc1:
		return advance(m, take(c, 1));
	case DW_CFA_advance_loc2:
		return advance(m, take(c, 2));
	case DW_CFA_advance_loc4:
		return advance(m, take(c, 4));
	case DW_CFA_remember_state:
		return remember(m);
	case DW_CFA_restore_state:
		return restore(m);
	case DW_CFA_GNU_args_size:
		take_uleb(c);
		return 0;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		return execute_cfa(m, c, op);
	default:
		return execute_rule(m, c, op);
	}
}

static int execute_code(struct machine *m, const uint8_t *code, size_t size, uint64_t *budget)
{
	struct cursor c = { code, code + size, false };
	int r = 0;

	if (*budget < size)
		return -E2BIG;
	*budget -= size;
	while (!r && c.at < c.end)
		r = c.is_bad ? -EBADMSG : execute_one(m, &c);
	return r ? r : c.is_bad ? -EBADMSG : 0;
}

int cfi_execute(const struct cfi_section *section, const struct cfi_function *function,
		uint64_t *budget, cfi_registers_fn callback, void *userdata)
{
	struct machine m = {
		.section = section,
		.cie = function->cie,
		.address = function->start,
		.end = function->end,
		.userdata = userdata,
	};
	int r;

	m.registers.cfa_register = UINT8_MAX;
	r = execute_code(&m, m.cie->code, m.cie->code_size, budget);
	if (r)
		return r;
	m.initial = m.registers;
	m.address = function->start;
	m.callback = callback;
	r = execute_code(&m, function->code, function->code_size, budget);
	if (r)
		return r;
	return m.address < m.end ? callback(userdata, m.address, &m.registers) : 0;
}
