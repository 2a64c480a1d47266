/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/base/stack_hash.h"

#include <gcrypt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base.h"
#include "common/text.h"

/* libgcrypt asks for this before threads use it. No secret is hashed here. */
static void library_init(void)
{
	gcry_check_version(NULL);
	gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
	gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
}

uint64_t stack_host_id(const struct wire_stack *stack)
{
	return stack->id ? strtoull(stack->id, NULL, 16) : 0;
}

static void put(struct text *all, const char *text)
{
	text_put_str(all, text ? text : "");
	text_put(all, "", 1);
}

static void put_number(struct text *all, int64_t number)
{
	text_put_int(all, number);
	text_put(all, "", 1);
}

/* Appends all that is hashed. */
static void put_stack(struct text *all, const struct wire_stack *stack)
{
	char host_id[32];

	snprintf(host_id, sizeof(host_id), "%" PRIx64, stack_host_id(stack));
	put(all, host_id);
	put_number(all, (int64_t)stack->frames.n);
	for (size_t i = 0; i < stack->frames.n; i++) {
		const struct wire_frame *frame = &stack->frames.v[i];

		put(all, frame->kind);
		put(all, frame->name);
		put(all, frame->module);
		put_number(all, frame->offset == WIRE_ABSENT ? -1 : frame->offset);
	}
	for (size_t i = 0; i < stack->flags.n; i++)
		put(all, stack->flags.v[i]);
}

uint64_t stack_hash(const struct wire_stack *stack)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint8_t hash[32];
	_cleanup_(text_fini) struct text all = {};
	uint64_t id = 0;

	pthread_once(&once, library_init);
	text_init(&all, SIZE_MAX);
	put_stack(&all, stack);
	if (all.error)
		return 0;
	gcry_md_hash_buffer(GCRY_MD_SHA256, hash, all.data, all.len);
	for (int i = 0; i < 8; i++)
		id = id << 8 | hash[i];
	return id ? id : 1;
}
