/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/option/spec.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/render/formats.h"
#include "common/base.h"
#include "common/duration.h"

/* the largest process id: PID_MAX_LIMIT of 64-bit kernels */
#define ID_MAX INT64_C(4194304)

int option_complain(struct options *options, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(options->message, sizeof options->message, format, ap);
	va_end(ap);
	return -EINVAL;
}

static void *member(struct options *options, const struct option_spec *spec)
{
	return (char *)options + spec->offset;
}

int option_read_flag(struct options *options, const struct option_spec *spec, const char *value)
{
	*(bool *)member(options, spec) = true;
	return 0;
}

int option_read_text(struct options *options, const struct option_spec *spec, const char *value)
{
	*(const char **)member(options, spec) = value;
	return 0;
}

int option_read_window(struct options *options, const struct option_spec *spec, const char *value)
{
	options->window = value;
	options->window_name = spec->name;
	return 0;
}

int option_read_output(struct options *options, const struct option_spec *spec, const char *value)
{
	options->output = strcmp(value, "-") == 0 ? NULL : value;
	return 0;
}

int option_read_number(const char *text, size_t n, int64_t *out)
{
	int64_t v = 0;

	if (n == 0)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)text[i]))
			return -EINVAL;
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, text[i] - '0', &v))
			return -ERANGE;
	}
	*out = v;
	return 0;
}

/* Appends the value to a list of texts. */
int option_read_range(struct options *options, const struct option_spec *spec, const char *value)
{
	struct text_list *list = member(options, spec);

	if (list->n == OPTION_RANGES_MAX)
		return option_complain(options, "--%s: more than %d are too many", spec->name,
				       OPTION_RANGES_MAX);
	list->v[list->n++] = value;
	return 0;
}

/* Appends the value to a list of names. */
int option_read_names(struct options *options, const struct option_spec *spec, const char *value)
{
	struct name_list *list = member(options, spec);

	if (list->n == OPTION_NAMES_MAX)
		return option_complain(options, "--%s: more than %d are too many", spec->name,
				       OPTION_NAMES_MAX);
	if (strstr(spec->name, "cgroup") && value[0] != '/')
		return option_complain(options,
				       "--%s %s: the path of a control group begins with /, as in "
				       "/system.slice/ssh.service",
				       spec->name, value);
	if (value[0] == '!' &&
	    (strcmp(spec->name, "comm") == 0 || strcmp(spec->name, "unit") == 0 ||
	     strcmp(spec->name, "function") == 0))
		return option_complain(options,
				       "--%s %s: what is to be left out is --not-%s '%s'; a name "
				       "that begins with ! is '\\%s'",
				       spec->name, value, spec->name, value + 1, value);
	list->v[list->n++] = value;
	return 0;
}

/*
 * Parses "4242" or "4242,4243". Appends the numbers to the option's list, which may already have
 * numbers if the option was given before.
 */
static int read_list(struct options *options, const struct option_spec *spec, const char *value,
		     int64_t least, int64_t most, const char *wanted)
{
	struct id_list *list = member(options, spec);
	const char *at = value;
	size_t n;

	for (;; at += n + 1) {
		int64_t id;

		n = strcspn(at, ",");
		if (option_read_number(at, n, &id) < 0 || id < least || id > most)
			return option_complain(options, "--%s %s: \"%.*s\" is no %s", spec->name,
					       value, (int)n, at, wanted);
		if (list->n == OPTION_IDS_MAX)
			return option_complain(options, "--%s: more than %d are too many",
					       spec->name, OPTION_IDS_MAX);
		list->v[list->n++] = id;
		if (at[n] == '\0')
			return 0;
	}
}

int option_read_ids(struct options *options, const struct option_spec *spec, const char *value)
{
	bool is_not = strncmp(spec->name, "not-", 4) == 0;
	char wanted[128];

	snprintf(wanted, sizeof(wanted),
		 "%s; numbers from 1 to %" PRId64 ", with commas between; a name goes to --%scomm",
		 is_not ? spec->name + 4 : spec->name, ID_MAX, is_not ? "not-" : "");
	return read_list(options, spec, value, 1, ID_MAX, wanted);
}

/* Parses a number of bytes, which may end in K, M or G. */
int option_read_size(struct options *options, const struct option_spec *spec, const char *value)
{
	static const char units[] = "KMG";
	size_t n = strlen(value);
	const char *unit = n > 0 ? strchr(units, value[n - 1]) : NULL;
	int64_t size, factor = INT64_C(1);

	if (unit) {
		factor <<= 10 * (unit - units + 1);
		n--;
	}
	if (option_read_number(value, n, &size) < 0 || size < 1 ||
	    __builtin_mul_overflow(size, factor, &size))
		return option_complain(options, "--%s %s: not a size; 8M or 500K would be",
				       spec->name, value);
	*(int64_t *)member(options, spec) = size;
	return 0;
}

/* Parses --cpu. Does not check that the CPUs exist: the daemon checks that. */
int option_read_cpus(struct options *options, const struct option_spec *spec, const char *value)
{
	return read_list(options, spec, value, 0, INT32_MAX,
			 "CPU; numbers from 0, with commas between");
}

int option_read_positive(struct options *options, const struct option_spec *spec, const char *value)
{
	int64_t n;

	if (option_read_number(value, strlen(value), &n) < 0 || n < 1)
		return option_complain(options, "--%s %s: not a number from 1 on", spec->name,
				       value);
	*(int64_t *)member(options, spec) = n;
	return 0;
}

static int read_time(struct options *options, const struct option_spec *spec, const char *value,
		     int64_t unit_ns, const char *examples)
{
	int64_t ns;
	int r = duration_parse(value, unit_ns, &ns);

	if (r == -ERANGE)
		return option_complain(options, "--%s %s: too long", spec->name, value);
	if (r < 0)
		return option_complain(options, "--%s %s: not a length of time; %s would be",
				       spec->name, value, examples);
	if (ns == 0)
		return option_complain(options, "--%s %s: has to be more than 0", spec->name,
				       value);
	*(int64_t *)member(options, spec) = ns;
	return 0;
}

int option_read_length(struct options *options, const struct option_spec *spec, const char *value)
{
	return read_time(options, spec, value, NS_PER_S, "30s, 5min or 1h 30min");
}

int option_read_each(struct options *options, const struct option_spec *spec, const char *value)
{
	if (strcmp(value, "window") == 0) {
		options->each_ns = 0;
		return 0;
	}
	return read_time(options, spec, value, NS_PER_S,
			 "10s, 5min, or window, for each recorded window,");
}

int option_read_micros(struct options *options, const struct option_spec *spec, const char *value)
{
	return read_time(options, spec, value, NS_PER_US, "500 (microseconds), 10ms or 2s");
}

/*
 * True if the text is a state that --state takes, such as 2, 0x2, S, D or preempted. The states X
 * and Z are not allowed, as exited threads do not wait.
 */
static bool state_is_valid(const char *text, size_t n)
{
	static const char *const names[] = {
		"R",	   "S",	     "D",	  "T",	      "t",
		"P",	   "I",	     "preempted", "sleeping", "uninterruptible",
		"stopped", "traced", "parked",	  "idle"
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == n && memcmp(names[i], text, n) == 0)
			return true;
	if (n > 2 && n <= 6 && text[0] == '0' && text[1] == 'x')
		return strspn(text + 2, "0123456789abcdefABCDEF") >= n - 2;
	return n > 0 && n <= 5 && strspn(text, "0123456789") >= n;
}

int option_read_states(struct options *options, const struct option_spec *spec, const char *value)
{
	struct state_list *list = member(options, spec);
	const char *at = value;
	size_t n;

	for (;; at += n + 1) {
		n = strcspn(at, ",");
		if (!state_is_valid(at, n))
			return option_complain(
				options,
				"--%s %s: \"%.*s\" is no state a thread waits in; S (sleeping), "
				"D (uninterruptible), R or preempted (wants a CPU), T (stopped), t "
				"(traced), P (parked), I (idle), or a number made of the kernel's "
				"state bits",
				spec->name, value, (int)n, at);
		if (list->n == OPTION_STATES_MAX)
			return option_complain(options, "--%s: more than %d are too many",
					       spec->name, OPTION_STATES_MAX);
		memcpy(list->v[list->n], at, n);
		list->v[list->n++][n] = '\0';
		if (at[n] == '\0')
			return 0;
	}
}

int option_read_reasons(struct options *options, const struct option_spec *spec, const char *value)
{
	struct reason_list *list = member(options, spec);
	const char *at = value;
	size_t n;

	for (;; at += n + 1) {
		n = strcspn(at, ",");
		if (n == 0 || n >= OPTION_REASON_LEN)
			return option_complain(options,
					       "--%s %s: \"%.*s\" is no reason to wait for",
					       spec->name, value, (int)n, at);
		if (list->n == OPTION_REASONS_MAX)
			return option_complain(options, "--%s: more than %d are too many",
					       spec->name, OPTION_REASONS_MAX);
		memcpy(list->v[list->n], at, n);
		list->v[list->n++][n] = '\0';
		if (at[n] == '\0')
			return 0;
	}
}

int option_read_top(struct options *options, const struct option_spec *spec, const char *value)
{
	int64_t n;

	if (option_read_number(value, strlen(value), &n) < 0 || n > INT32_MAX)
		return option_complain(options, "--%s %s: not a number of rows; 20, or 0 for all",
				       spec->name, value);
	options->top = n;
	return 0;
}

/* Accepts one of the words in spec->value, where they are separated by bars. */
int option_read_choice(struct options *options, const struct option_spec *spec, const char *value)
{
	const char *at = spec->value;
	size_t n;

	for (;; at += n + 1) {
		n = strcspn(at, "|");
		if (strlen(value) == n && memcmp(at, value, n) == 0) {
			*(const char **)member(options, spec) = value;
			return 0;
		}
		if (at[n] == '\0')
			return option_complain(options, "--%s %s: one of %s", spec->name, value,
					       spec->value);
	}
}

/*
 * Sets the format. If another option has set another format before, the options contradict each
 * other; if the same option is given again, its last value counts.
 */
static int set_format(struct options *options, const struct option_spec *spec,
		      const struct format *format)
{
	const char *before = options->format_option;

	if (before && strcmp(before, spec->name) != 0 && options->format != format)
		return option_complain(options, "--%s and --%s exclude each other", before,
				       spec->name);
	options->format_option = spec->name;
	options->format = format;
	return 0;
}

int option_read_format(struct options *options, const struct option_spec *spec, const char *value)
{
	const struct format *format = format_find(value);

	if (!format)
		return option_complain(options, "--%s %s: one of %s", spec->name, value,
				       spec->value);
	return set_format(options, spec, format);
}

/* Parses --folded and --json, which stand for --format with the option's own name as its value. */
int option_read_named_format(struct options *options, const struct option_spec *spec,
			     const char *value)
{
	return set_format(options, spec, format_find(spec->name));
}
