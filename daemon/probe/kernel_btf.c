/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/kernel_btf.h"

#include <pthread.h>
#include <stddef.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct btf *types;
static unsigned int holders;

void probe_types_hold(void)
{
	pthread_mutex_lock(&lock);
	holders++;
	pthread_mutex_unlock(&lock);
}

void probe_types_release(void)
{
	pthread_mutex_lock(&lock);
	if (--holders == 0) {
		btf__free(types);
		types = NULL;
	}
	pthread_mutex_unlock(&lock);
}

int probe_types(struct btf **out)
{
	struct btf *btf;
	int r = 0;

	pthread_mutex_lock(&lock);
	if (!types) {
		btf = btf__load_vmlinux_btf();
		r = (int)libbpf_get_error(btf);
		if (!r)
			types = btf;
	}
	if (!r)
		*out = types;
	pthread_mutex_unlock(&lock);
	return r;
}

bool probe_types_have(const char *name, unsigned int kind)
{
	struct btf *btf;

	return probe_types(&btf) == 0 && btf__find_by_name_kind(btf, name, kind) > 0;
}
