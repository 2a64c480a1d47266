/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints what the page's own code computes from the data of a page, as JSON: report_model.js MODEL DATA.
 * Without DATA, checks that code with data made here.
 */
'use strict';

const assert = require('assert');
const fs = require('fs');

const model = require(process.argv[2]);

function ofPage(path) {
	const m = model.read(JSON.parse(fs.readFileSync(path, 'utf8')));
	const n = m.columns.length, views = ['oncpu', 'runnable', 'blocked', 'all'], out = { columns: [] };
	for (let c = 0; c < n; c++) {
		const sums = model.sum(m, c, c + 1), one = { start: m.columns[c].start, covered: sums.covered };
		for (const view of views) {
			const values = model.totals(m, sums, view, true, false);
			one[view] = values[values.length - 1];
		}
		out.columns.push(one);
	}
	const whole = model.sum(m, 0, n), half = model.sum(m, 0, Math.max(n >> 1, 1));
	out.nodes = {};
	const values = model.totals(m, whole, 'all', true, false);
	m.parent.forEach((parent, i) => {
		if (parent === model.ROOT)
			out.nodes[model.name(m, i)] = values[i];
		assert(parent < i, 'a caller comes before what it calls');
	});
	out.table = model.table(m, whole, null, 'all', 'stack', true).map((g) => ({
		value: g.value, path: model.path(m, m.keyNode[g.key]).map((node) => model.name(m, node)) }));
	out.functions = model.table(m, whole, null, 'all', 'function', true).map((g) =>
		[m.strings[m.keyFunction[g.key]], g.value]);
	out.change = model.table(m, whole, half, 'all', 'stack', true).reduce((sum, g) => sum + g.value - g.before, 0);
	out.compared = model.table(m, whole, half, 'all', 'function', false).map((g) => m.strings[m.keyFunction[g.key]]);
	out.rates = model.totals(m, whole, 'all', false, true)[m.parent.length];
	out.sums = model.totals(m, whole, 'all', false, false)[m.parent.length];
	out.reasons = model.byReason(m).map((one) => [one.name, one.total]);
	out.latencies = model.latencyKinds(m);
	const h = model.heat(m, 0, n, (l) => !l.isIo);
	out.buckets = [...h.sums];
	out.strings = m.strings;
	out.data = m.data;
	process.stdout.write(JSON.stringify(out));
}

/* Returns data with n stacks of up to 12 frames, in two columns; in the second, one function is slower. */
function madeData(n) {
	const data = { strings: [''], frames: [], nodes: [], processes: [1, 1, 0, 0, 0], keys: [], columns: [],
		rows: [[], []], latencies: [], waits: [], reasons: {} };
	for (let i = 0; i < 2000; i++) {
		data.strings.push(`function_${i}`);
		data.frames.push(i % 3 ? 1 : 2, i + 1, 0);
	}
	let seed = 1;
	const random = (below) => {
		seed = (seed * 48271) % 2147483647;
		return seed % below;
	};
	for (let i = 0; i < n; i++) {
		let parent = i % 40 ? data.nodes.length / 2 - 1 - random(Math.min(40, data.nodes.length / 2)) : -1;
		for (let depth = 1 + random(3); depth > 0; depth--) {
			data.nodes.push(parent, random(2000));
			parent = data.nodes.length / 2 - 1;
		}
		data.keys.push(i % 5 ? 0 : 1, parent, 0, 0, 0, 0, 0, 0);
		const time = 1000 + random(1e6);
		data.rows[0].push(i, time, i % 5 ? 7 : 0, 1, time);
		if (i !== 3)
			data.rows[1].push(i, i === 9 ? 3 * time : time, i % 5 ? 7 : 0, 1, time);
	}
	for (let c = 0; c < 2; c++)
		data.columns.push(c * 5e9, (c + 1) * 5e9, 5e9, 5e9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	return data;
}

/* Prints the CPU time that a piece of work takes. */
function timed(what, work) {
	const started = process.cpuUsage(), result = work(), used = process.cpuUsage(started);
	console.log(`${what}: ${((used.user + used.system) / 1e3).toFixed(1)} ms`);
	return result;
}

function checkLayout(m, values) {
	const layout = model.layout(m, values, model.ROOT, 0), under = new Map();
	layout.node.forEach((node, i) => under.set(node, i));
	layout.node.forEach((node, i) => {
		if (node === model.ROOT)
			return;
		const caller = under.get(m.parent[node]);
		assert(layout.depth[i] === layout.depth[caller] + 1);
		assert(layout.x[i] >= layout.x[caller] - 1e-9);
		assert(layout.x[i] + layout.width[i] <= layout.x[caller] + layout.width[caller] + 1e-9);
		assert(Math.abs(layout.width[i] - values[node] / values[values.length - 1]) < 1e-12);
	});
	const narrow = model.layout(m, values, model.ROOT, 0.001);
	assert(narrow.left > 0 && narrow.node.length < layout.node.length);
	assert(narrow.width.every((width) => width >= 0.001));
}

function ofMade() {
	const n = 50000, data = madeData(n), m = timed('read', () => model.read(data));
	const base = timed('sum', () => model.sum(m, 0, 1)), now = model.sum(m, 1, 2);
	const want = data.rows[0].reduce((sum, v, i) => sum + (i % 5 === 1 || i % 5 === 2 ? v : 0), 0);
	const values = timed('tree', () => model.totals(m, base, 'all', false, false));
	assert.strictEqual(values[values.length - 1], want);
	timed('layout', () => model.layout(m, values, model.ROOT, 1 / 1400));
	checkLayout(m, values);

	/* One function is three times slower, one stack is gone: these are the first rows. */
	const rows = timed('difference', () => model.table(m, now, base, 'all', 'stack', false));
	const slow = rows.find((g) => g.key === 9), gone = rows.find((g) => g.key === 3);
	assert(rows.indexOf(slow) < 2 && rows.indexOf(gone) < 2);
	assert.strictEqual(slow.value - slow.before, 2 * data.rows[0][9 * 5 + 1]);
	assert(gone.value === 0 && gone.before > 0);
	const sum = (key) => rows.reduce((total, g) => total + g[key], 0);
	assert.strictEqual(sum('before'), want);
	assert.strictEqual(sum('value'), data.rows[1].reduce((s, v, i) => s + (i % 5 === 1 || i % 5 === 2 ? v : 0), 0));

	/* A match below another match does not count twice. */
	const found = timed('search', () => model.search(m, values, 'FUNCTION_'));
	assert.strictEqual(found.time, want);
	assert.strictEqual(model.search(m, values, 'no such').count, 0);
	assert.strictEqual(model.duration(61e9), '1.02 min');

	const placed = model.lanes([{ start: 0, length: 10 }, { start: 5, length: 10 }, { start: 10, length: 5 },
		{ start: 6, length: 2 }], 2);
	assert.deepStrictEqual(placed.map((p) => p.lane), [0, 1, 0]);
	assert.deepStrictEqual(model.columnsOf(m, 1, 2), [0, 1]);

	/* A gap of all probes is one; gaps of one probe, of other times or reasons are not joined. */
	const gaps = [[0, 0, 9e9, 'off'], [1, 5e8, 9e9, 'off'], [0, 2e8, 9e9, 'off'], [2, 0, 9e9, 'full'],
		[2, 0, 2e10, 'off']];
	assert.deepStrictEqual(model.joinGaps(gaps).map((g) => [g.probes.join(), g.reason, g.end]),
		[['offcpu,oncpu', 'off', 9e9], ['offcpu', 'off', 9e9], ['iolat', 'full', 9e9],
			['iolat', 'off', 2e10]]);
	console.log('all good');
}

if (process.argv[3])
	ofPage(process.argv[3]);
else
	ofMade();
