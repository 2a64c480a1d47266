/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/tracepoints.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "common/base.h"
#include "daemon/probe/kernel_btf.h"

#define TYPE_PREFIX   "btf_trace_"
#define CALLER_PREFIX "__traceiter_"

static const char *const event_dirs[] = {
	"/sys/kernel/tracing/events",
	"/sys/kernel/debug/tracing/events",
};

struct finder {
	const struct target_pattern *pattern;
	const char *events; /* tracefs directory of event categories; NULL: not readable */
	struct targets *out;
};

static const char *events_find(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(event_dirs); i++)
		if (access(event_dirs[i], R_OK | X_OK) == 0)
			return event_dirs[i];
	return NULL;
}

/* True if tracefs has the event `event` in a category that matches the pattern `category`. */
static bool category_has(const char *events, const char *category, const char *event)
{
	_cleanup_(freep) char *path = NULL;
	struct dirent *entry;
	bool is_found = false;
	DIR *dir = opendir(events);

	while (dir && !is_found && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || !target_glob(category, entry->d_name))
			continue;
		freep(&path);
		if (asprintf(&path, "%s/%s/%s", events, entry->d_name, event) < 0)
			path = NULL;
		is_found = path && access(path, F_OK) == 0;
	}
	if (dir)
		closedir(dir);
	return is_found;
}

/*
 * For kernels whose tracefs cannot be read: guesses by the name of an event whether the event
 * belongs to the category in the pattern. An event whose name begins with sched_ counts as one of
 * the category "sched". If the pattern has no wildcard, always true: the pattern then names a
 * single event.
 */
static bool category_begins(const struct target_pattern *pattern, const char *event)
{
	char prefix[128];
	size_t n;

	if (!pattern->regex && !strchr(pattern->name, '*'))
		return true;
	for (n = strcspn(event, "_"); event[n] == '_' && n < sizeof(prefix);
	     n += 1 + strcspn(event + n + 1, "_")) {
		snprintf(prefix, sizeof(prefix), "%.*s", (int)n, event);
		if (target_glob(pattern->scope, prefix))
			return true;
	}
	return target_glob(pattern->scope, event);
}

static bool event_fits(const struct finder *finder, const char *event)
{
	const struct target_pattern *pattern = finder->pattern;

	if (!target_fits(pattern, event))
		return false;
	if (strcmp(pattern->scope, "*") == 0)
		return true;
	return finder->events ? category_has(finder->events, pattern->scope, event)
			      : category_begins(pattern, event);
}

static int types_search(const struct finder *finder, const struct btf *btf, uint32_t first)
{
	uint32_t i, n = btf__type_cnt(btf);
	const struct btf_type *type;
	const char *name;
	int r = 0;

	for (i = first; i < n && !r; i++) {
		type = btf__type_by_id(btf, i);
		name = btf_is_typedef(type) ? btf__name_by_offset(btf, type->name_off) : NULL;
		if (!name || strncmp(name, TYPE_PREFIX, strlen(TYPE_PREFIX)) != 0)
			continue;
		name += strlen(TYPE_PREFIX);
		if (event_fits(finder, name))
			r = targets_add(finder->out, name, 0);
	}
	return r;
}

static int modules_search(const struct finder *finder, struct btf *kernel)
{
	DIR *dir = opendir("/sys/kernel/btf");
	struct dirent *entry;
	struct btf *btf;
	int r = 0;

	while (dir && !r && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "vmlinux") == 0)
			continue;
		btf = btf__load_module_btf(entry->d_name, kernel);
		if (libbpf_get_error(btf))
			continue;
		r = types_search(finder, btf, btf__type_cnt(kernel));
		btf__free(btf);
	}
	if (dir)
		closedir(dir);
	return r;
}

static int kernel_search(const struct finder *finder, char *why, size_t size)
{
	struct btf *kernel;
	int r = kernel_btf_get(&kernel);

	if (r) {
		snprintf(why, size, "the kernel's types cannot be read: %s", strerror(-r));
		return r;
	}
	r = types_search(finder, kernel, 1);
	return r ? r : modules_search(finder, kernel);
}

/*
 * Sets the address of each tracepoint to that of the kernel function that calls the BPF programs
 * attached to the tracepoint. Drops tracepoints without such a function, which are not compiled
 * into the kernel.
 */
static int addresses_set(struct targets *targets)
{
	_cleanup_(freep) struct target *callers = calloc(targets->n + 1, sizeof(*callers));
	size_t i, kept = 0;
	int r = callers ? 0 : -ENOMEM;

	for (i = 0; i < targets->n && !r; i++)
		if (asprintf(&callers[i].name, CALLER_PREFIX "%s", targets->v[i].name) < 0) {
			callers[i].name = NULL;
			r = -ENOMEM;
		}
	if (!r)
		r = target_addresses(callers, targets->n);
	for (i = 0; callers && i < targets->n; i++) {
		free(callers[i].name);
		targets->v[i].address = callers[i].address;
	}
	for (i = 0; i < targets->n; i++) {
		if (targets->v[i].address)
			targets->v[kept++] = targets->v[i];
		else
			free(targets->v[i].name);
	}
	targets->n = kept;
	return r;
}

/*
 * Refuses patterns with the category syscalls, because its events are not tracepoints of their own:
 * perf and tracefs derive them from two real tracepoints, sys_enter and sys_exit.
 */
static int syscalls_refuse(const struct target_pattern *pattern, char *why, size_t size)
{
	if (strcmp(pattern->scope, "syscalls") != 0)
		return 0;
	snprintf(
		why, size,
		"t:syscalls:%.100s is not a real tracepoint: trace t:raw_syscalls:sys_enter, or the "
		"kernel function, as in __x64_sys_openat",
		pattern->name);
	return -EINVAL;
}

int tracepoints_find(const struct target_pattern *pattern, struct targets *out, char *why,
		     size_t size)
{
	struct finder finder = { pattern, events_find(), out };
	int r = syscalls_refuse(pattern, why, size);

	*out = (struct targets){ .kind = TARGET_TRACEPOINT };
	if (r)
		return r;
	kernel_btf_hold();
	r = kernel_search(&finder, why, size);
	kernel_btf_release();
	if (!r)
		r = addresses_set(out);
	if (r)
		targets_fini(out);
	else
		targets_settle(out);
	return r;
}
