/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <pthread.h>
#include <sys/auxv.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/host/proc_maps.h"
#include "daemon/module/internal.h"

static size_t vdso_size;
static pthread_once_t vdso_once = PTHREAD_ONCE_INIT;

uint64_t module_identity(const struct elf_file *elf, const struct file_state *state)
{
	if (elf->build_id_size)
		return hash64(HASH64_SEED, elf->build_id, elf->build_id_size);
	return hash64(HASH64_SEED, state, sizeof(*state));
}

int module_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

size_t module_files(const struct module *module)
{
	return (size_t)(module->fd >= 0) + (module->debug_fd >= 0);
}

static void vdso_measure(void)
{
	uint64_t address = getauxval(AT_SYSINFO_EHDR);
	_cleanup_(proc_maps_fini) struct proc_maps maps = { 0 };
	_cleanup_(fclosep) FILE *in = NULL;

	if (!address)
		return;
	in = fopen("/proc/self/maps", "re");
	if (!in || proc_maps_read(in, &maps) < 0)
		return;
	for (size_t i = 0; i < maps.n; i++) {
		if (maps.items[i].start == address)
			vdso_size = maps.items[i].end - address;
	}
}

size_t module_vdso_size(void)
{
	pthread_once(&vdso_once, vdso_measure);
	return vdso_size;
}

struct elf_source module_vdso_source(size_t size)
{
	return (struct elf_source){
		.fd = -1,
		.image = (const void *)getauxval(AT_SYSINFO_EHDR),
		.image_size = size,
	};
}
