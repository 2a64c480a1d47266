/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/wire.h"

#include "common/base.h"
#include "proto/codec.h"
#include "proto/record.h"

/* offsetof, refused by the compiler when the member has another type than the table says. */
#define OFFSET(container, member, type)                                                            \
	(offsetof(container, member) +                                                             \
	 0 * sizeof(struct {                                                                       \
		 _Static_assert(                                                                   \
			 __builtin_types_compatible_p(__typeof__(((container *)0)->member), type), \
			 #container "." #member " is not " #type);                                 \
		 int is_checked;                                                                   \
	 }))

#define FIELD(container, member, field_kind, type, ...)                                         \
	{                                                                                       \
		.name = #member, .kind = field_kind, .offset = OFFSET(container, member, type), \
		##__VA_ARGS__                                                                   \
	}

#define OPTIONAL .is_optional = true

#define STRING(c, m, ...)  FIELD(c, m, FIELD_STRING, const char *, ##__VA_ARGS__)
#define INT(c, m, ...)	   FIELD(c, m, FIELD_INT, int64_t, ##__VA_ARGS__)
#define BOOL(c, m)	   FIELD(c, m, FIELD_BOOL, bool)
#define TRISTATE(c, m)	   FIELD(c, m, FIELD_TRISTATE, int, OPTIONAL)
#define TIME(c, m, ...)	   FIELD(c, m, FIELD_TIME, int64_t, ##__VA_ARGS__)
#define STRINGS(c, m, ...) FIELD(c, m, FIELD_STRINGS, struct wire_strs, ##__VA_ARGS__)
#define INTS(c, m, ...)	   FIELD(c, m, FIELD_INTS, struct int_list, ##__VA_ARGS__)
#define STRUCT(c, m, type) FIELD(c, m, FIELD_STRUCT, struct wire_##type, .record = &record_##type)
#define STRUCTS(c, m, type, ...) \
	FIELD(c, m, FIELD_STRUCTS, struct wire_##type##s, .record = &record_##type, ##__VA_ARGS__)
#define POINTER(c, m, type)                                                 \
	FIELD(c, m, FIELD_STRUCT_PTR, const struct wire_##type *, OPTIONAL, \
	      .record = &record_##type)

#define RECORD(type, interface_name)                   \
	const struct record record_##type = {          \
		.name = interface_name,                \
		.size = sizeof(struct wire_##type),    \
		.fields = fields_##type,               \
		.n_fields = ARRAY_SIZE(fields_##type), \
	}

/* One field a line. clang-format would pack them. */
/* clang-format off */

static const struct field fields_range[] = {
	TIME(struct wire_range, start),
	TIME(struct wire_range, end),
};
static RECORD(range, "Range");

static const struct field fields_gap[] = {
	TIME(struct wire_gap, start),
	TIME(struct wire_gap, end),
	STRING(struct wire_gap, reason),
	STRING(struct wire_gap, session, OPTIONAL),
};
static RECORD(gap, "Gap");

static const struct field fields_lost[] = {
	STRING(struct wire_lost, reason),
	INT(struct wire_lost, count),
};
static RECORD(lost, "Lost");

static const struct field fields_coverage[] = {
	STRUCT(struct wire_coverage, asked, range),
	STRUCT(struct wire_coverage, used, range),
	INT(struct wire_coverage, asked_ns),
	INT(struct wire_coverage, covered_ns),
	INT(struct wire_coverage, windows),
	STRUCTS(struct wire_coverage, gaps, gap),
	BOOL(struct wire_coverage, complete),
};
static RECORD(coverage, "Coverage");

static const struct field fields_source[] = {
	STRING(struct wire_source, file, OPTIONAL),
	INT(struct wire_source, line, OPTIONAL),
	BOOL(struct wire_source, inlined),
};
static RECORD(source, "Source");

static const struct field fields_frame[] = {
	STRING(struct wire_frame, kind),
	STRING(struct wire_frame, name, OPTIONAL),
	INT(struct wire_frame, offset, OPTIONAL),
	STRING(struct wire_frame, module, OPTIONAL),
	STRING(struct wire_frame, address, OPTIONAL),
	POINTER(struct wire_frame, source, source),
};
static RECORD(frame, "Frame");

static const struct field fields_stack[] = {
	STRING(struct wire_stack, id),
	STRUCTS(struct wire_stack, frames, frame),
	STRINGS(struct wire_stack, flags),
};
static RECORD(stack, "Stack");

static const struct field fields_process[] = {
	INT(struct wire_process, pid),
	TIME(struct wire_process, start),
	STRING(struct wire_process, comm),
	STRING(struct wire_process, exe, OPTIONAL),
	STRING(struct wire_process, cgroup, OPTIONAL),
	BOOL(struct wire_process, kernel),
	BOOL(struct wire_process, exited),
};
static RECORD(process, "Process");

static const struct field fields_totals[] = {
	INT(struct wire_totals, processes),
	INT(struct wire_totals, threads),
	INT(struct wire_totals, on_cpu_ns),
	INT(struct wire_totals, samples, OPTIONAL),
	INT(struct wire_totals, runnable_ns, OPTIONAL),
	INT(struct wire_totals, throttled_ns, OPTIONAL),
	INT(struct wire_totals, blocked_ns, OPTIONAL),
	INT(struct wire_totals, waits, OPTIONAL),
	INT(struct wire_totals, short_waits, OPTIONAL),
	INT(struct wire_totals, short_ns, OPTIONAL),
	INT(struct wire_totals, open_waits, OPTIONAL),
	INT(struct wire_totals, cpus, OPTIONAL),
	INT(struct wire_totals, unseen, OPTIONAL),
	INT(struct wire_totals, unseen_ns, OPTIONAL),
	INT(struct wire_totals, calls, OPTIONAL),
	INT(struct wire_totals, ios, OPTIONAL),
};
static RECORD(totals, "Totals");

static const struct field fields_link[] = {
	STRING(struct wire_link, context),
	INT(struct wire_link, pid, OPTIONAL),
	INT(struct wire_link, tid, OPTIONAL),
	STRING(struct wire_link, comm, OPTIONAL),
};
static RECORD(link, "Link");

static const struct field fields_waker[] = {
	STRUCTS(struct wire_waker, path, link),
	POINTER(struct wire_waker, kernel, stack),
	POINTER(struct wire_waker, user, stack),
};
static RECORD(waker, "Waker");

static const struct field fields_io[] = {
	STRING(struct wire_io, layer),
	STRING(struct wire_io, op),
	STRING(struct wire_io, filesystem, OPTIONAL),
	STRING(struct wire_io, device, OPTIONAL),
	INT(struct wire_io, own_ns),
	INT(struct wire_io, cpu_ns),
	INT(struct wire_io, runnable_ns),
	INT(struct wire_io, device_ns),
	INT(struct wire_io, queue_ns),
	INT(struct wire_io, throttled_ns),
	INT(struct wire_io, other_ns),
	INT(struct wire_io, async),
	INT(struct wire_io, errors),
	INT(struct wire_io, bytes),
	INT(struct wire_io, merges),
	INT(struct wire_io, requeues),
	INT(struct wire_io, p50_ns, OPTIONAL),
	INT(struct wire_io, p90_ns, OPTIONAL),
	INT(struct wire_io, p99_ns, OPTIONAL),
	INT(struct wire_io, open, OPTIONAL),
	INT(struct wire_io, oldest_ns, OPTIONAL),
	INT(struct wire_io, oldest_tid, OPTIONAL),
};
static RECORD(io, "Io");

static const struct field fields_row[] = {
	STRUCT(struct wire_row, process, process),
	STRING(struct wire_row, key, OPTIONAL),
	INT(struct wire_row, tid, OPTIONAL),
	STRING(struct wire_row, comm),
	BOOL(struct wire_row, idle),
	INT(struct wire_row, count),
	INT(struct wire_row, total_ns),
	STRING(struct wire_row, state, OPTIONAL),
	INT(struct wire_row, state_bits, OPTIONAL),
	INT(struct wire_row, blocked_ns, OPTIONAL),
	INT(struct wire_row, runnable_ns, OPTIONAL),
	INT(struct wire_row, throttled_ns, OPTIONAL),
	INT(struct wire_row, open, OPTIONAL),
	INT(struct wire_row, open_ns, OPTIONAL),
	INT(struct wire_row, unseen, OPTIONAL),
	INT(struct wire_row, max_ns, OPTIONAL),
	TIME(struct wire_row, max_end, OPTIONAL),
	INT(struct wire_row, max_tid, OPTIONAL),
	STRING(struct wire_row, max_comm, OPTIONAL),
	INTS(struct wire_row, buckets, OPTIONAL),
	POINTER(struct wire_row, kernel, stack),
	POINTER(struct wire_row, user, stack),
	POINTER(struct wire_row, waker, waker),
	POINTER(struct wire_row, io, io),
	TIME(struct wire_row, window, OPTIONAL),
};
RECORD(row, "Row");

static const struct field fields_rest[] = {
	INT(struct wire_rest, rows),
	INT(struct wire_rest, threads),
	INT(struct wire_rest, total_ns),
};
static RECORD(rest, "Rest");

static const struct field fields_filter[] = {
	INTS(struct wire_filter, pids, OPTIONAL),
	INTS(struct wire_filter, tids, OPTIONAL),
	TRISTATE(struct wire_filter, user_threads),
	TRISTATE(struct wire_filter, kernel_threads),
	TRISTATE(struct wire_filter, user_stacks),
	TRISTATE(struct wire_filter, kernel_stacks),
	INT(struct wire_filter, min_block_ns, OPTIONAL),
	INT(struct wire_filter, max_block_ns, OPTIONAL),
	INTS(struct wire_filter, cpus, OPTIONAL),
	STRINGS(struct wire_filter, states, OPTIONAL),
	STRING(struct wire_filter, comm, OPTIONAL),
	STRING(struct wire_filter, cgroup, OPTIONAL),
	STRING(struct wire_filter, unit, OPTIONAL),
	STRING(struct wire_filter, layer, OPTIONAL),
	STRING(struct wire_filter, op, OPTIONAL),
	STRING(struct wire_filter, disk, OPTIONAL),
};
static RECORD(filter, "Filter");

static const struct field fields_program[] = {
	STRING(struct wire_program, name),
	STRING(struct wire_program, hook),
	INT(struct wire_program, runs),
	INT(struct wire_program, run_ns),
	INT(struct wire_program, missed),
	INT(struct wire_program, verified_insns),
};
static RECORD(program, "Program");

static const struct field fields_probe[] = {
	STRING(struct wire_probe, name),
	STRING(struct wire_probe, state),
	STRING(struct wire_probe, hook, OPTIONAL),
	STRING(struct wire_probe, reason, OPTIONAL),
	STRINGS(struct wire_probe, blind),
	INT(struct wire_probe, min_wait_ns, OPTIONAL),
	INT(struct wire_probe, period_ns, OPTIONAL),
	STRUCTS(struct wire_probe, programs, program),
};
static RECORD(probe, "Probe");

static const struct field fields_limit[] = {
	STRING(struct wire_limit, name),
	INT(struct wire_limit, value),
	INT(struct wire_limit, used),
	INT(struct wire_limit, hits),
};
static RECORD(limit, "Limit");

static const struct field fields_window[] = {
	INT(struct wire_window, seq),
	TIME(struct wire_window, start),
	TIME(struct wire_window, end),
	INT(struct wire_window, length_ns),
	INT(struct wire_window, rows),
	INT(struct wire_window, threads),
	INT(struct wire_window, open),
	INT(struct wire_window, bytes),
	STRUCTS(struct wire_window, lost, lost),
	STRING(struct wire_window, probe, OPTIONAL),
	STRING(struct wire_window, session, OPTIONAL),
};
RECORD(window, "Window");

static const struct field fields_session[] = {
	STRING(struct wire_session, id),
	STRING(struct wire_session, probe),
	STRING(struct wire_session, name, OPTIONAL),
	STRING(struct wire_session, owner),
	TIME(struct wire_session, since),
	TIME(struct wire_session, until, OPTIONAL),
	TIME(struct wire_session, ended, OPTIONAL),
	BOOL(struct wire_session, always),
	POINTER(struct wire_session, filter, filter),
	INT(struct wire_session, min_wait_ns, OPTIONAL),
	INT(struct wire_session, period_ns, OPTIONAL),
	INT(struct wire_session, count, OPTIONAL),
	STRING(struct wire_session, function, OPTIONAL),
	TRISTATE(struct wire_session, regexp),
	INT(struct wire_session, functions, OPTIONAL),
	STRING(struct wire_session, file, OPTIONAL),
	INT(struct wire_session, calls_per_s, OPTIONAL),
	INT(struct wire_session, load, OPTIONAL),
	INT(struct wire_session, every, OPTIONAL),
	INT(struct wire_session, rate, OPTIONAL),
	INT(struct wire_session, held, OPTIONAL),
	STRING(struct wire_session, note, OPTIONAL),
	STRUCTS(struct wire_session, lost, lost),
};
static RECORD(session, "Session");

static const struct field fields_store[] = {
	STRING(struct wire_store, path),
	STRING(struct wire_store, state),
	INT(struct wire_store, bytes),
	INT(struct wire_store, max_bytes),
	INT(struct wire_store, windows),
	TIME(struct wire_store, oldest, OPTIONAL),
	TIME(struct wire_store, newest, OPTIONAL),
	TIME(struct wire_store, synced, OPTIONAL),
	INT(struct wire_store, queued),
	INT(struct wire_store, written),
	INT(struct wire_store, dropped),
	INT(struct wire_store, evicted),
	INT(struct wire_store, merged),
	INT(struct wire_store, damaged),
	STRING(struct wire_store, notice, OPTIONAL),
};
static RECORD(store, "Store");

static const struct field fields_walk[] = {
	STRING(struct wire_walk, binary, OPTIONAL),
	INT(struct wire_walk, stacks),
	INT(struct wire_walk, whole),
	INT(struct wire_walk, truncated),
	INT(struct wire_walk, no_table),
	INT(struct wire_walk, no_mapping),
	INT(struct wire_walk, no_row),
	INT(struct wire_walk, fault),
	INT(struct wire_walk, frame_pointers),
};
static RECORD(walk, "Walks");

static const struct field fields_unwind[] = {
	INT(struct wire_unwind, files),
	INT(struct wire_unwind, bytes),
	INT(struct wire_unwind, max_bytes),
	INT(struct wire_unwind, loads),
	INT(struct wire_unwind, load_ns),
	INT(struct wire_unwind, evictions),
	STRUCTS(struct wire_unwind, binaries, walk),
};
static RECORD(unwind, "Unwind");

static const struct field fields_status_reply[] = {
	STRING(struct wire_status_reply, version),
	INT(struct wire_status_reply, pid),
	TIME(struct wire_status_reply, started),
	STRING(struct wire_status_reply, boot_id),
	STRING(struct wire_status_reply, kernel),
	BOOL(struct wire_status_reply, healthy),
	STRINGS(struct wire_status_reply, problems),
	STRUCTS(struct wire_status_reply, probes, probe),
	INT(struct wire_status_reply, windows),
	TIME(struct wire_status_reply, oldest, OPTIONAL),
	TIME(struct wire_status_reply, newest, OPTIONAL),
	INT(struct wire_status_reply, window_ns),
	INT(struct wire_status_reply, keep_ns),
	INT(struct wire_status_reply, user_ns),
	INT(struct wire_status_reply, system_ns),
	INT(struct wire_status_reply, rss_bytes),
	INT(struct wire_status_reply, map_bytes),
	INT(struct wire_status_reply, cut_ns),
	INT(struct wire_status_reply, cut_max_ns),
	STRUCTS(struct wire_status_reply, lost, lost),
	STRUCTS(struct wire_status_reply, limits, limit),
	BOOL(struct wire_status_reply, stats_enabled),
	POINTER(struct wire_status_reply, store, store),
	POINTER(struct wire_status_reply, unwind, unwind),
};
RECORD(status_reply, "Status()");

static const struct field fields_probes_reply[] = {
	STRUCTS(struct wire_probes_reply, probes, probe),
};
RECORD(probes_reply, "Probes()");

static const struct field fields_sessions_reply[] = {
	STRUCTS(struct wire_sessions_reply, sessions, session),
};
RECORD(sessions_reply, "Sessions()");

static const struct field fields_start_request[] = {
	STRING(struct wire_start_request, probe),
	STRING(struct wire_start_request, name, OPTIONAL),
	POINTER(struct wire_start_request, filter, filter),
	INT(struct wire_start_request, duration_ns, OPTIONAL),
	INT(struct wire_start_request, frequency, OPTIONAL),
	INT(struct wire_start_request, period_ns, OPTIONAL),
	STRING(struct wire_start_request, event, OPTIONAL),
	TRISTATE(struct wire_start_request, idle),
	STRING(struct wire_start_request, function, OPTIONAL),
	TRISTATE(struct wire_start_request, regexp),
	INT(struct wire_start_request, rate, OPTIONAL),
};
RECORD(start_request, "Start");

static const struct field fields_call[] = {
	TIME(struct wire_call, time),
	STRING(struct wire_call, comm),
	INT(struct wire_call, pid),
	INT(struct wire_call, tid),
	INT(struct wire_call, cpu),
	INT(struct wire_call, count),
	POINTER(struct wire_call, kernel, stack),
	POINTER(struct wire_call, user, stack),
};
RECORD(call, "Call");

static const struct field fields_start_reply[] = {
	STRUCT(struct wire_start_reply, session, session),
	STRUCTS(struct wire_start_reply, calls, call, OPTIONAL),
	INT(struct wire_start_reply, missed, OPTIONAL),
};
RECORD(start_reply, "Start()");

static const struct field fields_functions_request[] = {
	STRING(struct wire_functions_request, function),
	TRISTATE(struct wire_functions_request, regexp),
	INT(struct wire_functions_request, max, OPTIONAL),
};
RECORD(functions_request, "Functions");

static const struct field fields_functions_reply[] = {
	STRING(struct wire_functions_reply, kind),
	STRING(struct wire_functions_reply, file, OPTIONAL),
	INT(struct wire_functions_reply, count),
	INT(struct wire_functions_reply, forbidden),
	STRINGS(struct wire_functions_reply, functions),
};
RECORD(functions_reply, "Functions()");

static const struct field fields_stop_request[] = {
	STRING(struct wire_stop_request, session),
};
RECORD(stop_request, "Stop");

static const struct field fields_stop_reply[] = {
	STRUCT(struct wire_stop_reply, session, session),
};
RECORD(stop_reply, "Stop()");

static const struct field fields_follow_request[] = {
	STRING(struct wire_follow_request, probe, OPTIONAL),
	STRING(struct wire_follow_request, session, OPTIONAL),
	INT(struct wire_follow_request, interval_ns, OPTIONAL),
	STRING(struct wire_follow_request, cursor, OPTIONAL),
	POINTER(struct wire_follow_request, filter, filter),
	STRING(struct wire_follow_request, by, OPTIONAL),
	STRING(struct wire_follow_request, sort, OPTIONAL),
	INT(struct wire_follow_request, top, OPTIONAL),
	TRISTATE(struct wire_follow_request, idle),
};
RECORD(follow_request, "Follow");

static const struct field fields_windows_request[] = {
	INT(struct wire_windows_request, since_ns, OPTIONAL),
	INT(struct wire_windows_request, until_ns, OPTIONAL),
	STRING(struct wire_windows_request, probe, OPTIONAL),
	STRING(struct wire_windows_request, session, OPTIONAL),
};
RECORD(windows_request, "Windows");

static const struct field fields_windows_reply[] = {
	STRUCTS(struct wire_windows_reply, windows, window),
	STRUCTS(struct wire_windows_reply, gaps, gap),
};
RECORD(windows_reply, "Windows()");

static const struct field fields_snapshot_request[] = {
	STRING(struct wire_snapshot_request, probe, OPTIONAL),
	STRING(struct wire_snapshot_request, session, OPTIONAL),
	INT(struct wire_snapshot_request, window_ns, OPTIONAL),
	INT(struct wire_snapshot_request, since_ns, OPTIONAL),
	INT(struct wire_snapshot_request, until_ns, OPTIONAL),
	POINTER(struct wire_snapshot_request, filter, filter),
	TRISTATE(struct wire_snapshot_request, open),
	STRING(struct wire_snapshot_request, by, OPTIONAL),
	STRING(struct wire_snapshot_request, sort, OPTIONAL),
	TRISTATE(struct wire_snapshot_request, reverse),
	INT(struct wire_snapshot_request, top, OPTIONAL),
	TRISTATE(struct wire_snapshot_request, idle),
	TRISTATE(struct wire_snapshot_request, lines),
	TRISTATE(struct wire_snapshot_request, addresses),
};
RECORD(snapshot_request, "Snapshot");

static const struct field fields_snapshot_reply[] = {
	STRING(struct wire_snapshot_reply, probe),
	STRING(struct wire_snapshot_reply, session, OPTIONAL),
	STRING(struct wire_snapshot_reply, hook),
	INT(struct wire_snapshot_reply, min_wait_ns, OPTIONAL),
	INT(struct wire_snapshot_reply, period_ns, OPTIONAL),
	STRING(struct wire_snapshot_reply, cursor, OPTIONAL),
	STRUCT(struct wire_snapshot_reply, coverage, coverage),
	STRUCT(struct wire_snapshot_reply, totals, totals),
	STRUCTS(struct wire_snapshot_reply, lost, lost),
	STRINGS(struct wire_snapshot_reply, notes),
	STRUCT(struct wire_snapshot_reply, shown, rest),
	STRUCT(struct wire_snapshot_reply, rest, rest),
	STRUCT(struct wire_snapshot_reply, idle, rest),
	STRUCTS(struct wire_snapshot_reply, rows, row),
};
RECORD(snapshot_reply, "Snapshot()");

static const struct field fields_info_reply[] = {
	STRING(struct wire_info_reply, vendor),
	STRING(struct wire_info_reply, product),
	STRING(struct wire_info_reply, version),
	STRING(struct wire_info_reply, url),
	STRINGS(struct wire_info_reply, interfaces),
};
RECORD(info_reply, "GetInfo()");

static const struct field fields_description_request[] = {
	STRING(struct wire_description_request, interface),
};
RECORD(description_request, "GetInterfaceDescription");

static const struct field fields_description_reply[] = {
	STRING(struct wire_description_reply, description),
};
RECORD(description_reply, "GetInterfaceDescription()");
