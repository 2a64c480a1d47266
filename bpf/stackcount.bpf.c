/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs of stackcount and stacksnoop, which record calls (stage 1 in the README). A program
 * runs at each call of a traced function or tracepoint, in any context. It counts the call by
 * process and stacks and, for stacksnoop, also sends a record of it. The first frame of a stack is
 * the traced function. A kernel function is found by bpf_get_func_ip() (5.15 9b99edcae5c8, for
 * kprobe.multi 5.18 42a5712094e8), a program's function by the thread's pc, a tracepoint by an
 * address that the daemon supplies.
 *
 * | hook                   | program                | in                 | maps it writes   |
 * |------------------------|------------------------|--------------------|------------------|
 * | kprobe, kprobe.multi   | on_function            | here               | C                |
 * | uprobe                 | on_user_function       | here               | C                |
 * | tp_btf/...             | on_tracepoint_00 to 1f | here               | C                |
 * | tp_btf/sched_process_* | on_fork, _exec, _exit  | follow_progs.bpf.h | ring,            |
 * |                        |                        |                    | unwind_processes |
 *
 * C: the maps windows, seen, ring, kstack_cache and ustack_cache, the unwinder's marks of use, and
 * the variable `pace`. All programs write `cpus`.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "filter.bpf.h"
#include "layout.h"

struct cpu {
	struct cpu_counts counts;
	__u64 busy;  /* 1 while a call is being recorded, which uses the scratch buffers */
	__u64 skip;  /* number of calls that are still to be skipped */
	__u64 epoch; /* number (epoch) of the window in which the last call happened */
	__u64 slice_start_ns;
	__u64 slice_ns; /* time spent on recording in the present time slice */
};

#define WINDOW_KEY   struct sample_key
#define WINDOW_VALUE struct sample_sums

#include "follow_progs.bpf.h"
#include "mapping.bpf.h"
#include "maps.bpf.h"
#include "stack.bpf.h"
#include "unwind.bpf.h"

#include "kstack_cache.bpf.h"
#include "ustack_cache.bpf.h"

const volatile __u64 tracepoint_ips[TRACEPOINTS_MAX] = {};
const volatile __u32 call_kind = CALL_FUNCTION; /* enum call_kind, the same for a whole session */
const volatile bool streams = false;
/* The number of the program that is attached to sched_process_exec; TRACEPOINTS_MAX: none is. */
const volatile __u32 exec_tracepoint = TRACEPOINTS_MAX;

/* Stands for the address of a traced function if the program does not know it. */
#define NO_FUNCTION 1

/* How many calls are recorded. The daemon maps this variable and writes it. */
struct call_pace pace;

static __always_inline bool is_cpu_wanted(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return !filter.has_cpus || (cpu < FILTER_CPUS && filter.cpus[cpu / 64] & 1ULL << cpu % 64);
}

/*
 * Called for each call. At the CPU's first call in a window, decides about the calls that were
 * skipped in earlier windows: no call was recorded after them that could stand for them. If they
 * were skipped because a limit was reached, counts them as lost. If they were skipped at random,
 * counts them as lost only if the CPU had no calls in the previous window. If it had some, the next
 * recorded call stands for them: it is chosen at random from the calls of both windows.
 */
static __always_inline void calls_begin_window(struct cpu *cpu)
{
	__u64 epoch = cut.epoch, before = cpu->epoch;

	if (epoch == before)
		return;
	cpu->epoch = epoch;
	cpu->counts.lost[LOST_CALL_HELD] += cpu->counts.calls_refused;
	cpu->counts.calls_refused = 0;
	if (epoch - before == 1)
		return;
	cpu->counts.lost[LOST_CALL_HELD] += cpu->counts.calls_passed;
	cpu->counts.calls_passed = 0;
}

/*
 * Returns 0 if the call is to be skipped, else how many calls it stands for. The sum of these
 * numbers over all recorded calls is the number of all calls. The choice is random, so that no
 * regular pattern of calls is always recorded or always missed.
 */
static __always_inline __u64 call_pick(struct cpu *cpu)
{
	__u64 every = pace.every, count;

	cpu->counts.calls_passed++;
	if (cpu->skip && every > 1) {
		cpu->skip--;
		return 0;
	}
	cpu->skip = every > 1 ? bpf_get_prandom_u32() % (2 * every - 1) : 0;
	count = cpu->counts.calls_passed;
	cpu->counts.calls_passed = 0;
	return count;
}

/*
 * True if this CPU may still record in the present time slice. A session may trace functions that
 * the programs themselves call, or that run at each switch. Without this limit the daemon would not
 * get to run and adjust the pace.
 */
static __always_inline bool call_is_affordable(struct cpu *cpu, __u64 now)
{
	if (now - cpu->slice_start_ns >= CALL_SLICE_NS) {
		cpu->slice_start_ns = now;
		cpu->slice_ns = 0;
	}
	return cpu->slice_ns < pace.slice_ns;
}

/*
 * True if a call may be streamed now. After a time without calls, several may be streamed at once:
 * as many as are due in CALL_BURST_NS.
 */
static __always_inline bool call_is_due(__u64 now)
{
	__u64 interval = pace.interval_ns, old, from;
	int i;

	for (i = 0; i < 4; i++) {
		old = pace.next_ns;
		from = old + CALL_BURST_NS < now ? now - CALL_BURST_NS : old;
		if (from + interval > now)
			return false;
		if (__sync_val_compare_and_swap(&pace.next_ns, old, from + interval) == old)
			return true;
	}
	return false;
}

/*
 * Has the kernel walk the stack into s, with the traced function as first frame. Returns the size
 * of the frames in bytes, or a negative errno.
 */
static __always_inline long kernel_walk(void *ctx, struct scratch *s, __u64 first_ip)
{
	long r;

	if (call_kind == CALL_TRACEPOINT) {
		s->ip[0] = first_ip;
		r = bpf_get_stack(ctx, &s->ip[1], 8 * (STACK_DEPTH - 1), 0);
		return r > 0 ? r + 8 : r;
	}
	r = bpf_get_stack(ctx, s->ip, 8 * STACK_DEPTH, 0);
	/*
	 * ip[0] is the address behind the instruction that the probe replaced: set it to the
	 * address of the function itself.
	 */
	if (r > 0 && s->ip[0] - first_ip < 32)
		s->ip[0] = first_ip;
	return r;
}

/*
 * Returns the id of the current task's kernel stack. The first frames are not in the part of the
 * stack that the cache compares. For a tracepoint these are four: the address that stands for the
 * tracepoint, call_handle() and two of its callers. For a function it is one, that of the function.
 */
static __always_inline __u64 kernel_stack(void *ctx, struct cpu *cpu, struct task_struct *task,
					  void *top, __u64 hint, __u64 first_ip)
{
	struct kstack_lookup look;
	__u64 id =
		kstack_find(&look, ctx, top, hint, call_kind == CALL_TRACEPOINT ? 4 : 1, first_ip);

	if (id)
		return id;
	if (!look.frames)
		return STACK_NONE;
	return kstack_learn(&look, cpu, task, kernel_walk(ctx, look.frames, first_ip));
}

static __always_inline void stacks_take(void *ctx, struct cpu *cpu, struct task_struct *task,
					__u64 ip, struct sample_key *key)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	__u64 hint = hash_mix(task->start_boottime ^ (__u32)task->pid, ip);
	bool has_user = !(key->flags & SAMPLE_IS_KERNEL);
	struct stack_owner user;
	struct unwind_walk *w;

	if (has_user)
		hint = hash_mix(hash_mix(hint, regs->ip), regs->sp);
	hint = hash_mix(hint, 0) >> 32;
	/* A traced function of a program is called in user mode, where there is no kernel stack. */
	key->kstack = STACK_NONE;
	if (call_kind != CALL_USER && !filter.drops_kernel)
		key->kstack = kernel_stack(ctx, cpu, task, regs, hint, ip);
	/* An exiting thread may have no user memory any more. */
	if (!has_user || filter.drops_user || task->flags & PF_EXITING)
		return;
	w = unwind_begin(task, UNWIND_AT_SWITCH);
	if (!w)
		return;
	user.leader_boot_ns = key->leader_boot_ns;
	user.tgid = key->tgid;
	user.exec_gen = key->exec_gen;
	key->ustack = user_stack(cpu, w, hint, &user);
}

static __always_inline void call_fill(struct record_call *r, const struct sample_key *key,
				      struct task_struct *task, __u64 now, __u64 count)
{
	r->head.type = RECORD_CALL;
	r->head.size = sizeof(*r);
	r->key = *key;
	r->key.start_boot_ns = task->start_boottime;
	r->key.tid = task->pid;
	r->time_ns = now;
	r->count = count;
	r->cpu = bpf_get_smp_processor_id();
	r->pad = 0;
	bpf_probe_read_kernel(r->comm, sizeof(r->comm), task->comm);
}

/*
 * Stores what the new program was started with. The kernel has just put the arguments into its
 * memory, so that they can be read without a fault; those of a script begin with its interpreter.
 */
static __always_inline void exec_fill(struct record_exec_call *r, struct task_struct *task,
				      const struct linux_binprm *bprm)
{
	struct task_struct *parent = BPF_CORE_READ(task, real_parent, group_leader);
	__u64 start = BPF_CORE_READ(task, mm, arg_start), end = BPF_CORE_READ(task, mm, arg_end);
	__u32 n;

	r->call.head.size = sizeof(*r);
	r->parent = BPF_CORE_READ(parent, tgid);
	bpf_probe_read_kernel(r->parent_comm, sizeof(r->parent_comm), parent->comm);
	if (bpf_probe_read_kernel_str(r->path, sizeof(r->path), BPF_CORE_READ(bprm, filename)) < 0)
		r->path[0] = 0;
	r->all = end > start ? (__u32)(end - start) : 0;
	n = r->all < EXEC_ARGUMENTS ? r->all : EXEC_ARGUMENTS;
	r->n = bpf_probe_read_user(r->arguments, n, (void *)start) ? 0 : n;
	r->pad = 0;
}

static __always_inline void call_send(struct cpu *cpu, void *record)
{
	cpu->counts.streamed++;
	bpf_ringbuf_submit(record, ring_flags());
}

/* `bprm` is set at a call of sched_process_exec. */
static __always_inline void call_stream(struct cpu *cpu, const struct sample_key *key,
					struct task_struct *task, __u64 now, __u64 count,
					const struct linux_binprm *bprm)
{
	if (bprm) {
		struct record_exec_call *exec = bpf_ringbuf_reserve(&ring, sizeof(*exec), 0);

		if (exec) {
			call_fill(&exec->call, key, task, now, count);
			exec_fill(exec, task, bprm);
			call_send(cpu, exec);
			return;
		}
	} else {
		struct record_call *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

		if (r) {
			call_fill(r, key, task, now, count);
			call_send(cpu, r);
			return;
		}
	}
	cpu->counts.lost[LOST_CALL_RING]++;
}

/*
 * True if rows are counted by thread and not by process, as the filter asks for some threads only.
 */
static __always_inline bool by_thread(void)
{
	return filter.has_tids || filter.comm_len;
}

/* Returns the row of a key. A new row gets the name that the process or thread has now. */
static __always_inline struct sample_sums *call_row(void *window, const struct sample_key *key,
						    struct task_struct *task)
{
	struct sample_sums *row = bpf_map_lookup_elem(window, key), sums = {};

	if (row)
		return row;
	bpf_probe_read_kernel(sums.comm, sizeof(sums.comm),
			      by_thread() ? task->comm : task->group_leader->comm);
	bpf_map_update_elem(window, key, &sums, BPF_NOEXIST);
	return bpf_map_lookup_elem(window, key);
}

static __always_inline void call_add(struct cpu *cpu, const struct sample_key *key,
				     struct task_struct *task, __u64 count)
{
	__u32 slot = cut.epoch & 1;
	struct sample_sums *row;
	void *window = bpf_map_lookup_elem(&windows, &slot);

	if (!window) {
		cpu->counts.lost[LOST_NO_MAP] += count;
		return;
	}
	row = call_row(window, key, task);
	if (!row) {
		cpu->counts.lost[LOST_SAMPLE_KEYS] += count;
		return;
	}
	cpu->counts.samples_kept += count;
	__sync_fetch_and_add(&row->count, count);
}

static __always_inline void call_record(void *ctx, struct cpu *cpu, struct task_struct *task,
					__u64 ip, __u64 now, bool is_exec)
{
	struct sample_key key = {};
	__u64 count;

	if (!filter_has_thread(task) || !is_cpu_wanted() || !filter_has_moment(task)) {
		cpu->counts.filtered++;
		return;
	}
	calls_begin_window(cpu);
	count = call_pick(cpu);
	if (!count)
		return;
	/* The next recorded call will stand for this one, too. */
	if (!call_is_affordable(cpu, now) || (streams && !call_is_due(now))) {
		cpu->counts.calls_refused += count;
		return;
	}
	count += cpu->counts.calls_refused;
	cpu->counts.calls_refused = 0;
	key.leader_boot_ns = task->group_leader->start_boottime;
	key.tgid = task->tgid;
	key.start_boot_ns = by_thread() ? task->start_boottime : key.leader_boot_ns;
	key.tid = by_thread() ? task->pid : task->tgid;
	key.exec_gen = (__u32)task->self_exec_id;
	if (task->flags & PF_KTHREAD)
		key.flags = SAMPLE_IS_KERNEL;
	stacks_take(ctx, cpu, task, ip, &key);
	if (streams)
		call_stream(cpu, &key, task, now, count,
			    is_exec ? (const struct linux_binprm *)((__u64 *)ctx)[2] : NULL);
	call_add(cpu, &key, task, count);
}

/*
 * Records a call; is_exec: of the tracepoint sched_process_exec. Counts it as lost if another call
 * is being recorded on this CPU and so owns the buffers: an interrupt may make a call, or a thread
 * may be preempted in a uprobe.
 */
static __noinline int call_handle(void *ctx, __u64 ip, bool is_exec)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu *cpu = cpu_get();
	__u64 now;

	if (!cpu)
		return 0;
	__sync_fetch_and_add(&cpu->counts.samples, 1);
	if (__sync_lock_test_and_set(&cpu->busy, 1)) {
		__sync_fetch_and_add(&cpu->counts.lost[LOST_CALL_NESTED], 1);
		return 0;
	}
	now = bpf_ktime_get_ns();
	call_record(ctx, cpu, task, ip, now, is_exec);
	now = bpf_ktime_get_ns() - now;
	cpu->counts.call_ns += now;
	cpu->slice_ns += now;
	__sync_lock_test_and_set(&cpu->busy, 0);
	return 0;
}

/*
 * Runs at the calls of kernel functions. Attached to many functions at once (kprobe.multi) if the
 * kernel can do that, else to each.
 */
SEC("?kprobe")
int on_function(struct pt_regs *ctx)
{
	__u64 ip = bpf_get_func_ip(ctx);

	return call_handle(ctx, ip ? ip : NO_FUNCTION, false);
}

SEC("?uprobe")
int on_user_function(struct pt_regs *ctx)
{
	return call_handle(ctx, NO_FUNCTION, false);
}

/*
 * Defines the BPF program of a tracepoint. Each tracepoint needs one, as before 6.10 (68ca5d4eebb8)
 * a program cannot know which tracepoint ran it.
 */
#define ON_TRACEPOINT(n)                                                                  \
	SEC("?tp_btf")                                                                    \
	int on_tracepoint_##n(void *ctx)                                                  \
	{                                                                                 \
		return call_handle(ctx, tracepoint_ips[0x##n], exec_tracepoint == 0x##n); \
	}

#define ON_TRACEPOINTS(n)   \
	ON_TRACEPOINT(n##0) \
	ON_TRACEPOINT(n##1) \
	ON_TRACEPOINT(n##2) \
	ON_TRACEPOINT(n##3) \
	ON_TRACEPOINT(n##4) \
	ON_TRACEPOINT(n##5) \
	ON_TRACEPOINT(n##6) \
	ON_TRACEPOINT(n##7) \
	ON_TRACEPOINT(n##8) \
	ON_TRACEPOINT(n##9) \
	ON_TRACEPOINT(n##a) \
	ON_TRACEPOINT(n##b) \
	ON_TRACEPOINT(n##c) \
	ON_TRACEPOINT(n##d) \
	ON_TRACEPOINT(n##e) \
	ON_TRACEPOINT(n##f)

ON_TRACEPOINTS(0)
ON_TRACEPOINTS(1)

char LICENSE[] SEC("license") = "GPL";
