/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/window/task_state.h"
#include "proto/wire_copy.h"

/*
 * LIST_MAX: the maximum number of members of a list of texts. NAME_BYTES_MAX: the maximum length of
 * a name or a pattern, in bytes; no name of a thread or a unit is longer. PATH_BYTES_MAX: that of a
 * path. Each is compared with all threads of all windows.
 */
enum { LIST_MAX = 32, NAME_BYTES_MAX = 256, PATH_BYTES_MAX = 4096 };

/* Adds a task state to the set. `field` is the member of the request that has it. */
static int set_add_state(struct filter_set *set, const char *text, const char *field,
			 struct wire_error *error)
{
	unsigned long bits;
	char *end;
	int index;

	set->has_states = true;
	if (strcmp(text, "R") == 0 || strcmp(text, "preempted") == 0) {
		set->has_preempted = true;
		return 0;
	}
	index = task_state_parse(text);
	if (index >= 0) {
		set->states |= 1U << index;
		if ((size_t)index == task_state_index(STATE_FROZEN))
			set->state_bits |= STATE_FROZEN;
		return 0;
	}
	errno = 0;
	bits = strtoul(text, &end, 0);
	if (text[0] < '0' || text[0] > '9' || *end || errno || bits > STATE_TASK_MASK)
		return wire_error_set(
			error, -EINVAL, ERROR_INVALID_FILTER, field,
			"%.40s is no task state: R (preempted), S, D, T, t, X, Z, P, I "
			"or a number of state bits up to 0xffff",
			text);
	if (bits == 0)
		set->has_preempted = true;
	set->state_bits |= (uint32_t)bits;
	return 0;
}

/*
 * Adds the reasons to the set whose word matches the shell pattern `glob`. Returns 0, or -EINVAL
 * with *error filled, which names the word that may be meant.
 */
static int set_add_reasons(struct filter_set *set, const char *glob, const char *field,
			   struct wire_error *error)
{
	char why[WAIT_REASON_REFUSAL_LEN];
	bool has_match = false;
	unsigned int i;

	set->has_reasons = true;
	for (i = 0; i < WAIT_REASON_N; i++) {
		if (fnmatch(glob, wait_reason_word(i), 0) != 0)
			continue;
		set->reasons[i / 64] |= UINT64_C(1) << i % 64;
		has_match = true;
	}
	if (has_match)
		return 0;
	wait_reason_refuse(glob, why);
	return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, field, "%s", why);
}

static int check_ids(const struct int_list *ids, const char *field, struct wire_error *error)
{
	size_t i;

	for (i = 0; i < ids->n; i++)
		if (ids->v[i] <= 0 || ids->v[i] > INT32_MAX)
			return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, field,
					      "%lld is not an id: a number from 1 to 2147483647",
					      (long long)ids->v[i]);
	return 0;
}

static int check_cpus(const struct int_list *cpus, struct wire_error *error)
{
	size_t i;

	for (i = 0; i < cpus->n; i++)
		if (cpus->v[i] < 0 || cpus->v[i] > INT32_MAX)
			return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "cpus",
					      "%lld is not a CPU: a number from 0 on",
					      (long long)cpus->v[i]);
	return 0;
}

static int check_exclusive(int a, int b, const char *field, const char *text,
			   struct wire_error *error)
{
	if (a == 1 && b == 1)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, field, "%s", text);
	return 0;
}

static int filter_check(const struct wire_filter *wire, struct wire_error *error)
{
	int r = check_ids(&wire->pids, "pids", error);

	if (r)
		return r;
	r = check_ids(&wire->tids, "tids", error);
	if (r)
		return r;
	r = check_ids(&wire->not_pids, "not_pids", error);
	if (r)
		return r;
	r = check_exclusive(wire->user_threads, wire->kernel_threads, "kernel_threads",
			    "user threads only and kernel threads only exclude each other", error);
	if (r)
		return r;
	return check_exclusive(wire->user_stacks, wire->kernel_stacks, "kernel_stacks",
			       "user stacks only and kernel stacks only exclude each other", error);
}

static int filter_times(struct filter *filter, const struct wire_filter *wire,
			struct wire_error *error)
{
	if (wire->min_block_ns != WIRE_ABSENT)
		filter->min_ns = wire->min_block_ns;
	if (wire->max_block_ns != WIRE_ABSENT)
		filter->max_ns = wire->max_block_ns;
	if (filter->min_ns < 0 || filter->max_ns < filter->min_ns)
		return wire_error_set(
			error, -EINVAL, ERROR_INVALID_FILTER, "max_block_ns",
			"waits from %lld to %lld ns: the shortest must not be negative, "
			"nor above the longest",
			(long long)filter->min_ns, (long long)filter->max_ns);
	return 0;
}

static int check_length(const char *field, const char *text, size_t max, struct wire_error *error)
{
	if (strlen(text) <= max)
		return 0;
	return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, field,
			      "a name is too long: it has 1 to %zu bytes", max);
}

static int check_texts(const struct wire_filter *wire, struct wire_error *error)
{
	const struct {
		const char *field, *text;
		size_t max_length;
	} texts[] = {
		{ "comm", wire->comm, NAME_BYTES_MAX },
		{ "cgroup", wire->cgroup, PATH_BYTES_MAX },
		{ "unit", wire->unit, NAME_BYTES_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		int r = texts[i].text ? check_length(texts[i].field, texts[i].text,
						     texts[i].max_length, error)
				      : 0;

		if (r)
			return r;
	}
	return 0;
}

/* Checks the lists of texts: each has at most LIST_MAX members, and none is empty. */
static int check_lists(const struct wire_filter *wire, struct wire_error *error)
{
	const struct {
		const char *field;
		const struct wire_strs *list;
		const char *what;
		size_t max_length;
	} lists[] = {
		{ "reasons", &wire->reasons, "reasons", NAME_BYTES_MAX },
		{ "not_reasons", &wire->not_reasons, "reasons", NAME_BYTES_MAX },
		{ "not_states", &wire->not_states, "states", NAME_BYTES_MAX },
		{ "comms", &wire->comms, "names", NAME_BYTES_MAX },
		{ "not_comms", &wire->not_comms, "names", NAME_BYTES_MAX },
		{ "cgroups", &wire->cgroups, "control groups", PATH_BYTES_MAX },
		{ "not_cgroups", &wire->not_cgroups, "control groups", PATH_BYTES_MAX },
		{ "units", &wire->units, "units", NAME_BYTES_MAX },
		{ "not_units", &wire->not_units, "units", NAME_BYTES_MAX },
		{ "functions", &wire->functions, "functions", NAME_BYTES_MAX },
		{ "not_functions", &wire->not_functions, "functions", NAME_BYTES_MAX },
		{ "callers", &wire->callers, "functions", NAME_BYTES_MAX },
	};
	size_t i, k;
	int r;

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		const struct wire_strs *list = lists[i].list;

		if (list->n > LIST_MAX)
			return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, lists[i].field,
					      "%zu %s are too many: at most %d", list->n,
					      lists[i].what, LIST_MAX);
		for (k = 0; k < list->n; k++) {
			if (!list->v[k][0])
				return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER,
						      lists[i].field,
						      "a name is empty: it has 1 to %zu bytes",
						      lists[i].max_length);
			r = check_length(lists[i].field, list->v[k], lists[i].max_length, error);
			if (r)
				return r;
		}
	}
	return 0;
}

/* Fills a set from the states and the reasons of the request. */
static int set_init(struct filter_set *set, const struct wire_strs *states,
		    const struct wire_strs *reasons, bool is_refused, struct wire_error *error)
{
	size_t i;
	int r = 0;

	for (i = 0; i < states->n && !r; i++)
		r = set_add_state(set, states->v[i], is_refused ? "not_states" : "states", error);
	for (i = 0; i < reasons->n && !r; i++)
		r = set_add_reasons(set, reasons->v[i], is_refused ? "not_reasons" : "reasons",
				    error);
	return r;
}

int filter_init(struct filter *filter, const struct wire_filter *wire, struct wire_error *error)
{
	int r;

	*filter = (struct filter){ .wire = wire, .max_ns = INT64_MAX };
	if (!wire)
		return 0;
	filter->drops_kernel = wire->user_stacks == 1;
	filter->drops_user = wire->kernel_stacks == 1;
	r = filter_check(wire, error);
	if (r)
		return r;
	r = filter_times(filter, wire, error);
	if (r)
		return r;
	r = check_texts(wire, error);
	if (r)
		return r;
	r = check_lists(wire, error);
	if (r)
		return r;
	r = set_init(&filter->wanted, &wire->states, &wire->reasons, false, error);
	if (r)
		return r;
	r = set_init(&filter->refused, &wire->not_states, &wire->not_reasons, true, error);
	if (r)
		return r;
	return check_cpus(&wire->cpus, error);
}

/*
 * Copies the characters of a pattern before its first wildcard to `out`. Returns their number. If
 * the pattern has no wildcard, the number includes the terminating NUL.
 */
static uint32_t comm_prefix(const char *glob, char *out)
{
	size_t n = strcspn(glob, "*?[\\");

	if (n > COMM_LEN - 1)
		n = COMM_LEN - 1;
	memcpy(out, glob, n);
	return (uint32_t)(glob[n] ? n : n + 1);
}

/*
 * The BPF programs compare only the beginning of a thread name. Returns true if that is enough to
 * tell whether a name matches the pattern: it has no wildcard, or only a * at its end.
 */
static bool comm_is_prefix(const char *glob)
{
	size_t n = strcspn(glob, "*?[\\");

	return n < COMM_LEN && (!glob[n] || (glob[n] == '*' && !glob[n + 1]));
}

void filter_to_programs(const struct filter *filter, struct session_filter *out)
{
	const struct wire_filter *wire = filter->wire;
	size_t i;

	*out = (struct session_filter){};
	if (!wire)
		return;
	_Static_assert((int)TASK_STATES <= (int)FILTER_STATES, "programs know all states");
	for (i = 0; i < TASK_STATES; i++)
		out->state_order[i] = task_state_bits(i);
	out->states = filter->wanted.states;
	out->state_bits = filter->wanted.state_bits;
	out->has_states = filter->wanted.has_states;
	out->has_preempted = filter->wanted.has_preempted;
	out->max_wait_ns = filter->max_ns == INT64_MAX ? 0 : (uint64_t)filter->max_ns;
	out->user_threads = wire->user_threads == 1;
	out->kernel_threads = wire->kernel_threads == 1;
	out->has_pids = wire->pids.n > 0;
	out->has_tids = wire->tids.n > 0;
	out->has_cpus = wire->cpus.n > 0;
	out->drops_kernel = filter->drops_kernel;
	out->drops_user = filter->drops_user;
	for (i = 0; i < wire->cpus.n; i++)
		if (wire->cpus.v[i] < FILTER_CPUS)
			out->cpus[wire->cpus.v[i] / 64] |= 1ULL << wire->cpus.v[i] % 64;
	if (wire->comm)
		out->comm_len = comm_prefix(wire->comm, out->comm);
	out->cgroups = (wire->cgroup ? 1U << 0 : 0) | (wire->unit ? 1U << 1 : 0);
}

bool filter_is_empty(const struct filter *filter)
{
	return !filter->base && !filter->drops_kernel && !filter->drops_user &&
	       (!filter->wire || wire_filter_is_empty(filter->wire));
}

bool filter_selects_threads(const struct filter *filter)
{
	const struct wire_filter *wire = filter->wire;

	return wire && (wire->pids.n || wire->tids.n || wire->comm || wire->cgroup || wire->unit ||
			wire->comms.n || wire->cgroups.n || wire->units.n);
}

bool filter_selects_functions(const struct filter *filter)
{
	const struct wire_filter *wire = filter->wire;

	return wire && (wire->functions.n || wire->not_functions.n || wire->callers.n);
}

static bool ints_have(const struct int_list *ints, int64_t value)
{
	size_t i;

	for (i = 0; i < ints->n; i++)
		if (ints->v[i] == value)
			return true;
	return ints->n == 0;
}

/* True if the cgroup is `top` itself or lies below it in the hierarchy. */
static bool cgroup_is_under(const char *cgroup, const char *top)
{
	size_t n = strlen(top);

	while (n > 0 && top[n - 1] == '/')
		n--;
	return cgroup && strncmp(cgroup, top, n) == 0 && (cgroup[n] == '\0' || cgroup[n] == '/');
}

/* True if a component of the cgroup's path is the name of the systemd unit. As with systemctl, the
 * name may be given without its suffix .service. */
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

/* True if the name of the thread or of its process matches one of the shell patterns. */
static bool names_have(const struct wire_strs *globs, const struct window_image *image,
		       const struct process_info *info)
{
	size_t i;

	for (i = 0; i < globs->n; i++)
		if (fnmatch(globs->v[i], image->comm, 0) == 0 ||
		    fnmatch(globs->v[i], info->comm, 0) == 0)
			return true;
	return false;
}

/* True if the control group is one of these, or below one of these. */
static bool cgroups_have(const struct wire_strs *cgroups, const char *cgroup)
{
	size_t i;

	for (i = 0; i < cgroups->n; i++)
		if (cgroup_is_under(cgroup, cgroups->v[i]))
			return true;
	return false;
}

static bool units_have(const struct wire_strs *units, const char *cgroup)
{
	size_t i;

	for (i = 0; i < units->n; i++)
		if (cgroup_has_unit(cgroup, units->v[i]))
			return true;
	return false;
}

/* True if the thread has one of the names, control groups and units, of lists that are not empty.
 */
static bool image_is_listed(const struct wire_filter *wire, const struct window_image *image,
			    const struct process_info *info)
{
	return (!wire->comms.n || names_have(&wire->comms, image, info)) &&
	       (!wire->cgroups.n || cgroups_have(&wire->cgroups, info->cgroup)) &&
	       (!wire->units.n || units_have(&wire->units, info->cgroup));
}

/* True if a member not_* of the filter names the thread. `wire` may be NULL. */
static bool image_is_refused(const struct wire_filter *wire, const struct window_image *image,
			     const struct process_info *info)
{
	return wire && ((wire->not_pids.n && ints_have(&wire->not_pids, info->id.pid)) ||
			names_have(&wire->not_comms, image, info) ||
			cgroups_have(&wire->not_cgroups, info->cgroup) ||
			units_have(&wire->not_units, info->cgroup));
}

/*
 * True if the filter selects the thread `image`, but for its members not_*. If any_pid is true,
 * ignores the pids in the filter.
 */
static bool image_matches(const struct filter *filter, const struct window_image *image,
			  const struct process_info *info, bool any_pid)
{
	const struct wire_filter *wire = filter->wire;

	if (filter->base && !image_matches(filter->base, image, info, any_pid))
		return false;
	if (!wire)
		return true;
	if (!any_pid && !ints_have(&wire->pids, info->id.pid))
		return false;
	if (!filter->knows_threads && !ints_have(&wire->tids, image->tid))
		return false;
	if (wire->user_threads == 1 && info->is_kernel)
		return false;
	if (wire->kernel_threads == 1 && !info->is_kernel)
		return false;
	if (wire->comm && !(filter->knows_threads && comm_is_prefix(wire->comm)) &&
	    fnmatch(wire->comm, image->comm, 0) != 0 && fnmatch(wire->comm, info->comm, 0) != 0)
		return false;
	if (!image_is_listed(wire, image, info))
		return false;
	if (filter->knows_cgroup)
		return true;
	if (wire->cgroup && !cgroup_is_under(info->cgroup, wire->cgroup))
		return false;
	return !wire->unit || cgroup_has_unit(info->cgroup, wire->unit);
}

bool filter_has_image(const struct filter *filter, const struct window_image *image,
		      const struct process_info *info)
{
	return image_matches(filter, image, info, false) &&
	       !image_is_refused(filter->wire, image, info);
}

bool filter_excludes_image(const struct filter *filter, const struct window_image *image,
			   const struct process_info *info)
{
	return image_is_refused(filter->wire, image, info) &&
	       image_matches(filter, image, info, false);
}

static int member_compare(const void *x, const void *y)
{
	const struct window_member *a = x, *b = y;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

bool filter_has_member(const struct filter *filter, const struct window *window, uint32_t image,
		       const struct process_info *info, int32_t pid)
{
	const struct window_member wanted = { .image = image, .pid = pid };

	return window->n_members &&
	       bsearch(&wanted, window->members, window->n_members, sizeof(wanted),
		       member_compare) &&
	       image_matches(filter, &window->images[image], info, true) &&
	       !image_is_refused(filter->wire, &window->images[image], info);
}

static bool set_has_state(const struct filter_set *set, uint32_t state)
{
	size_t i;

	if (state & (STATE_PREEMPTED | STATE_NEW))
		return set->has_preempted;
	if (state & STATE_TASK_MASK & set->state_bits)
		return true;
	i = task_state_index(state);
	return i < TASK_STATES && set->states & 1U << i;
}

bool filter_has_state(const struct filter *filter, uint32_t state)
{
	if (filter->base && !filter_has_state(filter->base, state))
		return false;
	if (filter->refused.has_states && set_has_state(&filter->refused, state))
		return false;
	return !filter->wanted.has_states || set_has_state(&filter->wanted, state);
}

bool filter_selects_reasons(const struct filter *filter)
{
	return filter->wanted.has_reasons || filter->refused.has_reasons ||
	       (filter->base && filter_selects_reasons(filter->base));
}

/* False for WAIT_REASON_N, which a word of another version is. */
static bool set_has_reason(const struct filter_set *set, enum wait_reason reason)
{
	return reason < WAIT_REASON_N && set->reasons[reason / 64] >> reason % 64 & 1;
}

bool filter_has_reason(const struct filter *filter, enum wait_reason reason)
{
	if (filter->base && !filter_has_reason(filter->base, reason))
		return false;
	if (filter->refused.has_reasons && set_has_reason(&filter->refused, reason))
		return false;
	return !filter->wanted.has_reasons || set_has_reason(&filter->wanted, reason);
}

bool filter_has_duration(const struct filter *filter, uint64_t ns)
{
	if (filter->base && !filter_has_duration(filter->base, ns))
		return false;
	return ns >= (uint64_t)filter->min_ns && ns <= (uint64_t)filter->max_ns;
}

bool filter_has_shorts(const struct filter *filter)
{
	const struct wire_filter *wire = filter->wire;

	return !filter->wanted.has_states && !filter->wanted.has_reasons && filter->min_ns == 0 &&
	       !(wire && (wire->functions.n || wire->callers.n)) &&
	       (!filter->base || filter_has_shorts(filter->base));
}

bool filter_has_all_shorts(const struct filter *filter)
{
	return filter_has_shorts(filter) && filter->max_ns == INT64_MAX &&
	       !filter->refused.has_states && !filter->refused.has_reasons &&
	       !(filter->wire && filter->wire->not_functions.n) &&
	       (!filter->base || filter_has_all_shorts(filter->base));
}

/*
 * If the waits of a bucket are too short or too long for the filter, sets the bucket to 0. Returns
 * the share of the total wait time that is left in the other buckets, on the assumption that each
 * wait has the middle length of its bucket.
 */
static double buckets_limit(const struct filter *filter, uint64_t *buckets)
{
	unsigned int low = wait_bucket((uint64_t)filter->min_ns), i;
	unsigned int high = wait_bucket((uint64_t)filter->max_ns);
	double inside = 0, all = 0, weight;

	for (i = 0; i < WAIT_BUCKETS; i++) {
		weight = (double)buckets[i] * (i ? 1.5 * (double)wait_bucket_least_ns(i) : 512);
		all += weight;
		if (i < low || i > high)
			buckets[i] = 0;
		else
			inside += weight;
	}
	return all > 0 ? inside / all : 0;
}

/*
 * Reduces all times in `sums` by the same factor, as an estimate of the waits that the filter
 * selects. The longest wait makes up max_time of them. The reduced sum of blocked_ns and
 * runnable_ns is `share` times the time that all other waits took. If with_max is true, it also
 * includes max_time.
 */
static void sums_scale(struct filter_sums *sums, uint64_t max_time, double share, bool with_max)
{
	uint64_t all = sums->blocked_ns + sums->runnable_ns;
	uint64_t others = all > max_time ? all - max_time : 0;
	double ns = (double)others * share + (with_max ? (double)max_time : 0);

	if ((share >= 1 && with_max) || ns >= (double)all)
		return;
#define SCALE(member) sums->member = (uint64_t)((double)sums->member * (ns / (double)all));
	WAIT_SHARES(SCALE)
#undef SCALE
}

bool filter_has_whole_row(const struct filter *filter, uint64_t max_ns)
{
	return filter->min_ns == 0 && max_ns <= (uint64_t)filter->max_ns;
}

/*
 * Returns how many waits the longest one of a row stands for: several if it was picked at random
 * from waits shorter than stands_ns.
 */
static uint64_t max_weight(const struct filter_sums *sums)
{
	uint64_t in_bucket = sums->buckets[wait_bucket(sums->max_ns)], weight = 1;

	if (sums->stands_ns > sums->max_ns && sums->max_ns)
		weight = (sums->stands_ns + sums->max_ns / 2) / sums->max_ns;
	return weight < in_bucket ? weight : in_bucket;
}

bool filter_row(const struct filter *filter, struct filter_sums *sums)
{
	bool with_max = filter_has_duration(filter, sums->max_ns);
	unsigned int top = wait_bucket(sums->max_ns), i;
	uint64_t max_time = sums->stands_ns > sums->max_ns ? sums->stands_ns : sums->max_ns;
	uint64_t weight = max_weight(sums);
	double share;

	if (filter_has_whole_row(filter, sums->max_ns))
		return true;
	if (sums->max_ns < (uint64_t)filter->min_ns)
		return false;
	if (!with_max && sums->stands_ns > sums->max_ns &&
	    sums->blocked_ns + sums->runnable_ns <= sums->stands_ns)
		return false;
	sums->buckets[top] -= weight;
	share = sums->count > (weight ? weight : 1) ? buckets_limit(filter, sums->buckets)
						    : with_max;
	sums->is_estimate = share > 0 && share < 1;
	sums_scale(sums, max_time, share, with_max);
	if (with_max)
		sums->buckets[top] += weight ? weight : 1;
	else
		sums->max_ns = 0;
	sums->has_max = with_max;
	for (sums->count = 0, i = 0; i < WAIT_BUCKETS; i++) {
		sums->count += sums->buckets[i];
		if (!with_max && sums->buckets[i])
			sums->max_ns = wait_bucket_least_ns(i);
	}
	return sums->count > 0;
}
