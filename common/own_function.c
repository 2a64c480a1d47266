/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/own_function.h"

#include <string.h>

#include "common/base.h"

static bool starts_with_any(const char *text, const char *const *prefixes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static bool is_any(const char *text, const char *const *words, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

bool function_is_nameless(const char *name)
{
	return !name || strstr(name, "+fn_");
}

size_t function_name_len(const char *name)
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t n = strcspn(name, ".(");

	while (strncmp(name + n, anonymous, strlen(anonymous)) == 0) {
		n += strlen(anonymous);
		n += strcspn(name + n, ".(");
	}
	return n;
}

bool function_is(const char *name, const char *function)
{
	size_t n = strlen(function);

	return name && strncmp(name, function, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

bool function_is_libc_helper(const char *name)
{
	static const char *const prefixes[] = {
		"__futex_abstimed_wait", "__GI___futex_abstimed_wait",
		"__syscall_cancel",	 "__internal_syscall_cancel",
		"__timedwait",		 "__syscall_cp",
	};

	return name && starts_with_any(name, prefixes, ARRAY_SIZE(prefixes));
}

/* Returns the origin of all functions in a file of this name; FUNCTION_OF_PROGRAM for others. */
static enum function_origin file_origin(const char *file)
{
	static const char *const of_libc[] = {
		"libc.so",   "libc-2.",	  "ld-linux", "ld-2.",	    "ld-musl",	"libpthread",
		"libc.musl", "librt.so",  "librt-2.", "libdl.",	    "libdl-2.", "libm.so",
		"libnss_",   "libresolv", "[vdso]",   "linux-vdso",
	};
	static const char *const of_runtime[] = {
		"libstdc++", "libgcc_s", "libc++", "libjvm",  "libuv.so", "libnode.so",
		"libev.so",  "libevent", "libffi", "libasan", "libtsan",  "libcoreclr",
	};

	if (starts_with_any(file, of_libc, ARRAY_SIZE(of_libc)))
		return FUNCTION_OF_LIBC;
	if (starts_with_any(file, of_runtime, ARRAY_SIZE(of_runtime)))
		return FUNCTION_OF_RUNTIME;
	return FUNCTION_OF_PROGRAM;
}

/* Returns the origin of a function by its name, for programs that are linked statically. */
static enum function_origin name_origin(const char *name)
{
	/* Names that libc and the kernel's ABI reserve for these functions in each program. */
	static const char *const of_libc[] = {
		"_start",
		"__libc_start_main",
		"__libc_start_call_main",
		"libc_start_main_stage2",
		"start_thread",
		"clone",
		"__clone",
		"clone3",
		"__clone3",
		"pthread_cond_wait",
		"pthread_cond_timedwait",
		"pthread_mutex_lock",
		"__pthread_mutex_lock",
		"__pthread_cond_wait",
		"__lll_lock_wait",
		"__lll_lock_wait_private",
		"__nanosleep",
		"__clock_nanosleep",
	};
	static const char *const of_runtime[] = {
		/* Go */
		"runtime.",
		"runtime/",
		"internal/poll.",
		"internal/runtime/",
		"syscall.",
		"internal/syscall/",
		/* Rust */
		"std::sys::",
		"std::thread::",
		"std::sync::",
		"std::io::",
		"std::rt::",
		"core::",
		"<std::",
		"<core::",
		"<alloc::",
		"__rust_",
		"parking_lot",
		"tokio::runtime::",
		"mio::",
		/* C++ and node */
		"std::this_thread::",
		"std::condition_variable",
		"uv_",
		"uv__",
		/* PostgreSQL, which waits for everything in these */
		"WaitEventSetWait",
		"WaitLatch",
		"PGSemaphoreLock",
	};

	if (function_is_libc_helper(name) || is_any(name, of_libc, ARRAY_SIZE(of_libc)))
		return FUNCTION_OF_LIBC;
	if (starts_with_any(name, of_runtime, ARRAY_SIZE(of_runtime)))
		return FUNCTION_OF_RUNTIME;
	return FUNCTION_OF_PROGRAM;
}

enum function_origin function_origin(const char *name, const char *module)
{
	const char *file = module ? strrchr(module, '/') : NULL;
	enum function_origin by_file = FUNCTION_OF_PROGRAM, by_name = FUNCTION_OF_PROGRAM;

	if (module)
		by_file = file_origin(file && file[1] ? file + 1 : module);
	if (name)
		by_name = name_origin(name);
	return by_file < by_name ? by_file : by_name;
}
