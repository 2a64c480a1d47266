/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/demangle.h"

#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

/* Buffer for the demangled name. When it is full, longjmp(too_long) leaves the demangler. */
struct output {
	char *buffer;
	size_t n, size;
	jmp_buf too_long;
};

bool demangle_is_candidate(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/*
 * Appends a piece of the demangled name to the output; called by the demanglers. A few bytes of a
 * hostile name can double the output, and a callback cannot make the demanglers stop. So this
 * function leaves them by longjmp() when the buffer is full. That is safe, because they keep their
 * state on the stack: only a Rust name with a Punycode identifier leaks an allocation.
 */
static void on_text(const char *text, size_t n, void *opaque)
{
	struct output *out = opaque;

	if (n >= out->size - out->n)
		longjmp(out->too_long, 1);
	if (n) /* else `text` may be NULL */
		memcpy(out->buffer + out->n, text, n);
	out->n += n;
}

const char *demangle(const char *name, char *buffer, size_t size)
{
	struct output out = { .buffer = buffer, .size = size };
	int is_done;

	if (!demangle_is_candidate(name) || !size ||
	    strnlen(name, DEMANGLE_INPUT_MAX + 1) > DEMANGLE_INPUT_MAX)
		return name;
	if (setjmp(out.too_long))
		return name;
	/*
	 * Try Rust's demangler first, because mangled names in the older form of Rust are also
	 * valid mangled C++ names.
	 */
	is_done = rust_demangle_callback(name, 0, on_text, &out);
	if (!is_done) {
		out.n = 0;
		is_done = cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI, on_text, &out);
	}
	if (!is_done || !out.n)
		return name;
	buffer[out.n] = '\0';
	return buffer;
}
