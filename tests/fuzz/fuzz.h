/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_FUZZ_H
#define STACKD_TESTS_FUZZ_H

/*
 * A fuzz target is a file fuzz_<name>.c with this one function. It gives the bytes to the code
 * under test and aborts where a promise of that code does not hold. libFuzzer or replay.c calls it.
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

/* Copies the bytes to a NUL-ended string, which the caller frees. */
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
