/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/cell.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "common/base.h"

enum { OBJECT_LEAST = 6 }; /* the columns that an object needs to be of any use */

static bool fits(const char *text, size_t columns)
{
	return text_columns(text) <= columns;
}

/* Removes `end` from the end of the text. Returns true if it was there. */
static bool remove_end(char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);

	if (n < n_end || strcmp(text + n - n_end, end) != 0)
		return false;
	text[n - n_end] = '\0';
	return true;
}

/* Shortens a path in its middle: the last part stays, and as many of the first ones as fit. */
static char *fit_path(const char *path, size_t columns)
{
	const char *base = strrchr(path, '/'), *at;
	char *best = NULL;

	if (!base[1])
		return text_fit(path, columns);
	for (at = strchr(path, '/'); at && at < base; at = strchr(at + 1, '/')) {
		char *text = must_printf("%.*s...%s", (int)(at - path + 1), path, base);

		if (!fits(text, columns)) {
			free(text);
			break;
		}
		free(best);
		best = text;
	}
	return best ? best : text_fit(base + 1, columns);
}

static bool is_number(const char *text)
{
	return text[0] && strspn(text, "0123456789") == strlen(text);
}

bool object_is_connection(const char *object)
{
	return strncmp(object, "TCP ", strlen("TCP ")) == 0 ||
	       strncmp(object, "UDP ", strlen("UDP ")) == 0;
}

/* Shortens "TCP 10.0.0.1:17 to 10.0.0.2:80, state, figures": what it is connected with stays. */
static char *fit_connection(char *object, size_t columns)
{
	const char *remote;

	object[strcspn(object, ",")] = '\0';
	if (fits(object, columns))
		return must(strdup(object));
	remote = strstr(object, " to ");
	if (!remote)
		return text_fit(object + strlen("TCP "), columns);
	if (fits(remote + 1, columns))
		return must(strdup(remote + 1));
	return text_fit(remote + strlen(" to "), columns);
}

static char *fit_object(char *object, size_t columns)
{
	const char *rest = object;

	remove_end(object, " (deleted)");
	if (object_is_connection(object))
		return fit_connection(object, columns);
	/* The reason says already what kind of thing it is, as "pipe" or "Unix socket". */
	while (!fits(rest, columns) && rest[0] != '/' && strchr(rest, ' '))
		rest = strchr(rest, ' ') + 1;
	/* A part of the number of a pipe would look like a number. */
	if (is_number(rest) && !fits(rest, columns))
		return must(strdup("..."));
	return rest[0] == '/' && !fits(rest, columns) ? fit_path(rest, columns)
						      : text_fit(rest, columns);
}

/* Returns where the object begins in a text of row_why(), behind the reason; NULL: nowhere. */
static const char *object_of(const char *text)
{
	static const char deadlock[] = "deadlock: ";
	const char *at = text;

	if (strncmp(at, deadlock, strlen(deadlock)) == 0)
		at += strlen(deadlock);
	/* Only a wait of one state has a letter, and only one reason: others have shares. */
	if (!isupper((unsigned char)at[0]) || at[1] != ' ')
		return NULL;
	at = strchr(at + 2, ' ');
	return at && at[-1] != ',' ? at + 1 : NULL;
}

char *cell_fit_why(const char *text, size_t columns)
{
	static const char longest[] = "longest ";
	const char *begin = object_of(text);
	_cleanup_(freep) char *object = NULL, *fit = NULL;
	size_t head = begin ? (size_t)(begin - text) : 0;

	if (fits(text, columns) || !begin || head + OBJECT_LEAST > columns)
		return text_fit_tail(text, columns);
	if (strncmp(begin, longest, strlen(longest)) == 0)
		begin += strlen(longest);
	object = must(strdup(begin));
	remove_end(object, ", idle");
	fit = fit_object(object, columns - head);
	return must_printf("%.*s%s", (int)head, text, fit);
}

/* Returns the end of the first "name(17)" of the text; NULL if there is none. */
static const char *id_end(const char *text)
{
	for (const char *at = strchr(text, '('); at; at = strchr(at + 1, '(')) {
		size_t digits = strspn(at + 1, "0123456789");

		if (digits > 0 && at[1 + digits] == ')')
			return at + digits + 2;
	}
	return NULL;
}

/* Returns the text without its first word if that says how something is held; NULL if not. */
static char *without_word(char *text)
{
	static const char *const words[] = { "longest ", "held up by ", "held ", "by ", "behind " };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strncmp(text, words[i], strlen(words[i])) == 0)
			return text + strlen(words[i]);
	return NULL;
}

/*
 * Returns the next shorter text that says who holds something; NULL if there is none. Who held it
 * at an earlier time, as in "as of 12:30:01 held by sh(17)", may not hold it now: "was sh(17)".
 */
static char *shorter(char *text)
{
	static const char as_of[] = "as of ", was[] = "was ", digits[] = "0123456789-:.";
	char *at = text;

	if (strncmp(text, as_of, strlen(as_of)) != 0)
		return without_word(text);
	at += strlen(as_of);
	/* A time of another day has that in front. */
	while (strspn(at, digits) > 0 && at[strspn(at, digits)] == ' ')
		at += strspn(at, digits) + 1;
	for (char *next = at; next; next = without_word(at))
		at = next;
	at -= strlen(was);
	memcpy(at, was, strlen(was));
	return at;
}

char *cell_fit_holder(const char *text, size_t columns)
{
	static const char and[] = " and ", more[] = " more";
	const char *end = id_end(text), *next = text;
	_cleanup_(freep) char *first = NULL;
	size_t n = 0;

	if (fits(text, columns) || !end)
		return text_fit_tail(text, columns);
	if (strncmp(end, and, strlen(and)) == 0)
		n = strspn(end + strlen(and), "0123456789,");
	if (n > 0 && strncmp(end + strlen(and) + n, more, strlen(more)) == 0)
		first = must_printf("%.*s +%.*s", (int)(end - text), text, (int)n,
				    end + strlen(and));
	else
		first = must_printf("%.*s%s", (int)(end - text), text, end[0] ? ".." : "");
	for (char *at = first; at; at = shorter(at)) {
		next = at;
		if (fits(at, columns))
			return must(strdup(at));
	}
	/* The beginning and the id of a long name stay. */
	first[strlen(first) - strlen(id_end(first))] = '\0';
	return text_fit_tail(next, columns);
}
