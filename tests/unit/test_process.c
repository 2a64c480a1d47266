/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arguments: the fixture program, the fixture library. The processes in these tests are real ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/fs.h>

#include <cmocka.h>

#include "bpf/layout.h"
#include "bpf/unwind_shared.h"
#include "common/base.h"
#include "daemon/host/open_file.h"
#include "daemon/host/procfs.h"
#include "daemon/process/process.h"
#include "daemon/unwind/unwind.h"

#define MAX_MEMORY (16 << 20)
#define WAIT_NS	   (10 * NS_PER_S)

static const char *program, *library;
static struct process_table *table;
static const struct exec_facts unknown_image;

/* A running fixture program. */
struct child {
	pid_t pid;
	int in;		  /* its stdin */
	FILE *out;	  /* its stdout */
	uint64_t address; /* address of process_fixture_function() */
	struct process_id id;
};

/* reader.c: waits until nothing is read any more, or a read hangs. internal.h clashes with
 * sys/mman.h. */
void process_reader_await(struct process_table *table, size_t most);

static int set_up(void **state)
{
	return process_table_new(MAX_MEMORY, &table);
}

static int tear_down(void **state)
{
	struct process_stats stats;

	/*
	 * A scan reads processes of others, too. Where the memory map of one is locked, the thread
	 * that reads it would keep the table.
	 */
	process_reader_await(table, 0);
	for (process_table_stats(table, &stats); stats.hanging; process_table_stats(table, &stats))
		usleep(1000);
	table = process_table_free(table);
	return 0;
}

static struct process_id id_of(pid_t pid, uint32_t exec_gen)
{
	struct procfs_stat stat;
	int fd = procfs_open(pid, &stat);

	assert_true(fd >= 0);
	close(fd);
	/* /proc shows ticks; BPF sees the nanoseconds, somewhere within the tick. */
	return (struct process_id){
		.pid = pid,
		.exec_gen = exec_gen,
		.start_boot_ns = procfs_ticks_ns(stat.start_ticks) + 1,
	};
}

static uint64_t read_address(struct child *child)
{
	char line[64];

	assert_non_null(fgets(line, sizeof(line), child->out));
	return strtoull(line, NULL, 16);
}

static struct child spawn(const char *path, const char *a, const char *b)
{
	int in[2], out[2];
	struct child child;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (!child.pid) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execl(path, path, a, b, (char *)NULL);
		_exit(1);
	}
	close(in[0]);
	close(out[1]);
	child.in = in[1];
	child.out = fdopen(out[0], "re");
	assert_non_null(child.out);
	child.address = read_address(&child);
	child.id = id_of(child.pid, 1);
	return child;
}

/* Makes the child do its next thing, and returns the address that it prints. */
static uint64_t poke(struct child *child)
{
	assert_int_equal(write(child->in, "\n", 1), 1);
	return read_address(child);
}

static void end(struct child *child)
{
	close(child->in);
	fclose(child->out);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

/* Names an address as the resolver does. Returns false where nothing is known but the number. */
static bool lookup(struct process *process, uint64_t mappings, uint64_t address, bool is_call,
		   struct symbol *symbol)
{
	enum process_miss miss = process_lookup(process, mappings, address, is_call, symbol);

	for (int i = 0; i < 2 && miss; i++) { /* the mapping, and then its symbols */
		process_refresh(process, mappings, miss, INT64_MAX);
		miss = process_lookup(process, mappings, address, is_call, symbol);
	}
	return symbol->module != NULL;
}

/*
 * Looks an address up until its mapping is known: a process that took long to read is not read
 * again at once.
 */
static void lookup_wait(struct process *process, uint64_t address, bool is_call,
			struct symbol *symbol)
{
	const int64_t until = clock_ns(CLOCK_MONOTONIC) + WAIT_NS;

	while (!lookup(process, 0, address, is_call, symbol)) {
		assert_true(clock_ns(CLOCK_MONOTONIC) < until);
		usleep(1000);
	}
}

static void assert_function(struct process *process, uint64_t address, const char *name,
			    const char *path)
{
	struct symbol symbol;

	lookup_wait(process, address, false, &symbol);
	assert_non_null(symbol.name);
	assert_string_equal(symbol.name, name);
	assert_int_equal(symbol.name_offset, 0);
	assert_int_equal(symbol.kind, FRAME_NATIVE);
	assert_true(symbol.file_id != 0);
	assert_string_equal(symbol.module, path);
	process_release_symbols(process);
}

/* Waits for the reader's thread alone, without process_refresh(). */
static void wait_until_read(struct process *process)
{
	int64_t until = clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
	struct process_info info;

	do {
		usleep(1000);
		process_info(process, &info);
	} while (!info.exe && clock_ns(CLOCK_MONOTONIC) < until);
	assert_non_null(info.exe);
}

static char *copy_program(char *path)
{
	char command[512];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command), "cp '%s' '%s' && chmod 755 '%s'", program, path, path);
	assert_int_equal(system(command), 0);
	return path;
}

static void tells_who_it_was(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process *process = process_table_see(table, &child.id, false, "fixture");
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct process_info info;

	wait_until_read(process);
	process_info(process, &info);
	assert_int_equal(info.id.pid, child.pid);
	assert_int_equal(info.id.exec_gen, 1);
	assert_string_equal(info.comm, "fixture");
	assert_string_equal(info.exe, program);
	assert_true(!info.cgroup || info.cgroup[0] == '/');
	assert_true(info.start_real_ns <= now && info.start_real_ns > now - 60 * NS_PER_S);
	assert_false(info.is_kernel);
	assert_false(info.has_exited);
	process_table_note_exit(table, &child.id);
	process_info(process, &info);
	assert_true(info.has_exited);
	end(&child);
	process_unref(process);
}

/* A zombie has no mappings, as a process whose mappings may not be read; both have a name. */
static void one_without_mappings_has_a_name(void **state)
{
	int64_t until = clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
	struct process *process;
	struct process_info info;
	struct process_id id;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_NAME, "nameless");
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	id = id_of(pid, 0);
	process = process_table_see(table, &id, false, NULL);
	do {
		usleep(1000);
		process_info(process, &info);
	} while (!info.comm[0] && clock_ns(CLOCK_MONOTONIC) < until);
	assert_string_equal(info.comm, "nameless");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	process_unref(process);
}

static void names_survive_the_exit(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process *process = process_table_see(table, &child.id, false, NULL);
	struct process_stats stats;

	wait_until_read(process);
	end(&child);
	process_table_note_exit(table, &child.id);
	assert_function(process, child.address, "process_fixture_function", program);
	process_table_stats(table, &stats);
	assert_int_equal(stats.too_late, 0);
	process_unref(process);
}

static void names_survive_the_file(void **state)
{
	char path[] = "/tmp/test_process.XXXXXX";
	struct process *process;
	struct child child;

	if (geteuid()) {
		print_message("map_files of deleted files wants root\n");
		skip();
	}
	child = spawn(copy_program(path), NULL, NULL);
	unlink(path); /* before any address of it was looked up */
	process = process_table_see(table, &child.id, false, NULL);
	wait_until_read(process);
	end(&child);
	process_table_note_exit(table, &child.id);
	usleep(100000); /* the symbols have been read and the file closed by now */
	assert_function(process, child.address, "process_fixture_function", path);
	process_unref(process);
}

static struct code_place place_of(struct process *process, uint64_t address)
{
	struct code_place place;

	code_places(process, 0, &address, 1, &place);
	assert_false(place.is_call);
	return place;
}

static void a_file_is_named_as_each_has_it_mapped(void **state)
{
	char path[] = "/tmp/test_process.XXXXXX", link_path[] = "/tmp/test_process.link.XXXXXX";
	struct process *process, *linked, *renamed;
	struct code_place place;
	struct child a, b, c;
	int fd = mkstemp(link_path);

	assert_true(fd >= 0);
	close(fd);
	unlink(link_path);
	a = spawn(copy_program(path), NULL, NULL);
	process = process_table_see(table, &a.id, false, NULL);
	wait_until_read(process);
	assert_int_equal(link(path, link_path), 0);
	b = spawn(link_path, NULL, NULL);
	linked = process_table_see(table, &b.id, false, NULL);
	wait_until_read(linked);
	unlink(link_path);
	assert_int_equal(rename(path, link_path), 0);
	c = spawn(link_path, NULL, NULL);
	renamed = process_table_see(table, &c.id, false, NULL);
	wait_until_read(renamed);
	assert_function(process, a.address, "process_fixture_function", path);
	assert_function(linked, b.address, "process_fixture_function", link_path);
	assert_function(renamed, c.address, "process_fixture_function", link_path);
	/* An address is the same place only in processes that have the file by the same path. */
	place = place_of(process, a.address);
	assert_int_not_equal(place.file, 0);
	assert_int_equal(place_of(process, a.address + 1).file, place.file);
	assert_int_equal(place_of(process, a.address + 1).offset, place.offset + 1);
	assert_int_equal(place_of(linked, b.address).offset, place.offset);
	assert_int_not_equal(place_of(linked, b.address).file, place.file);
	assert_int_equal(place_of(renamed, c.address).file, place_of(linked, b.address).file);
	assert_int_equal(place_of(process, 0x7000).file, 0);
	unlink(link_path);
	end(&a);
	end(&b);
	end(&c);
	process_unref(process);
	process_unref(linked);
	process_unref(renamed);
}

/* Returns the mapping of an address, as a walk would find it; dev and generation are made up. */
static struct unwind_mapping_found found_at(pid_t pid, uint64_t address)
{
	struct unwind_mapping_found found = { .key = { .dev = 34, .generation = 5 } };
	struct proc_maps mappings = { 0 };
	struct procfs_stat who;
	int dir_fd = procfs_open(pid, &who);
	struct stat st;

	assert_int_equal(procfs_read_maps(dir_fd, &mappings), 0);
	for (size_t i = 0; i < mappings.n; i++) {
		struct proc_mapping *m = &mappings.items[i];

		if (address < m->start || address >= m->end)
			continue;
		assert_int_equal(stat(m->path, &st), 0);
		found.start = m->start;
		found.end = m->end;
		found.key.inode = st.st_ino;
		found.key.offset = m->pgoff;
		found.key.size = (uint64_t)st.st_size;
		found.key.mtime_ns = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
	}
	proc_maps_fini(&mappings);
	close(dir_fd);
	assert_true(found.start);
	return found;
}

static void assert_unknown(struct process *process, uint64_t address)
{
	struct symbol symbol;

	assert_false(lookup(process, 0, address, false, &symbol));
	process_release_symbols(process);
}

/* Notes that a walk with these mappings and this generation found a mapping. */
static void note_found(const struct process_id *id, uint64_t mappings, uint64_t generation,
		       const struct unwind_mapping_found *found)
{
	struct record_mapping record = {
		.tgid = (uint32_t)id->pid,
		.exec_gen = id->exec_gen,
		.leader_boot_ns = id->start_boot_ns,
		.mappings = mappings,
		.generation = generation,
		.found = *found,
	};

	process_table_note_mapping(table, &record);
}

static void note_mapping(const struct process_id *id, const struct unwind_mapping_found *found)
{
	note_found(id, MAPPINGS_FOUND | 1, 0, found);
}

static void what_walks_find_names_who_is_gone(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct unwind_mapping_found found = found_at(child.pid, child.address), other;
	/* This process is never in /proc. */
	struct process_id gone_id = { .pid = INT32_MAX, .exec_gen = 1, .start_boot_ns = 1 };
	struct process *process, *gone;

	/* The first process that crosses a file tells by which key the kernel knows it. */
	process = process_table_see(table, &child.id, false, NULL);
	note_mapping(&child.id, &found);
	wait_until_read(process);
	note_mapping(&gone_id, &found);
	gone = process_table_see(table, &gone_id, false, "gone");
	assert_function(gone, child.address, "process_fixture_function", program);
	process_unref(gone);

	/*
	 * The key of another state of the file does not stand for this module, neither now nor
	 * later.
	 */
	other = found;
	other.key.mtime_ns++;
	gone_id.exec_gen++;
	note_mapping(&child.id, &other);
	note_mapping(&gone_id, &other);
	gone = process_table_see(table, &gone_id, false, "gone");
	assert_unknown(gone, child.address);
	process_unref(gone);
	end(&child);
	process_unref(process);
}

/* Returns where the library of this name is mapped; 0: nowhere. */
static uint64_t library_start(pid_t pid, const char *name)
{
	struct proc_maps mappings = { 0 };
	struct procfs_stat who;
	int dir_fd = procfs_open(pid, &who);
	uint64_t start = 0;

	assert_int_equal(procfs_read_maps(dir_fd, &mappings), 0);
	for (size_t i = 0; i < mappings.n; i++)
		if (strstr(mappings.items[i].path, name))
			start = mappings.items[i].start;
	proc_maps_fini(&mappings);
	close(dir_fd);
	return start;
}

static void names_are_by_what_was_mapped_then(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct unwind_mapping_found found = found_at(child.pid, child.address), other;
	struct process *process = process_table_see(table, &child.id, false, NULL);
	uint64_t start = library_start(child.pid, "libc.so"), i;
	struct symbol symbol;

	assert_true(start);
	other = found_at(child.pid, start);
	wait_until_read(process);
	note_found(&child.id, MAPPINGS_FOUND | 1, 0, &found);
	note_found(&child.id, MAPPINGS_FOUND | 1, 0, &other);
	/*
	 * Later another file is mapped in its place: for one walk the file is known, for another it
	 * is not.
	 */
	other.start = found.start;
	other.end = found.end;
	note_found(&child.id, MAPPINGS_FOUND | 2, 0, &other);
	other.key.mtime_ns++;
	note_found(&child.id, MAPPINGS_FOUND | 3, 0, &other);

	assert_true(lookup(process, MAPPINGS_FOUND | 1, child.address, false, &symbol));
	assert_string_equal(symbol.name, "process_fixture_function");
	assert_true(lookup(process, MAPPINGS_FOUND | 2, child.address, false, &symbol));
	assert_non_null(strstr(symbol.module, "libc.so"));
	assert_false(lookup(process, MAPPINGS_FOUND | 3, child.address, false, &symbol));
	/* Many versions of the last minute are kept. */
	for (i = 4; i < 40; i++)
		note_found(&child.id, MAPPINGS_FOUND | i, 0, &other);
	assert_true(lookup(process, MAPPINGS_FOUND | 1, child.address, false, &symbol));
	assert_string_equal(symbol.name, "process_fixture_function");
	/* There are no names for a walk one of whose mappings was lost on the way, either. */
	assert_false(lookup(process, MAPPINGS_LOST, child.address, false, &symbol));
	process_release_symbols(process);
	end(&child);
	process_unref(process);
}

/*
 * A walk finds a mapping of a file that nobody has seen, and it is gone before /proc is read. The
 * kernel's key leads to the file; a file that has changed since gives only its path.
 */
static void a_mapping_that_is_gone_has_its_file(void **state)
{
	char path[] = "/tmp/test_process.XXXXXX", opened[PATH_MAX];
	struct child child = spawn(copy_program(path), NULL, NULL);
	struct unwind_mapping_found found = found_at(child.pid, child.address);
	struct process_id gone_id = { .pid = INT32_MAX, .exec_gen = 1, .start_boot_ns = 1 };
	struct process *gone = process_table_see(table, &gone_id, false, "gone");
	struct record_mapping record = {
		.tgid = (uint32_t)gone_id.pid,
		.exec_gen = gone_id.exec_gen,
		.leader_boot_ns = gone_id.start_boot_ns,
		.mappings = MAPPINGS_FOUND | 2,
		.name = 11,
	};
	struct symbol symbol;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	end(&child);
	assert_int_equal(fstat(fd, &st), 0);
	found.key.dev = (uint32_t)(major(st.st_dev) << 20 | minor(st.st_dev));
	ioctl(fd, FS_IOC_GETVERSION, &found.key.generation);
	close(fd);
	if (!open_by_inode(found.key.dev, found.key.inode, found.key.generation, opened, &fd)) {
		close(fd);
		note_found(&gone_id, MAPPINGS_FOUND | 1, 0, &found);
		assert_true(lookup(gone, MAPPINGS_FOUND | 1, child.address, false, &symbol));
		assert_string_equal(symbol.name, "process_fixture_function");
		assert_string_equal(symbol.module, path);
	} else {
		print_message("files of /tmp cannot be opened by inode: left out\n");
	}
	process_table_note_name(table, 11, "file\0opt", 9);
	record.found = found;
	record.found.key.mtime_ns++;
	process_table_note_mapping(table, &record);
	assert_true(lookup(gone, MAPPINGS_FOUND | 2, child.address, false, &symbol));
	assert_null(symbol.name);
	assert_string_equal(symbol.module, "/opt/file");
	process_release_symbols(gone);
	process_unref(gone);
	unlink(path);
}

static void a_file_is_closed_with_its_last_process(void **state)
{
	char path[] = "/tmp/test_process.XXXXXX", link[64], target[256];
	struct process *process;
	struct child child;
	bool is_open = true;

	child = spawn(copy_program(path), NULL, NULL);
	process = process_table_see(table, &child.id, false, NULL);
	wait_until_read(process);
	end(&child);
	process_table_note_exit(table, &child.id);
	for (int try = 0; try < 1000 && is_open; try++) {
		usleep(10000);
		is_open = false;
		for (int fd = 0; fd < 100; fd++) {
			ssize_t n;

			snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
			n = readlink(link, target, sizeof(target) - 1);
			target[n > 0 ? n : 0] = '\0';
			is_open |= !strncmp(target, path, strlen(path));
		}
	}
	assert_false(is_open);
	unlink(path);
	assert_function(process, child.address, "process_fixture_function", path);
	process_unref(process);
}

/* The forked child is never in /proc: it has exited before the fork is reported. */
static void a_fork_has_its_parents_names(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process *parent = process_table_see(table, &child.id, false, NULL), *forked;
	struct process_id forked_id = child.id;
	struct process_info info;

	forked_id.pid = 99999999;
	forked_id.start_boot_ns += NS_PER_S;
	wait_until_read(parent);
	process_table_note_fork(table, &forked_id, &child.id, "forked", 0);
	process_table_note_exit(table, &forked_id);
	end(&child);
	process_table_note_exit(table, &child.id);
	forked = process_table_see(table, &forked_id, false, NULL);
	assert_ptr_not_equal(forked, parent);
	assert_function(forked, child.address, "process_fixture_function", program);
	process_info(forked, &info);
	assert_string_equal(info.exe, program);
	assert_string_equal(info.comm, "forked");
	assert_true(info.has_exited);
	process_unref(forked);
	process_unref(parent);
}

/*
 * A process is put off for longer than the test takes. It has its path and that of its mapping,
 * which the kernel sends, and nothing that is in the file.
 */
static void brief_processes_are_not_read(void **state)
{
	const struct exec_facts facts = { .exe_name = 10, .group_name = NAME_NONE };
	struct child child = spawn(program, NULL, NULL);
	struct unwind_mapping_found found = found_at(child.pid, child.address);
	struct record_mapping record = {
		.tgid = (uint32_t)child.pid,
		.exec_gen = child.id.exec_gen,
		.leader_boot_ns = child.id.start_boot_ns,
		.mappings = MAPPINGS_FOUND | 1,
		.found = found,
		.name = 10,
	};
	struct process_stats stats;
	struct process *process;
	struct walk_stats walks;
	struct symbol symbol;

	process_table_put_off(table, 3600 * NS_PER_S);
	process_table_note_name(table, 10, "new\0opt", 8);
	process_table_note_exec(table, &child.id, "brief", &facts);
	process_table_note_mapping(table, &record);
	process = process_table_see(table, &child.id, false, NULL);
	assert_true(process_table_note_walk(table, process, child.address, 1U << WALK_NO_TABLE));
	assert_false(process_table_note_walk(table, process, child.address, 1U << WALK_WHOLE));
	assert_unknown(process, child.address);
	usleep(100000); /* time enough to read it */
	assert_true(lookup(process, MAPPINGS_FOUND | 1, child.address, false, &symbol));
	assert_string_equal(symbol.module, "/opt/new");
	assert_null(symbol.name);
	process_release_symbols(process);
	assert_int_equal(process_table_walk_stats(table, &walks, 1), 1);
	assert_int_equal(walks.stacks, 2);
	assert_int_equal(walks.ends[WALK_SHED], 1);
	assert_int_equal(walks.ends[WALK_NO_TABLE], 0);
	process_table_stats(table, &stats);
	assert_int_equal(stats.modules, 0);
	assert_int_equal(stats.put_off, 0);
	process_table_note_exit(table, &child.id);
	process_table_stats(table, &stats);
	assert_int_equal(stats.put_off, 1);
	assert_int_equal(stats.too_late, 0);
	end(&child);
	process_unref(process);
}

static void others_are_read_when_they_are_older(void **state)
{
	const int64_t age_ns = 100 * NS_PER_MS, begun_ns = clock_ns(CLOCK_MONOTONIC);
	struct child child = spawn(program, NULL, NULL);
	struct process_stats stats;
	struct process *process;

	process_table_put_off(table, age_ns);
	process = process_table_see(table, &child.id, false, NULL);
	wait_until_read(process);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begun_ns >= age_ns);
	assert_function(process, child.address, "process_fixture_function", program);
	/* A walk that lacks something now lacks it for another reason. */
	assert_false(process_table_note_walk(table, process, 1, 1U << WALK_NO_MAPPING));
	end(&child);
	process_table_note_exit(table, &child.id);
	process_table_stats(table, &stats);
	assert_int_equal(stats.put_off, 0);
	process_unref(process);
}

/* No process has this pid, so nothing can be read from /proc. */
static struct process *exec_nobody(const struct exec_facts *facts)
{
	static struct process_id id = { .pid = 99999998, .start_boot_ns = NS_PER_S };

	id.exec_gen++;
	process_table_note_exec(table, &id, "nobody", facts);
	return process_table_see(table, &id, false, NULL);
}

static void assert_comm(struct process *process, const char *comm)
{
	struct process_info info;

	process_info(process, &info);
	assert_string_equal(info.comm, comm);
}

/*
 * The kernel renames a process before it counts the exec: a switch in between has the new name and
 * the old count.
 */
static void an_exec_in_progress_does_not_rename(void **state)
{
	const struct exec_facts facts = { .exe_name = NAME_NONE, .group_name = NAME_NONE };
	const struct process_id id = { .pid = 99999997, .start_boot_ns = NS_PER_S };
	const struct process_id next = { id.pid, 1, id.start_boot_ns };
	struct process *before = process_table_see(table, &id, false, "shell");
	struct process *after;

	process_unref(process_table_see(table, &id, false, "program"));
	assert_comm(before, "program");
	process_table_note_exec(table, &next, "program", &facts);
	assert_comm(before, "shell");
	/* The record of the switch may come through the ring of another probe. */
	process_unref(process_table_see(table, &id, false, "program"));
	assert_comm(before, "shell");
	after = process_table_see(table, &next, false, "program");
	assert_comm(after, "program");
	/* A name that a process gives itself is its name. */
	process_unref(process_table_see(table, &next, false, "worker"));
	assert_comm(after, "worker");
	process_unref(before);
	process_unref(after);
}

static void assert_names(struct process *process, const char *exe, const char *cgroup)
{
	struct process_info info;

	process_info(process, &info);
	assert_string_equal(info.exe, exe);
	assert_string_equal(info.cgroup, cgroup);
}

static void note_exit_of(struct process *process)
{
	struct process_info info;

	process_info(process, &info);
	process_table_note_exit(table, &info.id);
}

/* Of a known program nothing is to be read, so nothing is put off, until a walk lacks something. */
static void known_programs_are_not_put_off(void **state)
{
	const struct exec_facts facts = { .exe_name = 10, .group_name = 11, .is_known = true };
	struct process_stats stats;
	struct process *process;

	process_table_put_off(table, 3600 * NS_PER_S);
	process_table_note_name(table, 10, "true\0bin\0usr", 13);
	process_table_note_name(table, 11, "web\0box", 8);
	process = exec_nobody(&facts);
	note_exit_of(process);
	process_table_stats(table, &stats);
	assert_int_equal(stats.put_off, 0);
	process_unref(process);

	process = exec_nobody(&facts);
	assert_true(process_table_note_walk(table, process, 4096, 1U << WALK_NO_MAPPING));
	assert_true(process_table_note_walk(table, process, 4096, 1U << WALK_NO_MAPPING));
	process_table_stats(table, &stats);
	assert_int_equal(stats.put_off, 0);
	note_exit_of(process);
	process_table_stats(table, &stats);
	assert_int_equal(stats.put_off, 1);

	/* A name may be asked for after the exit. It counts once. */
	process_refresh(process, MAPPINGS_FOUND | 1, PROCESS_MISS_MAPPING, INT64_MAX);
	process_table_stats(table, &stats);
	assert_int_equal(stats.put_off, 1);
	process_unref(process);
	process = exec_nobody(&facts);
	note_exit_of(process);
	process_refresh(process, MAPPINGS_FOUND | 1, PROCESS_MISS_MAPPING, INT64_MAX);
	process_table_stats(table, &stats);
	assert_int_equal(stats.put_off, 2);
	process_unref(process);
}

static void assert_group(struct process *process, int64_t at_ns, const char *group)
{
	struct process_info info;

	process_info_at(process, at_ns, &info);
	if (group)
		assert_string_equal(info.cgroup, group);
	else
		assert_null(info.cgroup);
}

/* Moves the process, and returns a time between this move and the next one. */
static int64_t move(struct process *process, uint64_t group_name)
{
	struct process_info info;
	int64_t moved_ns;

	process_info(process, &info);
	process_table_note_move(table, &info.id, group_name);
	moved_ns = clock_ns(CLOCK_MONOTONIC);
	while (clock_ns(CLOCK_MONOTONIC) <= moved_ns + 1)
		;
	return moved_ns + 1;
}

static void a_move_leaves_the_past_alone(void **state)
{
	const struct exec_facts facts = { .exe_name = 10, .group_name = 11, .is_known = true };
	struct process *process;
	struct process_stats stats;
	int64_t first_ns, in_box_ns;

	process_table_note_name(table, 10, "true\0bin\0usr", 13);
	process_table_note_name(table, 11, "web\0box", 8);
	process_table_note_name(table, 12, "jail", 5);
	process = exec_nobody(&facts);
	first_ns = move(process, 11); /* as the kernel reports for hierarchies of version 1 */
	in_box_ns = move(process, 12);
	assert_group(process, INT64_MAX, "/jail");
	assert_group(process, in_box_ns, "/jail");
	assert_group(process, first_ns, "/box/web");
	assert_group(process, 0, "/box/web");
	move(process, 11);
	assert_group(process, INT64_MAX, "/box/web");
	assert_group(process, in_box_ns, "/jail");
	assert_group(process, first_ns, "/box/web");

	for (unsigned int i = 2; i < PROCESS_MOVES_MAX; i++)
		move(process, 11 + (i + 1) % 2);
	process_table_stats(table, &stats);
	assert_int_equal(stats.moves_full, 0);
	assert_group(process, INT64_MAX, "/box/web");
	move(process, 12);
	move(process, 11);
	process_table_stats(table, &stats);
	assert_int_equal(stats.moves_full, 2);
	assert_group(process, INT64_MAX, NULL);
	assert_group(process, first_ns, "/box/web");
	process_unref(process);
}

static void assert_comm_at(struct process *process, int64_t at_ns, const char *comm)
{
	struct process_info info;

	process_info_at(process, at_ns, &info);
	assert_string_equal(info.comm, comm);
}

static void a_new_name_leaves_the_past_alone(void **state)
{
	const struct exec_facts facts = { .exe_name = NAME_NONE, .group_name = NAME_NONE };
	struct process *process = exec_nobody(&facts);
	struct process_info info;
	int64_t before_ns, between_ns, unseen_ns;
	char name[16];

	process_info(process, &info);
	before_ns = clock_ns(CLOCK_MONOTONIC);
	process_unref(process_table_see(table, &info.id, false, "nobody"));
	process_unref(process_table_see(table, &info.id, false, "first"));
	between_ns = clock_ns(CLOCK_MONOTONIC);
	process_unref(process_table_see(table, &info.id, false, "first"));
	unseen_ns = clock_ns(CLOCK_MONOTONIC);
	process_unref(process_table_see(table, &info.id, false, "second"));
	assert_comm_at(process, INT64_MAX, "second");
	assert_comm_at(process, unseen_ns, "second");
	assert_comm_at(process, between_ns, "first");
	assert_comm_at(process, before_ns, "nobody");

	/* What is dropped is the oldest. */
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		process_unref(process_table_see(table, &info.id, false, name));
	}
	assert_comm_at(process, INT64_MAX, "name 99");
	assert_comm_at(process, before_ns, "name 35");
	process_unref(process);
}

static void an_exec_brings_its_names(void **state)
{
	struct exec_facts facts = { .exe_name = 10, .group_name = 11, .is_known = true };
	struct process_id forked = { .pid = 99999997, .start_boot_ns = 2 * NS_PER_S };
	struct process *process, *child;
	struct process_info info;

	process_table_note_name(table, 10, "true\0bin\0usr", 13);
	process_table_note_name(table, 11, "web\0box", 8);
	process_table_note_name(table, 12, "", 0);
	process = exec_nobody(&facts);
	assert_names(process, "/usr/bin/true", "/box/web");
	/* A child has the names of its parent, but may begin in another cgroup. */
	process_info(process, &info);
	process_table_note_fork(table, &forked, &info.id, "forked", 11);
	child = process_table_see(table, &forked, false, NULL);
	assert_names(child, "/usr/bin/true", "/box/web");
	process_unref(child);
	forked.pid--;
	process_table_note_fork(table, &forked, &info.id, "forked", 12);
	child = process_table_see(table, &forked, false, NULL);
	assert_names(child, "/usr/bin/true", "/");
	process_unref(child);
	/* The id of a path may come to mean another path. */
	process_table_note_name(table, 10, "false\0bin", 10);
	assert_names(process, "/usr/bin/true", "/box/web");
	process_unref(process);
	process = exec_nobody(&facts);
	assert_names(process, "/bin/false", "/box/web");
	process_unref(process);
}

static void the_oldest_path_goes_first(void **state)
{
	enum { PATHS = 40000 };
	struct exec_facts facts = { .exe_name = 100, .is_known = true };
	struct process_info info;
	struct process *process;

	for (uint64_t i = 100; i < 100 + PATHS; i++) {
		process_table_note_name(table, i, "program\0directory", 18);
		process_table_note_name(table, 99, "sent again", 11);
	}
	process = exec_nobody(&facts);
	process_info(process, &info);
	assert_null(info.exe);
	process_unref(process);
	facts.exe_name = 99;
	facts.group_name = 100 + PATHS - 1;
	process = exec_nobody(&facts);
	assert_names(process, "/sent again", "/directory/program");
	process_unref(process);
}

static void an_exec_is_another_image(void **state)
{
	char path[] = "/tmp/test_process.XXXXXX";
	struct child child = spawn(program, "exec", copy_program(path));
	struct process *before = process_table_see(table, &child.id, false, NULL), *after;
	struct process_id next = child.id;
	struct process_info info;
	uint64_t address;

	wait_until_read(before);
	next.exec_gen++;
	address = poke(&child);
	process_table_note_exec(table, &next, "new", &unknown_image);
	after = process_table_see(table, &next, false, NULL);
	assert_ptr_not_equal(before, after);
	wait_until_read(after);
	process_info(after, &info);
	assert_string_equal(info.exe, path);
	/* The process goes on, but not with the program from before. */
	assert_false(info.has_exited);
	assert_false(info.is_replaced);
	process_info(before, &info);
	assert_string_equal(info.exe, program);
	assert_false(info.has_exited);
	assert_true(info.is_replaced);
	assert_true(process_has_exited(before));
	assert_function(after, address, "process_fixture_function", path);
	assert_function(before, child.address, "process_fixture_function", program);
	end(&child);
	process_unref(before);
	process_unref(after);
	unlink(path);
}

/*
 * The new image may be read from /proc before its exec is reported. Samples of the old image are
 * still to come then, and both may have code at the same addresses.
 */
static void a_late_exec_takes_no_names_away(void **state)
{
	char path[] = "/tmp/test_process.XXXXXX";
	struct child child = spawn(program, "exec", copy_program(path));
	struct process *process = process_table_see(table, &child.id, false, NULL);
	struct process_info info;
	struct symbol symbol;
	uint64_t address;

	wait_until_read(process);
	address = poke(&child);
	if (lookup(process, 0, address, false, &symbol))
		assert_string_not_equal(symbol.module, path);
	assert_false(lookup(process, 0, 0x7000, false, &symbol));
	assert_function(process, child.address, "process_fixture_function", program);
	process_info(process, &info);
	assert_string_equal(info.exe, program);
	end(&child);
	process_unref(process);
	unlink(path);
}

static void libraries_opened_later_are_found(void **state)
{
	struct child child = spawn(program, "dlopen", library);
	struct process *process = process_table_see(table, &child.id, false, NULL);
	struct symbol symbol;
	uint64_t address;

	wait_until_read(process);
	address = poke(&child);
	assert_function(process, address, "fixture_call", library);
	/* An address in no mapping stays unknown, and does not cause a reading each time. */
	assert_false(lookup(process, 0, 0x7000, false, &symbol));
	assert_int_equal(symbol.kind, FRAME_NATIVE);
	assert_int_equal(symbol.file_id, 0);
	assert_int_equal(symbol.file_offset, 0x7000);
	assert_null(symbol.name);
	assert_null(symbol.module);
	end(&child);
	process_unref(process);
}

/* What was mapped keeps its file when something else is mapped right behind it. */
static void a_mapping_that_is_gone_may_have_a_neighbour(void **state)
{
	const struct process_id id = id_of(getpid(), 1);
	struct process *process = process_table_see(table, &id, false, NULL);
	int fd = open(library, O_RDONLY | O_CLOEXEC), flags = MAP_PRIVATE | MAP_FIXED;
	char *at = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct symbol symbol;

	assert_ptr_equal(mmap(at, 4096, PROT_READ | PROT_EXEC, flags, fd, 0), at);
	lookup_wait(process, (uint64_t)(uintptr_t)at, false, &symbol);
	assert_string_equal(symbol.module, library);
	munmap(at, 4096);
	assert_int_equal(mprotect(at + 4096, 4096, PROT_READ | PROT_EXEC), 0);
	lookup_wait(process, (uint64_t)(uintptr_t)at + 4096, false, &symbol);
	assert_int_equal(symbol.kind, FRAME_JIT);
	assert_true(lookup(process, 0, (uint64_t)(uintptr_t)at, false, &symbol));
	assert_string_equal(symbol.module, library);
	munmap(at + 4096, 4096);
	close(fd);
	process_release_symbols(process);
	process_unref(process);
}

static void a_lookup_reads_nothing(void **state)
{
	struct child child = spawn(program, "dlopen", library);
	struct process *process = process_table_see(table, &child.id, false, NULL);
	struct symbol symbol;
	uint64_t address;

	wait_until_read(process);
	address = poke(&child);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(process_lookup(process, 0, address, false, &symbol),
				 PROCESS_MISS_MAPPING);
		assert_null(symbol.module);
	}
	lookup_wait(process, address, false, &symbol);
	assert_string_equal(symbol.module, library);
	/* No process can map the upper half, so there is nothing to read. */
	assert_int_equal(process_lookup(process, 0, UINT64_C(1) << 63, false, &symbol),
			 PROCESS_NO_MISS);
	assert_null(symbol.module);
	end(&child);
	process_unref(process);
}

static size_t modules_held(void)
{
	struct process_stats stats;

	process_table_stats(table, &stats);
	return stats.modules;
}

static void walks_that_find_no_way_have_it_read_again(void **state)
{
	struct child child = spawn(program, "dlopen", library);
	struct process *process = process_table_see(table, &child.id, false, NULL);
	int64_t until = clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
	uint64_t address;
	size_t before;

	wait_until_read(process);
	before = modules_held();
	address = poke(&child);
	while (modules_held() == before && clock_ns(CLOCK_MONOTONIC) < until) {
		process_table_note_walk(table, process, address, 1U << WALK_NO_ROW);
		usleep(1000);
	}
	assert_true(modules_held() > before);
	end(&child);
	process_unref(process);
}

static void generated_code_has_no_name(void **state)
{
	struct child child = spawn(program, "map", NULL);
	struct process *process = process_table_see(table, &child.id, false, NULL);
	uint64_t address = poke(&child);
	struct symbol symbol;

	lookup_wait(process, address + 5, true, &symbol);
	assert_int_equal(symbol.kind, FRAME_JIT);
	assert_string_equal(symbol.module, "[anon]");
	assert_null(symbol.name);
	assert_true(symbol.file_offset == address + 5);
	process_release_symbols(process);
	end(&child);
	process_unref(process);
}

static void a_return_address_names_the_caller(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process *process = process_table_see(table, &child.id, false, NULL);
	struct symbol at, call;

	assert_true(lookup(process, 0, child.address + 1, false, &at));
	assert_true(lookup(process, 0, child.address + 1, true, &call));
	assert_string_equal(call.name, "process_fixture_function");
	assert_int_equal(call.name_offset, 1);
	assert_true(call.file_offset == at.file_offset);
	assert_true(call.file_id == at.file_id);
	assert_true(lookup(process, 0, child.address, true, &call));
	assert_true(!call.name || strcmp(call.name, "process_fixture_function"));
	process_release_symbols(process);
	end(&child);
	process_unref(process);
}

static void a_reused_pid_is_another_process(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process_id earlier = child.id;
	struct process *process, *now;
	struct process_stats stats;
	struct process_info info;
	struct symbol symbol;

	earlier.start_boot_ns -= 20 * NS_PER_MS;
	process = process_table_see(table, &earlier, false, "earlier");
	assert_false(lookup(process, 0, child.address, false, &symbol));
	process_info(process, &info);
	assert_null(info.exe);
	assert_true(info.has_exited);
	process_table_stats(table, &stats);
	assert_int_equal(stats.too_late, 1);

	now = process_table_see(table, &child.id, false, NULL);
	assert_function(now, child.address, "process_fixture_function", program);
	assert_false(lookup(process, 0, child.address, false, &symbol));
	end(&child);
	process_unref(process);
	process_unref(now);
}

/*
 * A process that execs itself in a loop: each program is found again in whatever order they are
 * reported, the last one is the process, and when that ends, all have.
 */
static void execs_come_in_any_order(void **state)
{
	enum { EXECS = 2000, STRIDE = 777 };
	static struct process *seen[EXECS];
	struct child child = spawn(program, NULL, NULL);
	struct process_id id = child.id;
	struct process_info info;

	for (uint32_t i = 0; i < EXECS; i++) {
		id.exec_gen = i * STRIDE % EXECS;
		seen[id.exec_gen] = process_table_see(table, &id, false, "loop");
		assert_non_null(seen[id.exec_gen]);
	}
	for (id.exec_gen = 0; id.exec_gen < EXECS; id.exec_gen++) {
		assert_ptr_equal(process_table_see(table, &id, false, NULL), seen[id.exec_gen]);
		process_unref(seen[id.exec_gen]);
		process_info(seen[id.exec_gen], &info);
		assert_false(info.has_exited);
		assert_int_equal(info.is_replaced, id.exec_gen + 1 < EXECS);
	}
	id.exec_gen = EXECS - 1;
	process_table_note_exit(table, &id);
	for (size_t i = 0; i < EXECS; i++) {
		process_info(seen[i], &info);
		assert_true(info.has_exited);
		assert_false(info.is_replaced);
		process_unref(seen[i]);
	}
	end(&child);
}

static void a_scan_knows_them_before_they_are_seen(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process_stats before, after;
	struct process *process, *again;
	struct process_info info;

	assert_int_equal(process_table_scan(table), 0);
	process_table_stats(table, &before);
	assert_true(before.processes > 1);
	assert_true(before.modules > 1);
	assert_int_equal(before.symbol_bytes, 0);
	process = process_table_see(table, &child.id, false, NULL);
	process_info(process, &info);
	assert_non_null(info.exe);
	assert_string_equal(info.exe, program);
	assert_true(info.id.start_boot_ns == child.id.start_boot_ns);
	again = process_table_see(table, &child.id, false, NULL);
	assert_ptr_equal(process, again);
	process_table_stats(table, &after);
	assert_int_equal(after.processes, before.processes);
	end(&child);
	process_table_note_exit(table, &child.id);
	assert_function(process, child.address, "process_fixture_function", program);
	process_unref(process);
	process_unref(again);
}

static void the_kernels_own_are_told_apart(void **state)
{
	struct process_id id = { .pid = 2, .exec_gen = 0, .start_boot_ns = 5 };
	struct process *process = process_table_see(table, &id, true, "kthreadd");
	struct process_info info;
	struct symbol symbol;

	process_info(process, &info);
	assert_true(info.is_kernel);
	assert_string_equal(info.comm, "kthreadd");
	assert_false(lookup(process, 0, 0x401000, false, &symbol));
	process_unref(process);
}

/* Returns the memory of exited processes. */
static size_t dead_bytes(void)
{
	struct process_stats stats;

	process_table_stats(table, &stats);
	return stats.dead_bytes;
}

/* Sweeps processes that exited longer than keep_ns ago. */
static void sweep(int64_t keep_ns)
{
	int64_t before = clock_ns(CLOCK_MONOTONIC) - keep_ns + 1;

	process_table_sweep(table, &(struct process_sweep){ .lost_ns = before, .dead_ns = before });
}

/* The same, when all windows have their names. */
static void sweep_named(void)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC) + 1;

	process_table_sweep(
		table, &(struct process_sweep){ .lost_ns = now, .dead_ns = now, .named_ns = now });
}

/* The report of an image arrives after those of two later ones. */
static void the_dead_are_counted_once(void **state)
{
	struct process_id id = { .pid = 4194303, .exec_gen = 2, .start_boot_ns = 5 };
	struct process *second = process_table_see(table, &id, true, "second"), *third, *first;

	id.exec_gen = 3;
	third = process_table_see(table, &id, true, "third");
	id.exec_gen = 1;
	first = process_table_see(table, &id, true, "first");
	assert_true(dead_bytes() > 0);
	id.exec_gen = 3;
	process_table_note_exit(table, &id);
	process_unref(first);
	process_unref(second);
	sweep_named();
	/* Only the third one is still referred to. */
	assert_int_equal(process_table_referred_bytes(table), dead_bytes());
	assert_true(dead_bytes() > 0);
	sweep_named();
	assert_int_equal(process_table_referred_bytes(table), dead_bytes());
	process_unref(third);
	sweep(0);
	assert_int_equal(dead_bytes(), 0);
	assert_int_equal(process_table_referred_bytes(table), 0);
}

static bool has_comm(int32_t pid, int64_t start_real_ns, int64_t end_real_ns, const char *wanted)
{
	char comm[16] = "";

	return process_table_comm(table, pid, start_real_ns, end_real_ns, comm) &&
	       strcmp(comm, wanted) == 0;
}

/* A pid has the name of the process that had it then, and none if two had it. */
static void a_pid_has_a_name_in_a_range(void **state)
{
	/* Far enough from what follows for two clocks that are read apart. */
	const int64_t boot_ns = clock_ns(CLOCK_BOOTTIME),
		      before_ns = clock_ns(CLOCK_REALTIME) - NS_PER_S;
	struct process_id id = { .pid = 4194303,
				 .exec_gen = 1,
				 .start_boot_ns = (uint64_t)boot_ns };
	struct process *first = process_table_see(table, &id, true, "first"), *second, *third;
	int64_t middle_ns, end_ns;
	char comm[16];

	id.exec_gen = 2;
	second = process_table_see(table, &id, true, "second");
	assert_true(has_comm(id.pid, before_ns, INT64_MAX, "second"));
	assert_false(process_table_comm(table, id.pid, 0, before_ns - NS_PER_S, comm));
	assert_false(process_table_comm(table, 4194302, 0, INT64_MAX, comm));
	assert_false(process_table_comm(NULL, id.pid, 0, INT64_MAX, comm));
	process_table_note_exit(table, &id);
	usleep(1000);
	middle_ns = clock_ns(CLOCK_REALTIME);
	usleep(1000);
	id.start_boot_ns = (uint64_t)clock_ns(CLOCK_BOOTTIME);
	third = process_table_see(table, &id, true, "third");
	end_ns = clock_ns(CLOCK_REALTIME);
	assert_true(has_comm(id.pid, before_ns, middle_ns, "second"));
	assert_true(has_comm(id.pid, middle_ns, end_ns, "third"));
	assert_false(process_table_comm(table, id.pid, before_ns, end_ns, comm));
	process_unref(first);
	process_unref(second);
	process_unref(third);
}

static void what_named_the_dead_goes(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process *process = process_table_see(table, &child.id, false, NULL);
	struct process_sweep over = {};
	struct process_stats stats;
	struct process_info info;
	struct symbol symbol;

	wait_until_read(process);
	assert_int_equal(dead_bytes(), 0);
	over.named_ns = clock_ns(CLOCK_MONOTONIC);
	end(&child);
	process_table_note_exit(table, &child.id);
	assert_true(dead_bytes() > 0);
	process_table_sweep(table, &over);
	assert_function(process, child.address, "process_fixture_function", program);
	process_release_symbols(process);
	over.named_ns = clock_ns(CLOCK_MONOTONIC) + 1;
	process_table_sweep(table, &over);
	assert_false(lookup(process, 0, child.address, false, &symbol));
	process_info(process, &info);
	assert_string_equal(info.exe, program);
	process_unref(process);
	sweep(0);
	process_table_stats(table, &stats);
	assert_int_equal(stats.processes, 0);
	assert_int_equal(stats.dead_bytes, 0);
}

static void sweeping_keeps_what_is_referenced(void **state)
{
	struct child child = spawn(program, NULL, NULL), lost = spawn(program, NULL, NULL);
	struct process *process = process_table_see(table, &child.id, false, NULL);
	struct process_stats stats;

	process_unref(process_table_see(table, &lost.id, false, NULL));
	wait_until_read(process);
	end(&child);
	process_table_note_exit(table, &child.id);
	sweep(0);
	process_table_stats(table, &stats);
	assert_int_equal(stats.processes, 2);
	assert_function(process, child.address, "process_fixture_function", program);
	process_unref(process);
	sweep(0);
	process_table_stats(table, &stats);
	assert_int_equal(stats.processes, 1);
	/* Its exit is not reported, so the sweep has to find out. */
	end(&lost);
	sweep(0);
	usleep(1000);
	sweep(0);
	process_table_stats(table, &stats);
	assert_int_equal(stats.processes, 0);
	/* The table's thread may still be closing their files. */
	for (int try = 0; try < 1000 && stats.modules; try++) {
		usleep(10000);
		process_table_stats(table, &stats);
	}
	assert_int_equal(stats.modules, 0);
}

static void *sweep_often(void *data)
{
	for (int i = 0; i < 20; i++)
		sweep(0);
	return NULL;
}

/*
 * A sweep of thousands lets other threads in: here one that adds and ends processes, also while the
 * sweep goes on. In the end none is left.
 */
static void sweeping_lets_others_in(void **state)
{
	struct process_id id = { .pid = 4100000, .exec_gen = 1, .start_boot_ns = 5 };
	struct process_stats stats;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, sweep_often, NULL), 0);
	for (int i = 0; i < 5000; i++, id.pid++) {
		process_unref(process_table_see(table, &id, true, "short"));
		process_table_note_exit(table, &id);
	}
	pthread_join(thread, NULL);
	sweep(0);
	process_table_stats(table, &stats);
	assert_int_equal(stats.processes, 0);
	assert_int_equal(dead_bytes(), 0);
}

static atomic_bool is_over;

struct crowd {
	struct child *children;
	size_t n;
	unsigned seed;
	atomic_uint *named;
};

static void *crowd_run(void *data)
{
	struct crowd *crowd = data;

	while (!is_over) {
		struct child *child = &crowd->children[(size_t)rand_r(&crowd->seed) % crowd->n];
		struct process *process;
		struct process_info info;
		struct process_stats stats;
		struct process_id forked = child->id;
		struct symbol symbol;

		process = process_table_see(table, &child->id, false, "crowd");
		if (!process)
			break;
		if (lookup(process, 0, child->address, false, &symbol) && symbol.name)
			atomic_fetch_add(crowd->named, 1);
		process_info(process, &info);
		process_unref(process);
		forked.pid = 50000000 + rand_r(&crowd->seed) % 100;
		process_table_note_fork(table, &forked, &child->id, "fork", 0);
		process_table_note_exec(table, &forked, "exec", &unknown_image);
		process_table_note_exit(table, &forked);
		sweep(NS_PER_MS);
		process_table_stats(table, &stats);
	}
	return NULL;
}

/*
 * For the sanitizers: several threads do everything at once, also with the processes of the others.
 */
static void any_thread_may_call(void **state)
{
	struct child children[4];
	pthread_t threads[3];
	struct crowd crowds[3];
	atomic_uint named = 0;

	for (size_t i = 0; i < ARRAY_SIZE(children); i++)
		children[i] = spawn(program, NULL, NULL);
	is_over = false;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		crowds[i] = (struct crowd){ children, ARRAY_SIZE(children), (unsigned)i, &named };
		assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, &crowds[i]), 0);
	}
	for (int i = 0; i < 5; i++) {
		usleep(100000);
		assert_int_equal(process_table_scan(table), 0);
	}
	is_over = true;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < ARRAY_SIZE(children); i++)
		end(&children[i]);
	assert_true(named > 100);
}

enum {
	UNWIND_WORDS = 1 << 18,
	UNWIND_TABLES = 64,
	UNWIND_SEGMENTS = 4096,
	SHOWN_MAX = 16,
	MADE_UP = 99999900, /* tests use numbers above it for processes that do not exist */
};

/* The memory and maps that the kernel would have, in plain memory. Several threads use them. */
static struct {
	struct unwind *unwind;
	uint64_t *words;
	struct unwind_table tables[UNWIND_TABLES];
	struct unwind_segment segments[UNWIND_SEGMENTS];
	pthread_mutex_t lock; /* protects the members below */
	struct unwind_process shown[SHOWN_MAX];
	size_t n_shown;
	unsigned int puts; /* of processes that do not exist: others are read by a thread */
} kernel = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t *on_map(void *userdata, uint32_t first, uint32_t n)
{
	return kernel.words + first;
}

static void on_unmap(void *userdata, uint64_t *words, uint32_t first, uint32_t n)
{
}

/* Returns the entry of the process; NULL if there is none. Called with the lock held. */
static struct unwind_process *shown_find(uint32_t tgid)
{
	for (size_t i = 0; i < kernel.n_shown; i++)
		if (kernel.shown[i].tgid == tgid)
			return &kernel.shown[i];
	return NULL;
}

static int on_put(void *userdata, const struct unwind_process *process, bool is_new_only)
{
	struct unwind_process *entry;

	pthread_mutex_lock(&kernel.lock);
	entry = shown_find(process->tgid);
	if (!entry && kernel.n_shown < SHOWN_MAX)
		entry = &kernel.shown[kernel.n_shown++];
	if (entry)
		*entry = *process;
	kernel.puts += process->tgid > MADE_UP;
	pthread_mutex_unlock(&kernel.lock);
	return entry ? 0 : -E2BIG;
}

static bool on_get(void *userdata, uint32_t tgid, struct unwind_process *out)
{
	struct unwind_process *entry;

	pthread_mutex_lock(&kernel.lock);
	entry = shown_find(tgid);
	if (entry)
		*out = *entry;
	pthread_mutex_unlock(&kernel.lock);
	return entry;
}

static void on_drop(void *userdata, uint32_t tgid)
{
	struct unwind_process *entry;

	pthread_mutex_lock(&kernel.lock);
	entry = shown_find(tgid);
	if (entry)
		*entry = kernel.shown[--kernel.n_shown];
	pthread_mutex_unlock(&kernel.lock);
}

static int on_put_code(void *userdata, const struct unwind_code_key *key,
		       const struct unwind_code *code)
{
	return 0;
}

static void on_drop_code(void *userdata, const struct unwind_code_key *key)
{
}

static void on_wait(void *userdata)
{
}

static int set_up_unwind(void **state)
{
	const struct unwind_memory memory = {
		.n_words = UNWIND_WORDS,
		.map = on_map,
		.unmap = on_unmap,
		.tables = kernel.tables,
		.n_tables = UNWIND_TABLES,
		.segments = kernel.segments,
		.n_segments = UNWIND_SEGMENTS,
		.put = on_put,
		.get = on_get,
		.drop = on_drop,
		.n_codes = 64,
		.put_code = on_put_code,
		.drop_code = on_drop_code,
		.wait = on_wait,
	};

	kernel.words = calloc(UNWIND_WORDS, sizeof(*kernel.words));
	kernel.n_shown = kernel.puts = 0;
	if (!kernel.words || unwind_new(&memory, &kernel.unwind) || set_up(state))
		return -1;
	process_table_set_unwind(table, kernel.unwind);
	return 0;
}

static int tear_down_unwind(void **state)
{
	tear_down(state);
	kernel.unwind = unwind_free(kernel.unwind);
	free(kernel.words);
	return 0;
}

static bool is_shown(const struct process_id *id)
{
	struct unwind_process entry;

	return on_get(NULL, (uint32_t)id->pid, &entry) && entry.exec_gen == id->exec_gen;
}

/* Waits until the process was read from /proc and the unwinder has its mappings. */
static void wait_until_shown(struct process *process, const struct process_id *id)
{
	wait_until_read(process);
	for (int try = 0; try < 1000 && !is_shown(id); try++)
		usleep(10000);
	assert_true(is_shown(id));
}

static unsigned int puts_now(void)
{
	unsigned int puts;

	pthread_mutex_lock(&kernel.lock);
	puts = kernel.puts;
	pthread_mutex_unlock(&kernel.lock);
	return puts;
}

/* A forked process is shown with its parent's mappings if it still runs when the batch ends. */
static void a_fork_is_shown_after_its_batch(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process *parent = process_table_see(table, &child.id, false, NULL);
	/* It began before the parent was shown: no BPF program has copied the parent's entry. */
	struct process_id forked = { 99999999, 0, child.id.start_boot_ns + 1 };
	unsigned int puts;

	wait_until_shown(parent, &child.id);
	puts = puts_now();
	process_table_note_fork(table, &forked, &child.id, "forked", 0);
	process_table_note_exit(table, &forked);
	process_table_show(table);
	assert_int_equal(puts_now(), puts);

	forked.pid--;
	process_table_note_fork(table, &forked, &child.id, "forked", 0);
	assert_false(is_shown(&forked));
	process_table_show(table);
	assert_true(is_shown(&forked));
	assert_int_equal(puts_now(), puts + 1);
	process_table_show(table);
	assert_int_equal(puts_now(), puts + 1);
	process_table_note_exit(table, &forked);
	assert_false(is_shown(&forked));
	end(&child);
	process_unref(parent);
}

/*
 * A stack of a forked process arrives before the record of the fork: the stack was walked with the
 * parent's mappings, under the number that a BPF program has copied.
 */
static void a_stack_before_its_fork_has_names(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process *parent = process_table_see(table, &child.id, false, NULL), *forked;
	struct unwind_mapping_found found = found_at(child.pid, child.address);
	struct process_id id = { .pid = 99999999 };
	struct unwind_process entry;
	uint64_t in_libc;
	struct symbol symbol;

	wait_until_shown(parent, &child.id);
	on_get(NULL, (uint32_t)child.pid, &entry);
	in_libc = library_start(child.pid, "libc.so");
	id.start_boot_ns = (uint64_t)clock_ns(CLOCK_BOOTTIME);
	forked = process_table_see(table, &id, false, NULL);
	assert_true(lookup(forked, entry.generation, child.address, false, &symbol));
	assert_string_equal(symbol.name, "process_fixture_function");
	assert_false(lookup(forked, entry.generation + 1000, child.address, false, &symbol));
	/* The walk of another one found one more mapping. */
	note_found(&id, MAPPINGS_FOUND | 1, entry.generation, &found);
	assert_true(lookup(forked, MAPPINGS_FOUND | 1, in_libc, false, &symbol));
	assert_non_null(strstr(symbol.module, "libc.so"));
	process_release_symbols(forked);
	process_unref(forked);
	end(&child);
	process_unref(parent);
}

/* A forked process was read from /proc after its exec, before its fork was reported. */
static void a_fork_brings_the_program_before_the_exec(void **state)
{
	char path[] = "/tmp/test_process.XXXXXX";
	struct child child = spawn(program, NULL, NULL),
		     after = spawn(copy_program(path), NULL, NULL);
	struct process *parent = process_table_see(table, &child.id, false, NULL);
	struct process *forked = process_table_see(table, &after.id, false, NULL);
	struct process_info info;

	wait_until_read(parent);
	wait_until_read(forked);
	process_info(forked, &info);
	assert_string_equal(info.exe, path);
	process_table_note_fork(table, &after.id, &child.id, "forked", 0);
	process_info(forked, &info);
	assert_string_equal(info.exe, program);
	assert_function(forked, child.address, "process_fixture_function", program);
	unlink(path);
	end(&after);
	end(&child);
	process_unref(forked);
	process_unref(parent);
}

/* A BPF program has copied the parent's entry; it is also the one that removes it. */
static void a_copied_entry_is_not_shown_again(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process *parent = process_table_see(table, &child.id, false, NULL);
	struct process_id forked = { .pid = 99999999 }, its_child = { .pid = 99999998 }, last;
	unsigned int puts;

	wait_until_shown(parent, &child.id);
	puts = puts_now();
	forked.start_boot_ns = (uint64_t)clock_ns(CLOCK_BOOTTIME) + 1;
	its_child.start_boot_ns = forked.start_boot_ns + 1;
	process_table_note_fork(table, &forked, &child.id, "forked", 0);
	process_table_note_fork(table, &its_child, &forked, "forked", 0);
	process_table_show(table);
	assert_int_equal(puts_now(), puts);

	/* The mappings are dropped when no process has them, and the copied entry means nothing. */
	last = its_child;
	last.pid--;
	process_table_note_fork(table, &last, &forked, "last", 0);
	process_table_note_exit(table, &its_child);
	process_table_note_exit(table, &forked);
	process_table_note_exit(table, &child.id);
	process_table_show(table);
	assert_true(is_shown(&last));
	end(&child);
	process_unref(parent);
}

/* The mappings that walks find of a process are shown together, if the process still runs. */
static void what_walks_find_is_shown_once(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process *process = process_table_see(table, &child.id, false, NULL);
	struct process_id young = { .pid = 99999999, .exec_gen = 1 };
	struct unwind_mapping_found found[2];
	unsigned int puts;

	wait_until_shown(process, &child.id);
	found[0] = found_at(child.pid, child.address);
	found[1] = found_at(child.pid, library_start(child.pid, "libc.so"));
	for (size_t i = 0; i < ARRAY_SIZE(found); i++)
		note_found(&child.id, MAPPINGS_FOUND | 1, 0, &found[i]);
	process_table_show(table);
	/* The reader would find that the young ones do not exist. */
	process_table_put_off(table, 3600 * NS_PER_S);
	for (int has_ended = 0; has_ended < 2; has_ended++) {
		struct process *other;

		young.pid--;
		young.start_boot_ns = (uint64_t)clock_ns(CLOCK_BOOTTIME);
		puts = puts_now();
		for (size_t i = 0; i < ARRAY_SIZE(found); i++)
			note_found(&young, MAPPINGS_FOUND | 1, 0, &found[i]);
		assert_int_equal(puts_now(), puts);
		if (has_ended)
			process_table_note_exit(table, &young);
		process_table_show(table);
		assert_int_equal(puts_now(), puts + !has_ended);
		assert_int_equal(is_shown(&young), !has_ended);
		other = process_table_see(table, &young, false, NULL);
		assert_function(other, child.address, "process_fixture_function", program);
		process_unref(other);
	}
	end(&child);
	process_unref(process);
}

/* Asks until the process is settled. */
static struct process_settled settled(pid_t pid)
{
	struct process_settled known;

	for (int try = 0; try < 10000; try++) {
		assert_int_equal(process_table_settle(table, pid, &known), 0);
		if (known.is_settled)
			return known;
		usleep(1000);
	}
	fail_msg("process %d is not settled: %zu files awaited", pid, known.files.awaited);
	return known;
}

/* The program is so big that its unwind rows are loaded only when they are needed, or asked for. */
static void settled_is_said_when_all_is_loaded(void **state)
{
	char path[] = "/tmp/test_process.XXXXXX";
	struct process_settled known;
	struct unwind_process entry;
	struct child child;

	copy_program(path);
	assert_int_equal(truncate(path, 9 << 20), 0);
	child = spawn(path, "dlopen", library);
	unlink(path);
	/* Nobody has reported the process: it is read now, and its program begins to be. */
	assert_int_equal(process_table_settle(table, child.pid, &known), 0);
	assert_true(known.is_read && known.is_shown && !known.is_kernel);
	assert_true(known.files.awaited >= 1);
	assert_false(known.is_settled);
	known = settled(child.pid);
	assert_int_equal(known.files.awaited + known.files.partial + known.files.rowless +
				 known.files.refused,
			 0);
	/* A library that it opens is awaited by the next question. */
	poke(&child);
	assert_int_equal(settled(child.pid).files.n, known.files.n + 1);
	/* Its entry is gone, as if a BPF program had not copied it. */
	on_drop(NULL, (uint32_t)child.pid);
	assert_true(settled(child.pid).is_shown);
	assert_true(on_get(NULL, (uint32_t)child.pid, &entry) && entry.generation);
	end(&child);
	assert_int_equal(process_table_settle(table, child.pid, &known), -ESRCH);
}

/* What /proc shows is of the program after an exec, which was not reported yet. */
static void settled_waits_for_an_exec(void **state)
{
	char path[] = "/tmp/test_process.XXXXXX";
	struct child child = spawn(program, "exec", copy_program(path));
	struct process *process = process_table_see(table, &child.id, false, NULL);
	struct process_settled known;

	wait_until_read(process);
	poke(&child);
	assert_int_equal(process_table_settle(table, child.pid, &known), 0);
	assert_false(known.is_read || known.is_settled);
	child.id.exec_gen++;
	process_table_note_exec(table, &child.id, "after", &unknown_image);
	assert_string_equal(settled(child.pid).comm, "after");
	unlink(path);
	end(&child);
	process_unref(process);
}

/* No room for the process: that will not come, so it is not awaited. */
static void settled_waits_for_no_room(void **state)
{
	struct child child = spawn(program, NULL, NULL);
	struct process_settled known;

	kernel.n_shown = SHOWN_MAX;
	known = settled(child.pid);
	assert_true(known.is_full && !known.is_shown);
	end(&child);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tells_who_it_was, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_without_mappings_has_a_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_survive_the_exit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_survive_the_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_is_named_as_each_has_it_mapped, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_walks_find_names_who_is_gone, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(names_are_by_what_was_mapped_then, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_mapping_that_is_gone_has_its_file, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_file_is_closed_with_its_last_process, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_mapping_that_is_gone_may_have_a_neighbour, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_fork_has_its_parents_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(brief_processes_are_not_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(known_programs_are_not_put_off, set_up, tear_down),
		cmocka_unit_test_setup_teardown(others_are_read_when_they_are_older, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_exec_brings_its_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_move_leaves_the_past_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_new_name_leaves_the_past_alone, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_oldest_path_goes_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_exec_is_another_image, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_late_exec_takes_no_names_away, set_up, tear_down),
		cmocka_unit_test_setup_teardown(libraries_opened_later_are_found, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_lookup_reads_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(walks_that_find_no_way_have_it_read_again, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(generated_code_has_no_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_return_address_names_the_caller, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_reused_pid_is_another_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(execs_come_in_any_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_scan_knows_them_before_they_are_seen, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_kernels_own_are_told_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_dead_are_counted_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_named_the_dead_goes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(sweeping_lets_others_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pid_has_a_name_in_a_range, set_up, tear_down),
		cmocka_unit_test_setup_teardown(sweeping_keeps_what_is_referenced, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_fork_is_shown_after_its_batch, set_up_unwind,
						tear_down_unwind),
		cmocka_unit_test_setup_teardown(a_stack_before_its_fork_has_names, set_up_unwind,
						tear_down_unwind),
		cmocka_unit_test_setup_teardown(an_exec_in_progress_does_not_rename, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_fork_brings_the_program_before_the_exec, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_copied_entry_is_not_shown_again, set_up_unwind,
						tear_down_unwind),
		cmocka_unit_test_setup_teardown(what_walks_find_is_shown_once, set_up_unwind,
						tear_down_unwind),
		cmocka_unit_test_setup_teardown(settled_is_said_when_all_is_loaded, set_up_unwind,
						tear_down_unwind),
		cmocka_unit_test_setup_teardown(settled_waits_for_an_exec, set_up_unwind,
						tear_down_unwind),
		cmocka_unit_test_setup_teardown(settled_waits_for_no_room, set_up_unwind,
						tear_down_unwind),
		cmocka_unit_test_setup_teardown(any_thread_may_call, set_up, tear_down),
	};

	if (argc != 3) {
		fprintf(stderr, "usage: test_process PROGRAM LIBRARY\n");
		return 1;
	}
	program = realpath(argv[1], NULL);
	library = realpath(argv[2], NULL);
	if (!program || !library) {
		perror("the fixtures");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
