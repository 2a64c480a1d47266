/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_IOLAT_LAYERS_H
#define STACKD_DAEMON_PROBE_IOLAT_LAYERS_H

/*
 * The layers of iolat that not every kernel shows: the VFS, file systems and io.max. Chooses which
 * programs of the opened object can be attached here, attaches them, and describes what is attached
 * and what cannot be seen. Owned by the probe; used on the thread that opens the probe.
 */

#include "daemon/probe/internal.h"

/*
 * Before load: chooses programs. 0, -ENOMEM, or -EOPNOTSUPP with the probe's reason set if the
 * settings demand a way to attach that this kernel does not allow.
 */
int iolat_layers_new(struct probe *probe);
void iolat_layers_free(struct probe *probe);

/* True if system calls are recorded; if they are by functions, in place of the tracepoints. */
bool iolat_layers_have_calls(const struct probe *probe);
bool iolat_layers_have_call_functions(const struct probe *probe);

/* True if functions of the VFS or of a file system are recorded. */
bool iolat_layers_have_functions(const struct probe *probe);

/* After load: attaches kprobes. 0 also if the kernel refuses all of them; errors as above. */
int iolat_layers_attach(struct probe *probe);

/* The ops `hook` and `blind` of a probe that is on. */
const char *iolat_layers_hook(const struct probe *probe);
void iolat_layers_blind(const struct probe *probe, struct probe_status *out);

#endif
