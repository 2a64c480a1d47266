/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "daemon/parse/answers.h"

void answer_perf_encode(const struct perf_lines *lines, struct answer_perf *head,
			struct answer_part parts[static ANSWER_PERF_PARTS])
{
	*head = (struct answer_perf){
		.mark = lines->mark,
		.n = lines->n,
		.text_size = lines->text_size,
		.is_continued = lines->is_continued,
		.is_truncated = lines->is_truncated,
	};
	parts[0] = (struct answer_part){ head, sizeof(*head) };
	parts[1] = (struct answer_part){ lines->functions, lines->n * sizeof(*lines->functions) };
	parts[2] = (struct answer_part){ lines->text, lines->text_size };
}

static bool mark_is_good(const struct perf_mark *mark)
{
	return mark->read <= PERF_MAP_BYTES_MAX && mark->last_n <= PERF_LINE_BYTES &&
	       mark->last_n <= mark->read;
}

/* True if there is a name at this offset of the text, neither empty nor longer than a line. */
static bool is_name(const char *text, size_t text_size, size_t at)
{
	size_t rest = at < text_size ? text_size - at : 0;

	if (rest > PERF_LINE_BYTES)
		rest = PERF_LINE_BYTES;
	return rest && text[at] && memchr(text + at, '\0', rest);
}

/* True if the functions are in the order of their names, and each has a name. */
static bool functions_are_good(const struct perf_function *functions, size_t n, const char *text,
			       size_t text_size)
{
	for (size_t i = 0; i < n; i++) {
		const struct perf_function *function = &functions[i];

		if (!function->size || function->start > UINT64_MAX - function->size ||
		    !is_name(text, text_size, function->name) ||
		    (i && function->name <= functions[i - 1].name))
			return false;
	}
	return true;
}

int answer_perf_decode(void **data, size_t size, struct perf_lines *out)
{
	const struct answer_perf *head = *data;
	struct perf_function *functions;
	size_t rest;
	char *text;

	if (size < sizeof(*head))
		return -EPROTO;
	rest = size - sizeof(*head);
	if (head->n > rest / sizeof(*functions) ||
	    head->text_size != rest - head->n * sizeof(*functions) || head->is_continued > 1 ||
	    head->is_truncated > 1 || !mark_is_good(&head->mark))
		return -EPROTO;
	functions = (struct perf_function *)((char *)*data + sizeof(*head));
	text = (char *)(functions + head->n);
	if (!functions_are_good(functions, head->n, text, head->text_size))
		return -EPROTO;
	*out = (struct perf_lines){
		.functions = functions,
		.n = head->n,
		.text = text,
		.text_size = head->text_size,
		.block = *data,
		.mark = head->mark,
		.is_continued = head->is_continued,
		.is_truncated = head->is_truncated,
	};
	*data = NULL;
	return 0;
}
