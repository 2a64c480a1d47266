/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/filter_fields.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base.h"
#include "proto/wire_error.h"

/* Types of the fields of struct wire_filter. A field that the client has not set is NULL (TEXT),
 * WIRE_ABSENT (NUMBER) or empty (LIST). */
enum form { TEXT, NUMBER, LIST };

#define TEXT_FIELD(member)   #member, TEXT, offsetof(struct wire_filter, member)
#define NUMBER_FIELD(member) #member, NUMBER, offsetof(struct wire_filter, member)
#define LIST_FIELD(member)   #member, LIST, offsetof(struct wire_filter, member.n)

/* A trait that no kind of probe has. A rule with this trait refuses its field for every kind. */
#define NONE (1U << 31)

#define BOTH (FILTER_OF_SESSION | FILTER_OF_QUERY)

#define NO_STACKS     "has rows of operations, not of stacks"
#define ONE_NAME      "records one name: start a session for each (an answer can be limited to several)"
#define NO_EXCEPTIONS "records without exceptions (an answer can leave some out)"
#define NO_HOSTS                                                                         \
	"is of this host only; hosts are for the gateway of a fleet (stackctl --fleet, " \
	"stackd-fleet serve)"
#define NO_FUNCTIONS \
	"records waits and samples in every function (an answer can be limited to some)"

/* Rules for filter fields that only some kinds of probes allow. A field without a rule is allowed
 * for every kind. */
static const struct rule {
	const char *field;
	enum form form;
	size_t offset;
	unsigned int uses;   /* bits of enum filter_use: the requests that the rule is for */
	unsigned int traits; /* the traits (bits of enum probe_trait) that a kind must have to allow
				this field */
	/* error text for a kind that lacks one of `traits`; it is put after the kind's name */
	const char *lack;
} rules[] = {
	{ NUMBER_FIELD(min_block_ns), BOTH, PROBE_WAITS,
	  "has no waits that could be long or short" },
	{ NUMBER_FIELD(max_block_ns), BOTH, PROBE_WAITS,
	  "has no waits that could be long or short" },
	{ LIST_FIELD(states), BOTH, PROBE_WAITS, "has no waits that have a state" },
	{ LIST_FIELD(reasons), FILTER_OF_QUERY, PROBE_WAITS, "has no waits that have a reason" },
	{ LIST_FIELD(reasons), FILTER_OF_SESSION, NONE,
	  "records waits for every reason (an answer can be limited to some)" },
	{ LIST_FIELD(not_states), FILTER_OF_QUERY, PROBE_WAITS, "has no waits that have a state" },
	{ LIST_FIELD(not_reasons), FILTER_OF_QUERY, PROBE_WAITS,
	  "has no waits that have a reason" },
	{ LIST_FIELD(functions), FILTER_OF_QUERY, PROBE_STACKS, NO_STACKS },
	{ LIST_FIELD(not_functions), FILTER_OF_QUERY, PROBE_STACKS, NO_STACKS },
	{ LIST_FIELD(callers), FILTER_OF_QUERY, PROBE_STACKS, NO_STACKS },
	{ LIST_FIELD(comms), FILTER_OF_SESSION, NONE, ONE_NAME },
	{ LIST_FIELD(cgroups), FILTER_OF_SESSION, NONE, ONE_NAME },
	{ LIST_FIELD(units), FILTER_OF_SESSION, NONE, ONE_NAME },
	{ LIST_FIELD(not_pids), FILTER_OF_SESSION, NONE, NO_EXCEPTIONS },
	{ LIST_FIELD(not_comms), FILTER_OF_SESSION, NONE, NO_EXCEPTIONS },
	{ LIST_FIELD(not_cgroups), FILTER_OF_SESSION, NONE, NO_EXCEPTIONS },
	{ LIST_FIELD(not_units), FILTER_OF_SESSION, NONE, NO_EXCEPTIONS },
	{ LIST_FIELD(not_states), FILTER_OF_SESSION, NONE, NO_EXCEPTIONS },
	{ LIST_FIELD(not_reasons), FILTER_OF_SESSION, NONE, NO_EXCEPTIONS },
	{ LIST_FIELD(functions), FILTER_OF_SESSION, NONE, NO_FUNCTIONS },
	{ LIST_FIELD(not_functions), FILTER_OF_SESSION, NONE, NO_FUNCTIONS },
	{ LIST_FIELD(callers), FILTER_OF_SESSION, NONE, NO_FUNCTIONS },
	{ TEXT_FIELD(layer), BOTH, PROBE_IO, "has no layers, operations and disks" },
	{ TEXT_FIELD(op), BOTH, PROBE_IO, "has no layers, operations and disks" },
	{ TEXT_FIELD(disk), BOTH, PROBE_IO, "has no layers, operations and disks" },
	{ LIST_FIELD(hosts), BOTH, NONE, NO_HOSTS },
	{ LIST_FIELD(cpus), FILTER_OF_SESSION, PROBE_CPUS, "cannot be limited to some CPUs" },
	{ LIST_FIELD(cpus), FILTER_OF_QUERY, NONE,
	  "has no CPUs in its windows (a session of oncpu can be started with them)" },
	{ LIST_FIELD(tids), FILTER_OF_QUERY, PROBE_THREADS,
	  "has processes in its windows, no threads (a session can be started with them)" },
};

static bool is_set(const struct wire_filter *wire, const struct rule *rule)
{
	const void *at = (const char *)wire + rule->offset;

	switch (rule->form) {
	case TEXT:
		return *(const char *const *)at != NULL;
	case NUMBER:
		return *(const int64_t *)at != WIRE_ABSENT;
	case LIST:
		break;
	}
	return *(const size_t *)at > 0;
}

int filter_fields_check(const struct wire_filter *wire, enum probe_kind kind, enum filter_use use,
			struct wire_error *error)
{
	const struct rule *rule;
	char others[128];
	size_t i;

	for (i = 0; wire && i < ARRAY_SIZE(rules); i++) {
		rule = &rules[i];
		if (!(rule->uses & use) || probe_kind_has(kind, rule->traits) ||
		    !is_set(wire, rule))
			continue;
		probe_kinds_with(rule->traits, " and ", others, sizeof(others));
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, rule->field,
				      "%s %s%s%s", probe_kind_name(kind), rule->lack,
				      others[0] ? "; see " : "", others);
	}
	return 0;
}
