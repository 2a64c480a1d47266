/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/shared_text.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct shared_text {
	atomic_uint refs;
	char text[];
};

static struct shared_text *shared_text_of(const char *text)
{
	return (struct shared_text *)((uintptr_t)text - offsetof(struct shared_text, text));
}

const char *shared_text_new(const char *text)
{
	size_t size = strlen(text) + 1;
	struct shared_text *shared = malloc(sizeof(*shared) + size);

	if (!shared)
		return NULL;
	atomic_init(&shared->refs, 1);
	return memcpy(shared->text, text, size);
}

const char *shared_text_ref(const char *text)
{
	atomic_fetch_add(&shared_text_of(text)->refs, 1);
	return text;
}

void shared_text_unref(const char *text)
{
	if (text && atomic_fetch_sub(&shared_text_of(text)->refs, 1) == 1)
		free(shared_text_of(text));
}
