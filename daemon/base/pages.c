/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

void *pages_new(size_t size)
{
	void *pages = MAP_FAILED;

	if (size)
		pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	return pages == MAP_FAILED ? NULL : pages;
}

void *pages_free(void *pages, size_t size)
{
	if (pages)
		munmap(pages, size);
	return NULL;
}

size_t pages_bytes(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}
