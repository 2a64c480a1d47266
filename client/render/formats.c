/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/formats.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"

static const struct format *const formats[] = {
#define FORMAT(name) &format_##name,
	FORMAT_LIST
#undef FORMAT
};

void format_print(const struct format *format, const struct view *view,
		  const struct wire_snapshot_reply *reply)
{
	void *stream;

	if (format->snapshot) {
		format->snapshot(view, reply);
		return;
	}
	stream = format->stream_new(view, STREAM_ANSWER);
	format->stream_add(stream, reply, true);
	format->stream_end(stream, true);
}

const struct format *format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

const struct format *format_of_file(const char *path)
{
	const struct format *found = NULL;
	size_t length = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		const char *suffix = formats[i]->suffix;
		size_t n = strlen(suffix);

		if (length > n && path[length - n - 1] == '.' &&
		    strcmp(path + length - n, suffix) == 0 && (!found || n > strlen(found->suffix)))
			found = formats[i];
	}
	return found;
}

bool format_is_unknown_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *suffix = strrchr(name, '.');
	size_t n = suffix ? strlen(suffix + 1) : 0;

	if (!suffix || suffix == name || n < 1 || n > 5 || !isalpha((unsigned char)suffix[1]))
		return false;
	for (size_t i = 1; i <= n; i++)
		if (!isalnum((unsigned char)suffix[i]))
			return false;
	return strcmp(suffix, ".log") != 0 && !format_of_file(path);
}

bool format_is_trace_file(const char *path)
{
	const char *suffix = strrchr(path, '.');

	return suffix &&
	       (strcmp(suffix, ".pftrace") == 0 || strcmp(suffix, ".perfetto-trace") == 0);
}

bool format_is_page_file(const char *path)
{
	const char *suffix = strrchr(path, '.');

	return suffix && (strcmp(suffix, ".html") == 0 || strcmp(suffix, ".htm") == 0);
}

bool format_fits(const struct format *format, enum format_use use)
{
	switch (use) {
	case FORMAT_OF_LISTS:
		return !format->has_only_stacks;
	case FORMAT_OF_MANY:
		return !format->has_one_answer;
	case FORMAT_OF_CHANGES:
		return format->diff;
	case FORMAT_OF_STACKS:
		break;
	}
	return true;
}

void format_names(enum format_use use, char out[static FORMAT_NAMES_MAX])
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (format_fits(formats[i], use))
			used += (size_t)snprintf(out + used, FORMAT_NAMES_MAX - used, "%s%s",
						 used ? "|" : "", formats[i]->name);
}

void format_suffixes(enum format_use use, char out[static FORMAT_SUFFIXES_MAX])
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(formats) && used < FORMAT_SUFFIXES_MAX; i++)
		if (format_fits(formats[i], use))
			used += (size_t)snprintf(out + used, FORMAT_SUFFIXES_MAX - used, "%s.%s",
						 used ? ", " : "", formats[i]->suffix);
}
