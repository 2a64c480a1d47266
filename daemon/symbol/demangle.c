/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/demangle.h"

#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

/* Collects the output; leaves the demangler by longjmp() when it does not fit. */
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
 * The demanglers have no way to stop them, and repeated parts of a name double their output for
 * every few bytes of input. Jumping out is safe because they keep their state on the stack. Only an
 * identifier in Punycode, as Rust has, leaks a small allocation, and only for a hostile name.
 */
static void on_text(const char *text, size_t n, void *opaque)
{
	struct output *out = opaque;

	if (n >= out->size - out->n)
		longjmp(out->too_long, 1);
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
	 * Rust's older names are valid C++ names with a hash at the end, so Rust's demangler is
	 * tried first.
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
