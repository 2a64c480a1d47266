/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/regex.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "common/base.h"

/*
 * STEPS_MAX: limit of backtracking for one name; '.*a.*b' takes some thousand steps for a name of
 * 60 bytes. DEPTH_MAX: limit of nested backtracking. HEAP_MAX_KIB: limit of the memory for one
 * name. CPU_MAX_NS: limit of the CPU time for all names, looked at once in CPU_INTERVAL names.
 */
#define STEPS_MAX    50000
#define DEPTH_MAX    5000
#define HEAP_MAX_KIB 1024
#define CPU_MAX_NS   (5 * NS_PER_S)
enum { CPU_INTERVAL = 64 };

struct regex {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *limits;
	unsigned names;	  /* number of names that were matched */
	int64_t start_ns; /* CPU time of the thread when the first name was matched */
	bool is_costly;
};

static int regex_compile(const char *text, struct regex *regex, char *why, size_t size)
{
	PCRE2_UCHAR reason[128];
	PCRE2_SIZE at;
	int error;

	/* Names are bytes: an expression cannot say that they are UTF-8, which not all are. */
	regex->code = pcre2_compile((PCRE2_SPTR)text, strlen(text),
				    PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP,
				    &error, &at, NULL);
	if (regex->code)
		return 0;
	if (error == PCRE2_ERROR_HEAP_FAILED)
		return -ENOMEM;
	pcre2_get_error_message(error, reason, sizeof(reason));
	if (at < strlen(text))
		snprintf(why, size, "%.200s is no regular expression: %s, at character %zu", text,
			 (char *)reason, at + 1);
	else
		snprintf(why, size, "%.200s is no regular expression: %s, at its end", text,
			 (char *)reason);
	return -EINVAL;
}

int regex_new(const char *text, struct regex **out, char *why, size_t size)
{
	struct regex *regex;
	int r;

	if (strlen(text) > REGEX_MAX) {
		snprintf(why, size, "the regular expression is longer than %d bytes", REGEX_MAX);
		return -EINVAL;
	}
	regex = calloc(1, sizeof(*regex));
	if (!regex)
		return -ENOMEM;
	r = regex_compile(text, regex, why, size);
	if (!r) {
		regex->data = pcre2_match_data_create(1, NULL);
		regex->limits = pcre2_match_context_create(NULL);
		r = regex->data && regex->limits ? 0 : -ENOMEM;
	}
	if (r) {
		regex_free(regex);
		return r;
	}
	pcre2_set_match_limit(regex->limits, STEPS_MAX);
	pcre2_set_depth_limit(regex->limits, DEPTH_MAX);
	pcre2_set_heap_limit(regex->limits, HEAP_MAX_KIB);
	*out = regex;
	return 0;
}

struct regex *regex_free(struct regex *regex)
{
	if (!regex)
		return NULL;
	pcre2_match_context_free(regex->limits);
	pcre2_match_data_free(regex->data);
	pcre2_code_free(regex->code);
	free(regex);
	return NULL;
}

/* True if matching the pattern against all names together has taken too much CPU time. */
static bool is_over_time(struct regex *regex)
{
	if (regex->names++ % CPU_INTERVAL)
		return false;
	if (regex->names == 1)
		regex->start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - regex->start_ns > CPU_MAX_NS;
}

bool regex_fits(struct regex *regex, const char *name)
{
	int r;

	if (regex->is_costly)
		return false;
	if (is_over_time(regex)) {
		regex->is_costly = true;
		return false;
	}
	r = pcre2_match(regex->code, (PCRE2_SPTR)name, strlen(name), 0, 0, regex->data,
			regex->limits);
	/* An error other than "no match" says that a limit was reached, or that malloc() failed. */
	regex->is_costly = r < 0 && r != PCRE2_ERROR_NOMATCH;
	return r >= 0;
}

bool regex_is_costly(const struct regex *regex)
{
	return regex->is_costly;
}
