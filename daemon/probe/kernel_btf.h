/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_KERNEL_BTF_H
#define STACKD_DAEMON_PROBE_KERNEL_BTF_H

/*
 * The running kernel's types (BTF), to ask which functions, tracepoints and members it has. Reading
 * them takes some milliseconds and 6 MB, so they are shared: read at the first question and freed
 * when the last holder releases them. Any thread.
 */

#include <stdbool.h>

struct btf;

/* Each hold needs a release. The functions below may be called only while held. */
void kernel_btf_hold(void);
void kernel_btf_release(void);

/* 0 with *out borrowed until the release, or negative errno if the types cannot be read. */
int kernel_btf_get(struct btf **out);

/* True if the kernel has this type, of kind BTF_KIND_FUNC or BTF_KIND_TYPEDEF. False on errors. */
bool kernel_btf_has(const char *name, unsigned int kind);

/* True if this struct of the kernel has this member. False on errors. */
bool kernel_btf_has_member(const char *type, const char *member);

#endif
