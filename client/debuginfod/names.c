/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/debuginfod/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/base/intern.h"
#include "client/base/message.h"
#include "client/base/term.h"
#include "client/debuginfod/fetch.h"
#include "common/array.h"
#include "common/base.h"
#include "common/search.h"

enum {
	QUERIES_MAX = 65536, /* the maximum number of addresses in one file */
	MESSAGES_MAX = 8,    /* files that could not be had; more are counted */
};

/* A file in which functions have no names. */
struct wanted {
	struct fetch_file file;
	size_t capacity; /* of file.queries */
	size_t uses;	 /* number of times that one of its addresses was noted */
	char *module;
};

struct names {
	struct intern *ids;   /* build-ids; the number of one is that of its file */
	struct wanted *files; /* an array by these numbers */
	size_t n, capacity;
};

const char *names_check(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (!urls || strspn(urls, " \t\n") == strlen(urls))
		return "--debuginfod needs the environment variable DEBUGINFOD_URLS, which lists "
		       "servers, such as https://debuginfod.debian.net";
	return fetch_check();
}

struct names *names_new(void)
{
	struct names *names = must(calloc(1, sizeof(*names)));

	names->ids = intern_new();
	return names;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->n; i++) {
		for (size_t k = 0; k < names->files[i].file.n_queries; k++)
			free(names->files[i].file.queries[k].name);
		free(names->files[i].file.queries);
		free(names->files[i].module);
	}
	free(names->files);
	intern_free(names->ids);
	free(names);
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Reads a build-id. Returns its size; 0 if the text is not one. */
static size_t build_id_read(const char *text, uint8_t out[static BUILD_ID_MAX])
{
	size_t n = strlen(text);

	if (n == 0 || n % 2 != 0 || n / 2 > BUILD_ID_MAX)
		return 0;
	for (size_t i = 0; i < n; i += 2) {
		int high = digit_value(text[i]), low = digit_value(text[i + 1]);

		if (high < 0 || low < 0)
			return 0;
		out[i / 2] = (uint8_t)(high << 4 | low);
	}
	return n / 2;
}

static struct wanted *wanted_get(struct names *names, const char *build_id, const char *module)
{
	uint8_t id[BUILD_ID_MAX] = { 0 };
	size_t size = build_id_read(build_id, id), number;
	bool is_new;

	if (size == 0)
		return NULL;
	number = intern_add(names->ids, id, size, &is_new);
	if (!is_new)
		return &names->files[number];
	if (array_reserve(names->files, names->capacity, names->n + 1) < 0)
		must(NULL);
	names->files[names->n] = (struct wanted){
		.file.build_id_size = size,
		.module = must(strdup(module ? module : "a file")),
	};
	memcpy(names->files[names->n].file.build_id, id, size);
	return &names->files[names->n++];
}

/* Returns the index of the first query of the file with an address from `address` on. */
static size_t query_index(const struct fetch_file *file, uint64_t address)
{
	return SEARCH(file->n_queries, i, file->queries[i].address < address);
}

void names_want(struct names *names, const char *build_id, const char *module, uint64_t address)
{
	struct wanted *wanted = wanted_get(names, build_id, module);
	struct fetch_file *file;
	size_t i;

	if (!wanted)
		return;
	wanted->uses++;
	file = &wanted->file;
	i = query_index(file, address);
	if ((i < file->n_queries && file->queries[i].address == address) ||
	    file->n_queries == QUERIES_MAX)
		return;
	if (array_reserve(file->queries, wanted->capacity, file->n_queries + 1) < 0)
		must(NULL);
	memmove(&file->queries[i + 1], &file->queries[i],
		(file->n_queries - i) * sizeof(*file->queries));
	file->queries[i] = (struct symbol_query){ .address = address };
	file->n_queries++;
}

/* Orders files: those first whose names occur most often. */
static int wanted_compare(const void *a, const void *b)
{
	const struct wanted *const *left = a, *const *right = b;

	return ((*left)->uses < (*right)->uses) - ((*left)->uses > (*right)->uses);
}

/* Prints why a file could not be had, for the first files; counts the others. */
static void report_file(const struct wanted *wanted, const char *why, size_t *n)
{
	char id[2 * BUILD_ID_MAX + 1];

	if ((*n)++ >= MESSAGES_MAX)
		return;
	for (size_t i = 0; i < wanted->file.build_id_size; i++)
		snprintf(id + 2 * i, 3, "%02x", wanted->file.build_id[i]);
	print_message("no debug information of %s (build-id %s): %s", wanted->module, id, why);
}

/* Fetches the files in order. Returns the number of those that were looked at. */
static size_t fetch_in_order(struct wanted *const *order, size_t n, int64_t deadline_ns, int *r)
{
	size_t n_reported = 0, i;

	*r = 0;
	for (i = 0; i < n; i++) {
		_cleanup_(freep) char *why = NULL;

		*r = fetch_functions(&order[i]->file, deadline_ns, &why);
		if (*r == -ETIMEDOUT || *r == -EINTR)
			break;
		if (*r < 0)
			report_file(order[i], why, &n_reported);
	}
	if (n_reported > MESSAGES_MAX)
		print_message("no debug information of %zu other files", n_reported - MESSAGES_MAX);
	return i;
}

int64_t names_fetch(struct names *names, int64_t timeout_ns)
{
	int64_t begun_ns = clock_ns(CLOCK_MONOTONIC);
	struct wanted **order = must(calloc(names->n + 1, sizeof(struct wanted *)));
	size_t n;
	int r;

	for (size_t i = 0; i < names->n; i++)
		order[i] = &names->files[i];
	qsort(order, names->n, sizeof(*order), wanted_compare);
	n = fetch_in_order(order, names->n, begun_ns + timeout_ns, &r);
	if (r == -ETIMEDOUT)
		print_message(
			"--debuginfod stopped, as time is up: functions of %zu of %zu files keep "
			"no name (--debuginfod-timeout D gives more time)",
			names->n - n, names->n);
	else if (r == -EINTR)
		print_message(
			"--debuginfod was interrupted: functions of %zu of %zu files keep no name",
			names->n - n, names->n);
	free(order);
	return clock_ns(CLOCK_MONOTONIC) - begun_ns;
}

const char *names_find(const struct names *names, const char *build_id, uint64_t address,
		       uint64_t *start_out)
{
	uint8_t id[BUILD_ID_MAX] = { 0 };
	size_t size = build_id_read(build_id, id), number, i;
	const struct fetch_file *file;

	if (size == 0 || !intern_find(names->ids, id, size, &number))
		return NULL;
	file = &names->files[number].file;
	i = query_index(file, address);
	if (i == file->n_queries || file->queries[i].address != address || !file->queries[i].name)
		return NULL;
	*start_out = file->queries[i].start;
	return file->queries[i].name;
}
