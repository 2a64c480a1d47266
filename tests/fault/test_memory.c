/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes each allocation of a piece of work fail in turn. Each time, the work has to report it, or
 * to do without the memory, and to leave nothing half done and (under a sanitizer) nothing leaked.
 * Argument: an ELF file with symbols.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/arena.h"
#include "common/base.h"
#include "daemon/config/config.h"
#include "daemon/service/service.h"
#include "daemon/store/history.h"
#include "daemon/store/timeline.h"
#include "daemon/symbol/kallsyms.h"
#include "daemon/symbol/symtab.h"
#include "daemon/window/stack.h"
#include "proto/codec.h"
#include "tests/fault/fault.h"

enum { FAULTS_MAX = 100000 };

static const char *elf_path;

/* Runs work with each allocation failing in turn. work returns 0, or -ENOMEM where one failed. */
static void each_allocation(int (*work)(void))
{
	long n, hits;
	int r;

	for (n = 1; n < FAULTS_MAX; n++) {
		fault_arm(FAULT_MEMORY, n, 1);
		r = work();
		hits = fault_disarm();
		if (hits == 0)
			break;
		if (r != 0 && r != -ENOMEM)
			fail_msg("allocation %ld: %d", n, r);
	}
	assert_int_equal(r, 0);
	assert_in_range(n, 2, FAULTS_MAX - 1);
	print_message("%ld allocations\n", n - 1);
}

static int work_config(void)
{
	static char *const overrides[] = { "window.length=7s", "idle.functions=a b c" };
	const struct config_paths places = { .file = "/dev/null", .is_file_needed = true };
	struct config_error error = { "" };
	struct config *config = NULL;
	int r = config_load_from(&places, overrides, ARRAY_SIZE(overrides), &config, &error);

	if (r < 0) {
		assert_null(config);
		assert_non_null(strstr(error.text, "memory"));
		return r;
	}
	assert_int_equal(config->window_length_ns, 7 * NS_PER_S);
	assert_string_equal(config->idle_functions[2], "c");
	config_free(config);
	return 0;
}

static void test_config(void **state)
{
	each_allocation(work_config);
}

/* A reply has to be the answer or an error; otherwise the connection would be closed. */
static int reply_read(const struct text *out)
{
	struct varlink_message *reply;
	int r;

	fault_disarm();
	assert_int_equal(varlink_reply_parse(out->data, out->len - 1, &reply), 0);
	if (reply->error)
		assert_string_equal(reply->error, wire_error_name(ERROR_FAILED));
	r = reply->error ? -ENOMEM : 0;
	varlink_message_free(reply);
	return r;
}

static const char *request_text;

static int work_request(void)
{
	const struct service_groups groups = { .query = "daemon" };
	struct server_peer peer = { .uid = 0 };
	struct server_handler handler;
	struct service *service;
	struct text out;
	void *call;
	int r = service_new(NULL, &groups, &service);

	if (r < 0)
		return r;
	handler = service_handler(service);
	text_init(&out, SIZE_MAX);
	r = handler.begin(handler.userdata, &peer, request_text, strlen(request_text), &call);
	if (r == 0) {
		r = handler.step(call, &out);
		handler.end(call, true);
	}
	if (r == 0)
		r = out.error;
	if (r == 0)
		r = reply_read(&out);
	text_fini(&out);
	service_free(service);
	return r;
}

static void test_requests(void **state)
{
	static const char *const requests[] = {
		"{\"method\":\"org.varlink.service.GetInfo\"}",
		"{\"method\":\"io.stackd.Status\"}",
		"{\"method\":\"io.stackd.Snapshot\",\"parameters\":{\"probe\":\"offcpu\",\"top\":3,"
		"\"filter\":{\"pids\":[1,2,3],\"states\":[\"S\",\"D\"],\"comm\":\"ba*\"}}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		request_text = requests[i];
		each_allocation(work_request);
	}
}

/* Decodes an answer as a client does. */
static int work_reply(void)
{
	static const char text[] =
		"{\"parameters\":{\"sessions\":[{\"id\":\"1\",\"probe\":\"offcpu\",\"owner\":\"o\","
		"\"since\":{\"ns\":1,\"text\":\"1970-01-01T00:00:00Z\"},\"always\":true,\"lost\":[]}]}}";
	struct varlink_message *message = NULL;
	struct wire_sessions_reply reply;
	struct arena *arena = arena_new();
	int r = arena ? varlink_reply_parse(text, strlen(text), &message) : -ENOMEM;

	if (r == 0)
		r = sessions_reply_decode(message, arena, &reply, NULL);
	if (r == 0)
		assert_string_equal(reply.sessions.v[0].owner, "o");
	varlink_message_free(message);
	arena_free(arena);
	return r;
}

static void test_reply(void **state)
{
	each_allocation(work_reply);
}

static int work_symtab(void)
{
	struct elf_source source = { .fd = open(elf_path, O_RDONLY | O_CLOEXEC) };
	struct elf_file file = { 0 };
	struct symtab *symtab = NULL;
	const char *name;
	uint64_t start;
	size_t n = 0;
	int r;

	assert_true(source.fd >= 0);
	r = elf_file_read(&source, &file);
	elf_file_fini(&file);
	if (r == 0)
		r = symtab_load(&source, NULL, &symtab);
	close(source.fd);
	if (r < 0) {
		assert_null(symtab);
		return r;
	}
	for (uint64_t address = 0; address < 0x4000; address++) {
		if (!symtab_lookup(symtab, address, &name, &start))
			continue;
		assert_true((!name || name[0] != '\0') && start <= address);
		n += start == address;
	}
	assert_true(n > 5);
	symtab_free(symtab);
	return 0;
}

static void test_symtab(void **state)
{
	each_allocation(work_symtab);
}

static const char *kallsyms_path;

static int work_kernel_symbols(void)
{
	struct kallsyms *symbols = NULL;
	struct symbol symbol;
	int r = kallsyms_load(kallsyms_path, &symbols);

	if (r < 0) {
		assert_null(symbols);
		return r;
	}
	assert_true(kallsyms_lookup(symbols, 0xffffffff81000100, false, &symbol));
	assert_string_equal(symbol.name, "first");
	kallsyms_free(symbols);
	return 0;
}

static void test_kernel_symbols(void **state)
{
	char path[] = "/tmp/stackd-test-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	fputs("ffffffff81000000 T first\nffffffff81001000 t second\n", file);
	for (int i = 0; i < 5000; i++)
		fprintf(file, "ffffffff8100%04x t f%d [module%d]\n", 0x2000 + i, i, i / 1000);
	assert_int_equal(fclose(file), 0);
	kallsyms_path = path;
	each_allocation(work_kernel_symbols);
	unlink(path);
}

/* Without memory a stack is absent, or unknown and marked so. The table stays valid. */
static int work_stacks(void)
{
	uint64_t ip[] = { 0x1000, 0x2000, 0x3000 };
	struct stack_table *table;
	struct stack *stack;
	bool is_new, is_short = false;
	int r = stack_table_new(1 << 20, &table);

	if (r < 0)
		return r;
	for (uint64_t id = 1000; id < 1300; id++) {
		ip[0] = id;
		is_short |= !stack_table_put(table, id, NULL, ip, ARRAY_SIZE(ip), &is_new);
	}
	for (uint64_t id = 1000; id < 1300; id++) {
		stack = stack_table_get(table, id, false);
		if (stack && !(stack->flags & STACK_IS_LOST))
			assert_int_equal(stack->ip[0], id);
		if (stack)
			stack_unref(stack);
	}
	stack_table_free(table);
	return is_short ? -ENOMEM : 0;
}

static void test_stacks(void **state)
{
	each_allocation(work_stacks);
}

static struct history *history;

/* Lists windows in memory, in a range and after it. */
static int work_timeline(void)
{
	const struct timeline_source source = { .history = history, .boot_id = "b" };
	const struct timeline_session session = { .id = 1, .probe = "offcpu" };
	struct timeline *timeline = NULL;
	struct window *window;
	int r = timeline_open(&source, &session, 0, 5, &timeline);

	if (!r)
		r = timeline_read_later(timeline, 5);
	if (!r) {
		assert_int_equal(timeline_range(timeline)->n, 5);
		assert_int_equal(timeline_later(timeline)->n, 5);
		window = timeline_window(timeline_range(timeline), 2);
		assert_int_equal(window->seq, 2);
		window_unref(window);
	}
	timeline_close(timeline);
	return r;
}

static void test_timeline(void **state)
{
	struct window *window;
	uint64_t seq;

	assert_int_equal(history_new(NS_PER_S, SIZE_MAX, &history), 0);
	for (seq = 0; seq < 10; seq++) {
		window = window_new();
		assert_non_null(window);
		window->session = 1;
		window->seq = seq;
		window->start_ns = (int64_t)seq;
		window->end_ns = window->start_ns + 1;
		history_add(history, window, NULL, 0);
	}
	each_allocation(work_timeline);
	history_free(history);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config),	       cmocka_unit_test(test_requests),
		cmocka_unit_test(test_reply),	       cmocka_unit_test(test_symtab),
		cmocka_unit_test(test_kernel_symbols), cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_timeline),
	};

	if (argc != 2)
		return 2;
	elf_path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
