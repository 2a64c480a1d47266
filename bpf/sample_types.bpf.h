/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_SAMPLE_TYPES_BPF_H
#define STACKD_BPF_SAMPLE_TYPES_BPF_H

/*
 * The types of a probe that counts samples by process and stacks: the key and the value of its
 * window's map, and what each CPU keeps. maps.bpf.h uses these types unless the probe has defined
 * its own before including it.
 */

#include "layout.h"

struct cpu {
	struct cpu_counts counts;
};

#define WINDOW_KEY   struct sample_key
#define WINDOW_VALUE struct sample_sums

#endif
