/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/multi_attach.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "common/base.h"
#include "daemon/broker/broker.h"

/*
 * WORKERS: maximum number of threads that attach or detach functions at the same time; each waits
 * for one or two RCU grace periods per function. NAMES_MAX: maximum number of functions that are
 * named in the message about functions that the kernel refused.
 */
enum { WORKERS = 16, NAMES_MAX = 5 };

struct multi_attach {
	struct broker *broker;
	const struct targets *targets;
	int program_fd;
	char path[32];		  /* the program or library, as the /proc path of targets->fd */
	unsigned long *addresses; /* addresses of the targets; NULL outside multi_open() */
	unsigned long *counters;  /* file offsets of the targets' USDT semaphores (counters); NULL
				     outside multi_open() */
	int *fds; /* one fd per target; -1: the target is not attached, or is attached by the fd of
		     an earlier target */
	size_t n;
	size_t attached;
	size_t refused;
	int error; /* negative errno of the last target that the kernel refused */
	char names[256];
	pthread_mutex_t lock; /* guards attached, refused, error and names while workers run */
	_Atomic size_t next;  /* index of the target that the next free worker takes */
};

/*
 * The argument of the bpf() system call that links a BPF program to many addresses of a file (Linux
 * 6.6, 89ae89f53d20). The headers and the libbpf of Debian 12 do not define it.
 */
struct uprobe_multi {
	uint32_t program_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t counters;
	uint64_t cookies;
	uint32_t n;
	uint32_t link_flags;
	uint32_t pid; /* process to trace; 0: all processes */
	uint32_t pad;
};

static int uprobe_link(int program_fd, const char *path, const unsigned long *offsets,
		       const unsigned long *counters, size_t n)
{
	struct uprobe_multi attr = {
		.program_fd = (uint32_t)program_fd,
		.attach_type = MULTI_ATTACH_UPROBE,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.counters = (uintptr_t)counters,
		.n = (uint32_t)n,
	};
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

static int kprobe_link(int program_fd, const unsigned long *addresses, size_t n)
{
	LIBBPF_OPTS(bpf_link_create_opts, options);

	options.kprobe_multi.addrs = addresses;
	options.kprobe_multi.cnt = (uint32_t)n;
	return bpf_link_create(program_fd, 0, BPF_TRACE_KPROBE_MULTI, &options);
}

/*
 * Loads a BPF program that does nothing, for a test. Returns its descriptor, or a negative errno.
 */
static int try_load(enum bpf_attach_type type)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "stackd_try", "GPL", insns, ARRAY_SIZE(insns),
			     &options);
}

/*
 * Attaches a BPF program to an address at which no function starts, as a test. If the error is not
 * -EOPNOTSUPP, the kernel has looked at the address: it can attach a program to many functions.
 */
bool multi_attach_has_kernel(void)
{
	const unsigned long nowhere = 1;
	int fd = try_load(BPF_TRACE_KPROBE_MULTI);
	int link = fd < 0 ? -EOPNOTSUPP : kprobe_link(fd, &nowhere, 1);

	closep(&fd);
	if (link >= 0)
		close(link);
	return link != -EOPNOTSUPP;
}

/*
 * Attaches a BPF program to a directory, as a test. If the error is -EBADF, the kernel has looked
 * at the path: it can attach a program to many addresses of a file.
 */
bool multi_attach_has_user(void)
{
	const unsigned long nowhere = 0;
	int fd = try_load(MULTI_ATTACH_UPROBE);
	int link = fd < 0 ? -EINVAL : uprobe_link(fd, "/", &nowhere, NULL, 1);

	closep(&fd);
	if (link >= 0)
		close(link);
	return link == -EBADF;
}

const char multi_attach_no_functions[] =
	"this kernel lets no function of its own be traced (it has neither kprobes nor fprobe): "
	"tracepoints (t:) and functions of programs (u:) can be";

static bool has_functions;

static void functions_try(void)
{
	has_functions = access("/sys/bus/event_source/devices/kprobe/type", R_OK) == 0 ||
			multi_attach_has_kernel();
}

bool multi_attach_has_functions(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, functions_try);
	return has_functions;
}

const char *multi_attach_example(void)
{
	return multi_attach_has_functions() ? "'vfs_*'" : "t:sched:sched_process_exec";
}

/* Notes that the kernel refused to attach to target i; r is the negative errno. */
static void note_refused(struct multi_attach *calls, size_t i, int r)
{
	size_t used = strlen(calls->names);

	calls->error = r;
	if (calls->refused++ < NAMES_MAX)
		snprintf(calls->names + used, sizeof(calls->names) - used, "%s%.60s",
			 used ? ", " : "", calls->targets->v[i].name);
	else if (calls->refused == NAMES_MAX + 1)
		snprintf(calls->names + used, sizeof(calls->names) - used, ", ...");
}

static int multi_link(const struct multi_attach *calls, size_t from, size_t n)
{
	if (calls->targets->kind == TARGET_FUNCTION)
		return kprobe_link(calls->program_fd, calls->addresses + from, n);
	return uprobe_link(calls->program_fd, calls->path, calls->addresses + from,
			   calls->counters + from, n);
}

/*
 * Attaches to n targets at once, beginning with target `from`. If the kernel cannot trace one of
 * them, it refuses all. In that case tries each half of the targets separately, and each half of
 * such a half, down to single targets.
 */
static void attach_range(struct multi_attach *calls, size_t from, size_t n)
{
	int fd = multi_link(calls, from, n);

	if (fd >= 0) {
		calls->fds[from] = fd;
		calls->attached += n;
	} else if (n == 1 || fd == -EPERM || fd == -EACCES || fd == -ENOMEM) {
		for (size_t i = from; i < from + n; i++)
			note_refused(calls, i, fd);
	} else {
		attach_range(calls, from, n / 2);
		attach_range(calls, from + n / 2, n - n / 2);
	}
}

static int multi_open(struct multi_attach *calls)
{
	_cleanup_(freep) unsigned long *addresses = calloc(calls->n, sizeof(*addresses));
	_cleanup_(freep) unsigned long *counters = calloc(calls->n, sizeof(*counters));
	size_t i;

	if (!addresses || !counters)
		return -ENOMEM;
	for (i = 0; i < calls->n; i++) {
		addresses[i] = calls->targets->v[i].address;
		counters[i] = calls->targets->v[i].counter;
	}
	calls->addresses = addresses;
	calls->counters = counters;
	attach_range(calls, 0, calls->n);
	calls->addresses = calls->counters = NULL;
	return 0;
}

/*
 * Attaches the BPF program to one target by a perf event, without a BPF link, which would take a
 * second descriptor per target.
 */
static int event_open(struct multi_attach *calls, const struct target *target, int *fd_out)
{
	const struct broker_uprobe uprobe = {
		.path = calls->path,
		.offset = target->address,
		.counter = target->counter,
	};
	const struct broker_kprobe kprobe = { .function = target->name };
	int fd, r = calls->targets->kind == TARGET_FUNCTION
			    ? broker_open_kprobe(calls->broker, &kprobe, &fd)
			    : broker_open_uprobe(calls->broker, &uprobe, &fd);

	if (r)
		return r;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, calls->program_fd) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	*fd_out = fd;
	return 0;
}

/* True if targets i and i - 1 are kernel functions of the same name. Targets are sorted by name. */
static bool has_name_of_previous(const struct targets *targets, size_t i)
{
	return targets->kind == TARGET_FUNCTION && i > 0 &&
	       strcmp(targets->v[i].name, targets->v[i - 1].name) == 0;
}

/*
 * Attaches to one target after the other, until none is left. Several threads run this function at
 * the same time, see work().
 */
static void *open_each(void *data)
{
	struct multi_attach *calls = data;
	size_t i;
	int r;

	while ((i = atomic_fetch_add(&calls->next, 1)) < calls->n) {
		/*
		 * A kprobe names its function. If several functions have this name, the kernel
		 * always takes the same one of them: attach to it only once.
		 */
		r = has_name_of_previous(calls->targets, i)
			    ? -ENOTUNIQ
			    : event_open(calls, &calls->targets->v[i], &calls->fds[i]);
		pthread_mutex_lock(&calls->lock);
		if (r)
			note_refused(calls, i, r);
		else
			calls->attached++;
		pthread_mutex_unlock(&calls->lock);
	}
	return NULL;
}

static void *close_each(void *data)
{
	struct multi_attach *calls = data;
	size_t i;

	while ((i = atomic_fetch_add(&calls->next, 1)) < calls->n)
		closep(&calls->fds[i]);
	return NULL;
}

/*
 * Calls `run` on this thread and on as many other threads as can be created, WORKERS threads at
 * most. Returns when `run` has returned on all of them.
 */
static void work(struct multi_attach *calls, void *(*run)(void *data))
{
	pthread_t threads[WORKERS - 1];
	size_t n = 0, wanted = calls->n < WORKERS ? calls->n : WORKERS;

	atomic_store(&calls->next, 0);
	while (n + 1 < wanted && pthread_create(&threads[n], NULL, run, calls) == 0)
		n++;
	run(calls);
	while (n > 0)
		pthread_join(threads[--n], NULL);
}

static struct multi_attach *calls_new(size_t n)
{
	struct multi_attach *calls = calloc(1, sizeof(*calls));

	if (!calls)
		return NULL;
	calls->fds = calloc(n + 1, sizeof(*calls->fds));
	if (!calls->fds) {
		free(calls);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		calls->fds[i] = -1;
	pthread_mutex_init(&calls->lock, NULL);
	calls->n = n;
	return calls;
}

/*
 * If the kernel refused functions, writes their names and the kernel's error to `why` (size bytes).
 */
static void explain(const struct multi_attach *calls, char *why, size_t size)
{
	if (calls->refused)
		snprintf(why, size, "none of these can be traced: %s (%s)", calls->names,
			 strerror(-calls->error));
}

int multi_attach_open(struct broker *broker, int program_fd, const struct targets *targets,
		      bool is_multi, struct multi_attach **out, char *why, size_t size)
{
	struct multi_attach *calls = calls_new(targets->n);
	int r = calls ? 0 : -ENOMEM;

	if (r)
		return r;
	calls->broker = broker;
	calls->targets = targets;
	calls->program_fd = program_fd;
	snprintf(calls->path, sizeof(calls->path), "/proc/self/fd/%d", targets->fd);
	if (is_multi)
		r = multi_open(calls);
	else
		work(calls, open_each);
	calls->targets = NULL;
	if (!r && !calls->attached)
		r = calls->error ? calls->error : -ENOENT;
	if (r) {
		explain(calls, why, size);
		multi_attach_close(calls);
		return r;
	}
	*out = calls;
	return 0;
}

struct multi_attach *multi_attach_close(struct multi_attach *calls)
{
	if (!calls)
		return NULL;
	work(calls, close_each);
	pthread_mutex_destroy(&calls->lock);
	free(calls->fds);
	free(calls);
	return NULL;
}

size_t multi_attach_attached(const struct multi_attach *calls)
{
	return calls->attached;
}

size_t multi_attach_refused(const struct multi_attach *calls)
{
	return calls->refused;
}

const char *multi_attach_refused_names(const struct multi_attach *calls)
{
	return calls->names;
}
