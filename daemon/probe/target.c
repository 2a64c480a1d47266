/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/target.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "common/base.h"

/* Maximum length of a pattern, in bytes: no function name and no path is longer. */
enum { PATTERN_MAX = 4096 };

/* Characters that are common in regular expressions and that no function's name contains. */
#define NO_NAME " \t?[]()|^+"

bool target_glob(const char *glob, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (*glob == '*') {
			star = glob++;
			from = text;
		} else if (*glob == *text) {
			glob++;
			text++;
		} else if (star) {
			glob = star + 1;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return *glob == '\0';
}

/* Returns a copy of the text before the next colon and moves *text behind that colon. NULL if there
 * is no colon. */
static char *part_take(const char **text)
{
	const char *colon = strchr(*text, ':');
	char *part = colon ? strndup(*text, (size_t)(colon - *text)) : NULL;

	if (part)
		*text = colon + 1;
	return part;
}

static int malformed(const char *text, char *why, size_t size)
{
	snprintf(why, size,
		 "\"%.200s\" is no function: vfs_read, 'vfs_*', t:sched:sched_process_exec, "
		 "u:c:malloc, u:/usr/bin/bash:readline and usdt:stdc++:throw are",
		 text);
	return -EINVAL;
}

/*
 * True if the text has the name of a program or library before the function's name, as in
 * "c:malloc". A single colon separates them; C++ names contain two colons in a row.
 */
static bool has_scope(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon && colon[1] != ':';
}

static int pattern_split(const char *text, struct target_pattern *out)
{
	const char *rest = text;

	if (strncmp(rest, "t:", 2) == 0 || strncmp(rest, "u:", 2) == 0) {
		out->kind = rest[0] == 't' ? TARGET_TRACEPOINT : TARGET_USER;
		rest += 2;
		out->scope = part_take(&rest);
		if (!out->scope || !out->scope[0])
			return -EINVAL;
	} else if (strncmp(rest, "usdt:", 5) == 0) {
		out->kind = TARGET_USDT;
		rest += 5;
		out->scope = part_take(&rest);
		if (!out->scope)
			return -EINVAL;
	} else if (strncmp(rest, "p::", 3) == 0) {
		rest += 3;
	} else {
		if (strncmp(rest, "p:", 2) == 0)
			rest += 2;
		if (has_scope(rest)) {
			out->kind = TARGET_USER;
			out->scope = part_take(&rest);
		}
	}
	if (!rest[0] || (out->scope && !out->scope[0]))
		return -EINVAL;
	out->name = strdup(rest);
	return out->name ? 0 : -ENOMEM;
}

int target_parse(const char *text, bool is_regex, struct target_pattern *out, char *why,
		 size_t size)
{
	int r;

	*out = (struct target_pattern){};
	if (strlen(text) > PATTERN_MAX) {
		snprintf(why, size, "the pattern is longer than %d bytes", PATTERN_MAX);
		return -EINVAL;
	}
	r = pattern_split(text, out);
	if (r == -EINVAL)
		malformed(text, why, size);
	if (!r && is_regex)
		r = regex_new(out->name, &out->regex, why, size);
	if (!r && !is_regex && out->kind != TARGET_USER &&
	    strpbrk(out->name, out->kind == TARGET_USDT ? NO_NAME : NO_NAME ":"))
		r = malformed(text, why, size);
	if (r)
		target_pattern_fini(out);
	return r;
}

void target_pattern_fini(struct target_pattern *pattern)
{
	regex_free(pattern->regex);
	free(pattern->scope);
	free(pattern->name);
	*pattern = (struct target_pattern){};
}

bool target_fits(const struct target_pattern *pattern, const char *name)
{
	if (pattern->regex)
		return regex_fits(pattern->regex, name);
	return target_glob(pattern->name, name);
}

bool target_error_is_passing(int error)
{
	return error == -ENOMEM || error == -EAGAIN || error == -EBUSY || error == -ETIMEDOUT;
}

int targets_add(struct targets *targets, const char *name, uint64_t address)
{
	char *copy;

	if (array_reserve(targets->v, targets->capacity, targets->n + 1))
		return -ENOMEM;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	targets->v[targets->n++] = (struct target){ .name = copy, .address = address };
	return 0;
}

/* Compares targets by address, and targets with the same address by the length of their names. */
static int compare_address(const void *a, const void *b)
{
	const struct target *x = a, *y = b;
	size_t n = strlen(x->name), m = strlen(y->name);

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return n != m ? (n < m ? -1 : 1) : strcmp(x->name, y->name);
}

static int compare_name(const void *a, const void *b)
{
	const struct target *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : (x->address > y->address) - (x->address < y->address);
}

void targets_settle(struct targets *targets)
{
	size_t i, kept = 0;

	if (!targets->n)
		return;
	qsort(targets->v, targets->n, sizeof(*targets->v), compare_address);
	for (i = 0; i < targets->n; i++) {
		if (kept && targets->v[kept - 1].address == targets->v[i].address)
			free(targets->v[i].name);
		else
			targets->v[kept++] = targets->v[i];
	}
	targets->n = kept;
	qsort(targets->v, targets->n, sizeof(*targets->v), compare_name);
}

void targets_fini(struct targets *targets)
{
	size_t i;

	for (i = 0; i < targets->n; i++)
		free(targets->v[i].name);
	free(targets->v);
	free(targets->path);
	free(targets->chosen);
	if (targets->fd > 0)
		close(targets->fd);
	*targets = (struct targets){};
}

uint64_t targets_chosen_address(const struct targets *targets)
{
	void *function = targets->chosen ? dlsym(RTLD_DEFAULT, targets->chosen) : NULL;
	struct stat ours, theirs;
	Dl_info info;

	if (!function || !targets->path || !dladdr(function, &info) ||
	    stat(info.dli_fname, &ours) < 0 || stat(targets->path, &theirs) < 0 ||
	    ours.st_ino != theirs.st_ino || ours.st_dev != theirs.st_dev)
		return 0;
	return (uint64_t)((uintptr_t)function - (uintptr_t)info.dli_fbase);
}
