/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names, devices and percentiles of I/O, and the builder of iolat with its open operations. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/io_shared.h"
#include "common/base.h"
#include "daemon/base/io_names.h"
#include "daemon/host/procfs.h"
#include "daemon/process/process.h"
#include "daemon/query/answer_iolat.h"
#include "daemon/window/builder.h"
#include "daemon/window/window.h"

extern const struct window_builder_ops build_iolat;

/* Younger open operations have no row. */
#define OPEN_MIN_NS NS_PER_S

static void test_calls(void **state)
{
	uint8_t calls[IO_CALLS] = {};

	io_calls_fill(calls, IO_CALLS);
	assert_int_equal(calls[SYS_pread64], IO_OP_READ | IO_FILE_FIRST);
	assert_int_equal(calls[SYS_openat], IO_OP_OPEN | IO_FILE_RESULT);
	assert_int_equal(calls[SYS_sync], IO_OP_SYNC);
	assert_int_equal(calls[SYS_getppid], 0);
	assert_string_equal(io_call_name(SYS_pread64 + 1), "pread64");
	assert_null(io_call_name(0));
	assert_null(io_call_name(SYS_getppid + 1));
}

static void test_words(void **state)
{
	assert_int_equal(io_layer_parse("device"), IO_LAYER_DEVICE);
	assert_int_equal(io_layer_parse("roof"), -ENOENT);
	assert_string_equal(io_layer_name(IO_LAYER_FS), "fs");
	assert_null(io_layer_name(IO_LAYERS));
	assert_true(io_op_is("read", IO_OP_READ, SYS_pread64 + 1));
	assert_true(io_op_is("pread64", IO_OP_READ, SYS_pread64 + 1));
	assert_false(io_op_is("pread64", IO_OP_READ, SYS_read + 1));
	assert_false(io_op_is("write", IO_OP_READ, 0));
	assert_true(io_op_exists("flush"));
	assert_false(io_op_exists("dance"));
	assert_string_equal(io_magic_name(0xef53), "ext4");
	assert_null(io_magic_name(0x12345));
}

static void test_devices(void **state)
{
	assert_true(io_device_is("vda", "vda"));
	assert_true(io_device_is("vda1", "vda"));
	assert_false(io_device_is("vdb1", "vda"));
	assert_false(io_device_is("vdaa", "vda"));
	assert_true(io_device_is("nvme0n1p2", "nvme0n1"));
	assert_false(io_device_is("nvme0n12", "nvme0n1"));
	assert_false(io_device_is("loop10", "loop1"));
	assert_false(io_device_is("", ""));
}

static void test_percentiles(void **state)
{
	uint64_t buckets[IO_BUCKETS_N] = {};

	assert_int_equal(io_percentile(buckets, 50, 0), -1);
	buckets[10] = 100;
	assert_in_range(io_percentile(buckets, 50, 5000), 1024, 2048);
	assert_int_equal(io_percentile(buckets, 99, 1100), 1100);
	buckets[20] = 1;
	assert_in_range(io_percentile(buckets, 99, 2000000), 1024, 2048);
	buckets[20] = 300;
	assert_in_range(io_percentile(buckets, 50, 2000000), 1 << 20, 2 << 20);
	buckets[63] = UINT64_C(1) << 40;
	assert_int_equal(io_percentile(buckets, 99, 7000000), 7000000);
}

static void test_buckets(void **state)
{
	uint64_t buckets[IO_BUCKETS_N] = { [0] = 1, [30] = 7, [63] = 9 }, sums[IO_BUCKETS_N] = {};
	struct window *window = window_new();
	struct window_io *io = window_add_io(window);

	assert_int_equal(window_io_set_buckets(window, io, buckets), 0);
	assert_int_equal(window->n_io_buckets, 3);
	window_io_add_buckets(window, io, sums);
	window_io_add_buckets(window, io, sums);
	assert_int_equal(sums[0], 2);
	assert_int_equal(sums[30], 14);
	assert_int_equal(sums[63], 18);
	assert_int_equal(sums[31], 0);
	window_unref(window);
}

static void test_sums(void **state)
{
	const struct window_io a = { .count = 2, .total_ns = 30, .max_ns = 20, .max_tid = 5 };
	const struct window_io b = { .count = 1, .total_ns = 25, .max_ns = 25, .max_tid = 6 };
	struct window_io sum = {};

	window_io_add(&sum, &a);
	window_io_add(&sum, &b);
	window_io_add(&sum, &a);
	assert_int_equal(sum.count, 5);
	assert_int_equal(sum.total_ns, 85);
	assert_int_equal(sum.max_ns, 25);
	assert_int_equal(sum.max_tid, 6);
}

static uint64_t start_of_self(void)
{
	struct procfs_stat stat;
	_cleanup_(closep) int fd = procfs_open(getpid(), &stat);

	assert_true(fd >= 0);
	return procfs_ticks_ns(stat.start_ticks);
}

/* A slot of a thread of this process, as slots of threads that have exited are left out. */
static struct io_slot slot_of(uint32_t tid, int64_t start_ns)
{
	struct io_slot slot = {
		.stack = 1 << 14,
		.depth = 2,
		.generation = 7,
		.leader_boot_ns = start_of_self(),
		.tgid = (uint32_t)getpid(),
		.tid = tid,
	};

	slot.frames[0] = (struct io_frame){
		.start_ns = (uint64_t)start_ns,
		.call = SYS_fsync + 1,
		.layer = IO_LAYER_SYSCALL,
		.op = IO_OP_SYNC,
	};
	slot.frames[1] = (struct io_frame){
		.start_ns = (uint64_t)start_ns + OPEN_MIN_NS,
		.layer = IO_LAYER_FS,
		.op = IO_OP_SYNC,
	};
	return slot;
}

static struct window_builder *builder_new(struct process_table *processes,
					  const struct io_slot *slots, size_t n_slots)
{
	const struct window_builder_options options = {
		.kind = PROBE_IOLAT,
		.processes = processes,
		.io_slots = slots,
		.n_io_slots = n_slots,
	};
	struct window_builder *builder;

	assert_int_equal(window_builder_new(&build_iolat, &options, &builder), 0);
	return builder;
}

static struct window *finish(struct window_builder *builder, int64_t start_ns, int64_t end_ns)
{
	struct window *window;

	window_builder_begin(builder, start_ns, end_ns, 0);
	window = window_builder_finish(builder);
	assert_non_null(window);
	return window;
}

static void test_open(void **state)
{
	struct io_slot *slots = calloc(IO_SLOTS, sizeof(*slots));
	const int64_t end = 9 * NS_PER_S;
	const uint32_t self = (uint32_t)getpid();
	char comm[COMM_LEN];
	struct process_table *processes;
	struct window *window;
	struct window_builder *builder;

	assert_int_equal(process_table_new(1 << 20, &processes), 0);
	builder = builder_new(processes, slots, IO_SLOTS);
	slots[0] = slot_of(self, end - 2 * OPEN_MIN_NS);
	slots[1] = slot_of(self, end - OPEN_MIN_NS);
	slots[2] = slot_of(self, end - OPEN_MIN_NS + 1);	   /* too young */
	slots[3] = slot_of(UINT32_MAX / 2, end - 2 * OPEN_MIN_NS); /* no such thread */
	slots[4] = slot_of(self, end - 2 * OPEN_MIN_NS);
	slots[4].depth = 0;
	slots[5] = slot_of(self, end - 9 * OPEN_MIN_NS);
	slots[5].flags = IO_SLOT_IS_UNWANTED;
	slots[IO_SLOTS - 1] = slot_of(self, end - 3 * OPEN_MIN_NS);
	slots[IO_SLOTS - 1].depth = 1;
	window = finish(builder, end - NS_PER_S, end);
	assert_int_equal(window->n_ios, 2);
	assert_int_equal(window->n_images, 1);
	assert_int_equal(prctl(PR_GET_NAME, comm), 0);
	assert_string_equal(window->images[0].comm, comm);
	assert_int_equal(window->ios[0].layer, IO_LAYER_SYSCALL);
	assert_int_equal(window->ios[0].call, SYS_fsync + 1);
	assert_int_equal(window->ios[0].open, 3);
	assert_int_equal(window->ios[0].oldest_ns, 3 * OPEN_MIN_NS);
	assert_int_equal(window->ios[0].oldest_tid, self);
	assert_int_equal(window->ios[0].count, 0);
	assert_int_equal(window->ios[1].layer, IO_LAYER_FS);
	assert_int_equal(window->ios[1].open, 1);
	assert_int_equal(window->ios[1].oldest_ns, OPEN_MIN_NS);
	assert_int_equal(window->lost[WINDOW_LOST_MEMORY], 0);
	window_unref(window);
	window_builder_free(builder);
	process_table_free(processes);
	free(slots);
}

/* One row of the programs becomes rows of three layers. */
static void test_requests(void **state)
{
	const struct io_key key = {
		.tgid = 5, .dev = 7, .layer = IO_LAYER_BLOCK, .op = IO_OP_READ
	};
	struct io_sums sums = {
		.queue_ns = 20,
		.device_ns = 70,
		.bytes = 4096,
		.merges = 2,
		.comm = "reader",
		.longest = { .ns = 40, .end_ns = 99, .tid = 5 },
		.queue.longest = { .ns = 11, .end_ns = 98, .tid = 6 },
		.device.longest = { .ns = 33, .end_ns = 99, .tid = 5 },
	};
	struct process_table *processes;
	struct window *window;
	struct window_builder *builder;
	size_t i;

	sums.buckets[4] = sums.queue.buckets[2] = sums.device.buckets[4] = 3;
	assert_int_equal(process_table_new(1 << 20, &processes), 0);
	builder = builder_new(processes, NULL, 0);
	window_builder_add(builder, &key, &sums);
	window = finish(builder, 0, NS_PER_S);
	assert_int_equal(window->n_ios, 3);
	assert_string_equal(window->images[0].comm, "reader");
	for (i = 0; i < 3; i++) {
		const struct window_io *io = &window->ios[i];
		const uint64_t totals[] = { 90, 20, 70 }, longest[] = { 40, 11, 33 };
		const uint32_t layers[] = { IO_LAYER_BLOCK, IO_LAYER_QUEUE, IO_LAYER_DEVICE };

		assert_int_equal(io->layer, layers[i]);
		assert_int_equal(io->dev, 7);
		assert_int_equal(io->count, 3);
		assert_int_equal(io->bytes, 4096);
		assert_int_equal(io->total_ns, totals[i]);
		assert_int_equal(io->own_ns, totals[i]);
		assert_int_equal(io->device_ns + io->queue_ns, 0);
		assert_int_equal(io->max_ns, longest[i]);
		assert_int_equal(io->max_tid, i == 1 ? 6 : 5);
		assert_int_equal(io->merges, i ? 0 : 2);
		assert_int_equal(io->bucket_mask, i == 1 ? 1 << 2 : 1 << 4);
		assert_int_equal(window->io_buckets[io->bucket_first], 3);
	}
	window_unref(window);
	/* A row may have merges only, if the request itself is another process's. */
	sums = (struct io_sums){ .merges = 1 };
	window_builder_add(builder, &key, &sums);
	window = finish(builder, 0, NS_PER_S);
	assert_int_equal(window->n_ios, 1);
	window_unref(window);
	window_builder_free(builder);
	process_table_free(processes);
}

/* Each time of an operation has its own place in the row. */
static void test_times_of_an_operation(void **state)
{
	const struct io_key key = { .tgid = 5, .layer = IO_LAYER_SYSCALL, .op = IO_OP_SYNC };
	struct io_sums sums = {
		.count = 2,
		.total_ns = 1000,
		.own_ns = 900,
		.runnable_ns = 30,
		.asleep_ns = 800,
		.device_ns = 400,
		.queue_ns = 200,
		.throttled_ns = 100,
		.async = 1,
		.errors = 2,
		.bytes = 4096,
		.requeues = 3,
	};
	struct process_table *processes;
	struct window *window;
	struct window_builder *builder;
	const struct window_io *io;

	sums.buckets[8] = 2;
	assert_int_equal(process_table_new(1 << 20, &processes), 0);
	builder = builder_new(processes, NULL, 0);
	window_builder_add(builder, &key, &sums);
	window = finish(builder, 0, NS_PER_S);
	assert_int_equal(window->n_ios, 1);
	io = &window->ios[0];
	assert_int_equal(io->count, 2);
	assert_int_equal(io->total_ns, 1000);
	assert_int_equal(io->own_ns, 900);
	assert_int_equal(io->runnable_ns, 30);
	assert_int_equal(io->asleep_ns, 800);
	assert_int_equal(io->device_ns, 400);
	assert_int_equal(io->queue_ns, 200);
	assert_int_equal(io->throttled_ns, 100);
	assert_int_equal(io->async, 1);
	assert_int_equal(io->errors, 2);
	assert_int_equal(io->bytes, 4096);
	assert_int_equal(io->requeues, 3);
	window_unref(window);
	window_builder_free(builder);
	process_table_free(processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_times_of_an_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
