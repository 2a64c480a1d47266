/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/internal.h"

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
#include "common/base.h"
#include "daemon/base/io_names.h"
#include "daemon/probe/iolat_layers.h"
#include "daemon/probe/kernel_btf.h"

#include "iolat.skel.h"
#include "iolat_plain.skel.h"

/* Stacks of slow operations only, of which requests have none. */
enum {
	RING = 512 << 10,
	SEEN = 4096,
	SMALL_RING = 128 << 10,
	SMALL_SEEN = 512,
	FEW_SLOTS =
		512, /* where those of pipes and sockets, which wait for long, are not followed */
};

/* Without them requests are made for no operation, and no thread is followed. */
static int operations_choose(struct probe *probe)
{
	const bool has_calls = probe_layers_have_calls(probe),
		   by_tracepoint = has_calls && !probe_layers_have_call_functions(probe),
		   has_operations = has_calls || probe_layers_have_functions(probe);
	struct iolat *skel = probe->iolat;

	skel->rodata->n_slots = has_calls ? IO_SLOTS : has_operations ? FEW_SLOTS : 0;
	bpf_program__set_autoload(skel->progs.on_sys_enter, by_tracepoint);
	bpf_program__set_autoload(skel->progs.on_sys_exit, by_tracepoint);
	bpf_program__set_autoload(skel->progs.on_thread_exit, has_operations);
	return bpf_map__set_max_entries(skel->maps.io_slots,
					has_operations ? skel->rodata->n_slots : 1);
}

static int programs_choose(struct probe *probe)
{
	const bool has_start = probe_types_have("btf_trace_block_io_start", BTF_KIND_TYPEDEF);
	int r = probe_layers_new(probe);

	if (!r)
		r = operations_choose(probe);
	probe->iolat->rodata->has_start = has_start;
	bpf_program__set_autoload(probe->iolat->progs.on_request_start, has_start);
	bpf_program__set_autoload(probe->iolat->progs.on_request_insert, !has_start);
	probe_warning_clear();
	return r;
}

static int skeleton_configure(struct probe *probe)
{
	const struct probe_options *options = &probe->options;
	struct iolat *skel = probe->iolat;
	const uint32_t ring = probe_layers_have_calls(probe) ? RING : SMALL_RING;

	skel->rodata->hash_seed = options->hash_seed;
	skel->rodata->max_rows = (uint32_t)(options->max_keys - options->max_keys / 4);
	skel->rodata->slow_ns = (uint64_t)options->config->iolat_slow_ns;
	skel->rodata->ring_wake_bytes = ring / 4;
	skel->rodata->ring_stack_bytes = ring - ring / 4;
	io_calls_fill(skel->rodata->io_calls, IO_CALLS);
	if (options->filter)
		memcpy(&skel->rodata->filter, options->filter, sizeof(*options->filter));
	return probe_prepare(probe, sizeof(struct io_key), sizeof(struct io_sums), ring,
			     ring == RING ? SEEN : SMALL_SEEN);
}

static size_t slots_size(const struct probe *probe)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE),
		     size = probe->iolat->rodata->n_slots * sizeof(struct io_slot);

	return (size + page - 1) & ~(page - 1);
}

static int slots_map(struct probe *probe)
{
	void *slots;

	if (!probe->iolat->rodata->n_slots)
		return 0;
	slots = mmap(NULL, slots_size(probe), PROT_READ, MAP_SHARED,
		     bpf_map__fd(probe->iolat->maps.io_slots), 0);
	if (slots == MAP_FAILED)
		return -errno;
	probe->slots = slots;
	return 0;
}

const struct io_slot *probe_io_slots(const struct probe *probe, size_t *n_out)
{
	*n_out = probe->slots ? probe->iolat->rodata->n_slots : 0;
	return probe->slots;
}

/* Ends before begins: what began before has no end that would be taken for another's. */
static int probe_attach(struct probe *probe)
{
	const struct bpf_program *last = probe->iolat->progs.on_sys_enter,
				 *in = probe->iolat->progs.on_function_in,
				 *out = probe->iolat->progs.on_function_out;
	struct bpf_program *program;
	int r = 0;

	bpf_object__for_each_program(program, probe->object)
	{
		if (r || !bpf_program__autoload(program) || program == last || program == in ||
		    program == out)
			continue;
		r = probe_attach_one(probe, program);
	}
	if (!r)
		r = probe_layers_attach(probe);
	return r || !bpf_program__autoload(last)
		       ? r
		       : probe_attach_one(probe, probe->iolat->progs.on_sys_enter);
}

/* The plain object where the kernel lacks what the other one calls; they are alike in the rest. */
static int skeleton_open(struct probe *probe)
{
	bool is_plain = !probe_types_have("bpf_rdonly_cast", BTF_KIND_FUNC);
	struct bpf_object_skeleton *skeleton;
	int r;

	probe->iolat = calloc(1, sizeof(*probe->iolat));
	if (!probe->iolat)
		return -ENOMEM;
	r = iolat__create_skeleton(probe->iolat);
	if (r)
		return r;
	skeleton = probe->iolat->skeleton;
	if (is_plain)
		skeleton->data = (void *)(uintptr_t)iolat_plain__elf_bytes(&skeleton->data_sz);
	return bpf_object__open_skeleton(skeleton, NULL);
}

static int probe_try(struct probe *probe)
{
	int r = skeleton_open(probe);

	if (r)
		return r;
	probe->object = probe->iolat->obj;
	r = programs_choose(probe);
	if (!r)
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

	probe_warning_clear();
	r = probe_try(probe);
	if (r) {
		if (!probe_layers_are_refused(probe))
			probe_fail(probe, "system calls and block requests: %s",
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
		munmap(probe->slots, slots_size(probe));
	probe->slots = NULL;
	iolat__destroy(probe->iolat);
	probe->iolat = NULL;
	probe_layers_free(probe);
}

void probe_iolat_status(const struct probe *probe, struct probe_status *out)
{
	probe_layers_status(probe, out);
}
