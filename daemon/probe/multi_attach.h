/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_MULTI_ATTACH_H
#define STACKD_DAEMON_PROBE_MULTI_ATTACH_H

/*
 * Attaches one BPF program to many functions, and holds the file descriptors that keep it attached.
 * Owned by a probe. Only one thread at a time may use it. Opening and closing may take seconds.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/probe/target.h"

struct broker;
struct multi_attach;

/* The value of BPF_TRACE_UPROBE_MULTI, which only newer headers define. */
#define MULTI_ATTACH_UPROBE 48

/*
 * True if the kernel can attach a program to many kernel functions at once (Linux 5.18 with
 * CONFIG_FPROBE).
 */
bool multi_attach_has_kernel(void);

/* True if the kernel can attach a BPF program to many addresses of a file at once (Linux 6.6). */
bool multi_attach_has_user(void);

/*
 * True if the kernel can attach a BPF program to kernel functions in any way. Tries it at the first
 * call only.
 */
bool multi_attach_has_functions(void);

/* Says, for users, that multi_attach_has_functions() is false, and what can be traced instead. */
extern const char multi_attach_no_functions[];

/*
 * Returns an example, for users, of functions that can be traced on this kernel, quoted for a
 * shell.
 */
const char *multi_attach_example(void);

/*
 * Attaches the program with the descriptor program_fd to the targets. is_multi is true if the
 * program was loaded as a program for many functions at once. Returns 0 if the kernel accepted at
 * least one target; multi_attach_refused() returns the number of the others. On a negative errno
 * nothing is attached. If the reason is that the kernel refused all targets, `why` (size bytes)
 * gets one line with some of their names.
 */
int multi_attach_open(struct broker *broker, int program_fd, const struct targets *targets,
		      bool is_multi, struct multi_attach **out, char *why, size_t size);
struct multi_attach *multi_attach_close(struct multi_attach *calls);

/*
 * Return how many functions the BPF program is attached to, and how many functions the kernel
 * refused.
 */
size_t multi_attach_attached(const struct multi_attach *calls);
size_t multi_attach_refused(const struct multi_attach *calls);

/*
 * Returns the names of the functions that the kernel refused, separated by commas; if there are
 * many, only the first of them. The text is borrowed.
 */
const char *multi_attach_refused_names(const struct multi_attach *calls);

#endif
