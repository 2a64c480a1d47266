/* SPDX-License-Identifier: GPL-2.0-or-later */
'use strict';

/* The page: what is chosen, and what happens when it changes. Names become text only, never HTML. */
(() => {
	const $ = (id) => document.getElementById(id);
	const m = model.read(JSON.parse($('data').textContent));
	const N = m.columns.length;
	const VIEWS = [['oncpu', 'On CPU'], ['runnable', 'Runnable'], ['blocked', 'Blocked'], ['all', 'All']];
	const TABLE_ROWS = 50;
	const state = {
		a: [0, N], b: null, picks: 'a', cursor: null, view: 'blocked', idle: false, root: model.ROOT,
		chosen: model.ROOT, isFlame: false, text: '', by: 'stack', heatKind: '',
	};
	let sumsA, sumsB, values, valuesB, found, boxes = [], frameHeight = 19, line = null, heatBoxes = [];

	function make(tag, text, name) {
		const element = document.createElement(tag);
		if (text !== undefined)
			element.textContent = text;
		if (name)
			element.className = name;
		return element;
	}

	function row(table, cells, head) {
		const tr = make('tr');
		for (const [text, name] of cells)
			tr.append(text instanceof Node ? wrap(head ? 'th' : 'td', text, name) :
				make(head ? 'th' : 'td', text, name));
		table.append(tr);
		return tr;
	}

	function wrap(tag, inner, name) {
		const element = make(tag, undefined, name);
		element.append(inner);
		return element;
	}

	/* Times of day of the reader's time zone. */
	const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
	const dateOf = (ns) => new Date(m.data.base_ms + ns / 1e6);
	const pad = (n, size = 2) => String(n).padStart(size, '0');
	function clockText(ns, step) {
		const d = dateOf(ns), hours = `${pad(d.getHours())}:${pad(d.getMinutes())}`;
		if (step >= 86400e9)
			return `${pad(d.getMonth() + 1)}-${pad(d.getDate())}`;
		if (step >= 60e9)
			return hours;
		return `${hours}:${pad(d.getSeconds())}${step < 1e9 ? `.${Math.floor(d.getMilliseconds() / 100)}` : ''}`;
	}
	function fullText(ns) {
		const d = dateOf(ns);
		return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${clockText(ns, 1e9)}`;
	}
	/* A time of day, with the day if the page has several. */
	function momentText(ns, step) {
		const [first, last] = [m.columns[0].start, m.columns[N - 1].end].map((at) => dateOf(at).toDateString());
		return `${first === last ? '' : `${clockText(ns, 86400e9)} `}${clockText(ns, step)}`;
	}
	const clock = {
		text: clockText,
		first(ns, step) {
			const zero = new Date(dateOf(ns)).setHours(0, 0, 0, 0), into = (m.data.base_ms - zero) * 1e6 + ns;
			return ns + (Math.ceil(into / step) * step - into);
		},
	};
	function rangeText(range) {
		const from = m.columns[range[0]].start, to = m.columns[range[1] - 1].end;
		return `${momentText(from, 1e9)} - ${momentText(to, 1e9)} (${model.duration(to - from)})`;
	}

	/* -- the head ------------------------------------------------------------------------------ */

	function truth(text, isWarning, list) {
		const li = make('li', list ? undefined : text, isWarning ? 'warn' : '');
		if (list) {
			const details = make('details'), ul = make('ul');
			details.append(make('summary', text));
			for (const one of list)
				ul.append(make('li', one));
			details.append(ul);
			li.append(details);
		}
		$('truth').append(li);
	}

	function drawHead() {
		const d = m.data, covered = m.columns.reduce((sum, c) => sum + c.covered[0], 0);
		const lost = d.lost.reduce((sum, l) => sum + l[1], 0);
		const about = (v) => model.PROBES[v[0]];
		document.title = `stackd report: ${d.host}, ${fullText(m.columns[0].start)}`;
		$('title').textContent = d.host ? `What ${d.host} did` : 'stackd report';
		$('when').textContent = `${fullText(m.columns[0].start)} to ${fullText(m.columns[N - 1].end)}, ` +
			`${zone} time${d.filter ? `, only${d.filter.startsWith(' ') ? '' : ' '}${d.filter}` : ''}`;
		const asked = d.asked[1] - d.asked[0];
		truth(`${model.duration(covered)} covered` + (covered < asked ? ` of ${model.duration(asked)} asked for, ` : ', ') +
			`in ${N} columns`);
		const gaps = model.joinGaps(d.gaps);
		if (gaps.length)
			truth(`${gaps.length} gap${gaps.length > 1 ? 's' : ''}`, true, gaps.map((v) =>
				`${v.probes.join(', ')}, ${momentText(v.start, 1e9)} - ${momentText(v.end, 1e9)}: ${v.reason}`));
		if (lost)
			truth(`${lost.toLocaleString('en')} events lost`, true, d.lost.map((v) =>
				`${about(v)}: ${v[1].toLocaleString('en')} ${v[2]}`));
		else
			truth('nothing lost');
		d.missing.forEach((text, i) => {
			if (text)
				truth(`no data of ${model.PROBES[i]}: ${text}`, true);
		});
		if (d.cut[0])
			truth(`left out to keep the page small: ${d.cut[0].toLocaleString('en')} small rows with ` +
				`${model.share(d.cut[2], 1e6)} of the time, shown as "[not listed]"`, true);
		if (d.unsent[0] + d.unsent[1])
			truth(`${(d.unsent[0] + d.unsent[1]).toLocaleString('en')} small rows are shown as "[not listed]"`,
				true);
		if (d.cut_names)
			truth(`${d.cut_names} names shortened to 1000 bytes`);
		if (d.sample_below)
			truth(`times by stack of waits under ${model.duration(d.sample_below)} are estimates`);
		if (d.notes.length)
			truth(`${d.notes.length} note${d.notes.length > 1 ? 's' : ''}`, false,
				d.notes.map((v) => `${about(v)}: ${v[1]}`));
		if (d.cost[1])
			truth(`recording took ${(d.cost[0] / d.cost[1] * 100).toFixed(1)} % of one CPU`);
		$('foot').textContent = `Made by stackctl ${d.stackd}. This file loads nothing and sends nothing.`;
	}

	/* -- the timeline -------------------------------------------------------------------------- */

	const reasons = model.fold(model.byReason(m), 7), operations = model.fold(model.byOperation(m), 5);
	const wordsOf = (series) => new Map(series.map((one, i) => [one.name, i]));
	const reasonPlaces = wordsOf(reasons);

	function lanes() {
		const tones = draw.palette(), series = (key, tone) => ({
			values: m.columns.map((c) => c[key]), colour: draw.colour(tone) || tone, name: key,
		});
		const painted = (list) => list.map((one, i) => ({ ...one, colour: tones[Math.min(i, 6)] }));
		const all = [
			{ title: 'CPU', unit: 'threads', height: 72, length: (c) => c.covered[0], least: m.data.cpus,
				series: [{ ...series('onCpu', 'oncpu'), name: 'on CPU' },
					{ ...series('runnable', 'runnable'), name: 'runnable: ready, without a CPU' }] },
			{ title: 'Blocked', unit: 'threads, not idle', height: 72, length: (c) => c.covered[0], least: 0,
				series: painted(reasons).map((one) => ({ ...one,
					name: one.name === 'other' ? 'other reasons' : m.reasonOf(one.name) })) },
		];
		if (operations.length)
			all.push({ title: 'I/O', unit: 'threads in calls', height: 48, length: (c) => c.covered[2], least: 0,
				series: painted(operations).reverse() });
		if (m.columns.some((c) => c.stallLength > 0))
			all.push({ title: 'Pressure', unit: 'time with stalls', height: 40, isLines: true,
				length: (c) => c.stallLength, least: 0.05,
				series: [{ ...series('cpu', 'runnable'), name: 'CPU' },
					{ ...series('io', tones[1]), colour: tones[1], name: 'I/O' },
					{ ...series('memory', tones[2]), colour: tones[2], name: 'memory' }] });
		for (const lane of all) {
			let most = lane.least;
			m.columns.forEach((c, i) => {
				const length = lane.length(c), sum = lane.series.map((one) => one.values[i]);
				if (length > 0)
					most = Math.max(most, (lane.isLines ? Math.max(...sum) : sum.reduce((a, b) => a + b, 0)) / length);
			});
			lane.top = lane.isLines ? Math.min(draw.roundUp(most), 1) : draw.roundUp(most);
		}
		return all;
	}

	function drawLegend(all) {
		$('legend').replaceChildren();
		for (const lane of all) {
			$('legend').append(wrap('span', make('b', lane.title)));
			for (const one of lane.series) {
				const swatch = make('canvas'), span = make('span');
				swatch.width = swatch.height = 11;
				const g = swatch.getContext('2d');
				g.fillStyle = one.colour;
				g.fillRect(0, 0, 11, 11);
				span.append(swatch, one.name);
				$('legend').append(span);
			}
		}
		$('legend').append(make('span', 'hatched: no data'));
	}

	let placed = [];
	function placeWaits() {
		const tones = draw.palette();
		for (const wait of m.waits) {
			const word = m.strings[m.keyReason[wait.key]];
			wait.what = m.reasonOf(word);
			wait.colour = tones[reasonPlaces.has(word) ? reasonPlaces.get(word) : 6];
		}
		const first = m.columns[0].start, last = m.columns[N - 1].end;
		/* Waits that began in the range say more than those that were there all the time. */
		const shown = m.waits.filter((w) => w.start < last && w.start + w.length > first);
		placed = model.lanes([...shown.filter((w) => w.start >= first),
			...shown.filter((w) => w.start < first)], 5);
	}

	let allLanes = [];
	function drawTimeline() {
		line = draw.timeline($('timeline'), m, { lanes: allLanes, waits: placed, a: state.a, b: state.b,
			cursor: state.cursor, clock, hover: null });
		$('ranges').textContent = rangeText(state.a) + (state.b ? `, compared with ${rangeText(state.b)}` : '');
		$('pick-a').setAttribute('aria-pressed', String(state.picks === 'a'));
		$('pick-b').setAttribute('aria-pressed', String(state.picks === 'b'));
		$('clear').disabled = !state.b;
		$('all').disabled = state.a[0] === 0 && state.a[1] === N;
	}

	/* -- the flame graph ----------------------------------------------------------------------- */

	function compute() {
		sumsA = model.sum(m, ...state.a);
		sumsB = state.b ? model.sum(m, ...state.b) : null;
		values = model.totals(m, sumsA, state.view, state.idle, !!state.b);
		valuesB = sumsB ? model.totals(m, sumsB, state.view, state.idle, true) : null;
		if (state.root !== model.ROOT && !(values[state.root] > 0))
			state.root = model.ROOT;
		found = state.text ? model.search(m, values, state.text) : null;
	}

	const whole = (v) => v[v.length - 1];
	const at = (v, node) => (node === model.ROOT ? whole(v) : v[node]);
	const viewName = () => VIEWS.find(([id]) => id === state.view)[1];
	/* In a comparison, values are ns per covered second. */
	const timeText = (value) => (!state.b ? model.duration(value) : Math.abs(value) >= 6e10 ?
		`${(value / 1e9).toFixed(1)} s per s` : `${model.duration(value)} per s`);

	/* Returns how much larger a node is than before, from -1 (much smaller) to 1. */
	function change(node) {
		const now = values[node], before = valuesB[node], sum = Math.max(now, before);
		const weight = Math.abs(now - before) / Math.max(whole(values), whole(valuesB));
		/* A large share of itself, but only where it is some share of the whole. */
		return sum > 0 ? Math.sign(now - before) * Math.max(Math.abs(now - before) / sum *
			Math.min(1, weight * 200), Math.min(1, weight * 8)) : 0;
	}

	function frameText(node) {
		if (node === model.ROOT)
			return `${viewName()}: ${timeText(whole(values))}`;
		const parts = [`${timeText(values[node])}, ${model.share(values[node], whole(values))}`];
		if (valuesB)
			parts.push(`before ${timeText(valuesB[node])}, change ` +
				`${values[node] >= valuesB[node] ? '+' : ''}${timeText(values[node] - valuesB[node])}`);
		parts.push(`${model.kind(m, node)}${model.module(m, node) ? `, ${model.module(m, node)}` : ''}`);
		return `${model.name(m, node)}\n${parts.join('\n')}`;
	}

	function drawFlame() {
		const started = performance.now();
		const width = Math.max($('flame').clientWidth, 100);
		const above = state.root === model.ROOT ? [] : [model.ROOT, ...model.path(m, state.root).slice(0, -1)];
		const layout = model.layout(m, values, state.root, 0.35 / width);
		const result = draw.flame($('flame'), m, { layout, above, isFlame: state.isFlame,
			change: valuesB ? change : null, hits: found && found.hits, chosen: state.chosen,
			title: `${viewName()}: ${timeText(whole(values))}` });
		boxes = result.boxes;
		frameHeight = result.height;
		const parts = [];
		if (!(whole(values) > 0))
			parts.push(state.view === 'oncpu' && m.data.missing[1] ? m.data.missing[1] : 'no time in this range');
		if (state.view === 'oncpu' && whole(values) > 0)
			parts.push(`from samples, one for ${model.duration(m.data.period || 0)}`);
		if (found)
			parts.push(`${found.count.toLocaleString('en')} frames match, with ` +
				model.share(found.time, whole(values)));
		if (state.b)
			parts.push('widths: the range; red: more than before, blue: less');
		if (layout.left)
			parts.push(`${layout.left.toLocaleString('en')} frames are too narrow to be drawn`);
		$('flame-note').textContent = parts.join(' \u00b7 ');
		$('frame').textContent = frameText(state.chosen).replace(/\n/g, ' \u00b7 ');
		$('out').disabled = state.root === model.ROOT;
		$('copy').disabled = state.chosen === model.ROOT;
		$('flip').setAttribute('aria-pressed', String(state.isFlame));
		for (const button of $('views').children)
			button.setAttribute('aria-pressed', String(button.value === state.view));
		document.documentElement.dataset.flameMs = (performance.now() - started).toFixed(1);
	}

	/* -- the tables ---------------------------------------------------------------------------- */

	function describe(g) {
		const k = g.key, node = m.keyNode[k], process = model.processOf(m, k);
		const isOnCpu = m.keyProbe[k] === 1;
		const who = process && (state.by === 'process' || (state.by === 'stack' && !state.b)) ?
			`${model.name(m, model.commOf(m, node))} (pid ${process.pid})` : model.name(m, model.commOf(m, node));
		return { node, who, why: isOnCpu ? 'runs' : m.reasonOf(m.strings[m.keyReason[k]]),
			where: m.strings[m.keyFunction[k]] };
	}

	function cellsOf(g) {
		const d = describe(g), by = state.by;
		const cells = [];
		if (by !== 'reason' && by !== 'function')
			cells.push([d.who, 't']);
		if (by === 'stack' || by === 'reason')
			cells.push([d.why, 't']);
		if (by === 'stack' || by === 'function')
			cells.push([d.where, 'f']);
		return cells;
	}

	function headOf() {
		const by = state.by, cells = [];
		if (by !== 'reason' && by !== 'function')
			cells.push([by === 'comm' || (by === 'stack' && state.b) ? 'thread name' : 'process']);
		if (by === 'stack' || by === 'reason')
			cells.push(['waits for']);
		if (by === 'stack' || by === 'function')
			cells.push(['function']);
		return cells;
	}

	function pick(tr, g) {
		tr.className = 'link';
		tr.tabIndex = 0;
		const go = () => {
			choose(m.keyNode[g.key]);
			$('flame').scrollIntoView({ block: 'nearest' });
		};
		tr.addEventListener('click', go);
		tr.addEventListener('keydown', (e) => { if (e.key === 'Enter') go(); });
	}

	const signed = (ns) => `${ns > 0 ? '+' : ns < 0 ? '\u2212' : ''}${model.duration(Math.abs(ns))}`;

	function drawTable() {
		const rows = model.table(m, sumsA, sumsB, state.view, state.by, state.idle);
		const table = $('table'), shown = rows.filter((g) => g.value > 0 || !state.b).slice(0, TABLE_ROWS);
		const sum = rows.reduce((total, g) => total + g.value, 0);
		const gone = state.b ? rows.filter((g) => !(g.value > 0)) : [];
		table.replaceChildren();
		$('gone-table').replaceChildren();
		if (state.b)
			row(table, [['before', 'n'], ['now', 'n'], ['change', 'n'], ...headOf()], true);
		else
			row(table, [['time', 'n'], ['share', 'n'], ['count', 'n'], ['longest', 'n'], ...headOf()], true);
		for (const g of shown) {
			const delta = g.rate - g.rateBefore;
			const first = state.b ? [[model.duration(g.rateBefore), 'n'], [model.duration(g.rate), 'n'],
				[signed(delta) + (g.before > 0 ? '' : ', new'), `n ${delta > 0 ? 'more' : 'less'}`]] :
				[[(g.isEstimated ? '~' : '') + model.duration(g.value), 'n'], [model.share(g.value, sum), 'n'],
					[g.count ? g.count.toLocaleString('en') : 'not over', 'n'], [g.max ? model.duration(g.max) : '', 'n']];
			pick(row(table, [...first, ...cellsOf(g)]), g);
		}
		$('table-note').textContent = `${shown.length} of ${(rows.length - gone.length).toLocaleString('en')}` +
			(state.b ? ', per second that is covered, the largest change first' : '') +
			(rows.some((g) => g.isEstimated) && !state.b ? '; ~ is in part an estimate' : '');
		$('gone').hidden = gone.length === 0;
		if (gone.length) {
			$('gone-title').textContent = `Gone: ${gone.length.toLocaleString('en')} row${gone.length > 1 ? 's' : ''} ` +
				'of the other range, ' +
				`${model.duration(gone.reduce((total, g) => total + g.rateBefore, 0))} per s`;
			row($('gone-table'), [['before', 'n'], ...headOf()], true);
			for (const g of gone.slice(0, TABLE_ROWS))
				row($('gone-table'), [[model.duration(g.rateBefore), 'n less'], ...cellsOf(g)]);
		}
	}

	const kinds = model.latencyKinds(m);

	function fillKinds() {
		const select = $('heat-kind'), waits = make('optgroup'), io = make('optgroup');
		waits.label = 'Waits';
		io.label = 'I/O';
		const add = (group, id, text) => {
			const option = make('option', text);
			option.value = id;
			group.append(option);
		};
		add(waits, '', 'all waits, not idle');
		for (const l of kinds)
			if (l.isIo)
				add(io, l.id, `${l.layer}: ${l.name}`);
			else
				add(waits, l.id, l.name === 'idle' ? 'idle waits' : m.reasonOf(l.name));
		select.append(waits);
		if (io.children.length)
			select.append(io);
	}

	function drawHeat() {
		const kind = kinds.find((l) => l.id === state.heatKind);
		const wanted = kind ? (l) => l.isIo === kind.isIo && l.layer === kind.layer && l.name === kind.name :
			(l) => !l.isIo && l.name !== 'idle';
		const h = model.heat(m, ...state.a, wanted), base = state.b ? model.heat(m, ...state.b, wanted) : null;
		const count = h.sums.reduce((a, b) => a + b, 0);
		if (!(h.high > h.low))
			Object.assign(h, { low: 10, high: 20 });
		$('heat-note').textContent = `${count.toLocaleString('en')} ${kind && kind.isIo ? 'operations' : 'waits'} ` +
			`that ended in the range${state.b ? '; at the right, blue: the range, orange: compared with' : ''}`;
		heatBoxes = draw.heat($('heat'), m, h, { clock, base,
			length: (c) => c.covered[kind && kind.isIo ? 2 : 0] });
	}

	function drawWaits() {
		const first = m.columns[state.a[0]].start, last = m.columns[state.a[1] - 1].end;
		const rows = m.waits.filter((w) => w.start < last && w.start + w.length > first).slice(0, 20);
		$('waits').replaceChildren();
		$('waits-note').textContent = rows.length ? 'of threads that are not idle; the longest of each row and window' :
			'none in this range';
		if (!rows.length)
			return;
		row($('waits'), [['lasted', 'n'], ['began'], ['thread'], ['waited for'], ['held up by'], ['function']], true);
		for (const wait of rows) {
			const process = model.processOf(m, wait.key);
			const tr = row($('waits'), [[model.duration(wait.length) + (wait.isOpen ? ', not over' : ''), 'n'],
				[momentText(wait.start, 1e8)], [`${wait.comm} (pid ${process ? process.pid : '?'}, thread ${wait.tid})`, 't'],
				[wait.what, 't'], [wait.heldUpBy, 't'], [m.strings[m.keyFunction[wait.key]], 'f']]);
			pick(tr, { key: wait.key });
		}
	}

	function drawOpen() {
		const strings = m.strings, table = $('open'), d = m.data;
		$('open-note').textContent = d.open_at < 0 ? 'not known' :
			`at ${momentText(d.open_at, 1e9)}: ${d.open.length + d.open_more} thread` +
			`${d.open.length + d.open_more === 1 ? ' that is' : 's that are'} not idle` +
			(d.open_more ? `, the ${d.open.length} oldest listed` : '');
		if (!d.open.length)
			return;
		row(table, [['for', 'n'], ['state'], ['thread'], ['waits for'], ['held by'], ['function']], true);
		for (const o of d.open) {
			const held = make('span');
			for (const i of o[13])
				held.append(make('div', strings[i]));
			if (o[9] > 0)
				held.append(make('div', `and ${o[9]} more`));
			for (const i of o[14])
				held.append(make('div', `\u2192 ${strings[i]}`));
			if (o[10])
				held.append(make('div', 'a deadlock', 'more'));
			if (o[15] !== undefined)
				held.append(make('small', `as of ${momentText(o[15], 1e9)}`));
			if (o[8])
				held.append(make('small', strings[o[8]]));
			const object = o[7] ? `: ${strings[o[7]]}` : '';
			row(table, [[model.duration(o[4]) + (o[11] ? ', in doubt' : ''), 'n'], [strings[o[5]]],
				[`${strings[o[1]]} (pid ${o[2]}, thread ${o[3]})`, 't'], [m.reasonOf(strings[o[6]]) + object, 't'],
				[held, 't'], [strings[o[12]], 'f']]);
		}
	}

	/* -- changes ------------------------------------------------------------------------------- */

	let isPending = false;
	/* Computes and draws at most once for each picture on the screen, while a brush moves. */
	function update() {
		drawTimeline();
		if (isPending)
			return;
		isPending = true;
		requestAnimationFrame(() => {
			isPending = false;
			drawAll();
		});
	}

	function drawAll() {
		const started = performance.now();
		compute();
		drawFlame();
		drawTable();
		drawHeat();
		drawWaits();
		document.documentElement.dataset.brushMs = (performance.now() - started).toFixed(1);
	}

	function setRange(which, from, to) {
		state[which] = [Math.max(Math.min(from, to), 0), Math.min(Math.max(from, to), N)];
		if (state[which][0] === state[which][1])
			state[which] = [Math.min(state[which][0], N - 1), Math.min(state[which][0] + 1, N)];
		update();
	}

	function choose(node) {
		state.chosen = node;
		drawFlame();
	}

	function zoom(node) {
		state.root = node;
		state.chosen = node;
		drawFlame();
	}

	function setView(view) {
		state.view = view;
		drawAll();
	}

	function tip(event, text) {
		const box = $('tip');
		box.hidden = !text;
		if (!text)
			return;
		box.textContent = text;
		const x = Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 8);
		const y = event.clientY + 18 + box.offsetHeight > window.innerHeight ?
			event.clientY - box.offsetHeight - 10 : event.clientY + 18;
		box.style.left = `${Math.max(x, 4)}px`;
		box.style.top = `${Math.max(y, 4)}px`;
	}

	function columnAt(event) {
		const box = $('timeline').getBoundingClientRect(), ns = line.scale.time(event.clientX - box.left);
		const found_ = m.columns.findIndex((c) => ns < c.end);
		return found_ < 0 ? N - 1 : found_;
	}

	function columnText(c) {
		const column = m.columns[c], out = [`${momentText(column.start, 1e9)} - ${momentText(column.end, 1e9)}`];
		for (const lane of allLanes) {
			const length = lane.length(column);
			const parts = lane.series.map((one) => [one.name, one.values[c] / length])
				.filter(([, value]) => value >= 0.005)
				.map(([name, value]) => `${name} ${lane.isLines ? `${(value * 100).toFixed(0)} %` : value.toFixed(2)}`);
			out.push(`${lane.title}: ${length > 0 ? parts.join(', ') || '0' : 'no data'}`);
		}
		if (column.lost)
			out.push(`${column.lost} events lost`);
		return out.join('\n');
	}

	function waitAt(event) {
		const box = $('timeline').getBoundingClientRect(), y = event.clientY - box.top - line.waitsTop;
		const lane = Math.floor(y / line.waitHeight), ns = line.scale.time(event.clientX - box.left);
		const slack = (line.scale.end - line.scale.start) / line.scale.room * 2;
		const hit = placed.find((p) => p.lane === lane && ns >= p.wait.start - slack &&
			ns <= p.wait.start + p.wait.length + slack);
		return y >= 0 && hit ? hit.wait : null;
	}

	function listenTimeline() {
		const canvas = $('timeline');
		let drag = null;
		canvas.addEventListener('pointerdown', (event) => {
			if (event.button !== 0)
				return;
			drag = { which: event.shiftKey ? 'b' : state.picks, from: columnAt(event) };
			canvas.setPointerCapture(event.pointerId);
			setRange(drag.which, drag.from, drag.from + 1);
		});
		canvas.addEventListener('pointermove', (event) => {
			const c = columnAt(event), wait = waitAt(event);
			tip(event, wait ? `${wait.comm}, thread ${wait.tid}: ${wait.what}\n${model.duration(wait.length)}` +
				`${wait.isOpen ? ', not over' : ''} from ${momentText(wait.start, 1e8)}` : columnText(c));
			if (drag)
				setRange(drag.which, Math.min(drag.from, c), Math.max(drag.from, c) + 1);
		});
		canvas.addEventListener('pointerup', () => { drag = null; });
		canvas.addEventListener('pointerleave', (event) => tip(event, ''));
		canvas.addEventListener('dblclick', () => setRange(state.picks, 0, N));
		canvas.addEventListener('keydown', (event) => {
			const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
			if (!step && event.key !== 'Home' && event.key !== 'End')
				return;
			event.preventDefault();
			const which = state.picks, [from, to] = state[which] || state.a;
			if (event.key === 'Home')
				setRange(which, 0, 1);
			else if (event.key === 'End')
				setRange(which, N - 1, N);
			else if (event.shiftKey)
				setRange(which, from, Math.max(to + step, from + 1));
			else if (to - from === N)
				setRange(which, step > 0 ? 0 : N - 1, step > 0 ? 1 : N);
			else if (from + step >= 0 && to + step <= N)
				setRange(which, from + step, to + step);
		});
	}

	function boxAt(event) {
		const box = $('flame').getBoundingClientRect();
		const x = event.clientX - box.left, y = event.clientY - box.top;
		return boxes.find((b) => x >= b[0] && x < b[0] + b[2] && y >= b[1] && y < b[1] + frameHeight);
	}

	/* Moves the chosen frame: to a frame beside it in the same line, or one line on. */
	function moveChosen(key) {
		const mine = boxes.find((b) => b[3] === state.chosen) || boxes[0];
		const away = (key === 'ArrowDown') === !state.isFlame ? 1 : -1;
		let next = null;
		if (key === 'ArrowLeft' || key === 'ArrowRight') {
			const line_ = boxes.filter((b) => b[1] === mine[1]).sort((a, b) => a[0] - b[0]);
			next = line_[line_.indexOf(mine) + (key === 'ArrowRight' ? 1 : -1)];
		} else if (away > 0) {
			const y = mine[1] + (state.isFlame ? -frameHeight : frameHeight);
			next = boxes.filter((b) => b[1] === y && b[0] >= mine[0] - 0.01 && b[0] < mine[0] + mine[2])
				.sort((a, b) => b[2] - a[2])[0];
		} else {
			const y = mine[1] + (state.isFlame ? frameHeight : -frameHeight);
			next = boxes.find((b) => b[1] === y && b[0] <= mine[0] + 0.01 && b[0] + b[2] > mine[0]);
		}
		if (next)
			choose(next[3]);
	}

	function zoomOut() {
		if (state.root !== model.ROOT)
			zoom(m.parent[state.root]);
	}

	async function copyStack() {
		if (state.chosen === model.ROOT)
			return;
		const text = model.path(m, state.chosen).map((node) => model.name(m, node)).join('\n');
		try {
			await navigator.clipboard.writeText(text);
			$('frame').textContent = 'The stack is in the clipboard.';
		} catch (error) {
			/* Not every browser lets a file use the clipboard. */
			const area = make('textarea', text);
			document.body.append(area);
			area.select();
			$('frame').textContent = document.execCommand('copy') ? 'The stack is in the clipboard.' :
				'The browser does not allow to copy.';
			area.remove();
		}
	}

	function listenFlame() {
		const canvas = $('flame');
		canvas.addEventListener('pointermove', (event) => {
			const box = boxAt(event);
			tip(event, box ? frameText(box[3]) : '');
		});
		canvas.addEventListener('pointerleave', (event) => tip(event, ''));
		canvas.addEventListener('click', (event) => {
			const box = boxAt(event);
			if (box)
				zoom(box[3]);
		});
		canvas.addEventListener('keydown', (event) => {
			if (event.key.startsWith('Arrow')) {
				event.preventDefault();
				moveChosen(event.key);
			} else if (event.key === 'Enter') {
				zoom(state.chosen);
			} else if (event.key === 'Backspace') {
				zoomOut();
			} else if (event.key === 'y') {
				copyStack();
			}
		});
	}

	function toggleHelp() {
		$('help').hidden = !$('help').hidden;
		$('keys').setAttribute('aria-expanded', String(!$('help').hidden));
	}

	function listenKeys() {
		document.addEventListener('keydown', (event) => {
			if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName))
				return;
			if (event.key >= '1' && event.key <= '4')
				setView(VIEWS[event.key - 1][0]);
			else if (event.key === '/')
				$('search').focus();
			else if (event.key === '?')
				toggleHelp();
			else if (event.key === 'a')
				setRange('a', 0, N);
			else if (event.key === 'c')
				picks(state.picks === 'a' ? 'b' : 'a');
			else if (event.key === 'Escape')
				clear();
			else
				return;
			event.preventDefault();
		});
	}

	function picks(which) {
		state.picks = which;
		/* To have something to move: what is before the range, or after it; of all, the first half. */
		if (which === 'b' && !state.b) {
			const [from, to] = state.a, length = to - from, half = Math.floor(N / 2);
			if (from > 0)
				state.b = [Math.max(from - length, 0), from];
			else if (to < N)
				state.b = [to, Math.min(to + length, N)];
			else if (N > 1)
				[state.b, state.a] = [[0, half], [half, N]];
			else
				state.b = [0, N];
		}
		update();
	}

	function clear() {
		state.b = null;
		state.picks = 'a';
		update();
	}

	function setTheme(theme) {
		document.documentElement.dataset.theme = theme;
		allLanes = lanes();
		placeWaits();
		drawLegend(allLanes);
		drawTimeline();
	}

	function listen() {
		listenTimeline();
		listenFlame();
		listenKeys();
		$('pick-a').addEventListener('click', () => picks('a'));
		$('pick-b').addEventListener('click', () => picks('b'));
		$('all').addEventListener('click', () => setRange('a', 0, N));
		$('clear').addEventListener('click', clear);
		$('idle').addEventListener('change', () => { state.idle = $('idle').checked; drawAll(); });
		$('search').addEventListener('input', () => {
			state.text = $('search').value;
			found = state.text ? model.search(m, values, state.text) : null;
			drawFlame();
		});
		$('search').addEventListener('keydown', (event) => {
			if (event.key === 'Escape')
				$('flame').focus();
		});
		$('flip').addEventListener('click', () => { state.isFlame = !state.isFlame; drawFlame(); });
		$('out').addEventListener('click', zoomOut);
		$('copy').addEventListener('click', copyStack);
		$('by').addEventListener('change', () => { state.by = $('by').value; drawTable(); });
		$('heat-kind').addEventListener('change', () => { state.heatKind = $('heat-kind').value; drawHeat(); });
		$('keys').addEventListener('click', toggleHelp);
		$('theme').addEventListener('click', () => {
			setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
			drawAll();
		});
		$('heat').addEventListener('pointermove', (event) => {
			const box = $('heat').getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
			const hit = heatBoxes.find((b) => x >= b[0] && x < b[0] + b[2] && y >= b[1] && y < b[1] + b[3]);
			tip(event, hit ? `${momentText(m.columns[hit[4]].start, 1e9)}\n${model.duration(2 ** hit[5])} to ` +
				`${model.duration(2 ** (hit[5] + 1))}: ${hit[6].toLocaleString('en')}` : '');
		});
		$('heat').addEventListener('pointerleave', (event) => tip(event, ''));
		let timer = 0;
		window.addEventListener('resize', () => {
			clearTimeout(timer);
			timer = setTimeout(() => { drawTimeline(); drawAll(); }, 60);
		});
	}

	/*
	 * The state can be given in the address, as in #a=10-20&b=0-10&view=all&theme=dark, so that a link
	 * can point to what was found.
	 */
	function readAddress() {
		const words = new URLSearchParams(location.hash.slice(1));
		for (const which of ['a', 'b']) {
			const range = /^(\d+)-(\d+)$/.exec(words.get(which) || '');
			if (range && Number(range[1]) < Number(range[2]) && Number(range[2]) <= N)
				state[which] = [Number(range[1]), Number(range[2])];
		}
		if (VIEWS.some(([id]) => id === words.get('view')))
			state.view = words.get('view');
		if (words.get('search'))
			$('search').value = state.text = words.get('search');
		state.isFlame = words.get('flame') === '1';
		const theme = words.get('theme');
		return theme === 'dark' || theme === 'light' ? theme :
			window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
	}

	function start() {
		const theme = readAddress();
		for (const [id, text] of VIEWS) {
			const button = make('button', text);
			button.type = 'button';
			button.value = id;
			button.addEventListener('click', () => setView(id));
			$('views').append(button);
		}
		drawHead();
		fillKinds();
		setTheme(theme);
		drawAll();
		drawOpen();
		listen();
		document.documentElement.dataset.ready = performance.now().toFixed(0);
	}

	start();
})();
