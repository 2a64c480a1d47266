/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "common/base.h"

/*
 * The upper bounds of the buckets that are printed, as exponents of 2 in ns: from 16 us to 4 s. The
 * daemon's own buckets are powers of 2, too, so that no operation is between two of these.
 */
static const unsigned int bounds[] = { 14, 17, 20, 23, 26, 29, 32 };

/* In rows of waits, buckets[i] ends at 2^(i + WAIT_SHIFT) ns; in operations, at 2^(i + IO_SHIFT).
 */
enum { IO_SHIFT = 1, WAIT_SHIFT = 10 };

static void put_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Prints a label's value. In values, the format has escapes for three characters. */
static void put_value(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '"' || *value == '\\')
			fprintf(out, "\\%c", *value);
		else
			fputc(*value, out);
	}
}

/*
 * Prints the name of a series with up to two labels, and the space before its value. A label whose
 * name is NULL is left out.
 */
static void put_series(FILE *out, const char *name, const char *label, const char *value,
		       const char *label2, const char *value2)
{
	fputs(name, out);
	if (label) {
		fprintf(out, "{%s=\"", label);
		put_value(out, value);
		fputc('"', out);
	}
	if (label2) {
		fprintf(out, ",%s=\"", label2);
		put_value(out, value2);
		fputc('"', out);
	}
	fputs(label ? "} " : " ", out);
}

/* Prints a time in ns, or a moment in ns since the epoch, in seconds with all digits. */
static void put_seconds(FILE *out, int64_t ns)
{
	fprintf(out, "%" PRId64 ".%09" PRId64 "\n", ns / NS_PER_S, ns % NS_PER_S);
}

static void put_count(FILE *out, int64_t count)
{
	fprintf(out, "%" PRId64 "\n", count);
}

/* Prints a metric that has one series, without labels, and is a number. */
static void put_number(FILE *out, const char *name, const char *type, const char *help,
		       int64_t value)
{
	put_head(out, name, type, help);
	put_series(out, name, NULL, NULL, NULL, NULL);
	put_count(out, value);
}

static const char *unit_label(const struct wire_unit_total *unit)
{
	return unit->unit[0] ? unit->unit : "other";
}

static void put_units(FILE *out, const struct wire_unit_totals *units)
{
	static const char blocked[] = "stackd_unit_blocked_seconds_total";
	static const char runnable[] = "stackd_unit_runnable_seconds_total";
	static const char throttled[] = "stackd_unit_throttled_seconds_total";

	put_head(out, blocked, "counter",
		 "Time for which threads were blocked, by unit and class of reason.");
	for (size_t i = 0; i < units->n; i++) {
		const struct wire_class_totals *classes = &units->v[i].blocked;

		for (size_t k = 0; k < classes->n; k++) {
			put_series(out, blocked, "unit", unit_label(&units->v[i]), "reason",
				   classes->v[k].class);
			put_seconds(out, classes->v[k].total_ns);
		}
	}
	put_head(out, runnable, "counter",
		 "Time for which threads were ready, without a CPU, by unit.");
	for (size_t i = 0; i < units->n; i++) {
		put_series(out, runnable, "unit", unit_label(&units->v[i]), NULL, NULL);
		put_seconds(out, units->v[i].runnable_ns);
	}
	put_head(out, throttled, "counter",
		 "Part of the runnable time in which a CPU quota was used up, by unit.");
	for (size_t i = 0; i < units->n; i++) {
		put_series(out, throttled, "unit", unit_label(&units->v[i]), NULL, NULL);
		put_seconds(out, units->v[i].throttled_ns);
	}
}

/*
 * Prints the series of one histogram. buckets->v[i] counts what took less than 2^(i + shift) ns and
 * is in no earlier bucket. `labels` are printed as they are, and may be "".
 */
static void put_histogram(FILE *out, const char *name, const char *labels,
			  const struct int_list *buckets, unsigned int shift, int64_t total_ns)
{
	int64_t below = 0;
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
		for (; at < buckets->n && at + shift <= bounds[i]; at++)
			below += buckets->v[at];
		fprintf(out, "%s_bucket{%s%sle=\"%.10g\"} %" PRId64 "\n", name, labels,
			labels[0] ? "," : "", (double)(INT64_C(1) << bounds[i]) / NS_PER_S, below);
	}
	for (; at < buckets->n; at++)
		below += buckets->v[at];
	fprintf(out, "%s_bucket{%s%sle=\"+Inf\"} %" PRId64 "\n", name, labels, labels[0] ? "," : "",
		below);
	fprintf(out, labels[0] ? "%s_sum{%s} " : "%s_sum%s ", name, labels);
	put_seconds(out, total_ns);
	fprintf(out, labels[0] ? "%s_count{%s} " : "%s_count%s ", name, labels);
	put_count(out, below);
}

static void put_ios(FILE *out, const struct wire_io_totals *ios)
{
	static const char latency[] = "stackd_io_latency_seconds";
	static const struct {
		const char *name;
		const char *help;
		size_t offset;
	} counters[] = {
		{ "stackd_io_bytes_total", "Bytes of I/O operations, by layer and operation.",
		  offsetof(struct wire_io_total, bytes) },
		{ "stackd_io_errors_total", "I/O operations that failed, by layer and operation.",
		  offsetof(struct wire_io_total, errors) },
	};

	put_head(out, latency, "histogram", "Length of I/O operations, by layer and operation.");
	for (size_t i = 0; i < ios->n; i++) {
		char labels[128];

		snprintf(labels, sizeof(labels), "layer=\"%s\",op=\"%s\"", ios->v[i].layer,
			 ios->v[i].op);
		put_histogram(out, latency, labels, &ios->v[i].buckets, IO_SHIFT,
			      ios->v[i].total_ns);
	}
	for (size_t k = 0; k < ARRAY_SIZE(counters); k++) {
		put_head(out, counters[k].name, "counter", counters[k].help);
		for (size_t i = 0; i < ios->n; i++) {
			const char *io = (const char *)&ios->v[i];

			put_series(out, counters[k].name, "layer", ios->v[i].layer, "op",
				   ios->v[i].op);
			put_count(out, *(const int64_t *)(io + counters[k].offset));
		}
	}
}

static void put_windows(FILE *out, const struct wire_probe_totals *probes)
{
	static const char windows[] = "stackd_windows_total";
	static const char covered[] = "stackd_covered_seconds_total";
	static const char gaps[] = "stackd_gap_seconds_total";
	static const char last[] = "stackd_last_window_end_timestamp_seconds";
	static const char lost[] = "stackd_lost_total";

	put_head(out, windows, "counter", "Windows that were recorded, by probe.");
	for (size_t i = 0; i < probes->n; i++) {
		put_series(out, windows, "probe", probes->v[i].probe, NULL, NULL);
		put_count(out, probes->v[i].windows);
	}
	put_head(out, covered, "counter", "Length of all windows, by probe.");
	for (size_t i = 0; i < probes->n; i++) {
		put_series(out, covered, "probe", probes->v[i].probe, NULL, NULL);
		put_seconds(out, probes->v[i].covered_ns);
	}
	put_head(out, gaps, "counter", "Time that is in no window, between two windows, by probe.");
	for (size_t i = 0; i < probes->n; i++) {
		put_series(out, gaps, "probe", probes->v[i].probe, NULL, NULL);
		put_seconds(out, probes->v[i].gap_ns);
	}
	put_head(out, last, "gauge", "When the newest window ended, by probe.");
	for (size_t i = 0; i < probes->n; i++) {
		if (probes->v[i].last == WIRE_ABSENT)
			continue;
		put_series(out, last, "probe", probes->v[i].probe, NULL, NULL);
		put_seconds(out, probes->v[i].last);
	}
	put_head(out, lost, "counter",
		 "Events that happened and are not in the windows, by probe and reason.");
	for (size_t i = 0; i < probes->n; i++) {
		const struct wire_losts *losts = &probes->v[i].lost;

		for (size_t k = 0; k < losts->n; k++) {
			put_series(out, lost, "probe", probes->v[i].probe, "reason",
				   losts->v[k].reason);
			put_count(out, losts->v[k].count);
		}
	}
}

static void put_pressure(FILE *out, const struct wire_pressure *pressure)
{
	static const char stalled[] = "stackd_pressure_stalled_seconds_total";
	const struct {
		const char *resource;
		const struct wire_stall *stall;
	} stalls[] = {
		{ "cpu", pressure ? pressure->cpu : NULL },
		{ "io", pressure ? pressure->io : NULL },
		{ "memory", pressure ? pressure->memory : NULL },
	};

	put_head(out, stalled, "counter",
		 "Time for which some, or all, tasks of the host stalled (PSI), within windows.");
	for (size_t i = 0; i < ARRAY_SIZE(stalls); i++) {
		if (!stalls[i].stall)
			continue;
		put_series(out, stalled, "resource", stalls[i].resource, "tasks", "some");
		put_seconds(out, stalls[i].stall->some_ns);
		put_series(out, stalled, "resource", stalls[i].resource, "tasks", "full");
		put_seconds(out, stalls[i].stall->full_ns);
	}
}

static void put_cost(FILE *out, const struct wire_status_reply *status)
{
	static const char cpu[] = "stackd_cpu_seconds_total";
	const struct {
		const char *part;
		int64_t ns;
	} parts[] = {
		{ "user", status->user_ns },
		{ "system", status->system_ns },
		{ "bpf", status->bpf_ns },
	};

	put_head(out, cpu, "counter", "CPU time of stackd; that of its BPF programs is estimated.");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (parts[i].ns == WIRE_ABSENT)
			continue;
		put_series(out, cpu, "part", parts[i].part, NULL, NULL);
		put_seconds(out, parts[i].ns);
	}
	put_number(out, "stackd_resident_memory_bytes", "gauge", "Resident memory of stackd.",
		   status->rss_bytes);
	put_number(out, "stackd_map_memory_bytes", "gauge", "Memory of the BPF maps of stackd.",
		   status->map_bytes);
}

static void put_health(FILE *out, const struct wire_status_reply *status)
{
	static const char up[] = "stackd_probe_up", info[] = "stackd_build_info";

	put_head(out, info, "gauge", "Always 1; the label has the version of stackd.");
	put_series(out, info, "version", status->version, NULL, NULL);
	put_count(out, 1);
	put_number(out, "stackd_healthy", "gauge", "1 if stackd has no problem, else 0.",
		   status->healthy);
	put_head(out, up, "gauge", "1 if the probe records, 0 if it is off or has failed.");
	for (size_t i = 0; i < status->probes.n; i++) {
		put_series(out, up, "probe", status->probes.v[i].name, NULL, NULL);
		put_count(out, strcmp(status->probes.v[i].state, "on") == 0);
	}
}

void render_metrics(FILE *out, const struct wire_metrics_reply *metrics,
		    const struct wire_status_reply *status)
{
	static const char started[] = "stackd_start_time_seconds";
	static const char preempted[] = "stackd_preempted_wait_seconds";

	put_health(out, status);
	put_head(out, started, "gauge", "When stackd started.");
	put_series(out, started, NULL, NULL, NULL, NULL);
	put_seconds(out, metrics->started);
	put_units(out, &metrics->units);
	put_number(out, "stackd_units_given_up_total", "counter",
		   "Units whose series ended, as they had no threads and others needed the room.",
		   metrics->given_up);
	put_number(out, "stackd_windows_not_added_total", "counter",
		   "Windows that are missing in the series of units, for lack of memory.",
		   metrics->not_added);
	put_head(out, preempted, "histogram",
		 "Waits of preempted, throttled and new threads for a CPU, but for those under "
		 "min_wait.");
	put_histogram(out, preempted, "", &metrics->preempted, WAIT_SHIFT, metrics->preempted_ns);
	put_ios(out, &metrics->ios);
	put_windows(out, &metrics->probes);
	put_pressure(out, metrics->pressure);
	put_cost(out, status);
}
