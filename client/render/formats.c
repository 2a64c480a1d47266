/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/formats.h"

#include <stddef.h>
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
