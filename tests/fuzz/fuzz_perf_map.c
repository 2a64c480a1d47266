/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes the reader of perf maps, which programs write for code that they compile as they run. A
 * symbol that is found must begin at or before the address looked up.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/process/perf_map.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("perf_map", MFD_CLOEXEC);
	struct perf_map *map = NULL, *before = NULL;
	size_t half = size / 2;

	REQUIRE(fd >= 0);
	REQUIRE(write(fd, data, half) == (ssize_t)half);
	REQUIRE(perf_map_read(NULL, fd, 0, NULL, &before) == 0);
	REQUIRE(write(fd, data + half, size - half) == (ssize_t)(size - half));
	REQUIRE(perf_map_read(NULL, fd, 0, before, &map) == 0);
	perf_map_unref(before);
	for (uint64_t address = 0; address < 0x8000; address += 0x33) {
		uint64_t start;
		const char *name = perf_map_lookup(map, address, &start);

		REQUIRE(!name || (start <= address && name[0] != '\0' && strlen(name) < size));
	}
	perf_map_unref(map);
	REQUIRE(perf_maps_bytes() == 0);
	close(fd);
	return 0;
}
