/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_CONFIG_H
#define STACKD_DAEMON_CONFIG_CONFIG_H

/*
 * The settings: in come INI files and -o section.key=value, out comes one struct with every
 * value checked. Owned by main; read-only once loaded, so any thread may read it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct config_origin;

struct config {
	/* [window] */
	int64_t window_length_ns;     /* length = 5s, 100ms .. 10min */
	int64_t window_min_length_ns; /* min_length = 500ms, 50ms .. 1min */
	int64_t window_keep_ns;	      /* keep = 10min, 10s .. 24h */
	uint64_t window_max_memory;   /* max_memory = 48M, 4M .. 16G: of windows and stacks */
	/* [store] */
	bool store_enabled;	      /* enabled = yes */
	char *store_path;	      /* path = /var/lib/stackd/stackd.db */
	uint64_t store_max_size;      /* max_size = 512M, 16M .. 1T */
	int64_t store_max_age_ns;     /* max_age = 30d, 1min .. 10y */
	int64_t store_merge_after_ns; /* merge_after = 1d, 10s .. 10y: windows become longer */
	/* [control] */
	char *control_socket;		 /* socket = /run/stackd/stackd.sock */
	char *control_group;		 /* group = stackd */
	char *control_start_group;	 /* start_group = stackd */
	uint64_t control_max_clients;	 /* max_clients = 64, 1 .. 4096 */
	uint64_t control_max_sessions;	 /* max_sessions = 16, 0 .. 64: started by clients */
	uint64_t control_max_message;	 /* max_message = 1M, 4K .. 16M: of a request */
	int64_t control_idle_timeout_ns; /* idle_timeout = 15min, 1s .. 1d */
	/* [symbols] */
	uint64_t symbols_max_memory;   /* max_memory = 32M, 1M .. 4G: symbol tables kept */
	uint64_t symbols_lines_memory; /* lines_memory = 1G, 64M .. 64G: for source lines */
	bool symbols_remote;	       /* remote = no: files on network and FUSE file systems */
	/* [unwind] */
	uint64_t unwind_max_memory; /* max_memory = 16M, 1M .. 1G: rows for walks of user stacks */
	/* [probe.offcpu] */
	bool offcpu_enabled;	     /* enabled = yes */
	int64_t offcpu_min_wait_ns;  /* min_wait = 100us, 0 .. 1h: shorter waits have no stack */
	char *offcpu_hook;	     /* hook = auto: or sched_exit, finish_switch, switch_out */
	uint64_t offcpu_max_threads; /* max_threads = 16384, 1024 .. 1048576 */
	uint64_t offcpu_max_keys;    /* max_keys = 28000, 1024 .. 1048576: per window */
	uint64_t offcpu_max_open_stacks; /* max_open_stacks = 512, 0 .. 16384: read before a cut */
	uint64_t offcpu_stack_ring;	 /* stack_ring = 4M, 1M .. 256M, a power of two */
	/* [probe.oncpu] */
	bool oncpu_enabled;	  /* enabled = yes */
	char *oncpu_event;	  /* event = cpu-clock: or cycles */
	uint64_t oncpu_frequency; /* frequency = 49, 1 .. 10000: samples a second and CPU */
	uint64_t oncpu_max_keys;  /* max_keys = 8192, 1024 .. 1048576: per window */
	/* [probe.offwake] */
	bool offwake_enabled;	     /* enabled = no */
	int64_t offwake_min_wait_ns; /* min_wait = 100us, 0 .. 1h: shorter waits are not recorded */
	uint64_t offwake_max_keys;   /* max_keys = 8192, 1024 .. 1048576: per window */
	/* [probe.stackcount] */
	uint64_t stackcount_max_functions; /* max_functions = 2000, 1 .. 100000: in one session */
	uint64_t stackcount_max_keys;	   /* max_keys = 16384, 1024 .. 1048576: per window */
	/* [probe.stacksnoop] */
	uint64_t stacksnoop_rate; /* rate = 1000, 1 .. 100000: calls streamed a second */
	/* [budget] */
	uint64_t budget_cpu; /* cpu = 25, 1 .. 10000: % of one CPU, of a session of calls */
	/* [probe.iolat] */
	bool iolat_enabled; /* enabled = yes */
	char *iolat_top;    /* top = fs: or syscall, vfs, block: always recorded from there down */
	char *iolat_hook;   /* hook = auto: or fentry, kprobe */
	int64_t iolat_slow_ns;	 /* slow = 10ms, 0 .. 1h: these are kept by stack too; 0: none */
	uint64_t iolat_max_keys; /* max_keys = 768, 256 .. 16384: per window, without calls */
	/* [idle] */
	char **idle_functions; /* functions = epoll_wait ... ; NULL-ended */

	struct config_origin *origins; /* where each value came from, for the dump */
};

struct config_error {
	char text[512]; /* "FILE:LINE: section.key: what is wrong, what is allowed" */
};

/* Where files are looked for; NULL: nowhere. */
struct config_places {
	const char *vendor_dir; /* *.conf in it, by name */
	const char *file;
	const char *dropin_dir; /* likewise, after file */
	bool is_file_needed;	/* whether it is an error when file is missing */
};

/*
 * Loads defaults, then the vendor's, then FILE and FILE.d/ (path NULL: the built-in places; a
 * missing default file is fine, a missing named one is an error), then n_overrides strings
 * "section.key=value". Returns 0, or a negative errno with error filled. On success *config_out
 * is owned by the caller.
 */
int config_load(const char *path, char *const *overrides, size_t n_overrides,
		struct config **config_out, struct config_error *error);

/* The same with all places given. */
int config_load_places(const struct config_places *places, char *const *overrides,
		       size_t n_overrides, struct config **config_out, struct config_error *error);

/* Prints every key with its value and, as a comment, where it came from: a file that loads. */
void config_dump(const struct config *config, FILE *out);

struct config *config_free(struct config *config);
void config_freep(struct config **config);

#endif
