/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/alias_rank.h"

#include <stddef.h>
#include <string.h>

#include "common/base.h"

/* True if the compiler, the linker or a build script has made up the name: it has a prefix such as
 * __pfx_ or a part such as .cold. */
static bool is_generated(const char *name)
{
	static const char *const prefixes[] = { "__pfx_", "__pi_", "__cfi_", "__GI_", "__SCT__" };
	static const char *const parts[] = { ".cold", ".part.", ".isra.", ".constprop.", ".llvm." };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	if (!strchr(name, '.'))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (strstr(name, parts[i]))
			return true;
	}
	return false;
}

/*
 * Returns the number of leading underscores, which mark names as internal. Returns 0 for a mangled
 * C++ or Rust name, which always begins with an underscore.
 */
static size_t underscores(const char *name)
{
	if (!strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2))
		return 0;
	return strspn(name, "_");
}

int alias_rank_compare(const char *a, bool a_is_global, const char *b, bool b_is_global)
{
	bool a_is_generated = is_generated(a), b_is_generated = is_generated(b);
	size_t a_under = underscores(a), b_under = underscores(b);
	size_t a_length, b_length;

	if (a_is_generated != b_is_generated)
		return a_is_generated ? 1 : -1;
	if (a_is_global != b_is_global)
		return a_is_global ? -1 : 1;
	if (a_under != b_under)
		return a_under < b_under ? -1 : 1;
	a_length = strlen(a);
	b_length = strlen(b);
	if (a_length != b_length)
		return a_length < b_length ? -1 : 1;
	return strcmp(a, b);
}
