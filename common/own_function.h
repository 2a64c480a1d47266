/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_OWN_FUNCTION_H
#define STACKD_COMMON_OWN_FUNCTION_H

/*
 * Judges functions by their names. Tells the functions of a program from those of libc, of the
 * dynamic linker and of the runtimes of languages, by which every program waits. No state; any
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>

/* The origin of a function; the greater the value, the more the function says about a program. */
enum function_origin {
	FUNCTION_OF_LIBC,
	FUNCTION_OF_RUNTIME, /* of a language or an event loop, such as Go, C++, the JVM or libuv */
	FUNCTION_OF_PROGRAM,
};

/*
 * Returns the origin of a user-space function. `name` and `module`, the path of its file, may be
 * NULL. Statically linked programs have libc and the runtime in their own file, where only the
 * names tell.
 */
enum function_origin function_origin(const char *name, const char *module);

/*
 * True if the file has no symbol for the function: `name` is NULL, or "FILE+fn_START", the name
 * that the daemon makes up for it.
 */
bool function_is_nameless(const char *name);

/*
 * Returns the length of a function's name without what may follow it: the arguments of a C++
 * function, or a suffix that the compiler appends, such as ".isra.0". Not for functions of Go,
 * whose names have dots.
 */
size_t function_name_len(const char *name);

/*
 * True if the name is that of a function, perhaps with a suffix: compilers may rename do_poll to
 * do_poll.constprop.0. `name` may be NULL.
 */
bool function_is(const char *name, const char *function);

/*
 * True if the name is that of a function of glibc or musl through which its functions for waiting
 * make their system call. `name` may be NULL.
 */
bool function_is_libc_helper(const char *name);

#endif
