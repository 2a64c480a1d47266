/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_MULTI_ATTACH_H
#define STACKD_DAEMON_PROBE_MULTI_ATTACH_H

/*
 * Attaches one program to many functions and keeps the descriptors that hold it there. Owned by a
 * probe; opened and closed on any one thread, for which it may take seconds.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/probe/target.h"

struct broker;
struct multi_attach;

/* The value of BPF_TRACE_UPROBE_MULTI, which only newer headers define. */
#define MULTI_ATTACH_UPROBE 48

/* True if the kernel attaches a program to many of its functions at once (5.18, CONFIG_FPROBE). */
bool multi_attach_has_kernel(void);

/* True if it does that for addresses in a file too (6.6); detaching one by one takes long. */
bool multi_attach_has_user(void);

/* True if it has any way to attach a program to its functions. */
bool multi_attach_has_functions(void);

/*
 * Attaches the program of this descriptor. is_multi: it was loaded for many functions at once.
 * Returns 0 if it is on at least one of them, see multi_attach_refused(); else negative errno:
 * nothing stays attached, and if the kernel refused them, one line in why (size bytes) names some.
 */
int multi_attach_open(struct broker *broker, int program_fd, const struct targets *targets,
		      bool is_multi, struct multi_attach **out, char *why, size_t size);
struct multi_attach *multi_attach_close(struct multi_attach *calls);

/* Return how many functions it is on, and how many the kernel refused. */
size_t multi_attach_attached(const struct multi_attach *calls);
size_t multi_attach_refused(const struct multi_attach *calls);

/* Returns the names of the first that were refused, separated by commas; borrowed. */
const char *multi_attach_refused_names(const struct multi_attach *calls);

#endif
