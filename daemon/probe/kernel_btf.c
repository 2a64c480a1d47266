/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/kernel_btf.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `kernel` and `holders` */
static struct btf *kernel;
static unsigned int holders;

void kernel_btf_hold(void)
{
	pthread_mutex_lock(&lock);
	holders++;
	pthread_mutex_unlock(&lock);
}

void kernel_btf_release(void)
{
	pthread_mutex_lock(&lock);
	if (--holders == 0) {
		btf__free(kernel);
		kernel = NULL;
	}
	pthread_mutex_unlock(&lock);
}

int kernel_btf_get(struct btf **out)
{
	struct btf *btf;
	int r = 0;

	pthread_mutex_lock(&lock);
	if (!kernel) {
		btf = btf__load_vmlinux_btf();
		r = (int)libbpf_get_error(btf);
		if (!r)
			kernel = btf;
	}
	if (!r)
		*out = kernel;
	pthread_mutex_unlock(&lock);
	return r;
}

bool kernel_btf_has(const char *name, unsigned int kind)
{
	struct btf *btf;

	return kernel_btf_get(&btf) == 0 && btf__find_by_name_kind(btf, name, kind) > 0;
}

bool kernel_btf_has_member(const char *type, const char *member)
{
	const struct btf_type *t;
	struct btf *btf;
	bool has = false;
	int i, id;

	if (kernel_btf_get(&btf))
		return false;
	id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	t = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
	for (i = 0; t && i < btf_vlen(t) && !has; i++)
		has = strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), member) == 0;
	return has;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int kernel_btf_functions(const char ***names_out, size_t *n_out)
{
	const struct btf_type *t;
	const char **names;
	struct btf *btf;
	size_t n = 0;
	__u32 id, end;
	int r = kernel_btf_get(&btf);

	if (r)
		return r;
	end = btf__type_cnt(btf);
	names = calloc(end, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (id = 1; id < end; id++) {
		t = btf__type_by_id(btf, id);
		if (t && btf_is_func(t))
			names[n++] = btf__name_by_offset(btf, t->name_off);
	}
	if (n)
		qsort(names, n, sizeof(*names), compare_names);
	*names_out = names;
	*n_out = n;
	return 0;
}
