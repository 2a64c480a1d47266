/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/answer.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/query/answer_rows.h"
#include "daemon/session/recorder.h"
#include "daemon/store/prefetch.h"
#include "daemon/store/store.h"
#include "daemon/window/task_state.h"

struct answer *answer_new(void)
{
	struct answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return NULL;
	answer->arena = arena_new();
	if (!answer->arena) {
		free(answer);
		return NULL;
	}
	return answer;
}

void answer_step_fini(struct answer *answer)
{
	arena_free(answer->step);
	answer->step = NULL;
	while (answer->n_taken > 0)
		call_fini(&answer->taken[--answer->n_taken]);
}

struct answer *answer_free(struct answer *answer)
{
	if (!answer)
		return NULL;
	store_ahead_free(answer->ahead);
	merge_free(answer->merge);
	session_unref(answer->session);
	sessions_list_free(answer->sessions, answer->n_sessions);
	history_list_fini(&answer->list);
	history_list_fini(&answer->later);
	store_read_end(answer->store, answer->reading);
	answer_step_fini(answer);
	arena_free(answer->arena);
	free(answer);
	return NULL;
}

void answer_freep(struct answer **answer)
{
	*answer = answer_free(*answer);
}

const struct wire_snapshot_reply *answer_snapshot(const struct answer *answer)
{
	return &answer->snapshot;
}

const struct wire_windows_reply *answer_windows(const struct answer *answer)
{
	return &answer->windows;
}

const struct wire_status_reply *answer_status(const struct answer *answer)
{
	return &answer->status;
}

const struct wire_probes_reply *answer_probes(const struct answer *answer)
{
	return &answer->probes;
}

const struct wire_sessions_reply *answer_sessions(const struct answer *answer)
{
	return &answer->sessions_reply;
}

const struct wire_start_reply *answer_start(const struct answer *answer)
{
	return &answer->start;
}

const struct wire_stop_reply *answer_stop(const struct answer *answer)
{
	return &answer->stop;
}

int answer_losses(struct arena *arena, const uint64_t *lost, struct wire_losts *out)
{
	struct wire_lost *losts = arena_array(arena, WINDOW_LOST_N, sizeof(*losts));
	size_t n = 0;
	unsigned int i;

	if (!losts)
		return -ENOMEM;
	for (i = 0; i < WINDOW_LOST_N; i++)
		if (lost[i])
			losts[n++] = (struct wire_lost){
				.reason = window_loss_name(i),
				.count = (int64_t)lost[i],
			};
	*out = (struct wire_losts){ .v = losts, .n = n };
	return 0;
}

static const char *const frame_kinds[] = {
	[FRAME_NATIVE] = "native",	     [FRAME_KERNEL] = "kernel", [FRAME_JIT] = "jit",
	[FRAME_INTERPRETED] = "interpreted", [FRAME_PSEUDO] = "pseudo",
};

static const struct {
	unsigned int flag;
	const char *name;
} stack_flag_names[] = {
	{ STACK_IS_TRUNCATED, "truncated" }, { STACK_IS_FRAME_POINTERS, "frame_pointers" },
	{ STACK_IS_LOST, "lost" },	     { STACK_IS_AMBIGUOUS, "ambiguous" },
	{ STACK_IS_FAULT, "fault" },	     { STACK_IS_NEW_THREAD, "new_thread" },
	{ STACK_IS_NO_HOOK, "no_hook" },     { STACK_IS_UNREAD, "unread" },
	{ STACK_IS_NO_TABLE, "no_table" },   { STACK_IS_NO_MAPPING, "no_mapping" },
	{ STACK_IS_INVALID, "no_row" },
};

const char *answer_stack_flag(size_t i)
{
	return i < ARRAY_SIZE(stack_flag_names) ? stack_flag_names[i].name : NULL;
}

static int stack_flags_wire(struct arena *arena, unsigned int flags, struct wire_strs *out)
{
	const char **names = arena_array(arena, ARRAY_SIZE(stack_flag_names), sizeof(*names));
	size_t i, n = 0;

	if (!names)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(stack_flag_names); i++)
		if (flags & stack_flag_names[i].flag)
			names[n++] = stack_flag_names[i].name;
	*out = (struct wire_strs){ .v = names, .n = n };
	return 0;
}

/*
 * From the start of the function, or of the file where there is no function. What is in no file is
 * only a number, any number, as a walk by frame pointers finds it: that is the address.
 */
static int64_t frame_offset(const struct row_context *context, const struct frame *frame)
{
	uint64_t offset = frame->name ? frame->name_offset : frame->file_offset;

	if (frame->kind == FRAME_PSEUDO || offset >= INT64_MAX)
		return WIRE_ABSENT;
	if (!frame->name && (!frame->module ||
			     (frame->kind == FRAME_KERNEL && !context->options->kernel_addresses)))
		return WIRE_ABSENT;
	return (int64_t)offset;
}

/* An id that two stacks claimed names neither: its frames are not shown. */
static int stack_frames_wire(struct row_context *context, const struct stack *stack,
			     struct wire_frames *out)
{
	static const struct wire_frame ambiguous = {
		.kind = "pseudo",
		.name = "[two stacks with one id]",
		.offset = WIRE_ABSENT,
	};
	struct wire_frame *frames =
		arena_array(context->arena, stack->n_frames + 1, sizeof(*frames));
	bool has_address = stack->ip && (stack->process || context->options->kernel_addresses);
	size_t i, skipped = stack->n_raw > stack->n_frames ? stack->n_raw - stack->n_frames : 0;

	if (!frames)
		return -ENOMEM;
	if (stack->flags & STACK_IS_AMBIGUOUS) {
		*out = (struct wire_frames){ .v = &ambiguous, .n = 1 };
		return 0;
	}
	for (i = 0; i < stack->n_frames; i++) {
		const struct frame *frame = stack->frames[i];

		frames[i] = (struct wire_frame){
			.kind = frame_kinds[frame->kind],
			.name = frame->name,
			.offset = frame_offset(context, frame),
			.module = frame->module,
		};
		if (has_address)
			frames[i].address =
				arena_printf(context->arena, "0x%" PRIx64, stack->ip[i + skipped]);
	}
	*out = (struct wire_frames){ .v = frames, .n = stack->n_frames };
	return 0;
}

int answer_stack(struct row_context *context, const struct stack *stack,
		 const struct wire_stack **out)
{
	struct stack_memo *memo;
	int r;

	if (!stack)
		return 0;
	HASH_FIND_PTR(context->memos, &stack, memo);
	if (memo) {
		*out = &memo->wire;
		return 0;
	}
	memo = arena_alloc(context->arena, sizeof(*memo));
	if (!memo)
		return -ENOMEM;
	memo->stack = stack;
	memo->wire.id = arena_printf(context->arena, "0x%" PRIx64, stack->id);
	r = stack_flags_wire(context->arena, stack->flags, &memo->wire.flags);
	if (!r)
		r = stack_frames_wire(context, stack, &memo->wire.frames);
	if (r || !memo->wire.id)
		return -ENOMEM;
	/* Out of memory it is in no table, and made again the next time. */
	HASH_ADD_PTR(context->memos, stack, memo);
	*out = &memo->wire;
	return 0;
}

void answer_process(const struct process_info *info, struct arena *arena, struct wire_process *out)
{
	*out = (struct wire_process){
		.pid = info->id.pid,
		.start = info->start_real_ns,
		.comm = arena_strdup(arena, info->comm),
		.exe = info->exe ? arena_strdup(arena, info->exe) : NULL,
		.cgroup = info->cgroup ? arena_strdup(arena, info->cgroup) : NULL,
		.kernel = info->is_kernel,
		.exited = info->has_exited,
	};
}

/* Waits under the minimum have one frame that says so. */
static int short_stack_wire(struct row_context *context, const struct wire_stack **out)
{
	struct wire_stack *stack = arena_alloc(context->arena, sizeof(*stack));
	struct wire_frame *frame = arena_alloc(context->arena, sizeof(*frame));
	int64_t us = context->options->min_wait_ns / NS_PER_US;

	if (!stack || !frame)
		return -ENOMEM;
	*frame = (struct wire_frame){ .kind = "pseudo", .offset = WIRE_ABSENT };
	frame->name = arena_printf(context->arena, "[waits under %" PRId64 "us]", us);
	stack->id = "0x0";
	stack->frames = (struct wire_frames){ .v = frame, .n = 1 };
	*out = stack;
	return frame->name ? 0 : -ENOMEM;
}

static int row_buckets(struct arena *arena, const struct merge_group *group, struct int_list *out)
{
	int64_t *buckets;
	size_t n = WAIT_BUCKETS, i;

	while (n > 0 && !group->buckets[n - 1])
		n--;
	buckets = arena_array(arena, n + 1, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		buckets[i] = (int64_t)group->buckets[i];
	*out = (struct int_list){ .v = buckets, .n = n };
	return 0;
}

/* What only waits have. */
static int row_waits(struct row_context *context, const struct merge_group *group,
		     struct wire_row *row)
{
	row->state = group->is_short ? "-" : task_states_letter(group->state);
	row->state_bits = group->state & STATE_TASK_MASK;
	row->blocked_ns = (int64_t)group->blocked_ns;
	row->runnable_ns = (int64_t)group->runnable_ns;
	row->throttled_ns = group->key.waker ? WIRE_ABSENT : (int64_t)group->throttled_ns;
	row->open = (int64_t)group->open;
	row->open_ns = (int64_t)group->open_ns;
	row->unseen = group->unseen ? (int64_t)group->unseen : WIRE_ABSENT;
	row->max_ns = (int64_t)group->max_ns;
	if (group->max_ns && group->max_end_real_ns != INT64_MAX)
		row->max_end = group->max_end_real_ns;
	if (group->max_ns) {
		row->max_tid = group->max_tid;
		row->max_comm = arena_strndup(context->arena, group->max_comm, COMM_LEN);
	}
	return row_buckets(context->arena, group, &row->buckets);
}

static int link_wire(struct row_context *context, const struct window_link *link,
		     struct wire_link *out)
{
	static const char *const names[WAKE_CONTEXTS] = {
		[WAKE_NONE] = "unknown", [WAKE_UNKNOWN] = "unknown", [WAKE_TASK] = "task",
		[WAKE_IRQ] = "irq",	 [WAKE_SOFTIRQ] = "softirq", [WAKE_TIMER] = "timer",
	};

	*out = (struct wire_link){
		.context = names[link->context < WAKE_CONTEXTS ? link->context : WAKE_UNKNOWN],
		.pid = WIRE_ABSENT,
		.tid = WIRE_ABSENT,
	};
	if (link->context != WAKE_TASK)
		return 0;
	out->pid = link->pid;
	out->tid = link->tid;
	out->comm = arena_strndup(context->arena, link->comm, COMM_LEN);
	return out->comm ? 0 : -ENOMEM;
}

static int waker_wire(struct row_context *context, const struct window_waker *waker,
		      const struct wire_waker **out)
{
	struct wire_waker *wire = arena_alloc(context->arena, sizeof(*wire));
	struct wire_link *links = arena_array(context->arena, WAKE_LINKS, sizeof(*links));
	size_t n = 0;
	int r = 0;

	if (!wire || !links)
		return -ENOMEM;
	while (n < WAKE_LINKS && waker->links[n].context != WAKE_NONE && !r) {
		r = link_wire(context, &waker->links[n], &links[n]);
		n++;
	}
	wire->path = (struct wire_links){ .v = links, .n = n };
	if (!r)
		r = answer_stack(context, waker->kernel, &wire->kernel);
	if (!r)
		r = answer_stack(context, waker->user, &wire->user);
	*out = wire;
	return r;
}

static int row_wire(struct row_context *context, const struct merge_group *group,
		    struct wire_row *row)
{
	struct process_info info;
	int r = 0;

	process_info(group->image->process, &info);
	answer_process(&info, context->arena, &row->process);
	row->tid = context->options->by_thread ? group->image->tid : WIRE_ABSENT;
	row->comm = arena_strndup(context->arena, group->key.comm, COMM_LEN);
	row->idle = group->is_idle;
	row->count = (int64_t)group->count;
	row->total_ns = (int64_t)(group->on_ns + group->blocked_ns + group->runnable_ns);
	row->state_bits = row->blocked_ns = row->runnable_ns = row->throttled_ns = WIRE_ABSENT;
	row->unseen = row->open = row->open_ns = row->max_ns = WIRE_ABSENT;
	row->max_end = row->max_tid = row->window = WIRE_ABSENT;
	if (!group->is_sample)
		r = row_waits(context, group, row);
	if (!r && group->is_short)
		return short_stack_wire(context, &row->kernel);
	if (!r)
		r = answer_stack(context, group->kernel, &row->kernel);
	if (!r)
		r = answer_stack(context, group->user, &row->user);
	if (!r && group->key.waker)
		r = waker_wire(context, &group->waker, &row->waker);
	return r;
}

struct row_context *answer_stacks_new(struct answer *answer,
				      const struct answer_row_options *options)
{
	struct row_context *stacks = arena_alloc(answer->arena, sizeof(*stacks));

	if (stacks)
		*stacks = (struct row_context){ .arena = answer->arena, .options = options };
	return stacks;
}

void answer_stacks_clear(struct row_context *stacks)
{
	HASH_CLEAR(hh, stacks->memos);
}

int answer_rows(struct answer *answer, struct merge_group *const *groups, size_t n,
		const struct answer_row_options *options)
{
	struct wire_row *rows = arena_array(answer->arena, n + 1, sizeof(*rows));
	struct row_context context = { .arena = answer->arena, .options = options };
	size_t i;
	int r = 0;

	if (!rows)
		return -ENOMEM;
	for (i = 0; i < n && !r; i++)
		r = row_wire(&context, groups[i], &rows[i]);
	if (!r && options->lines_of)
		r = answer_lines(answer, &context);
	HASH_CLEAR(hh, context.memos);
	answer->snapshot.rows = (struct wire_rows){ .v = rows, .n = n };
	return r;
}

const char *answer_unread(struct arena *arena, const struct openwait_stats *stats)
{
	if (stats->state == OPENWAIT_FAILED)
		return arena_printf(arena, "user stacks of waits that go on, before they end: %s",
				    stats->reason);
	if (stats->held_up_by)
		return arena_printf(arena,
				    "user stacks of waits that go on: reading that of process "
				    "%" PRIu32 ", which hangs, does not come to an end",
				    stats->held_up_by);
	return "";
}

/* What the hook cannot see, and what the host lets nobody see. */
static int blind_wire(struct arena *arena, struct session *session,
		      const struct probe_status *status, struct wire_strs *out)
{
	const char **blind = arena_array(arena, PROBE_MAX_BLIND + 2, sizeof(*blind)), *unread;
	struct drain_stats drain;
	uint64_t hidden;
	size_t i;

	if (!blind)
		return -ENOMEM;
	for (i = 0; i < status->n_blind; i++)
		blind[i] = status->blind[i];
	*out = (struct wire_strs){ .v = blind, .n = status->n_blind };
	session_stats(session, &drain);
	unread = answer_unread(arena, &drain.openwait);
	if (!unread)
		return -ENOMEM;
	if (unread[0])
		blind[out->n++] = unread;
	hidden = drain_hidden(&drain);
	if (!hidden)
		return 0;
	blind[out->n] =
		arena_printf(arena,
			     "threads that the host hides from BPF while they run, its init's or "
			     "a CPU's idle one, and requests of disks that end meanwhile: %" PRIu64
			     " switches show it",
			     hidden);
	return blind[out->n++] ? 0 : -ENOMEM;
}

static void program_wire(const struct probe_program *program, struct wire_program *out)
{
	*out = (struct wire_program){
		.name = program->name,
		.hook = program->hook,
		.runs = (int64_t)program->runs,
		.run_ns = (int64_t)program->run_ns,
		.missed = (int64_t)program->missed,
		.verified_insns = program->verified_insns,
	};
}

static int probe_wire(struct arena *arena, struct session *session, struct wire_probe *out)
{
	struct wire_program *programs =
		arena_array(arena, PROBE_MAX_PROGRAMS + 1, sizeof(*programs));
	const struct session_info *info = session_info(session);
	bool has_waits = probe_kind_has_waits(info->kind);
	struct probe_status status;
	struct drain_stats drain;
	struct wire_strs blind;
	size_t i;
	int r;

	if (!programs)
		return -ENOMEM;
	session_probe_status(session, &status);
	r = blind_wire(arena, session, &status, &blind);
	if (r)
		return r;
	for (i = 0; i < status.n_programs; i++)
		program_wire(&status.programs[i], &programs[i]);
	session_stats(session, &drain);
	if (drain.openwait.state == OPENWAIT_ON)
		program_wire(&drain.openwait.program, &programs[status.n_programs++]);
	*out = (struct wire_probe){
		.name = probe_kind_name(info->kind),
		.state = status.is_on	      ? "on"
			 : status.is_disabled ? "off"
					      : "failed",
		.hook = status.hook,
		.reason = status.reason,
		.blind = blind,
		.min_wait_ns = status.is_on && has_waits ? info->min_wait_ns : WIRE_ABSENT,
		.period_ns = status.is_on && info->kind == PROBE_ONCPU ? (int64_t)info->period_ns
								       : WIRE_ABSENT,
		.programs = { .v = programs, .n = status.n_programs },
	};
	return 0;
}

int answer_probe_list(struct recorder *recorder, struct arena *arena, struct wire_probes *out)
{
	struct wire_probe *probes = arena_array(arena, PROBE_KIND_N, sizeof(*probes));
	size_t i;
	int r = probes ? 0 : -ENOMEM;

	for (i = 0; i < PROBE_KIND_N && !r; i++) {
		r = probe_wire(arena, sessions_always(recorder->sessions, (enum probe_kind)i),
			       &probes[i]);
		if (recorder->is_serve_only)
			probes[i].reason = "stackd --serve-only";
	}
	*out = (struct wire_probes){ .v = probes, .n = PROBE_KIND_N };
	return r;
}

static const char *owner_name(struct arena *arena, const struct session_info *info)
{
	struct passwd entry, *found = NULL;
	char buffer[4096];

	if (info->is_always)
		return "stackd";
	getpwuid_r(info->uid, &entry, buffer, sizeof(buffer), &found);
	return found ? arena_strdup(arena, found->pw_name)
		     : arena_printf(arena, "%u", (unsigned int)info->uid);
}

int answer_session(struct arena *arena, struct session *session, struct wire_session *out)
{
	const struct session_info *info = session_info(session);
	bool has_waits = probe_kind_has_waits(info->kind);
	int64_t ended = session_ended(session);
	struct drain_stats stats;
	int r;

	session_stats(session, &stats);
	*out = (struct wire_session){
		.id = arena_strdup(arena, info->id_text),
		.probe = probe_kind_name(info->kind),
		.name = info->name ? arena_strdup(arena, info->name) : NULL,
		.owner = owner_name(arena, info),
		.since = info->since_real_ns,
		.until = info->until_real_ns == INT64_MAX ? WIRE_ABSENT : info->until_real_ns,
		.ended = ended == INT64_MAX ? WIRE_ABSENT : ended,
		.always = info->is_always,
		.filter = info->filter->wire,
		.min_wait_ns = has_waits ? info->min_wait_ns : WIRE_ABSENT,
		.period_ns = info->kind == PROBE_ONCPU ? (int64_t)info->period_ns : WIRE_ABSENT,
		.count = (int64_t)(info->kind == PROBE_IOLAT ? stats.counts.ios
				   : has_waits		     ? stats.counts.switch_ins
							     : stats.counts.samples),
	};
	answer_session_calls(session, &stats, out);
	if (!out->id || !out->owner)
		return -ENOMEM;
	r = session_note(session, arena, &out->note);
	if (r)
		return r;
	return answer_losses(arena, stats.lost, &out->lost);
}
