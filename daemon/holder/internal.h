/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOLDER_INTERNAL_H
#define STACKD_DAEMON_HOLDER_INTERNAL_H

/*
 * A thread that is looked up, and what the files of this room share. One thread at a time.
 *
 * The source files form layers, listed here from the lowest to the highest; each calls only files
 * of lower layers: proc, inet_table, unix_diag < descriptors < search < task < call <
 * find_file, find_file_lock, find_ipc, find_mutex, find_process, find_slow_file, find_terminal <
 * find_socket < look_up < main. The daemon's side of the process is holder.
 */

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/holder/descriptors.h"
#include "daemon/holder/holder.h"
#include "daemon/holder/inet_table.h"

enum { TASK_TARGET_BYTES = 4096 + 64 };

/* The parts that the look-ups of one call share: each is made when a thread needs it. */
struct holder_search {
	int64_t deadline_ns;
	int diag_fd; /* netlink socket for sock_diag, or a negative errno; see search_diag_fd() */
	bool is_diag_own;
	struct descriptors descriptors;
	struct inet_namespace {
		char name[64]; /* "net:[4026531840]" */
		bool is_udp;
		struct inet_table table;
	} * namespaces;
	size_t n_namespaces, namespaces_capacity;
};

/* Returns a moment before the deadline, by which a part has to be made that all share. */
int64_t search_part_ns(const struct holder_search *search);

/* Returns a netlink socket for sock_diag, which the search owns, or a negative errno. */
int search_diag_fd(struct holder_search *search);

/* A thread that is looked up. Its directory stays that of this thread if the id is used again. */
struct task {
	const struct holder_question *question;
	struct holder_search *search;
	int dir_fd; /* /proc/PID/task/TID */
	struct call {
		long number;
		uint64_t args[6];
	} call; /* the system call that the thread is in */
};

/* Opens the directory of the thread, if it is still the same one. */
int task_open(struct task *task);

/* Reads the system call that the thread is in. Returns -EAGAIN if it is in none. */
int task_call_read(struct task *task);

/* True after the deadline. */
bool task_is_late(const struct task *task);

/* True if the thread is still in the same system call. */
bool task_call_is_same(const struct task *task);

/* Reads the path and the inode of a descriptor of the thread. The caller frees the path. */
int task_file(const struct task *task, uint64_t fd, char **path_out, uint64_t *inode_out);

/*
 * Reads what /proc says about the descriptor that the thread's system call reads from or, if
 * `writes`, writes to. Returns its number, or a negative errno.
 */
int task_descriptor(const struct task *task, bool writes, char *target, size_t size);

/*
 * Reads the path that the thread's system call names: the file cannot be asked about while it is
 * not open. NULL if it names none. The caller frees it.
 */
char *task_path(const struct task *task);

/* Returns the descriptors of all processes with a key, *n_out of them. */
const struct descriptor *task_descriptors(const struct task *task, enum descriptor_kind kind,
					  uint64_t key, size_t *n_out);

/* Reads a number that /proc says about a descriptor of the thread, such as that after "Pid:". */
bool task_fdinfo_number(const struct task *task, int fd, const char *name, uint64_t *out);

/* NAMESPACES_MAX: the initial pid namespace, and as many below it as the kernel allows. */
enum { NAMESPACES_MAX = 33 };

/*
 * Reads the numbers of a line of a status file that has one for each pid namespace of the thread
 * from the initial one on, such as that after "NSpid:". Returns how many; 0: there is no such line.
 */
size_t status_numbers(int dir_fd, const char *path, const char *name,
		      int32_t out[static NAMESPACES_MAX]);

/* Returns a number of a status file, such as that after "TracerPid:"; 0: it cannot be read. */
int32_t status_number(int dir_fd, const char *path, const char *name);

/* True if the thread is in a pid namespace of its own. */
bool task_is_in_own_namespace(const struct task *task);
/* True if the thread with this id in the initial one is. */
bool thread_is_in_own_namespace(int32_t tid);

/*
 * Translates a thread id that the waiting process wrote, which is of its own pid namespace, to the
 * thread of that process. Returns 0 if it has no such thread.
 */
int32_t task_thread(const struct task *task, uint32_t wanted);

/* Reads `size` bytes of the memory of the thread's process. */
int task_memory_read(const struct task *task, uint64_t address, void *buffer, size_t size);

/* Adds a holder to the answer, unless it is there. tid 0: one of the threads, not known which. */
void holder_add(struct holder_answer *out, int32_t pid, int32_t tid);

/* Adds a process to the answer, unless it was the last one to be added. */
void holder_add_process(struct holder_answer *out, int32_t pid);

/*
 * Adds the processes with a descriptor of a kind and key that is_end() finds to be the other end of
 * what the thread waits for, or says why none is known. `what` is for is_end().
 */
void holder_add_ends(const struct task *task, enum descriptor_kind kind, uint64_t key,
		     bool (*is_end)(const struct task *task, const struct descriptor *descriptor,
				    const void *what),
		     const void *what, struct holder_answer *out);

/* Reads a file of /proc, and ends the text with NUL. Returns 0 or a negative errno. */
int proc_text_read(int dir_fd, const char *name, char *buffer, size_t size);

/* Reads the parent's pid and the start time, in clock ticks since boot, from a stat file. */
int proc_stat_read(int dir_fd, const char *name, int32_t *parent_out, uint64_t *ticks_out);

/* Opens a directory, NULL if that fails. */
DIR *proc_directory_open(const char *path);

/* Returns the next entry of a directory whose name is a number; NULL at the end. */
struct dirent *proc_number_next(DIR *directory);

/*
 * Reads the type, devices and inode of a descriptor of a process, as the kernel has them in memory.
 * Returns false if that fails.
 */
bool descriptor_file_read(int32_t pid, int fd, struct statx *out);

/* Each fills *out for the wait of a thread for one kind of object. */
void holder_find_file_lock(struct task *task, struct holder_answer *out);
void holder_find_lease(struct task *task, struct holder_answer *out);
void holder_find_mutex(struct task *task, struct holder_answer *out);
void holder_find_rwlock(struct task *task, struct holder_answer *out);
void holder_find_joined(struct task *task, struct holder_answer *out);
void holder_find_child(struct task *task, struct holder_answer *out);
void holder_find_vfork_child(struct task *task, struct holder_answer *out);
void holder_find_tracer(struct task *task, struct holder_answer *out);
void holder_find_stopped(struct task *task, struct holder_answer *out);
void holder_find_frozen(struct task *task, struct holder_answer *out);
void holder_find_pipe(struct task *task, struct holder_answer *out);
void holder_find_fifo_open(struct task *task, struct holder_answer *out);
void holder_find_eventfd(struct task *task, struct holder_answer *out);
void holder_find_mq(struct task *task, struct holder_answer *out);
void holder_find_semaphore(struct task *task, struct holder_answer *out);
void holder_find_message(struct task *task, struct holder_answer *out);
void holder_find_terminal(struct task *task, struct holder_answer *out);
void holder_find_slow_file(struct task *task, struct holder_answer *out);
void holder_find_polled(struct task *task, struct holder_answer *out);
void holder_find_request(struct task *task, struct holder_answer *out);
void holder_find_socket(struct task *task, struct holder_answer *out);

/* Sets out->is_turn, for a wait for a lock. */
void holder_find_turn(struct task *task, struct holder_answer *out);

#endif
