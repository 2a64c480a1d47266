/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes /etc/stackd/stackd.conf or the man page stackd.conf(5) to standard output. This program
 * runs when stackd is built. FRAME is the template of the file; its line "@SETTINGS@" is replaced
 * by the settings, each with its help, its range and its default.
 *
 * Usage: settings_text conf|man FRAME
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/config/config.h"
#include "daemon/config/keys.h"
#include "daemon/config/value.h"

enum { COLUMNS = 99, RANGE_MAX = 128 };

/* How the settings are formatted: as a configuration file, or as a man page. */
struct form {
	const char *line_start; /* the text with which each line of prose begins */
	void (*put_word)(const char *word, size_t length);
	void (*put_section)(const struct form *form, const struct config_section *section);
	void (*put_key)(const struct form *form, const struct config_key *key,
			const struct config *defaults);
};

/*
 * Writes the string `text` in lines of at most COLUMNS columns. Each line begins with
 * form->line_start.
 */
static void put_prose(const struct form *form, const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t length = strcspn(text, " ");

		if (!column || column + 1 + length > COLUMNS) {
			printf("%s%s", column ? "\n" : "", form->line_start);
			column = strlen(form->line_start);
		} else {
			putchar(' ');
			column++;
		}
		form->put_word(text, length);
		column += length;
		text += length;
		text += strspn(text, " ");
	}
	if (column)
		putchar('\n');
}

/* Writes the help, the details and the range of a key, and whether a reload applies its changes. */
static void put_help(const struct form *form, const struct config_key *key)
{
	char range[RANGE_MAX], facts[RANGE_MAX + 64];
	_cleanup_(freep) char *text = NULL;

	if (asprintf(&text, "%s %s", key->help, key->details) < 0)
		exit(EXIT_FAILURE);
	put_prose(form, text);
	config_value_range(key, range, sizeof(range));
	snprintf(facts, sizeof(facts), "%c%s.%s", toupper((unsigned char)range[0]), range + 1,
		 key->is_live ? " Changes are applied by a reload." : "");
	put_prose(form, facts);
}

static void put_plain_word(const char *word, size_t length)
{
	printf("%.*s", (int)length, word);
}

static void put_conf_section(const struct form *form, const struct config_section *section)
{
	put_prose(form, section->text);
	printf("[%s]\n", section->name);
}

/*
 * Writes the key and its default as a comment: each line begins with a #, because the default may
 * have several lines.
 */
static void put_conf_key(const struct form *form, const struct config_key *key,
			 const struct config *defaults)
{
	char *value = NULL;
	size_t i, size = 0;
	FILE *stream = open_memstream(&value, &size);

	if (!stream)
		exit(EXIT_FAILURE);
	config_value_print(key, defaults, stream);
	fclose(stream);
	put_help(form, key);
	printf("#%s = ", key->key);
	for (i = 0; i < size; i++) {
		putchar(value[i]);
		if (value[i] == '\n')
			putchar('#');
	}
	fputs("\n\n", stdout);
	free(value);
}

/*
 * Writes a word for groff. Escapes hyphens and backslashes, and a dot or quote at the start of the
 * word, which groff would take for a request.
 */
static void put_man_word(const char *word, size_t length)
{
	size_t i;

	if (length && (word[0] == '.' || word[0] == '\''))
		fputs("\\&", stdout);
	for (i = 0; i < length; i++) {
		if (word[i] == '-' || word[i] == '\\')
			fputs(word[i] == '-' ? "\\-" : "\\e", stdout);
		else
			putchar(word[i]);
	}
}

static void put_man_section(const struct form *form, const struct config_section *section)
{
	printf(".SS [%s]\n", section->name);
	put_prose(form, section->text);
}

static void put_man_key(const struct form *form, const struct config_key *key,
			const struct config *defaults)
{
	const bool is_long = key->type == CONFIG_LIST;

	printf(".TP\n%s %s", is_long ? ".B" : ".BR", key->key);
	if (!is_long) {
		fputs(" \" = ", stdout);
		put_man_word(key->fallback, strlen(key->fallback));
		putchar('"');
	}
	putchar('\n');
	put_help(form, key);
	if (is_long) {
		put_prose(form, "Default:");
		put_prose(form, key->fallback);
	}
}

static const struct form conf_form = { "# ", put_plain_word, put_conf_section, put_conf_key };
static const struct form man_form = { "", put_man_word, put_man_section, put_man_key };

static void put_settings(const struct form *form, const struct config *defaults)
{
	const struct config_section *section = config_sections;
	size_t i;

	for (i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (i == 0 || strcmp(key->section, config_keys[i - 1].section) != 0)
			form->put_section(form, section++);
		form->put_key(form, key, defaults);
	}
}

int main(int argc, char *argv[])
{
	static const struct config_paths nowhere;
	_cleanup_(config_freep) struct config *defaults = NULL;
	_cleanup_(fclosep) FILE *frame = NULL;
	_cleanup_(freep) char *line = NULL;
	struct config_error error;
	const struct form *form;
	size_t capacity = 0;

	if (argc != 3) {
		fputs("usage: settings_text conf|man FRAME\n", stderr);
		return EXIT_FAILURE;
	}
	form = strcmp(argv[1], "man") == 0 ? &man_form : &conf_form;
	frame = fopen(argv[2], "re");
	if (!frame) {
		fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
		return EXIT_FAILURE;
	}
	if (config_load_from(&nowhere, NULL, 0, &defaults, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return EXIT_FAILURE;
	}
	while (getline(&line, &capacity, frame) >= 0) {
		if (strcmp(line, "@SETTINGS@\n") == 0)
			put_settings(form, defaults);
		else
			fputs(line, stdout);
	}
	return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
