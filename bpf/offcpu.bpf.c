/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs of the off-CPU probe (stage 1 in the README). A wait lasts from a thread's
 * switch-out to its next switch-in. It is blocked time until the thread is made runnable, and
 * runnable time from then on. Ended waits of at least min_wait_ns get stacks and a row in the
 * window's map; shorter ones are only summed by thread. If the window has a sample_below_ns, that
 * is the limit instead, and some of the shorter waits get a row, too, see sample.h. While walks of
 * stacks take too much of a CPU, that CPU has a higher limit, see brake.h.
 *
 * | hook                       | program          | in                    | maps it writes    |
 * |----------------------------|------------------|-----------------------|-------------------|
 * | tp_btf/sched_switch        | on_switch        | here                  | T, R, windows     |
 * | tp_btf/sched_waking        | on_waking        | here                  | threads, wakers   |
 * | tp_btf/sched_wakeup        | on_wakeup        | here                  | threads           |
 * | tp_btf/sched_wakeup_new    | on_wakeup_new    | here                  | T                 |
 * | tp_btf/sched_exit_tp       | on_sched_exit    | switch_in_progs.bpf.h | T, R, windows, U  |
 * | kprobe/finish_task_switch  | on_finish_switch | switch_in_progs.bpf.h | T, R, windows, U  |
 * | tp_btf/sched_process_fork  | on_fork          | here                  | R, processes      |
 * | tp_btf/sched_process_exec  | on_exec          | here                  | T, R, processes   |
 * | tp_btf/sched_process_exit  | on_exit          | here                  | R, processes      |
 * | tp_btf/cgroup_attach_task  | on_move          | here                  | R                 |
 * | iter/task                  | on_task          | here                  | T, R              |
 *
 * T: the maps threads, slots and free_slots. R: ring and seen. U: kstack_cache, ustack_cache and
 * the marks of use in unwind_tables, unwind_words and unwind_processes. processes:
 * unwind_processes. All programs write `cpus`. Either on_sched_exit or on_finish_switch is loaded,
 * or on_switch takes the stacks and writes U, too.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "filter.bpf.h"
#include "offcpu_maps.bpf.h"
#include "process.bpf.h"
#include "run_time.bpf.h"
#include "stack.bpf.h"
#include "switch_in_progs.bpf.h"
#include "thread.bpf.h"
#include "throttle.bpf.h"
#include "unwind.bpf.h"
#include "wait.bpf.h"
#include "wait_stacks.bpf.h"
#include "waker.bpf.h"

/*
 * Sends a wait that began in an earlier window through the ring. The daemon divides the wait among
 * the windows that it spans.
 */
static __always_inline void wait_send(struct cpu *cpu, const struct wait_key *key,
				      const struct pending_wait *w)
{
	struct record_wait *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (!r) {
		cpu->counts.lost[LOST_WAIT_RING]++;
		cpu->counts.lost_ns += w->end_ns - w->start_ns;
		return;
	}
	r->head.type = RECORD_WAIT;
	r->head.size = sizeof(*r);
	r->key = *key;
	r->start_ns = w->start_ns;
	r->wake_ns = w->wake_ns;
	r->end_ns = w->end_ns;
	r->throttled_ns = w->throttled_ns;
	r->culprits = w->culprits;
	cpu->counts.spans++;
	bpf_ringbuf_submit(r, ring_flags());
}

static __always_inline struct wait_sums *wait_row(void *window, const struct wait_key *key)
{
	static const struct wait_sums none;
	struct wait_sums *row = bpf_map_lookup_elem(window, key);

	if (row)
		return row;
	bpf_map_update_elem(window, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(window, key);
}

/* Adds a short wait that was picked at random, with its weight, to its row. */
static __always_inline void wait_add_short(struct cpu *cpu, struct wait_sums *row,
					   const struct pending_wait *w)
{
	__u64 below = w->sample_below_ns, ns = w->end_ns - w->start_ns;
	__u32 random = sample_random(&cpu->random);

	if (stack_hook == HOOK_SWITCH_OUT) {
		wait_sums_add_foreseen(row, w->start_ns, w->wake_ns, w->end_ns, w->odds, random);
		row->throttled_ns += sample_odds_part(w->throttled_ns, w->odds);
	} else if (ns) {
		wait_sums_add_sampled(row, w->start_ns, w->wake_ns, w->end_ns, below, random);
		row->throttled_ns += sample_part(w->throttled_ns, ns, below);
	}
}

/*
 * Adds an ended wait to its row in the window's map. The epoch is read once, so that the map and
 * the start are those of the same window. Like all functions that most switches do not need, this
 * one is not inlined: programs with a small frame are cheaper to enter.
 *
 * Not static, so that the verifier looks at it by itself (since 51c39bb1d5d1 in 5.6, with pointers
 * since e5069b9c23b3 in 5.12) and not again on each way to it: with all of them, on_switch() would
 * be more than the million instructions that 6.1 follows. The pointers are never NULL, which the
 * verifier cannot know.
 */
__noinline int wait_record(struct cpu *cpu, const struct pending_wait *w, __u64 kstack,
			   __u64 ustack)
{
	struct wait_key key = { .kstack = kstack, .ustack = ustack };
	__u32 slot = cut_epoch() & 1;
	struct wait_sums *row;
	__u64 below;
	void *window;

	if (!cpu || !w)
		return 0;
	below = w->sample_below_ns;
	key.uid = w->uid;
	key.exec_gen = w->exec_gen;
	key.state = below ? w->state | STATE_SAMPLED : w->state;
	if (!below && w->start_ns < cut.start_ns[slot]) {
		wait_send(cpu, &key, w);
		return 0;
	}
	window = bpf_map_lookup_elem(&windows, &slot);
	if (!window) {
		cpu->counts.lost[LOST_NO_MAP]++;
		return 0;
	}
	row = wait_row(window, &key);
	if (row)
		culprits_add(&row->culprits, &w->culprits);
	if (below) {
		if (row)
			wait_add_short(cpu, row, w);
		cpu->counts.sampled += !!row;
		cpu->counts.lost[LOST_SAMPLES] += !row;
		return 0;
	}
	if (!row) {
		cpu->counts.lost[LOST_WAIT_KEYS]++;
		cpu->counts.lost_ns += w->end_ns - w->start_ns;
		return 0;
	}
	cpu->counts.waits++;
	wait_sums_add(row, w->start_ns, w->wake_ns, w->end_ns);
	row->throttled_ns += w->throttled_ns;
	return 0;
}

/*
 * If a wait has ended on this CPU and its stacks have not been taken, records the wait without
 * stacks: the BPF program that takes the stacks did not run for it.
 */
static __always_inline void pending_flush(struct cpu *cpu)
{
	if (!cpu->pending.task)
		return;
	cpu->pending.task = 0;
	cpu->counts.stacks_late++;
	wait_record(cpu, &cpu->pending, STACK_NO_HOOK, STACK_NONE);
	barrier();
	cpu->counts.pendings = 0;
}

static __noinline int thread_end(struct cpu *cpu, struct thread *t, __u64 key, __u64 now)
{
	struct record_thread_end *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (r) {
		r->head.type = RECORD_THREAD_END;
		r->head.size = sizeof(*r);
		r->end_ns = now;
		bpf_probe_read_kernel(&r->thread, sizeof(r->thread), t);
		bpf_ringbuf_submit(r, ring_flags());
	} else {
		cpu->counts.lost[LOST_THREAD_END]++;
	}
	/* As long as `slots` leads to this slot, no other thread may get it. */
	if (bpf_map_delete_elem(&slots, &key))
		t->flags |= THREAD_IS_OVER;
	else
		slot_release(t);
	return 0;
}

/*
 * Returns the state that is kept of this task, or NULL. If it is the state of a thread of another
 * process, the task_struct has been reused: then reports the end of that other thread, and returns
 * NULL. This happens on hosts that hide tasks from BPF, where the programs may see neither the end
 * of a thread nor a fork.
 */
static __always_inline struct thread *thread_of(struct cpu *cpu, struct task_struct *task,
						__u64 now)
{
	struct thread *t = thread_find(cpu, (__u64)task);

	if (t && t->tgid != (__u32)task->tgid) {
		thread_end(cpu, t, (__u64)task, now);
		return NULL;
	}
	return t;
}

/* How a thread leaves its CPU. */
enum {
	LEAVES_BLOCKED = 1, /* it has left its run queue */
	LEAVES_SHOWN = 2,   /* sched_switch has shown it */
};

/*
 * Ends a thread's time on its CPU and begins a wait. `how` is made of LEAVES_*. Not static, see
 * wait_record().
 */
__noinline int thread_leave(struct cpu *cpu, struct thread *t, __u64 now, __u32 task_state,
			    __u32 how)
{
	bool is_blocked = how & LEAVES_BLOCKED;

	if (!cpu || !t)
		return 0;
	thread_begin(t);
	if (t->status == THREAD_ON_CPU) {
		now = thread_cross_now(t, now);
		t->sums.on_ns += span_ns(t->since_ns, now);
		/*
		 * A start that the drain corrects, see cut_start(), may be before the switch-in.
		 */
		if (now < t->since_ns)
			now = t->since_ns;
	} else {
		cpu->counts.lost[LOST_MISSED_OUT] += !(t->flags & THREAD_IS_SEEDED);
		/* It ended a sleep whose end was hidden. */
		t->wake_ns = 0;
	}
	t->sums.switches++;
	if (task_state & TASK_DEAD) {
		bpf_probe_read_kernel(t->comm, sizeof(t->comm),
				      ((struct task_struct *)t->task)->comm);
		thread_done(t);
		thread_end(cpu, t, t->task, now);
		return 0;
	}
	t->since_ns = now;
	t->flags &= ~THREAD_IS_SEEDED;
	if (how & LEAVES_SHOWN)
		t->flags |= THREAD_IS_SHOWN;
	t->wait_state = is_blocked ? task_state & STATE_TASK_MASK : STATE_PREEMPTED;
	/* status is written last, as a waker on another CPU may read it at any time. */
	barrier();
	t->status = is_blocked ? THREAD_BLOCKED : THREAD_RUNNABLE;
	thread_done(t);
	return 0;
}

/*
 * Lets the wait of a thread begin at `now`, after its stacks were taken, and not at left_ns, so
 * that it is not longer only because it is recorded. The walk is time on the CPU. If the thread was
 * made runnable meanwhile, or a window was cut, the times stay as they are. The stacks are not
 * taken before thread_leave(), as the verifier of 6.1 would then follow more than its million
 * instructions.
 */
static __always_inline void thread_leave_later(struct thread *t, __u64 left_ns, __u64 now)
{
	__u32 epoch = cut_epoch();

	now = cut_time(now, epoch);
	if (t->epoch != epoch || now < left_ns ||
	    __sync_val_compare_and_swap(&t->since_ns, left_ns, now) != left_ns)
		return;
	thread_begin(t);
	t->sums.on_ns += now - left_ns;
	thread_done(t);
}

/*
 * Returns the length below which waits are recorded by chance on a CPU whose brake is on.
 */
static __noinline __u64 wait_brake(struct cpu *cpu, __u64 now, __u64 below)
{
	brake_update(&cpu->brake, now, 0, cut.brake_share);
	if (!cpu->brake.steps)
		return below;
	return brake_below(cpu->brake.steps, below, min_wait_ns);
}

/*
 * True if a short wait is picked at random, to be recorded. Not inlined, because it is used only in
 * windows with a sample_below_ns and while a brake is on.
 */
static __noinline bool wait_is_sampled(struct cpu *cpu, const struct thread *t, __u64 ns,
				       __u64 below)
{
	if (ns < sample_from_ns)
		return false;
	if (stack_hook == HOOK_SWITCH_OUT)
		return t->kstack != STACK_NO_HOOK;
	if (cpu->brake.steps)
		cpu->counts.braked[(cpu->brake.steps - 1) & (BRAKE_STEPS - 1)]++;
	if (!cpu->random)
		cpu->random = (__u64)bpf_get_prandom_u32() << 1 | 1;
	return sample_has(sample_random(&cpu->random), ns, below);
}

/*
 * True if the wait is only summed by thread, unless it is picked at random. A wait that began
 * before the window is recorded from min_wait_ns on in any case: the windows before have it as an
 * open wait, and there is at most one such wait for each thread.
 */
static __always_inline bool wait_is_short(__u64 ns, __u64 since, __u32 slot, __u64 below)
{
	return ns < min_wait_ns || (ns < below && since >= cut.start_ns[slot]);
}

/*
 * Ends a wait and adds its blocked and its runnable time to the thread's sums. Returns true and
 * sets cpu->pending, but for its task, if the wait is to be recorded with its stacks: it was not
 * short, or was picked at random. Not static, see wait_record().
 */
__noinline bool wait_end(struct cpu *cpu, struct thread *t, __u64 now)
{
	struct pending_wait *w;
	__u64 since, from, wake, end, below;
	__u32 epoch, last_epoch, slot;
	bool is_short;

	if (!cpu || !t)
		return false;
	w = &cpu->pending;
	since = t->since_ns;
	from = thread_from(t);
	wake = t->wake_ns;
	epoch = cut_epoch();
	slot = epoch & 1;
	now = cut_time(now, epoch);
	end = now > since ? now : since;
	/* The daemon may change it at any time, so it is read once. */
	below = cut.sample_below_ns[slot];
	if (cpu->brake.steps)
		below = wait_brake(cpu, now, below);
	is_short = wait_is_short(end - since, since, slot, below);

	if (t->status == THREAD_RUNNABLE || wake_is_early(t))
		wake = since;
	else if (wake < since || wake > end)
		wake = end;
	if (thread_is_hidden(t) && wake < cut.start_ns[slot])
		wake = cut.start_ns[slot]; /* the windows before have a sleep */
	last_epoch = t->epoch;
	thread_begin(t);
	t->wake_ns = 0;
	thread_cross_cut(t, epoch, wake);
	t->sums.blocked_ns += span_ns(from, wake);
	t->sums.runnable_ns += span_ns(wake > from ? wake : from, end);
	w->throttled_ns = t->flags & THREAD_IS_MARKED ? throttle_end(t, wake, end, last_epoch) : 0;
	if (is_short) {
		t->sums.short_count++;
		t->sums.short_blocked_ns += wake - since;
		t->sums.short_runnable_ns += end - wake;
	}
	t->since_ns = end;
	t->status = THREAD_ON_CPU;
	t->flags &= ~(THREAD_IS_NEW | THREAD_IS_SEEDED | THREAD_IS_MARKED);
	thread_done(t);
	if (stack_hook == HOOK_SWITCH_OUT)
		t->average_ns = sample_average(t->average_ns, end - since);
	if (is_short) {
		cpu->counts.shorts++;
		if (!below || !wait_is_sampled(cpu, t, end - since, below))
			return false;
		w->odds = t->odds;
	}
	w->sample_below_ns = is_short ? below : 0;
	w->uid = t->uid;
	w->start_ns = since;
	w->wake_ns = wake;
	w->end_ns = end;
	w->state = t->wait_state;
	w->exec_gen = t->exec_gen;
	return true;
}

/*
 * True if the filter accepts this wait, so that it may get a row. The thread's sums include the
 * wait in any case.
 */
static __always_inline bool wait_is_wanted(struct task_struct *task, const struct pending_wait *w)
{
	if (filter.max_wait_ns && w->end_ns - w->start_ns > filter.max_wait_ns)
		return false;
	if (filter.has_states && !filter_has_state(w->state))
		return false;
	return filter_has_moment(task);
}

/*
 * Records a wait whose stacks were taken before it. If they were not, and the wait was long, takes
 * at least its kernel stack.
 */
static __always_inline void wait_record_early(struct cpu *cpu, struct task_struct *task,
					      const struct thread *t, struct pending_wait *w)
{
	__u64 kstack = t->kstack, ustack = t->ustack;

	if (kstack == STACK_NO_HOOK)
		kernel_stack_take_late(cpu, task, &kstack, &ustack);
	wait_record(cpu, w, kstack, ustack);
}

/*
 * Handles the switch-in of a thread that is on a CPU already, according to its state: the programs
 * have not seen its switch-out. Some hosts do not run BPF in init's threads. Usually
 * switch_recover() finds out about such a switch-out when it runs in the next thread on the same
 * CPU. It cannot do so if that thread is hidden from BPF, too, or runs only after init's thread is
 * on another CPU.
 */
static __noinline int thread_again(struct cpu *cpu, struct thread *t, __u64 now)
{
	if (t->flags & THREAD_IS_SEEDED)
		cpu->counts.first_seen++;
	else if (t->flags & THREAD_IS_SHOWN)
		cpu->counts.lost[LOST_MISSED_IN]++;
	else
		cpu->counts.hidden++;
	thread_begin(t);
	now = thread_cross_now(t, now);
	t->since_ns = now;
	/* It ran or slept since the start of this window; the windows before have it on its CPU. */
	if (t->sums.on_ns < t->at_cut.on_ns)
		t->sums.on_ns = t->at_cut.on_ns;
	/* It ended the sleep that was hidden. */
	t->wake_ns = 0;
	t->flags &= ~THREAD_IS_SEEDED;
	thread_done(t);
	return 0;
}

/*
 * Stores who ran on this CPU until the pending wait of cpu->running ended: the task cpu->before,
 * unless that is the idle task, or ran for less than half of the wait, or the thread was not on
 * this CPU's run queue for nearly all of the time in which it was ready. Then nobody is to blame:
 * several tasks ran meanwhile, the load balancer has moved the thread, or its cgroup had no quota.
 * The run queue's clock is known at one instant, the arrival of cpu->before on this CPU. Not
 * static, see wait_record().
 */
__noinline int ran_before_set(struct cpu *cpu)
{
	const struct task_struct *before, *task;
	struct pending_wait *w;
	__u64 queued, ready, here;

	if (!cpu || !cpu->before)
		return 0;
	before = (const struct task_struct *)cpu->before;
	task = (const struct task_struct *)cpu->running;
	w = &cpu->pending;
	w->culprits.ran_before.tid = BPF_CORE_READ(before, pid);
	queued = BPF_CORE_READ(task, sched_info.last_queued);
	if (!w->culprits.ran_before.tid || !queued || w->throttled_ns)
		return 0;
	ready = w->end_ns - w->wake_ns;
	if (w->end_ns - cpu->before_ns < ready / 2)
		return 0;
	here = w->end_ns - cpu->before_ns + BPF_CORE_READ(before, sched_info.last_arrival) - queued;
	if ((__s64)here < (__s64)(ready - ready / 8))
		return 0;
	w->culprits.ran_before.ns = ready;
	w->culprits.ran_before.tgid = BPF_CORE_READ(before, tgid);
	bpf_probe_read_kernel(w->culprits.ran_before.comm, COMM_LEN, before->comm);
	return 0;
}

/*
 * Ends the wait of a thread that is switched to. Records it, unless its stacks are to be taken
 * first: returns true, with the wait in cpu->pending.
 */
static __always_inline bool wait_finish(struct cpu *cpu, struct task_struct *task, struct thread *t,
					__u64 now)
{
	struct pending_wait *w = &cpu->pending;
	bool is_new = t->flags & THREAD_IS_NEW, is_hidden = thread_is_hidden(t);

	if (!wait_end(cpu, t, now))
		return false;
	if (is_hidden && w->wake_ns == w->start_ns)
		w->state = STATE_PREEMPTED;
	w->culprits.ran_before.ns = w->culprits.held_up_by.ns = 0;
	if (w->end_ns - w->wake_ns >= CULPRIT_MIN_NS)
		ran_before_set(cpu);
	if (w->wake_ns - w->start_ns >= CULPRIT_MIN_NS)
		waker_set(w, t->slot);
	if (!wait_is_wanted(task, w)) {
		cpu->counts.filtered += !w->sample_below_ns;
		return false;
	}
	if (is_new) {
		/*
		 * A forked thread starts in ret_from_fork, where no BPF program can take its
		 * stacks.
		 */
		wait_record(cpu, w, STACK_NEW_THREAD, STACK_NONE);
		return false;
	}
	if (stack_hook == HOOK_SWITCH_OUT) {
		wait_record_early(cpu, task, t, w);
		return false;
	}
	if (is_hidden) {
		/*
		 * No program that takes the stacks runs in it. Until one runs in another thread on
		 * this CPU, a window may end.
		 */
		cpu->counts.stacks_late++;
		wait_record(cpu, w, STACK_NO_HOOK, STACK_NONE);
		return false;
	}
	return true;
}

/* Returns how often the task has left a CPU. */
static __always_inline __u64 task_left(struct task_struct *task)
{
	return BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
}

/*
 * If a hidden thread has run since its wait was found, unseen, lets the wait be one sleep until
 * now: it ran and slept after its wakeup.
 */
static __noinline int wait_doubt(struct thread *t, struct task_struct *task)
{
	if (task_left(task) != t->left)
		t->wake_ns = 0;
	return 0;
}

static __always_inline void switch_in(struct cpu *cpu, struct task_struct *task, __u64 now)
{
	__u64 key = (__u64)task;
	struct thread *t = thread_of(cpu, task, now);
	bool is_pending;

	if (!t) {
		struct thread_start start = {
			.since_ns = now,
			.status = THREAD_ON_CPU,
		};

		cpu->counts.first_seen++;
		thread_add(cpu, task, &start);
		return;
	}
	if (t->status == THREAD_ON_CPU) {
		thread_again(cpu, t, now);
		return;
	}
	if (thread_is_hidden(t))
		wait_doubt(t, task);
	/* The daemon must not see the thread on its CPU, but not yet that its wait is pending. */
	cpu->counts.pendings = 1;
	barrier();
	is_pending = wait_finish(cpu, task, t, now);
	if (is_pending)
		cpu->pending.task = key;
	barrier();
	/* A sampled wait is in counts.shorts already. */
	cpu->counts.pendings = is_pending && !cpu->pending.sample_below_ns;
}

/*
 * Records the first switch-in of a new thread late, when the thread leaves its CPU. No BPF program
 * saw the switch-in, because the host runs no BPF programs in the thread that was on the CPU
 * before. The kernel's run_delay says how long the new thread had waited for the CPU.
 */
static __noinline int new_thread_recover(struct cpu *cpu, struct task_struct *task, __u64 since,
					 __u64 now)
{
	__u64 arrival = since + task->sched_info.run_delay;

	cpu->counts.recovered++;
	cpu->before = 0;
	switch_in(cpu, task, arrival < now ? arrival : now);
	return 0;
}

/* Returns the time at which the thread's wait begins. */
static __always_inline __u64 switch_out(void *ctx, struct cpu *cpu, struct task_struct *task,
					__u64 now, __u32 task_state, struct run *run)
{
	struct thread *t = thread_of(cpu, task, now);
	bool is_blocked = task_is_blocked(task);

	if (!t) {
		struct thread_start start = {
			.since_ns = now,
			.status = is_blocked ? THREAD_BLOCKED : THREAD_RUNNABLE,
			.wait_state = is_blocked ? task_state & STATE_TASK_MASK : STATE_PREEMPTED,
			.flags = THREAD_IS_SHOWN,
		};

		if (!(task_state & TASK_DEAD))
			thread_add(cpu, task, &start);
		return now;
	}
	if (t->flags & THREAD_IS_NEW && t->status == THREAD_RUNNABLE)
		new_thread_recover(cpu, task, t->since_ns, now);
	thread_leave(cpu, t, now, task_state, LEAVES_SHOWN | (is_blocked ? LEAVES_BLOCKED : 0));
	if (!is_blocked)
		throttle_leave(t, task);
	if (stack_hook == HOOK_SWITCH_OUT && !(task_state & TASK_DEAD)) {
		__u64 left_ns = now;

		t->odds = stacks_take_early(ctx, cpu, task, t->average_ns, run, &cpu->random, &now,
					    &t->kstack, &t->ustack);
		thread_leave_later(t, left_ns, now);
	}
	return now;
}

/* Notes who leaves this CPU, and since when that task was here, if its arrival was seen. */
static __always_inline void before_set(struct cpu *cpu, struct task_struct *prev, __u64 now)
{
	cpu->before = cpu->running == (__u64)prev ? cpu->running : 0;
	cpu->before_ns = cpu->switched_ns;
	cpu->switched_ns = now;
}

static __always_inline void running_set(struct cpu *cpu, struct task_struct *task)
{
	cpu->running = (__u64)task;
	*(void *volatile *)&cpu->stack = task->stack;
}

/* prev_state is the fourth argument since 5.18 (fa2c3254d7cf). */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct cpu *cpu = cpu_get();
	__u64 now;

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	if (next->pid)
		cpu->counts.switch_ins++;
	now = bpf_ktime_get_ns();
	before_set(cpu, prev, now);
	running_set(cpu, next);
	pending_flush(cpu);
	/*
	 * A thread that ends is handled even if the filter rejects it. It may have been accepted
	 * under another pid: an exec can give a thread the pid of another one.
	 */
	if (prev->pid && (filter_has_thread(prev) || prev_state & TASK_DEAD))
		now = switch_out(ctx, cpu, prev, now, prev_state, &run);
	if (next->pid && filter_has_thread(next))
		switch_in(cpu, next, now);
	else if (next->pid)
		cpu->counts.filtered++;
	return 0;
}

/*
 * Ends the blocked time of the woken thread. Runs in the waker, often before the thread has
 * switched out. If the thread has left its run queue by then, it is queued again as soon as it is
 * off its CPU (see wake_is_early()). If it is still on its run queue, it will mostly not sleep at
 * all.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct cpu *cpu = cpu_get();
	struct thread *t;

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	t = thread_find(cpu, (__u64)task);
	if (!t || t->status == THREAD_RUNNABLE)
		return 0;
	if (t->status != THREAD_BLOCKED) {
		if (task_is_blocked(task))
			t->wake_ns = bpf_ktime_get_ns();
		return 0;
	}
	if (t->wake_ns >= t->since_ns)
		return 0;
	t->wake_ns = bpf_ktime_get_ns();
	if (t->wake_ns - t->since_ns >= CULPRIT_MIN_NS)
		waker_note(cpu, ctx, task, t);
	return 0;
}

/*
 * Runs when a woken thread has been put on a run queue, maybe later than sched_waking and on
 * another CPU. Loaded only if the throttled time of the run queue is needed at this moment, because
 * it adds the run of a BPF program to each wait.
 */
SEC("?tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	struct cpu *cpu = cpu_get();
	struct thread *t;

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	t = thread_find(cpu, (__u64)task);
	if (t && t->status == THREAD_BLOCKED)
		throttle_wake(t, task);
	return 0;
}

/*
 * Begins the first wait of a new task. If there is an entry under the task's address, it belongs to
 * a freed task.
 */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task)
{
	struct thread_start start = {
		.since_ns = bpf_ktime_get_ns(),
		.status = THREAD_RUNNABLE,
		.wait_state = STATE_NEW,
		.flags = THREAD_IS_NEW,
	};
	struct cpu *cpu = cpu_get();
	struct thread *t;

	if (!cpu || !filter_has_thread(task))
		return 0;
	RUN_TIMED(cpu);
	thread_renew(cpu, task, &start);
	/*
	 * The new task's cgroup may be out of CPU quota already: store the run queue's throttled
	 * time before the task's first run, as after a wakeup.
	 */
	t = throttle_is_by_queue() ? thread_find(cpu, (__u64)task) : NULL;
	if (t)
		throttle_wake(t, task);
	return 0;
}

/*
 * Begins a wait of a hidden thread, see thread_is_hidden(). If it is queued already, or still, its
 * sleep has no length, unless it has run again when the wait ends.
 */
static __always_inline void thread_leave_hidden(struct cpu *cpu, struct thread *t,
						struct task_struct *task, __u64 now,
						bool is_blocked)
{
	__u32 state = BPF_CORE_READ(task, __state);

	thread_leave(cpu, t, now, state ?: TASK_INTERRUPTIBLE, LEAVES_BLOCKED);
	if (state & TASK_DEAD)
		return;
	t->left = task_left(task);
	if (!is_blocked)
		t->wake_ns = t->since_ns;
}

/*
 * Handles a switch that sched_switch did not show: the task was running before tracing began, or
 * the host runs no BPF programs in the task before it. Ends the CPU time of the task that was last
 * seen on this CPU.
 */
static __noinline int switch_recover(struct cpu *cpu, struct task_struct *task)
{
	struct task_struct *before = (struct task_struct *)cpu->running;
	__u64 key = cpu->running, now = bpf_ktime_get_ns();
	struct thread *t = thread_find(cpu, key);
	bool is_blocked;

	pending_flush(cpu);
	running_set(cpu, task);
	cpu->switched_ns = now;
	if (t && t->status == THREAD_ON_CPU) {
		is_blocked = !BPF_CORE_READ(before, on_rq);
		if (bpf_core_field_exists(before->se.sched_delayed))
			is_blocked |= BPF_CORE_READ(before, se.sched_delayed);
		if (t->flags & THREAD_IS_SHOWN)
			thread_leave(cpu, t, now, BPF_CORE_READ(before, __state),
				     is_blocked ? LEAVES_BLOCKED : 0);
		else
			thread_leave_hidden(cpu, t, before, now, is_blocked);
	}
	if (!task->pid || !filter_has_thread(task))
		return 0;
	cpu->counts.recovered++;
	cpu->before = 0;
	switch_in(cpu, task, now);
	return 0;
}

/*
 * Reads the thread's name again if one of its stacks was just sent, which happens about once a
 * window.
 */
static __always_inline void thread_refresh(struct cpu *cpu, struct task_struct *task, __u64 stacks)
{
	__u32 exec_gen = (__u32)task->self_exec_id;
	struct thread *t;

	cpu->pending.exec_gen = exec_gen;
	if (cpu->counts.stacks == stacks)
		return;
	t = thread_find(cpu, (__u64)task);
	if (t && t->exec_gen == exec_gen)
		thread_read_name(t, task);
}

/*
 * Takes the stacks of the current thread, which has just been switched to, and records its pending
 * wait. Inlined, because otherwise each kernel stack would have one more frame to unwind.
 */
static __always_inline void pending_record(void *ctx, struct cpu *cpu, struct task_struct *task,
					   struct run *run)
{
	__u64 kstack = STACK_NONE, ustack = STACK_NONE, stacks = cpu->counts.stacks;
	__u64 begin_ns = bpf_ktime_get_ns(), walked_ns;

	cpu->pending.task = 0;
	stacks_take(ctx, cpu, task, UNWIND_AT_SWITCH, &kstack, &ustack);
	thread_refresh(cpu, task, stacks);
	wait_record(cpu, &cpu->pending, kstack, ustack);
	barrier();
	cpu->counts.pendings = 0;
	walked_ns = run_walked(run, begin_ns);
	brake_update(&cpu->brake, begin_ns + walked_ns, walked_ns, cut.brake_share);
}

static __always_inline void on_switched_in(void *ctx)
{
	struct cpu *cpu = cpu_get();
	struct task_struct *task;

	if (!cpu)
		return;
	RUN_TIMED(cpu);
	if (!cpu->pending.task && stack_is_of_running(cpu, ctx))
		return;
	task = bpf_get_current_task_btf();
	if (cpu->running != (__u64)task && cpu->running)
		switch_recover(cpu, task);
	if (cpu->pending.task)
		pending_record(ctx, cpu, task, &run);
}

SWITCH_IN_PROGRAMS(on_switched_in)

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	process_fork(cpu, parent, child);
	return 0;
}

/*
 * Sets a thread's identity after an exec. A thread that was not the main thread has taken over the
 * leader's pid and start (de_thread() in fs/exec.c).
 */
static __always_inline void thread_exec(struct thread *t, struct task_struct *task)
{
	t->tid = task->pid;
	t->start_boot_ns = task->start_boottime;
	t->leader_boot_ns = task->group_leader->start_boottime;
	t->exec_gen = (__u32)task->self_exec_id;
	bpf_probe_read_kernel(t->comm, sizeof(t->comm), task->comm);
}

/* Copies to *r the identity and the sums that the thread had before its exec. */
static __always_inline void thread_leave_program(struct record_process *r, struct thread *t)
{
	__u64 now = bpf_ktime_get_ns();

	if (t->status == THREAD_ON_CPU) {
		thread_begin(t);
		now = thread_cross_now(t, now);
		thread_done(t);
	}
	r->uid = t->uid;
	r->before.tid = t->tid;
	r->before.start_boot_ns = t->start_boot_ns;
	r->before.exec_gen = t->exec_gen;
	r->epoch = t->epoch;
	r->sums = t->sums;
	if (t->status == THREAD_ON_CPU)
		r->sums.on_ns += span_ns(thread_from(t), now);
	bpf_probe_read_kernel(r->old_comm, sizeof(r->old_comm), t->comm);
}

/*
 * Stops following a thread that the filter accepted before its exec, but rejects under its new pid.
 */
static __always_inline void thread_leave_filter(struct cpu *cpu, struct thread *t, __u64 key)
{
	__u64 now = bpf_ktime_get_ns();

	thread_begin(t);
	if (t->status == THREAD_ON_CPU) {
		now = thread_cross_now(t, now);
		t->sums.on_ns += span_ns(thread_from(t), now);
	}
	thread_done(t);
	thread_end(cpu, t, key, now);
}

/* Reports an exec. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	struct cpu *cpu = cpu_get();
	struct record_process *r;
	struct thread *t;
	struct exec_facts facts = {};
	bool is_wanted;

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	unwind_note_exec(task);
	exec_look(cpu, task, &facts);
	t = thread_find(cpu, (__u64)task);
	is_wanted = filter_has_thread(task);
	r = process_record(cpu, RECORD_EXEC);
	if (r) {
		if (t && is_wanted)
			thread_leave_program(r, t);
		exec_send(cpu, r, task, &facts);
	}
	if (t && is_wanted)
		thread_exec(t, task);
	else if (t)
		thread_leave_filter(cpu, t, (__u64)task);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	process_exit(cpu, task, thread_find(cpu, (__u64)task));
	return 0;
}

/* Not loaded by kernels without control groups, which have no such tracepoint. */
SEC("?tp_btf/cgroup_attach_task")
int BPF_PROG(on_move, struct cgroup *group, const char *path, struct task_struct *task)
{
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	process_move(cpu, task);
	return 0;
}

/*
 * Adds a thread whose present state began before tracing. The kernel knows when a sleeping thread
 * was last put on a CPU, but in rq_clock() time. The last arrival of the current task on a CPU is
 * known in rq_clock() and in CLOCK_MONOTONIC, so it serves to convert the time.
 */
static __always_inline void task_seed(struct cpu *cpu, struct task_struct *task)
{
	struct task_struct *self = bpf_get_current_task_btf();
	__u64 key = (__u64)self, now = bpf_ktime_get_ns(), begin;
	struct thread *me = thread_find(cpu, key);
	struct thread_start start = {
		.since_ns = now,
		.seeded_ns = now,
		.flags = THREAD_IS_SEEDED,
	};

	if (task->exit_state || (task->flags & PF_EXITING) || !task->pid)
		return;
	if (task->on_cpu) {
		start.status = THREAD_ON_CPU;
	} else if (!task_is_blocked(task)) {
		start.status = THREAD_RUNNABLE;
		start.wait_state = STATE_PREEMPTED | STATE_SEEDED;
	} else {
		if (me && task->sched_info.last_arrival)
			start.since_ns = me->since_ns - (self->sched_info.last_arrival -
							 task->sched_info.last_arrival);
		if (start.since_ns > now)
			start.since_ns = now;
		start.status = THREAD_BLOCKED;
		start.wait_state = (task->__state & STATE_TASK_MASK) | STATE_SEEDED;
		/* The thread's sums do not include the time before the start of the window. */
		begin = cut.start_ns[cut.epoch & 1];
		start.seeded_ns = start.since_ns > begin ? start.since_ns : begin;
	}
	thread_add(cpu, task, &start);
}

/*
 * Sets wake_ns in a wait that has not ended, if the thread is runnable although no wakeup was seen
 * since its switch-out: then it was woken just before the switch-out.
 */
static __always_inline void task_early_wake(struct task_struct *task, struct thread *t)
{
	__u64 since = t->since_ns;

	if (!task->__state && !task->on_cpu && wake_is_early(t))
		t->wake_ns = since;
}

/*
 * Takes the kernel stack of a wait that has not ended. This happens once in each wait, and again if
 * the stack has not reached the daemon. openwait.bpf.c reads the user stack, as that may sleep.
 */
static __always_inline void task_open_wait(struct cpu *cpu, struct task_struct *task,
					   struct thread *t)
{
	struct scratch *s = scratch_get(SCRATCH_ITERATOR);
	__u64 since = t->since_ns, id, switches = task->nvcsw + task->nivcsw;
	struct stack_owner kernel = {};
	__u32 epoch = 0;
	long r;

	if (!s || task->on_cpu || t->status == THREAD_ON_CPU)
		return;
	if (t->open_since_ns == since && !cut_lacks_stacks())
		return;
	r = bpf_get_task_stack(task, s->ip, 8 * STACK_DEPTH, 0);
	if (task->on_cpu || task->nvcsw + task->nivcsw != switches || t->since_ns != since)
		return;
	id = stack_take_got(cpu, s, r, &kernel, &epoch);
	t->open_kstack = id;
	if (epoch)
		t->open_since_ns = since;
}

/* The daemon runs this iterator over all tasks once in each window, at its end. */
SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct cpu *cpu = cpu_get();
	__u64 key = (__u64)task;
	struct thread *t;

	if (!task || !cpu || !filter_has_thread(task))
		return 0;
	t = thread_find(cpu, key);
	if (!t) {
		task_seed(cpu, task);
		t = thread_find(cpu, key);
		if (!t)
			return 0;
	}
	t->seen_cut = cut.epoch;
	/* The thread may have changed its name right before its present wait. */
	if (!task->on_cpu && t->exec_gen == (__u32)task->self_exec_id)
		thread_read_name(t, task);
	task_early_wake(task, t);
	task_open_wait(cpu, task, t);
	throttle_look(cpu, t);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
