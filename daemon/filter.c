/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

/* include/linux/sched.h; the letters are those of /proc/PID/stat. */
static const struct {
	const char *name;
	const char *word;
	uint32_t bits;
} states[] = {
	{ "S", "sleeping", 0x1 }, { "D", "uninterruptible", 0x2 }, { "T", "stopped", 0x4 },
	{ "t", "traced", 0x8 },	  { "X", "dead", 0x10 },	   { "Z", "zombie", 0x20 },
	{ "P", "parked", 0x40 },  { "I", "idle", 0x402 },
};

int wire_error_set(struct wire_error *error, int r, const char *name, const char *what,
		   const char *format, ...)
{
	char *message = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&message, format, args) < 0)
		message = NULL;
	va_end(args);
	*error = (struct wire_error){
		.name = name,
		.what = what ? strdup(what) : NULL,
		.limit = WIRE_ABSENT,
		.message = message,
	};
	return r;
}

static int filter_add_state(struct filter *filter, const char *text, struct wire_error *error)
{
	unsigned long bits;
	char *end;
	size_t i;

	filter->has_states = true;
	if (strcmp(text, "R") == 0 || strcmp(text, "preempted") == 0) {
		filter->has_preempted = true;
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		if (strcmp(text, states[i].name) != 0 && strcmp(text, states[i].word) != 0)
			continue;
		filter->state_bits |= states[i].bits;
		return 0;
	}
	errno = 0;
	bits = strtoul(text, &end, 0);
	if (text[0] < '0' || text[0] > '9' || *end || errno || bits > STATE_TASK_MASK)
		return wire_error_set(
			error, -EINVAL, "io.stackd.InvalidFilter", "states",
			"%.40s is no task state: R (preempted), S, D, T, t, X, Z, P, I "
			"or a number of state bits up to 0xffff",
			text);
	if (bits == 0)
		filter->has_preempted = true;
	filter->state_bits |= (uint32_t)bits;
	return 0;
}

static int check_ids(const struct wire_ints *ids, const char *field, struct wire_error *error)
{
	size_t i;

	for (i = 0; i < ids->n; i++)
		if (ids->v[i] <= 0 || ids->v[i] > INT32_MAX)
			return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", field,
					      "%lld is no id: a number from 1 to 2147483647",
					      (long long)ids->v[i]);
	return 0;
}

static int check_exclusive(int a, int b, const char *field, const char *text,
			   struct wire_error *error)
{
	if (a == 1 && b == 1)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", field, "%s", text);
	return 0;
}

static int filter_check(const struct wire_filter *wire, struct wire_error *error)
{
	int r = check_ids(&wire->pids, "pids", error);

	if (!r)
		r = check_ids(&wire->tids, "tids", error);
	if (!r)
		r = check_exclusive(wire->user_threads, wire->kernel_threads, "kernel_threads",
				    "user threads only and kernel threads only: one of them",
				    error);
	if (!r)
		r = check_exclusive(wire->user_stacks, wire->kernel_stacks, "kernel_stacks",
				    "user stacks only and kernel stacks only: one of them", error);
	return r;
}

static int filter_times(struct filter *filter, const struct wire_filter *wire,
			struct wire_error *error)
{
	if (wire->min_block_ns != WIRE_ABSENT)
		filter->min_ns = wire->min_block_ns;
	if (wire->max_block_ns != WIRE_ABSENT)
		filter->max_ns = wire->max_block_ns;
	if (filter->min_ns < 0 || filter->max_ns < filter->min_ns)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "max_block_ns",
				      "waits from %lld to %lld ns: the least must not be negative, "
				      "nor above the most",
				      (long long)filter->min_ns, (long long)filter->max_ns);
	return 0;
}

int filter_init(struct filter *filter, const struct wire_filter *wire, struct wire_error *error)
{
	size_t i;
	int r;

	*filter = (struct filter){ .wire = wire, .max_ns = INT64_MAX };
	if (!wire)
		return 0;
	r = filter_check(wire, error);
	if (!r)
		r = filter_times(filter, wire, error);
	for (i = 0; i < wire->states.n && !r; i++)
		r = filter_add_state(filter, wire->states.v[i], error);
	filter->drops_kernel = wire->user_stacks == 1;
	filter->drops_user = wire->kernel_stacks == 1;
	return r;
}

bool filter_selects_threads(const struct filter *filter)
{
	const struct wire_filter *wire = filter->wire;

	return wire && (wire->pids.n || wire->tids.n || wire->comm || wire->cgroup || wire->unit);
}

static bool ints_have(const struct wire_ints *ints, int64_t value)
{
	size_t i;

	for (i = 0; i < ints->n; i++)
		if (ints->v[i] == value)
			return true;
	return ints->n == 0;
}

/* A cgroup and all below it. */
static bool cgroup_is_under(const char *cgroup, const char *top)
{
	size_t n = strlen(top);

	while (n > 0 && top[n - 1] == '/')
		n--;
	return cgroup && strncmp(cgroup, top, n) == 0 && (cgroup[n] == '\0' || cgroup[n] == '/');
}

/* A unit's name is one component of the path; .service is understood as systemctl does. */
static bool cgroup_has_unit(const char *cgroup, const char *unit)
{
	const char *at, *end;
	char name[256];

	snprintf(name, sizeof(name), "%s%s", unit, strchr(unit, '.') ? "" : ".service");
	for (at = cgroup; at && *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, '/');
		if ((size_t)(end - at) == strlen(name) &&
		    strncmp(at, name, (size_t)(end - at)) == 0)
			return true;
	}
	return false;
}

bool filter_has_image(const struct filter *filter, const struct window_image *image,
		      const struct process_info *info)
{
	const struct wire_filter *wire = filter->wire;

	if (!wire)
		return true;
	if (!ints_have(&wire->pids, info->id.pid) || !ints_have(&wire->tids, image->tid))
		return false;
	if (wire->user_threads == 1 && info->is_kernel)
		return false;
	if (wire->kernel_threads == 1 && !info->is_kernel)
		return false;
	if (wire->comm && fnmatch(wire->comm, image->comm, 0) != 0 &&
	    fnmatch(wire->comm, info->comm, 0) != 0)
		return false;
	if (wire->cgroup && !cgroup_is_under(info->cgroup, wire->cgroup))
		return false;
	return !wire->unit || cgroup_has_unit(info->cgroup, wire->unit);
}

bool filter_has_state(const struct filter *filter, uint32_t state)
{
	if (!filter->has_states)
		return true;
	if (state & (STATE_PREEMPTED | STATE_NEW))
		return filter->has_preempted;
	return state & STATE_TASK_MASK & filter->state_bits;
}

const char *state_letter(uint32_t state)
{
	size_t i;

	if (state & (STATE_PREEMPTED | STATE_NEW))
		return "R";
	if ((state & 0x402) == 0x402)
		return "I";
	for (i = 0; i < ARRAY_SIZE(states); i++)
		if (state & states[i].bits)
			return states[i].name;
	return "?";
}
