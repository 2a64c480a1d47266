/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The maps of a process that maps more than there is room for. The mappings are made up. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/process/maps.h"

#define PATH_LEN 3900

static struct module_registry *registry;
static int proc_fd;

static int set_up(void **state)
{
	registry = module_registry_new(1 << 20);
	proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return registry && proc_fd >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	module_registry_free(registry);
	close(proc_fd);
	return 0;
}

/*
 * Reads the text of `count` mappings of a file that does not exist, or of no file. Neighbours have
 * the same long path, or none.
 */
static struct proc_maps read_many(size_t count, unsigned int inode)
{
	size_t size = count * (80 + PATH_LEN), n = 0;
	char *text = malloc(size);
	struct proc_maps mappings;
	FILE *in;

	assert_non_null(text);
	for (size_t i = 0; i < count; i++)
		n += (size_t)snprintf(text + n, size - n, "%zx-%zx r-xp 00000000 fe:00 %u %s%0*u\n",
				      (2 * i + 1) << 12, (2 * i + 2) << 12, inode,
				      inode ? "/none/" : "[", inode ? PATH_LEN : 1, 0);
	in = fmemopen(text, n, "r");
	assert_non_null(in);
	assert_int_equal(proc_maps_read(in, &mappings), 0);
	fclose(in);
	free(text);
	return mappings;
}

static struct process_maps *build(const struct proc_maps *mappings, struct process_maps *before)
{
	struct process_maps *maps = NULL;

	assert_int_equal(process_maps_build(registry, proc_fd, mappings, before, &maps), 0);
	return maps;
}

static void a_file_is_opened_and_named_once(void **state)
{
	struct proc_maps mappings = read_many(1000, 1);
	struct process_maps *maps = build(&mappings, NULL);
	struct module_stats stats;

	module_registry_stats(registry, &stats);
	assert_int_equal(stats.unreadable, 1);
	assert_int_equal(process_maps_count(maps), 1000);
	/* The name is that of the mapping, also when this was freed. */
	proc_maps_fini(&mappings);
	assert_true(process_maps_bytes(maps) < 1300 * sizeof(struct process_map) + 2 * PATH_LEN);
	assert_int_equal(strlen(process_map_name(process_maps_find(maps, 0x1000))), PATH_LEN + 6);
	assert_ptr_equal(process_map_name(process_maps_find(maps, 0x1000)),
			 process_map_name(process_maps_find(maps, 1999 << 12)));
	process_maps_unref(maps);
	assert_int_equal(process_maps_bytes_all(), 0);
}

static void all_maps_together_are_bounded(void **state)
{
	struct proc_maps mappings = read_many(12000, 0);
	struct process_maps *maps[200] = { NULL };
	const uint64_t last = 23999 << 12;

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		maps[i] = build(&mappings, NULL);
	assert_false(process_maps_leave_out(maps[0], last));
	assert_non_null(process_maps_find(maps[0], last));
	/* The newest has its first mappings, and knows nothing of the others. */
	assert_true(process_maps_leave_out(maps[199], last));
	assert_false(process_maps_leave_out(maps[199], 0x1000));
	assert_non_null(process_maps_find(maps[199], 0x1000));
	assert_null(process_maps_find(maps[199], last));
	assert_in_range(process_maps_count(maps[199]), 100, MAPS_FEW_BYTES / 50);
	assert_in_range(process_maps_bytes_all(), MAPS_MEMORY_MAX,
			MAPS_MEMORY_MAX + (4 << 20) + 200 * 2 * MAPS_FEW_BYTES);
	for (size_t i = 0; i + 1 < ARRAY_SIZE(maps); i++)
		process_maps_unref(maps[i]);
	/* When there is room again, the next read has all. */
	maps[0] = build(&mappings, maps[199]);
	assert_int_equal(process_maps_count(maps[0]), 12000);
	process_maps_unref(maps[0]);
	process_maps_unref(maps[199]);
	proc_maps_fini(&mappings);
}

/* Another file may be mapped there, whose functions would have the names of this one. */
static void what_was_left_out_is_not_what_was_there_before(void **state)
{
	const uint64_t here = (uintptr_t)&build;
	struct process_maps *before, *maps;
	struct proc_maps mappings = { 0 }, first;

	assert_int_equal(procfs_read_maps(proc_fd, &mappings), 0);
	before = build(&mappings, NULL);
	assert_non_null(process_maps_find(before, here)->module);
	first = read_many(1, 0);
	maps = build(&first, before);
	assert_true(process_maps_find(maps, here)->is_gone);
	process_maps_unref(maps);
	first.is_truncated = true;
	maps = build(&first, before);
	assert_null(process_maps_find(maps, here));
	process_maps_unref(maps);
	/* Not even the first one may have had room. */
	maps = build(&(struct proc_maps){ .is_truncated = true }, before);
	assert_int_equal(process_maps_count(maps), 0);
	assert_true(process_maps_leave_out(maps, 0x1000));
	process_maps_unref(maps);
	process_maps_unref(before);
	proc_maps_fini(&mappings);
	proc_maps_fini(&first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_opened_and_named_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_maps_together_are_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_left_out_is_not_what_was_there_before,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
