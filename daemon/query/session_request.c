/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/session_request.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base.h"
#include "common/duration.h"
#include "daemon/session/session.h"

#define MIN_DURATION_NS (100 * NS_PER_MS)

int query_kind(const char *name, enum probe_kind *out, struct wire_error *error)
{
	char names[128];

	if (probe_kind_find(name, out))
		return 0;
	probe_kinds_with(0, " and ", names, sizeof(names));
	return wire_error_set(error, -ENOENT, ERROR_UNKNOWN_PROBE, name,
			      "no probe %.40s; there are: %s", name, names);
}

int query_unknown_session(const char *text, struct wire_error *error)
{
	return wire_error_set(error, -ENOENT, ERROR_UNKNOWN_SESSION, text,
			      "no session %.40s: stackctl sessions lists them", text);
}

/*
 * Checks the name of a session. Requests accept it instead of the session's id, so it must begin
 * with a letter; and it must not be the name of a probe.
 */
static int name_check(const char *name, struct wire_error *error)
{
	size_t i, n = strlen(name);
	bool is_good = n > 0 && n <= SESSION_NAME_MAX && isalpha((unsigned char)name[0]);
	enum probe_kind kind;

	for (i = 0; i < n && is_good; i++)
		is_good = isalnum((unsigned char)name[i]) || strchr("_.-", name[i]);
	is_good = is_good && !probe_kind_find(name, &kind);
	if (is_good)
		return 0;
	return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "name",
			      "%.40s: a name is a letter and then up to %d letters, digits, _ . or "
			      "-, and not the name of a probe",
			      name, SESSION_NAME_MAX - 1);
}

/*
 * Sets *out to `value`, or to 0 if `value` is WIRE_ABSENT. Returns 0, or -EINVAL if `value` is less
 * than 1.
 */
static int number_check(int64_t value, const char *field, uint64_t *out, struct wire_error *error)
{
	*out = value == WIRE_ABSENT ? 0 : (uint64_t)value;
	if (value == WIRE_ABSENT || value > 0)
		return 0;
	return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, field,
			      "%s %" PRId64 ": has to be more than 0", field, value);
}

static int event_check(const char *event, struct wire_error *error)
{
	if (!event || strcmp(event, "cycles") == 0 || strcmp(event, "cpu-clock") == 0)
		return 0;
	return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "event",
			      "%.40s: one of cpu-clock and cycles", event);
}

int query_request(uid_t uid, const struct wire_start_request *wire, struct session_request *out,
		  struct wire_error *error)
{
	char asked[DURATION_TEXT_MAX], least[DURATION_TEXT_MAX];
	int r;

	*out = (struct session_request){
		.name = wire->name,
		.filter = wire->filter,
		.duration_ns = wire->duration_ns == WIRE_ABSENT ? 0 : wire->duration_ns,
		.event = wire->event,
		.with_idle = wire->idle == 1,
		.function = wire->function,
		.is_regex = wire->regexp == 1,
		.uid = uid,
	};
	r = query_kind(wire->probe, &out->kind, error);
	if (r)
		return r;
	r = event_check(wire->event, error);
	if (r)
		return r;
	if (wire->name) {
		r = name_check(wire->name, error);
		if (r)
			return r;
	}
	r = number_check(wire->frequency, "frequency", &out->frequency_hz, error);
	if (r)
		return r;
	r = number_check(wire->rate, "rate", &out->rate, error);
	if (r)
		return r;
	r = number_check(wire->period_ns, "period_ns", &out->period_ns, error);
	if (r)
		return r;
	if (wire->duration_ns != WIRE_ABSENT &&
	    (wire->duration_ns < MIN_DURATION_NS || wire->duration_ns > INT64_MAX / 4)) {
		duration_format(wire->duration_ns, asked);
		duration_format(MIN_DURATION_NS, least);
		return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, "duration_ns",
				      "a session of %s: at least %s", asked, least);
	}
	return 0;
}
