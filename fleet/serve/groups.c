/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/serve/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/base.h"
#include "common/pool_name.h"
#include "common/text.h"
#include "common/wait_reason.h"
#include "daemon/window/task_state.h"
#include "fleet/base/tsv.h"

/* The bits of a task state that tell killable waits from other uninterruptible ones. */
enum { TASK_KILLABLE = 0x102 };

#define BIT(field) (1U << (field))

/* A process of one host. */
#define PROCESS                                                                 \
	(BIT(GROUP_FIELD_HOST) | BIT(GROUP_FIELD_BOOT) | BIT(GROUP_FIELD_PID) | \
	 BIT(GROUP_FIELD_PSTART))
/* A stack, and the state of the waits. */
#define STACK                                                                         \
	(BIT(GROUP_FIELD_COMM) | BIT(GROUP_FIELD_STATE) | BIT(GROUP_FIELD_KEY_BITS) | \
	 BIT(GROUP_FIELD_REASON) | BIT(GROUP_FIELD_NAME) | BIT(GROUP_FIELD_KIND) |    \
	 BIT(GROUP_FIELD_KSTACK) | BIT(GROUP_FIELD_USTACK))

bool groups_are_of_all_hosts(const struct groups_question *question)
{
	return (question->by == GROUPS_BY_STACK || question->by == GROUPS_BY_LINE) &&
	       !question->is_one_host;
}

/* Returns which fields the filter has to see. */
static unsigned int filter_fields(const struct groups_question *question)
{
	const struct wire_filter *wire = question->filter.wire;
	unsigned int fields = 0;

	if (!wire)
		return 0;
	if (wire->comm || wire->comms.n || wire->not_comms.n)
		fields |= BIT(GROUP_FIELD_PCOMM) | BIT(GROUP_FIELD_COMM);
	if (wire->cgroup || wire->unit || wire->cgroups.n || wire->units.n || wire->not_cgroups.n ||
	    wire->not_units.n)
		fields |= BIT(GROUP_FIELD_CGROUP);
	if (wire->states.n || wire->not_states.n)
		fields |= BIT(GROUP_FIELD_STATE) | BIT(GROUP_FIELD_KEY_BITS);
	if (wire->reasons.n || wire->not_reasons.n)
		fields |= BIT(GROUP_FIELD_REASON);
	if (wire->user_threads == 1 || wire->kernel_threads == 1)
		fields |= BIT(GROUP_FIELD_KERNEL);
	return fields;
}

/* True if a row may have waits for several reasons, of which it tells the times. */
static bool has_times_by_reason(const struct groups_question *question)
{
	return !question->is_sampled &&
	       (question->by == GROUPS_BY_PROCESS ||
		(question->by == GROUPS_BY_NAME && question->name != GROUP_BY_REASON));
}

/* Returns which fields make up the key of a row. */
static unsigned int key_fields(const struct groups_question *question)
{
	unsigned int fields = filter_fields(question) | BIT(GROUP_FIELD_IDLE);

	/* Rows for several reasons are merged here, with the time of each. */
	if (has_times_by_reason(question))
		fields |= BIT(GROUP_FIELD_REASON);
	if (question->folds_own)
		fields |= BIT(GROUP_FIELD_OWN);
	switch (question->by) {
	case GROUPS_BY_HOST:
		return fields | BIT(GROUP_FIELD_HOST);
	case GROUPS_BY_LINE:
		return fields | (question->is_one_host ? 0 : BIT(GROUP_FIELD_EXE)) |
		       BIT(GROUP_FIELD_PCOMM) | BIT(GROUP_FIELD_KERNEL) | BIT(GROUP_FIELD_KIND) |
		       BIT(GROUP_FIELD_COMM) | BIT(GROUP_FIELD_REASON) | BIT(GROUP_FIELD_NAME);
	case GROUPS_BY_PROCESS:
		return fields | PROCESS | BIT(GROUP_FIELD_PCOMM) | BIT(GROUP_FIELD_KIND);
	case GROUPS_BY_STACK:
		return fields | STACK |
		       (question->is_one_host ? PROCESS
					      : BIT(GROUP_FIELD_PCOMM) | BIT(GROUP_FIELD_EXE) |
							BIT(GROUP_FIELD_KERNEL));
	case GROUPS_BY_NAME:
		break;
	}
	if (question->name == GROUP_BY_COMM)
		return fields | BIT(GROUP_FIELD_COMM);
	if (group_by_is_of_cgroup(question->name))
		return fields | BIT(GROUP_FIELD_CGROUP);
	return fields | (question->name == GROUP_BY_REASON ? BIT(GROUP_FIELD_REASON)
							   : BIT(GROUP_FIELD_NAME));
}

/* Returns the expression of a field that may be part of a key. */
static const char *key_expression(const struct groups_question *question, enum group_field field,
				  bool is_whole)
{
	static const char *const plain[GROUP_FIELD_KEYS] = {
		[GROUP_FIELD_HOST] = "host",	 [GROUP_FIELD_BOOT] = "boot",
		[GROUP_FIELD_PID] = "pid",	 [GROUP_FIELD_PSTART] = "pstart",
		[GROUP_FIELD_PCOMM] = "pcomm",	 [GROUP_FIELD_EXE] = "exe",
		[GROUP_FIELD_CGROUP] = "cgroup", [GROUP_FIELD_COMM] = "comm",
		[GROUP_FIELD_REASON] = "reason", [GROUP_FIELD_KERNEL] = "kernel",
		[GROUP_FIELD_IDLE] = "idle",	 [GROUP_FIELD_KIND] = "kind",
		[GROUP_FIELD_KSTACK] = "kstack", [GROUP_FIELD_USTACK] = "ustack",
		[GROUP_FIELD_OWN] = "own",
	};

	/* Waits that are only counted have rows of their own in any case, as in the daemon. */
	if (field == GROUP_FIELD_STATE)
		return is_whole ? "toString(state)" : "if(state = '-', '-', '')";
	if (field == GROUP_FIELD_KEY_BITS)
		return filter_fields(question) & BIT(GROUP_FIELD_STATE) ? "state_bits"
									: "bitAnd(state_bits, 258)";
	/* What was not sent row by row is summed up by control group. */
	if (field == GROUP_FIELD_NAME)
		return question->by == GROUPS_BY_STACK	   ? "if(kind = 3, toString(cgroup), '')"
		       : question->name == GROUP_BY_MODULE ? "module"
							   : "function";
	if (field == GROUP_FIELD_KSTACK && question->filter.drops_kernel)
		return "toUInt64(0)";
	if (field == GROUP_FIELD_USTACK && question->filter.drops_user)
		return "toUInt64(0)";
	return plain[field];
}

/* True if the field describes a row of which it is no part of the key: any value of it will do. */
static bool is_descriptive(enum group_field field)
{
	return field <= GROUP_FIELD_COMM || field == GROUP_FIELD_REASON ||
	       field == GROUP_FIELD_KERNEL;
}

static void put_key(struct text *sql, const struct groups_question *question,
		    enum group_field field, unsigned int fields)
{
	bool is_key = fields & BIT(field) || field == GROUP_FIELD_STATE;
	const char *expression = key_expression(question, field, fields & BIT(GROUP_FIELD_STATE));

	if (!is_key && !is_descriptive(field)) {
		text_put_str(sql, field == GROUP_FIELD_NAME ? "''" : "0");
		return;
	}
	if (!is_key)
		text_put_str(sql, "any(");
	text_put_str(sql, expression);
	if (!is_key)
		text_put_str(sql, ")");
}

void groups_put_select(struct text *sql, const struct groups_question *question, const char *last)
{
	unsigned int fields = key_fields(question);
	enum group_field field;

	text_put_str(sql, "SELECT ");
	for (field = 0; field < GROUP_FIELD_KEYS; field++) {
		put_key(sql, question, field, fields);
		text_put_str(sql, ", ");
	}
	text_put_str(sql, "groupBitOr(state_bits), max(state = 'R'), max(exited), max(estimated), "
			  "sum(count), sum(total_ns), sum(blocked_ns), sum(runnable_ns), "
			  "sum(throttled_ns), sum(sampled), sum(sampled_ns), sumIf(open, ");
	text_put_str(sql, last);
	text_put_str(sql, "), sumIf(open_ns, ");
	text_put_str(sql, last);
	text_put_str(sql, "), sumIf(unseen, ");
	text_put_str(sql, last);
	text_put_str(sql, "), max(max_ns), argMax(max_end, max_ns), argMax(max_tid, max_ns), "
			  "sum(of_rows), max(folded), ");
	text_put_str(sql, groups_are_of_all_hosts(question) || question->by == GROUPS_BY_LINE
				  ? "uniqExact(host, boot, pid, pstart)"
				  : "toUInt64(0)");
	text_put_str(sql, ", argMax(max_comm, max_ns), sumForEach(buckets)");
}

void groups_put_group_by(struct text *sql, const struct groups_question *question)
{
	unsigned int fields = key_fields(question);
	enum group_field field;

	text_put_str(sql, " GROUP BY ");
	text_put_str(sql,
		     key_expression(question, GROUP_FIELD_STATE, fields & BIT(GROUP_FIELD_STATE)));
	for (field = 0; field < GROUP_FIELD_KEYS; field++) {
		if (!(fields & BIT(field)) || field == GROUP_FIELD_STATE)
			continue;
		text_put_str(sql, ", ");
		text_put_str(sql, key_expression(question, field, true));
	}
}

static void put_pids(struct text *sql, const char *condition, const struct int_list *pids)
{
	size_t i;

	if (!pids->n)
		return;
	text_put_str(sql, condition);
	for (i = 0; i < pids->n; i++) {
		text_put_str(sql, i ? ", " : "");
		text_put_int(sql, pids->v[i]);
	}
	text_put_str(sql, ")");
}

void groups_put_filter(struct text *sql, const struct groups_question *question)
{
	const struct wire_filter *wire = question->filter.wire;

	if (!wire)
		return;
	put_pids(sql, " AND pid IN (", &wire->pids);
	put_pids(sql, " AND pid NOT IN (", &wire->not_pids);
}

/* Returns a number, or the greatest that the wire has. A host that lies must not end an answer. */
static int64_t limited(uint64_t value)
{
	return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

/* Reads the fields that are numbers, and refers to those that are texts. Returns 0 or -EPROTO. */
static int group_read(char **fields, struct group *group)
{
	int64_t kernel, idle, own, preempted, exited, estimated, bits;
	const struct {
		enum group_field field;
		int64_t *to;
	} numbers[] = {
		{ GROUP_FIELD_PID, &group->pid },
		{ GROUP_FIELD_PSTART, &group->pstart },
		{ GROUP_FIELD_KEY_BITS, &bits },
		{ GROUP_FIELD_KERNEL, &kernel },
		{ GROUP_FIELD_IDLE, &idle },
		{ GROUP_FIELD_KIND, &group->kind },
		{ GROUP_FIELD_OWN, &own },
		{ GROUP_FIELD_STATE_BITS, &group->state_bits },
		{ GROUP_FIELD_PREEMPTED, &preempted },
		{ GROUP_FIELD_EXITED, &exited },
		{ GROUP_FIELD_ESTIMATED, &estimated },
		{ GROUP_FIELD_COUNT, &group->count },
		{ GROUP_FIELD_TOTAL, &group->total_ns },
		{ GROUP_FIELD_BLOCKED, &group->blocked_ns },
		{ GROUP_FIELD_RUNNABLE, &group->runnable_ns },
		{ GROUP_FIELD_THROTTLED, &group->throttled_ns },
		{ GROUP_FIELD_SAMPLED, &group->sampled },
		{ GROUP_FIELD_SAMPLED_NS, &group->sampled_ns },
		{ GROUP_FIELD_OPEN, &group->open },
		{ GROUP_FIELD_OPEN_NS, &group->open_ns },
		{ GROUP_FIELD_UNSEEN, &group->unseen },
		{ GROUP_FIELD_MAX, &group->max_ns },
		{ GROUP_FIELD_MAX_END, &group->max_end },
		{ GROUP_FIELD_MAX_TID, &group->max_tid },
		{ GROUP_FIELD_OF_ROWS, &group->of_rows },
		{ GROUP_FIELD_FOLDED, &group->folded },
		{ GROUP_FIELD_PROCESSES, &group->processes },
	};
	uint64_t value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (tsv_uint(fields[numbers[i].field], &value))
			return -EPROTO;
		*numbers[i].to = limited(value);
	}
	if (tsv_uint(fields[GROUP_FIELD_KSTACK], &group->kstack) ||
	    tsv_uint(fields[GROUP_FIELD_USTACK], &group->ustack))
		return -EPROTO;
	group->kernel = kernel;
	group->idle = idle;
	group->own = own;
	group->has_preempted = preempted;
	group->exited = exited;
	group->estimated = estimated;
	group->host = tsv_text(fields[GROUP_FIELD_HOST]);
	group->boot = tsv_text(fields[GROUP_FIELD_BOOT]);
	group->pcomm = tsv_text(fields[GROUP_FIELD_PCOMM]);
	group->exe = tsv_text(fields[GROUP_FIELD_EXE]);
	group->cgroup = tsv_text(fields[GROUP_FIELD_CGROUP]);
	group->comm = tsv_text(fields[GROUP_FIELD_COMM]);
	group->state = tsv_text(fields[GROUP_FIELD_STATE]);
	group->reason = tsv_text(fields[GROUP_FIELD_REASON]);
	group->name = tsv_text(fields[GROUP_FIELD_NAME]);
	group->max_comm = tsv_text(fields[GROUP_FIELD_MAX_COMM]);
	return 0;
}

/* Adds the numbers of an array such as "[0,2,1]" to the buckets. Returns 0 or -EPROTO. */
static int buckets_read(const char *field, int64_t *buckets)
{
	size_t i = 0;
	char *end;

	if (*field++ != '[')
		return -EPROTO;
	while (*field >= '0' && *field <= '9' && i < WAIT_BUCKETS) {
		sum_add(&buckets[i++], limited(strtoull(field, &end, 10)));
		field = *end == ',' ? end + 1 : end;
	}
	return strcmp(field, "]") == 0 ? 0 : -EPROTO;
}

static bool state_passes(const struct filter *filter, const struct group *group)
{
	if (strcmp(group->state, "R") != 0)
		return filter_has_state(filter, (uint32_t)group->state_bits);
	if (filter->refused.has_states && filter->refused.has_preempted)
		return false;
	return !filter->wanted.has_states || filter->wanted.has_preempted;
}

/* True if the rules of the daemon's filter let the threads of the group pass. */
static bool filter_has_threads(const struct filter *filter, const struct group *group)
{
	struct window_image image = {};
	struct process_info info = {
		.id.pid = (int32_t)group->pid,
		.is_kernel = group->kernel,
		.cgroup = group->cgroup[0] ? group->cgroup : NULL,
	};

	if (!filter->wire)
		return true;
	strncpy(image.comm, group->comm, sizeof(image.comm) - 1);
	strncpy(info.comm, group->pcomm, sizeof(info.comm) - 1);
	return filter_has_image(filter, &image, &info);
}

/* True if they let the waits or samples of the group pass, whose threads pass. */
static bool filter_has_row(const struct filter *filter, const struct group *group)
{
	if (!filter->wire)
		return true;
	if (strcmp(group->state, "-") == 0)
		return filter_has_shorts(filter);
	if (filter->wire->states.n || filter->wire->not_states.n)
		if (!state_passes(filter, group))
			return false;
	return !filter_selects_reasons(filter) ||
	       filter_has_reason(filter, group->reason[0] ? wait_reason_find(group->reason)
							  : REASON_UNKNOWN);
}

/* Adds the time that a function has; those with the least time are forgotten, as in the daemon. */
static void function_add(struct group *group, const char *function, int64_t ns)
{
	size_t i, least = 0;
	int64_t less;

	for (i = 0; i < GROUP_FUNCTIONS; i++) {
		if (group->functions[i] && strcmp(group->functions[i], function) == 0) {
			sum_add(&group->function_ns[i], ns);
			return;
		}
		if (group->function_ns[i] < group->function_ns[least])
			least = i;
	}
	less = group->function_ns[least] < ns ? group->function_ns[least] : ns;
	for (i = 0; i < GROUP_FUNCTIONS; i++)
		group->function_ns[i] -= less;
	if (ns == less)
		return;
	group->functions[least] = function;
	group->function_ns[least] = ns - less;
}

const char *groups_line_function(const struct group *group)
{
	size_t i, most = 0;

	for (i = 1; i < GROUP_FUNCTIONS; i++)
		if (group->function_ns[i] > group->function_ns[most])
			most = i;
	return group->function_ns[most] > 0 && group->function_ns[most] >= group->total_ns / 10
		       ? group->functions[most]
		       : NULL;
}

/*
 * A wait for a lock is urgent if it is as long as this, in a row with more than one in URGENT_PART
 * parts of the blocked time. The one with the longest wait is, too, if that is as long as
 * URGENT_ALONE_NS: as in daemon/query/snapshot_rows.c.
 */
#define URGENT_LOCK_NS	NS_PER_S
#define URGENT_ALONE_NS (5 * NS_PER_S)
enum { URGENT_PART = 32 };

static bool is_long_lock(const struct group *group, int64_t least_ns)
{
	return group->is_line && !group->idle && !group->own && group->reason[0] &&
	       group->max_ns >= least_ns && wait_reason_is_lock(wait_reason_find(group->reason));
}

void groups_mark_urgent(struct group **groups, size_t n)
{
	struct group *alone = NULL;
	int64_t blocked_ns = 0;

	for (size_t i = 0; i < n; i++)
		if (!groups[i]->idle)
			sum_add(&blocked_ns, groups[i]->blocked_ns);
	for (size_t i = 0; i < n; i++) {
		groups[i]->is_urgent = is_long_lock(groups[i], URGENT_LOCK_NS) &&
				       groups[i]->blocked_ns > blocked_ns / URGENT_PART;
		if (is_long_lock(groups[i], URGENT_ALONE_NS) &&
		    (!alone || groups[i]->max_ns > alone->max_ns))
			alone = groups[i];
	}
	if (alone)
		alone->is_urgent = true;
}

/* Sets what a row by line is called: the name of its threads, without digits, and the function. */
static int group_set_line(const struct groups *groups, struct group *group)
{
	char comm[COMM_LEN + 1] = {};

	group->is_line = true;
	if (group->name[0])
		function_add(group, group->name, group->total_ns);
	group->name = "";
	if (strcmp(group->comm, group->pcomm) == 0 && !group->kernel)
		return 0;
	pool_name(group->comm, comm, COMM_LEN);
	group->comm = arena_strdup(groups->arena, comm);
	return group->comm ? 0 : -ENOMEM;
}

/* Sets the name of a row by name. Returns 0 or -ENOMEM. */
static int group_set_name(const struct groups *groups, struct group *group)
{
	const struct groups_question *question = groups->question;
	char name[GROUP_CGROUP_NAME_MAX];

	if (question->by == GROUPS_BY_LINE)
		return group_set_line(groups, group);
	if (question->by == GROUPS_BY_HOST)
		group->name = group->host;
	if (question->by != GROUPS_BY_NAME)
		return 0;
	if (question->name == GROUP_BY_COMM)
		group->name = group->comm;
	else if (question->name == GROUP_BY_REASON)
		group->name = group->reason;
	else if (group_by_is_of_cgroup(question->name)) {
		group_cgroup_name(question->name, group->cgroup[0] ? group->cgroup : NULL, name);
		group->name = arena_strdup(groups->arena, name);
	}
	return group->name ? 0 : -ENOMEM;
}

/*
 * Notes the time of the group's reason, if the row that it becomes a part of may have several.
 * Waits that are only counted have none, as in the daemon. Returns 0 or -ENOMEM.
 */
static int group_set_reason(struct groups *groups, struct group *group)
{
	enum wait_reason reason = wait_reason_find(group->reason);

	if (!has_times_by_reason(groups->question) || group->own || strcmp(group->state, "-") == 0)
		return 0;
	return reason_times_add(&group->reasons, reason < WAIT_REASON_N ? reason : REASON_UNKNOWN,
				(uint64_t)group->total_ns, &groups->spare_reasons, groups->arena);
}

static void put_part(struct text *key, const char *part)
{
	text_put(key, part, strlen(part) + 1);
}

static void put_number(struct text *key, uint64_t number)
{
	text_put(key, (const char *)&number, sizeof(number));
}

/* True if each function has a line of its own, as in the daemon if the filter names processes. */
static bool has_line_functions(const struct groups_question *question)
{
	const struct wire_filter *wire = question->filter.wire;

	return wire && (wire->pids.n || wire->comm || wire->comms.n);
}

/* Appends what tells a row by line from others. */
static void group_put_line(const struct groups_question *question, const struct group *group,
			   struct text *key)
{
	/* Threads of the kernel, such as kworker/0:1, are a process each. */
	if (!group->kernel)
		put_part(key, group->pcomm);
	if (!question->is_one_host)
		put_part(key, group->exe);
	put_number(key, group->kernel);
	put_number(key, group->kind == KIND_REST);
	put_part(key, group->comm);
	put_part(key, group->reason);
	if (has_line_functions(question))
		put_part(key, group->functions[0] ? group->functions[0] : "");
}

/*
 * Appends what tells the group from others. Parts end with a NUL, which no text has, and the whole
 * is filled up to words.
 */
static void group_put_key(const struct groups_question *question, const struct group *group,
			  struct text *key)
{
	/* One row says what stackd did: also its short waits are in it. */
	bool is_short = !group->own && strcmp(group->state, "-") == 0;

	put_number(key,
		   (uint64_t)group->idle | (uint64_t)group->own << 1 | (uint64_t)is_short << 2);
	if (group->own)
		return;
	if (question->by == GROUPS_BY_PROCESS ||
	    (question->is_one_host && question->by != GROUPS_BY_LINE)) {
		put_part(key, question->by == GROUPS_BY_NAME ? "" : group->host);
		put_part(key, question->by == GROUPS_BY_NAME ? "" : group->boot);
	}
	if (question->by == GROUPS_BY_HOST || question->by == GROUPS_BY_NAME) {
		put_part(key, group->name);
	} else if (question->by == GROUPS_BY_LINE) {
		group_put_line(question, group, key);
	} else if (question->by == GROUPS_BY_PROCESS || question->is_one_host) {
		put_number(key, (uint64_t)group->pid);
		put_number(key, (uint64_t)group->pstart);
		put_number(key, group->kind == KIND_REST);
		if (question->by == GROUPS_BY_PROCESS)
			put_part(key, group->pcomm);
	} else {
		put_part(key, group->pcomm);
		put_part(key, group->exe);
		put_number(key, group->kernel);
	}
	if (question->by == GROUPS_BY_STACK) {
		put_part(key, group->comm);
		put_part(key, group->state);
		put_part(key, group->reason);
		put_part(key, group->name);
		put_number(key, (group->state_bits & TASK_KILLABLE) == TASK_KILLABLE);
		put_number(key, (uint64_t)group->kind);
		put_number(key, group->kstack);
		put_number(key, group->ustack);
	}
	text_put(key, "\0\0\0\0\0\0\0", -key->len % sizeof(uint64_t));
}

/* Copies the function of a row by line to the arena. Returns 0 or -ENOMEM. */
static int group_keep_function(struct arena *arena, struct group *group)
{
	if (!group->functions[0])
		return 0;
	group->functions[0] = arena_strdup(arena, group->functions[0]);
	return group->functions[0] ? 0 : -ENOMEM;
}

/* Copies the texts of a group to the arena. Returns 0 or -ENOMEM. */
static int group_keep(struct arena *arena, struct group *group)
{
	const char **const texts[] = {
		&group->host, &group->boot,  &group->pcomm,  &group->exe,  &group->cgroup,
		&group->comm, &group->state, &group->reason, &group->name, &group->max_comm,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		*texts[i] = arena_strdup(arena, *texts[i]);
		if (!*texts[i])
			return -ENOMEM;
	}
	return group_keep_function(arena, group);
}

/*
 * Merges the numbers of processes. Two groups of a line may have processes in common, so that only
 * the greater number is known for certain; two processes if these are not the same.
 */
static void processes_merge(struct group *sum, const struct group *group)
{
	bool differs = sum->pid != group->pid || sum->pstart != group->pstart;

	if (!group->is_line) {
		sum_add(&sum->processes, group->processes);
		return;
	}
	if (group->processes > sum->processes)
		sum->processes = group->processes;
	if (differs && sum->processes < 2)
		sum->processes = 2;
}

/*
 * Adds the sums of a group to another one. max_comm and the functions have to live as long as the
 * arena.
 */
static void group_sum(struct group *sum, struct group *group, struct reason_time **spare)
{
	size_t i;

	sum->has_preempted |= group->has_preempted;
	sum->exited &= group->exited;
	sum->estimated |= group->estimated;
	sum->state_bits |= group->state_bits;
	sum_add(&sum->count, group->count);
	sum_add(&sum->total_ns, group->total_ns);
	sum_add(&sum->blocked_ns, group->blocked_ns);
	sum_add(&sum->runnable_ns, group->runnable_ns);
	sum_add(&sum->throttled_ns, group->throttled_ns);
	sum_add(&sum->sampled, group->sampled);
	sum_add(&sum->sampled_ns, group->sampled_ns);
	sum_add(&sum->open, group->open);
	sum_add(&sum->open_ns, group->open_ns);
	sum_add(&sum->unseen, group->unseen);
	sum_add(&sum->of_rows, group->of_rows);
	processes_merge(sum, group);
	if (group->folded > sum->folded)
		sum->folded = group->folded;
	if (group->max_ns > sum->max_ns || !sum->max_tid) {
		sum->max_ns = group->max_ns;
		sum->max_end = group->max_end;
		sum->max_tid = group->max_tid;
		sum->max_comm = group->max_comm;
	}
	for (i = 0; i < WAIT_BUCKETS; i++)
		sum_add(&sum->buckets[i], group->buckets[i]);
	for (i = 0; i < GROUP_FUNCTIONS; i++)
		if (group->functions[i])
			function_add(sum, group->functions[i], group->function_ns[i]);
	reason_times_move(&sum->reasons, &group->reasons, spare);
}

/* Adds a new group with this key. Returns 0, -E2BIG or -ENOMEM. */
static int group_new(struct groups *groups, const struct text *key, const struct group *from)
{
	struct group *group;

	if ((groups->n_all ? *groups->n_all : groups->n) >= GROUPS_MAX)
		return -E2BIG;
	group = arena_alloc(groups->arena, sizeof(*group));
	if (!group)
		return -ENOMEM;
	*group = *from;
	group->key = arena_alloc(groups->arena, key->len);
	if (!group->key || group_keep(groups->arena, group))
		return -ENOMEM;
	memcpy(group->key, key->data, key->len);
	HASH_ADD_KEYPTR(hh, groups->table, group->key, key->len, group);
	if (!HASH_HAS(group))
		return -ENOMEM;
	groups->n++;
	if (groups->n_all)
		++*groups->n_all;
	return 0;
}

int groups_add(struct groups *groups, char **fields, size_t n)
{
	const struct filter *filter = &groups->question->filter;
	_cleanup_(text_fini) struct text key = {};
	struct group group = {}, *found;
	int r = n == GROUP_FIELDS ? group_read(fields, &group) : -EPROTO;

	if (r)
		return r;
	r = buckets_read(fields[GROUP_FIELD_BUCKETS], group.buckets);
	if (r || !filter_has_threads(filter, &group))
		return r;
	groups->has_threads = true;
	if (!filter_has_row(filter, &group))
		return 0;
	if (group.own)
		group.state = "";
	r = group_set_name(groups, &group);
	if (r)
		return r;
	r = group_set_reason(groups, &group);
	if (r)
		return r;
	text_init(&key, SIZE_MAX);
	group_put_key(groups->question, &group, &key);
	if (key.error)
		return key.error;
	HASH_FIND(hh, groups->table, key.data, key.len, found);
	if (!found)
		return group_new(groups, &key, &group);
	if (group.max_ns > found->max_ns || !found->max_tid)
		group.max_comm = arena_strdup(groups->arena, group.max_comm);
	if (!group.max_comm || group_keep_function(groups->arena, &group))
		return -ENOMEM;
	group_sum(found, &group, &groups->spare_reasons);
	return 0;
}

int groups_merge(struct groups *groups, struct groups *from)
{
	struct group *group, *next, *found;
	int r = 0;

	groups->has_threads |= from->has_threads;
	HASH_ITER (hh, from->table, group, next) {
		size_t len = group->hh.keylen;

		HASH_DEL(from->table, group);
		HASH_FIND(hh, groups->table, group->key, len, found);
		if (found) {
			group_sum(found, group, &groups->spare_reasons);
			continue;
		}
		HASH_ADD_KEYPTR(hh, groups->table, group->key, len, group);
		if (!HASH_HAS(group))
			r = -ENOMEM;
		else if (++groups->n > GROUPS_MAX)
			r = -E2BIG;
		if (r)
			break;
	}
	from->n = 0;
	return r;
}

int groups_by_total(const void *x, const void *y)
{
	const struct group *a = *(struct group *const *)x, *b = *(struct group *const *)y;

	return groups_by_place(a, b)
		?: (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns)
		?: strcmp(a->name, b->name)
		?: strcmp(a->host, b->host)
		?: (a->pid > b->pid) - (a->pid < b->pid)
		?: strcmp(a->comm, b->comm)
		?: (a->kstack > b->kstack) - (a->kstack < b->kstack)
		?: (a->ustack > b->ustack) - (a->ustack < b->ustack);
}

static int by_max(const void *x, const void *y)
{
	const struct group *a = *(struct group *const *)x, *b = *(struct group *const *)y;

	return groups_by_place(a, b)
		?: (a->max_ns < b->max_ns) - (a->max_ns > b->max_ns)
		?: groups_by_total(x, y);
}

static int by_count(const void *x, const void *y)
{
	const struct group *a = *(struct group *const *)x, *b = *(struct group *const *)y;

	return groups_by_place(a, b)
		?: (a->count < b->count) - (a->count > b->count)
		?: groups_by_total(x, y);
}

enum { PLACE_BUSY, PLACE_IDLE, PLACE_SMALL };

/*
 * Sets the places of groups, as the daemon does: idle ones come behind the others, but before those
 * that have less than a hundredth of the time that is not idle.
 */
static void groups_place(const struct groups_question *question, struct group **groups, size_t n)
{
	int64_t busy_ns = 0;

	if (!question->has_idle_last)
		return;
	for (size_t i = 0; i < n; i++)
		if (!groups[i]->idle)
			sum_add(&busy_ns, groups[i]->total_ns);
	for (size_t i = 0; i < n; i++)
		groups[i]->place =
			groups[i]->idle ? PLACE_IDLE
			: question->order == GROUPS_BY_TOTAL && groups[i]->total_ns < busy_ns / 100
				? PLACE_SMALL
				: PLACE_BUSY;
}

int groups_sort(struct groups *groups, struct group ***out)
{
	static int (*const compare[])(const void *x, const void *y) = {
		[GROUPS_BY_TOTAL] = groups_by_total,
		[GROUPS_BY_MAX] = by_max,
		[GROUPS_BY_COUNT] = by_count,
	};
	struct group **v = arena_array(groups->arena, groups->n + 1, sizeof(struct group *));
	struct group *group;
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (group = groups->table; group; group = group->hh.next)
		v[n++] = group;
	HASH_CLEAR(hh, groups->table);
	groups_place(groups->question, v, n);
	if (n)
		qsort(v, n, sizeof(struct group *), compare[groups->question->order]);
	*out = v;
	return 0;
}

void groups_fini(struct groups *groups)
{
	HASH_CLEAR(hh, groups->table);
}

const char *group_state(const struct group *group)
{
	if (strcmp(group->state, "-") == 0)
		return "-";
	if (!group->has_preempted)
		return task_states_letter((uint32_t)group->state_bits);
	return group->state_bits ? "mixed" : "R";
}
