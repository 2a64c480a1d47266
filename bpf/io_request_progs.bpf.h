/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IO_REQUEST_PROGS_BPF_H
#define STACKD_BPF_IO_REQUEST_PROGS_BPF_H

/*
 * iolat's BPF programs for block requests and bios, the layers below the file systems. When a
 * request ends, they also add its time to the operation that it was made for, such as a read(). A
 * bio is "held" while a limit in its cgroup's io.max delays it. Included by iolat.bpf.c only.
 */

#include "io_kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "io_sums.bpf.h"
#include "io_table.bpf.h"
#include "run_time.bpf.h"

const volatile bool has_throttle = false; /* true: the program on_throttle is attached */
/* True: the program on_request_start is attached. It runs in the task that makes a request. */
const volatile bool has_start = false;

/*
 * A block request, or a bio of a device without a request queue, from its creation to its
 * completion. The kernel uses the same few struct requests again and again, so an entry is kept
 * after the completion, for the next use of that struct.
 */
struct io_request {
	/* address of the request, plus IN_FLIGHT until the request ends; 0: free entry */
	__u64 state;
	__u64 start_ns;
	__u64 issue_ns; /* when the driver got the request; 0: the driver does not have it */
	__u64 throttled_ns;
	__u64 leader_boot_ns;
	__u64 bytes; /* number of bytes completed so far */
	__u32 tgid;
	__u32 tid;
	__u32 exec_gen;
	__u32 flags;
	__u32 dev;
	__u32 op;
	__u32 requeues;
	/*
	 * says which slot of io_slots has the operation that this request was made for: the slot's
	 * index plus 1; 0: there is no such operation
	 */
	__u32 slot;
	__u32 generation;
	__u32 pad;
	__u64 comm[COMM_LEN / 8]; /* name of the process that made the request */
	__u64 writer;		  /* id of the cgroup whose data the request writes back; 0: none */
	__u64 room[2];
};

_Static_assert(sizeof(struct io_request) == 128, "an io_request is two lines of the cache");

#define IN_FLIGHT	    1ULL       /* bit of io_request.state: the request has not ended */
#define REQUEST_IS_UNWANTED (1U << 31) /* in io_request.flags: the filter rejects the request */

/*
 * REQUESTS: number of entries in the table of requests. REQUEST_WAYS: the address of a request
 * selects this number of adjacent entries, and the request is in one of them. BIOS: maximum number
 * of bios followed in one request. Devices take up to 128 or 256 segments per request, and each bio
 * has at least one segment.
 */
enum { REQUESTS = 4096, REQUEST_WAYS = 8, BIOS = 256 };

/*
 * Requests by address: a hash table built on an array, as a BPF hash would cost three calls per
 * request. BPF_F_MMAPABLE is set only to make the array begin at a page boundary.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REQUESTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct io_request);
} requests SEC(".maps");

/* true: a BPF program has seen a device without a request queue; most hosts have no such device */
static bool has_bios;

static bool has_held; /* true: the kernel has checked a bio against a limit in io.max */

/*
 * The bios that the kernel has checked against a limit in io.max, by address, each with the process
 * that made it. In these entries, start_ns is the time at which the kernel last began to hold the
 * bio. issue_ns is the time at which it stopped, or 0 while it holds the bio. throttled_ns is the
 * total time for which it held the bio. An entry is removed when its bio completes.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct io_request);
} throttled SEC(".maps");

static __always_inline __u32 request_index(__u64 address, __u32 way)
{
	return ((__u32)((address >> 6) * 0x9e3779b97f4a7c15ULL >> 40) + way) & (REQUESTS - 1);
}

/* Returns the entry of the request at this address if it is in flight, else NULL. */
static __always_inline struct io_request *request_find(__u64 address)
{
	struct io_request *request;
	__u32 i, way;

	for (way = 0; way < REQUEST_WAYS; way++) {
		i = request_index(address, way);
		request = bpf_map_lookup_elem(&requests, &i);
		if (!request || !request->state)
			/*
			 * The request is not in the table. request_take() fills the entries in this
			 * order, and a used entry never becomes free again: so no request is in an
			 * entry behind a free one.
			 */
			return NULL;
		if (request->state == (address | IN_FLIGHT))
			return request;
	}
	return NULL;
}

/*
 * Returns an entry for a request that begins: the entry that it had before, or a free entry, or
 * else the entry of another request that is not in flight. NULL if there is none. If the request's
 * old entry is still marked as in flight, no program saw the end of that use. Either the program
 * for the end was already running on that CPU, so that the kernel skipped it; or the end came in a
 * task in which the host runs no BPF programs (some hosts exclude init and the idle tasks).
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

/*
 * Marks a request as completed. Its entry stays in the table until another request needs the entry.
 */
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
 * Returns the cgroup whose data a kernel thread writes back by this bio, or NULL if there is none
 * or the kernel does not know it. NULL also for the root cgroup, because the kernel charges to it
 * all I/O that it cannot attribute.
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

/* Adds a request's times to the operation that it was made for, unless the operation has ended. */
static __always_inline void request_charge(const struct io_request *request, __u64 throttled_ns,
					   __u64 queue_ns, __u64 device_ns)
{
	__u32 index = request->slot - 1;
	struct io_slot *slot;

	if (!n_slots || !request->slot)
		return;
	slot = bpf_map_lookup_elem(&io_slots, &index);
	if (!slot || !slot->depth || slot->generation != request->generation)
		return;
	__sync_fetch_and_add(&slot->device_ns, device_ns);
	__sync_fetch_and_add(&slot->queue_ns, queue_ns);
	if (throttled_ns)
		__sync_fetch_and_add(&slot->throttled_ns, throttled_ns);
}

/*
 * Looks for a bio in the map `throttled`, and returns its entry. A bio without an entry may have
 * been split from another bio: then sets *is_part, and returns the entry of that other bio. NULL if
 * it has no entry either. The caller learns from the entry which thread made the bio: a held bio is
 * submitted later by a kernel thread.
 */
static __always_inline struct io_request *bio_held(const struct bio *bio, bool *is_part)
{
	struct io_request *held;
	__u64 key = (__u64)bio;

	*is_part = false;
	if (!has_throttle || !*(volatile bool *)&has_held || !bio)
		return NULL;
	held = bpf_map_lookup_elem(&throttled, &key);
	if (held)
		return held;
	*is_part = true;
	key = (__u64)bio->bi_private;
	return bpf_map_lookup_elem(&throttled, &key);
}

/*
 * Records that the kernel no longer holds a bio: adds the time for which it held the bio to a row,
 * as an operation of the layer IO_LAYER_THROTTLE.
 */
static __always_inline void hold_end(struct cpu *cpu, struct io_request *held, __u64 now)
{
	struct io_times t = { .end_ns = now, .tid = held->tid };
	struct io_key key = {};
	struct io_sums *row;

	if (held->issue_ns || now < held->start_ns)
		return;
	t.total_ns = t.own_ns = now - held->start_ns;
	held->throttled_ns += t.total_ns;
	held->issue_ns = now;
	cpu->counts.ios++;
	request_key(&key, held, IO_LAYER_THROTTLE);
	row = io_row(cpu, &key, (const char *)held->comm);
	if (!row)
		return;
	cpu->counts.ios_kept++;
	io_add(row, &t);
}

/*
 * Copies the identity of the thread that made a held bio to the request that was made from the bio.
 */
static __always_inline void request_resume(struct io_request *request,
					   const struct io_request *held)
{
	request->leader_boot_ns = held->leader_boot_ns;
	request->tgid = held->tgid;
	request->tid = held->tid;
	request->exec_gen = held->exec_gen;
	request->flags = held->flags;
	request->comm[0] = held->comm[0];
	request->comm[1] = held->comm[1];
	request->writer = held->writer;
	request->slot = held->slot;
	request->generation = held->generation;
	request->throttled_ns = held->throttled_ns;
	request->bytes = request->requeues = 0;
}

/*
 * Makes the entry of a new request or bio and returns it. Returns NULL if there is no room, or if
 * the filter rejects the request. If `remembers` is true, a rejected request gets an entry
 * nevertheless, which is marked REQUEST_IS_UNWANTED; then, too, the result is NULL.
 */
static __always_inline struct io_request *request_make(struct cpu *cpu, const void *address,
						       struct bio *bio, __u64 start_ns,
						       bool remembers)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cgroup *writer = bio_writer(task, bio);
	bool is_part;
	struct io_request *request, *held = bio_held(bio, &is_part);
	const bool is_wanted = held || request_is_wanted(task, writer);

	if (!is_wanted && !remembers)
		return NULL;
	request = request_take(cpu, pointer_number(cpu, address));
	if (!request)
		return NULL;
	if (!is_wanted) {
		request->flags = REQUEST_IS_UNWANTED;
		return NULL;
	}
	if (held) {
		/*
		 * The kernel usually stops holding a bio at the event block_bio_queue. If the bio
		 * is the remainder of a split bio, there is no such event (BIO_TRACE_COMPLETION):
		 * then the time for which it was held ends here.
		 */
		if (!is_part)
			hold_end(cpu, held, start_ns);
		request_resume(request, held);
		return request;
	}
	request_identify(cpu, request, task);
	if (writer)
		request->writer = writer->kn->id;
	return request;
}

/*
 * Begins a request. If on_request_start is not attached, no BPF program runs in the task that makes
 * a request. Then the first task that handles the request counts as its maker, even if that task
 * only runs the queue. A request that the filter rejects gets an entry, too: without it, the next
 * event of the request would look like the beginning of a new one.
 */
static __always_inline void request_begin(struct cpu *cpu, struct request *rq, __u64 start_ns,
					  __u64 issue_ns)
{
	struct io_request *request = request_make(cpu, rq, rq->bio, start_ns, !has_start);

	if (!request)
		return;
	request->start_ns = start_ns;
	request->issue_ns = issue_ns;
	request->dev = disk_dev(rq->q->disk);
	request->op = request_op(rq->cmd_flags, rq->__data_len);
}

/*
 * Returns the time at which the kernel made a request. If the kernel keeps no statistics of the
 * disk, it has not stored this time: then returns the present time.
 */
static __always_inline __u64 request_made_ns(const struct request *rq)
{
	__u64 start = rq->start_time_ns;

	return start ? start : bpf_ktime_get_ns();
}

/*
 * Since 6.5 (5a80bd075f3b). Runs in the task that makes a request. Does not run for the requests
 * that the kernel makes to carry out a flush. Newer kernels set start_time_ns after this event;
 * here it still has the value of an earlier use of the struct.
 */
SEC("?tp_btf/block_io_start")
int BPF_PROG(on_request_start, struct request *rq)
{
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	request_begin(cpu, rq, bpf_ktime_get_ns(), 0);
	return 0;
}

/*
 * Loaded only on Linux before 6.5. Begins a request that goes to an I/O scheduler before the driver
 * gets it.
 */
SEC("?tp_btf/block_rq_insert")
int BPF_PROG(on_request_insert, struct request *rq)
{
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	if (!request_find(pointer_number(cpu, rq)))
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
	RUN_TIMED(cpu);
	request = request_find(pointer_number(cpu, rq));
	if (request)
		request->issue_ns = bpf_ktime_get_ns();
	else if (!has_start || (rq->cmd_flags & REQ_OP_MASK) == REQ_OP_FLUSH)
		request_begin(cpu, rq, request_made_ns(rq), bpf_ktime_get_ns());
	return 0;
}

/* Runs when the driver gives a request back to the kernel, which then queues it again. */
SEC("tp_btf/block_rq_requeue")
int BPF_PROG(on_request_requeue, struct request *rq)
{
	struct io_request *request;
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
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
	/*
	 * start_ns may be some ns later than issue_ns, as the kernel and BPF programs read the
	 * clock differently.
	 */
	__u64 start = request->start_ns, issue = request->issue_ns,
	      queue = issue > start ? issue - start : 0, device = now - issue;
	struct io_key key = {};
	struct io_sums *row;

	request_charge(request, 0, queue, device);
	request_key(&key, request, IO_LAYER_BLOCK);
	row = io_row(cpu, &key, (const char *)request->comm);
	if (!row)
		return;
	cpu->counts.ios_kept++;
	/*
	 * Rows of requests have no count and no total time: the daemon computes them from queue_ns,
	 * device_ns and the buckets.
	 */
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
 * Records the end of a request. A request that the driver never got counts as lost, except for a
 * flush: the kernel gives the driver another request in place of a flush, so the flush's whole time
 * counts as time in the device.
 */
static __always_inline void request_close(struct cpu *cpu, const struct io_request *request,
					  __u64 now, bool is_error)
{
	if (request->flags & REQUEST_IS_UNWANTED)
		return;
	if (request->issue_ns) {
		cpu->counts.ios++;
		request_end(cpu, request, now, is_error);
	} else if (request->op == IO_OP_FLUSH) {
		request_charge(request, 0, 0, now - request->start_ns);
	} else {
		cpu->counts.lost[LOST_IO_UNSEEN]++;
	}
}

/*
 * Removes the entry of a bio that completes, before the thread that waits for the bio is woken.
 * Returns the total time for which the kernel held the bio. A bio counts as lost if no program saw
 * the kernel stop holding it: this is so for the last part of a split bio on a device without a
 * request queue.
 */
static __always_inline __u64 hold_leave(struct cpu *cpu, const struct bio *bio)
{
	__u64 key = (__u64)bio, throttled_ns;
	struct io_request *held = bpf_map_lookup_elem(&throttled, &key);

	if (!held)
		return 0;
	if (!held->issue_ns)
		cpu->counts.lost[LOST_IO_UNSEEN]++;
	throttled_ns = held->throttled_ns;
	request_charge(held, throttled_ns, 0, 0);
	bpf_map_delete_elem(&throttled, &key);
	return throttled_ns;
}

/*
 * Removes the entries of the bios that consist of the next `bytes` bytes of a request. Called when
 * these bytes complete, as the kernel reports no event for each bio.
 */
static __noinline void hold_leave_all(struct cpu *cpu, struct bio *bio, __u32 bytes)
{
	__u32 i, size;

	for (i = 0; i < BIOS && bio; i++) {
		size = bio->bi_iter.bi_size;
		if (size > bytes)
			return;
		bytes -= size;
		hold_leave(cpu, bio);
		bio = bio->bi_next;
	}
}

/* A request may complete in several steps, each with a part of its bytes. */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_request_complete, struct request *rq, int error, unsigned int bytes)
{
	struct io_request *request;
	__u64 address, now;
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	now = bpf_ktime_get_ns();
	if (has_throttle && *(volatile bool *)&has_held)
		hold_leave_all(cpu, rq->bio, bytes);
	address = pointer_number(cpu, rq);
	request = request_find(address);
	if (!request && !has_start && !rq->__data_len && rq->bio) {
		/* for an empty flush, the entry was made for its bio, see bio_is_flush() */
		address = pointer_number(cpu, rq->bio);
		request = request_find(address);
	}
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

/* Runs when a request is merged into another one. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_request_merge, struct request *rq)
{
	struct io_request *request;
	struct cpu *cpu = cpu_get();
	__u64 address;

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
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
	bool is_part;
	struct io_request request = {}, *held = bio_held(bio, &is_part);
	struct cpu *cpu = cpu_get();

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	if (held) {
		if (!is_part)
			hold_end(cpu, held, bpf_ktime_get_ns());
		merge_add(cpu, held);
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

/* True if the bio's device takes bios directly, as it has no request queue. */
static __always_inline bool bio_is_all(struct bio *bio)
{
	struct gendisk *disk = bio->bi_bdev->bd_disk;

	return disk && disk->fops && disk->fops->submit_bio;
}

/*
 * True for an empty flush on a kernel without block_io_start. No event on such a kernel runs in the
 * task that makes the flush request. So the programs follow the bio from block_bio_queue on, until
 * the request completes.
 */
static __always_inline bool bio_is_flush(const struct bio *bio)
{
	return !has_start && request_op(bio->bi_opf, bio->bi_iter.bi_size) == IO_OP_FLUSH;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queue, struct bio *bio)
{
	struct io_request *request, *held;
	bool is_all = bio_is_all(bio), is_flush = bio_is_flush(bio), is_part;
	struct cpu *cpu;
	__u64 now;

	if (!is_all && !is_flush && !*(volatile bool *)&has_held)
		return 0;
	cpu = cpu_get();
	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	now = bpf_ktime_get_ns();
	held = bio_held(bio, &is_part);
	if (held && !is_part)
		hold_end(cpu, held, now);
	if (!is_all && !is_flush)
		return 0;
	request = request_make(cpu, bio, bio, now, false);
	if (!request)
		return 0;
	request->start_ns = now;
	request->issue_ns = is_all ? now : 0;
	request->dev = disk_dev(bio->bi_bdev->bd_disk);
	request->op = request_op(bio->bi_opf, bio->bi_iter.bi_size);
	request->bytes = bio->bi_iter.bi_size;
	if (is_all && !has_bios)
		has_bios = true;
	return 0;
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_complete, struct request_queue *q, struct bio *bio)
{
	__u64 address, throttled_ns = 0;
	struct io_request *request;
	struct cpu *cpu;

	if (!*(volatile bool *)&has_bios && !*(volatile bool *)&has_held)
		return 0;
	cpu = cpu_get();
	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	if (has_throttle && *(volatile bool *)&has_held)
		throttled_ns = hold_leave(cpu, bio);
	if (!*(volatile bool *)&has_bios)
		return 0;
	address = pointer_number(cpu, bio);
	request = request_find(address);
	if (!request)
		return 0;
	/*
	 * If the bio was split, the kernel held its remainder again, after start_ns. Move both
	 * times forward by this delay, so that it does not count as time in the device.
	 */
	if (throttled_ns > request->throttled_ns)
		request->start_ns = request->issue_ns += throttled_ns - request->throttled_ns;
	cpu->counts.ios++;
	request_end(cpu, request, bpf_ktime_get_ns(), bio->bi_status != 0);
	request_leave(request, address);
	return 0;
}

/*
 * Runs when __blk_throtl_bio() returns. The lowest byte of is_held is not 0 if the kernel holds the
 * bio now.
 */
SEC("?fexit/__blk_throtl_bio")
int BPF_PROG(on_throttle_pass, struct bio *bio, __u64 is_held)
{
	struct io_request *held;
	__u64 key = (__u64)bio;

	if ((__u8)is_held)
		return 0;
	held = bpf_map_lookup_elem(&throttled, &key);
	if (!held)
		return 0;
	if (held->throttled_ns) /* io.max held the bio already before this check: keep its entry,
				   which has the time for which the bio was held */
		held->issue_ns = held->start_ns;
	else
		bpf_map_delete_elem(&throttled, &key);
	return 0;
}

/*
 * The kernel calls this function only for cgroups with a limit in io.max. The function may hold the
 * bio; the event block_bio_queue comes only after that. This BPF program stores the bio when the
 * function begins, as the kernel may release the bio before the function returns.
 */
SEC("?fentry/__blk_throtl_bio")
int BPF_PROG(on_throttle, struct bio *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_request request = {}, *held;
	__u64 key = (__u64)bio, now = bpf_ktime_get_ns();
	struct cpu *cpu = cpu_get();
	struct cgroup *writer;

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	held = bpf_map_lookup_elem(&throttled, &key);
	if (held) { /* the bio was too large for one request: the kernel now checks its remainder */
		hold_end(cpu, held, now);
		held->start_ns = now;
		held->issue_ns = 0;
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
	if (bpf_map_update_elem(&throttled, &key, &request, BPF_ANY))
		cpu->counts.lost[LOST_IO_REQUESTS]++;
	return 0;
}

#endif
