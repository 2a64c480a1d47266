/* SPDX-License-Identifier: GPL-2.0-or-later */
'use strict';

/* Draws the timeline, flame graphs and the map of latencies on canvases, in the colours of the page. */
const draw = (() => {
	const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
	const MONO = '11.5px ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace';
	const LEFT = 126, RIGHT = 12, FRAME = 19;
	const WAITS = 5, WAIT_HEIGHT = 11;
	/* Colours of reasons and operations, by their place in the legend. */
	const LIGHT = ['#5b7fd4', '#c9647c', '#7c63b8', '#3f9aa6', '#b98a34', '#6f8f4e', '#9aa3b0'];
	const DARK = ['#6f93ea', '#dd7f95', '#9a82d8', '#55b3bf', '#cfa14c', '#87ab63', '#8791a0'];

	function colour(name) {
		return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
	}

	function palette() {
		return document.documentElement.dataset.theme === 'dark' ? DARK : LIGHT;
	}

	/* Makes the canvas as large as it is shown. Returns its context, in CSS pixels, and its width. */
	function prepare(canvas, height) {
		const ratio = window.devicePixelRatio || 1;
		canvas.style.height = `${height}px`;
		const width = Math.max(canvas.clientWidth, 50);
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		const g = canvas.getContext('2d');
		g.setTransform(ratio, 0, 0, ratio, 0, 0);
		g.clearRect(0, 0, width, height);
		g.textBaseline = 'middle';
		g.font = FONT;
		return { g, width };
	}

	/* Shortens a text to a width; names run from left to right, whatever they contain. */
	function fit(g, text, width) {
		if (g.measureText(text).width <= width)
			return text;
		let low = 0, high = text.length;
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			if (g.measureText(`${text.slice(0, middle)}\u2026`).width <= width)
				low = middle;
			else
				high = middle - 1;
		}
		return low > 1 ? `${text.slice(0, low)}\u2026` : '';
	}

	function hatch(g, x, y, width, height) {
		g.save();
		g.beginPath();
		g.rect(x, y, width, height);
		g.clip();
		g.fillStyle = colour('soft');
		g.fillRect(x, y, width, height);
		g.strokeStyle = colour('hatch');
		g.lineWidth = 1;
		g.beginPath();
		for (let at = x - height; at < x + width; at += 7) {
			g.moveTo(at, y + height);
			g.lineTo(at + height, y);
		}
		g.stroke();
		g.restore();
	}

	/* Returns a round number at least as large as a value, for the top of a scale. */
	function roundUp(value) {
		if (!(value > 0))
			return 1;
		const unit = 10 ** Math.floor(Math.log10(value));
		return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((f) => f * unit).find((v) => v >= value * 0.999) || value;
	}

	function number(value) {
		return value >= 100 ? value.toFixed(0) : String(Math.round(value * 100) / 100);
	}

	/*
	 * Returns the time at x and x of a time, for a canvas of a width. It ends where the range does: time
	 * without data behind the last column is shown, up to half of the picture.
	 */
	function scaleOf(m, width) {
		const start = m.columns[0].start, last = m.columns[m.columns.length - 1].end;
		const end = Math.max(last, Math.min(m.data.asked[1], m.data.made, 2 * last - start));
		const room = width - LEFT - RIGHT;
		return {
			start, end, room, x: (ns) => LEFT + (ns - start) / (end - start) * room,
			time: (x) => start + Math.min(Math.max((x - LEFT) / room, 0), 1) * (end - start),
		};
	}

	/* The values of a column in a lane are averages: ns per ns. null: not known. */
	function stack(g, m, scale, lane, y) {
		const bottom = y + lane.height;
		m.columns.forEach((c, i) => {
			const x = scale.x(c.start), width = Math.max(scale.x(c.end) - x, 0.5);
			let at = bottom;
			const length = lane.length(c);
			if (!(length > 0)) {
				hatch(g, x, y, width, lane.height);
				return;
			}
			for (const one of lane.series) {
				const height = one.values[i] / length / lane.top * lane.height;
				g.fillStyle = one.colour;
				g.fillRect(x, at - height, Math.max(width - (width > 5 ? 1 : 0), 0.5), height);
				at -= height;
			}
		});
	}

	function lines(g, m, scale, lane, y) {
		const bottom = y + lane.height;
		m.columns.forEach((c) => {
			if (!(lane.length(c) > 0))
				hatch(g, scale.x(c.start), y, scale.x(c.end) - scale.x(c.start), lane.height);
		});
		for (const one of lane.series) {
			g.strokeStyle = one.colour;
			g.lineWidth = 1.75;
			g.beginPath();
			let isDown = false;
			m.columns.forEach((c, i) => {
				const length = lane.length(c);
				if (!(length > 0)) {
					isDown = false;
					return;
				}
				const level = bottom - one.values[i] / length / lane.top * (lane.height - 2) - 1;
				g[isDown ? 'lineTo' : 'moveTo'](scale.x(c.start), level);
				g.lineTo(scale.x(c.end), level);
				isDown = true;
			});
			g.stroke();
		}
	}

	function waits(g, m, scale, placed, y, chosen) {
		for (const { wait, lane } of placed) {
			const x = scale.x(Math.max(wait.start, scale.start));
			const end = scale.x(Math.min(wait.start + wait.length, scale.end));
			g.fillStyle = wait.colour;
			g.globalAlpha = chosen === wait ? 1 : 0.85;
			g.fillRect(x, y + lane * (WAIT_HEIGHT + 2), Math.max(end - x, 2), WAIT_HEIGHT);
			g.globalAlpha = 1;
			g.font = '10px system-ui, sans-serif';
			g.fillStyle = colour('card');
			const text = end - x > 60 ? fit(g, `${wait.comm}: ${wait.what}`, end - x - 8) : '';
			g.fillText(text, x + 4, y + lane * (WAIT_HEIGHT + 2) + WAIT_HEIGHT / 2 + 0.5);
		}
		g.font = FONT;
	}

	/* Draws the gaps between columns, and behind the last one, over all lanes. */
	function gaps(g, m, scale, height) {
		m.columns.forEach((c, i) => {
			const next = m.columns[i + 1], end = next ? next.start : scale.end;
			if (end - c.end > (next ? 1e6 : 1e9))
				hatch(g, scale.x(c.end), 0, Math.max(scale.x(end) - scale.x(c.end), 2), height);
		});
	}

	function axis(g, scale, y, clock) {
		const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400,
			21600, 43200, 86400, 172800, 604800].map((s) => s * 1e9);
		const wanted = (scale.end - scale.start) / Math.max(scale.room / 110, 1);
		const step = steps.find((s) => s >= wanted) || wanted;
		g.fillStyle = colour('dim');
		g.strokeStyle = colour('line');
		g.lineWidth = 1;
		g.textAlign = 'center';
		for (let at = clock.first(scale.start, step); at <= scale.end; at += step) {
			const x = Math.round(scale.x(at)) + 0.5;
			g.beginPath();
			g.moveTo(x, y);
			g.lineTo(x, y + 4);
			g.stroke();
			const text = clock.text(at, step), most = LEFT + scale.room + RIGHT - g.measureText(text).width / 2;
			g.fillText(text, Math.min(x, most), y + 13);
		}
		g.textAlign = 'left';
	}

	function brush(g, scale, m, range, name, label, height) {
		if (!range || (name === 'accent' && range[0] === 0 && range[1] === m.columns.length))
			return;
		const x = scale.x(m.columns[range[0]].start), end = scale.x(m.columns[range[1] - 1].end);
		const tone = colour(name);
		g.fillStyle = tone;
		g.globalAlpha = 0.13;
		g.fillRect(x, 0, end - x, height);
		g.globalAlpha = 1;
		g.fillRect(x - 1, 0, 2, height);
		g.fillRect(end - 1, 0, 2, height);
		g.font = '600 11px system-ui, sans-serif';
		const width = g.measureText(label).width + 10;
		g.fillRect(x - 1, 0, width, 16);
		g.fillStyle = colour('card');
		g.fillText(label, x + 4, 8.5);
		g.font = FONT;
	}

	/* Draws the timeline: t has lanes, waits, ranges and the clock. Returns what events need. */
	function timeline(canvas, m, t) {
		const gap = 12, waitsHeight = t.waits.length ? WAITS * (WAIT_HEIGHT + 2) + gap : 0;
		const height = 20 + t.lanes.reduce((sum, lane) => sum + lane.height + gap, 0) + waitsHeight;
		const { g, width } = prepare(canvas, height + 22), scale = scaleOf(m, width);
		let y = 20;
		for (const lane of t.lanes) {
			g.strokeStyle = colour('line');
			g.lineWidth = 1;
			g.strokeRect(LEFT - 0.5, y + 0.5, scale.room + 1, lane.height);
			(lane.isLines ? lines : stack)(g, m, scale, lane, y);
			g.fillStyle = colour('text');
			g.font = `600 ${FONT}`;
			g.fillText(lane.title, 0, y + 8);
			g.font = FONT;
			g.fillStyle = colour('dim');
			g.fillText(lane.unit, 0, y + 24);
			g.textAlign = 'right';
			g.fillText(lane.isLines ? `${number(lane.top * 100)} %` : number(lane.top), LEFT - 8, y + 8);
			g.textAlign = 'left';
			y += lane.height + gap;
		}
		if (t.waits.length) {
			g.fillStyle = colour('text');
			g.font = `600 ${FONT}`;
			g.fillText('Longest waits', 0, y + 8);
			g.font = FONT;
			g.fillStyle = colour('dim');
			g.fillText('one by one', 0, y + 24);
			waits(g, m, scale, t.waits, y, t.hover);
		}
		gaps(g, m, scale, height);
		axis(g, scale, height, t.clock);
		brush(g, scale, m, t.b, 'base', 'compare with', height);
		brush(g, scale, m, t.a, 'accent', 'range', height);
		if (t.cursor !== null) {
			g.fillStyle = colour('text');
			g.fillRect(scale.x((m.columns[t.cursor].start + m.columns[t.cursor].end) / 2) - 0.5, 16, 1,
				height - 16);
		}
		return { scale, waitsTop: y, waitHeight: WAIT_HEIGHT + 2 };
	}

	/* Returns a function from shares, 0 to 1, to the colours between two; it makes 64 of them, once each. */
	function scaleOfColours(from, to) {
		const read = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16));
		const a = read(from), b = read(to), made = [];
		return (share) => {
			const step = Math.round(share * 64);
			if (!made[step])
				made[step] = `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * step / 64)).join(',')})`;
			return made[step];
		};
	}

	function long(c) {
		return c.length === 4 ? `#${[...c.slice(1)].map((d) => d + d).join('')}` : c;
	}

	/* Returns the colours of the kinds of frames, and those of differences, once for a drawing. */
	function paints() {
		const tone = (name) => long(colour(name));
		const card = tone('card'), tints = (name, text) => ({ fill: scaleOfColours(tone(name), card), text: tone(text) });
		const more = scaleOfColours(tone('same'), tone('more')), less = scaleOfColours(tone('same'), tone('less'));
		return {
			process: tints('process', 'process-text'), user: tints('user', 'user-text'),
			kernel: tints('kernel', 'kernel-text'), pseudo: tints('pseudo', 'text'),
			root: tints('soft', 'text'), hit: tone('hit'), text: tone('text'),
			change: (share) => (share > 0 ? more : less)(Math.min(Math.abs(share), 1)),
		};
	}

	/*
	 * Draws a flame graph: f has the layout, the frames above its root (outermost first), and isFlame,
	 * change(node) or null, hits or null, chosen. Returns the boxes for events, as [x, y, width, node].
	 */
	function flame(canvas, m, f) {
		const above = f.above, rows = above.length + f.layout.deepest + 1;
		const { g, width } = prepare(canvas, Math.max(rows * FRAME, 3 * FRAME));
		const paint = paints(), boxes = [];
		const tint = [0, 0.05, 0.1, 0.15];
		const box = (node, x, row, w) => {
			const y = (f.isFlame ? rows - 1 - row : row) * FRAME;
			const isRoot = node === model.ROOT, tones = paint[isRoot ? 'root' : model.kind(m, node)];
			let { text } = tones, fill;
			if (!isRoot && f.change) {
				fill = paint.change(f.change(node));
				text = paint.text;
			} else {
				fill = tones.fill(isRoot ? 0 : tint[m.frameName[m.frame[node]] & 3]);
			}
			if (f.hits && node !== model.ROOT && f.hits[node]) {
				fill = paint.hit;
				text = '#ffffff';
			}
			g.fillStyle = fill;
			g.fillRect(x, y, Math.max(w - 0.6, 0.4), FRAME - 1);
			boxes.push([x, y, w, node]);
			if (node === f.chosen) {
				g.strokeStyle = paint.text;
				g.lineWidth = 2;
				g.strokeRect(x + 1, y + 1, Math.max(w - 2.5, 1), FRAME - 3);
			}
			if (w < 26)
				return;
			g.fillStyle = text;
			g.fillText(fit(g, node === model.ROOT ? f.title : model.name(m, node), w - 9), x + 5,
				y + FRAME / 2);
		};
		g.font = MONO;
		above.forEach((node, i) => box(node, 0, i, width));
		f.layout.node.forEach((node, i) =>
			box(node, f.layout.x[i] * width, above.length + f.layout.depth[i], f.layout.width[i] * width));
		return { boxes, height: FRAME };
	}

	/* Draws a map of latencies: columns of time from left to right, longer ones above. */
	function heat(canvas, m, h, t) {
		const cell = 17, side = 190, rows = Math.max(h.high - h.low, 1);
		const height = rows * cell + 24, { g, width } = prepare(canvas, height);
		const room = width - LEFT - side - 26;
		const start = m.columns[h.from].start, end = m.columns[h.to - 1].end;
		const x = (ns) => LEFT + (ns - start) / (end - start) * room;
		const tone = (name) => long(colour(name));
		const cool = scaleOfColours(tone('heat0'), tone('heat1')), hot = scaleOfColours(tone('heat1'), tone('heat2'));
		const shade = (count) => {
			const share = Math.log1p(count) / Math.log1p(h.most);
			return share < 0.6 ? cool(share / 0.6) : hot((share - 0.6) / 0.4);
		};
		const boxes = [];
		g.strokeStyle = colour('line');
		g.strokeRect(LEFT - 0.5, 0.5, room + 1, rows * cell);
		for (let c = h.from; c < h.to; c++) {
			const column = m.columns[c], left = x(column.start), w = x(column.end) - left;
			if (!(t.length(column) > 0)) {
				hatch(g, left, 1, w, rows * cell - 1);
				continue;
			}
			for (let b = h.low; b < h.high; b++) {
				const count = h.cells[c - h.from][b], y = (h.high - 1 - b) * cell;
				if (!count)
					continue;
				g.fillStyle = shade(count);
				g.fillRect(left, y + 1, Math.max(w - (w > 4 ? 1 : 0), 0.6), cell - 1);
				boxes.push([left, y, w, cell, c, b, count]);
			}
		}
		const whole = h.sums.reduce((a, b) => a + b, 0);
		const wholeBase = t.base ? t.base.sums.reduce((a, b) => a + b, 0) : 0;
		let most = 0;
		for (let b = h.low; b < h.high; b++)
			most = Math.max(most, h.sums[b] / (whole || 1), t.base ? t.base.sums[b] / (wholeBase || 1) : 0);
		for (let b = h.low; b < h.high; b++) {
			const y = (h.high - 1 - b) * cell, at = LEFT + room + 26;
			g.fillStyle = colour('dim');
			g.textAlign = 'right';
			if (rows < 12 || (b - h.low) % 2 === 0)
				g.fillText(model.duration(2 ** b), LEFT - 8, y + cell / 2);
			g.textAlign = 'left';
			g.fillStyle = colour('accent');
			g.globalAlpha = 0.75;
			g.fillRect(at, y + 3, h.sums[b] / (whole || 1) / (most || 1) * (side - 30), t.base ? 5 : cell - 6);
			g.globalAlpha = 1;
			g.fillStyle = colour('base');
			if (t.base && wholeBase > 0)
				g.fillRect(at, y + 9, t.base.sums[b] / wholeBase / (most || 1) * (side - 30), 5);
		}
		axis(g, { start, end, room, x }, rows * cell, t.clock);
		return boxes;
	}

	return { LEFT, timeline, flame, heat, palette, colour, roundUp };
})();
