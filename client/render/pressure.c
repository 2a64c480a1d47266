/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/pressure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "common/base.h"

/*
 * The maximum number of units that are named, and the least share of the time for which a unit must
 * have stalled to be named, in parts per million.
 */
enum { UNITS_NAMED = 3, UNIT_PPM_LEAST = 10000 };

/* Writes a share as "31 %", or as "0.4 %" if it is below 1 %. Returns the text. */
static const char *percent_text(int64_t ppm, char text[static 24])
{
	double percent = (double)ppm / 10000;

	if (ppm == 0 || percent >= 0.95)
		snprintf(text, 24, "%.0f %%", percent);
	else
		snprintf(text, 24, "%.1f %%", percent < 0.1 ? 0.1 : percent);
	return text;
}

/* Writes the stalls for one resource as "io 40 % (full 31 %)". */
static void stall_text(const char *name, const struct wire_stall *stall, char *text, size_t size)
{
	char some[24], full[24];

	percent_text(stall->some_ppm, some);
	if (stall->full_ppm > 0)
		snprintf(text, size, "%s %s (full %s)", name, some,
			 percent_text(stall->full_ppm, full));
	else
		snprintf(text, size, "%s %s", name, some);
}

/*
 * Writes the highest pressure of a unit as "io 38 %" to text. Returns its share in parts per
 * million.
 */
static int64_t unit_most(const struct wire_unit_pressure *unit, char *text, size_t size)
{
	const struct {
		const char *name;
		const struct wire_stall *stall;
	} stalls[] = {
		{ "cpu", &unit->cpu },
		{ "io", &unit->io },
		{ "memory", &unit->memory },
	};
	size_t most = 0;
	char some[24];

	for (size_t i = 1; i < ARRAY_SIZE(stalls); i++)
		if (stalls[i].stall->some_ppm > stalls[most].stall->some_ppm)
			most = i;
	snprintf(text, size, "%s %s", stalls[most].name,
		 percent_text(stalls[most].stall->some_ppm, some));
	return stalls[most].stall->some_ppm;
}

/* Returns the last part of a control group's path, which is the name of the unit. */
static const char *unit_name(const char *cgroup)
{
	const char *slash = strrchr(cgroup, '/');

	return slash ? slash + 1 : cgroup;
}

/*
 * Returns the units with the most pressure, as "; most: postgresql.service io 38 %", or an empty
 * text. The caller frees it.
 */
static char *units_text(const struct wire_unit_pressures *units)
{
	char *text = must(strdup("")), *longer, most[64];

	for (size_t i = 0; i < units->n && i < UNITS_NAMED; i++) {
		_cleanup_(freep) char *name = name_escape(unit_name(units->v[i].cgroup));

		if (unit_most(&units->v[i], most, sizeof most) < UNIT_PPM_LEAST)
			break;
		if (asprintf(&longer, "%s%s%s %s", text, i == 0 ? "; most: " : ", ", name, most) <
		    0)
			longer = NULL;
		free(text);
		text = must(longer);
	}
	return text;
}

char *pressure_line(const struct wire_pressure *pressure)
{
	char cpu[24], io[24], memory[24], *text = NULL;
	_cleanup_(freep) char *units = NULL;

	if (!pressure || !pressure->cpu || !pressure->io || !pressure->memory)
		return must(strdup("not known"));
	units = units_text(&pressure->units);
	if (asprintf(&text, "cpu %s, io %s, memory %s%s",
		     percent_text(pressure->cpu->some_ppm, cpu),
		     percent_text(pressure->io->some_ppm, io),
		     percent_text(pressure->memory->some_ppm, memory), units) < 0)
		text = NULL;
	return must(text);
}

void render_pressure(const struct view *view, const struct wire_pressure *pressure)
{
	_cleanup_(freep) char *units = NULL, *missing = NULL;
	char cpu[64], io[64], memory[64];

	if (!pressure)
		return;
	if (!pressure->cpu || !pressure->io || !pressure->memory) {
		missing = name_escape(pressure->missing ? pressure->missing : "not measured");
		page_wrap(&view->page, STYLE_PLAIN, "pressure", RENDER_LABEL_WIDTH, "not known: %s",
			  missing);
		return;
	}
	stall_text("cpu", pressure->cpu, cpu, sizeof cpu);
	stall_text("io", pressure->io, io, sizeof io);
	stall_text("memory", pressure->memory, memory, sizeof memory);
	units = units_text(&pressure->units);
	page_wrap(&view->page, STYLE_PLAIN, "pressure", RENDER_LABEL_WIDTH, "%s, %s, %s%s", cpu, io,
		  memory, units);
	if (!pressure->units_missing)
		return;
	missing = name_escape(pressure->units_missing);
	page_wrap(&view->page, STYLE_PLAIN, "", RENDER_LABEL_WIDTH, "of units not known: %s",
		  missing);
}

void render_pressure_source(const struct page *page, const struct wire_pressure_source *source,
			    size_t indent)
{
	_cleanup_(freep) char *host = NULL, *units = NULL;

	if (!source)
		return;
	if (source->missing) {
		host = name_escape(source->missing);
		page_wrap(page, STYLE_WARN, "pressure", indent, "not known: %s", host);
		return;
	}
	if (source->units_missing) {
		units = name_escape(source->units_missing);
		page_wrap(page, STYLE_WARN, "pressure", indent,
			  "of the host; of units not known: %s", units);
	} else {
		page_wrap(page, source->units_beyond > 0 ? STYLE_WARN : STYLE_PLAIN, "pressure",
			  indent, "of the host and of %s units, read in %s at the end of a window",
			  count_text(source->units), ns_text(source->took_ns));
	}
	if (source->units_beyond > 0)
		page_wrap(page, STYLE_WARN, "", indent,
			  "%s units are not read: [pressure] max_units",
			  count_text(source->units_beyond));
	if (source->units_unreadable > 0)
		page_wrap(page, STYLE_PLAIN, "", indent,
			  "%s units have no pressure files that can be read",
			  count_text(source->units_unreadable));
}
