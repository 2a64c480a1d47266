/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>

#include "bpf/io_shared.h"
#include "common/base.h"
#include "daemon/base/io_names.h"
#include "daemon/probe/iolat_layers.h"
#include "daemon/probe/kernel_btf.h"
#include "daemon/probe/libbpf_log.h"

#include "iolat.skel.h"
#include "iolat_plain.skel.h"

/*
 * RING: size of the ring buffer in bytes. SEEN: number of entries in the map of stacks that were
 * sent before. A probe that does not record system calls uses SMALL_RING and SMALL_SEEN: it sees
 * fewer slow operations, and stacks are sent only for slow operations. Such a probe also uses
 * FEW_SLOTS, the maximum number of threads that have an operation in progress: it does not see
 * reads of pipes and sockets.
 */
enum {
	RING = 512 << 10,
	SEEN = 4096,
	SMALL_RING = 128 << 10,
	SMALL_SEEN = 512,
	FEW_SLOTS = 512,
	/* if system calls are recorded, the map of a window has more entries by this factor */
	KEYS_WITH_CALLS = 4,
};

/*
 * Selects the BPF programs that see the beginning and the end of each I/O operation of a thread. If
 * none is selected, the probe records block requests, but not the operations that caused them.
 */
static int operations_choose(struct probe *probe)
{
	const bool has_calls = iolat_layers_have_calls(probe),
		   by_tracepoint = has_calls && !iolat_layers_have_call_functions(probe),
		   has_operations = has_calls || iolat_layers_have_functions(probe);
	struct iolat *skel = (struct iolat *)probe->skeleton;

	skel->rodata->n_slots = has_calls ? IO_SLOTS : has_operations ? FEW_SLOTS : 0;
	bpf_program__set_autoload(skel->progs.on_sys_enter, by_tracepoint);
	bpf_program__set_autoload(skel->progs.on_sys_exit, by_tracepoint);
	bpf_program__set_autoload(skel->progs.on_thread_exit, has_operations);
	return bpf_map__set_max_entries(skel->maps.io_slots,
					has_operations ? skel->rodata->n_slots : 1);
}

static int programs_choose(struct probe *probe)
{
	const bool has_start = kernel_btf_has("btf_trace_block_io_start", BTF_KIND_TYPEDEF);
	struct iolat *skel = (struct iolat *)probe->skeleton;
	int r = iolat_layers_new(probe);

	if (!r)
		r = operations_choose(probe);
	skel->rodata->has_start = has_start;
	bpf_program__set_autoload(skel->progs.on_request_start, has_start);
	bpf_program__set_autoload(skel->progs.on_request_insert, !has_start);
	libbpf_log_clear();
	return r;
}

static int iolat_configure(struct probe *probe)
{
	struct iolat *skel = (struct iolat *)probe->skeleton;
	struct probe_sizes sizes = { .key = sizeof(struct io_key),
				     .value = sizeof(struct io_sums) };
	int r = programs_choose(probe);

	if (r)
		return r;
	sizes.ring_bytes = iolat_layers_have_calls(probe) ? RING : SMALL_RING;
	sizes.n_seen = iolat_layers_have_calls(probe) ? SEEN : SMALL_SEEN;
	probe_set_variables(probe, skel->rodata, sizes.ring_bytes);
	skel->rodata->max_rows = (uint32_t)(probe->max_keys - probe->max_keys / 4);
	skel->rodata->slow_ns = (uint64_t)probe->options.config->iolat_slow_ns;
	skel->rodata->sample_from_ns = probe->options.sample_below_ns ? 0 : skel->rodata->slow_ns;
	io_calls_fill(skel->rodata->io_calls, IO_CALLS);
	return probe_prepare(probe, &sizes);
}

static uint32_t slots_count(const struct probe *probe)
{
	return ((const struct iolat *)probe->skeleton)->rodata->n_slots;
}

static size_t slots_size(const struct probe *probe)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE),
		     size = slots_count(probe) * sizeof(struct io_slot);

	return (size + page - 1) & ~(page - 1);
}

static int slots_map(struct probe *probe)
{
	const struct iolat *skel = (const struct iolat *)probe->skeleton;
	void *slots;

	if (!slots_count(probe))
		return 0;
	slots = mmap(NULL, slots_size(probe), PROT_READ, MAP_SHARED,
		     bpf_map__fd(skel->maps.io_slots), 0);
	if (slots == MAP_FAILED)
		return -errno;
	probe->slots = slots;
	return 0;
}

const struct io_slot *probe_io_slots(const struct probe *probe, size_t *n_out)
{
	*n_out = probe->slots ? slots_count(probe) : 0;
	return probe->slots;
}

/*
 * Attaches programs in this order: first those that see the end of an I/O operation, then those
 * that see its beginning. In the other order, the end of an operation could be missed, and the
 * probe would take the end of a later operation for it.
 */
static int iolat_attach(struct probe *probe)
{
	const struct iolat *skel = (const struct iolat *)probe->skeleton;
	struct bpf_program *last = skel->progs.on_sys_enter, *program;
	int r = slots_map(probe);

	bpf_object__for_each_program(program, probe->object)
	{
		/* Skip the BPF programs for kprobes: iolat_layers_attach() attaches them. */
		if (r || !bpf_program__autoload(program) || program == last ||
		    program == skel->progs.on_function_in || program == skel->progs.on_function_out)
			continue;
		r = probe_attach_one(probe, program);
	}
	if (!r)
		r = iolat_layers_attach(probe);
	return r || !bpf_program__autoload(last) ? r : probe_attach_one(probe, last);
}

/*
 * Opens the skeleton. If the kernel lacks bpf_rdonly_cast(), uses the BPF object iolat_plain
 * instead, which does not call this function and is the same otherwise.
 */
static int iolat_open(struct probe_skeleton **out)
{
	struct iolat *skel = calloc(1, sizeof(*skel));
	struct bpf_object_skeleton *skeleton;
	int r;

	if (!skel)
		return -ENOMEM;
	*out = (struct probe_skeleton *)skel;
	r = iolat__create_skeleton(skel);
	if (r)
		return r;
	skeleton = skel->skeleton;
	if (!kernel_btf_has("bpf_rdonly_cast", BTF_KIND_FUNC))
		skeleton->data = (void *)(uintptr_t)iolat_plain__elf_bytes(&skeleton->data_sz);
	return bpf_object__open_skeleton(skeleton, NULL);
}

static struct cut *iolat_cut(const struct probe_skeleton *skeleton)
{
	const struct iolat *skel = (const struct iolat *)skeleton;

	return skel->bss ? &skel->bss->cut : NULL;
}

static void iolat_close(struct probe *probe)
{
	if (probe->slots)
		munmap(probe->slots, slots_size(probe));
	probe->slots = NULL;
	iolat_layers_free(probe);
}

static const char *iolat_hook(const struct probe *probe)
{
	return probe->is_on ? iolat_layers_hook(probe) : "system calls and block requests";
}

static bool iolat_is_enabled(const struct config *config)
{
	return config->iolat_enabled;
}

/*
 * Returns the maximum number of entries in the BPF map of one window. It is higher if system calls
 * are recorded, because more processes make system calls than wait for disks.
 */
static uint64_t iolat_keys_max(const struct probe_options *options)
{
	const struct config *config = options->config;
	const bool has_calls = options->is_small || io_layer_parse(config->iolat_top) < IO_LAYER_FS;

	return has_calls ? KEYS_WITH_CALLS * config->iolat_max_keys : config->iolat_max_keys;
}

static int64_t iolat_sample_below(const struct config *config)
{
	return config->iolat_sample_below_ns;
}

static uint64_t iolat_sample_least(const struct probe *probe)
{
	return (uint64_t)probe->options.config->iolat_slow_ns;
}

const struct probe_ops probe_iolat_ops = {
	.is_enabled = iolat_is_enabled,
	.sample_below = iolat_sample_below,
	.sample_least = iolat_sample_least,
	.keys_max = iolat_keys_max,
	.open = iolat_open,
	.configure = iolat_configure,
	.cut = iolat_cut,
	.attach = iolat_attach,
	.hook = iolat_hook,
	.blind = iolat_layers_blind,
	.close = iolat_close,
};
