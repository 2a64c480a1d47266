/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/cpu_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base.h"

static int number_parse(const char **at, unsigned long *out)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	*out = strtoul(*at, &end, 10);
	*at = end;
	return 0;
}

int cpu_list_parse(const char *text, bool *cpus, size_t n)
{
	unsigned long first, last;
	int count = 0;

	while (*text && *text != '\n') {
		if (number_parse(&text, &first))
			return -EINVAL;
		last = first;
		if (*text == '-') {
			text++;
			if (number_parse(&text, &last) || last < first)
				return -EINVAL;
		}
		for (; first <= last && first < n; first++) {
			cpus[first] = true;
			count++;
		}
		if (*text == ',')
			text++;
	}
	return count;
}

int cpu_list_read(const char *path, bool *cpus, size_t n)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	char line[4096];

	if (!f)
		return -errno;
	if (!fgets(line, sizeof(line), f))
		return -EIO;
	return cpu_list_parse(line, cpus, n);
}
