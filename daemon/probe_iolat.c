/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>

#include "bpf/io_shared.h"
#include "daemon/io_calls.h"
#include "daemon/probe_types.h"
#include "proto/base.h"

#include "iolat.skel.h"

/* Stacks of slow operations only. */
enum { RING = 512 << 10, SEEN = 4096, LAYER_TEXT = 160 };

/* One that a file system has, or the VFS; where it is found, two programs. */
enum { FILE_SYSTEMS = 4, FUNCTIONS = 4 };

static const struct {
	const char *name;
	const char *functions[FUNCTIONS];
} file_systems[FILE_SYSTEMS] = {
	{ "vfs", { "vfs_read", "vfs_write", "vfs_fsync_range", "vfs_open" } },
	{ "ext4",
	  { "ext4_file_read_iter", "ext4_file_write_iter", "ext4_sync_file", "ext4_file_open" } },
	{ "xfs",
	  { "xfs_file_read_iter", "xfs_file_write_iter", "xfs_file_fsync", "xfs_file_open" } },
	{ "btrfs",
	  { "btrfs_file_read_iter", "btrfs_file_write_iter", "btrfs_sync_file",
	    "btrfs_file_open" } },
};

/* What this kernel lets it see; texts for `status`. */
struct probe_layers {
	bool has_functions; /* programs at their begin and end may be loaded */
	bool has_throttle;
	char hook[LAYER_TEXT];
	char blind[3][LAYER_TEXT];
	size_t n_blind;
};

static void blind_add(struct probe_layers *layers, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void blind_add(struct probe_layers *layers, const char *format, ...)
{
	va_list args;

	if (layers->n_blind == ARRAY_SIZE(layers->blind))
		return;
	va_start(args, format);
	vsnprintf(layers->blind[layers->n_blind++], LAYER_TEXT, format, args);
	va_end(args);
}

/* The least program there can be, at a function that every kernel has. 0 or negative errno. */
static int fentry_try(const struct btf *btf)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
	_cleanup_(closep) int program = -1, link = -1;
	int id = btf__find_by_name_kind(btf, "vfs_read", BTF_KIND_FUNC);

	if (id < 0)
		return id;
	opts.attach_btf_id = (uint32_t)id;
	program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "stackd_try", "GPL", insns,
				ARRAY_SIZE(insns), &opts);
	if (program < 0)
		return program;
	link = bpf_link_create(program, 0, BPF_TRACE_FENTRY, NULL);
	return link < 0 ? link : 0;
}

/* In the kernel or in one of its modules that are loaded now. */
static bool function_exists(const struct btf *vmlinux, const char *module, const char *function)
{
	struct btf *btf;
	bool has;

	if (btf__find_by_name_kind(vmlinux, function, BTF_KIND_FUNC) > 0)
		return true;
	btf = btf__load_module_btf(module, (struct btf *)vmlinux);
	if (libbpf_get_error(btf))
		return false;
	has = btf__find_by_name_kind(btf, function, BTF_KIND_FUNC) > 0;
	btf__free(btf);
	return has;
}

static struct bpf_program *function_program(const struct probe *probe, const char *function,
					    const char *side)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", function, side);
	return bpf_object__find_program_by_name(probe->object, name);
}

static void names_add(char *names, const char *name)
{
	size_t n = strlen(names);

	snprintf(names + n, LAYER_TEXT - n, "%s%s", n ? ", " : "", name);
}

/* Functions that are there get their programs; the others are named. */
static void functions_choose(struct probe *probe, const struct btf *btf)
{
	struct probe_layers *layers = probe->layers;
	char absent[LAYER_TEXT] = "", found[LAYER_TEXT] = "";
	size_t i, k, n;

	for (i = 0; i < FILE_SYSTEMS; i++) {
		for (k = n = 0; k < FUNCTIONS; k++) {
			const char *function = file_systems[i].functions[k];

			if (!function_exists(btf, file_systems[i].name, function))
				continue;
			bpf_program__set_autoload(function_program(probe, function, "in"), true);
			bpf_program__set_autoload(function_program(probe, function, "out"), true);
			n++;
		}
		names_add(n == FUNCTIONS ? found : absent, file_systems[i].name);
	}
	snprintf(layers->hook, sizeof(layers->hook),
		 "system calls and block requests by tp_btf, %.80s by fentry", found);
	if (absent[0])
		blind_add(layers,
			  "%.80s: not in this kernel (or its module was not loaded when "
			  "stackd started)",
			  absent);
}

static void layers_choose(struct probe *probe)
{
	struct probe_layers *layers = probe->layers;
	struct btf *btf = NULL;
	int r = probe_types(&btf) ? -ENOENT : fentry_try(btf);

	layers->has_functions = r == 0;
	snprintf(layers->hook, sizeof(layers->hook), "system calls and block requests by tp_btf");
	if (r)
		blind_add(layers,
			  "the layers of the VFS and of file systems: no program may be "
			  "attached to functions here (fentry: %s)",
			  strerror(-r));
	else
		functions_choose(probe, btf);
	layers->has_throttle = !r && probe_types_have("__blk_throtl_bio", BTF_KIND_FUNC);
	if (!layers->has_throttle)
		blind_add(layers, "time that io.max holds a request back, which is part of the "
				  "time asleep here");
	bpf_program__set_autoload(probe->iolat->progs.on_throttle, layers->has_throttle);
	bpf_program__set_autoload(probe->iolat->progs.on_request_start,
				  probe_types_have("btf_trace_block_io_start", BTF_KIND_TYPEDEF));
	probe->iolat->rodata->has_throttle = layers->has_throttle;
	probe->iolat->rodata->has_cast = probe_types_have("bpf_rdonly_cast", BTF_KIND_FUNC);
	probe_warning_clear();
}

static int skeleton_configure(struct probe *probe)
{
	const struct probe_options *options = &probe->options;
	struct iolat *skel = probe->iolat;

	skel->rodata->hash_seed = options->hash_seed;
	skel->rodata->slow_ns = (uint64_t)options->config->iolat_slow_ns;
	skel->rodata->ring_wake_bytes = RING / 4;
	skel->rodata->ring_stack_bytes = RING - RING / 4;
	io_calls_fill(skel->rodata->io_calls, IO_CALLS);
	if (options->filter)
		memcpy(&skel->rodata->filter, options->filter, sizeof(*options->filter));
	return probe_prepare(probe, sizeof(struct io_key), sizeof(struct io_sums), RING, SEEN);
}

static size_t slots_size(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (IO_SLOTS * sizeof(struct io_slot) + page - 1) & ~(page - 1);
}

static int slots_map(struct probe *probe)
{
	void *slots = mmap(NULL, slots_size(), PROT_READ, MAP_SHARED,
			   bpf_map__fd(probe->iolat->maps.slots), 0);

	if (slots == MAP_FAILED)
		return -errno;
	probe->slots = slots;
	return 0;
}

const struct io_slot *probe_io_slots(const struct probe *probe)
{
	return probe->slots;
}

/* Ends before begins: what began before has no end that would be taken for another's. */
static int probe_attach(struct probe *probe)
{
	struct bpf_program *program;
	int r = 0;

	bpf_object__for_each_program(program, probe->object)
	{
		if (r || !bpf_program__autoload(program) ||
		    program == probe->iolat->progs.on_sys_enter)
			continue;
		r = probe_attach_one(probe, program);
	}
	return r ? r : probe_attach_one(probe, probe->iolat->progs.on_sys_enter);
}

static int probe_try(struct probe *probe)
{
	int r;

	probe->iolat = iolat__open();
	if (!probe->iolat)
		return -errno;
	probe->object = probe->iolat->obj;
	layers_choose(probe);
	r = skeleton_configure(probe);
	if (!r)
		r = iolat__load(probe->iolat);
	if (!r && !probe->iolat->bss)
		r = -ENOMEM; /* libbpf goes on without its variables mapped */
	if (!r)
		r = probe_finish(probe);
	if (!r)
		r = slots_map(probe);
	return r ? r : probe_attach(probe);
}

int probe_iolat_open(struct probe *probe)
{
	int r;

	probe->layers = calloc(1, sizeof(*probe->layers));
	if (!probe->layers)
		return -ENOMEM;
	probe_warning_clear();
	r = probe_try(probe);
	if (r) {
		probe_fail(probe, "tp_btf/sys_enter: %s",
			   probe_warning()[0] ? probe_warning() : strerror(-r));
		probe_unload(probe);
		return r;
	}
	probe->cut = &probe->iolat->bss->cut;
	return 0;
}

void probe_iolat_close(struct probe *probe)
{
	if (probe->slots)
		munmap(probe->slots, slots_size());
	probe->slots = NULL;
	iolat__destroy(probe->iolat);
	probe->iolat = NULL;
	free(probe->layers);
	probe->layers = NULL;
}

void probe_iolat_status(const struct probe *probe, struct probe_status *out)
{
	size_t i;

	out->hook = probe->layers->hook;
	for (i = 0; i < probe->layers->n_blind; i++)
		out->blind[out->n_blind++] = probe->layers->blind[i];
}
