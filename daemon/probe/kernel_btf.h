/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_KERNEL_BTF_H
#define STACKD_DAEMON_PROBE_KERNEL_BTF_H

/*
 * The types of the running kernel (BTF), by which a caller can tell what functions, tracepoints and
 * struct members the kernel has. Reading the types takes some milliseconds and 6 MB of memory, so
 * all callers share one copy. It is read at the first use and freed by the last
 * kernel_btf_release(). Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

struct btf;

/*
 * Keeps the kernel's types in memory until kernel_btf_release(). Each call needs a release of its
 * own. The other functions of this header may be called only between this call and its release.
 */
void kernel_btf_hold(void);
void kernel_btf_release(void);

/*
 * Gets the kernel's types, borrowed until kernel_btf_release(). 0, or a negative errno if they
 * cannot be read.
 */
int kernel_btf_get(struct btf **out);

/* True if the kernel has a type of this name and kind: BTF_KIND_FUNC for functions, or
 * BTF_KIND_TYPEDEF. False on errors. */
bool kernel_btf_has(const char *name, unsigned int kind);

/* True if the kernel's struct of this name has a member of this name. False on errors. */
bool kernel_btf_has_member(const char *type, const char *member);

/*
 * Gets the names of the kernel's own functions, not those of modules, sorted. The caller frees the
 * array; the names are borrowed until kernel_btf_release(). 0, or a negative errno.
 */
int kernel_btf_functions(const char ***names_out, size_t *n_out);

#endif
