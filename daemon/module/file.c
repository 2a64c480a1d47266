/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <pthread.h>
#include <sys/auxv.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/host/open_file.h"
#include "daemon/host/proc_maps.h"
#include "daemon/module/internal.h"

/*
 * Files of root never have this bit, all others do: for a file of another user, a build-id can be
 * found that gives any hash.
 */
#define FILE_IS_OF_USER (UINT64_C(1) << 63)

static size_t vdso_size;
static pthread_once_t vdso_once = PTHREAD_ONCE_INIT;

uint64_t module_identity(const struct elf_file *elf, const struct file_state *state, uid_t owner)
{
	uint64_t id = elf->build_id_size ? hash64(HASH64_SEED, elf->build_id, elf->build_id_size)
					 : hash64(HASH64_SEED, state, sizeof(*state));

	if (!owner)
		return id >> 1;
	return hash64(id, &owner, sizeof(owner)) | FILE_IS_OF_USER;
}

struct code_file *module_code_new(const struct elf_file *elf)
{
	struct code_segment segments[CODE_SEGMENTS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < elf->n_segments && n < CODE_SEGMENTS_MAX; i++) {
		if (!elf->segments[i].is_exec)
			continue;
		segments[n++] = (struct code_segment){
			.address = elf->segments[i].address,
			.offset = elf->segments[i].offset,
			.size = elf->segments[i].size,
		};
	}
	return code_file_new(elf->build_id, elf->build_id_size, segments, n);
}

int module_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

struct parse_file module_parse_file(const struct module *module)
{
	return (struct parse_file){
		.fd = module->fd,
		.debug_fd = -1,
		.vdso_size = module->fd < 0 ? module->state.size : 0,
		.path = module->path,
		.state = module->state,
		.owner = module->owner,
		.group = module->group,
	};
}

bool module_is_debug_of(const void *context, int fd)
{
	const struct module_debug *debug = context;
	struct parse_file file = { .fd = fd, .debug_fd = -1, .path = debug->path };
	struct stat st;

	if (open_file_stat(fd, &st) < 0 || (st.st_uid != 0 && st.st_uid != debug->owner))
		return false;
	file.state = file_state_of(&st);
	file.owner = st.st_uid;
	file.group = debug->group;
	return parse_is_debug_of(debug->parser, &file, debug->elf);
}

size_t module_files(const struct module *module)
{
	return (size_t)(module->fd >= 0) + (module->debug_fd >= 0);
}

uint64_t module_address(const struct module *module, uint64_t file_offset)
{
	uint64_t address;

	return elf_file_address(&module->elf, file_offset, &address) ? address : file_offset;
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
