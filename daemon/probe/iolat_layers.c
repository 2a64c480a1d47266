/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/iolat_layers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>

#include "bpf/io_shared.h"
#include "common/base.h"
#include "common/note_words.h"
#include "daemon/base/io_names.h"
#include "daemon/broker/broker.h"
#include "daemon/probe/kernel_btf.h"

#include "iolat.skel.h"

enum { LAYER_TEXT = 160, BLIND_MAX = 8 };

/* VFS: index of the VFS in file_systems[]. FILE_SYSTEMS: number of entries of file_systems[]. */
enum { VFS, FILE_SYSTEMS = 4 };

enum { SYNC = 2, FUNCTIONS = 4 };

static const uint8_t function_ops[FUNCTIONS] = { IO_OP_READ, IO_OP_WRITE, IO_OP_SYNC, IO_OP_OPEN };

static const struct {
	const char *name;
	const char *functions[FUNCTIONS]; /* kernel function for each entry of function_ops[] */
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

#define CALL_NAME(function) #function,
static const char *const call_functions[] = { IO_CALL_FUNCTIONS(CALL_NAME) };

/*
 * How BPF programs are attached to the functions of a file system. METHOD_ABSENT: the kernel does
 * not have the file system. METHOD_NONE: no method works. A file system has only one method: with
 * two, each operation would be counted twice.
 */
enum attach_method { METHOD_ABSENT, METHOD_NONE, METHOD_FENTRY, METHOD_KPROBE };

struct iolat_layers {
	int top;      /* highest layer of the I/O path that the probe records: enum io_layer */
	size_t first; /* index of the first entry of file_systems[] that the probe records;
			 FILE_SYSTEMS: it records none */
	enum attach_method methods[FILE_SYSTEMS];
	bool has_fentry;
	bool has_call_functions; /* true: fentry programs see system calls; false: tracepoints */
	const char *unseen_syncs;
	bool is_unhooked; /* no program may be attached to the functions of file systems */
	bool is_refused;
	char hook[LAYER_TEXT];
	char blind[BLIND_MAX][LAYER_TEXT];
	size_t n_blind;
};

static void blind_add(struct iolat_layers *layers, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void blind_add(struct iolat_layers *layers, const char *format, ...)
{
	va_list args;

	if (layers->n_blind == ARRAY_SIZE(layers->blind))
		return;
	va_start(args, format);
	vsnprintf(layers->blind[layers->n_blind++], LAYER_TEXT, format, args);
	va_end(args);
}

/*
 * Loads a test program, which sets a flag in a map when it runs. If btf_id is not 0, it is an
 * fentry program for the kernel function with this BTF id; else it is a kprobe program. Returns the
 * program's descriptor, or a negative errno.
 */
static int flag_program(int flag_map, uint32_t btf_id)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_VALUE,
		  .imm = flag_map },
		{},
		{ .code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_1, .imm = 1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .attach_btf_id = btf_id);

	if (btf_id)
		opts.expected_attach_type = BPF_TRACE_FENTRY;
	return bpf_prog_load(btf_id ? BPF_PROG_TYPE_TRACING : BPF_PROG_TYPE_KPROBE, "stackd_try",
			     "GPL", insns, ARRAY_SIZE(insns), &opts);
}

/*
 * Attaches a BPF program as a test, see flag_program(), to a kernel function by fentry. Returns the
 * descriptor of the link, which keeps the program attached, or a negative errno.
 */
static int fentry_try(const char *function, int flag_map)
{
	_cleanup_(closep) int program = -1;
	struct btf *btf;
	int id;

	if (kernel_btf_get(&btf))
		return -ENOENT;
	id = btf__find_by_name_kind(btf, function, BTF_KIND_FUNC);
	if (id < 0)
		return id;
	program = flag_program(flag_map, (uint32_t)id);
	return program < 0 ? program : bpf_link_create(program, 0, BPF_TRACE_FENTRY, NULL);
}

static int kprobe_try(const struct probe *probe, const char *function, int flag_map)
{
	const struct broker_kprobe kprobe = { .function = function };
	_cleanup_(closep) int program = flag_program(flag_map, 0), event = -1;
	int link, r = program < 0 ? program
				  : broker_open_kprobe(probe->options.broker, &kprobe, &event);

	if (r)
		return r;
	link = bpf_link_create(program, event, BPF_PERF_EVENT, NULL);
	if (link < 0 || ioctl(event, PERF_EVENT_IOC_ENABLE, 0) == 0)
		return link;
	r = -errno;
	close(link);
	return r;
}

/*
 * Calls call(file). True if the test program (see flag_program()), which the caller has attached,
 * ran during this call. Also true if this cannot be tested.
 */
static bool flag_is_set(int flag_map, int (*call)(int fd), int file)
{
	uint32_t zero = 0, flag = 0;

	if (file < 0 || bpf_map_update_elem(flag_map, &zero, &flag, BPF_ANY))
		return true; /* cannot be tested: assume that the program runs */
	call(file);
	return bpf_map_lookup_elem(flag_map, &zero, &flag) || flag;
}

/*
 * Tests whether programs can be attached to kernel functions by this method, by attaching one to
 * vfs_fsync_range(). Returns a negative errno if not. Otherwise returns 0, and tests whether the
 * system calls fsync and fdatasync call this function, because some compilers inline it. Sets
 * *unseen_out to the names of the system calls that do not call it, or to NULL if both do.
 */
static int method_probe(const struct probe *probe, enum attach_method method,
			const char **unseen_out)
{
	const char *function = file_systems[VFS].functions[SYNC];
	_cleanup_(closep) int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "stackd_try", 4, 4, 1, NULL);
	_cleanup_(closep) int file = memfd_create("stackd", MFD_CLOEXEC), link = -1;
	bool has_fsync, has_fdatasync;

	if (map < 0)
		return map;
	link = method == METHOD_FENTRY ? fentry_try(function, map)
				       : kprobe_try(probe, function, map);
	if (link < 0)
		return link;
	has_fsync = flag_is_set(map, fsync, file);
	has_fdatasync = flag_is_set(map, fdatasync, file);
	*unseen_out = has_fdatasync ? (has_fsync ? NULL : "fsync")
		      : has_fsync   ? "fdatasync"
				    : "fsync and fdatasync";
	return 0;
}

static const char *requests_text(const struct iolat_layers *layers)
{
	return layers->top == IO_LAYER_SYSCALL && !layers->has_call_functions
		       ? "system calls and block requests by tp_btf"
		       : "block requests by tp_btf";
}

/*
 * Writes to `out` the names of the file systems for which layers->methods has this method, as in
 * "vfs, ext4". False if there are none.
 */
static bool names_by(const struct iolat_layers *layers, enum attach_method method, char *out,
		     size_t size)
{
	size_t i, n = 0;

	*out = '\0';
	for (i = layers->first; i < FILE_SYSTEMS; i++)
		if (layers->methods[i] == method && n < size)
			n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "",
					      file_systems[i].name);
	return n > 0;
}

/* Writes to layers->hook a text for users that says what is attached. */
static void hook_describe(struct iolat_layers *layers)
{
	const bool has_calls = layers->has_call_functions;
	char fentry[40], kprobe[40];

	names_by(layers, METHOD_FENTRY, fentry, sizeof(fentry));
	names_by(layers, METHOD_KPROBE, kprobe, sizeof(kprobe));
	snprintf(layers->hook, sizeof(layers->hook), "%s%s%s%s%s%s%s%s", requests_text(layers),
		 has_calls ? ", system calls" : "", fentry[0] ? ", " : "", fentry,
		 has_calls || fentry[0] ? " by fentry" : "", kprobe[0] ? ", " : "", kprobe,
		 kprobe[0] ? " by kprobe" : "");
}

/* True if the setting `hook` of the section [probe.iolat] has this value. */
static bool hook_is_only(const struct probe *probe, const char *hook)
{
	return strcmp(probe->options.config->iolat_hook, hook) == 0;
}

/*
 * `hook` is "fentry" or "kprobe". True if the setting `hook` of the section [probe.iolat] allows
 * it.
 */
static bool hook_is_allowed(const struct probe *probe, const char *hook)
{
	return hook_is_only(probe, hook) || hook_is_only(probe, "auto");
}

/*
 * Notes, also in layers->blind, that no program can be attached to the functions of file systems.
 * If the setting `hook` is not "auto", also marks the probe as refused.
 */
static void functions_blind(struct probe *probe, const char *tried, int r)
{
	struct iolat_layers *layers = probe->layers;

	if (layers->first == FILE_SYSTEMS)
		return;
	layers->is_unhooked = true;
	blind_add(layers,
		  "%s of file systems: no program may be attached to their functions (%s: %s)",
		  layers->first == VFS ? "the layers of the VFS and" : "the layer", tried,
		  strerror(-r));
	if (hook_is_only(probe, "auto"))
		return;
	layers->is_refused = true;
	probe_fail(probe, "%s: %s", tried, strerror(-r));
}

static struct bpf_program *function_program(const struct probe *probe, const char *function,
					    const char *side)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", function, side);
	return bpf_object__find_program_by_name(probe->object, name);
}

static void function_autoload(struct probe *probe, const char *function)
{
	bpf_program__set_autoload(function_program(probe, function, "in"), true);
	bpf_program__set_autoload(function_program(probe, function, "out"), true);
}

/*
 * Selects the fentry programs of all system calls and returns true. If the kernel lacks one of the
 * functions that they trace, selects none and returns false: the caller then uses the tracepoints.
 * Programs of both sorts together would count each call twice.
 */
static bool calls_choose(struct probe *probe)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(call_functions); i++)
		if (!kernel_btf_has(call_functions[i], BTF_KIND_FUNC))
			return false;
	for (i = 0; i < ARRAY_SIZE(call_functions); i++)
		function_autoload(probe, call_functions[i]);
	return true;
}

/*
 * Selects the fentry programs for the functions of file system i and returns true. If one of these
 * functions is not in the kernel itself but in a module, selects none and returns false. An fentry
 * program in a module needs the module's BTF, and reading that needs CAP_SYS_ADMIN
 * (BPF_BTF_GET_FD_BY_ID).
 */
static bool fentry_choose(struct probe *probe, size_t i)
{
	const char *const *functions = file_systems[i].functions;
	size_t k;

	for (k = 0; k < FUNCTIONS; k++)
		if (!kernel_btf_has(functions[k], BTF_KIND_FUNC))
			return false;
	for (k = 0; k < FUNCTIONS; k++)
		function_autoload(probe, functions[k]);
	return true;
}

/* True if file system i is in the kernel, or in a module that is loaded. */
static bool file_system_exists(size_t i)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/module/%s", file_systems[i].name);
	return kernel_btf_has(file_systems[i].functions[0], BTF_KIND_FUNC) ||
	       access(path, F_OK) == 0;
}

static void functions_choose(struct probe *probe)
{
	const struct iolat *skel = (const struct iolat *)probe->skeleton;
	const bool has_kprobes = hook_is_allowed(probe, "kprobe") &&
				 access("/sys/bus/event_source/devices/kprobe/type", R_OK) == 0;
	struct iolat_layers *layers = probe->layers;
	bool by_kprobe = false, has_fentry;
	int r = -EOPNOTSUPP;
	size_t i;

	if (hook_is_allowed(probe, "fentry"))
		r = method_probe(probe, METHOD_FENTRY, &layers->unseen_syncs);
	has_fentry = !r;
	layers->has_fentry = has_fentry;
	/*
	 * A client's session uses tracepoints, unless the settings demand fentry: verifying the
	 * fentry programs may take a minute.
	 */
	layers->has_call_functions = has_fentry && layers->top == IO_LAYER_SYSCALL &&
				     (!probe->options.is_small || hook_is_only(probe, "fentry")) &&
				     calls_choose(probe);
	if (!has_fentry && !has_kprobes) {
		functions_blind(probe, hook_is_allowed(probe, "fentry") ? "fentry" : "kprobe", r);
		return;
	}
	for (i = layers->first; i < FILE_SYSTEMS; i++) {
		if (!file_system_exists(i))
			continue;
		layers->methods[i] = has_fentry && fentry_choose(probe, i) ? METHOD_FENTRY
				     : has_kprobes			   ? METHOD_KPROBE
									   : METHOD_NONE;
		by_kprobe |= layers->methods[i] == METHOD_KPROBE;
	}
	if (layers->methods[VFS] == METHOD_KPROBE) /* errors are reported by kprobes_attach() */
		method_probe(probe, METHOD_KPROBE, &layers->unseen_syncs);
	bpf_program__set_autoload(skel->progs.on_function_in, by_kprobe);
	bpf_program__set_autoload(skel->progs.on_function_out, by_kprobe);
}

/*
 * The kernel may hold back a block request because of a cgroup's limit io.max. Selects the BPF
 * programs that measure the time for which it does so. These are fentry programs, because a return
 * probe cannot read the bio.
 */
static void throttle_choose(struct probe *probe)
{
	const struct iolat *skel = (const struct iolat *)probe->skeleton;
	struct iolat_layers *layers = probe->layers;
	const bool can = layers->has_fentry && kernel_btf_has("__blk_throtl_bio", BTF_KIND_FUNC);

	if (!can)
		blind_add(layers, "time that io.max holds a request back: it is counted as time "
				  "asleep");
	bpf_program__set_autoload(skel->progs.on_throttle, can);
	bpf_program__set_autoload(skel->progs.on_throttle_pass, can);
	if (!can)
		bpf_map__set_max_entries(skel->maps.throttled, 1);
	skel->rodata->has_throttle = can;
}

/*
 * Chooses the highest layer of the I/O path that is recorded. For the session that is always on,
 * this is a setting, because BPF programs on system calls also slow down reads of pipes and
 * sockets. A client's session records all layers.
 */
static void top_choose(struct probe *probe)
{
	struct iolat_layers *layers = probe->layers;
	const char *top = probe->options.config->iolat_top;

	layers->top = probe->options.is_small ? IO_LAYER_SYSCALL : io_layer_parse(top);
	layers->first = layers->top <= IO_LAYER_VFS  ? VFS
			: layers->top == IO_LAYER_FS ? VFS + 1
						     : FILE_SYSTEMS;
}

int iolat_layers_new(struct probe *probe)
{
	struct iolat_layers *layers = calloc(1, sizeof(*layers));

	if (!layers)
		return -ENOMEM;
	probe->layers = layers;
	top_choose(probe);
	functions_choose(probe);
	throttle_choose(probe);
	hook_describe(layers);
	return layers->is_refused ? -EOPNOTSUPP : 0;
}

/* Attaches kprobes to function k of file system i, first to its return, then to its entry. */
static int kprobes_attach_one(struct probe *probe, size_t i, size_t k)
{
	const struct iolat *skel = (const struct iolat *)probe->skeleton;
	const char *function = file_systems[i].functions[k];
	const uint8_t op = function_ops[k];
	const bool takes_iocb = i != VFS && (op == IO_OP_READ || op == IO_OP_WRITE);
	uint64_t cookie = IO_COOKIE(i == VFS ? IO_LAYER_VFS : IO_LAYER_FS, op,
				    op == IO_OP_OPEN ? IO_ARGUMENT_SECOND
				    : takes_iocb     ? IO_ARGUMENT_IOCB
						     : IO_ARGUMENT_FIRST);
	int r = probe_attach_kprobe(
		probe, skel->progs.on_function_out,
		&(const struct broker_kprobe){ .function = function, .is_return = true }, cookie);

	return r ? r
		 : probe_attach_kprobe(probe, skel->progs.on_function_in,
				       &(const struct broker_kprobe){ .function = function },
				       cookie);
}

/*
 * Attaches kprobes to all functions of file system i. 0, or a negative errno. If the kernel refuses
 * one of the kprobes, detaches the others, because users would take data of some functions for data
 * of all.
 */
static int kprobes_attach(struct probe *probe, size_t i)
{
	const size_t before = probe->n_links;
	size_t k;
	int r = 0;

	for (k = 0; k < FUNCTIONS && !r; k++)
		r = kprobes_attach_one(probe, i, k);
	if (!r)
		return 0;
	blind_add(probe->layers, "%s: %s by kprobe: %s", file_systems[i].name,
		  file_systems[i].functions[k - 1], strerror(-r));
	probe->layers->methods[i] = METHOD_NONE;
	while (probe->n_links > before)
		bpf_link__destroy(probe->links[--probe->n_links]);
	return r;
}

/*
 * Adds to layers->blind the I/O operations that cannot be seen with the chosen method of each file
 * system. Leaves out those whose kprobe the kernel refused, which kprobes_attach() has added.
 */
static void methods_blind(struct probe *probe)
{
	struct iolat_layers *layers = probe->layers;
	char names[64];

	if (names_by(layers, METHOD_ABSENT, names, sizeof(names)))
		blind_add(layers,
			  "%s: not in this kernel (or its module was not loaded when stackd "
			  "started)",
			  names);
	if (!hook_is_allowed(probe, "kprobe") &&
	    names_by(layers, METHOD_NONE, names, sizeof(names)))
		blind_add(layers,
			  "%s: in a kernel module, which fentry cannot trace without "
			  "CAP_SYS_ADMIN; a kprobe can ([probe.iolat] hook)",
			  names);
	if (layers->methods[VFS] > METHOD_NONE && layers->unseen_syncs)
		blind_add(layers,
			  "vfs: %s, which in this kernel does not call %s; the layers syscall "
			  "and fs show it",
			  layers->unseen_syncs, file_systems[VFS].functions[SYNC]);
	if (names_by(layers, METHOD_KPROBE, names, sizeof(names)))
		blind_add(layers,
			  "%s: more than 10 operations of one kind at a time, or twice the CPUs: "
			  "a kprobe does not see the ends of further ones",
			  names);
}

bool iolat_layers_have_calls(const struct probe *probe)
{
	return probe->layers->top == IO_LAYER_SYSCALL;
}

bool iolat_layers_have_call_functions(const struct probe *probe)
{
	return probe->layers->has_call_functions;
}

bool iolat_layers_have_functions(const struct probe *probe)
{
	size_t i;

	for (i = 0; i < FILE_SYSTEMS; i++)
		if (probe->layers->methods[i] > METHOD_NONE)
			return true;
	return false;
}

static int functions_attach(struct probe *probe)
{
	struct iolat_layers *layers = probe->layers;
	const size_t before = layers->n_blind;
	int r, first = 0;
	size_t i;

	if (!iolat_layers_have_functions(probe))
		return 0; /* no function can be traced, or none is to be traced */
	for (i = layers->first; i < FILE_SYSTEMS; i++) {
		r = layers->methods[i] == METHOD_KPROBE ? kprobes_attach(probe, i) : 0;
		first = first ? first : r;
	}
	hook_describe(layers);
	if (!iolat_layers_have_functions(probe)) {
		layers->n_blind = before;
		functions_blind(probe, "kprobe", first);
		return layers->is_refused ? -EOPNOTSUPP : 0;
	}
	methods_blind(probe);
	return 0;
}

/*
 * Adds the layers above the highest one that is recorded to layers->blind. Clients show this text
 * beside answers without I/O, see ABOVE in note_words.h: it fits into a line of a terminal.
 */
static void above_blind(struct probe *probe)
{
	struct iolat_layers *layers = probe->layers;
	const char *top = probe->options.config->iolat_top;

	if (layers->top == IO_LAYER_SYSCALL)
		return;
	if (layers->is_unhooked)
		blind_add(layers, ABOVE_DISKS "(%s is refused): stackctl record iolat",
			  hook_is_allowed(probe, "fentry") ? "fentry" : "kprobe");
	else
		blind_add(layers, ABOVE "%s ([probe.iolat] top): stackctl record iolat", top);
}

int iolat_layers_attach(struct probe *probe)
{
	int r = functions_attach(probe);

	above_blind(probe);
	return r;
}

const char *iolat_layers_hook(const struct probe *probe)
{
	return probe->layers->hook;
}

void iolat_layers_blind(const struct probe *probe, struct probe_status *out)
{
	size_t i;

	for (i = 0; i < probe->layers->n_blind; i++)
		out->blind[out->n_blind++] = probe->layers->blind[i];
}

void iolat_layers_free(struct probe *probe)
{
	free(probe->layers);
	probe->layers = NULL;
}
