/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/thread.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"

#define READ_TRIES 3 /* while an exec changes the image under our hands */

/* Repeated reads, as after each exec, may take this much CPU time; the first ones are not held. */
#define BUDGET_PERIOD_NS NS_PER_S
#define BUDGET_NS	 (20 * NS_PER_MS)

/* What /proc says of one image. */
struct reading {
	struct procfs_stat stat;
	struct procfs_exe exe;
	char *cgroup;
	struct mappings mappings;
	struct process_maps *maps;
};

static void reading_fini(struct reading *reading)
{
	free(reading->exe.path);
	free(reading->cgroup);
	mappings_fini(&reading->mappings);
	process_maps_unref(reading->maps);
}

static bool is_same_exe(const struct procfs_exe *exe, uint64_t dev, uint64_t inode)
{
	return !exe->inode || !inode || (exe->dev == dev && exe->inode == inode);
}

/* exe and mappings of one and the same image: reads exe before and after. */
static void image_read(int dir_fd, struct reading *reading)
{
	for (int i = 0; i < READ_TRIES; i++) {
		struct procfs_exe after = { 0 };

		free(reading->exe.path);
		reading->exe = (struct procfs_exe){ 0 };
		mappings_fini(&reading->mappings);
		procfs_read_exe(dir_fd, &reading->exe);
		procfs_read_mappings(dir_fd, &reading->mappings);
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
	if (!reading->mappings.n) /* a process that is exiting has none any more */
		return -ESRCH;
	return process_maps_build(process->table->registry, dir_fd, &reading->mappings, before,
				  &reading->maps);
}

/*
 * A generation has one exe. Another one shows that an exec was read before it was reported: the
 * new image's mappings must not take the place of the old one's, whose samples may still come.
 */
static bool is_of_image(const struct process *process, const struct reading *reading)
{
	return process->is_exe_guessed ||
	       is_same_exe(&reading->exe, process->exe_dev, process->exe_inode);
}

static void exe_apply(struct process *process, const struct procfs_exe *exe)
{
	/* A file that is renamed keeps the name it was started by. */
	if (!exe->path || (process->exe && !process->is_exe_guessed))
		return;
	process_set_text(process, &process->exe, exe->path);
	process->exe_dev = exe->dev;
	process->exe_inode = exe->inode;
	process->is_exe_guessed = false;
}

static void reading_apply(struct process *process, struct reading *reading)
{
	process->is_kernel = reading->stat.is_kernel;
	if (!process->comm[0])
		memcpy(process->comm, reading->stat.comm, sizeof(process->comm));
	if (reading->cgroup)
		process_set_text(process, &process->cgroup, reading->cgroup);
	exe_apply(process, &reading->exe);
	if (reading->mappings.is_truncated)
		process->table->mappings_full++;
	if (!reading->maps)
		return;
	if (reading->maps == process->maps) {
		process_publish(process);
		process_found_answer(process);
		return;
	}
	process_set_maps(process, TAKE(reading->maps));
	process_found_answer(process);
	process->attempts = 0;
	process->next_read_ns = 0;
}

static void note_too_late(struct process *process)
{
	if (process->maps || process->is_late || process->is_kernel)
		return;
	process->is_late = true;
	process->table->too_late++;
}

/* Reads by an open directory of /proc, or finds by dir_fd < 0 that there is none (any more). */
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
	if (r < 0 || !process_is_newest(process)) {
		note_too_late(process);
	} else if (number > process->read_applied && is_of_image(process, &reading)) {
		process->read_applied = number;
		reading_apply(process, &reading);
	}
	pthread_mutex_unlock(&table->lock);
}

void process_read(struct process *process)
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
		close(fd); /* another process has the pid now */
		fd = -ESRCH;
	}
	process_read_from(process, fd, &stat);
	if (fd >= 0)
		close(fd);
}

static int scan_one(struct process_table *table, int32_t pid)
{
	struct process *process;
	struct procfs_stat stat;
	int fd = procfs_open(pid, &stat);

	if (fd < 0)
		return 0; /* gone since the directory was read */
	pthread_mutex_lock(&table->lock);
	process = process_find_or_add_scanned(table, pid, stat.start_ticks);
	if (process)
		process->refs++;
	pthread_mutex_unlock(&table->lock);
	if (process)
		process_read_from(process, fd, &stat);
	process_unref(process);
	close(fd);
	return process ? 0 : -ENOMEM;
}

int process_table_scan(struct process_table *table)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	if (!proc)
		return -errno;
	while (r == 0 && (entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid > 0 && pid <= INT32_MAX && !*end)
			r = scan_one(table, (int32_t)pid);
	}
	closedir(proc);
	return r;
}

void process_reader_wake(struct process_table *table)
{
	table->is_woken = table->is_files_woken = true;
	pthread_cond_signal(&table->wake);
	pthread_cond_signal(&table->files_wake);
}

void process_queue_read(struct process *process, int64_t delay_ns, bool is_repeat)
{
	struct process_table *table = process->table;

	if ((process->has_exited && !process->asked) || process->is_kernel)
		return;
	if (table->n_queued == READ_QUEUE_MAX) {
		table->queue_full++;
		return;
	}
	process->refs++;
	table->queue[table->n_queued++] = (struct read_request){
		.process = process,
		.due_ns = clock_ns(CLOCK_MONOTONIC) + delay_ns,
		.is_repeat = is_repeat,
	};
	process_reader_wake(table);
}

/* The earliest request; n_queued must not be 0. */
static size_t queue_first(const struct process_table *table)
{
	size_t first = 0;

	for (size_t i = 1; i < table->n_queued; i++) {
		if (table->queue[i].due_ns < table->queue[first].due_ns)
			first = i;
	}
	return first;
}

/* With the lock held; releases it while it works. */
static void serve(struct process_table *table, const struct read_request *request)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct process *process = request->process;
	bool is_wanted = !process->has_exited || !process->maps || process->asked;

	if (now - table->budget_start_ns > BUDGET_PERIOD_NS) {
		table->budget_start_ns = now;
		table->budget_used_ns = 0;
	}
	if (is_wanted && request->is_repeat && table->budget_used_ns > BUDGET_NS) {
		table->queue_full++;
		is_wanted = false;
	}
	pthread_mutex_unlock(&table->lock);
	if (is_wanted) {
		process_read(process);
		process_found_settle(process);
	}
	process_unref(process);
	pthread_mutex_lock(&table->lock);
	table->budget_used_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
}

/* Until the next request is due, or for good when there is none. */
static void wait_for_work(struct process_table *table)
{
	struct timespec until;
	int64_t due_ns;

	if (!table->n_queued) {
		pthread_cond_wait(&table->wake, &table->lock);
		return;
	}
	due_ns = table->queue[queue_first(table)].due_ns;
	until = (struct timespec){ due_ns / NS_PER_S, due_ns % NS_PER_S };
	pthread_cond_timedwait(&table->wake, &table->lock, &until);
}

static void *reader_run(void *data)
{
	struct process_table *table = data;

	thread_set_urgent();
	pthread_mutex_lock(&table->lock);
	while (!table->is_stopping) {
		size_t first = table->n_queued ? queue_first(table) : 0;
		struct read_request request;
		bool has_loaded;

		if (table->n_queued && table->queue[first].due_ns <= clock_ns(CLOCK_MONOTONIC)) {
			request = table->queue[first];
			table->queue[first] = table->queue[--table->n_queued];
			serve(table, &request);
			continue;
		}
		pthread_mutex_unlock(&table->lock);
		has_loaded = module_registry_load_rows(table->registry, true);
		pthread_mutex_lock(&table->lock);
		/* Without the lock a signal may have been missed: look again before sleeping. */
		if (!has_loaded && !table->is_stopping && !table->is_woken)
			wait_for_work(table);
		table->is_woken = false;
	}
	pthread_mutex_unlock(&table->lock);
	return NULL;
}

/* What may take long: the rows of big files, and symbols of files nobody has mapped any more. */
static void *files_run(void *data)
{
	struct process_table *table = data;
	bool has_worked;

	pthread_mutex_lock(&table->lock);
	while (!table->is_stopping) {
		table->is_files_woken = false;
		pthread_mutex_unlock(&table->lock);
		has_worked = module_registry_load_rows(table->registry, false) ||
			     module_registry_settle(table->registry);
		pthread_mutex_lock(&table->lock);
		if (!has_worked && !table->is_stopping && !table->is_files_woken)
			pthread_cond_wait(&table->files_wake, &table->lock);
	}
	pthread_mutex_unlock(&table->lock);
	return NULL;
}

int process_reader_start(struct process_table *table)
{
	sigset_t all, before;
	int r, s;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop thread's */
	r = pthread_create(&table->reader, NULL, reader_run, table);
	s = pthread_create(&table->files, NULL, files_run, table);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	table->has_reader = !r;
	table->has_files = !s;
	if (!r)
		pthread_setname_np(table->reader, "stackd-proc");
	if (!s)
		pthread_setname_np(table->files, "stackd-files");
	return r ? -r : -s;
}

void process_reader_stop(struct process_table *table)
{
	pthread_mutex_lock(&table->lock);
	table->is_stopping = true;
	process_reader_wake(table);
	pthread_mutex_unlock(&table->lock);
	if (table->has_reader)
		pthread_join(table->reader, NULL);
	if (table->has_files)
		pthread_join(table->files, NULL);
	for (size_t i = 0; i < table->n_queued; i++)
		process_unref(table->queue[i].process);
	table->n_queued = 0;
}
