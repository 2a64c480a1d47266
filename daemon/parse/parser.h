/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PARSE_PARSER_H
#define STACKD_DAEMON_PARSE_PARSER_H

/*
 * The daemon's side of the worker processes: starts them, asks them, and ends those that hang, die
 * or answer nonsense. A file that did this to a worker is remembered and not parsed again; where
 * the worker only got no CPU, it is after a minute. May be called on any thread; a call waits for
 * the worker, at most some seconds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base.h"
#include "daemon/base/file_state.h"
#include "daemon/parse/message.h"

struct parser;

enum { PARSER_REPORTED_MAX = 4, PARSER_PATH_MAX = 256 };

/* Maximum length of the line that says why a worker did not answer, with its end. */
enum { PARSER_WHY_MAX = 160 };

/*
 * CPU time that the files of one user, or of root in one control group, may take at once. Who has
 * used more has to wait until the others have had their turn: such requests are answered with
 * -EAGAIN.
 */
#define PARSER_OWNER_NS (20 * NS_PER_S)

/* A file that was given up. */
struct parser_failure {
	char path[PARSER_PATH_MAX];
	const char *reason; /* static text */
};

struct parser_stats {
	unsigned int workers; /* number of workers that run */
	/* number of workers, and of processes that started them, that were killed but cannot end */
	unsigned int hanging;
	int start_error;   /* negative errno of the last start of a worker; 0: it worked */
	uint64_t replaced; /* number of workers that were killed or died */
	uint64_t given_up; /* number of files that were given up for this reason */
	uint64_t requests;
	uint64_t postponed; /* number of requests that had to wait, see PARSER_OWNER_NS */
	uint64_t cpu_ns;    /* CPU time of all requests, in ns */
	struct parser_failure failures[PARSER_REPORTED_MAX]; /* the last files, the newest first */
	size_t n_failures;
};

/*
 * Starts the process that starts workers. `program` is executed for it: NULL for the daemon's own.
 * Returns 0 or a negative errno.
 */
int parser_new(const char *program, struct parser **out);

/*
 * Fails all requests with -EAGAIN from now on, also those that workers are at: who waits for a file
 * that takes long goes on at once.
 */
void parser_end(struct parser *parser);

/* Ends all workers. Returns NULL. */
struct parser *parser_free(struct parser *parser);

void parser_stats(struct parser *parser, struct parser_stats *out);

/*
 * Returns a number, not 0, for whose share a file takes: that of its user, where the users of a
 * container are one, or for files of root that of the control group, see parse_group().
 */
uint64_t parser_owner_key(uid_t uid, uint64_t group);

/* Returns a text for an error of the start of a worker. */
const char *parser_start_text(int error);

/*
 * Returns the counter of the CPU time that workers have used, in ns. It lives as long as the
 * parser.
 */
const _Atomic uint64_t *parser_cpu_ns(const struct parser *parser);

/*
 * Multiplies the time that workers get for a request, and that the process which starts them gets
 * to end, for tests that need a short one. `percent`: 100 is the usual time.
 */
void parser_set_time(struct parser *parser, unsigned int percent);

/* Sets where /proc is, for tests of workers that get no CPU. The caller keeps the text. */
void parser_set_proc(struct parser *parser, const char *proc);

/* A request to a worker. */
struct parser_call {
	struct parse_request
		request;  /* without cpu_ms, n_fds, serial and size, which parser_ask() sets */
	const void *data; /* the bytes that follow the request */
	size_t size;
	int fd, debug_fd; /* -1: none */
	bool is_urgent;	  /* the caller is in a hurry: the worker has a higher priority, and the
			     file is small */
	/*
	 * the worker is a new one: a wrong answer would do more harm than wrong names, and even a
	 * file of the same user may have taken over another one
	 */
	bool is_alone;
	uint64_t cpu_ms; /* CPU time that the worker may use; 0: the usual one */
	const char *path;
	/*
	 * PARSER_WHY_MAX bytes, which get a line if parser_ask() returns -EAGAIN, or -EPROTO; NULL:
	 * nobody reads it
	 */
	char *why;
	/*
	 * A worker that a file has taken over could answer wrongly about other files. So it parses
	 * only files of one user on one file system: that user may write them all.
	 */
	const struct file_state *state; /* NULL: the vdso */
	uid_t owner;
	/*
	 * Root of a container is often root of the host, too. So files of root count as those of
	 * the control group whose process mapped them; 0: not known.
	 */
	uint64_t group;
	/*
	 * Checks the bytes of an answer and takes what is needed of them; may set *data to NULL and
	 * keep the bytes. Returns -EPROTO if no honest worker would have sent them.
	 */
	int (*decode)(void *context, void **data, size_t size);
	void *context;
};

/*
 * Asks a worker. Returns 0, the error of the worker or of decode(); -EPROTO if the file makes
 * workers fail; -EAGAIN if no worker could be started or got a CPU, or the file's owner has to
 * wait, so that it may be tried again later; or -ENOMEM.
 */
int parser_ask(struct parser *parser, const struct parser_call *call, int64_t *cpu_ns);

#endif
