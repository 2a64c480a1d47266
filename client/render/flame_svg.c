/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/flame_svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/page.h"
#include "common/base.h"

/* Lengths in pixels. A letter of the names is less than 7.3 pixels wide. */
enum { WIDTH = 1200, MARGIN = 10, ROW = 17, LINE = 18, LEAST_TEXT = 27, LEVELS = 5, TINTS = 4 };
#define LETTER	    7.3
#define LEAST_WIDTH 0.3

/*
 * The classes of frames: n names of threads, u user, k kernel, each in four tints; of a comparison,
 * m more than before, l less, each in five steps.
 */
static const char style[] =
	"text{font:12px monospace;fill:#1b1f27;unicode-bidi:isolate}"
	".h{font:600 16px sans-serif}.l{font:13px sans-serif;fill:#626b7a}.b{fill:#fff}"
	".n0{fill:#cdd4de}.n1{fill:#d3d9e2}.n2{fill:#d8dde5}.n3{fill:#dde2e9}"
	".u0{fill:#f0a35e}.u1{fill:#f1a866}.u2{fill:#f2ad70}.u3{fill:#f3b47b}"
	".k0{fill:#8fb4e8}.k1{fill:#97b9ea}.k2{fill:#9fbfec}.k3{fill:#a7c5ee}"
	".s{fill:#e9e7e2}"
	".m1{fill:#e8cdc7}.m2{fill:#e6b1a9}.m3{fill:#e4958c}.m4{fill:#e0746c}.m5{fill:#dc5850}"
	".l1{fill:#cfd6e2}.l2{fill:#b5c6e4}.l3{fill:#98b3e4}.l4{fill:#7da1e2}.l5{fill:#5f8ee0}"
	"g:hover rect{stroke:#1b1f27}"
	"@media (prefers-color-scheme:dark){"
	"text{fill:#e5e9f0}.l{fill:#98a2b3}.b{fill:#101318}"
	".n0{fill:#3a4350}.n1{fill:#3f4856}.n2{fill:#444d5b}.n3{fill:#495260}"
	".u0{fill:#8f5526}.u1{fill:#96592a}.u2{fill:#9d5e2e}.u3{fill:#a46333}"
	".k0{fill:#48699e}.k1{fill:#4d6fa5}.k2{fill:#5375ac}.k3{fill:#597bb3}"
	".s{fill:#39404b}"
	".m1{fill:#5c4549}.m2{fill:#7c484a}.m3{fill:#974a4a}.m4{fill:#ae4a48}.m5{fill:#c44a45}"
	".l1{fill:#3e4c63}.l2{fill:#42587e}.l3{fill:#456499}.l4{fill:#4870b4}.l5{fill:#4b79c8}"
	"g:hover rect{stroke:#e5e9f0}}";

/* One of the graphs of a picture. */
struct graph {
	const struct flame_svg *svg;
	const struct flame *flame;
	enum flame_side side;
	double scale;	/* pixels for each ns or call */
	double least;	/* frames narrower than this many pixels are not drawn */
	size_t deepest; /* depth of the deepest frame that is drawn */
	size_t n_drawn;
	size_t n_left_out;
	size_t top; /* where the graph begins, in pixels */
};

/* Prints escaped text. XML has no U+FFFE and U+FFFF, not even as references. */
static void put_text(FILE *out, const char *text)
{
	for (const char *s = text; *s; s++) {
		if (*s == '<')
			fputs("&lt;", out);
		else if (*s == '>')
			fputs("&gt;", out);
		else if (*s == '&')
			fputs("&amp;", out);
		else if (*s == '"')
			fputs("&quot;", out);
		else if (strncmp(s, "\xef\xbf\xbe", 3) == 0 || strncmp(s, "\xef\xbf\xbf", 3) == 0)
			fprintf(out, "\\uff%c%c", 'f', *(s += 2) == '\xbe' ? 'e' : 'f');
		else
			fputc(*s, out);
	}
}

static const char *value_text(const struct flame_svg *svg, int64_t value)
{
	return svg->is_count ? count_text(value) : ns_text(value);
}

static double width_of(const struct graph *graph, size_t frame)
{
	return (double)graph->flame->frames[frame].value[graph->side] * graph->scale;
}

/* Counts the frames that are drawn, and how deep they are. */
static void graph_count(struct graph *graph)
{
	graph->n_drawn = graph->n_left_out = graph->deepest = 0;
	for (size_t i = 0; i < graph->flame->n; i++) {
		const struct flame_frame *frame = &graph->flame->frames[i];

		if (frame->value[graph->side] <= 0)
			continue;
		if (width_of(graph, i) < graph->least) {
			graph->n_left_out++;
			continue;
		}
		graph->n_drawn++;
		if (frame->depth > graph->deepest)
			graph->deepest = frame->depth;
	}
}

static struct graph graph_of(const struct flame_svg *svg, const struct flame *flame,
			     enum flame_side side)
{
	const int64_t *all = flame->frames[0].value;
	int64_t widest = svg->is_comparison && all[FLAME_BASE] > all[FLAME_NEW] ? all[FLAME_BASE]
										: all[FLAME_NEW];
	struct graph graph = {
		.svg = svg,
		.flame = flame,
		.side = side,
		.scale = widest > 0 ? (WIDTH - 2 * MARGIN) / (double)widest : 0,
		.least = LEAST_WIDTH,
	};

	graph_count(&graph);
	while (graph.n_drawn > FLAME_SVG_FRAMES_MAX) {
		graph.least *= 2;
		graph_count(&graph);
	}
	return graph;
}

static size_t graph_height(const struct graph *graph)
{
	return graph->n_drawn > 0 ? (graph->deepest + 1) * ROW : 0;
}

/* Prints the class that colours a frame. */
static void put_class(const struct graph *graph, size_t number)
{
	static const char kinds[] = { 'n', 'u', 'k' };
	const struct flame_frame *frame = &graph->flame->frames[number];
	int64_t change = frame->value[FLAME_NEW] - frame->value[FLAME_BASE];
	int64_t most = change > 0 ? frame->value[FLAME_NEW] : frame->value[FLAME_BASE];
	double share = most > 0 ? (double)change / (double)most : 0;
	int level;

	if (!graph->svg->is_comparison) {
		fprintf(graph->svg->out, "%c%zu", kinds[frame->kind], frame->name % TINTS);
		return;
	}
	level = (int)((share < 0 ? -share : share) * LEVELS + 0.9);
	if (level == 0)
		fputc('s', graph->svg->out);
	else
		fprintf(graph->svg->out, "%c%d", share > 0 ? 'm' : 'l',
			level > LEVELS ? LEVELS : level);
}

/* Prints what is shown while the pointer is on a frame. A share may be "<1 %". */
static void put_frame_title(const struct graph *graph, size_t number)
{
	static const char *const kinds[] = { "", " (user)", " (kernel)" };
	const struct flame_svg *svg = graph->svg;
	const struct flame_frame *frame = &graph->flame->frames[number];
	const int64_t *all = graph->flame->frames[0].value;
	int64_t change = frame->value[FLAME_NEW] - frame->value[FLAME_BASE];
	_cleanup_(freep) char *text = NULL;
	int r;

	if (svg->is_comparison)
		r = asprintf(&text, ": %s before, %s now, %s%s",
			     value_text(svg, frame->value[FLAME_BASE]),
			     value_text(svg, frame->value[FLAME_NEW]), change < 0 ? "-" : "+",
			     value_text(svg, change < 0 ? -change : change));
	else
		r = asprintf(&text, "%s: %s, %s", kinds[frame->kind],
			     value_text(svg, frame->value[graph->side]),
			     share_text(frame->value[graph->side], all[graph->side]));
	if (r < 0)
		text = NULL;
	fputs("<title>", svg->out);
	put_text(svg->out, flame_name(graph->flame, number));
	put_text(svg->out, must(text));
	fputs("</title>", svg->out);
}

static void put_name(const struct graph *graph, size_t number, double x, size_t y, double width)
{
	const char *name = flame_name(graph->flame, number);
	size_t room = (size_t)((width - 6) / LETTER);
	_cleanup_(freep) char *begin = NULL;
	bool is_cut;

	if (width < LEAST_TEXT)
		return;
	is_cut = text_columns(name) > room;
	begin = text_begin(name, is_cut ? room - 1 : room);
	fprintf(graph->svg->out, "<text x=\"%.2f\" y=\"%zu\">", x + 3, y + 12);
	put_text(graph->svg->out, begin);
	fprintf(graph->svg->out, "%s</text>", is_cut ? "\u2026" : "");
}

static void put_frame(const struct graph *graph, size_t number)
{
	const struct flame_frame *frame = &graph->flame->frames[number];
	double x = MARGIN + (double)frame->start[graph->side] * graph->scale;
	double width = width_of(graph, number);
	size_t y = graph->top + (graph->deepest - frame->depth) * ROW;
	FILE *out = graph->svg->out;

	if (frame->value[graph->side] <= 0 || width < graph->least)
		return;
	fprintf(out, "<g data-value=\"%" PRId64 "\">", frame->value[graph->side]);
	put_frame_title(graph, number);
	fputs("<rect class=\"", out);
	put_class(graph, number);
	fprintf(out, "\" x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%d\"/>", x, y, width,
		ROW - 1);
	put_name(graph, number, x, y, width);
	fputs("</g>\n", out);
}

static void put_line(FILE *out, const char *class, size_t *y, const char *text)
{
	fprintf(out, "<text class=\"%s\" x=\"%d\" y=\"%zu\">", class, MARGIN, *y);
	put_text(out, text);
	fputs("</text>\n", out);
	*y += LINE;
}

static void put_head(const struct flame_svg *svg, size_t height)
{
	size_t y = MARGIN + 14;

	fprintf(svg->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
		"viewBox=\"0 0 %d %zu\" data-unit=\"%s\">\n<title>",
		WIDTH, height, WIDTH, height, svg->is_count ? "count" : "nanoseconds");
	put_text(svg->out, svg->title);
	fprintf(svg->out,
		"</title>\n<style>%s</style>\n"
		"<rect class=\"b\" width=\"100%%\" height=\"100%%\"/>\n",
		style);
	put_line(svg->out, "h", &y, svg->title);
	for (size_t i = 0; i < FLAME_SVG_LINES_MAX && svg->lines[i]; i++)
		put_line(svg->out, "l", &y, svg->lines[i]);
}

static size_t head_height(const struct flame_svg *svg)
{
	size_t n = 1;

	for (size_t i = 0; i < FLAME_SVG_LINES_MAX && svg->lines[i]; i++)
		n++;
	return MARGIN + n * LINE + 6;
}

/* Prints below a graph what it is, and what is not in it. */
static void put_foot(const struct graph *graph)
{
	const struct flame_svg *svg = graph->svg;
	size_t y = graph->top + graph_height(graph) + 14;
	_cleanup_(freep) char *text = NULL;
	const char *name = !svg->is_comparison	      ? ""
			   : graph->side == FLAME_NEW ? "now: "
						      : "before: ";
	size_t missing = graph->flame->n_missing;

	if (asprintf(&text, "%s%s in all%s%s%s%s%s", name,
		     value_text(svg, graph->flame->frames[0].value[graph->side]),
		     graph->n_left_out > 0 ? "; frames too narrow to be drawn: " : "",
		     graph->n_left_out > 0 ? count_text((long long)graph->n_left_out) : "",
		     missing > 0 ? "; frames for which there was no memory: " : "",
		     missing > 0 ? count_text((long long)missing) : "",
		     graph->n_drawn == 0 ? "; there is nothing to draw" : "") < 0)
		text = NULL;
	put_line(svg->out, "l", &y, must(text));
}

void flame_svg_draw(const struct flame_svg *svg, const struct flame *flame)
{
	struct graph graphs[] = { graph_of(svg, flame, FLAME_NEW),
				  graph_of(svg, flame, FLAME_BASE) };
	size_t n = svg->is_comparison ? 2 : 1, height = head_height(svg);

	for (size_t i = 0; i < n; i++) {
		graphs[i].top = height;
		height += graph_height(&graphs[i]) + LINE + MARGIN;
	}
	put_head(svg, height);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < flame->n && graphs[i].n_drawn > 0; k++)
			put_frame(&graphs[i], k);
		put_foot(&graphs[i]);
	}
	fputs("</svg>\n", svg->out);
}
