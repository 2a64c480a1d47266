/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs of the off-wake probe (stage 1 in the README): waits, each with the waker that ended
 * it. A sleep begins at the thread's switch-out. At sched_waking the waker's identity, context and
 * stacks are noted in the sleeper's entry, and at the switch-in the wait is recorded with them. An
 * entry also has the waker's own last waker, and so on, so a wait has a path of wakers. A wait
 * in which the thread was blocked for less than min_wait_ns is only counted. If the window has a
 * sample_below_ns, waits shorter than that, from switch-out to switch-in, are recorded by the rule
 * in sample.h instead. While walks of stacks take too much of a CPU, the limit is higher for waits
 * that end there, and for those of threads that it wakes, see brake.h.
 *
 * | hook                          | program                | in                    | writes       |
 * |-------------------------------|------------------------|-----------------------|--------------|
 * | tp_btf/sched_switch           | on_switch              | here                  | sleepers     |
 * | tp_btf/sched_exit_tp          | on_sched_exit          | switch_in_progs.bpf.h | W, U         |
 * | kprobe/finish_task_switch     | on_finish_switch       | switch_in_progs.bpf.h | W, U         |
 * | tp_btf/sched_waking           | on_waking              | here                  | sleepers, U  |
 * | raw_tp/irq_handler_entry etc. | on_irq_entry, _exit    | here                  | cpus         |
 * | raw_tp/softirq_raise          | on_softirq_raise       | here                  | cpus         |
 * | raw_tp/softirq_entry, _exit   | on_softirq_entry, _exit| here                  | cpus         |
 * | raw_tp/timer_expire_*         | on_timer_entry, _exit  | here                  | cpus         |
 * | raw_tp/hrtimer_expire_*       | on_hrtimer_entry, _exit| here                  | cpus         |
 * | tp_btf/sched_process_*        | on_fork, _exec, _exit  | follow_progs.bpf.h    | ring         |
 *
 * W: the maps windows and fresh. U: ring, seen, kstack_cache, ustack_cache and the marks of use in
 * the unwinder's maps. All programs write `cpus`. daemon/probe/offwake.c attaches the raw_tp
 * programs, some of them to several tracepoints. Either on_sched_exit or on_finish_switch is
 * loaded, or on_switch takes the stacks and writes W and U, too.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "brake.h"
#include "filter.bpf.h"
#include "hook.bpf.h"
#include "irq_context.bpf.h"
#include "layout.h"

/*
 * The wait that has just ended on a CPU, in the thread to which the CPU has switched. It is kept
 * here until the program that runs after the switch-in has taken the thread's stacks.
 */
struct pending_wake {
	__u64 task;
	__u64 start_ns;
	__u64 wake_ns;
	__u64 end_ns;
	/* the limit, if the wait is short and sample.h picked it at random; else 0 */
	__u64 sample_below_ns;
	__u32 state;
	__u32 odds; /* if short and stacks are taken at switch-out: see sample_odds() */
};

struct cpu {
	struct cpu_counts counts;
	struct pending_wake pending;
	__u64 random; /* state of sample_random(); 0: not used yet */
	struct irq_context irq_context;
	/*
	 * The brakes of the walks at switch-in and of those of wakers' stacks. The limit of a wait
	 * follows from both: from waker_brake where it was woken, as it was before that, and from
	 * `brake` at its switch-in. So the walk of its waker's stacks, which depends on the wait's
	 * random number, never changes the limit that the number is compared with.
	 */
	struct brake brake;
	struct brake waker_brake;
};

#define WINDOW_KEY   struct wake_key
#define WINDOW_VALUE struct wake_sums

#include "follow_progs.bpf.h"
#include "mapping.bpf.h"
#include "maps.bpf.h"
#include "run_time.bpf.h"
#include "stack.bpf.h"
#include "switch_in_progs.bpf.h"
#include "unwind.bpf.h"
#include "wait.bpf.h"
#include "wait_stacks.bpf.h"
#include "wake.bpf.h"

/*
 * A thread that has slept. While it sleeps, its waker writes this entry. When it is switched out or
 * in, BPF programs on its own CPU write the entry.
 */
struct sleeper {
	__u64 since_ns; /* start of the present sleep; 0: the thread is not asleep */
	__u64 wake_ns;	/* when it was last made runnable; 0: not since its last sleep began */
	/*
	 * Where stacks are taken at switch-out: the ids of the thread's stacks, or STACK_NO_HOOK if
	 * they were not taken, the odds of this (see sample_odds()), and the average of the
	 * thread's last waits by which these are chosen.
	 */
	__u64 kstack;
	__u64 ustack;
	__u32 odds;
	__u32 average_ns;
	/* part of the wait in which its waker's stacks were taken, so that the wait went on */
	__u64 waker_walk_ns;
	__u64 waker_kstack;
	__u64 waker_ustack;
	__u32 state;
	/*
	 * The random number of the present wait for sample_has(). One number decides at the wakeup
	 * and at the switch-in, so that a wait whose waker's stacks were taken is recorded.
	 */
	__u32 random;
	__u32 steps; /* steps of the waker's brake when it woke the thread */
	__u32 pad;
	struct wake_link links[WAKE_LINKS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); /* address of the task_struct */
	__type(value, struct sleeper);
} sleepers SEC(".maps");

/* Buffer for a new row, which is too big for the BPF stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wake_sums);
} fresh SEC(".maps");

/* Begins a sleep. Returns the thread's entry if its stacks are to be taken first, else NULL. */
static __always_inline struct sleeper *sleep_begin(struct cpu *cpu, struct task_struct *task,
						   __u64 now, __u32 state)
{
	static const struct sleeper none;
	__u64 key = (__u64)task;
	struct sleeper *s = bpf_map_lookup_elem(&sleepers, &key);

	if (!s) {
		bpf_map_update_elem(&sleepers, &key, &none, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&sleepers, &key);
	}
	if (!s) {
		cpu->counts.lost[LOST_THREADS]++;
		return NULL;
	}
	s->state = state & STATE_TASK_MASK;
	if (stack_hook == HOOK_SWITCH_OUT)
		return s;
	s->since_ns = now;
	return NULL;
}

/*
 * Takes the stacks of a thread that is about to sleep, and lets its sleep begin after that, so that
 * it is not longer only because it is recorded. Comes last in the program: the verifier of 6.1
 * would follow all that comes behind it once for each path of the walk.
 */
static __always_inline void sleep_begin_late(void *ctx, struct cpu *cpu, struct task_struct *task,
					     struct sleeper *s, __u64 now, struct run *run)
{
	s->odds = stacks_take_early(ctx, cpu, task, s->average_ns, run, &cpu->random, &now,
				    &s->kstack, &s->ustack);
	s->since_ns = now;
}

/* Returns the thread's entry if its stacks are to be taken before it sleeps, else NULL. */
static __always_inline struct sleeper *switch_out(struct cpu *cpu, struct task_struct *task,
						  __u64 now, __u32 state)
{
	__u64 key = (__u64)task;

	if (state & TASK_DEAD)
		bpf_map_delete_elem(&sleepers, &key);
	else if (task_is_blocked(task))
		return sleep_begin(cpu, task, now, state);
	return NULL;
}

static __always_inline bool wait_is_wanted(struct task_struct *task, const struct pending_wake *w)
{
	if (filter.max_wait_ns && w->wake_ns - w->start_ns > filter.max_wait_ns)
		return false;
	if (filter.has_states && !filter_has_state(w->state))
		return false;
	return filter_has_moment(task);
}

static __always_inline void target_identify(struct sample_key *target, struct task_struct *task)
{
	target->start_boot_ns = task->start_boottime;
	target->leader_boot_ns = task->group_leader->start_boottime;
	target->tid = task->pid;
	target->tgid = task->tgid;
	target->exec_gen = (__u32)task->self_exec_id;
	target->flags = task->flags & PF_KTHREAD ? SAMPLE_IS_KERNEL : 0;
}

static __always_inline struct wake_sums *wake_row(void *window, const struct wake_key *key,
						  struct task_struct *task, const struct sleeper *s)
{
	static const struct wait_sums none;
	struct wake_sums *row = bpf_map_lookup_elem(window, key), *sums;
	__u32 zero = 0;

	if (row)
		return row;
	sums = bpf_map_lookup_elem(&fresh, &zero);
	if (!sums)
		return NULL;
	sums->sums = none;
	bpf_probe_read_kernel(sums->comm, sizeof(sums->comm), task->comm);
	bpf_probe_read_kernel(sums->links, sizeof(sums->links), s->links);
	bpf_map_update_elem(window, key, sums, BPF_NOEXIST);
	return bpf_map_lookup_elem(window, key);
}

/*
 * Returns when the wait would have ended if its waker's stacks had not been taken. A wait that is
 * not recorded ends then, so one that stands for such waits must not be longer than they are.
 */
static __always_inline __u64 wait_undelayed_end(const struct pending_wake *w,
						const struct sleeper *s)
{
	__u64 runnable = w->end_ns - w->wake_ns, walk = s->waker_walk_ns;

	return w->end_ns - (walk < runnable ? walk : runnable);
}

/*
 * Adds an ended wait to its row in the window's map. The key of the row contains a hash of the path
 * of wakers.
 */
static __always_inline void wake_record(struct cpu *cpu, struct task_struct *task,
					const struct sleeper *s, __u64 kstack, __u64 ustack)
{
	const struct pending_wake *w = &cpu->pending;
	__u32 slot = cut.epoch & 1;
	struct wake_key key = {};
	struct wake_sums *row = NULL;
	void *window = bpf_map_lookup_elem(&windows, &slot);

	target_identify(&key.target, task);
	key.target.kstack = kstack;
	key.target.ustack = ustack;
	key.waker_kstack = s->waker_kstack;
	key.waker_ustack = s->waker_ustack;
	key.path = wake_path(s->links);
	key.state = w->sample_below_ns ? w->state | STATE_SAMPLED : w->state;
	if (window)
		row = wake_row(window, &key, task, s);
	if (w->sample_below_ns) {
		if (row && stack_hook == HOOK_SWITCH_OUT)
			wait_sums_add_foreseen(&row->sums, w->start_ns, w->wake_ns,
					       wait_undelayed_end(w, s), w->odds,
					       sample_random(&cpu->random));
		else if (row)
			wait_sums_add_sampled(&row->sums, w->start_ns, w->wake_ns, w->end_ns,
					      w->sample_below_ns, sample_random(&cpu->random));
		cpu->counts.sampled += !!row;
		cpu->counts.lost[LOST_SAMPLES] += !row;
		return;
	}
	if (!row) {
		cpu->counts.lost[window ? LOST_WAIT_KEYS : LOST_NO_MAP]++;
		cpu->counts.lost_ns += w->end_ns - w->start_ns;
		return;
	}
	cpu->counts.waits++;
	wait_sums_add(&row->sums, w->start_ns, w->wake_ns, w->end_ns);
}

/*
 * Records a wait whose stacks were taken before it. If they were not, and the wait was long, takes
 * at least its kernel stack.
 */
static __noinline int wake_record_early(struct cpu *cpu, struct task_struct *task,
					const struct sleeper *s)
{
	__u64 kstack = s->kstack, ustack = s->ustack;

	if (kstack == STACK_NO_HOOK)
		kernel_stack_take_late(cpu, task, &kstack, &ustack);
	wake_record(cpu, task, s, kstack, ustack);
	return 0;
}

/*
 * If a wait has ended on this CPU and its stacks have not been taken, counts it as lost: the
 * program that takes the stacks did not run for it, and its task may have been freed since.
 */
static __always_inline void pending_flush(struct cpu *cpu)
{
	if (!cpu->pending.task)
		return;
	cpu->pending.task = 0;
	cpu->counts.pendings = 0;
	if (cpu->pending.sample_below_ns)
		return; /* it is in counts.shorts */
	cpu->counts.lost[LOST_NO_HOOK]++;
	cpu->counts.lost_ns += cpu->pending.end_ns - cpu->pending.start_ns;
}

/* Returns the share of a CPU that each of its two brakes allows. */
static __always_inline __u32 brake_half(void)
{
	return (cut.brake_share + 1) / 2;
}

/* Returns the number of steps that a brake has at the time `now`. */
static __noinline __u32 brake_steps(struct brake *brake, __u64 now)
{
	if (brake->steps)
		brake_update(brake, now, 0, brake_half());
	return brake->steps;
}

/* Adds a walk to a brake. Where stacks are taken at switch-out, there are no brakes. */
static __noinline int brake_add(struct brake *brake, __u64 begin_ns, __u64 walked_ns)
{
	if (stack_hook != HOOK_SWITCH_OUT)
		brake_update(brake, begin_ns + walked_ns, walked_ns, brake_half());
	return 0;
}

/* Returns the length below which waits are recorded by chance after so many steps of a brake. */
static __always_inline __u64 wait_limit(__u32 steps)
{
	__u64 below = cut.sample_below_ns[cut.epoch & 1];

	return steps ? brake_below(steps, below, min_wait_ns) : below;
}

/* Returns a random number for sample_has(). */
static __always_inline __u32 random_take(struct cpu *cpu)
{
	if (!cpu->random)
		cpu->random = (__u64)bpf_get_prandom_u32() << 1 | 1;
	return sample_random(&cpu->random);
}

/*
 * Sets the waker to WAKE_UNKNOWN: no program saw who ended this wait, and the entry still has the
 * waker of an earlier wait.
 */
static __always_inline void waker_forget(struct sleeper *s)
{
	static const struct wake_link none[WAKE_LINKS];

	bpf_probe_read_kernel(s->links, sizeof(s->links), none);
	s->links[0].context = WAKE_UNKNOWN;
	s->waker_kstack = s->waker_ustack = STACK_NONE;
	s->waker_walk_ns = 0;
}

/*
 * Ends a sleep and describes it in cpu->pending. If the thread was woken before its switch-out,
 * when it was about to sleep, that wakeup ended the sleep at its start.
 */
static __always_inline void sleep_end(struct cpu *cpu, struct sleeper *s, __u64 now)
{
	struct pending_wake *w = &cpu->pending;
	__u64 since = s->since_ns, wake = s->wake_ns;

	if (!wake) {
		waker_forget(s);
		s->random = s->steps = 0;
	}
	if (!wake || wake > now)
		wake = now;
	w->start_ns = since;
	w->wake_ns = wake < since ? since : wake;
	w->end_ns = now;
	w->state = s->state;
	w->odds = s->odds;
	if (stack_hook == HOOK_SWITCH_OUT)
		s->average_ns = sample_average(s->average_ns, now - since);
	s->since_ns = 0;
	s->wake_ns = 0;
}

/* True if a wait that is, or has been so far, shorter than `below` is picked at random. */
static __always_inline bool wait_has_luck(struct cpu *cpu, const struct sleeper *s, __u64 ns,
					  __u64 below)
{
	if (stack_hook == HOOK_SWITCH_OUT)
		return s->kstack != STACK_NO_HOOK;
	return sample_has(s->random ? s->random : random_take(cpu), ns, below);
}

/*
 * True if the wait in cpu->pending is to be recorded. If it is a short one that was picked at
 * random, sets the pending wait's sample_below_ns. Counts short waits.
 */
static __always_inline bool wait_is_recorded(struct cpu *cpu, const struct sleeper *s)
{
	struct pending_wake *w = &cpu->pending;
	__u64 ns = w->end_ns - w->start_ns, blocked = w->wake_ns - w->start_ns, below;
	__u32 steps = brake_steps(&cpu->brake, w->end_ns);

	if (steps < s->steps)
		steps = s->steps;
	below = wait_limit(steps);
	w->sample_below_ns = 0;
	if (below ? ns >= below && blocked >= sample_from_ns : blocked >= min_wait_ns)
		return true;
	cpu->counts.shorts++;
	if (!below || blocked < sample_from_ns)
		return false;
	if (steps)
		cpu->counts.braked[(steps - 1) & (BRAKE_STEPS - 1)]++;
	if (!wait_has_luck(cpu, s, ns, below))
		return false;
	w->sample_below_ns = below;
	return true;
}

static __always_inline void switch_in(struct cpu *cpu, struct task_struct *task, __u64 now)
{
	struct pending_wake *w = &cpu->pending;
	__u64 key = (__u64)task;
	struct sleeper *s = bpf_map_lookup_elem(&sleepers, &key);

	if (!s || !s->since_ns) {
		cpu->counts.first_seen++;
		return;
	}
	sleep_end(cpu, s, now);
	if (!filter_has_thread(task)) {
		cpu->counts.filtered++;
	} else if (!wait_is_recorded(cpu, s)) {
		return;
	} else if (!wait_is_wanted(task, w)) {
		cpu->counts.filtered += !w->sample_below_ns;
	} else if (stack_hook == HOOK_SWITCH_OUT) {
		wake_record_early(cpu, task, s);
	} else {
		w->task = key;
		cpu->counts.pendings = !w->sample_below_ns;
	}
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct cpu *cpu = cpu_get();
	struct sleeper *s = NULL;
	__u64 now;

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	if (next->pid)
		cpu->counts.switch_ins++;
	now = bpf_ktime_get_ns();
	irq_context_clear(&cpu->irq_context);
	pending_flush(cpu);
	if (prev->pid)
		s = switch_out(cpu, prev, now, prev_state);
	if (next->pid)
		switch_in(cpu, next, now);
	if (s)
		sleep_begin_late(ctx, cpu, prev, s, now, &run);
	return 0;
}

/* Runs in a thread that has just been switched to: takes its stacks and records its wait. */
static __always_inline void on_switched_in(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 key = (__u64)task, kstack = STACK_NONE, ustack = STACK_NONE, begin_ns, walked_ns;
	struct cpu *cpu = cpu_get();
	struct sleeper *s;

	if (!cpu || cpu->pending.task != key || !key)
		return;
	begin_ns = bpf_ktime_get_ns();
	s = bpf_map_lookup_elem(&sleepers, &key);
	if (!s)
		return;
	cpu->pending.task = 0;
	cpu->counts.pendings = 0;
	stacks_take(ctx, cpu, task, UNWIND_AT_SWITCH, &kstack, &ustack);
	wake_record(cpu, task, s, kstack, ustack);
	walked_ns = bpf_ktime_get_ns() - begin_ns;
	cpu->counts.walk_ns += walked_ns;
	brake_add(&cpu->brake, begin_ns, walked_ns);
}

SWITCH_IN_PROGRAMS(on_switched_in)

/* Writes the current task into a link of a path of wakers. */
static __always_inline void link_name_task(struct wake_link *link, struct task_struct *current)
{
	link->tgid = current->tgid;
	link->tid = current->pid;
	bpf_probe_read_kernel(link->comm, sizeof(link->comm), current->comm);
}

/*
 * Takes the waker's stacks. In an interrupt, leaves out the frames of the interrupted code. A
 * softirq that a task raised and that runs as part of what it does is the task's: names the task
 * and takes its stacks.
 */
static __always_inline void waker_stacks(void *ctx, struct cpu *cpu, struct sleeper *s,
					 __u32 context)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_get(SCRATCH_WAKING);
	struct stack_owner kernel = {}, user;
	struct unwind_walk *w;
	bool is_task;
	long r;

	s->waker_kstack = s->waker_ustack = STACK_NONE;
	if (!scratch)
		return;
	r = bpf_get_stack(ctx, scratch->ip, 8 * STACK_DEPTH, 0);
	if (context == WAKE_SOFTIRQ && cpu->irq_context.is_own && current->pid &&
	    !(current->flags & PF_KTHREAD) && wake_is_own_softirq(scratch, r))
		link_name_task(&s->links[0], current);
	/* Read from the map, so that the verifier follows one path from here on instead of two. */
	is_task = s->links[0].tid != 0;
	if (!is_task)
		r = wake_truncate(scratch, r);
	s->waker_kstack = stack_take(cpu, scratch, r, &kernel);
	/* An exiting thread may have no user memory any more. */
	if (!is_task || current->flags & (PF_KTHREAD | PF_EXITING))
		return;
	user.leader_boot_ns = current->group_leader->start_boottime;
	user.tgid = current->tgid;
	user.exec_gen = (__u32)current->self_exec_id;
	w = unwind_user(current, UNWIND_AT_WAKING);
	if (w)
		s->waker_ustack = stack_take_user(cpu, w, &user);
}

/*
 * Writes into *s the path of wakers of a thread that is being woken: first its waker, which is
 * running now, and then, if the waker is a thread, the waker's own path of wakers.
 */
static __always_inline void waker_link(struct sleeper *s, __u32 context)
{
	static const struct wake_link none[WAKE_LINKS - 1];
	struct task_struct *current = bpf_get_current_task_btf();
	__u64 key = (__u64)current;
	struct wake_link *link = &s->links[0];
	struct sleeper *waker = NULL;

	__builtin_memset(link, 0, sizeof(*link));
	link->context = context;
	if (context == WAKE_TASK) {
		link_name_task(link, current);
		waker = bpf_map_lookup_elem(&sleepers, &key);
	}
	bpf_probe_read_kernel(&s->links[1], sizeof(none), waker ? waker->links : none);
}

/*
 * True if the stacks of the waker are to be taken: the thread has been blocked for so long that its
 * wait will be recorded. If waits are sampled, the wait may be recorded without them, since it may
 * last longer before the thread gets a CPU.
 */
static __always_inline bool waker_is_wanted(struct cpu *cpu, struct sleeper *s, __u64 since,
					    __u64 now)
{
	__u64 below, ns;

	s->steps = brake_steps(&cpu->waker_brake, now);
	below = wait_limit(s->steps);
	/* The number of an earlier wait must not decide about this one at the switch-in. */
	s->random = below ? random_take(cpu) : 0;
	if (!below)
		return !min_wait_ns || (since && now - since >= min_wait_ns);
	ns = since && now > since ? now - since : 0;
	return ns >= sample_from_ns && (ns >= below || wait_has_luck(cpu, s, ns, below));
}

/*
 * Stores the waker of a thread. sched_waking runs in the waker (sched_wakeup may run on another
 * CPU). sched_waking comes only for tasks that are not running, so the last one before a switch-in
 * is the wakeup that ended the sleep.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	__u64 key = (__u64)task, now, since, walked_ns;
	struct cpu *cpu = cpu_get();
	struct sleeper *s;
	__u32 context;

	if (!cpu || task == bpf_get_current_task_btf())
		return 0;
	RUN_TIMED(cpu);
	s = bpf_map_lookup_elem(&sleepers, &key);
	if (!s)
		return 0;
	now = bpf_ktime_get_ns();
	since = s->since_ns;
	context = wake_context(&cpu->irq_context);
	waker_link(s, context);
	s->waker_kstack = s->waker_ustack = STACK_NONE;
	s->waker_walk_ns = 0;
	if (waker_is_wanted(cpu, s, since, now) && filter_has_thread(task)) {
		waker_stacks(ctx, cpu, s, context);
		walked_ns = run_walked(&run, now);
		brake_add(&cpu->waker_brake, now, walked_ns);
		if (stack_hook == HOOK_SWITCH_OUT)
			s->waker_walk_ns = walked_ns;
	}
	s->wake_ns = now;
	return 0;
}

/*
 * on_irq_entry and on_irq_exit are attached to several tracepoints each: device interrupts
 * (irq_handler_*) and interrupts from other CPUs (irq_work_*, call_function_*).
 */
SEC("raw_tp")
int on_irq_entry(void *ctx)
{
	struct cpu *cpu = cpu_get();

	if (cpu)
		irq_context_enter(&cpu->irq_context.irq);
	return 0;
}

SEC("raw_tp")
int on_irq_exit(void *ctx)
{
	struct cpu *cpu = cpu_get();

	if (cpu)
		irq_context_leave(&cpu->irq_context.irq);
	return 0;
}

SEC("raw_tp")
int on_softirq_raise(__u64 *ctx)
{
	struct cpu *cpu = cpu_get();

	if (cpu)
		irq_context_raise(&cpu->irq_context, ctx[0]);
	return 0;
}

SEC("raw_tp")
int on_softirq_entry(__u64 *ctx)
{
	struct cpu *cpu = cpu_get();

	if (cpu)
		irq_context_enter_softirq(&cpu->irq_context, ctx[0]);
	return 0;
}

SEC("raw_tp")
int on_softirq_exit(void *ctx)
{
	struct cpu *cpu = cpu_get();

	if (cpu)
		irq_context_leave(&cpu->irq_context.softirq);
	return 0;
}

static __always_inline int timer_enter(void)
{
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	irq_context_enter(&cpu->irq_context.timer);
	cpu->irq_context.timer_irq = cpu->irq_context.irq;
	return 0;
}

static __always_inline int timer_leave(void)
{
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	irq_context_leave(&cpu->irq_context.timer);
	/*
	 * If this timer interrupted the function of another one, that function runs in a softirq,
	 * and irq was 0 when it began: restore this value.
	 */
	cpu->irq_context.timer_irq = 0;
	return 0;
}

/*
 * Run before and after the function of an expired timer. Timers and hrtimers have BPF programs of
 * their own: an hrtimer's interrupt may come while a timer's program runs, and the kernel skips a
 * program that is already running on the CPU (__bpf_trace_run), which would leave the depth wrong.
 */
SEC("raw_tp")
int on_timer_entry(void *ctx)
{
	return timer_enter();
}

SEC("raw_tp")
int on_timer_exit(void *ctx)
{
	return timer_leave();
}

SEC("raw_tp")
int on_hrtimer_entry(void *ctx)
{
	return timer_enter();
}

SEC("raw_tp")
int on_hrtimer_exit(void *ctx)
{
	return timer_leave();
}

char LICENSE[] SEC("license") = "GPL";
