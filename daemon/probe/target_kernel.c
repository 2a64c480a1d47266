/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/probe/kernel_btf.h"
#include "daemon/probe/target.h"
#include "daemon/symbol/kallsyms_line.h"

/*
 * Files that list the kernel functions that can be traced. Reading them takes CAP_DAC_READ_SEARCH.
 */
static const char *const filter_lists[] = {
	"/sys/kernel/tracing/available_filter_functions",
	"/sys/kernel/debug/tracing/available_filter_functions",
};

/*
 * Like filter_lists[], but each line also has the address of the function (Linux 6.5), which
 * differs between functions of the same name. If one of these files can be read, filter_lists[] are
 * not needed.
 */
static const char *const site_lists[] = {
	"/sys/kernel/tracing/available_filter_functions_addrs",
	"/sys/kernel/debug/tracing/available_filter_functions_addrs",
};

/*
 * In the files of site_lists[], each function has the address at which it calls ftrace, called a
 * site here. A site is less than SITE_WITHIN bytes behind the start of its function: a landing pad
 * (endbr64, bti) may come before it.
 */
enum { SITE_WITHIN = 16 };

struct sites {
	uint64_t *v;
	size_t n;
	size_t capacity;
};

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/*
 * True if this line of the kernel's symbol table stands for a whole function. False for a part of a
 * function, for padding, for the jump of a static call (__SCT__) and for a BPF program.
 */
static bool is_function(const struct kallsyms_line *line)
{
	const char *module = line->module ? line->module : "";

	return strchr("tTwW", line->type) && strcmp(module, "bpf") != 0 &&
	       !starts_with(module, "__builtin") && !starts_with(line->name, "__pfx_") &&
	       !starts_with(line->name, "__cfi_") && !starts_with(line->name, "__SCT__") &&
	       !strstr(line->name, ".cold");
}

/*
 * Names of the kernel's own functions by its types (BTF), sorted. They are used if no file lists
 * the functions that can be traced: the symbol table also has entry points and other code that is
 * no function in C.
 */
struct described {
	const char **names; /* NULL: not known */
	size_t n;
};

static void described_read(struct described *out)
{
	kernel_btf_hold();
	if (kernel_btf_functions(&out->names, &out->n))
		*out = (struct described){};
}

static void described_fini(struct described *described)
{
	free(described->names);
	kernel_btf_release();
}

/*
 * True if the name is that of a function, or if that is not known. The types do not have the
 * suffix that the compiler appends to some names, such as ".isra.0".
 */
static bool described_has(const struct described *described, const char *name)
{
	size_t lo = 0, hi = described->n, at, length = strcspn(name, ".");
	int r;

	while (lo < hi) {
		at = (lo + hi) / 2;
		r = strncmp(described->names[at], name, length);
		if (!r && !described->names[at][length])
			return true;
		/* A longer name that begins with this one comes after it. */
		if (r < 0)
			lo = at + 1;
		else
			hi = at;
	}
	return !described->names;
}

static int table_open(FILE **out, char *why, size_t size)
{
	*out = fopen(KALLSYMS_PATH, "re");
	if (*out)
		return 0;
	snprintf(why, size, KALLSYMS_PATH ": %s", strerror(errno));
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

/*
 * Reads from the kernel's symbol table the functions that match the pattern. Leaves out functions
 * that run only at boot: the table has their names, but their memory has been freed. Counts those
 * of the kernel itself that are not among `described` as forbidden. -EPERM if the kernel hides
 * addresses.
 */
static int functions_read(FILE *f, const struct target_pattern *pattern,
			  const struct described *described, struct targets *out)
{
	uint64_t init_start = 0, init_end = 0;
	_cleanup_(freep) char *text = NULL;
	struct kallsyms_line line;
	bool is_hidden = true;
	size_t room = 0;
	int r = 0;

	while (!r && getline(&text, &room, f) > 0) {
		if (kallsyms_line_parse(text, &line))
			continue;
		if (line.address)
			is_hidden = false;
		if (strcmp(line.name, "_sinittext") == 0)
			init_start = line.address;
		else if (strcmp(line.name, "_einittext") == 0)
			init_end = line.address;
		else if (!is_function(&line) || !target_fits(pattern, line.name))
			continue;
		else if (line.module || described_has(described, line.name))
			r = targets_add(out, line.name, line.address);
		else
			out->forbidden++;
	}
	if (!r && is_hidden)
		return -EPERM;
	init_drop(out, init_start, init_end);
	return r;
}

/*
 * Sets marks[i] for each target i whose name is in a file of filter_lists[]. The file has lines
 * like "vfs_read" and "ext4_sync_fs [ext4]".
 */
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

static FILE *list_open(const char *const *paths, size_t n)
{
	FILE *f = NULL;
	size_t i;

	for (i = 0; i < n && !f; i++)
		f = fopen(paths[i], "re");
	return f;
}

/* True if a file can be read that lists the functions that can be traced. */
static bool list_is_readable(void)
{
	_cleanup_(fclosep) FILE *sites = list_open(site_lists, ARRAY_SIZE(site_lists));
	_cleanup_(fclosep) FILE *names = list_open(filter_lists, ARRAY_SIZE(filter_lists));

	return sites || names;
}

static int compare_site(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * Splits a line such as "ffffffff81000014 name [module]" in place into address and name. False if
 * the line has no address.
 */
static bool site_parse(char *text, uint64_t *address, const char **name)
{
	char *end;

	*address = strtoull(text, &end, 16);
	if (end == text || !*address)
		return false;
	end += strspn(end, " ");
	end[strcspn(end, " \t\n")] = '\0';
	*name = end;
	return true;
}

/* Reads all addresses from a file of site_lists[] and sorts them. 0, or -ENOMEM. */
static int sites_read(FILE *f, struct sites *out)
{
	_cleanup_(freep) char *text = NULL;
	size_t room = 0;
	const char *name;
	uint64_t address;
	int r = 0;

	while (!r && getline(&text, &room, f) > 0)
		if (site_parse(text, &address, &name)) {
			r = array_reserve(out->v, out->capacity, out->n + 1);
			if (!r)
				out->v[out->n++] = address;
		}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), compare_site);
	return r;
}

/*
 * True if one of the sites (places that call ftrace) is in the function that starts at this
 * address.
 */
static bool sites_have(const struct sites *sites, uint64_t start)
{
	size_t lo = 0, hi = sites->n, at;

	while (lo < hi) {
		at = (lo + hi) / 2;
		if (sites->v[at] < start)
			lo = at + 1;
		else
			hi = at;
	}
	return lo < sites->n && sites->v[lo] - start < SITE_WITHIN;
}

/*
 * Sets marks[i] for each target i whose code calls ftrace at an address that a file of site_lists[]
 * contains. Sets *is_done_out to false if no such file can be read.
 */
static int sites_mark(const struct targets *targets, bool *marks, bool *is_done_out)
{
	_cleanup_(fclosep) FILE *f = list_open(site_lists, ARRAY_SIZE(site_lists));
	struct sites sites = {};
	size_t i;
	int r = f ? sites_read(f, &sites) : 0;

	*is_done_out = !r && sites.n;
	for (i = 0; *is_done_out && i < targets->n; i++)
		marks[i] = sites_have(&sites, targets->v[i].address);
	free(sites.v);
	return r;
}

static int targets_mark(const struct targets *targets, bool *marks, bool *is_done_out)
{
	_cleanup_(fclosep) FILE *f = NULL;
	int r = sites_mark(targets, marks, is_done_out);

	if (r || *is_done_out)
		return r;
	f = list_open(filter_lists, ARRAY_SIZE(filter_lists));
	if (f)
		list_mark(f, targets, marks);
	*is_done_out = f != NULL;
	return 0;
}

/*
 * Drops the targets that cannot be traced: if one of the targets of a probe is such a function, the
 * kernel refuses all of them. Does nothing if no list of functions can be read.
 */
static int list_apply(struct targets *targets)
{
	_cleanup_(freep) bool *marks = NULL;
	size_t i, kept = 0;
	bool is_marked;
	int r;

	if (!targets->n)
		return 0;
	marks = calloc(targets->n, sizeof(*marks));
	if (!marks)
		return -ENOMEM;
	r = targets_mark(targets, marks, &is_marked);
	if (r || !is_marked)
		return r;
	for (i = 0; i < targets->n; i++) {
		if (marks[i])
			targets->v[kept++] = targets->v[i];
		else
			free(targets->v[i].name);
	}
	targets->forbidden += targets->n - kept;
	targets->n = kept;
	return 0;
}

/*
 * Finds the functions that match the pattern, if a file of site_lists[] can be read. The address of
 * a target is then a site, where the function calls ftrace. A program can be attached to many
 * functions at once by their sites as well as by their starts (fprobe_init()).
 */
static int sites_find(const struct target_pattern *pattern, struct targets *out)
{
	_cleanup_(fclosep) FILE *f = list_open(site_lists, ARRAY_SIZE(site_lists));
	_cleanup_(freep) char *text = NULL;
	const char *name;
	uint64_t address;
	size_t room = 0;
	int r = 0;

	/*
	 * Skip names that begin with __ftrace_invalid: these functions were weak, others have
	 * replaced them, and nothing calls them.
	 */
	while (f && !r && getline(&text, &room, f) > 0)
		if (site_parse(text, &address, &name) && !starts_with(name, "__ftrace_invalid") &&
		    target_fits(pattern, name))
			r = targets_add(out, name, address);
	return r;
}

/*
 * Finds the functions that match the pattern by reading the kernel's symbol table. A function may
 * have several names there.
 */
static int symbols_find(const struct target_pattern *pattern, struct targets *out, char *why,
			size_t size)
{
	_cleanup_(fclosep) FILE *f = NULL;
	struct described described = {};
	bool has_list = list_is_readable();
	int r = table_open(&f, why, size);

	if (r)
		return r;
	if (!has_list)
		described_read(&described);
	r = functions_read(f, pattern, &described, out);
	if (!has_list)
		described_fini(&described);
	if (r == -EPERM)
		snprintf(
			why, size,
			"the kernel hides its addresses from stackd (kernel.kptr_restrict): start it "
			"by its unit, which has CAP_SYSLOG");
	if (r)
		return r;
	targets_settle(out);
	return list_apply(out);
}

int target_find_functions(const struct target_pattern *pattern, struct targets *out, char *why,
			  size_t size)
{
	int r;

	*out = (struct targets){ .kind = TARGET_FUNCTION };
	r = sites_find(pattern, out);
	if (!r && out->n)
		targets_settle(out);
	else if (!r)
		r = symbols_find(pattern, out, why, size);
	if (r)
		targets_fini(out);
	return r;
}

int target_addresses(struct target *symbols, size_t n)
{
	_cleanup_(freep) char *text = NULL;
	_cleanup_(fclosep) FILE *f = fopen(KALLSYMS_PATH, "re");
	struct kallsyms_line line;
	size_t room = 0, i;

	if (!f)
		return -errno;
	while (getline(&text, &room, f) > 0) {
		if (kallsyms_line_parse(text, &line))
			continue;
		for (i = 0; i < n; i++)
			if (!symbols[i].address && strcmp(line.name, symbols[i].name) == 0)
				symbols[i].address = line.address;
	}
	return 0;
}
