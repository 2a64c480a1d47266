/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/formats.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"

static const struct format *const formats[] = {
#define FORMAT(name) &format_##name,
	FORMAT_LIST
#undef FORMAT
};

const struct format *format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

void format_names(bool has_stacks, char out[static FORMAT_NAMES_MAX])
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (has_stacks || !formats[i]->has_only_stacks)
			used += (size_t)snprintf(out + used, FORMAT_NAMES_MAX - used, "%s%s",
						 used ? "|" : "", formats[i]->name);
}
