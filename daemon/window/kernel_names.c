/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/kernel_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/base/log.h"
#include "daemon/symbol/kallsyms.h"
#include "daemon/symbol/kallsyms_line.h"
#include "daemon/symbol/own_bpf.h"

/*
 * Minimum time between two reads of /proc/kallsyms. The file is read again when a kernel address
 * has no symbol, because a module may have been loaded since the last read, and when it is in
 * another tracer's BPF program: these come and go, and the file does not say where they end, so
 * that a new one can look like a part of an old one. A read takes some 80 ms of CPU time, which
 * would be a fifth of a budget of 4 % if it came every 10 s. So from the second time on, the time
 * is at least KERNEL_RELOAD_COST times what the last read took, but not more than
 * KERNEL_RELOAD_MAX_NS.
 */
#define KERNEL_RELOAD_NS     (10 * NS_PER_S)
#define KERNEL_RELOAD_MAX_NS (60 * NS_PER_S)
#define MODULES_EVERY_NS     (5 * NS_PER_S) /* how often the list of modules is looked at */
#define MODULES_PATH	     "/proc/modules"
enum { KERNEL_RELOAD_COST = 500 };

/*
 * Reads from /proc/kallsyms the addresses of two labels: the kernel puts the scheduler's functions
 * between them. struct kallsyms does not have these labels, because it has functions only.
 */
static void sched_text_read(struct kernel_names *names)
{
	_cleanup_(fclosep) FILE *f = fopen(KALLSYMS_PATH, "re");
	_cleanup_(freep) char *text = NULL;
	struct kallsyms_line line;
	size_t room = 0;

	while (f && getline(&text, &room, f) > 0) {
		if (kallsyms_line_parse(text, &line))
			continue;
		if (strcmp(line.name, "__sched_text_start") == 0)
			names->sched_start = line.address;
		else if (strcmp(line.name, "__sched_text_end") == 0)
			names->sched_end = line.address;
	}
}

/*
 * Returns a hash of the loaded modules and where they are; of none if the kernel has no modules.
 * Their use counts, which change all the time, do not count.
 */
static uint64_t modules_hash(void)
{
	_cleanup_(fclosep) FILE *f = fopen(MODULES_PATH, "re");
	uint64_t hash = HASH64_SEED, place[2];
	_cleanup_(freep) char *text = NULL;
	size_t room = 0;
	char name[64];

	while (f && getline(&text, &room, f) > 0) {
		if (sscanf(text, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, name, &place[0],
			   &place[1]) == 3)
			hash = hash64(hash64_string(hash, name), place, sizeof(place));
	}
	return hash;
}

static void kernel_load(struct kernel_names *names)
{
	const int64_t begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct kallsyms *symbols;
	int64_t wait_ns;
	int r;

	names->own_bpf = own_bpf_generation();
	names->modules = modules_hash();
	r = kallsyms_load(NULL, &symbols);
	wait_ns = KERNEL_RELOAD_COST * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns);
	if (!names->symbols || wait_ns < KERNEL_RELOAD_NS)
		wait_ns = KERNEL_RELOAD_NS;
	if (wait_ns > KERNEL_RELOAD_MAX_NS)
		wait_ns = KERNEL_RELOAD_MAX_NS;
	names->reload_ns = clock_ns(CLOCK_MONOTONIC) + wait_ns;
	if (r != names->status && r)
		log_err(r, "read the kernel's symbols from /proc/kallsyms");
	names->status = r;
	if (r)
		return;
	names->before = names->symbols;
	names->symbols = symbols;
	names->version++;
}

/* Looks up an address in the symbols that are loaded. False if they have no name for it. */
static bool kernel_find(const struct kernel_names *names, uint64_t ip, bool is_call, bool is_own,
			struct symbol *out)
{
	*out = (struct symbol){ .kind = FRAME_KERNEL, .file_offset = ip };
	if (!names->symbols || !kallsyms_lookup(names->symbols, ip, is_call, out))
		return false;
	if (is_own)
		out->module = OWN_BPF_MODULE;
	return true;
}

/* True if the symbols were read too long ago to name the address, for which they have `found`. */
static bool kernel_is_old(const struct kernel_names *names, const struct symbol *found, bool is_own)
{
	bool is_bpf = found->module && strcmp(found->module, "bpf") == 0;

	if (is_own)
		return names->own_bpf != own_bpf_generation();
	return (!found->name || is_bpf) && clock_ns(CLOCK_MONOTONIC) >= names->reload_ns;
}

void kernel_names_lookup(struct kernel_names *names, uint64_t ip, bool is_call, struct symbol *out)
{
	bool is_own = own_bpf_has(is_call ? ip - 1 : ip);

	kernel_find(names, ip, is_call, is_own, out);
	if (names->before || !kernel_is_old(names, out, is_own))
		return;
	kernel_load(names);
	kernel_find(names, ip, is_call, is_own, out);
}

void kernel_names_release(struct kernel_names *names)
{
	names->before = kallsyms_free(names->before);
}

void kernel_names_refresh(struct kernel_names *names)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (now < names->reload_ns || now - names->checked_ns < MODULES_EVERY_NS)
		return;
	names->checked_ns = now;
	if (modules_hash() == names->modules)
		return;
	kernel_load(names);
	kernel_names_release(names);
}

void kernel_names_init(struct kernel_names *names)
{
	kernel_load(names);
	sched_text_read(names);
}

void kernel_names_fini(struct kernel_names *names)
{
	kallsyms_free(names->symbols);
}
