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
#include "daemon/probe_layers.h"
#include "daemon/probe_types.h"
#include "proto/base.h"

#include "iolat.skel.h"
#include "iolat_plain.skel.h"

/* Stacks of slow operations only. */
enum { RING = 512 << 10, SEEN = 4096 };

static int programs_choose(struct probe *probe)
{
	const bool has_start = probe_types_have("btf_trace_block_io_start", BTF_KIND_TYPEDEF);
	int r = probe_layers_new(probe);

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
	return r ? r : probe_attach_one(probe, probe->iolat->progs.on_sys_enter);
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
	probe_layers_free(probe);
}

void probe_iolat_status(const struct probe *probe, struct probe_status *out)
{
	probe_layers_status(probe, out);
}
