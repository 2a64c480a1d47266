/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "common/base.h"

/* The maximum size of a message in bytes. Longer ones are truncated and end in "...". */
#define LOG_TEXT_MAX 2048

static atomic_bool to_journal;
static atomic_int shown_priority = LOG_INFO;

/*
 * True if stderr is connected to the journal. systemd sets JOURNAL_STREAM=DEV:INODE to the numbers
 * of the file that it passes as stderr; if stderr was redirected, they do not match.
 */
static bool stderr_is_journal(void)
{
	const char *value = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;
	char *end;

	if (!value)
		return false;
	dev = strtoull(value, &end, 10);
	if (end == value || *end != ':')
		return false;
	value = end + 1;
	ino = strtoull(value, &end, 10);
	if (end == value || *end)
		return false;
	return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void log_setup(enum log_target target, int max_priority)
{
	bool journal =
		target == LOG_TARGET_JOURNAL || (target == LOG_TARGET_AUTO && stderr_is_journal());

	atomic_store(&to_journal, journal);
	atomic_store(&shown_priority, max_priority);
}

/*
 * Replaces control characters. Messages quote names that come from other programs, and these must
 * not start a new line or move the cursor of a terminal.
 */
static void text_clean(char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
			*text = '?';
}

static void write_stderr(int priority, char *text)
{
	const char *level = "";
	struct iovec line[4];

	if (priority <= LOG_ERR)
		level = "error: ";
	else if (priority == LOG_WARNING)
		level = "warning: ";

	line[0] = (struct iovec){ (void *)(uintptr_t) "stackd: ", 8 };
	line[1] = (struct iovec){ (void *)(uintptr_t)level, strlen(level) };
	line[2] = (struct iovec){ text, strlen(text) };
	line[3] = (struct iovec){ (void *)(uintptr_t) "\n", 1 };
	/*
	 * Use one system call, so that the lines of two threads do not mix. If it fails, the
	 * failure cannot be reported.
	 */
	(void)!writev(STDERR_FILENO, line, ARRAY_SIZE(line));
}

static struct iovec field_of(const char *text)
{
	return (struct iovec){ (void *)(uintptr_t)text, strlen(text) };
}

/* Sends a message to the journal. Returns 0 or the negative errno of sd_journal_sendv(). */
static int write_journal(int priority, const char *text, const char *id, const char *const *fields)
{
	char message[LOG_TEXT_MAX + 16], level[16], message_id[64];
	struct iovec record[3 + LOG_MAX_FIELDS];
	int n = 0;

	snprintf(message, sizeof(message), "MESSAGE=%s", text);
	snprintf(level, sizeof(level), "PRIORITY=%d", priority);
	record[n++] = field_of(message);
	record[n++] = field_of(level);
	if (id) {
		snprintf(message_id, sizeof(message_id), "MESSAGE_ID=%s", id);
		record[n++] = field_of(message_id);
	}
	for (int i = 0; fields && fields[i] && i < LOG_MAX_FIELDS; i++)
		record[n++] = field_of(fields[i]);
	return sd_journal_sendv(record, n);
}

static void write_event(int priority, char *text, const char *id, const char *const *fields)
{
	text_clean(text);
	if (atomic_load(&to_journal) && write_journal(priority, text, id, fields) >= 0)
		return;
	write_stderr(priority, text);
}

static void text_format(char text[static LOG_TEXT_MAX], const char *format, va_list args)
{
	int n = vsnprintf(text, LOG_TEXT_MAX, format, args);

	if (n < 0)
		text[0] = '\0';
	else if (n >= LOG_TEXT_MAX)
		strcpy(text + LOG_TEXT_MAX - sizeof("..."), "...");
}

void log_event(int priority, const char *id, const char *const *fields, const char *format, ...)
{
	char text[LOG_TEXT_MAX];
	int saved = errno;
	va_list args;

	if (priority > atomic_load(&shown_priority))
		return;
	va_start(args, format);
	text_format(text, format, args);
	va_end(args);
	write_event(priority, text, id, fields);
	errno = saved;
}

int log_err(int r, const char *format, ...)
{
	char text[LOG_TEXT_MAX], reason[128];
	int saved = errno;
	size_t length;
	va_list args;

	va_start(args, format);
	text_format(text, format, args);
	va_end(args);
	length = strlen(text);
	snprintf(text + length, sizeof(text) - length, ": %s",
		 strerror_r(-r, reason, sizeof(reason)));
	write_event(LOG_ERR, text, NULL, NULL);
	errno = saved;
	return r;
}
