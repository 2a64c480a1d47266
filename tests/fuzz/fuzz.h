/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_FUZZ_H
#define STACKD_TESTS_FUZZ_H

/*
 * A fuzz target is a file fuzz_<name>.c with this one function: bytes of a stranger in, a crash
 * out if what the code promises does not hold. libFuzzer or replay.c calls it.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

/* The bytes as a NUL-ended string of its own allocation, to be freed. */
static inline char *fuzz_string(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	REQUIRE(text);
	for (size_t i = 0; i < size; i++)
		text[i] = (char)data[i];
	text[size] = '\0';
	return text;
}

#endif
