/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_MULTI_ATTACH_H
#define STACKD_DAEMON_PROBE_MULTI_ATTACH_H

/*
 * One program on many functions: in go the functions, out come descriptors that keep it there,
 * closed as one. Owned by a probe; opened and closed on any one thread, which it may hold for
 * seconds.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/probe/target.h"

struct broker;
struct multi_attach;

/* BPF_TRACE_UPROBE_MULTI of newer headers. */
#define MULTI_ATTACH_UPROBE 48

/* Whether the kernel attaches one program to many of its functions at once (5.18, CONFIG_FPROBE).
 */
bool multi_attach_has_kernel(void);

/* The same of places in a file (6.6): each by itself takes the kernel a while to let go. */
bool multi_attach_has_user(void);

/* Whether it has any way to attach one to its functions. */
bool multi_attach_has_functions(void);

/*
 * Attaches the program of this descriptor. is_multi: it was loaded for many at once. 0 where it
 * is on one of them at least, see multi_attach_refused(); else a negative errno, nothing is left,
 * and where the kernel refused them one line in why (size bytes) names some.
 */
int multi_attach_open(struct broker *broker, int program_fd, const struct targets *targets,
		      bool is_multi, struct multi_attach **out, char *why, size_t size);
struct multi_attach *multi_attach_close(struct multi_attach *calls);

/* How many it is on, and how many the kernel refused. */
size_t multi_attach_attached(const struct multi_attach *calls);
size_t multi_attach_refused(const struct multi_attach *calls);

/* The first of these, with commas between; borrowed. */
const char *multi_attach_refused_names(const struct multi_attach *calls);

#endif
