/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_THROTTLE_BPF_H
#define STACKD_BPF_THROTTLE_BPF_H

/*
 * Measures for how much of a wait the thread's cgroup was throttled (had no CPU quota). Reads the
 * run queue's throttled time when the thread leaves its CPU or is woken, and again when the thread
 * runs again; the difference is the result. Called under the run-queue lock.
 */

#include <bpf/bpf_core_read.h>

#include "thread.bpf.h"

/*
 * True if the kernel throttles single threads: since 6.18 (e1fad12dcb66) a thread dequeues itself
 * on its way to user mode and sets task->throttled. Before, the kernel stopped a cgroup's whole
 * queue.
 */
static __always_inline bool throttle_is_by_thread(void)
{
	return bpf_core_field_exists(((struct task_struct *)NULL)->throttled);
}

static __always_inline bool throttle_is_by_queue(void)
{
	return !throttle_is_by_thread() &&
	       bpf_core_field_exists(((struct cfs_rq *)NULL)->throttle_count);
}

/*
 * Returns the total time for which the queue has been throttled. Since 6.6 (677ea015f231) the
 * kernel measures it by rq_clock(). Older kernels measure it by the clock of load averages, which
 * runs slower on a CPU at reduced speed.
 */
static __always_inline __u64 throttle_clock(struct cfs_rq *queue)
{
	__u64 sum = 0, since;

	if (bpf_core_field_exists(queue->throttled_clock_self_time)) {
		sum = queue->throttled_clock_self_time;
		since = queue->throttled_clock_self;
		if (since)
			sum += queue->rq->clock - since;
	} else if (bpf_core_field_exists(queue->throttled_clock_pelt_time)) {
		sum = queue->throttled_clock_pelt_time;
		since = queue->throttled_clock_pelt;
		if (queue->throttle_count)
			sum += queue->rq->clock_pelt - queue->rq->lost_idle_time - since;
	}
	return sum;
}

/* Returns throttle_clock() of a queue that may have been freed, as the thread may have left it. */
static __always_inline __u64 throttle_clock_at(struct cfs_rq *queue)
{
	__u64 sum = 0, since;

	if (bpf_core_field_exists(queue->throttled_clock_self_time)) {
		sum = BPF_CORE_READ(queue, throttled_clock_self_time);
		since = BPF_CORE_READ(queue, throttled_clock_self);
		if (since)
			sum += BPF_CORE_READ(queue, rq, clock) - since;
	} else if (bpf_core_field_exists(queue->throttled_clock_pelt_time)) {
		sum = BPF_CORE_READ(queue, throttled_clock_pelt_time);
		since = BPF_CORE_READ(queue, throttled_clock_pelt);
		if (BPF_CORE_READ(queue, throttle_count))
			sum += BPF_CORE_READ(queue, rq, clock_pelt) -
			       BPF_CORE_READ(queue, rq, lost_idle_time) - since;
	}
	return sum;
}

/*
 * Stores the throttled time of the run queue at the moment when the thread begins to wait for a
 * CPU.
 */
static __always_inline void throttle_mark(struct thread *t, struct task_struct *task)
{
	struct cfs_rq *queue = task->se.cfs_rq;

	t->throttle_queue = (__u64)queue;
	t->throttle_mark_ns = throttle_clock(queue);
	t->flags |= THREAD_IS_MARKED;
}

/*
 * Stores the throttled time of the run queue when a runnable thread leaves its CPU. Since Linux
 * 6.18, does so only if the thread is throttled; for any other thread, it only reads one byte.
 */
static __always_inline void throttle_leave(struct thread *t, struct task_struct *task)
{
	if (throttle_is_by_thread()) {
		if (!task->throttled)
			return;
		throttle_mark(t, task);
		t->wait_state |= STATE_THROTTLED;
	} else if (throttle_is_by_queue()) {
		throttle_mark(t, task);
		if (task->se.cfs_rq->throttle_count)
			t->wait_state |= STATE_THROTTLED;
	}
}

/*
 * Stores the throttled time of the run queue when a woken thread has been put on the queue. Runs in
 * the waker.
 */
static __always_inline void throttle_wake(struct thread *t, struct task_struct *task)
{
	if (throttle_is_by_queue())
		throttle_mark(t, task);
}

/*
 * Returns how long the queue was throttled between wake_ns and end_ns, in a wait of a thread with
 * THREAD_IS_MARKED. Adds that time to the thread's sums. `epoch` is the number of the window in
 * which the thread had its previous event.
 */
static __noinline __u64 throttle_end(struct thread *t, __u64 wake_ns, __u64 end_ns, __u32 epoch)
{
	__u64 ns = throttle_clock_at((struct cfs_rq *)t->throttle_queue) - t->throttle_mark_ns;
	__u64 wait = span_ns(wake_ns, end_ns), at;

	if ((__s64)ns <= 0)
		return 0;
	if (ns > wait)
		ns = wait;
	t->sums.throttled_ns += ns;
	if (t->epoch != epoch) {
		at = span_ns(wake_ns, cut.start_ns[t->epoch & 1]);
		t->at_cut.throttled_ns += at < ns ? at : ns;
	}
	return ns;
}

static __always_inline bool throttle_is_out(struct cfs_rq *queue)
{
	if (bpf_core_field_exists(queue->throttled_clock_self_time))
		return BPF_CORE_READ(queue, throttled_clock_self);
	return bpf_core_field_exists(queue->throttle_count) && BPF_CORE_READ(queue, throttle_count);
}

/*
 * Sets t->open_throttled_ns: how long the present wait of the thread has been throttled so far. On
 * a CPU that is idle because no thread has quota, rq_clock() stands still. The time since it
 * stopped is added: the present time, converted to rq_clock(), minus the value at which it stopped.
 * The current task's last arrival on a CPU is known in rq_clock() and in CLOCK_MONOTONIC, so it
 * serves to convert the time.
 */
static __always_inline void throttle_look(struct cpu *cpu, struct thread *t)
{
	struct cfs_rq *queue = (struct cfs_rq *)t->throttle_queue;
	struct task_struct *self = bpf_get_current_task_btf();
	__u64 ns = 0, behind = 0;
	struct thread *me;

	if (t->flags & THREAD_IS_MARKED) {
		ns = throttle_clock_at(queue) - t->throttle_mark_ns;
		me = throttle_is_out(queue) ? thread_find(cpu, (__u64)self) : NULL;
		if (me && self->sched_info.last_arrival)
			behind = bpf_ktime_get_ns() - me->since_ns + self->sched_info.last_arrival -
				 BPF_CORE_READ(queue, rq, clock);
		if ((__s64)behind > 0)
			ns += behind;
	}
	t->open_throttled_ns = (__s64)ns > 0 ? ns : 0;
}

#endif
