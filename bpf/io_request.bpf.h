/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IO_REQUEST_BPF_H
#define STACKD_BPF_IO_REQUEST_BPF_H

/*
 * Requests and bios in flight: in go their tracepoints, out come rows of the layers below the file
 * systems, and what a request took for the operation that it was made for. Included after
 * io_table.bpf.h and io_sums.bpf.h; programs and all, as nobody else has use for them.
 */

const volatile bool has_throttle = false; /* on_throttle is attached */
const volatile bool has_start = false;	  /* on_request_start is, and sees requests by their makers */

/*
 * A request, or a bio of a device that has no requests, from its making to its completion. The
 * kernel uses the same few requests again and again: each keeps its place.
 */
struct io_request {
	__u64 state; /* its address, and whether it is in flight; 0: nobody's yet */
	__u64 start_ns;
	__u64 issue_ns; /* 0: the driver has not got it (any more) */
	__u64 throttled_ns;
	__u64 leader_boot_ns;
	__u64 bytes; /* completed so far */
	__u32 tgid;
	__u32 tid;
	__u32 exec_gen;
	__u32 flags;
	__u32 dev;
	__u32 op;
	__u32 requeues;
	__u32 slot; /* plus one, of the operation it was made for; 0: none */
	__u32 generation;
	__u32 pad;
	__u64 comm[COMM_LEN / 8]; /* of its process */
	__u64 writer; /* as in a key */
	__u64 room[2];
};

_Static_assert(sizeof(struct io_request) == 128, "an io_request is two lines of the cache");

#define IN_FLIGHT	    1ULL       /* in state */
#define REQUEST_IS_UNWANTED (1U << 31) /* in flags: no session wants it; it is known, no more */

enum { REQUESTS = 4096, REQUEST_WAYS = 8 };

/* No hash: that would be three calls a request. Mapped by nobody, which has it begin with a page. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REQUESTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct io_request);
} requests SEC(".maps");

static bool has_bios; /* of devices without requests; most hosts have none */

static bool has_held;	/* of bios that io.max held back, neither */

/*
 * Bios held back: who made them, when, and in issue_ns till when, or 0. An entry ends as its bio
 * becomes a request, or part of one.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct io_request);
} throttled SEC(".maps");

static __always_inline __u32 request_index(__u64 address, __u32 way)
{
	return ((__u32)((address >> 6) * 0x9e3779b97f4a7c15ULL >> 40) + way) & (REQUESTS - 1);
}

/* NULL where that is not in flight. */
static __always_inline struct io_request *request_find(__u64 address)
{
	struct io_request *request;
	__u32 i, way;

	for (way = 0; way < REQUEST_WAYS; way++) {
		i = request_index(address, way);
		request = bpf_map_lookup_elem(&requests, &i);
		if (!request || !request->state)
			return NULL; /* it would have taken that place */
		if (request->state == (address | IN_FLIGHT))
			return request;
	}
	return NULL;
}

/*
 * Its own place or a new one, else that of one not in flight; nobody else takes it from then on.
 * Where it is in flight already its end was not seen: in an interrupt of one that was being
 * recorded, or of a task that the host hides from BPF.
 */
static __always_inline struct io_request *request_take(struct cpu *cpu, __u64 address)
{
	struct io_request *request;
	__u64 state;
	__u32 i, way;

	for (way = 0; way < 2 * REQUEST_WAYS; way++) {
		i = request_index(address, way & (REQUEST_WAYS - 1));
		request = bpf_map_lookup_elem(&requests, &i);
		if (!request)
			continue;
		state = request->state;
		if (state == (address | IN_FLIGHT)) {
			cpu->counts.lost[LOST_IO_UNSEEN]++;
			return request;
		}
		if (state & IN_FLIGHT || (state && state != address && way < REQUEST_WAYS))
			continue;
		if (__sync_val_compare_and_swap(&request->state, state, address | IN_FLIGHT) ==
		    state)
			return request;
	}
	cpu->counts.lost[LOST_IO_REQUESTS]++;
	return NULL;
}

/* The place stays its own as long as nobody needs it. */
static __always_inline void request_leave(struct io_request *request, __u64 address)
{
	*(volatile __u64 *)&request->state = address;
}

static __always_inline __u32 request_op(__u32 flags, __u32 bytes)
{
	switch (flags & REQ_OP_MASK) {
	case REQ_OP_READ:
		return IO_OP_READ;
	case REQ_OP_WRITE:
		return bytes ? IO_OP_WRITE : IO_OP_FLUSH;
	case REQ_OP_FLUSH:
		return IO_OP_FLUSH;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
	case REQ_OP_WRITE_ZEROES:
		return IO_OP_DISCARD;
	}
	return IO_OP_OTHER;
}

static __always_inline __u32 disk_dev(struct gendisk *disk)
{
	return disk ? (__u32)disk->major << 20 | (__u32)disk->first_minor : 0;
}

static __always_inline void request_identify(struct cpu *cpu, struct io_request *request,
					     struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	const __u64 *comm = (const __u64 *)leader->comm;
	struct io_slot *slot;
	__u32 index = 0;

	request->leader_boot_ns = leader->start_boottime;
	request->tgid = task->tgid;
	request->tid = task->pid;
	request->exec_gen = (__u32)task->self_exec_id;
	request->flags = task->flags & PF_KTHREAD ? IO_KEY_IS_KERNEL : 0;
	request->comm[0] = comm[0];
	request->comm[1] = comm[1];
	request->bytes = request->throttled_ns = request->writer = 0;
	request->requeues = request->slot = 0;
	if (!n_slots)
		return;
	slot = slot_find(stack_number(cpu, task), &index);
	if (!slot || !slot->depth)
		return;
	request->slot = index + 1;
	request->generation = slot->generation;
}

/*
 * Who dirtied what a kernel thread writes, where the kernel keeps account of that: the control group
 * that the bio is charged to. NULL where that is the top, as for all that has no account.
 */
static __always_inline struct cgroup *bio_writer(struct task_struct *task, struct bio *bio)
{
	struct cgroup *cgroup;
	struct blkcg_gq *group;

	if (!bio || !(task->flags & PF_KTHREAD) || !bpf_core_field_exists(bio->bi_blkg))
		return NULL;
	group = bio->bi_blkg;
	if (!group)
		return NULL;
	cgroup = group->blkcg->css.cgroup;
	if (!cgroup || !cgroup->level || ((struct cgroup___io *)cgroup)->root->hierarchy_id)
		return NULL;
	return cgroup;
}

static __always_inline bool request_is_wanted(struct task_struct *task, struct cgroup *writer)
{
	if (!filter_has_thread(task))
		return false;
	if (!writer)
		return filter_has_moment(task);
	return (!filter.comm_len || filter_has_comm(task)) && filter_has_cgroup(writer);
}

static __always_inline void request_key(struct io_key *key, const struct io_request *request,
					__u32 layer)
{
	key->leader_boot_ns = request->leader_boot_ns;
	key->tgid = request->tgid;
	key->exec_gen = request->exec_gen;
	key->flags = request->flags;
	key->writer = request->writer;
	key->dev = request->dev;
	key->layer = layer;
	key->op = request->op;
}

/* The operation it was made for, if that has not ended. */
static __always_inline void request_charge(const struct io_request *request, __u64 queue_ns,
					   __u64 device_ns)
{
	__u32 index = request->slot - 1;
	struct io_slot *slot;

	if (!n_slots || !request->slot)
		return;
	slot = bpf_map_lookup_elem(&slots, &index);
	if (!slot || !slot->depth || slot->generation != request->generation)
		return;
	__sync_fetch_and_add(&slot->device_ns, device_ns);
	__sync_fetch_and_add(&slot->queue_ns, queue_ns);
	if (request->throttled_ns)
		__sync_fetch_and_add(&slot->throttled_ns, request->throttled_ns);
}

/*
 * Who made the bio that was held back, in whose place a kernel thread goes on; or the one that this
 * was split off, which goes on as the rest.
 */
struct held {
	struct io_request *request; /* NULL: it was not */
	__u64 bio;		    /* which one was */
	bool is_part;
};

static __always_inline struct held bio_held(const struct bio *bio)
{
	struct held held = {};

	if (!has_throttle || !*(volatile bool *)&has_held || !bio)
		return held;
	held.bio = (__u64)bio;
	held.request = bpf_map_lookup_elem(&throttled, &held.bio);
	if (held.request)
		return held;
	held.bio = (__u64)bio->bi_private;
	held.request = bpf_map_lookup_elem(&throttled, &held.bio);
	held.is_part = true;
	return held;
}

/* The time it was held back, as a layer of its own. */
static __always_inline void throttle_end(struct cpu *cpu, struct io_request *request, __u64 now)
{
	struct io_times t = { .end_ns = now, .tid = request->tid };
	struct io_key key = {};
	struct io_sums *row;

	t.total_ns = t.own_ns = now - request->start_ns;
	request->throttled_ns += t.total_ns;
	request->issue_ns = now;
	cpu->counts.ios++;
	request_key(&key, request, IO_LAYER_THROTTLE);
	row = io_row(cpu, &key, (const char *)request->comm);
	if (!row)
		return;
	cpu->counts.ios_kept++;
	io_add(row, &t);
}

/* A rest that is held back again is not told of as it goes on (BIO_TRACE_COMPLETION). */
static __always_inline void throttle_settle(struct cpu *cpu, const struct held *held)
{
	if (!held->is_part && !held->request->issue_ns)
		throttle_end(cpu, held->request, bpf_ktime_get_ns());
}

static __always_inline void throttle_leave(const struct held *held)
{
	if (!held->is_part)
		bpf_map_delete_elem(&throttled, &held->bio);
}

static __always_inline void request_resume(struct cpu *cpu, struct io_request *request,
					   const struct held *held)
{
	throttle_settle(cpu, held);
	held->request->state = request->state; /* so that it is written over with itself */
	*request = *held->request;
	if (held->is_part)
		request->throttled_ns = 0; /* that is the rest's */
	throttle_leave(held);
}

/* Of whoever is to be followed; NULL of others, which it may remember. */
static __always_inline struct io_request *request_make(struct cpu *cpu, const void *address,
						       struct bio *bio, bool remembers)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cgroup *writer = bio_writer(task, bio);
	const struct held held = bio_held(bio);
	const bool is_wanted = held.request || request_is_wanted(task, writer);
	struct io_request *request;

	if (!is_wanted && !remembers)
		return NULL;
	request = request_take(cpu, pointer_number(cpu, address));
	if (!request)
		return NULL;
	if (!is_wanted) {
		request->flags = REQUEST_IS_UNWANTED;
		return NULL;
	}
	if (held.request) {
		request_resume(cpu, request, &held);
		return request;
	}
	request_identify(cpu, request, task);
	if (writer)
		request->writer = writer->kn->id;
	return request;
}

/*
 * Who runs the queue issues what others made, too. Where its maker is not seen in any case, who was
 * at it first counts for that: had it been forgotten that nobody wants it, its issue would be taken
 * for its making.
 */
static __always_inline void request_begin(struct cpu *cpu, struct request *rq, __u64 start_ns,
					  __u64 issue_ns)
{
	struct io_request *request = request_make(cpu, rq, rq->bio, !has_start);

	if (!request)
		return;
	request->start_ns = start_ns;
	request->issue_ns = issue_ns;
	request->dev = disk_dev(rq->q->disk);
	request->op = request_op(rq->cmd_flags, rq->__data_len);
}

/* The kernel has looked at its clock, but where nobody keeps account of the disk. */
static __always_inline __u64 request_made_ns(const struct request *rq)
{
	__u64 start = rq->start_time_ns;

	return start ? start : bpf_ktime_get_ns();
}

/*
 * Since 6.5 (5a80bd075f3b): by its maker, and of all requests but those that a flush is made of. Newer
 * kernels look at their clock after this; what is in start_time_ns is of the last use of the request.
 */
SEC("?tp_btf/block_io_start")
int BPF_PROG(on_request_start, struct request *rq)
{
	struct cpu *cpu = cpu_get();

	if (cpu)
		request_begin(cpu, rq, bpf_ktime_get_ns(), 0);
	return 0;
}

/* Before that, where a scheduler gets it first. */
SEC("?tp_btf/block_rq_insert")
int BPF_PROG(on_request_insert, struct request *rq)
{
	struct cpu *cpu = cpu_get();

	if (cpu && !request_find(pointer_number(cpu, rq)))
		request_begin(cpu, rq, request_made_ns(rq), 0);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_request_issue, struct request *rq)
{
	struct io_request *request;
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	request = request_find(pointer_number(cpu, rq));
	if (request)
		request->issue_ns = bpf_ktime_get_ns();
	else if (!has_start || (rq->cmd_flags & REQ_OP_MASK) == REQ_OP_FLUSH)
		request_begin(cpu, rq, request_made_ns(rq), bpf_ktime_get_ns());
	return 0;
}

/* The driver gave it back: it waits again. */
SEC("tp_btf/block_rq_requeue")
int BPF_PROG(on_request_requeue, struct request *rq)
{
	struct io_request *request;
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	request = request_find(pointer_number(cpu, rq));
	if (!request)
		return 0;
	request->issue_ns = 0;
	request->requeues++;
	return 0;
}

static __always_inline void request_end(struct cpu *cpu, const struct io_request *request,
					__u64 now, bool is_error)
{
	/* The kernel's own clock may be some ns ahead of that of programs. */
	__u64 start = request->start_ns, issue = request->issue_ns,
	      queue = issue > start ? issue - start : 0, device = now - issue;
	struct io_key key = {};
	struct io_sums *row;

	request_charge(request, queue, device);
	request_key(&key, request, IO_LAYER_BLOCK);
	row = io_row(cpu, &key, (const char *)request->comm);
	if (!row)
		return;
	cpu->counts.ios_kept++;
	/* How many and how long in all, the daemon knows from these. */
	__sync_fetch_and_add(&row->queue_ns, queue);
	__sync_fetch_and_add(&row->device_ns, device);
	__sync_fetch_and_add(&row->bytes, request->bytes);
	__sync_fetch_and_add(&row->buckets[io_bucket(queue + device) & (IO_BUCKETS - 1)], 1);
	IO_ADD(errors, is_error);
	IO_ADD(requeues, request->requeues);
	io_longest(&row->longest, queue + device, now, request->tid);
	io_part_add(&row->queue, queue, now, request->tid);
	io_part_add(&row->device, device, now, request->tid);
}

/*
 * One that was never issued had nothing to be done for it: a flush, which the kernel makes a request
 * of its own for.
 */
static __always_inline void request_close(struct cpu *cpu, const struct io_request *request,
					  __u64 now, bool is_error)
{
	if (request->flags & REQUEST_IS_UNWANTED)
		return;
	if (request->issue_ns) {
		cpu->counts.ios++;
		request_end(cpu, request, now, is_error);
	} else if (request->op != IO_OP_FLUSH) {
		cpu->counts.lost[LOST_IO_UNSEEN]++;
	}
}

/* May come several times, each with some of the bytes. */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_request_complete, struct request *rq, int error, unsigned int bytes)
{
	struct io_request *request;
	__u64 address, now;
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	address = pointer_number(cpu, rq);
	request = request_find(address);
	if (!request)
		return 0;
	request->bytes += bytes;
	if (bytes < rq->__data_len)
		return 0;
	request_close(cpu, request, now, error != 0);
	request_leave(request, address);
	return 0;
}

static __always_inline void merge_add(struct cpu *cpu, const struct io_request *request)
{
	struct io_key key = {};
	struct io_sums *row;

	request_key(&key, request, IO_LAYER_BLOCK);
	row = io_row(cpu, &key, (const char *)request->comm);
	if (row)
		__sync_fetch_and_add(&row->merges, 1);
}

/* This one became part of another. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_request_merge, struct request *rq)
{
	struct io_request *request;
	struct cpu *cpu = cpu_get();
	__u64 address;

	if (!cpu)
		return 0;
	address = pointer_number(cpu, rq);
	request = request_find(address);
	if (!request)
		return 0;
	if (!(request->flags & REQUEST_IS_UNWANTED))
		merge_add(cpu, request);
	request_leave(request, address);
	return 0;
}

static __always_inline int bio_merge(struct bio *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct held held = bio_held(bio);
	struct io_request request = {};
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	if (held.request) {
		throttle_settle(cpu, &held);
		if (!held.is_part)
			request_charge(held.request, 0, 0);
		merge_add(cpu, held.request);
		throttle_leave(&held);
		return 0;
	}
	if (!filter_has_thread(task) || !filter_has_moment(task))
		return 0;
	request_identify(cpu, &request, task);
	request.dev = disk_dev(bio->bi_bdev->bd_disk);
	request.op = request_op(bio->bi_opf, bio->bi_iter.bi_size);
	merge_add(cpu, &request);
	return 0;
}

SEC("tp_btf/block_bio_backmerge")
int BPF_PROG(on_bio_backmerge, struct bio *bio)
{
	return bio_merge(bio);
}

SEC("tp_btf/block_bio_frontmerge")
int BPF_PROG(on_bio_frontmerge, struct bio *bio)
{
	return bio_merge(bio);
}

/* A device that takes bios: there is no queue that would be seen. */
static __always_inline bool bio_is_all(struct bio *bio)
{
	struct gendisk *disk = bio->bi_bdev->bd_disk;

	return disk && disk->fops && disk->fops->submit_bio;
}

/* It goes on. Told once of each: what went on before was another bio, which came to nothing. */
static __always_inline void throttle_release(struct cpu *cpu, const struct bio *bio, __u64 now)
{
	const struct held held = bio_held(bio);

	if (!held.request || held.is_part)
		return;
	if (held.request->issue_ns)
		throttle_leave(&held);
	else
		throttle_end(cpu, held.request, now);
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queue, struct bio *bio)
{
	bool is_all = bio_is_all(bio);
	struct io_request *request;
	struct cpu *cpu;
	__u64 now;

	if (!is_all && !*(volatile bool *)&has_held)
		return 0;
	cpu = cpu_get();
	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	throttle_release(cpu, bio, now);
	if (!is_all)
		return 0;
	request = request_make(cpu, bio, bio, false);
	if (!request)
		return 0;
	request->start_ns = request->issue_ns = now;
	request->dev = disk_dev(bio->bi_bdev->bd_disk);
	request->op = request_op(bio->bi_opf, bio->bi_iter.bi_size);
	request->bytes = bio->bi_iter.bi_size;
	if (!has_bios)
		has_bios = true;
	return 0;
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_complete, struct request_queue *q, struct bio *bio)
{
	struct io_request *request;
	struct cpu *cpu;
	__u64 address;

	if (!*(volatile bool *)&has_bios)
		return 0;
	cpu = cpu_get();
	if (!cpu)
		return 0;
	address = pointer_number(cpu, bio);
	request = request_find(address);
	if (!request)
		return 0;
	cpu->counts.ios++;
	request_end(cpu, request, bpf_ktime_get_ns(), bio->bi_status != 0);
	request_leave(request, address);
	return 0;
}

/* The function returns whether it holds the bio back. */
SEC("?fexit/__blk_throtl_bio")
int BPF_PROG(on_throttle_pass, struct bio *bio, bool is_held)
{
	struct io_request *request;
	__u64 key = (__u64)bio;

	if (is_held)
		return 0;
	request = bpf_map_lookup_elem(&throttled, &key);
	if (!request)
		return 0;
	if (request->throttled_ns) /* but before, it did */
		request->issue_ns = request->start_ns;
	else
		bpf_map_delete_elem(&throttled, &key);
	return 0;
}

/*
 * The kernel holds a bio back for io.max before it says that it was queued: here is where, for the
 * groups that have a limit. It is noted before, as it may go on before the function returns.
 */
SEC("?fentry/__blk_throtl_bio")
int BPF_PROG(on_throttle, struct bio *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_request request = {}, *rest;
	__u64 key = (__u64)bio, now = bpf_ktime_get_ns();
	struct cpu *cpu = cpu_get();
	struct cgroup *writer;

	if (!cpu)
		return 0;
	rest = task->flags & PF_KTHREAD ? bpf_map_lookup_elem(&throttled, &key) : NULL;
	if (rest) { /* too large for a request, and asked about again */
		if (!rest->issue_ns)
			throttle_end(cpu, rest, now);
		rest->start_ns = now;
		rest->issue_ns = 0;
		return 0;
	}
	writer = bio_writer(task, bio);
	if (!request_is_wanted(task, writer))
		return 0;
	request_identify(cpu, &request, task);
	if (writer)
		request.writer = writer->kn->id;
	request.start_ns = now;
	request.dev = disk_dev(bio->bi_bdev->bd_disk);
	request.op = request_op(bio->bi_opf, bio->bi_iter.bi_size);
	if (!has_held)
		has_held = true;
	bpf_map_update_elem(&throttled, &key, &request, BPF_ANY);
	return 0;
}

#endif
