/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzzes the demangling of symbols, which whoever builds a program chooses. */
#include <string.h>

#include "common/demangle.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[2 * DEMANGLE_INPUT_MAX], buffer[DEMANGLE_OUTPUT_MAX];
	const char *readable;

	if (size >= sizeof(name))
		return 0;
	memcpy(name, data, size);
	name[size] = '\0';
	readable = demangle(name, buffer, sizeof(buffer));
	REQUIRE(readable == name || readable == buffer);
	REQUIRE(readable == name || strlen(readable) < sizeof(buffer));
	REQUIRE(readable == name || demangle_is_candidate(name));
	/* In a buffer that is too small, a name is left as it is. */
	readable = demangle(name, buffer, 16);
	REQUIRE(readable == name || strlen(readable) < 16);
	return 0;
}
