/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/render.h"
#include "common/base.h"

static const struct {
	const char *flag;
	const char *words;
} flag_words[] = {
	{ "truncated", "truncated: deeper than the recorder follows" },
	{ "frame_pointers", "may have gaps: followed by frame pointers in parts" },
	{ "no_table", "truncated: the unwind table of a file was not loaded" },
	{ "no_mapping", "truncated: an address is in no known mapping" },
	{ "no_row", "truncated: the unwind table does not cover an address" },
	{ "compat", "truncated: stacks of 32-bit programs are not followed" },
	{ "fault", "truncated: its memory was swapped out or unmapped" },
	{ "shed", "truncated: what is missing would have cost more than [budget] cpu allows" },
	{ "lost", "lost on the way from the kernel" },
	{ "new_thread", "missing: a new thread, before its first run" },
	{ "no_hook", "missing: the probe missed the end of this wait" },
	{ "ambiguous", "unknown: two stacks had the same id" },
	{ "unread", "not read then: this happens when a window or the wait ends" },
};

const char *flag_text(const char *flag)
{
	for (size_t i = 0; i < ARRAY_SIZE(flag_words); i++)
		if (strcmp(flag_words[i].flag, flag) == 0)
			return flag_words[i].words;
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] != '\0' ? slash + 1 : path;
}

/*
 * Returns the source line of a frame as " file.c:12", or "" if the user did not ask for lines or
 * the frame has none. The caller frees the text.
 */
static char *source_text(const struct view *view, const struct wire_frame *frame)
{
	const struct wire_source *source = frame->source;
	const char *file = source ? source->file : NULL;
	char *text = NULL;
	int r;

	if (!view->lines || !file)
		return must(strdup(""));
	if (!view->verbose)
		file = base_name(file);
	if (source->line == WIRE_ABSENT)
		r = asprintf(&text, " %s", file);
	else
		r = asprintf(&text, " %s:%" PRId64, file, source->line);
	return must(r < 0 ? NULL : text);
}

static bool is_inlined(const struct wire_frame *frame)
{
	return frame->source && frame->source->inlined;
}

static char *label_plain(const struct view *view, const struct wire_frame *frame, bool is_kernel)
{
	_cleanup_(freep) char *cut = NULL;
	const char *mark = !view->annotations  ? ""
			   : is_kernel	       ? "_[k]"
			   : is_inlined(frame) ? "_[i]"
					       : "";
	bool has_offset = frame->offset != WIRE_ABSENT;
	const char *name = frame->name;
	char *label = NULL;
	int r;

	if (name && name[0] == '\0')
		name = NULL;
	if (name && view->is_short && strcmp(frame->kind, "pseudo") != 0)
		name = cut = name_shorten(name);
	if (name && view->offset && has_offset)
		r = asprintf(&label, "%s+0x%" PRIx64 "%s", name, frame->offset, mark);
	else if (name)
		r = asprintf(&label, "%s%s", name, mark);
	else if (frame->module && frame->module[0] != '\0' && has_offset)
		r = asprintf(&label, "%s+0x%" PRIx64 "%s", base_name(frame->module), frame->offset,
			     mark);
	else if (frame->module && frame->module[0] != '\0')
		r = asprintf(&label, "[unknown in %s]%s", base_name(frame->module), mark);
	else
		r = asprintf(&label, "[unknown]%s", mark);
	return must(r < 0 ? NULL : label);
}

char *frame_label(const struct view *view, const struct wire_frame *frame, bool is_kernel)
{
	_cleanup_(freep) char *plain = label_plain(view, frame, is_kernel);
	_cleanup_(freep) char *source = source_text(view, frame);
	char *label = NULL;
	int r = asprintf(&label, "%s%s", plain, source);

	return must(r < 0 ? NULL : label);
}

/*
 * True if the module of a frame is printed. It is not printed if it is the kernel, or if the frame
 * has no function name, because the label of the frame then contains the module.
 */
static bool shows_module(const struct wire_frame *frame)
{
	return frame->name && frame->module && frame->module[0] != '\0' &&
	       strcmp(frame->kind, "pseudo") != 0 && strcmp(frame->module, "kernel") != 0 &&
	       strcmp(frame->module, "vmlinux") != 0;
}

/*
 * Returns a frame as "name (module)". Leaves the module out if the frame has none, or if name and
 * module together are wider than `room` columns. The text is escaped; the caller frees it.
 */
static char *frame_text(const struct view *view, const struct wire_frame *frame, bool is_kernel,
			size_t room)
{
	_cleanup_(freep) char *label = frame_label(view, frame, is_kernel), *module = NULL;
	_cleanup_(freep) char *name = name_escape(label), *both = NULL;
	bool cuts = view->page.cuts_names;

	if (cuts && text_columns(name) > room) {
		/* If the name is wider than the room, print it without its arguments. */
		free(label);
		label = TAKE(name);
		name = name_shorten(label);
	}
	if (!shows_module(frame))
		return TAKE(name);
	module = name_escape(is_inlined(frame) ? "inlined" : base_name(frame->module));
	if (asprintf(&both, "%s  (%s)", name, module) < 0)
		both = NULL;
	must(both);
	return cuts && text_columns(both) > room ? TAKE(name) : TAKE(both);
}

/* True if two frames would be printed as the same text. */
static bool frames_are_equal(const struct view *view, const struct wire_frame *a,
			     const struct wire_frame *b)
{
	_cleanup_(freep) char *x = frame_label(view, a, false), *y = frame_label(view, b, false);
	const char *p = a->module ? a->module : "", *q = b->module ? b->module : "";

	return !view->verbose && strcmp(x, y) == 0 && strcmp(p, q) == 0;
}

/*
 * Returns how many frames in a row are equal, beginning with frame number `first`. In a stack that
 * could not be walked properly, 100 frames may be equal.
 */
static size_t count_equal(const struct view *view, const struct wire_stack *stack, size_t first)
{
	size_t n = 1;

	while (first + n < stack->frames.n &&
	       frames_are_equal(view, &stack->frames.v[first], &stack->frames.v[first + n]))
		n++;
	return n;
}

static void render_frame(const struct view *view, const struct wire_frame *frame, bool is_kernel,
			 size_t indent, size_t times)
{
	_cleanup_(freep) char *prefix = NULL, *address = NULL, *text = NULL, *all = NULL;
	char again[32] = "";
	size_t used;
	int r;

	if (view->verbose) {
		address = name_escape(frame->address ? frame->address : "-");
		r = asprintf(&prefix, "%-18s ", address);
		must(r < 0 ? NULL : prefix);
	}
	if (times > 1)
		snprintf(again, sizeof again, " x %zu", times);
	used = indent + (prefix ? text_columns(prefix) : 0) + strlen(again);
	text = frame_text(view, frame, is_kernel,
			  view->page.width > used ? view->page.width - used : 0);
	r = asprintf(&all, "%s%s", text, again);
	must(r < 0 ? NULL : all);
	page_name(&view->page, STYLE_PLAIN, indent, prefix ? prefix : "", all);
}

static void render_flags(const struct view *view, const struct wire_stack *stack, const char *which,
			 size_t indent)
{
	_cleanup_(freep) char *label = NULL;
	int r;

	r = asprintf(&label, "%*s! %s stack", (int)indent, "", which);
	must(r < 0 ? NULL : label);
	for (size_t i = 0; i < stack->flags.n; i++) {
		const char *flag = stack->flags.v[i], *text = flag_text(flag);
		_cleanup_(freep) char *words = name_escape(text ? text : flag);

		if (view->hides_unread && strcmp(flag, "unread") == 0)
			continue;
		page_wrap(&view->page, STYLE_DIM, label, text_columns(label) + 1, "%s", words);
	}
}

/*
 * True if the only frame of a stack stands for a stack that is missing. This frame is not printed,
 * because the flag of the stack says more.
 */
static bool is_placeholder(const struct wire_stack *stack)
{
	return stack->frames.n == 1 && stack->flags.n > 0 &&
	       strcmp(stack->frames.v[0].kind, "pseudo") == 0;
}

/*
 * Returns in how many lines the frames are printed, beginning with frame number `first`. Equal
 * frames in a row are printed in one line.
 */
static size_t count_lines(const struct view *view, const struct wire_stack *stack, size_t first)
{
	size_t lines = 0;

	for (size_t i = first; i < stack->frames.n; i += count_equal(view, stack, i))
		lines++;
	return lines;
}

static bool starts_with(const char *name, const char *start)
{
	return strncmp(name, start, strlen(start)) == 0;
}

static bool is_scheduler(const struct wire_frame *frame)
{
	const char *name = frame->name;

	return name && (starts_with(name, "__schedule") || starts_with(name, "schedule_") ||
			starts_with(name, "preempt_schedule") || strcmp(name, "schedule") == 0 ||
			starts_with(name, "schedule."));
}

size_t scheduler_frames(const struct wire_stack *kernel)
{
	size_t n = 0;

	while (n + 1 < kernel->frames.n && is_scheduler(&kernel->frames.v[n]))
		n++;
	return n;
}

/* True if a frame only leads from the start of a thread, or of a system call, to what it does. */
static bool is_entry(const struct wire_frame *frame, bool is_kernel)
{
	static const char *const of_kernel[] = { "entry_SYSCALL_", "do_syscall_64", "x64_sys_call",
						 "__x64_sys_" };
	static const char *const of_libc[] = { "__libc_start_", "start_thread", "clone" };
	const char *const *names = is_kernel ? of_kernel : of_libc;
	size_t n = is_kernel ? ARRAY_SIZE(of_kernel) : ARRAY_SIZE(of_libc);

	if (!frame->name)
		return false;
	if (!is_kernel && strcmp(frame->name, "_start") == 0)
		return true;
	if (!is_kernel && (!frame->module || !strstr(frame->module, "libc")))
		return false;
	for (size_t i = 0; i < n; i++)
		if (starts_with(frame->name, names[i]))
			return true;
	return false;
}

/* Returns the stack without the frames of is_entry() at its root, unless it has no others. */
static struct wire_stack without_entry(const struct wire_stack *stack, bool is_kernel)
{
	struct wire_stack inner = *stack;

	while (inner.frames.n > 1 && is_entry(&inner.frames.v[inner.frames.n - 1], is_kernel))
		inner.frames.n--;
	return inner;
}

static void render_stack(const struct view *view, const struct wire_stack *whole, bool is_kernel,
			 size_t indent, size_t limit)
{
	const struct wire_stack inner = view->verbose ? *whole : without_entry(whole, is_kernel),
				*stack = &inner;
	size_t i = is_kernel && !view->verbose && !view->keeps_scheduler ? scheduler_frames(stack)
									 : 0,
	       shown = 0;

	if (limit > 0 && count_lines(view, stack, i) <= limit + 1)
		limit = 0;
	while (!is_placeholder(stack) && i < stack->frames.n && (limit == 0 || shown < limit)) {
		size_t times = count_equal(view, stack, i);

		render_frame(view, &stack->frames.v[i], is_kernel, indent, times);
		i += times;
		shown++;
	}
	if (shown > 0 && i < stack->frames.n)
		page_wrap(&view->page, STYLE_DIM, "", indent, "... %zu more, -v shows all",
			  stack->frames.n - i);
	render_flags(view, stack, is_kernel ? "kernel" : "user", indent);
}

static bool has_frames(const struct wire_stack *stack)
{
	return stack && stack->frames.n > 0 && !is_placeholder(stack);
}

void render_frames(const struct view *view, const struct wire_row *row, size_t indent, size_t limit)
{
	const struct wire_stack *kernel = view->hides_kernel ? NULL : row->kernel;
	const struct wire_stack *user = view->hides_user ? NULL : row->user;

	if (kernel)
		render_stack(view, kernel, true, indent, limit);
	if (has_frames(kernel) && has_frames(user))
		page_wrap(&view->page, STYLE_DIM, "", indent, "-- kernel above, program below --");
	if (user)
		render_stack(view, user, false, indent, limit);
}

/* Returns the title of a row, without the host. The caller frees it. */
static char *title_on_host(const struct view *view, const struct wire_row *row)
{
	_cleanup_(freep) char *comm = name_escape(row->comm), *process = NULL;
	const char *kind = row->process.kernel ? "kernel thread" : "pid";
	const char *fate = process_fate(&row->process), *gone = fate ? fate : "";
	const char *comma = fate ? ", " : "";
	const int64_t processes = row->processes > 1 ? row->processes : row->folded;
	const char *of = "";
	char *title = NULL;
	int r;

	if (row->own == 1)
		return must(strdup("stackd itself"));
	if (row->key)
		return name_escape(row->key);
	/* Threads of the kernel whose names differ in digits only have no pid in common. */
	if (row->process.pid == 0 && processes <= 0)
		return TAKE(comm);
	/*
	 * The name of the process is empty if only one of its threads was seen and /proc could not
	 * be read.
	 */
	process = name_escape(row->process.comm);
	if (processes > 0) {
		if (process[0] != '\0' && strcmp(comm, process) != 0)
			of = ", threads of ";
		r = asprintf(&title, "%s (%s process%s%s%s)", comm, count_text(processes),
			     processes == 1 ? "" : "es", of, of[0] ? process : "");
	} else if (row->tid == WIRE_ABSENT) {
		if (process[0] != '\0' && strcmp(comm, process) != 0)
			of = ", of ";
		r = asprintf(&title, "%s (%s %" PRId64 "%s%s%s%s)", comm, kind, row->process.pid,
			     of, of[0] ? process : "", comma, gone);
	} else if (row->tid == row->process.pid) {
		r = asprintf(&title, "%s (%s %" PRId64 "%s%s)", comm, kind, row->tid, comma, gone);
	} else {
		if (process[0] != '\0' && strcmp(comm, process) != 0)
			of = " of ";
		r = asprintf(&title, "%s (thread %" PRId64 "%s%s, pid %" PRId64 "%s%s)", comm,
			     row->tid, of, of[0] ? process : "", row->process.pid, comma, gone);
	}
	return must(r < 0 ? NULL : title);
}

char *row_title(const struct view *view, const struct wire_row *row)
{
	_cleanup_(freep) char *host = NULL, *title = title_on_host(view, row);
	char *both;

	/* A row by host has it as its key. */
	if (!row->host || (row->key && strcmp(row->host, row->key) == 0))
		return TAKE(title);
	host = name_escape(row->host);
	return must(asprintf(&both, "%s: %s", host, title) < 0 ? NULL : both);
}

char *function_words(const char *function, bool is_short)
{
	_cleanup_(freep) char *name = NULL;

	if (function[0] == '/')
		name = must_printf("[%s]", strrchr(function, '/') + 1);
	else if (is_short)
		name = name_shorten(function);
	return name_escape(name ? name : function);
}
