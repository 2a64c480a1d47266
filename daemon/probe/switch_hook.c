/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/switch_hook.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>

#include "common/base.h"
#include "daemon/probe/kernel_btf.h"
#include "daemon/symbol/kallsyms_line.h"

/* The values of the setting `hook` of the section [probe.offcpu], apart from "auto". */
static const char *const hook_words[HOOK_N] = {
	[HOOK_SCHED_EXIT] = "sched_exit",
	[HOOK_FINISH_SWITCH] = "finish_switch",
	[HOOK_SWITCH_OUT] = "switch_out",
};

static const char *const hook_names[HOOK_N] = {
	[HOOK_SCHED_EXIT] = "tp_btf/sched_exit_tp",
	[HOOK_FINISH_SWITCH] = "kprobe/finish_task_switch",
	[HOOK_SWITCH_OUT] = "tp_btf/sched_switch",
};

const char *switch_hook_name(const struct probe *probe)
{
	return hook_names[probe->hook];
}

/*
 * Finds the kernel's symbol for finish_task_switch(). Because the function is static, compilers may
 * add a suffix to its name (.isra.0, .constprop.0).
 */
static int finish_switch_symbol(char *name, size_t size)
{
	_cleanup_(fclosep) FILE *f = fopen(KALLSYMS_PATH, "re");
	_cleanup_(freep) char *text = NULL;
	struct kallsyms_line line;
	size_t room = 0;

	if (!f)
		return -errno;
	while (getline(&text, &room, f) > 0) {
		if (kallsyms_line_parse(text, &line) || (line.type | 32) != 't')
			continue;
		if (strncmp(line.name, "finish_task_switch", 18) != 0 || strstr(line.name, ".cold"))
			continue;
		if (line.name[18] != '\0' && line.name[18] != '.')
			continue;
		snprintf(name, size, "%s", line.name);
		return 0;
	}
	return -ENOENT;
}

/*
 * Returns NULL if the kernel may support this hook. Else returns a text that says what the kernel
 * lacks.
 */
static const char *hook_missing(unsigned int hook)
{
	char symbol[256];

	if (hook == HOOK_SCHED_EXIT && !kernel_btf_has("btf_trace_sched_exit_tp", BTF_KIND_TYPEDEF))
		return "the kernel has no sched_exit_tp (6.18)";
	if (hook == HOOK_FINISH_SWITCH && finish_switch_symbol(symbol, sizeof(symbol)))
		return "the kernel has no finish_task_switch to probe";
	return NULL;
}

int switch_hook_choose(struct probe *probe)
{
	const char *wanted = probe->options.config->offcpu_hook, *missing;
	bool is_auto = strcmp(wanted, "auto") == 0;
	unsigned int hook;
	int r = -ENOENT;

	for (hook = 0; hook < HOOK_N; hook++) {
		if (!is_auto && strcmp(wanted, hook_words[hook]) != 0)
			continue;
		missing = hook_missing(hook);
		if (missing) {
			probe_fail(probe, "%s", missing);
			continue;
		}
		probe->hook = hook;
		r = probe_try(probe);
		if (!r)
			return 0;
	}
	return r;
}

int switch_hook_configure(struct probe *probe, struct bpf_program *sched_exit,
			  struct bpf_program *finish_switch)
{
	int r = bpf_program__set_autoload(sched_exit, probe->hook == HOOK_SCHED_EXIT);

	return r ? r : bpf_program__set_autoload(finish_switch, probe->hook == HOOK_FINISH_SWITCH);
}

int switch_hook_attach(struct probe *probe, struct bpf_program *sched_exit,
		       struct bpf_program *finish_switch)
{
	char symbol[256];
	int r;

	if (probe->hook == HOOK_SCHED_EXIT)
		return probe_attach_one(probe, sched_exit);
	if (probe->hook != HOOK_FINISH_SWITCH)
		return 0;
	r = finish_switch_symbol(symbol, sizeof(symbol));
	return r ? r
		 : probe_attach_kprobe(probe, finish_switch,
				       &(const struct broker_kprobe){ .function = symbol }, 0);
}
