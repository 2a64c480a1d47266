/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the user stacks of waits that have not ended. An iterator over all tasks sends each stack,
 * and the wait to which the stack belongs, through the ring of the off-CPU probe, whose maps it
 * uses. It is sleepable, so that it can read another process's memory even if that is swapped out.
 * It never writes a window's map. Only one pass runs at a time, so global variables need no lock.
 * Needs bpf_copy_from_user_task() and iter.s (5.18).
 *
 * | hook        | program      | in   | maps it writes            |
 * |-------------|--------------|------|---------------------------|
 * | iter.s/task | on_open_wait | here | threads, seen, ring       |
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define UNWIND_READ copy_read

/*
 * 0: walks do not mark the parts of unwind tables that they use. The daemon does not wait for
 * sleepable programs before it reuses a table's memory, so a mark could overwrite other data. After
 * a walk, this BPF program checks by unwind_version whether the tables that it read have changed.
 */
#define UNWIND_MARKS_PARTS 0

#include "offcpu_maps.bpf.h"

#include "mapping.bpf.h"
#include "wait.bpf.h"

enum {
	PAGE = 4096,
	/*
	 * maximum number of copies that the walk of one stack needs: pieces of the stack, and the
	 * code before each return address that has to be proved
	 */
	COPY_ROUNDS = 24 + UNWIND_DEPTH,
	COPY_READ_MAX = 64, /* largest single read of the walk, in bytes */
	/*
	 * limit of the walks of one stack in one pass, if the unwind tables change during each walk
	 */
	ATTEMPTS = 3,
	/* bits of user_looks that hold the number of attempts; the bits above hold seconds */
	LOOKS_BITS = 4,
	/*
	 * maximum number of attempts to read the user stack of one wait; the pauses between the
	 * attempts grow from 1 to 512 s
	 */
	LOOKS_MAX = 10,
	/* used in place of the number of attempts: the whole stack has been sent */
	LOOKS_DONE = 15,
};

/* The daemon sets these three before each pass over all tasks. */
__u64 pass_min_ns;    /* least age in ns of a wait whose stack is read */
__u64 pass_max_looks; /* maximum number of user stacks to read in one pass */
__u64 pass_looks;     /* number of user stacks read in the pass so far */

struct openwait_counts counts;
__u64 lost[LOST_N];
__u32 reading_tgid; /* tgid of the process whose memory is being read; 0: none */

/*
 * A version number. The daemon increments it before it overwrites tables that a walk may be
 * reading.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} unwind_version SEC(".maps");

/*
 * A copy of a part of the task's user stack. When the walk reads outside it, the walk stops until
 * another part has been copied.
 */
static struct copy {
	__u64 start;
	__u64 size;
	__u64 missed_at;
	__u64 is_missed;
	__u64 code_missed; /* what of the code was missed, enum unwind_code_read plus 1; 0: none */
	__u64 code_at[UNWIND_CODE_READS];
	__u64 code[UNWIND_CODE_READS]; /* copies of the words at code_at; valid if this is not 0 */
	__u8 bytes[2 * PAGE];
} copy;

static struct unwind_walk walk;
/* counters of what this program sends; other programs have theirs in `cpus` */
static struct cpu own;
static __u32 frames_kept;

static __always_inline bool UNWIND_READ(void *to, __u32 size, __u64 from)
{
	__u64 at = from - copy.start;

	if (from < copy.start || at + size > copy.size || at > sizeof(copy.bytes) - COPY_READ_MAX) {
		copy.missed_at = from;
		copy.is_missed = 1;
		return false;
	}
	return !bpf_probe_read_kernel(to, size, &copy.bytes[at]);
}

static __always_inline bool unwind_read_code(__u64 *to, __u64 from, enum unwind_code_read which)
{
	if (copy.code_at[which] != from || !from) {
		copy.missed_at = from;
		copy.is_missed = 1;
		copy.code_missed = which + 1;
		return false;
	}
	*to = copy.code[which];
	return true;
}

static long copy_step(__u32 i, void *context)
{
	return unwind_step(frames_kept + i, context);
}

struct reading {
	struct task_struct *task;
	struct unwind_walk *walk;
};

/*
 * Copies the user stack from the address `from` to the end of the next page. If that page is not
 * mapped, copies only to the end of the page with that address.
 */
static __always_inline bool copy_make(struct task_struct *task, __u64 from)
{
	__u32 rest = PAGE - (from & (PAGE - 1));

	copy.is_missed = 0;
	copy.size = 0;
	copy.start = from;
	if (!bpf_copy_from_user_task(copy.bytes, PAGE + rest, (void *)from, task, 0))
		copy.size = PAGE + rest;
	else if (!bpf_copy_from_user_task(copy.bytes, rest, (void *)from, task, 0))
		copy.size = rest;
	return copy.size;
}

/* Copies the word of code that the walk has missed. */
static __always_inline bool copy_make_code(struct task_struct *task)
{
	__u64 which = copy.code_missed - 1, code = 0;

	copy.is_missed = 0;
	copy.code_missed = 0;
	if (which >= UNWIND_CODE_READS ||
	    bpf_copy_from_user_task(&code, sizeof(code), (void *)copy.missed_at, task, 0))
		return false;
	copy.code[which] = code;
	copy.code_at[which] = copy.missed_at;
	return true;
}

/*
 * One iteration of bpf_loop(): copies what the walk has missed, which is a part of the stack or a
 * word of code, and walks as far as the copies reach.
 */
static long copy_round(__u32 i, void *context)
{
	struct reading *r = context;
	struct unwind_walk *w = r->walk;
	__u64 from = w->sp;
	bool is_copied;

	if (i) {
		/*
		 * The walk stopped at a frame whose step needs memory outside the copy. Copy the
		 * stack from there, and repeat the step.
		 */
		from = copy.missed_at;
		frames_kept = w->n ? w->n - 1 : 0;
		w->flags &= UNWIND_IS_FRAME_POINTERS;
	}
	is_copied =
		i && copy.code_missed ? copy_make_code(r->task) : copy_make(r->task, from & ~7ULL);
	if (!is_copied) {
		w->flags |= UNWIND_IS_FAULT;
		return 1;
	}
	bpf_loop(UNWIND_DEPTH, copy_step, &r->walk, 0);
	return !copy.is_missed;
}

static __always_inline __u64 tables_version(void)
{
	__u32 zero = 0;
	__u64 *version = bpf_map_lookup_elem(&unwind_version, &zero);

	return version ? *(volatile __u64 *)version : 0;
}

/* Begins a walk at the task's user-space registers. False if the task has no user stack. */
static __always_inline bool walk_begin(struct unwind_walk *w, struct task_struct *task)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);

	if (!regs->ip || !unwind_has_memory(task))
		return false;
	frames_kept = 0;
	copy.code_missed = 0;
	__builtin_memset(copy.code_at, 0, sizeof(copy.code_at));
	unwind_start(w, task, regs);
	return true;
}

static __always_inline void walk_task(struct unwind_walk *w, struct task_struct *task)
{
	struct reading reading = { .task = task, .walk = w };

	if (w->flags)
		return;
	unwind_find_process(w, task);
	bpf_loop(COPY_ROUNDS, copy_round, &reading, 0);
	if (copy.is_missed)
		w->flags |= UNWIND_IS_FAULT;
	if (!w->n) {
		w->ip[0] = w->pc;
		w->n = 1;
		counts.unread++;
	}
	if (!(w->flags & ~UNWIND_IS_FRAME_POINTERS))
		w->flags |= UNWIND_IS_TRUNCATED;
}

/*
 * True if reading the task's memory would have to wait for the mmap lock, which a hanging process
 * may never release.
 */
static __always_inline bool memory_is_locked(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	if (!mm || !bpf_core_field_exists(mm->mmap_lock.count))
		return false;
	return BPF_CORE_READ(mm, mmap_lock.count.counter) & RWSEM_BUSY;
}

static __always_inline __u32 now_seconds(void)
{
	return (__u32)(bpf_ktime_get_ns() / 1000000000);
}

/*
 * Updates t->user_looks after an attempt to read the thread's user stack, which was sent in the
 * window `epoch`. If the stack is whole, or will never be, no further attempt is due in this wait.
 * An attempt whose stack was not sent, as the ring was full, does not count.
 */
static __always_inline void looks_note(struct thread *t, __u32 epoch)
{
	__u32 n = t->user_looks & ((1 << LOOKS_BITS) - 1);

	if (!epoch)
		return;
	if (walk.flags & (UNWIND_IS_WHOLE | UNWIND_IS_COMPAT))
		n = LOOKS_DONE;
	else if (n < LOOKS_MAX)
		n++;
	t->user_looks = now_seconds() << LOOKS_BITS | n;
}

static __always_inline bool looks_are_due(const struct thread *t)
{
	__u32 n = t->user_looks & ((1 << LOOKS_BITS) - 1);
	__u32 age = now_seconds() - (t->user_looks >> LOOKS_BITS);

	if (n == LOOKS_DONE)
		return age >= 1 && cut_lacks_stacks();
	return !n || age >= 1U << (n - 1);
}

static __always_inline void open_stack_send(struct thread *t, struct task_struct *task, __u64 since,
					    const struct stack_owner *owner)
{
	struct record_open_stack *r;
	__u32 epoch = 0;
	__u64 id = stack_take_user_sent(&own, &walk, owner, &epoch);

	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r)
		own.counts.lost[LOST_STACK_RING]++;
	__builtin_memcpy(lost, own.counts.lost, sizeof(lost));
	if (!r)
		return;
	r->head.type = RECORD_OPEN_STACK;
	r->head.size = sizeof(*r);
	r->uid = t->uid;
	r->since_ns = since;
	r->ustack = id;
	bpf_ringbuf_submit(r, ring_flags());
	looks_note(t, epoch);
}

/* Walks a thread's user stack and sends it, unless the thread has run meanwhile. */
static __noinline int thread_look(struct task_struct *task, struct thread *t)
{
	__u64 since, switches, version;
	struct stack_owner owner;
	int i;

	if (!task || !t)
		return 0;
	since = t->since_ns;
	owner.leader_boot_ns = task->group_leader->start_boottime;
	owner.tgid = task->tgid;
	owner.exec_gen = (__u32)task->self_exec_id;
	switches = task->nvcsw + task->nivcsw;
	for (i = 0; i < ATTEMPTS; i++) {
		version = tables_version();
		if (task->on_cpu || !walk_begin(&walk, task))
			return 0;
		reading_tgid = owner.tgid;
		walk_task(&walk, task);
		reading_tgid = 0;
		if (task->on_cpu || task->nvcsw + task->nivcsw != switches || t->since_ns != since)
			break;
		if (tables_version() != version)
			continue;
		counts.looks++;
		counts.whole += !!(walk.flags & UNWIND_IS_WHOLE);
		open_stack_send(t, task, since, &owner);
		return 0;
	}
	counts.changed++;
	return 0;
}

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	__u64 key = (__u64)task;
	struct thread *t;
	__u32 *slot = bpf_map_lookup_elem(&slots, &key), at;

	if (!slot)
		return NULL;
	at = *slot;
	t = bpf_map_lookup_elem(&threads, &at);
	return t && t->task == key ? t : NULL;
}

/*
 * True if the thread is in a wait that is old enough, and it is time to try to read its user stack.
 */
static __always_inline bool thread_is_wanted(struct thread *t)
{
	__u64 since = t->since_ns, now = bpf_ktime_get_ns();

	if (t->status != THREAD_BLOCKED || t->wake_ns >= since || since + pass_min_ns > now)
		return false;
	if (t->user_since_ns != since) {
		t->user_since_ns = since;
		t->user_looks = 0;
	}
	return looks_are_due(t);
}

/*
 * The daemon runs this BPF program in a thread that does nothing else, because the program may hang
 * in a page fault.
 */
SEC("iter.s/task")
int on_open_wait(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t;

	if (!task || task->flags & (PF_KTHREAD | PF_EXITING))
		return 0;
	t = thread_of(task);
	if (!t || !thread_is_wanted(t))
		return 0;
	if (pass_looks >= pass_max_looks) {
		counts.over++;
		return 0;
	}
	if (memory_is_locked(task)) {
		counts.locked++;
		return 0;
	}
	pass_looks++;
	return thread_look(task, t);
}

char LICENSE[] SEC("license") = "GPL";
