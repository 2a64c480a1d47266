/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes the reader of stored windows. If the first byte is even, the rest is the stored blob; if
 * it is odd, the rest is packed first, as a fuzzer would hardly ever make a valid packed blob. A
 * window that is accepted can be written again.
 */
#include <errno.h>
#include <string.h>

#include <zstd.h>

#include "common/base.h"
#include "daemon/store/window_blob.h"
#include "tests/fuzz/fuzz.h"

enum { NO_PID = 0x3f000000 /* above any pid_max */ };

static struct process_table *processes;
static struct process *process;
static struct stack stack;

static int stack_number(void *userdata, struct stack *s, int64_t *out)
{
	*out = 1;
	return 0;
}

static int process_number(void *userdata, struct process *p, int64_t *out)
{
	*out = 1;
	return 0;
}

static struct stack *stack_of(void *userdata, int64_t number)
{
	return stack_ref(&stack);
}

static struct process *process_of(void *userdata, int64_t number)
{
	return process_ref(process);
}

static const struct store_names names = {
	.stack_number = stack_number,
	.process_number = process_number,
	.stack = stack_of,
	.process = process_of,
};

static const struct store_names query_names = { .stack = stack_of, .is_query = true };

static void process_make(void)
{
	const struct process_info info = { .id = { .pid = NO_PID, .start_boot_ns = 5 } };

	if (process)
		return;
	REQUIRE(process_table_new_stored(&processes) == 0);
	process = process_table_add_stored(processes, &info);
	REQUIRE(process);
}

static void query_decode(const void *data, size_t size)
{
	struct window *window = NULL;
	int r = store_blob_decode(data, size, &query_names, &window);
	size_t i;

	REQUIRE(r == 0 || r == -EBADMSG || r == -ENOMEM);
	REQUIRE(!r == !!window);
	for (i = 0; window && i < window->n_images; i++)
		REQUIRE(window->images[i].owner < window->n_owners);
	window_unref(window);
}

static void decode(const void *data, size_t size)
{
	_cleanup_(bytes_fini) struct bytes again = {};
	struct window *window = NULL;
	int r = store_blob_decode(data, size, &names, &window);

	REQUIRE(r == 0 || r == -EBADMSG || r == -ENOMEM);
	REQUIRE(!r == !!window);
	/* A query reads the same bytes in another way. */
	query_decode(data, size);
	if (window) {
		r = store_blob_encode(window, window->run, &names, &again);
		REQUIRE(r == 0 || r == -E2BIG || r == -ENOMEM);
		window_unref(window);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t room = ZSTD_compressBound(size), n;
	void *packed;

	if (size < 1)
		return 0;
	process_make();
	if (data[0] % 2 == 0) {
		decode(data + 1, size - 1);
		return 0;
	}
	packed = malloc(room);
	REQUIRE(packed);
	n = ZSTD_compress(packed, room, data + 1, size - 1, 1);
	REQUIRE(!ZSTD_isError(n));
	decode(packed, n);
	free(packed);
	return 0;
}
