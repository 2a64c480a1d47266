/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/parse/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "common/base.h"
#include "common/demangle.h"
#include "daemon/base/hash.h"
#include "daemon/elf/debug_file.h"
#include "daemon/elf/functions.h"
#include "daemon/elf/usdt.h"
#include "daemon/host/procfs.h"
#include "daemon/parse/answers.h"
#include "daemon/parse/parser.h"
#include "daemon/symbol/perf_lines.h"
#include "daemon/symbol/symtab.h"
#include "daemon/unwind/compile_elf.h"

/* CPU time for demangling one name, which takes microseconds unless the name is hostile. */
#define NAME_CPU_MS 1000
/* CPU time for the lines of a perf map, which take a few hundred ms at most. */
#define PERF_CPU_MS   3000
#define ELF_BYTES_MAX (64 * 1024) /* maximum size of an encoded struct elf_file */

/* Maximum size of the names of all functions of a file, and of their offsets. */
#define FUNCTIONS_BYTES_MAX (UINT64_C(64) << 20)

uint64_t parse_group(int proc_fd)
{
	_cleanup_(freep) char *path = NULL;
	const char *end;

	if (proc_fd < 0 || procfs_read_cgroup(proc_fd, &path))
		return 0;
	end = strchrnul(path + 1, '/');
	end = *end ? strchrnul(end + 1, '/') : end;
	return hash64(HASH64_SEED, path, (size_t)(end - path));
}

static struct elf_source source_of(const struct parse_file *file)
{
	if (file->fd >= 0)
		return (struct elf_source){ .fd = file->fd };
	return (struct elf_source){
		.fd = -1,
		.image = (const void *)getauxval(AT_SYSINFO_EHDR),
		.image_size = file->vdso_size,
	};
}

static struct parser_call call_of(const struct parse_file *file, enum parse_kind kind,
				  uint64_t max_bytes)
{
	return (struct parser_call){
		.request = { .kind = kind, .vdso_size = file->vdso_size, .max_bytes = max_bytes },
		.fd = file->fd,
		.debug_fd = -1,
		.is_urgent = file->is_urgent,
		.is_alone = file->is_alone,
		.path = file->path,
		.why = file->why,
		.state = file->fd >= 0 ? &file->state : NULL,
		.owner = file->owner,
		.group = file->group,
	};
}

static int elf_decode(void *context, void **data, size_t size)
{
	return answer_elf_decode(*data, size, context);
}

int parse_elf(struct parser *parser, const struct parse_file *file, struct elf_file *out)
{
	struct parser_call call = call_of(file, PARSE_ELF, ELF_BYTES_MAX);
	struct elf_source source = source_of(file);
	int64_t cpu_ns;

	if (!parser)
		return elf_file_read(&source, out);
	call.decode = elf_decode;
	call.context = out;
	return parser_ask(parser, &call, &cpu_ns);
}

static int nothing_decode(void *context, void **data, size_t size)
{
	return size ? -EPROTO : 0;
}

bool parse_is_debug_of(struct parser *parser, const struct parse_file *file,
		       const struct elf_file *of)
{
	struct parser_call call = call_of(file, PARSE_DEBUG, 0);
	_cleanup_(freep) void *data = NULL;
	int64_t cpu_ns;

	if (!parser)
		return debug_file_is_of(file->fd, of);
	if (answer_elf_encode(of, &data, &call.size))
		return false;
	call.data = data;
	call.request.elf_size = call.size;
	call.decode = nothing_decode;
	return parser_ask(parser, &call, &cpu_ns) == 0;
}

static int symbols_decode(void *context, void **data, size_t size)
{
	return answer_symbols_decode(*data, size, context);
}

/* Says whose names are demangled: those of a file, which outlives its module in a shared table. */
struct names {
	struct parser *parser;
	struct file_state state;
	uid_t owner;
	char path[];
};

static int name_decode(void *context, void **data, size_t size)
{
	char *buffer = context;

	if (!size || size >= DEMANGLE_OUTPUT_MAX || memchr(*data, '\0', size))
		return -EPROTO;
	memcpy(buffer, *data, size);
	buffer[size] = '\0';
	return 0;
}

static bool name_demangle(void *context, const char *name, char *buffer)
{
	const struct names *names = context;
	struct parser_call call = {
		.request = { .kind = PARSE_NAME, .max_bytes = DEMANGLE_OUTPUT_MAX },
		.data = name,
		.size = strlen(name),
		.fd = -1,
		.debug_fd = -1,
		.cpu_ms = NAME_CPU_MS,
		.path = names->path,
		.state = &names->state,
		.owner = names->owner,
		.decode = name_decode,
		.context = buffer,
	};
	int64_t cpu_ns;

	return parser_ask(names->parser, &call, &cpu_ns) == 0;
}

/* Makes the table demangle names by workers. Returns 0 or -ENOMEM. */
static int names_set(struct parser *parser, const struct parse_file *file, struct symtab *symtab)
{
	struct symtab_demangler demangler = { .demangle = name_demangle, .free_context = free };
	struct names *names = malloc(sizeof(*names) + strlen(file->path) + 1);

	if (!names)
		return -ENOMEM;
	names->parser = parser;
	names->state = file->state;
	names->owner = file->owner;
	strcpy(names->path, file->path);
	demangler.context = names;
	symtab_set_demangler(symtab, &demangler);
	return 0;
}

int parse_symbols(struct parser *parser, const struct parse_file *file, uint64_t max_bytes,
		  struct symtab **out)
{
	struct parser_call call = call_of(file, PARSE_SYMBOLS, max_bytes);
	struct symtab_aids aids = { .debug_fd = file->debug_fd };
	struct elf_source source = source_of(file);
	struct symtab_arrays arrays = { 0 };
	int64_t cpu_ns;
	int r;

	*out = NULL;
	if (!parser)
		return symtab_load(&source, &aids, out);
	call.debug_fd = file->debug_fd;
	call.decode = symbols_decode;
	call.context = &arrays;
	r = parser_ask(parser, &call, &cpu_ns);
	if (r) {
		symtab_arrays_fini(&arrays);
		return r;
	}
	r = symtab_from_arrays(&arrays, out);
	if (!r && file->fd >= 0)
		r = names_set(parser, file, *out);
	if (r)
		*out = symtab_free(*out);
	return r;
}

/* An answer with functions or static probes. */
struct functions_answer {
	bool has_provider;
	void *data; /* the checked bytes; NULL: none came */
};

static int functions_decode(void *context, void **data, size_t size)
{
	struct functions_answer *answer = context;
	int r = answer_functions_check(*data, size, answer->has_provider);

	if (r)
		return r;
	answer->data = *data;
	*data = NULL;
	return 0;
}

/*
 * Asks a worker for a list of functions or static probes, and visits its members: only then,
 * because the worker waits until the answer is decoded.
 */
static int functions_ask(struct parser *parser, const struct parse_file *file, enum parse_kind kind,
			 parse_function_fn visit, void *context)
{
	struct parser_call call = call_of(file, kind, FUNCTIONS_BYTES_MAX);
	struct functions_answer answer = { .has_provider = kind == PARSE_USDT };
	int64_t cpu_ns;
	int r;

	call.debug_fd = file->debug_fd;
	call.decode = functions_decode;
	call.context = &answer;
	r = parser_ask(parser, &call, &cpu_ns);
	if (!r)
		r = answer_functions_visit(answer.data, visit, context);
	free(answer.data);
	return r;
}

int parse_functions(struct parser *parser, const struct parse_file *file, parse_function_fn visit,
		    void *context)
{
	if (parser)
		return functions_ask(parser, file, PARSE_FUNCTIONS, visit, context);
	return elf_functions(file->fd, file->debug_fd, visit, context);
}

int parse_usdt(struct parser *parser, const struct parse_file *file, parse_function_fn visit,
	       void *context)
{
	if (parser)
		return functions_ask(parser, file, PARSE_USDT, visit, context);
	return elf_usdt(file->fd, visit, context);
}

struct rows_answer {
	struct unwind_rows *rows;
	uint64_t code_bytes;
};

static int rows_decode(void *context, void **data, size_t size)
{
	const struct rows_answer *answer = context;

	return answer_rows_decode(data, size, answer->code_bytes, answer->rows);
}

/*
 * Makes the bytes that follow a request for unwind rows: frames and rules of the earlier table,
 * numbers of the wanted parts, the encoded ELF file; each begins at a multiple of 8 bytes.
 */
static int rows_request(const struct unwind_wanted *wanted, const struct elf_file *elf,
			struct parse_request *request, void **out, size_t *size_out)
{
	_cleanup_(freep) void *encoded = NULL;
	size_t frames = 0, parts = 0, elf_size;
	char *data;
	int r = answer_elf_encode(elf, &encoded, &elf_size);

	if (r)
		return r;
	if (wanted) {
		frames = (wanted->n_frames + 2 * (size_t)wanted->n_rules) * sizeof(uint64_t);
		parts = (wanted->n * sizeof(*wanted->parts) + 7) & ~(size_t)7;
		request->n_parts = (uint32_t)wanted->n;
		request->n_frames = wanted->n_frames;
		request->n_rules = wanted->n_rules;
		request->hash = wanted->hash;
	}
	data = calloc(1, frames + parts + elf_size);
	if (!data)
		return -ENOMEM;
	if (wanted) {
		memcpy(data, wanted->frames, frames);
		memcpy(data + frames, wanted->parts, wanted->n * sizeof(*wanted->parts));
	}
	memcpy(data + frames + parts, encoded, elf_size);
	request->elf_size = elf_size;
	*out = data;
	*size_out = frames + parts + elf_size;
	return 0;
}

int parse_rows(struct parser *parser, const struct parse_file *file, const struct elf_file *elf,
	       size_t max_words, const struct unwind_wanted *wanted, struct unwind_rows *out,
	       int64_t *cpu_ns_out)
{
	struct parser_call call = call_of(
		file, PARSE_ROWS, max_words * sizeof(uint64_t) + sizeof(struct answer_rows));
	int64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID), cpu_ns = 0;
	struct elf_source source = source_of(file);
	_cleanup_(freep) void *data = NULL;
	struct rows_answer answer = { .rows = out };
	struct unwind_extent extent;
	int r;

	if (!parser) {
		r = compile_elf(&source, elf, file->debug_fd, max_words, wanted, out);
	} else if (!compile_elf_extent(elf, &extent)) {
		r = -ENODATA;
	} else {
		answer.code_bytes = extent.size;
		call.debug_fd = file->debug_fd;
		call.request.max_words = max_words;
		call.decode = rows_decode;
		call.context = &answer;
		r = rows_request(wanted, elf, &call.request, &data, &call.size);
		call.data = data;
		if (!r)
			r = parser_ask(parser, &call, &cpu_ns);
	}
	*cpu_ns_out = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun + cpu_ns;
	return r;
}

static int perf_decode(void *context, void **data, size_t size)
{
	return answer_perf_decode(data, size, context);
}

int parse_perf_lines(struct parser *parser, const struct parse_file *file,
		     const struct perf_mark *after, size_t max_bytes, struct perf_lines *out)
{
	struct parser_call call = call_of(file, PARSE_PERF, max_bytes + sizeof(struct answer_perf));
	struct parse_perf request = { .max_bytes = max_bytes };
	int64_t cpu_ns;

	if (!parser)
		return perf_lines_read(file->fd, after, max_bytes, out);
	if (after)
		request.after = *after;
	call.data = &request;
	call.size = sizeof(request);
	call.cpu_ms = PERF_CPU_MS;
	call.decode = perf_decode;
	call.context = out;
	return parser_ask(parser, &call, &cpu_ns);
}
