/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens probes of any kind, each through the struct probe_ops of its kind. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/probe/internal.h"
#include "daemon/probe/kernel_btf.h"
#include "daemon/probe/libbpf_log.h"
#include "daemon/probe/multi_attach.h"

static const struct probe_ops *const kinds[] = { PROBE_KINDS(PROBE_OPS_ROW) };

_Static_assert(ARRAY_SIZE(kinds) == PROBE_KIND_N, "every kind has its ops");

bool probe_is_enabled(enum probe_kind kind, const struct config *config)
{
	return kinds[kind]->is_enabled && kinds[kind]->is_enabled(config);
}

int64_t probe_min_wait(enum probe_kind kind, const struct config *config)
{
	return kinds[kind]->min_wait ? kinds[kind]->min_wait(config) : 0;
}

int64_t probe_sample_below_setting(enum probe_kind kind, const struct config *config)
{
	return kinds[kind]->sample_below ? kinds[kind]->sample_below(config) : 0;
}

/* Sets probe->reason for a probe that the settings disable: tells the user how to get its data. */
static void explain_disabled(struct probe *probe)
{
	const enum probe_kind kind = probe->options.kind;
	const char *name = probe_kind_name(kind);

	if (probe_kind_has(kind, PROBE_CLIENTS))
		probe_fail(probe, "on demand: stackctl record %s%s%s", name,
			   probe_kind_has(kind, PROBE_FUNCTIONS) ? " " : "",
			   probe_kind_has(kind, PROBE_FUNCTIONS) ? multi_attach_example() : "");
	else
		probe_fail(probe, "[probe.%s] enabled = no; for a while: stackctl record %s", name,
			   name);
}

int probe_open(const struct probe_options *options, struct probe **out, char *reason, size_t size)
{
	const struct probe_ops *ops = kinds[options->kind];
	struct probe *probe = calloc(1, sizeof(*probe));
	int r;

	if (!probe)
		return -ENOMEM;
	libbpf_log_setup();
	probe->options = *options;
	probe->ops = ops;
	probe_set_sample_below(probe, (uint64_t)options->sample_below_ns);
	probe->window_fds[0] = probe->window_fds[1] = -1;
	if (options->is_disabled) {
		explain_disabled(probe);
		*out = probe;
		return 0;
	}
	probe->max_keys = ops->keys_max(options);
	kernel_btf_hold();
	r = ops->choose ? ops->choose(probe) : probe_try(probe);
	kernel_btf_release();
	probe->is_on = r == 0;
	if (ops->is_essential && (r == -EPERM || r == -EACCES)) {
		snprintf(reason, size, "the kernel refuses BPF tracing: %s", probe->reason);
		free(probe);
		return -EPERM;
	}
	*out = probe;
	return 0;
}
