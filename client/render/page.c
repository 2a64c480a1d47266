/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/term.h"
#include "common/base.h"
#include "common/duration.h"

static const char *const style_codes[] = {
	[STYLE_PLAIN] = "",
	[STYLE_BOLD] = "\033[1m",
	[STYLE_WARN] = "\033[1;31m",
	[STYLE_DIM] = "\033[2m",
};

struct page page_of_stdout(void)
{
	bool is_terminal = term_is_terminal(STDOUT_FILENO);

	return (struct page){
		.out = stdout,
		.width = (size_t)term_width(STDOUT_FILENO),
		.has_colour = term_has_colour(STDOUT_FILENO),
		.cuts_names = is_terminal,
	};
}

static void style_begin(const struct page *page, enum style style)
{
	if (page->has_colour)
		fputs(style_codes[style], page->out);
}

static void style_end(const struct page *page, enum style style)
{
	if (page->has_colour && style != STYLE_PLAIN)
		fputs("\033[0m", page->out);
}

static void put_spaces(const struct page *page, size_t n)
{
	fprintf(page->out, "%*s", (int)n, "");
}

/*
 * Returns how many bytes of the text to print on a line of `room` columns. The line ends at a space
 * if it has one.
 */
static size_t line_length(const char *text, size_t room)
{
	char *head;
	size_t n, columns = 0, best = 0;

	for (n = 0; text[n] != '\0';) {
		size_t step = 1;

		while ((text[n + step] & 0xc0) == 0x80)
			step++;
		head = must(strndup(text + n, step));
		columns += text_columns(head);
		free(head);
		if (columns > room)
			return best > 0 ? best : n > 0 ? n : step;
		n += step;
		if (text[n] == ' ')
			best = n;
	}
	return n;
}

static void put_wrapped(const struct page *page, enum style style, size_t indent, const char *text)
{
	size_t room = page->width > indent + 8 ? page->width - indent : 8;

	for (;;) {
		size_t n = line_length(text, room);

		style_begin(page, style);
		fwrite(text, 1, n, page->out);
		style_end(page, style);
		fputc('\n', page->out);
		text += n;
		text += strspn(text, " ");
		if (*text == '\0')
			return;
		put_spaces(page, indent);
	}
}

void page_wrap(const struct page *page, enum style style, const char *label, size_t indent,
	       const char *format, ...)
{
	_cleanup_(freep) char *text = NULL;
	size_t columns = text_columns(label);
	va_list ap;

	va_start(ap, format);
	text = must_format(format, ap);
	va_end(ap);
	fputs(label, page->out);
	if (columns > indent) {
		/* If the label is too long for its column, the text begins on the next line. */
		fputc('\n', page->out);
		columns = 0;
	}
	put_spaces(page, indent - columns);
	put_wrapped(page, style, indent, text);
}

void page_pair(const struct page *page, enum style style, const char *left, const char *right)
{
	size_t columns = text_columns(right);
	size_t room = page->width > columns + 10 ? page->width - columns - 2 : 8;
	_cleanup_(freep) char *fit = page->cuts_names ? text_fit(left, room) : must(strdup(left));
	size_t used = text_columns(fit);

	style_begin(page, style);
	fputs(fit, page->out);
	if (right[0])
		put_spaces(page, used < room ? room - used + 2 : 2);
	fputs(right, page->out);
	style_end(page, style);
	fputc('\n', page->out);
}

void page_name(const struct page *page, enum style style, size_t indent, const char *prefix,
	       const char *name)
{
	size_t used = indent + text_columns(prefix);
	size_t room = page->width > used + 8 ? page->width - used : 8;
	_cleanup_(freep) char *fit = page->cuts_names ? text_fit(name, room) : must(strdup(name));

	put_spaces(page, indent);
	fputs(prefix, page->out);
	style_begin(page, style);
	fputs(fit, page->out);
	style_end(page, style);
	fputc('\n', page->out);
}

void page_line(const struct page *page, enum style style, const char *text)
{
	style_begin(page, style);
	fputs(text, page->out);
	style_end(page, style);
	fputc('\n', page->out);
}

void page_break(const struct page *page)
{
	fputc('\n', page->out);
}

static char *next_text(void)
{
	static char texts[8][DURATION_TEXT_MAX];
	static unsigned next;

	return texts[next++ % ARRAY_SIZE(texts)];
}

const char *count_text(long long n)
{
	char digits[24], *text = next_text(), *out = text;
	size_t len = (size_t)snprintf(digits, sizeof digits, "%lld", n);

	for (size_t i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-')
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = '\0';
	return text;
}

const char *ns_text(long long ns)
{
	char *text = next_text();

	duration_format(ns, text);
	return text;
}

const char *share_text(long long part, long long whole)
{
	char *text = next_text();
	double percent = whole > 0 ? 100.0 * (double)part / (double)whole : 0;

	if (whole <= 0)
		snprintf(text, DURATION_TEXT_MAX, "-");
	else if (part > 0 && percent < 1)
		snprintf(text, DURATION_TEXT_MAX, "<1 %%");
	else
		snprintf(text, DURATION_TEXT_MAX, "%.0f %%", percent);
	return text;
}

void average_text(int64_t ns, int64_t length, char text[static 32])
{
	double average = length > 0 ? (double)ns / (double)length : 0;

	if (ns > 0 && average < 0.01)
		snprintf(text, 32, "<0.01");
	else
		snprintf(text, 32,
			 average < 0.1	? "%.2f"
			 : average < 10 ? "%.1f"
					: "%.0f",
			 average);
}
