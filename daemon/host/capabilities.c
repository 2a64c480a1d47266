/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"

/* Calls the kernel directly: glibc has no capget(), and libcap is too much for two system calls. */
static int sets_read(struct __user_cap_data_struct sets[static 2])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &header, sets) < 0 ? -errno : 0;
}

uint64_t capabilities_permitted(void)
{
	struct __user_cap_data_struct sets[2];

	if (sets_read(sets) < 0)
		return 0;
	return sets[0].permitted | (uint64_t)sets[1].permitted << 32;
}

int capabilities_limit(uint64_t keep)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];
	int r = sets_read(sets);
	size_t i;

	if (r < 0)
		return r;
	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		const uint32_t half = (uint32_t)(keep >> (32 * i));

		sets[i].permitted &= half;
		sets[i].effective &= half;
		sets[i].inheritable &= half; /* a capability that is removed here is also
						removed from the ambient set */
	}
	/* Without this flag, root would get the capabilities back when it executes a program. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}
