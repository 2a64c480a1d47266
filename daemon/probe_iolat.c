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
#include "daemon/broker.h"
#include "daemon/io_calls.h"
#include "daemon/probe_types.h"
#include "proto/base.h"

#include "iolat.skel.h"
#include "iolat_plain.skel.h"

/* Stacks of slow operations only. */
enum { RING = 512 << 10, SEEN = 4096, LAYER_TEXT = 160 };

/* One that a file system has, or the VFS; where it is found, two programs. */
enum { FILE_SYSTEMS = 4, FUNCTIONS = 4 };

static const uint8_t function_ops[FUNCTIONS] = { IO_OP_READ, IO_OP_WRITE, IO_OP_SYNC, IO_OP_OPEN };

static const struct {
	const char *name;
	const char *functions[FUNCTIONS]; /* in the order of function_ops */
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
	bool has_fentry;
	bool by_fentry[FILE_SYSTEMS]; /* the others are tried by kprobe, if that is there */
	bool has_kprobes;
	bool is_refused; /* what the configuration wants; the probe has the reason */
	bool has_throttle;
	char hook[LAYER_TEXT];
	char blind[4][LAYER_TEXT];
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

/*
 * Programs for the functions of a file system, if all are in the kernel itself: without CAP_SYS_ADMIN
 * no BTF of a module can be named (BPF_BTF_GET_FD_BY_ID), and so no function of one.
 */
static bool fentry_choose(struct probe *probe, const struct btf *btf, size_t i)
{
	const char *const *functions = file_systems[i].functions;
	size_t k;

	for (k = 0; k < FUNCTIONS; k++)
		if (btf__find_by_name_kind(btf, functions[k], BTF_KIND_FUNC) < 0)
			return false;
	for (k = 0; k < FUNCTIONS; k++) {
		bpf_program__set_autoload(function_program(probe, functions[k], "in"), true);
		bpf_program__set_autoload(function_program(probe, functions[k], "out"), true);
	}
	return true;
}

static void functions_blind(struct probe *probe, const char *tried, int r)
{
	struct probe_layers *layers = probe->layers;

	blind_add(layers,
		  "the layers of the VFS and of file systems: no program may be "
		  "attached to functions here (%s: %s)",
		  tried, strerror(-r));
	if (strcmp(probe->options.config->iolat_hook, "auto") == 0)
		return;
	layers->is_refused = true;
	probe_fail(probe, "%s: %s", tried, strerror(-r));
}

/* By fentry, else by kprobe, else not at all: not by both, which would count twice. */
static void functions_hook(struct probe *probe)
{
	const char *wanted = probe->options.config->iolat_hook;
	struct probe_layers *layers = probe->layers;
	struct btf *btf = NULL;
	int r = -EOPNOTSUPP;
	size_t i;

	if (strcmp(wanted, "kprobe") != 0)
		r = probe_types(&btf) ? -ENOENT : fentry_try(btf);
	layers->has_fentry = r == 0;
	for (i = 0; i < FILE_SYSTEMS && layers->has_fentry; i++)
		layers->by_fentry[i] = fentry_choose(probe, btf, i);
	if (strcmp(wanted, "fentry") != 0)
		layers->has_kprobes =
			access("/sys/bus/event_source/devices/kprobe/type", R_OK) == 0;
	bpf_program__set_autoload(probe->iolat->progs.on_function_in, layers->has_kprobes);
	bpf_program__set_autoload(probe->iolat->progs.on_function_out, layers->has_kprobes);
	if (!layers->has_fentry && !layers->has_kprobes)
		functions_blind(probe, strcmp(wanted, "auto") == 0 ? "fentry" : wanted, r);
}

static void layers_choose(struct probe *probe)
{
	struct probe_layers *layers = probe->layers;

	snprintf(layers->hook, sizeof(layers->hook), "system calls and block requests by tp_btf");
	functions_hook(probe);
	layers->has_throttle =
		layers->has_fentry && probe_types_have("__blk_throtl_bio", BTF_KIND_FUNC);
	if (!layers->has_throttle)
		blind_add(layers, "time that io.max holds a request back, which is part of the "
				  "time asleep here");
	bpf_program__set_autoload(probe->iolat->progs.on_throttle, layers->has_throttle);
	bpf_program__set_autoload(probe->iolat->progs.on_request_start,
				  probe_types_have("btf_trace_block_io_start", BTF_KIND_TYPEDEF));
	probe->iolat->rodata->has_throttle = layers->has_throttle;
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

/* Of file system i, or the VFS, the function k. */
static int kprobes_attach_one(struct probe *probe, size_t i, size_t k)
{
	const char *function = file_systems[i].functions[k];
	const uint8_t op = function_ops[k];
	const bool takes_iocb = i > 0 && (op == IO_OP_READ || op == IO_OP_WRITE);
	uint64_t cookie = IO_COOKIE(i ? IO_LAYER_FS : IO_LAYER_VFS, op,
				    op == IO_OP_OPEN ? IO_ARGUMENT_SECOND :
				    takes_iocb	     ? IO_ARGUMENT_IOCB :
						       IO_ARGUMENT_FIRST);
	int r = probe_attach_kprobe(
		probe, probe->iolat->progs.on_function_out,
		&(const struct broker_kprobe){ .function = function, .is_return = true }, cookie);

	return r ? r :
		   probe_attach_kprobe(probe, probe->iolat->progs.on_function_in,
				       &(const struct broker_kprobe){ .function = function },
				       cookie);
}

/* The first error is of the first function that is not there, or that is refused. */
static int kprobes_attach_all(struct probe *probe, size_t i)
{
	size_t k;
	int r = 0;

	for (k = 0; k < FUNCTIONS && !r; k++)
		r = kprobes_attach_one(probe, i, k);
	return r;
}

/* What fentry cannot have; that a file system is there, attaching tells. */
static void functions_attach(struct probe *probe)
{
	struct probe_layers *layers = probe->layers;
	char absent[LAYER_TEXT] = "", fentry[LAYER_TEXT] = "", kprobe[LAYER_TEXT] = "";
	int r = 0, first = 0;
	size_t i;

	for (i = 0; i < FILE_SYSTEMS; i++) {
		r = layers->by_fentry[i] ? 0 :
		    layers->has_kprobes	 ? kprobes_attach_all(probe, i) :
					   -ENOENT;
		first = first ? first : r;
		names_add(r ? absent : layers->by_fentry[i] ? fentry : kprobe,
			  file_systems[i].name);
	}
	if (!fentry[0] && !kprobe[0]) {
		functions_blind(probe, "kprobe", first);
		return;
	}
	snprintf(layers->hook, sizeof(layers->hook),
		 "system calls and block requests by tp_btf, %.40s%s%s%.40s%s", fentry,
		 fentry[0] ? " by fentry" : "", fentry[0] && kprobe[0] ? ", " : "", kprobe,
		 kprobe[0] ? " by kprobe" : "");
	if (absent[0])
		blind_add(layers,
			  "%.80s: not in this kernel (or its module was not loaded when "
			  "stackd started)",
			  absent);
	if (kprobe[0])
		blind_add(layers,
			  "%.40s: operations of one kind above 10, or twice the CPUs, at a "
			  "time: a kprobe does not see their ends",
			  kprobe);
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
	if (!r && (probe->layers->has_fentry || probe->layers->has_kprobes))
		functions_attach(probe);
	if (!r && probe->layers->is_refused)
		r = -EOPNOTSUPP;
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
	layers_choose(probe);
	r = probe->layers->is_refused ? -EOPNOTSUPP : skeleton_configure(probe);
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
		if (!probe->layers->is_refused)
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
