/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/parse/worker.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base.h"
#include "common/demangle.h"
#include "daemon/elf/debug_file.h"
#include "daemon/elf/functions.h"
#include "daemon/elf/usdt.h"
#include "daemon/host/fd_message.h"
#include "daemon/parse/answers.h"
#include "daemon/parse/message.h"
#include "daemon/symbol/symtab_builder.h"
#include "daemon/unwind/compile_elf.h"

/* After an answer of this size, free memory is returned to the kernel. */
#define TRIM_BYTES ((size_t)1 << 20)

enum { PARTS_MAX = 3 }; /* maximum number of parts of an answer */

_Static_assert((int)ANSWER_ROWS_PARTS <= PARTS_MAX && (int)ANSWER_PERF_PARTS <= PARTS_MAX,
	       "all parts of an answer have room");

/* A request that is being answered. */
struct job {
	struct parse_request request;
	struct elf_source source;
	int debug_fd;
	char *data; /* the bytes that follow the request */
	int socket;
	bool is_sent;
	int64_t *counted_ns; /* CPU time of this process that earlier answers have reported */
};

static bool bytes_read(int fd, char *to, size_t size)
{
	while (size) {
		ssize_t n = read(fd, to, size);

		if (n <= 0)
			return false;
		to += n;
		size -= (size_t)n;
	}
	return true;
}

/* Writes the parts to a socket, as many at once as it takes. Changes `parts`. */
static bool parts_write(int fd, struct iovec *parts, size_t n)
{
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = n };
	ssize_t sent = 0;

	while (message.msg_iovlen) {
		struct iovec *part = message.msg_iov;

		if ((size_t)sent >= part->iov_len) {
			sent -= (ssize_t)part->iov_len;
			message.msg_iov++;
			message.msg_iovlen--;
			continue;
		}
		part->iov_base = (char *)part->iov_base + sent;
		part->iov_len -= (size_t)sent;
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
	}
	return true;
}

/* Sends an answer. If it is larger than the daemon takes, sends -E2BIG instead. */
static void answer_send(struct job *job, int error, const struct answer_part *parts, size_t n_parts)
{
	struct parse_answer answer = { .error = error,
				       .kind = job->request.kind,
				       .serial = job->request.serial };
	struct iovec io[PARTS_MAX + 1];
	int64_t now;

	for (size_t i = 0; i < n_parts; i++)
		answer.size += parts[i].size;
	if (answer.size > job->request.max_bytes) {
		answer.error = -E2BIG;
		answer.size = n_parts = 0;
	}
	now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	answer.cpu_ns = (uint64_t)(now - *job->counted_ns);
	*job->counted_ns = now;
	io[0] = (struct iovec){ &answer, sizeof(answer) };
	for (size_t i = 0; i < n_parts; i++)
		io[i + 1] = (struct iovec){ (void *)(uintptr_t)parts[i].data, parts[i].size };
	job->is_sent = parts_write(job->socket, io, n_parts + 1);
	if (answer.size > TRIM_BYTES)
		malloc_trim(0);
}

static int elf_answer(struct job *job)
{
	_cleanup_(elf_file_fini) struct elf_file file = { 0 };
	_cleanup_(freep) void *data = NULL;
	struct answer_part part = { 0 };
	int r = elf_file_read(&job->source, &file);

	if (r)
		return r;
	r = answer_elf_encode(&file, &data, &part.size);
	if (r)
		return r;
	part.data = data;
	answer_send(job, 0, &part, 1);
	return 0;
}

static int debug_answer(struct job *job)
{
	_cleanup_(elf_file_fini) struct elf_file file = { 0 };
	int r = answer_elf_decode(job->data, job->request.elf_size, &file);

	if (!r && !debug_file_is_of(job->source.fd, &file))
		r = -ENOENT;
	if (!r)
		answer_send(job, 0, NULL, 0);
	return r;
}

static int symbols_answer(struct job *job)
{
	_cleanup_(symtab_builder_fini) struct symtab_builder builder = { 0 };
	_cleanup_(freep) void *data = NULL;
	const struct symtab_aids aids = { .debug_fd = job->debug_fd };
	struct answer_part part = { 0 };
	struct symtab_arrays arrays = { 0 };
	int r = symtab_collect(&job->source, &aids, &builder, &arrays);

	if (r)
		return r;
	r = answer_symbols_encode(&builder, &arrays, job->request.max_bytes, &data, &part.size);
	if (r)
		return r;
	part.data = data;
	answer_send(job, 0, &part, 1);
	return 0;
}

static int rows_answer(struct job *job)
{
	const struct parse_request *request = &job->request;
	_cleanup_(elf_file_fini) struct elf_file file = { 0 };
	_cleanup_(unwind_rows_fini) struct unwind_rows rows = { 0 };
	struct answer_part parts[ANSWER_ROWS_PARTS];
	struct answer_rows tail;
	/* The frames and rules come first: they are words, and the parts are half words. */
	struct unwind_wanted wanted = {
		.frames = (uint64_t *)job->data,
		.n_frames = request->n_frames,
		.n_rules = request->n_rules,
		.n = request->n_parts,
		.hash = request->hash,
	};
	size_t n_words = (size_t)wanted.n_frames + 2 * (size_t)wanted.n_rules;
	int r;

	wanted.parts = (uint32_t *)(wanted.frames + n_words);
	r = answer_elf_decode(job->data + request->size - request->elf_size, request->elf_size,
			      &file);
	if (r)
		return r;
	r = compile_elf(&job->source, &file, job->debug_fd, request->max_words,
			wanted.n ? &wanted : NULL, &rows);
	if (r)
		return r;
	answer_rows_encode(&rows, &tail, parts);
	answer_send(job, 0, parts, ANSWER_ROWS_PARTS);
	return 0;
}

static int name_answer(struct job *job)
{
	char buffer[DEMANGLE_OUTPUT_MAX];
	struct answer_part part = { 0 };

	job->data[job->request.size] = '\0';
	part.data = demangle(job->data, buffer, sizeof(buffer));
	if (part.data == job->data)
		return -ENOENT;
	part.size = strlen(part.data);
	answer_send(job, 0, &part, 1);
	return 0;
}

static int function_add(void *context, const char *name, uint64_t offset, uint32_t counter)
{
	return answer_functions_add(context, name, offset, counter);
}

static int functions_answer(struct job *job)
{
	_cleanup_(answer_functions_fini) struct answer_functions list = {
		.max_bytes = job->request.max_bytes,
	};
	_cleanup_(freep) void *data = NULL;
	struct answer_part part = { 0 };
	int r = job->request.kind == PARSE_USDT
			? elf_usdt(job->source.fd, function_add, &list)
			: elf_functions(job->source.fd, job->debug_fd, function_add, &list);

	if (r)
		return r;
	r = answer_functions_encode(&list, &data, &part.size);
	if (r)
		return r;
	part.data = data;
	answer_send(job, 0, &part, 1);
	return 0;
}

static int perf_answer(struct job *job)
{
	_cleanup_(perf_lines_fini) struct perf_lines lines = { 0 };
	struct answer_part parts[ANSWER_PERF_PARTS];
	struct answer_perf head;
	struct parse_perf perf;
	int r;

	if (job->request.size != sizeof(perf))
		return -EINVAL;
	memcpy(&perf, job->data, sizeof(perf));
	r = perf_lines_read(job->source.fd, &perf.after, perf.max_bytes, &lines);
	if (r)
		return r;
	answer_perf_encode(&lines, &head, parts);
	answer_send(job, 0, parts, ANSWER_PERF_PARTS);
	return 0;
}

/*
 * Lets the kernel end this process when it uses too much CPU time for a request, which a file can
 * cause. The daemon has a deadline of its own, and believes no worker that tells it otherwise.
 */
static void timer_set(uint64_t cpu_ms)
{
	const struct itimerval limit = {
		.it_value = { (time_t)(cpu_ms / 1000), (suseconds_t)(cpu_ms % 1000 * 1000) },
	};

	setitimer(ITIMER_PROF, &limit, NULL);
}

static void job_answer(struct job *job)
{
	static int (*const answers[])(struct job * job) = {
		[PARSE_ELF] = elf_answer,	  [PARSE_DEBUG] = debug_answer,
		[PARSE_SYMBOLS] = symbols_answer, [PARSE_ROWS] = rows_answer,
		[PARSE_NAME] = name_answer,	  [PARSE_FUNCTIONS] = functions_answer,
		[PARSE_USDT] = functions_answer,  [PARSE_PERF] = perf_answer,
	};
	uint32_t kind = job->request.kind;
	int r = kind && kind < ARRAY_SIZE(answers) ? answers[kind](job) : -EINVAL;

	/*
	 * The limit of memory is that of a file which takes too much: trying again later would not
	 * help.
	 */
	if (r)
		answer_send(job, r == -ENOMEM ? -E2BIG : r, NULL, 0);
}

static bool job_serve(int fd, int64_t *counted_ns)
{
	struct job job = { .debug_fd = -1, .socket = fd, .counted_ns = counted_ns };
	int fds[2];

	if (fd_message_receive(fd, &job.request, sizeof(job.request), fds, 2) !=
	    (ssize_t)sizeof(job.request))
		return false;
	timer_set(job.request.cpu_ms);
	job.data = malloc(job.request.size + 1);
	if (job.data && bytes_read(fd, job.data, job.request.size)) {
		job.source.fd = fds[0];
		job.debug_fd = fds[1];
		if (!job.request.n_fds) {
			job.source.image = (const void *)getauxval(AT_SYSINFO_EHDR);
			job.source.image_size = job.request.vdso_size;
		}
		job_answer(&job);
	}
	free(job.data);
	closep(&fds[0]);
	closep(&fds[1]);
	return job.is_sent;
}

void worker_run(int fd)
{
	int64_t counted_ns = 0;

	while (job_serve(fd, &counted_ns))
		;
}
