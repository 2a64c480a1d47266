/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/config/keys.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "common/base.h"
#include "common/edit_distance.h"
#include "daemon/config/config.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)
#define MS  ((uint64_t)NS_PER_MS)
#define SEC ((uint64_t)NS_PER_S)

/*
 * Where a user thread waits for work, for a client or for time: the wrappers of libc and the
 * kernel functions right above the scheduler. Condition variables are here because pools wait on
 * them. What a pool and a deadlock have in common is not, or a hung process would look idle:
 * futex_wait*, __lll_lock_wait, pthread_mutex_lock, *pipe_read, unix_stream_*, tcp_recvmsg*.
 */
#define IDLE_FUNCTIONS                                                                    \
	"epoll_wait epoll_pwait epoll_pwait2 poll __poll ppoll select __select pselect "  \
	"nanosleep __nanosleep clock_nanosleep usleep sleep pause "                       \
	"sigsuspend sigtimedwait sigwait sigwaitinfo wait wait3 wait4 waitpid waitid "    \
	"accept accept4 pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait " \
	"ep_poll do_epoll_wait do_sys_poll do_poll do_poll.constprop.0 do_select "        \
	"hrtimer_nanosleep do_nanosleep __do_sys_pause __x64_sys_pause __ia32_sys_pause " \
	"do_sigtimedwait do_sigtimedwait.isra.0 do_wait __do_wait inet_csk_accept "       \
	"inet_csk_wait_for_connect unix_accept io_cqring_wait read_events"

#define KEY(section, key, type, min, max, fallback, member, help)    \
	{                                                            \
		section, key, type, min, max, false, fallback, help, \
			offsetof(struct config, member), NULL        \
	}

const struct config_key config_keys[] = {
	KEY("window", "length", CONFIG_DURATION, 100 * MS, 600 * SEC, "5s", window_length_ns,
	    "How long a window is: the finest step in time an answer can have."),
	KEY("window", "min_length", CONFIG_DURATION, 50 * MS, 60 * SEC, "500ms",
	    window_min_length_ns,
	    "A query up to now cuts the open window early, but not sooner than this."),
	KEY("window", "keep", CONFIG_DURATION, 10 * SEC, 86400 * SEC, "10min", window_keep_ns,
	    "How far back windows are kept in memory."),
	KEY("window", "max_memory", CONFIG_SIZE, 4 * MIB, 16 * GIB, "24M", window_max_memory,
	    "Memory for windows, their stacks and dead processes; above it the oldest go early."),
	KEY("store", "enabled", CONFIG_BOOL, 0, 1, "yes", store_enabled,
	    "Whether windows are kept on disk as well, over restarts and reboots."),
	KEY("store", "path", CONFIG_PATH, 2, 3840, "/var/lib/stackd/stackd.db", store_path,
	    "The database; its last directory is made when it is missing."),
	KEY("store", "max_size", CONFIG_SIZE, 16 * MIB, 1024 * GIB, "512M", store_max_size,
	    "Disk space for it, its log included; above it the oldest windows go."),
	KEY("store", "max_age", CONFIG_DURATION, 60 * SEC, 3650 * 86400 * SEC, "30d",
	    store_max_age_ns, "Older windows are dropped."),
	KEY("store", "merge_after", CONFIG_DURATION, 10 * SEC, 3650 * 86400 * SEC, "1d",
	    store_merge_after_ns,
	    "Older windows become ones of a minute, and when 7 times as old, of 10 minutes."),
	KEY("control", "socket", CONFIG_PATH, 2, sizeof(((struct sockaddr_un *)0)->sun_path) - 1,
	    "/run/stackd/stackd.sock", control_socket,
	    "The socket that stackctl talks to; ignored when systemd passes one."),
	KEY("control", "group", CONFIG_NAME, 1, 32, "stackd", control_group,
	    "Members of this group may connect, besides root."),
	KEY("control", "start_group", CONFIG_NAME, 1, 32, "stackd", control_start_group,
	    "Those of them in this group may start and stop sessions, besides root."),
	KEY("control", "max_clients", CONFIG_COUNT, 1, 4096, "64", control_max_clients,
	    "Connections at a time; when full, the one idle for longest is closed, but no recording."),
	KEY("control", "max_sessions", CONFIG_COUNT, 0, 64, "16", control_max_sessions,
	    "Sessions that clients may have running at a time, besides those always on."),
	KEY("control", "max_message", CONFIG_SIZE, 4 * KIB, 16 * MIB, "1M", control_max_message,
	    "The longest request; a client that sends a longer one is cut off."),
	KEY("control", "idle_timeout", CONFIG_DURATION, SEC, 86400 * SEC, "15min",
	    control_idle_timeout_ns,
	    "A connection on which nothing was said for so long is closed."),
	KEY("symbols", "max_memory", CONFIG_SIZE, MIB, 4 * GIB, "32M", symbols_max_memory,
	    "Memory for symbol tables of user programs; those used least are dropped first."),
	KEY("symbols", "lines_memory", CONFIG_SIZE, 64 * MIB, 64 * GIB, "1G", symbols_lines_memory,
	    "Address space of the process that reads debug information for --lines, files included."),
	KEY("symbols", "remote", CONFIG_BOOL, 0, 1, "no", symbols_remote,
	    "Read programs on network and FUSE file systems for names: one that hangs, hangs all."),
	KEY("unwind", "max_memory", CONFIG_SIZE, MIB, GIB, "16M", unwind_max_memory,
	    "Memory in the kernel for it, allocated at the start; what no stack needs goes first."),
	KEY("probe.offcpu", "enabled", CONFIG_BOOL, 0, 1, "yes", offcpu_enabled,
	    "Whether waits are recorded always."),
	KEY("probe.offcpu", "min_wait", CONFIG_DURATION, 0, 3600 * SEC, "100us", offcpu_min_wait_ns,
	    "Shorter waits are counted and summed by thread, but have no stack."),
	{ "probe.offcpu", "hook", CONFIG_WORD, 0, 0, false, "auto",
	  "Where stacks are taken; auto is the best that the kernel allows.",
	  offsetof(struct config, offcpu_hook), "auto sched_exit finish_switch switch_out" },
	KEY("probe.offcpu", "max_threads", CONFIG_COUNT, 1024, 1048576, "16384", offcpu_max_threads,
	    "Threads followed at a time; those above are counted as lost."),
	KEY("probe.offcpu", "max_keys", CONFIG_COUNT, 1024, 1048576, "28000", offcpu_max_keys,
	    "Thread and stack pairs in one window; waits of those above are counted as lost."),
	KEY("probe.offcpu", "max_open_stacks", CONFIG_COUNT, 0, 16384, "512",
	    offcpu_max_open_stacks,
	    "User stacks read of waits that go on when a window is cut; the others come next time."),
	{ "probe.offcpu", "stack_ring", CONFIG_SIZE, MIB, 256 * MIB, true, "4M",
	  "Ring that carries new stacks to the daemon; when full, stacks are counted as lost.",
	  offsetof(struct config, offcpu_stack_ring), NULL },
	KEY("probe.oncpu", "enabled", CONFIG_BOOL, 0, 1, "yes", oncpu_enabled,
	    "Whether stacks are sampled always."),
	{ "probe.oncpu", "event", CONFIG_WORD, 0, 0, false, "cpu-clock",
	  "What is sampled by; without a counter of cycles these, too, are by cpu-clock.",
	  offsetof(struct config, oncpu_event), "cpu-clock cycles" },
	KEY("probe.oncpu", "frequency", CONFIG_COUNT, 1, 10000, "49", oncpu_frequency,
	    "Samples a second on each CPU."),
	KEY("probe.oncpu", "max_keys", CONFIG_COUNT, 1024, 1048576, "4096", oncpu_max_keys,
	    "Thread and stack pairs in one window; samples of those above are counted as lost."),
	KEY("probe.offwake", "enabled", CONFIG_BOOL, 0, 1, "no", offwake_enabled,
	    "Whether waits are recorded always with who ended them."),
	KEY("probe.offwake", "min_wait", CONFIG_DURATION, 0, 3600 * SEC, "100us",
	    offwake_min_wait_ns, "Waits that are blocked for less are counted only."),
	KEY("probe.offwake", "max_keys", CONFIG_COUNT, 1024, 1048576, "8192", offwake_max_keys,
	    "Rows of thread, stacks and waker in one window; waits of those above are lost."),
	KEY("probe.stackcount", "max_functions", CONFIG_COUNT, 1, 100000, "2000",
	    stackcount_max_functions,
	    "Functions that one session may trace; a pattern that more fit is refused."),
	KEY("probe.stackcount", "max_keys", CONFIG_COUNT, 1024, 1048576, "16384",
	    stackcount_max_keys,
	    "Rows of process and stacks in one window; calls of those above are counted as lost."),
	KEY("probe.stacksnoop", "rate", CONFIG_COUNT, 1, 100000, "1000", stacksnoop_rate,
	    "Calls that one session streams a second at most; the others are counted only."),
	KEY("budget", "cpu", CONFIG_COUNT, 1, 10000, "25", budget_cpu,
	    "What a session of calls may take, in % of one CPU; above it calls are sampled."),
	KEY("probe.iolat", "enabled", CONFIG_BOOL, 0, 1, "yes", iolat_enabled,
	    "Whether latencies of I/O are recorded always, by layer."),
	{ "probe.iolat", "top", CONFIG_WORD, 0, 0, false, "fs",
	  "The uppermost layer that is recorded always; a session has all of them.",
	  offsetof(struct config, iolat_top), "syscall vfs fs block" },
	{ "probe.iolat", "hook", CONFIG_WORD, 0, 0, false, "auto",
	  "How system calls and functions of file systems are followed; auto is the best that the "
	  "kernel allows.",
	  offsetof(struct config, iolat_hook), "auto fentry kprobe" },
	KEY("probe.iolat", "slow", CONFIG_DURATION, 0, 3600 * SEC, "10ms", iolat_slow_ns,
	    "Operations of that and more are recorded by stack too; 0 for none."),
	KEY("probe.iolat", "max_keys", CONFIG_COUNT, 256, 16384, "768", iolat_max_keys,
	    "Rows of one window, four times as many with system calls. A quarter is for processes beyond, together."),
	KEY("idle", "functions", CONFIG_LIST, 0, 1024, IDLE_FUNCTIONS, idle_functions,
	    "A wait that shows one of these is idle and folded away unless --idle is given."),
};

const size_t config_n_keys = ARRAY_SIZE(config_keys);

int config_key_find(const char *section, const char *key)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (strcmp(config_keys[i].section, section) == 0 &&
		    strcmp(config_keys[i].key, key) == 0)
			return (int)i;
	return -1;
}

/* Adds a name to "allowed: ..." and remembers the nearest one that is near enough to be meant. */
struct choices {
	const char *meant;
	const char *nearest;
	size_t distance;
	char list[256];
};

static void choices_add(struct choices *choices, const char *name)
{
	size_t used = strlen(choices->list);
	size_t distance = edit_distance(choices->meant, strlen(choices->meant), name, strlen(name));

	snprintf(choices->list + used, sizeof(choices->list) - used, " %s", name);
	if (distance < choices->distance) {
		choices->distance = distance;
		choices->nearest = name;
	}
}

static void choices_print(const struct choices *choices, const char *what, char *why, size_t size)
{
	if (choices->nearest)
		snprintf(why, size, "unknown %s, did you mean \"%s\"? allowed:%s", what,
			 choices->nearest, choices->list);
	else
		snprintf(why, size, "unknown %s; allowed:%s", what, choices->list);
}

void config_key_explain(const char *section, const char *key, char *why, size_t size)
{
	struct choices sections = { .meant = section, .distance = 4 };
	struct choices keys = { .meant = key, .distance = 4 };
	const char *last = "";

	for (size_t i = 0; i < config_n_keys; i++) {
		if (strcmp(config_keys[i].section, last) != 0)
			choices_add(&sections, config_keys[i].section);
		last = config_keys[i].section;
		if (strcmp(last, section) == 0)
			choices_add(&keys, config_keys[i].key);
	}
	if (keys.list[0])
		choices_print(&keys, "key", why, size);
	else
		choices_print(&sections, "section", why, size);
}
