/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/unwind_shared.h"
#include "common/base.h"
#include "daemon/base/activity.h"
#include "daemon/base/thread.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"
#include "daemon/process/loader.h"

#define READ_TRIES 3 /* maximum tries to read a process that does an exec during each try */

/*
 * When reading /proc has taken BUDGET_NS of CPU time within BUDGET_PERIOD_NS, repeated reads of the
 * same process (as after an exec) are dropped until the period ends. First reads are not dropped.
 */
#define BUDGET_PERIOD_NS NS_PER_S
#define BUDGET_NS	 (20 * NS_PER_MS)

/*
 * A process that takes longer than this to read, of CPU time, is not read again for READ_REST times
 * as long: what users map costs at most a hundredth of a CPU for each process, also where what is
 * read is out of date each time. Most processes take 0.1 to 1 ms.
 */
#define READ_LONG_NS (5 * NS_PER_MS)
#define READ_REST    100

/*
 * A process that takes longer to read than HANGING_NS is left to the thread that reads it, of which
 * there may be HANGING_MAX. Who needs what is read waits PATIENCE_NS longer than that.
 */
#define HANGING_NS  (2 * NS_PER_S)
#define PATIENCE_NS (100 * NS_PER_MS)

enum { HANGING_MAX = 16 };

/*
 * Files whose mappings walks found are opened for a process at this rate: 128 at once, then one
 * every 20 ms. Mappings beyond that have their path only.
 */
#define OPENED_EVERY_NS	  (20 * NS_PER_MS)
#define OPENED_AT_ONCE_NS (128 * OPENED_EVERY_NS)

/* The facts about one process that were found by reading /proc one time. */
struct reading {
	struct procfs_stat stat;
	struct procfs_exe exe;
	char *cgroup;
	struct proc_maps mappings;
	struct process_maps *maps;
};

static void reading_fini(struct reading *reading)
{
	free(reading->exe.path);
	free(reading->cgroup);
	proc_maps_fini(&reading->mappings);
	process_maps_unref(reading->maps);
}

/*
 * True unless `exe` is known to be another file than the one with this device and inode. A device
 * or inode of 0 is not known.
 */
static bool is_same_exe(const struct procfs_exe *exe, uint64_t dev, uint64_t inode)
{
	return !exe->inode || !inode || ((!dev || exe->dev == dev) && exe->inode == inode);
}

/*
 * Reads which file the program is (exe), then the mappings, then exe again. If exe has changed, an
 * exec has happened meanwhile, and the mappings may belong to another program. In this case it
 * begins again, with at most READ_TRIES tries.
 */
static void image_read(int dir_fd, struct reading *reading)
{
	for (int i = 0; i < READ_TRIES; i++) {
		struct procfs_exe after = { 0 };

		free(reading->exe.path);
		reading->exe = (struct procfs_exe){ 0 };
		proc_maps_fini(&reading->mappings);
		procfs_read_exe(dir_fd, &reading->exe);
		procfs_read_maps(dir_fd, &reading->mappings);
		procfs_read_exe(dir_fd, &after);
		free(after.path);
		if (is_same_exe(&reading->exe, after.dev, after.inode))
			return;
	}
}

static int reading_take(struct process *process, int dir_fd, struct process_maps *before,
			struct reading *reading)
{
	procfs_read_cgroup(dir_fd, &reading->cgroup);
	if (reading->stat.is_kernel)
		return 0;
	image_read(dir_fd, reading);
	/* A process without mappings is exiting. */
	if (!reading->mappings.n && !reading->mappings.is_truncated)
		return -ESRCH;
	return process_maps_build(process->table->registry, dir_fd, &reading->mappings, before,
				  &reading->maps);
}

/*
 * True if the data read from /proc is of this process; false if it is of the program after an exec
 * that was not reported yet. The mappings of the new program must not replace those of the old one,
 * whose samples may still arrive.
 */
static bool is_of_image(const struct process *process, const struct reading *reading)
{
	/*
	 * On a layered file system, /proc may show another inode than BPF programs see, so compare
	 * the paths, too.
	 */
	bool is_same_path = process->exe && !process->exe_dev && reading->exe.path &&
			    !strcmp(process->exe, reading->exe.path);

	return process->is_exe_guessed || is_same_path ||
	       is_same_exe(&reading->exe, process->exe_dev, process->exe_inode);
}

static void exe_apply(struct process *process, const struct procfs_exe *exe)
{
	/* Keep a known path: /proc may show another one if the program file was renamed since. */
	if (exe->path && (!process->exe || process->is_exe_guessed)) {
		process_set_text(process, &process->exe, exe->path);
		process->is_exe_guessed = false;
	} else if (process->exe_dev) {
		return;
	}
	process->exe_dev = exe->dev;
	process->exe_inode = exe->inode;
}

static void reading_apply(struct process *process, struct reading *reading)
{
	process->is_kernel = reading->stat.is_kernel;
	if (reading->cgroup)
		process_set_text(process, &process->cgroup, reading->cgroup);
	exe_apply(process, &reading->exe);
	if (!reading->maps)
		return;
	if (reading->mappings.is_truncated)
		process->table->mappings_full++;
	else if (process_maps_leave_out(reading->maps, UINT64_MAX))
		process->table->maps_refused++;
	if (reading->maps == process->maps) {
		process_publish(process);
	} else {
		process_set_maps(process, TAKE(reading->maps));
		process->names_version++;
		process->attempts = 0;
		process->next_read_ns = 0;
	}
	walk_mappings_learn(process);
}

/* Counts a process that exited before its mappings were read, unless it was counted before. */
static void note_too_late(struct process *process)
{
	if (process->maps || process->is_late || process->is_kernel)
		return;
	process->is_late = true;
	process->table->too_late++;
}

/*
 * Reads the program, cgroup and mappings of the process from the directory /proc/PID. dir_fd is the
 * descriptor of this directory, or a negative errno if it could not be opened.
 */
static void process_read_from(struct process *process, int dir_fd, const struct procfs_stat *stat)
{
	_cleanup_(reading_fini) struct reading reading = { 0 };
	_cleanup_(process_maps_unrefp) struct process_maps *before = NULL;
	struct process_table *table = process->table;
	uint64_t number;
	int r = dir_fd;

	pthread_mutex_lock(&table->lock);
	number = ++process->reads_begun;
	if (process->maps)
		before = process_maps_ref(process->maps);
	pthread_mutex_unlock(&table->lock);
	if (dir_fd >= 0) {
		reading.stat = *stat;
		r = reading_take(process, dir_fd, before, &reading);
	}

	pthread_mutex_lock(&table->lock);
	if (r == -ESRCH && dir_fd < 0)
		process_mark_exited(process);
	/* A process has a name even if its mappings may not be read. */
	if (dir_fd >= 0 && !process->comm[0])
		memcpy(process->comm, stat->comm, sizeof(process->comm));
	if (r < 0 || !process_is_newest(process)) {
		note_too_late(process);
	} else if (number > process->read_applied && is_of_image(process, &reading)) {
		process->read_applied = process->read_taken = number;
		reading_apply(process, &reading);
	}
	if (process->reads_ended < number)
		process->reads_ended = number;
	process_table_unlock(table);
}

static void process_read(struct process *process)
{
	struct process_table *table = process->table;
	struct procfs_stat stat;
	struct process_id id;
	int fd;

	pthread_mutex_lock(&table->lock);
	id = process->id;
	pthread_mutex_unlock(&table->lock);
	fd = procfs_open(id.pid, &stat);
	if (fd >= 0 && stat.start_ticks != procfs_ticks(id.start_boot_ns)) {
		close(fd); /* the pid belongs to another process by now */
		fd = -ESRCH;
	}
	process_read_from(process, fd, &stat);
	if (fd >= 0)
		close(fd);
}

/*
 * True if the rate limit of the process allows opening one more file whose mapping a walk found.
 * Called with table.lock held.
 */
static bool open_is_due(struct process *process, int64_t now)
{
	if (process->open_ns < now)
		process->open_ns = now;
	if (process->open_ns - now >= OPENED_AT_ONCE_NS)
		return false;
	process->open_ns += OPENED_EVERY_NS;
	return true;
}

/*
 * Opens the files of mappings that a walk found and whose files are not known, and names the
 * mappings by them. A library may be unloaded by now, so that /proc does not show it any more, but
 * the kernel's key leads to its file. A mapping whose file cannot be opened gets its path.
 */
static void found_open(struct process *process, uint64_t mappings, bool is_put_off)
{
	struct unwind_code_key keys[UNWIND_FOUND_MAX];
	struct module *modules[UNWIND_FOUND_MAX] = { NULL };
	struct process_table *table = process->table;
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t n, n_due = 0;

	pthread_mutex_lock(&table->lock);
	n = maps_history_awaited(process, mappings, keys);
	while (!is_put_off && n_due < n && open_is_due(process, now))
		n_due++;
	pthread_mutex_unlock(&table->lock);
	for (size_t i = 0; i < n_due; i++) {
		modules[i] = module_find_code(table->registry, &keys[i]);
		if (!modules[i])
			modules[i] = module_open_code(table->registry, &keys[i]);
	}
	pthread_mutex_lock(&table->lock);
	maps_history_settle(process, mappings);
	process->names_version += n_due > 0;
	pthread_mutex_unlock(&table->lock);
	for (size_t i = 0; i < n_due; i++)
		module_unref(modules[i]);
}

/* Reads the symbols that the last lookup lacked, and keeps them for the next one. */
static void due_load(struct process *process, int64_t until_ns)
{
	struct module *module = process_take_due(process);
	struct symtab *symtab =
		module ? loader_symbols(process->table->loader, module, until_ns) : NULL;

	if (symtab)
		process_hold_loaded(process, module, symtab);
	module_unref(module);
}

void process_refresh_perf(struct process *process, int64_t until_ns)
{
	if (process_perf_is_due(process, false))
		loader_perf_map(process->table->loader, process, until_ns);
}

void process_refresh(struct process *process, uint64_t mappings, enum process_miss miss,
		     int64_t until_ns)
{
	struct process_table *table = process->table;
	bool is_due, is_put_off;

	if (miss == PROCESS_MISS_JIT)
		loader_perf_map(table->loader, process, until_ns);
	if (miss == PROCESS_MISS_SYMBOLS)
		due_load(process, until_ns);
	if (miss != PROCESS_MISS_MAPPING)
		return;
	pthread_mutex_lock(&table->lock);
	is_put_off = process_is_put_off(process) && !process->is_kernel;
	if (is_put_off)
		process_note_put_off(process);
	is_due = !is_put_off && process_should_read(process, clock_ns(CLOCK_MONOTONIC));
	pthread_mutex_unlock(&table->lock);
	if (is_due)
		process_read_soon(process);
	found_open(process, mappings, is_put_off);
}

/*
 * Ends the reading of a process by the thread with this number. False if another thread is `reader`
 * by now, because this one hung.
 */
static bool reading_end(struct process_table *table, struct process *process, unsigned int number)
{
	bool is_reader = table->reader_number == number;

	if (is_reader) {
		table->reading = NULL;
	} else {
		process->is_hanging = false;
		table->n_hanging--;
	}
	pthread_cond_broadcast(&table->has_read);
	return is_reader;
}

/*
 * Carries out a read request. Called with table.lock held; releases the lock while it reads.
 * Returns what reading_end() does.
 */
static bool serve(struct process_table *table, const struct read_request *request,
		  unsigned int number)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), took_ns = 0;
	struct process *process = request->process;
	bool is_wanted = !process->has_exited || !process->maps || process->pending, is_reader;

	if (now - table->budget_start_ns > BUDGET_PERIOD_NS) {
		table->budget_start_ns = now;
		table->budget_used_ns = 0;
	}
	if (is_wanted && request->is_repeat && table->budget_used_ns > BUDGET_NS) {
		table->queue_full++;
		is_wanted = false;
	}
	is_wanted &= !process->is_hanging && now >= process->read_from_ns;
	if (!is_wanted)
		process->reads_ended = ++process->reads_begun;
	table->reading = process;
	table->reading_ns = now;
	pthread_mutex_unlock(&table->lock);
	if (is_wanted) {
		took_ns = -clock_ns(CLOCK_THREAD_CPUTIME_ID);
		process_read(process);
		walk_mappings_open(process);
		took_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID);
	}
	pthread_mutex_lock(&table->lock);
	if (took_ns > READ_LONG_NS)
		process->read_from_ns = clock_ns(CLOCK_MONOTONIC) + READ_REST * took_ns;
	is_reader = reading_end(table, process, number);
	pthread_mutex_unlock(&table->lock);
	process_unref(process);
	pthread_mutex_lock(&table->lock);
	table->budget_used_ns += took_ns;
	return is_reader;
}

/*
 * Waits until the first read request in the queue is due or another one is added. Called with
 * table.lock held.
 */
static void wait_for_work(struct process_table *table)
{
	int64_t due_ns = read_queue_later_ns(table);

	table->reader_has_request = false;
	if (table->n_queued && table->queue[read_queue_first(table)].due_ns < due_ns)
		due_ns = table->queue[read_queue_first(table)].due_ns;
	table->reader_until_ns = due_ns;
	if (due_ns == INT64_MAX)
		pthread_cond_wait(&table->wake, &table->lock);
	else
		thread_wait_until(&table->wake, &table->lock, due_ns);
	table->reader_until_ns = 0;
}

static void *reader_run(void *data)
{
	struct activity activity = { .thread = "stackd-proc", .work = "reading processes" };
	struct process_table *table = data;
	unsigned int number;

	thread_set_urgent();
	activity_watch(&activity);
	pthread_mutex_lock(&table->lock);
	number = table->reader_number;
	while (!table->is_stopping) {
		struct read_request request;
		bool has_loaded;
		size_t first;

		activity_begin(&activity);
		read_queue_move_due(table);
		first = table->n_queued ? read_queue_first(table) : 0;
		if (table->n_queued && table->queue[first].due_ns <= clock_ns(CLOCK_MONOTONIC)) {
			request = table->queue[first];
			table->queue[first] = table->queue[--table->n_queued];
			if (!serve(table, &request, number))
				break;
			continue;
		}
		table->reader_has_rows = false;
		pthread_mutex_unlock(&table->lock);
		has_loaded = module_registry_load_rows(table->registry, true);
		pthread_mutex_lock(&table->lock);
		/* Work may have been queued while the lock was not held. */
		activity_end(&activity);
		if (!has_loaded && !table->is_stopping && !table->reader_has_rows)
			wait_for_work(table);
	}
	pthread_mutex_unlock(&table->lock);
	activity_unwatch(&activity);
	return NULL;
}

static int reader_begin(struct process_table *table)
{
	return thread_start(&table->reader, "stackd-proc", reader_run, table);
}

void process_reader_replace(struct process_table *table)
{
	const pthread_t old = table->reader;
	struct process *process = table->reading;

	if (!process || table->n_hanging == HANGING_MAX ||
	    clock_ns(CLOCK_MONOTONIC) - table->reading_ns < HANGING_NS)
		return;
	table->reader_number++;
	if (reader_begin(table)) {
		table->reader_number--;
		return;
	}
	pthread_detach(old);
	process->is_hanging = true;
	table->n_hanging++;
	table->last_hanging = process->id.pid;
	table->reading = NULL;
}

/* True if a read that began after `begun` others has ended, or none will end soon. */
static bool has_been_read(const struct process *process, uint64_t begun)
{
	const struct process_table *table = process->table;

	return process->reads_ended > begun || process->is_hanging || table->is_stopping ||
	       table->n_hanging == HANGING_MAX;
}

/*
 * Waits until a process was read, for PATIENCE_NS at most, and replaces a reader that hangs.
 * Returns the time of CLOCK_MONOTONIC. Called with table.lock held.
 */
static int64_t wait_for_read(struct process_table *table)
{
	int64_t end = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

	thread_wait_until(&table->has_read, &table->lock, end);
	process_reader_replace(table);
	return clock_ns(CLOCK_MONOTONIC);
}

void process_read_soon(struct process *process)
{
	struct process_table *table = process->table;
	int64_t now = clock_ns(CLOCK_MONOTONIC), end = now + HANGING_NS + PATIENCE_NS;
	uint64_t begun;

	pthread_mutex_lock(&table->lock);
	begun = process->reads_begun;
	if (process->is_hanging || !read_queue_push(process, now, false)) {
		pthread_mutex_unlock(&table->lock);
		return;
	}
	process_table_unlock(table);
	pthread_mutex_lock(&table->lock);
	while (!has_been_read(process, begun) && now < end)
		now = wait_for_read(table);
	pthread_mutex_unlock(&table->lock);
}

void process_reader_await(struct process_table *table, size_t most)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), end = now + HANGING_MAX * HANGING_NS;

	pthread_mutex_lock(&table->lock);
	while ((table->n_queued > most || (!most && table->reading)) && now < end &&
	       table->n_hanging < HANGING_MAX)
		now = wait_for_read(table);
	pthread_mutex_unlock(&table->lock);
}

/*
 * Runs the thread for work that may take long. It loads the unwind rows of big files. It also
 * closes files that no live process maps any more, after reading their symbols.
 */
static void *files_run(void *data)
{
	struct activity activity = {
		.thread = "stackd-files",
		.work = "reading large files",
		.kind = ACTIVITY_OTHER,
	};
	struct process_table *table = data;
	bool has_worked;

	activity_watch(&activity);
	pthread_mutex_lock(&table->lock);
	while (!table->is_stopping) {
		table->files_has_work = false;
		pthread_mutex_unlock(&table->lock);
		activity_begin(&activity);
		has_worked = module_registry_load_rows(table->registry, false) ||
			     module_registry_settle(table->registry);
		activity_end(&activity);
		pthread_mutex_lock(&table->lock);
		if (has_worked || table->is_stopping || table->files_has_work)
			continue;
		table->is_files_asleep = true;
		pthread_cond_wait(&table->files_wake, &table->lock);
		table->is_files_asleep = false;
	}
	pthread_mutex_unlock(&table->lock);
	activity_unwatch(&activity);
	return NULL;
}

int process_reader_start(struct process_table *table)
{
	int r = reader_begin(table);
	int s = thread_start(&table->files, "stackd-files", files_run, table);

	table->has_reader = !r;
	table->has_files = !s;
	if (r || s)
		return r ? r : s;
	return loader_new(table->registry, &table->loader);
}

/* Waits for the end of `reader`, unless it hangs. */
static void reader_end(struct process_table *table)
{
	const struct timespec until = timespec_ns(clock_ns(CLOCK_MONOTONIC) + HANGING_NS);

	if (!pthread_clockjoin_np(table->reader, NULL, CLOCK_MONOTONIC, &until))
		return;
	pthread_detach(table->reader);
	pthread_mutex_lock(&table->lock);
	table->n_hanging++;
	pthread_mutex_unlock(&table->lock);
}

void process_reader_stop(struct process_table *table)
{
	pthread_mutex_lock(&table->lock);
	table->is_stopping = true;
	pthread_mutex_unlock(&table->lock);
	pthread_cond_signal(&table->wake);
	pthread_cond_signal(&table->files_wake);
	pthread_cond_broadcast(&table->has_read);
	table->loader = loader_free(table->loader);
	if (table->has_reader)
		reader_end(table);
	if (table->has_files)
		pthread_join(table->files, NULL);
	for (size_t i = 0; i < table->n_queued; i++)
		process_unref(table->queue[i].process);
	for (size_t i = 0; i < table->n_later; i++)
		process_unref(table->later[(table->first_later + i) % READ_LATER_MAX].process);
	table->n_queued = table->n_later = 0;
}
