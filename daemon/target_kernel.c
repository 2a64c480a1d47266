/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/target.h"
#include "proto/base.h"

/* Where a kernel that shows them lists what can be traced; the daemon of a unit does not see them.
 */
static const char *const filter_lists[] = {
	"/sys/kernel/tracing/available_filter_functions",
	"/sys/kernel/debug/tracing/available_filter_functions",
};

struct symbol_line {
	uint64_t address;
	char type;
	char name[512];
	char module[64];
};

static bool line_parse(const char *line, struct symbol_line *out)
{
	out->module[0] = '\0';
	return sscanf(line, "%" SCNx64 " %c %511s [%63[^]]]", &out->address, &out->type, out->name,
		      out->module) >= 3;
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Parts of functions, padding, and what other programs of the kernel's are: no functions. */
static bool is_function(const struct symbol_line *line)
{
	return strchr("tTwW", line->type) && strcmp(line->module, "bpf") != 0 &&
	       !starts_with(line->module, "__builtin") && !starts_with(line->name, "__pfx_") &&
	       !starts_with(line->name, "__cfi_") && !strstr(line->name, ".cold");
}

static int table_open(FILE **out, char *why, size_t size)
{
	*out = fopen("/proc/kallsyms", "re");
	if (*out)
		return 0;
	snprintf(why, size, "/proc/kallsyms: %s", strerror(errno));
	return -EIO;
}

static void init_drop(struct targets *targets, uint64_t start, uint64_t end)
{
	size_t i, kept = 0;

	for (i = 0; i < targets->n; i++) {
		if (targets->v[i].address >= start && targets->v[i].address < end)
			free(targets->v[i].name);
		else
			targets->v[kept++] = targets->v[i];
	}
	targets->n = kept;
}

/* What is called once at boot is in the table for ever, but no more in memory. */
static int functions_read(FILE *f, const struct target_pattern *pattern, struct targets *out)
{
	uint64_t init_start = 0, init_end = 0;
	_cleanup_(freep) char *text = NULL;
	struct symbol_line line;
	bool is_hidden = true;
	size_t room = 0;
	int r = 0;

	while (!r && getline(&text, &room, f) > 0) {
		if (!line_parse(text, &line))
			continue;
		if (line.address)
			is_hidden = false;
		if (strcmp(line.name, "_sinittext") == 0)
			init_start = line.address;
		else if (strcmp(line.name, "_einittext") == 0)
			init_end = line.address;
		else if (is_function(&line) && target_fits(pattern, line.name))
			r = targets_add(out, line.name, line.address);
	}
	if (!r && is_hidden)
		return -EPERM;
	init_drop(out, init_start, init_end);
	return r;
}

/* "vfs_read" or "ext4_sync_fs [ext4]"; marks those of the targets that are in the list. */
static void list_mark(FILE *f, const struct targets *targets, bool *marks)
{
	_cleanup_(freep) char *text = NULL;
	struct target key = {}, *found;
	size_t room = 0, lo, hi, at;

	while (getline(&text, &room, f) > 0) {
		text[strcspn(text, " \t\n")] = '\0';
		key.name = text;
		for (lo = 0, hi = targets->n; lo < hi;) {
			at = (lo + hi) / 2;
			if (strcmp(targets->v[at].name, key.name) < 0)
				lo = at + 1;
			else
				hi = at;
		}
		for (found = targets->v + lo; lo < targets->n && strcmp(found->name, key.name) == 0;
		     lo++, found++)
			marks[lo] = true;
	}
}

static int list_apply(struct targets *targets)
{
	_cleanup_(fclosep) FILE *f = NULL;
	_cleanup_(freep) bool *marks = NULL;
	size_t i, kept = 0;

	for (i = 0; i < ARRAY_SIZE(filter_lists) && !f; i++)
		f = fopen(filter_lists[i], "re");
	if (!f || !targets->n)
		return 0;
	marks = calloc(targets->n, sizeof(*marks));
	if (!marks)
		return -ENOMEM;
	list_mark(f, targets, marks);
	for (i = 0; i < targets->n; i++) {
		if (marks[i])
			targets->v[kept++] = targets->v[i];
		else
			free(targets->v[i].name);
	}
	targets->forbidden = targets->n - kept;
	targets->n = kept;
	return 0;
}

int target_find_functions(const struct target_pattern *pattern, struct targets *out, char *why,
			  size_t size)
{
	_cleanup_(fclosep) FILE *f = NULL;
	int r = table_open(&f, why, size);

	*out = (struct targets){ .kind = TARGET_FUNCTION };
	if (r)
		return r;
	r = functions_read(f, pattern, out);
	if (r == -EPERM)
		snprintf(
			why, size,
			"the kernel hides its addresses from stackd (kernel.kptr_restrict): start it "
			"by its unit, which has CAP_SYSLOG");
	if (!r) {
		targets_settle(out);
		r = list_apply(out);
	}
	if (r)
		targets_fini(out);
	return r;
}

int target_addresses(struct target *symbols, size_t n)
{
	_cleanup_(freep) char *text = NULL;
	_cleanup_(fclosep) FILE *f = fopen("/proc/kallsyms", "re");
	struct symbol_line line;
	size_t room = 0, i;

	if (!f)
		return -errno;
	while (getline(&text, &room, f) > 0) {
		if (!line_parse(text, &line))
			continue;
		for (i = 0; i < n; i++)
			if (!symbols[i].address && strcmp(line.name, symbols[i].name) == 0)
				symbols[i].address = line.address;
	}
	return 0;
}
