/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a fuzz target without libFuzzer on every file of the given directories and on MUTANTS
 * variations of each, which are the same in every run.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/fuzz/fuzz.h"

enum { MUTANTS = 200, INPUT_MAX = 1024 * 1024 };

static uint64_t seed;

/* Returns the next number of xorshift64, which is the same everywhere, unlike rand(). */
static size_t pick(size_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (size_t)(seed % n);
}

static size_t mutate(uint8_t *data, size_t size)
{
	static const uint8_t marks[] = { 0, 0xff, 0x7f, 0x80, '"', '{', '[', ':', '-', '\n', '9' };

	for (size_t changes = 1 + pick(4); changes > 0 && size > 0; changes--) {
		size_t at = pick(size);

		switch (pick(4)) {
		case 0:
			data[at] ^= (uint8_t)(1U << pick(8));
			break;
		case 1:
			data[at] = marks[pick(ARRAY_SIZE(marks))];
			break;
		case 2:
			memmove(data + at, data + at + 1, size - at - 1);
			size--;
			break;
		default:
			size = pick(8) == 0 ? at : size;
			break;
		}
	}
	return size;
}

/* Copies each input to an allocation of its size, so that a sanitizer sees reads beyond it. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	REQUIRE(copy);
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void replay_file(const char *path)
{
	static uint8_t data[INPUT_MAX], mutant[INPUT_MAX];
	FILE *file = fopen(path, "re");
	size_t size;

	REQUIRE(file);
	size = fread(data, 1, sizeof(data), file);
	fclose(file);
	run(data, size);
	seed = 88172645463325252ULL;
	for (int i = 0; i < MUTANTS; i++) {
		memcpy(mutant, data, size);
		run(mutant, mutate(mutant, size));
	}
}

static int replay_directory(const char *directory)
{
	DIR *entries = opendir(directory);
	struct dirent *entry;
	char path[4096];
	struct stat st;
	int n = 0;

	REQUIRE(entries);
	while ((entry = readdir(entries))) {
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		replay_file(path);
		n++;
	}
	closedir(entries);
	return n;
}

int main(int argc, char *argv[])
{
	int n = 0;

	for (int i = 1; i < argc; i++)
		n += replay_directory(argv[i]);
	printf("%d inputs, %d variations of each\n", n, MUTANTS);
	return n > 0 ? 0 : 1;
}
