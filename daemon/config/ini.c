/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/config/ini.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/base.h"
#include "common/utf8.h"
#include "daemon/config/config.h"

#define BLANKS " \t"

struct reader {
	const char *path;
	char *rest;		/* the part of the file that has not been parsed yet; ends with
				   a NUL */
	unsigned int next_line; /* line number of the first line in `rest` */
	char section[64];
	config_assign_fn assign;
	void *user;
	struct config_error *error;
};

__attribute__((format(printf, 4, 5))) static int fail_line(const struct reader *reader,
							   unsigned int line, int r,
							   const char *format, ...)
{
	char *text = reader->error->text;
	const size_t size = sizeof(reader->error->text);
	va_list args;
	int n = snprintf(text, size, "%.256s:%u: ", reader->path, line);

	va_start(args, format);
	vsnprintf(text + n, size - (size_t)n, format, args);
	va_end(args);
	return r;
}

static int fail_file(const char *path, int r, const char *what, struct config_error *error)
{
	snprintf(error->text, sizeof(error->text), "%.256s: %s", path, what);
	return r;
}

/*
 * Refuses directories and pipes: the error of reading a directory would not explain the mistake,
 * and reading a pipe could block the start. Accepts /dev/null as an empty file.
 */
static int check_kind(const char *path, const struct stat *st, struct config_error *error)
{
	if (S_ISDIR(st->st_mode))
		return fail_file(path, -EISDIR, "is a directory, not a configuration file", error);
	if (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3))
		return 0;
	if (!S_ISREG(st->st_mode))
		return fail_file(path, -EINVAL, "is not a regular file", error);
	return 0;
}

static int read_all(const char *path, int fd, char **text_out, size_t *length_out,
		    struct config_error *error)
{
	_cleanup_(freep) char *text = malloc(CONFIG_FILE_MAX + 2);
	size_t length = 0;
	ssize_t n;

	if (!text)
		return fail_file(path, -ENOMEM, "out of memory", error);
	while ((n = read(fd, text + length, CONFIG_FILE_MAX + 1 - length)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_file(path, -errno, strerror(errno), error);
		length += (size_t)n;
		if (length > CONFIG_FILE_MAX)
			return fail_file(path, -EFBIG, "is larger than 1M", error);
	}
	text[length] = '\0';
	*length_out = length;
	*text_out = TAKE(text);
	return 0;
}

static int load_text(const char *path, char **text_out, size_t *length_out,
		     struct config_error *error)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_file(path, -errno, strerror(errno), error);
	r = check_kind(path, &st, error);
	if (r < 0)
		return r;
	return read_all(path, fd, text_out, length_out, error);
}

static char *strip(char *text)
{
	size_t length;

	text += strspn(text, BLANKS);
	length = strlen(text);
	while (length && strchr(BLANKS, text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* Returns the next line without its end ("\n" or "\r\n"), or NULL at the end of the file. */
static char *next_physical(struct reader *reader)
{
	char *line = reader->rest, *end;
	size_t length;

	if (!*line)
		return NULL;
	end = strchrnul(line, '\n');
	reader->rest = *end ? end + 1 : end;
	*end = '\0';
	reader->next_line++;
	length = (size_t)(end - line);
	if (length && line[length - 1] == '\r')
		line[length - 1] = '\0';
	return line;
}

static bool is_comment(const char *line)
{
	line += strspn(line, BLANKS);
	return *line == '#' || *line == ';';
}

static int line_append(const struct reader *reader, unsigned int first, char *line,
		       const char *piece)
{
	size_t used = strlen(line), length = strlen(piece);

	if (used + length >= CONFIG_LINE_MAX)
		return fail_line(reader, first, -EINVAL, "line is longer than %d bytes",
				 CONFIG_LINE_MAX - 1);
	memcpy(line + used, piece, length + 1);
	return 0;
}

/*
 * Reads a line, and the lines that continue it after a backslash, into line[CONFIG_LINE_MAX]. As in
 * systemd, a space replaces the backslash, and comment lines within a continued line are skipped.
 * Returns 1; 0 at the end of the file; or a negative errno.
 */
static int next_logical(struct reader *reader, char *line, unsigned int *number_out)
{
	bool continued = false;
	char *piece;
	int r;

	*number_out = reader->next_line;
	line[0] = '\0';
	while ((piece = next_physical(reader))) {
		size_t length = strlen(piece);

		if (is_comment(piece)) {
			if (continued)
				continue;
			return 1;
		}
		continued = length && piece[length - 1] == '\\';
		if (continued)
			piece[length - 1] = ' ';
		r = line_append(reader, *number_out, line, piece);
		if (r < 0)
			return r;
		if (!continued)
			return 1;
	}
	if (continued)
		return fail_line(reader, *number_out, -EINVAL,
				 "ends in a backslash, but no line follows");
	return 0;
}

static int handle_section(struct reader *reader, unsigned int number, char *line)
{
	size_t length = strlen(line);

	if (line[length - 1] != ']')
		return fail_line(reader, number, -EINVAL,
				 "a section is written as [name], with nothing after it");
	line[length - 1] = '\0';
	line = strip(line + 1);
	length = strlen(line);
	if (!length || length >= sizeof(reader->section))
		return fail_line(reader, number, -EINVAL, "the section's name is %s",
				 length ? "too long" : "empty");
	memcpy(reader->section, line, length + 1);
	return 0;
}

static int handle_line(struct reader *reader, unsigned int number, char *line)
{
	char *equals;

	line = strip(line);
	if (!*line)
		return 0;
	if (*line == '[')
		return handle_section(reader, number, line);
	equals = strchr(line, '=');
	if (!equals || equals == line)
		return fail_line(reader, number, -EINVAL,
				 "expected \"key = value\" or \"[section]\"");
	if (!reader->section[0])
		return fail_line(reader, number, -EINVAL,
				 "expected a [section] before the first key");
	*equals = '\0';
	return reader->assign(reader->user, reader->path, number, reader->section, strip(line),
			      strip(equals + 1), reader->error);
}

/* Refuses a text with a NUL byte, which would end a string early and hide the text after it. */
static int check_nul(const struct reader *reader, const char *text, size_t length)
{
	const char *nul = memchr(text, '\0', length);
	unsigned int line = 1;

	if (!nul)
		return 0;
	for (const char *p = text; p < nul; p++)
		line += *p == '\n';
	return fail_line(reader, line, -EINVAL, "has a NUL byte; is this a text file?");
}

int config_file_read(const char *path, config_assign_fn assign, void *user,
		     struct config_error *error)
{
	struct reader reader = {
		.path = path,
		.next_line = 1,
		.assign = assign,
		.user = user,
		.error = error,
	};
	_cleanup_(freep) char *text = NULL, *line = malloc(CONFIG_LINE_MAX);
	unsigned int number;
	size_t length = 0;
	int r;

	if (!line)
		return fail_file(path, -ENOMEM, "out of memory", error);
	r = load_text(path, &text, &length, error);
	if (r < 0)
		return r;
	r = check_nul(&reader, text, length);
	if (r < 0)
		return r;
	reader.rest = utf8_skip_mark(text);
	while ((r = next_logical(&reader, line, &number)) > 0) {
		r = handle_line(&reader, number, line);
		if (r < 0)
			return r;
	}
	return r;
}
