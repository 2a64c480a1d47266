/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_IOLAT_LAYERS_H
#define STACKD_DAEMON_PROBE_IOLAT_LAYERS_H

/*
 * The layers of iolat that not every kernel shows, the VFS, file systems and io.max: in comes its
 * opened object, out come the programs that can be had, attached, and texts for `status` of what
 * cannot be seen. The probe owns them. The thread that opens the probe.
 */

#include "daemon/probe/internal.h"

/* Before load. 0, -ENOMEM, or -EOPNOTSUPP with a reason where the configuration wants what cannot
 * be. */
int probe_layers_new(struct probe *probe);

/* Before load: whether programs for system calls, and for functions, are to be loaded. */
bool probe_layers_have_calls(const struct probe *probe);
bool probe_layers_have_call_functions(const struct probe *probe); /* in place of tracepoints */
bool probe_layers_have_functions(const struct probe *probe);

/* After load. 0 also where nothing can be attached, or as above. */
int probe_layers_attach(struct probe *probe);

/* Whether the probe's reason says why they are refused. */
bool probe_layers_are_refused(const struct probe *probe);

void probe_layers_status(const struct probe *probe, struct probe_status *out);
void probe_layers_free(struct probe *probe);

#endif
