/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/idle_stack.h"

#include <string.h>

#include "common/base.h"
#include "common/own_function.h"

/* The maximum number of functions between a wait and the one of runtime_waits that it is for. */
enum { RUNTIME_ABOVE = 4 };

static bool is_listed(char *const *functions, const char *name)
{
	for (; *functions; functions++)
		if (function_is(name, *functions))
			return true;
	return false;
}

/*
 * Returns the index of the first frame of a user stack that is not one of libc's helpers for
 * waiting. Counts the leaf as a helper if it has no name, because libraries are mostly installed
 * without the names of such functions.
 */
static size_t helpers_skip(const struct stack *stack)
{
	struct frame *const *frames = stack->frames;
	size_t i = 0;

	while (i + 1 < stack->n_frames && frames[0]->file_id &&
	       frames[i + 1]->file_id == frames[0]->file_id &&
	       (function_is_libc_helper(frames[i]->name) ||
		(i == 0 && function_is_nameless(frames[0]->name))))
		i++;
	return i;
}

/*
 * Functions of runtimes in which threads of their own, and threads that only sleep, wait. Names of
 * C++ are without their arguments.
 */
static const char *const runtime_waits[] = {
	/* Go: a thread without a goroutine to run, and those that the runtime keeps for itself */
	"runtime.stopm",
	"runtime.sysmon",
	"runtime.templateThread",
	"os/signal.signal_recv",
	/* Erlang's schedulers */
	"erts_schedule",
	/* QEMU: the thread of its RCU */
	"call_rcu_thread",
	/* Apache: a worker that has to notice when it is to end */
	"ap_mpm_podx_check",
	/* node */
	"node::inspector::(anonymous namespace)::StartIoThreadMain",
	/* Tokio: the workers, one of which waits for timers, and the threads for blocking calls */
	"tokio::runtime::scheduler::multi_thread::park::Parker::park",
	"tokio::runtime::scheduler::multi_thread::park::Inner::park",
	"tokio::runtime::scheduler::multi_thread::worker::Context::park_timeout",
	"tokio::runtime::park::ParkThread::park",
	"tokio::runtime::park::ParkThread::park_timeout",
	"tokio::runtime::thread_pool::park::Inner::park",
	"tokio::runtime::thread_pool::worker::Context::park_timeout",
	"tokio::runtime::blocking::pool::Inner::run",
};

/* Those of Erlang that its runtime keeps for itself. */
static const char *const beam_waits[] = {
	"sys_msg_dispatcher_func",
	"signal_dispatcher_thread_func",
	"async_main",
	"aux_thread",
	"poll_thread",
};

/* Those of HotSpot, JDK 11 to 21: workers of the collectors, the compilers, and the like. */
static const char *const hotspot_waits[] = {
	"GangWorker::loop",
	"WorkerThread::run",
	"G1ConcurrentRefineThread::run_service",
	"G1ConcurrentRefineThread::wait_for_completed_buffers",
	"G1ConcurrentMarkThread::run_service",
	"G1ConcurrentMarkThread::wait_for_next_cycle",
	"G1ConcurrentMarkThread::sleep_before_next_cycle",
	"G1ServiceThread::sleep_before_next_cycle",
	"G1ServiceThread::wait_for_task",
	"os::signal_wait",
	"signal_thread_entry",
	"NMethodSweeper::sweeper_loop",
	"NotificationThread::notification_thread_entry",
	"ServiceThread::service_thread_entry",
	"MonitorDeflationThread::monitor_deflation_thread_entry",
	"JVM_WaitForReferencePendingList",
	"CompileQueue::get",
	"VMThread::wait_for_operation",
	"VMThread::loop",
	"WatcherThread::sleep",
	"JavaThread::sleep",
};

/* Functions near to a wait that show that it is for something else. */
static const char *const other_waits[] = {
	"runtime.gcstopm", /* Go has stopped the world, maybe for long */
	"pthread_mutex_lock",
	"__lll_lock_wait",
};

/* True if the name is this word, but for arguments, and for the < and > of a type of Rust. */
static bool is_called(const char *name, const char *word)
{
	for (; *word; name++) {
		if (*name == '<' || *name == '>')
			continue;
		if (*name != *word)
			return false;
		word++;
	}
	return *name == '\0' || *name == '(' || *name == '.';
}

static bool is_any(const char *name, const char *const *words, size_t n)
{
	for (size_t i = 0; name && i < n; i++)
		if (is_called(name, words[i]))
			return true;
	return false;
}

/*
 * Runtimes of languages whose functions count in their own file only, as other programs have
 * functions with such names, too.
 */
static const struct runtime {
	const char *file;
	const char *const *waits;
	size_t n;
} runtimes[] = {
	{ "libjvm.so", hotspot_waits, ARRAY_SIZE(hotspot_waits) },
	{ "beam.smp", beam_waits, ARRAY_SIZE(beam_waits) },
};

static bool is_wait_of_file(const struct frame *frame)
{
	const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;
	const char *file = slash ? slash + 1 : frame->module;

	for (size_t i = 0; file && i < ARRAY_SIZE(runtimes); i++)
		if (strcmp(file, runtimes[i].file) == 0)
			return is_any(frame->name, runtimes[i].waits, runtimes[i].n);
	return false;
}

/*
 * True if the stack is that of a thread that waits in a function of a runtime for work. The
 * function must be near to the wait: some of them also call what the thread works on.
 */
static bool waits_in_runtime(const struct stack *stack)
{
	const size_t end = helpers_skip(stack) + RUNTIME_ABOVE + 1;
	bool is_runtime = false;

	for (size_t i = 0; i < stack->n_frames && i < end; i++) {
		const struct frame *frame = stack->frames[i];

		if (is_any(frame->name, other_waits, ARRAY_SIZE(other_waits)))
			return false;
		is_runtime |= is_any(frame->name, runtime_waits, ARRAY_SIZE(runtime_waits));
		is_runtime |= is_wait_of_file(frame);
	}
	return is_runtime;
}

/* True if the walk of the stack ended before the thread's first function, or may have. */
static bool is_cut(const struct stack *stack)
{
	return stack->flags & (STACK_IS_TRUNCATED | STACK_IS_FRAME_POINTERS | STACK_IS_FAULT |
			       STACK_IS_NO_TABLE | STACK_IS_NO_MAPPING | STACK_IS_NO_ROW);
}

bool idle_stack(char *const *functions, const struct stack *stack)
{
	size_t i, n = stack->process && stack->n_frames > 1 ? 1 : stack->n_frames;

	for (i = 0; i < n; i++)
		if (is_listed(functions, stack->frames[i]->name))
			return true;
	if (!stack->process)
		return false;
	if (waits_in_runtime(stack))
		return true;
	if (is_cut(stack))
		return false;
	i = helpers_skip(stack);
	return i > 0 && stack->n_frames - 1 - i <= IDLE_LOOP_MAX &&
	       is_listed(functions, stack->frames[i]->name);
}
