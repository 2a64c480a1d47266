/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/libbpf_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "daemon/base/log.h"

static _Thread_local char warning[256];

static int on_print(enum libbpf_print_level level, const char *format, va_list args)
{
	char text[512];
	size_t n;

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(text, sizeof(text), format, args);
	n = strcspn(text, "\n");
	text[n] = '\0';
	if (level == LIBBPF_WARN && !warning[0] && !strstr(text, "BEGIN PROG LOAD LOG"))
		libbpf_log_set_warning(text);
	log_debug("%s", text);
	return 0;
}

void libbpf_log_setup(void)
{
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(on_print);
}

const char *libbpf_log_warning(void)
{
	return warning;
}

void libbpf_log_set_warning(const char *text)
{
	snprintf(warning, sizeof(warning), "%.255s", text);
}

void libbpf_log_clear(void)
{
	warning[0] = '\0';
}
