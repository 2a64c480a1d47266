/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes the readers of /proc/PID/maps and mountinfo, in which users choose paths. The first byte
 * chooses one of them.
 */
#include <errno.h>

#include "daemon/host/proc_maps.h"
#include "daemon/host/remote_mounts.h"
#include "tests/fuzz/fuzz.h"

static void maps_read(FILE *in)
{
	struct proc_maps maps = { 0 };
	int r = proc_maps_read(in, &maps);

	REQUIRE(r == 0 || r == -EBADMSG || r == -ENOMEM);
	for (size_t i = 0; r == 0 && i < maps.n; i++)
		REQUIRE(maps.items[i].path);
	proc_maps_fini(&maps);
}

static void mounts_read(FILE *in, bool is_roots)
{
	struct remote_mounts *mounts = remote_mounts_new();
	struct mount_view view = mount_view_of(mounts, -1);

	REQUIRE(mounts);
	if (!mount_view_read(&view, in, is_roots)) {
		mount_view_is_remote_dev(&view, 0x12345);
		mount_view_is_remote_point(&view, "/a b");
	}
	mount_view_fini(&view);
	remote_mounts_free(mounts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *in;

	if (size < 2)
		return 0;
	in = fmemopen((void *)(uintptr_t)(data + 1), size - 1, "r");
	REQUIRE(in);
	if (data[0] & 1)
		maps_read(in);
	else
		mounts_read(in, data[0] & 2);
	fclose(in);
	return 0;
}
