/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/base/term.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "client/base/exit_code.h"
#include "common/base.h"
#include "common/utf8.h"

void *must(void *p)
{
	if (p)
		return p;
	fputs("stackctl: out of memory\n", stderr);
	exit(EXIT_CODE_IO);
}

char *must_format(const char *format, va_list ap)
{
	char *text;

	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	return must(text);
}

char *must_printf(const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	text = must_format(format, ap);
	va_end(ap);
	return text;
}

/* A copy of standard output from before it became a pipe to a pager; -1: it is none. */
static int kept_stdout = -1;

void term_keep_stdout(void)
{
	kept_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static int terminal_of(int fd)
{
	return fd == STDOUT_FILENO && kept_stdout >= 0 ? kept_stdout : fd;
}

bool term_is_terminal(int fd)
{
	return isatty(terminal_of(fd)) != 0;
}

void term_size(int fd, size_t *lines_out, size_t *columns_out)
{
	struct winsize size = { 0 };
	bool is_known = term_is_terminal(fd) && ioctl(terminal_of(fd), TIOCGWINSZ, &size) == 0;

	*lines_out = is_known && size.ws_row > 1 ? size.ws_row : TERM_LINES_DEFAULT;
	*columns_out = is_known && size.ws_col > 0 ? size.ws_col : TERM_WIDTH_DEFAULT;
}

int term_width(int fd)
{
	size_t lines, columns;

	term_size(fd, &lines, &columns);
	return columns < TERM_WIDTH_MIN ? TERM_WIDTH_MIN : (int)columns;
}

bool term_has_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && value[0])
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

bool term_has_escapes(int fd)
{
	const char *term = getenv("TERM");

	return term_is_terminal(fd) && term && term[0] && strcmp(term, "dumb") != 0;
}

bool term_has_colour(int fd)
{
	const char *no = getenv("NO_COLOR");

	return term_has_escapes(fd) && (!no || no[0] == '\0');
}

/*
 * True for control characters (C0, C1), and for characters that are invisible or change the
 * direction of the text (U+200B, U+202A, U+2066 and their neighbours).
 */
static bool is_hidden(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad || c == 0x61c ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xe0000 && c <= 0xe007f);
}

char *name_escape(const char *name)
{
	const char *s = name;
	char *out, *at;

	while (*s >= ' ' && *s <= '~')
		s++;
	/* Nearly all names are plain ASCII. */
	if (*s == '\0')
		return must(strdup(name));
	/* At worst, each byte of the name becomes an escape of four bytes, such as \x1b. */
	at = out = must(malloc(4 * strlen(name) + 1));
	for (s = name; *s != '\0';) {
		uint32_t c;
		size_t n = utf8_decode(s, &c);

		if (n == 0) {
			at += sprintf(at, "\\x%02x", (unsigned char)*s++);
			continue;
		}
		if (!is_hidden(c)) {
			memcpy(at, s, n);
			at += n;
		} else if (c == '\n') {
			at += sprintf(at, "\\n");
		} else if (c == '\t') {
			at += sprintf(at, "\\t");
		} else if (c < 0x80) {
			at += sprintf(at, "\\x%02x", c);
		} else {
			at += sprintf(at, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
		}
		s += n;
	}
	*at = '\0';
	return out;
}

static size_t columns_of(uint32_t c)
{
	int width = wcwidth((wchar_t)c);

	return width < 0 ? 1 : (size_t)width;
}

size_t text_columns(const char *text)
{
	size_t columns = 0;

	for (const char *s = text; *s != '\0';) {
		uint32_t c = 0;
		size_t n = utf8_decode(s, &c);

		columns += n == 0 ? 1 : columns_of(c);
		s += n == 0 ? 1 : n;
	}
	return columns;
}

/* Returns how many bytes at the beginning of the text fit in the given number of columns. */
static size_t bytes_before(const char *text, size_t columns)
{
	const char *s = text;
	size_t column = 0;

	while (*s != '\0') {
		uint32_t c = 0;
		size_t n = utf8_decode(s, &c);

		column += n == 0 ? 1 : columns_of(c);
		if (column > columns)
			break;
		s += n == 0 ? 1 : n;
	}
	return (size_t)(s - text);
}

char *text_begin(const char *text, size_t columns)
{
	return must(strndup(text, bytes_before(text, columns)));
}

char *text_fit(const char *text, size_t columns)
{
	size_t all = text_columns(text), left, right, skip, head;
	char *out;

	if (all <= columns)
		return must(strdup(text));
	if (columns < 8) {
		head = bytes_before(text, columns);
		return must(strndup(text, head));
	}
	/*
	 * The end of a name often distinguishes it: keep two thirds from the beginning, one third
	 * from the end.
	 */
	left = (columns - 3) * 2 / 3;
	right = columns - 3 - left;
	head = bytes_before(text, left);
	skip = bytes_before(text, all - right);
	/*
	 * The name may have been cut in the middle of a character of two columns. Its end then
	 * begins with the whole character and is one column too wide: drop the character.
	 */
	if (text_columns(text + skip) > right)
		skip += bytes_before(text + skip, 2);
	if (asprintf(&out, "%.*s...%s", (int)head, text, text + skip) < 0)
		out = NULL;
	return must(out);
}

/*
 * Shortens the name of a process, or else of its thread, in "name(17)/thread", so that the id
 * stays. Returns NULL if the text is none, or if there is no room for that.
 */
static char *fit_thread(const char *text, size_t columns)
{
	const char *thread = strstr(text, ")/"), *id = thread;
	size_t width, head;

	while (id && id > text && *id != '(')
		id--;
	if (!id || *id != '(')
		return NULL;
	width = text_columns(id);
	if (width + 5 <= columns)
		return must_printf("%.*s..%s", (int)bytes_before(text, columns - width - 2), text,
				   id);
	thread += 2;
	width = text_columns(thread);
	head = text_columns(text) - width;
	/* An id of the thread stays, too: see text_fit_tail(). */
	if (text[strlen(text) - 1] == ')' || head + 5 > columns)
		return NULL;
	return must_printf("%.*s..%s", (int)(thread - text), text,
			   thread + bytes_before(thread, width - (columns - head - 2)));
}

char *text_fit_tail(const char *text, size_t columns)
{
	const char *tail = strrchr(text, '(');
	size_t n = strlen(text), width = tail ? text_columns(tail) : 0;
	char *out;

	if (text_columns(text) <= columns)
		return must(strdup(text));
	out = fit_thread(text, columns);
	if (out)
		return out;
	if (!tail || text[n - 1] != ')' || width + 5 > columns)
		return text_fit(text, columns);
	n = bytes_before(text, columns - width - 2);
	/* A part of another id would look like an id. */
	for (size_t i = n; i > 0 && text[i - 1] != ')'; i--)
		if (text[i - 1] == '(')
			n = i - 1;
	if (asprintf(&out, "%.*s..%s", (int)n, text, tail) < 0)
		out = NULL;
	return must(out);
}

/* Returns the length of a name without Rust's hash: ::h and 16 hex digits at the end. */
static size_t length_without_hash(const char *name)
{
	size_t n = strlen(name);

	if (n > 19 && strncmp(name + n - 19, "::h", 3) == 0 &&
	    strspn(name + n - 16, "0123456789abcdef") == 16)
		return n - 19;
	return n;
}

char *name_shorten(const char *name)
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t n = length_without_hash(name), at = 0;
	char *out = must(malloc(n + 1));
	int depth = 0;

	for (size_t i = 0; i < n; i++) {
		bool operator_before = at >= 8 && memcmp(out + at - 8, "operator", 8) == 0;

		if (strncmp(name + i, anonymous, sizeof anonymous - 1) == 0 && depth == 0) {
			memcpy(out + at, anonymous, sizeof anonymous - 1);
			at += sizeof anonymous - 1;
			i += sizeof anonymous - 2;
		} else if (depth == 0 && operator_before && name[i] == '(' && name[i + 1] == ')') {
			out[at++] = name[i++];
			out[at++] = name[i];
		} else if (name[i] == '<' && at > 0 && !operator_before) {
			depth++;
		} else if (name[i] == '>' && depth > 0) {
			depth--;
		} else if (depth == 0) {
			if (name[i] == '(' && at > 0)
				break;
			out[at++] = name[i];
		}
	}
	out[at] = '\0';
	return out;
}

static void local_time(int64_t ns, struct tm *tm, int *milli)
{
	int64_t s = ns / NS_PER_S, rest = ns % NS_PER_S;
	time_t t;

	if (rest < 0) {
		rest += NS_PER_S;
		s--;
	}
	t = (time_t)s;
	localtime_r(&t, tm);
	*milli = (int)(rest / NS_PER_MS);
}

void time_format(int64_t ns, enum time_style style, char text[static TERM_TIME_MAX])
{
	struct tm tm;
	int milli;
	size_t n;

	local_time(ns, &tm, &milli);
	if (style == TIME_FULL) {
		strftime(text, TERM_TIME_MAX, "%Y-%m-%d %H:%M:%S %Z", &tm);
		return;
	}
	if (style == TIME_DAY || style == TIME_DAY_MILLI)
		n = strftime(text, TERM_TIME_MAX, "%Y-%m-%d %H:%M:%S", &tm);
	else
		n = strftime(text, TERM_TIME_MAX, "%H:%M:%S", &tm);
	if (style == TIME_MILLI || style == TIME_DAY_MILLI)
		snprintf(text + n, TERM_TIME_MAX - n, ".%03d", milli);
}

bool time_same_day(int64_t a, int64_t b)
{
	struct tm x, y;
	int milli;

	local_time(a, &x, &milli);
	local_time(b, &y, &milli);
	return x.tm_year == y.tm_year && x.tm_yday == y.tm_yday;
}
