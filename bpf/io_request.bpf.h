/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IO_REQUEST_BPF_H
#define STACKD_BPF_IO_REQUEST_BPF_H

/*
 * Requests and bios in flight: in go their tracepoints, out come rows of the layers below the file
 * systems, and what a request took for the operation that it was made for. Included after
 * io_table.bpf.h and io_sums.bpf.h; programs and all, as nobody else has use for them.
 */

const volatile bool has_throttle = false; /* on_throttle is attached */

/* A request, or a bio of a device that has no requests, from its making to its completion. */
struct io_request {
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
	char comm[COMM_LEN]; /* of its process */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64); /* its address */
	__type(value, struct io_request);
} requests SEC(".maps");

/* Bios held back: who made them and when. Some are merged into others, and never looked up. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct io_request);
} throttled SEC(".maps");

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

static __always_inline void request_identify(struct io_request *request, struct task_struct *task)
{
	struct io_slot *slot;
	__u64 stack = 0;
	__u32 index = 0;

	request->leader_boot_ns = task->group_leader->start_boottime;
	request->tgid = task->tgid;
	request->tid = task->pid;
	request->exec_gen = (__u32)task->self_exec_id;
	request->flags = task->flags & PF_KTHREAD ? IO_KEY_IS_KERNEL : 0;
	bpf_probe_read_kernel(request->comm, sizeof(request->comm), task->group_leader->comm);
	bpf_probe_read_kernel(&stack, sizeof(stack), &((struct task_struct___io *)task)->stack);
	slot = slot_find(stack, &index);
	if (!slot || !slot->depth)
		return;
	request->slot = index + 1;
	request->generation = slot->generation;
}

/* Who made the bio that was held back, in whose place a kernel thread goes on. */
static __always_inline bool request_resume(struct io_request *request, struct bio *bio)
{
	__u64 key = (__u64)bio;
	struct io_request *held;

	if (!has_throttle || !bio)
		return false;
	held = bpf_map_lookup_elem(&throttled, &key);
	if (!held)
		return false;
	*request = *held;
	bpf_map_delete_elem(&throttled, &key);
	return true;
}

/*
 * Where one is in flight already its end was not seen: in an interrupt of one that was being
 * recorded, or of a task that the host hides from BPF.
 */
static __always_inline void request_put(struct cpu *cpu, __u64 key,
					const struct io_request *request)
{
	long r = bpf_map_update_elem(&requests, &key, request, BPF_NOEXIST);

	if (r == -17 /* EEXIST */) {
		cpu->counts.lost[LOST_IO_UNSEEN]++;
		r = bpf_map_update_elem(&requests, &key, request, BPF_ANY);
	}
	if (r)
		cpu->counts.lost[LOST_IO_REQUESTS]++;
}

static __always_inline void request_begin(struct cpu *cpu, struct request *rq, __u64 start_ns,
					  __u64 issue_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_request request = {};

	if (!request_resume(&request, rq->bio)) {
		if (!filter_has_thread(task) || !filter_has_moment(task))
			return;
		request_identify(&request, task);
	}
	request.start_ns = start_ns;
	request.issue_ns = issue_ns;
	request.dev = disk_dev(rq->q->disk);
	request.op = request_op(rq->cmd_flags, rq->__data_len);
	request_put(cpu, (__u64)rq, &request);
}

/* Since 6.5 (5a80bd075f3b): by its maker, where the disk keeps statistics. */
SEC("?tp_btf/block_io_start")
int BPF_PROG(on_request_start, struct request *rq)
{
	struct cpu *cpu = cpu_get();

	if (cpu)
		request_begin(cpu, rq, bpf_ktime_get_ns(), 0);
	return 0;
}

/* Its start was not seen: the kernel knows when that was. */
static __always_inline void request_see(struct cpu *cpu, struct request *rq, __u64 issue_ns)
{
	__u64 now = bpf_ktime_get_ns(), start = rq->start_time_ns;

	request_begin(cpu, rq, start && start < now ? start : now, issue_ns);
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(on_request_insert, struct request *rq)
{
	__u64 key = (__u64)rq;
	struct cpu *cpu = cpu_get();

	if (cpu && !bpf_map_lookup_elem(&requests, &key))
		request_see(cpu, rq, 0);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_request_issue, struct request *rq)
{
	__u64 key = (__u64)rq;
	struct io_request *request;
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	request = bpf_map_lookup_elem(&requests, &key);
	if (request)
		request->issue_ns = bpf_ktime_get_ns();
	else
		request_see(cpu, rq, bpf_ktime_get_ns());
	return 0;
}

/* The driver gave it back: it waits again. */
SEC("tp_btf/block_rq_requeue")
int BPF_PROG(on_request_requeue, struct request *rq)
{
	__u64 key = (__u64)rq;
	struct io_request *request;
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	request = bpf_map_lookup_elem(&requests, &key);
	if (!request)
		return 0;
	request->issue_ns = 0;
	request->requeues++;
	return 0;
}

static __always_inline void request_key(struct io_key *key, const struct io_request *request,
					__u32 layer)
{
	key->leader_boot_ns = request->leader_boot_ns;
	key->tgid = request->tgid;
	key->exec_gen = request->exec_gen;
	key->flags = request->flags;
	key->dev = request->dev;
	key->layer = layer;
	key->op = request->op;
}

/* One part of a request's time, as a layer of its own. */
static __always_inline void part_add(struct cpu *cpu, const struct io_request *request,
				     struct io_times *t, __u32 layer, __u64 ns)
{
	struct io_key key = {};
	struct io_sums *row;

	request_key(&key, request, layer);
	row = io_row(cpu, &key, request->comm);
	if (!row)
		return;
	t->total_ns = t->own_ns = ns;
	io_add(row, t);
	if (layer == IO_LAYER_BLOCK) {
		cpu->counts.ios_kept++;
		IO_ADD(requeues, request->requeues);
	}
}

/* The operation it was made for, if that has not ended. */
static __always_inline void request_charge(const struct io_request *request, __u64 queue_ns,
					   __u64 device_ns)
{
	__u32 index = request->slot - 1;
	struct io_slot *slot;

	if (!request->slot)
		return;
	slot = bpf_map_lookup_elem(&slots, &index);
	if (!slot || !slot->depth || slot->generation != request->generation)
		return;
	__sync_fetch_and_add(&slot->device_ns, device_ns);
	__sync_fetch_and_add(&slot->queue_ns, queue_ns);
	__sync_fetch_and_add(&slot->throttled_ns, request->throttled_ns);
}

static __always_inline void request_end(struct cpu *cpu, const struct io_request *request,
					__u64 now, bool is_error)
{
	__u64 queue = request->issue_ns - request->start_ns, device = now - request->issue_ns;
	struct io_times t = {
		.end_ns = now,
		.bytes = request->bytes,
		.tid = request->tid,
		.is_error = is_error,
	};

	request_charge(request, queue, device);
	part_add(cpu, request, &t, IO_LAYER_BLOCK, queue + device);
	part_add(cpu, request, &t, IO_LAYER_QUEUE, queue);
	part_add(cpu, request, &t, IO_LAYER_DEVICE, device);
}

/*
 * May come several times, each with some of the bytes. One that was never issued had nothing to
 * be done for it: a flush, which the kernel makes a request of its own for.
 */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_request_complete, struct request *rq, int error, unsigned int bytes)
{
	__u64 key = (__u64)rq, now;
	struct io_request *request, copy;
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	request = bpf_map_lookup_elem(&requests, &key);
	if (!request)
		return 0;
	request->bytes += bytes;
	if (bytes < rq->__data_len)
		return 0;
	copy = *request;
	bpf_map_delete_elem(&requests, &key);
	if (!copy.issue_ns) {
		if (copy.op != IO_OP_FLUSH)
			cpu->counts.lost[LOST_IO_UNSEEN]++;
		return 0;
	}
	cpu->counts.ios++;
	request_end(cpu, &copy, now, error != 0);
	return 0;
}

static __always_inline void merge_add(struct cpu *cpu, const struct io_request *request)
{
	struct io_key key = {};
	struct io_sums *row;

	request_key(&key, request, IO_LAYER_BLOCK);
	row = io_row(cpu, &key, request->comm);
	if (row)
		__sync_fetch_and_add(&row->merges, 1);
}

/* This one became part of another. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_request_merge, struct request *rq)
{
	__u64 key = (__u64)rq;
	struct io_request *request, copy;
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	request = bpf_map_lookup_elem(&requests, &key);
	if (!request)
		return 0;
	copy = *request;
	bpf_map_delete_elem(&requests, &key);
	merge_add(cpu, &copy);
	return 0;
}

static __always_inline int bio_merge(struct bio *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_request request = {};
	struct cpu *cpu = cpu_get();

	if (!cpu || !filter_has_thread(task) || !filter_has_moment(task))
		return 0;
	request_identify(&request, task);
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

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queue, struct bio *bio)
{
	__u64 key = (__u64)bio, now;
	struct task_struct *task;
	struct io_request request = {}, *held = NULL;
	struct io_times t = {};
	bool is_all = bio_is_all(bio);
	struct cpu *cpu;

	if (!is_all && !has_throttle)
		return 0;
	cpu = cpu_get();
	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	if (has_throttle)
		held = bpf_map_lookup_elem(&throttled, &key);
	if (held) {
		held->throttled_ns = now - held->start_ns;
		t.end_ns = now;
		t.tid = held->tid;
		cpu->counts.ios++;
		cpu->counts.ios_kept++;
		part_add(cpu, held, &t, IO_LAYER_THROTTLE, held->throttled_ns);
	}
	if (!is_all)
		return 0;
	task = bpf_get_current_task_btf();
	if (!request_resume(&request, bio)) {
		if (!filter_has_thread(task) || !filter_has_moment(task))
			return 0;
		request_identify(&request, task);
	}
	request.start_ns = request.issue_ns = now;
	request.dev = disk_dev(bio->bi_bdev->bd_disk);
	request.op = request_op(bio->bi_opf, bio->bi_iter.bi_size);
	request.bytes = bio->bi_iter.bi_size;
	request_put(cpu, key, &request);
	return 0;
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_complete, struct request_queue *q, struct bio *bio)
{
	__u64 key = (__u64)bio, now;
	struct io_request *request, copy;
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	request = bpf_map_lookup_elem(&requests, &key);
	if (!request)
		return 0;
	now = bpf_ktime_get_ns();
	copy = *request;
	bpf_map_delete_elem(&requests, &key);
	cpu->counts.ios++;
	request_end(cpu, &copy, now, false);
	return 0;
}

/*
 * The kernel holds a bio back for io.max before it says that it was queued: here is where. What it
 * returns is whether it did.
 */
SEC("?fexit/__blk_throtl_bio")
int BPF_PROG(on_throttle, struct bio *bio, bool is_held)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_request request = {};
	__u64 key = (__u64)bio;
	struct cpu *cpu = cpu_get();

	if (!cpu || !is_held || !filter_has_thread(task) || !filter_has_moment(task))
		return 0;
	request_identify(&request, task);
	request.start_ns = bpf_ktime_get_ns();
	request.dev = disk_dev(bio->bi_bdev->bd_disk);
	request.op = request_op(bio->bi_opf, bio->bi_iter.bi_size);
	bpf_map_update_elem(&throttled, &key, &request, BPF_ANY);
	return 0;
}

#endif
