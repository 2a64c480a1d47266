/* SPDX-License-Identifier: GPL-2.0-or-later */
'use strict';

/*
 * The data of a report, and what is computed from it: sums over ranges, trees of stacks, their
 * layout, differences, distributions. It draws nothing and needs no browser. All times are ns.
 */
const model = (() => {
	const PROBES = ['offcpu', 'oncpu', 'iolat'];
	const KINDS = ['process', 'user', 'kernel', 'pseudo'];
	const ROOT = -1; /* the parent of the outermost frames */
	const OWN = 'stackd itself'; /* the reason of its own threads, see REPORT_OWN in data.h */

	/* Members of the records in the page, as json.c prints them. */
	const COLUMN = 19, ROW = 5, KEY = 8, PROCESS = 5, WAIT = 7;

	function readColumns(v) {
		const columns = [];
		for (let i = 0; i < v.length; i += COLUMN)
			columns.push({
				start: v[i], end: v[i + 1], covered: v.slice(i + 2, i + 5),
				onCpu: v[i + 5], runnable: v[i + 6], blocked: v[i + 7], waits: v[i + 8],
				open: v[i + 9], samples: v[i + 10], lost: v[i + 11], stallLength: v[i + 12],
				cpu: v[i + 13], io: v[i + 15], memory: v[i + 17],
				cpuFull: v[i + 14], ioFull: v[i + 16], memoryFull: v[i + 18],
			});
		return columns;
	}

	function every(v, size, offset) {
		const out = new Int32Array(v.length / size);
		for (let i = 0; i < out.length; i++)
			out[i] = v[i * size + offset];
		return out;
	}

	/* The children of node i are children[first[i + 1] .. first[i + 2]), sorted by name. */
	function linkChildren(m) {
		const n = m.parent.length, first = new Int32Array(n + 2), next = new Int32Array(n + 1);
		for (let i = 0; i < n; i++)
			first[m.parent[i] + 2]++;
		for (let i = 1; i < first.length; i++)
			first[i] += first[i - 1];
		const children = new Int32Array(n);
		for (let i = 0; i < n; i++)
			children[first[m.parent[i] + 1] + next[m.parent[i] + 1]++] = i;
		const rank = new Int32Array(m.strings.length);
		m.strings.map((text, i) => [text, i]).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0))
			.forEach(([, i], at) => { rank[i] = at; });
		for (let i = 0; i <= n; i++)
			if (first[i + 1] - first[i] > 1)
				children.subarray(first[i], first[i + 1]).sort((a, b) =>
					rank[m.frameName[m.frame[a]]] - rank[m.frameName[m.frame[b]]] || a - b);
		m.first = first;
		m.children = children;
	}

	/*
	 * Adds a node and keys for the rows that are not in the page, one for each probe and for idle
	 * rows and others. In the rows their numbers are below 0.
	 */
	function addRest(data) {
		const name = data.strings.push('[not listed]') - 1;
		data.nodes.push(-1, data.frames.length / 3);
		data.frames.push(3, name, 0);
		for (let k = 0; k < 4; k++)
			data.keys.push(k & 1, data.nodes.length / 2 - 1, -1, 0, 0, k >> 1, 0, name);
	}

	/* Returns the model of the page's data. */
	function read(data) {
		const nKeys = data.keys.length / KEY;
		addRest(data);
		const m = {
			data, strings: data.strings, columns: readColumns(data.columns),
			frameKind: every(data.frames, 3, 0), frameName: every(data.frames, 3, 1),
			frameModule: every(data.frames, 3, 2),
			parent: every(data.nodes, 2, 0), frame: every(data.nodes, 2, 1),
			keyProbe: every(data.keys, KEY, 0), keyNode: every(data.keys, KEY, 1),
			keyProcess: every(data.keys, KEY, 2), keyState: every(data.keys, KEY, 3),
			keyReason: every(data.keys, KEY, 4), keyIdle: every(data.keys, KEY, 5),
			keyEstimated: every(data.keys, KEY, 6), keyFunction: every(data.keys, KEY, 7),
		};
		m.rows = data.rows.map((v) => {
			for (let i = 0; i < v.length; i += ROW)
				if (v[i] < 0)
					v[i] = nKeys - 1 - v[i];
			return v;
		});
		m.latencies = data.latencies.map((v) => ({
			column: v[0], layer: v[1] < 0 ? '' : data.strings[v[1]], name: data.strings[v[2]] || 'unknown',
			isIo: v[1] >= 0, count: v[3], total: v[4], bytes: v[5], max: v[6], first: v[7],
			buckets: v.slice(8),
		}));
		m.waits = [];
		for (let i = 0; i < data.waits.length; i += WAIT)
			m.waits.push({
				key: data.waits[i], comm: data.strings[data.waits[i + 1]], tid: data.waits[i + 2],
				start: data.waits[i + 3], length: data.waits[i + 4], isOpen: !!data.waits[i + 5],
				heldUpBy: data.strings[data.waits[i + 6]],
			});
		linkChildren(m);
		m.reasonOf = (word) => data.reasons[word] || word || 'unknown';
		return m;
	}

	function name(m, node) {
		return m.strings[m.frameName[m.frame[node]]];
	}

	function module_(m, node) {
		return m.strings[m.frameModule[m.frame[node]]];
	}

	function kind(m, node) {
		return KINDS[m.frameKind[m.frame[node]]];
	}

	/* Returns the nodes from the outermost frame to `node`. */
	function path(m, node) {
		const nodes = [];
		for (; node !== ROOT; node = m.parent[node])
			nodes.push(node);
		return nodes.reverse();
	}

	/*
	 * Returns the sums of the rows of the columns from `from` up to, not including, `to`, by key, and
	 * how much time the columns cover by probe.
	 */
	function sum(m, from, to) {
		const n = m.keyNode.length;
		const sums = {
			from, to, blocked: new Float64Array(n), runnable: new Float64Array(n),
			count: new Float64Array(n), max: new Float64Array(n), covered: [0, 0, 0],
		};
		for (let c = from; c < to; c++) {
			const v = m.rows[c];
			for (let i = 0; i < v.length; i += ROW) {
				const k = v[i];
				sums.blocked[k] += v[i + 1];
				sums.runnable[k] += v[i + 2];
				sums.count[k] += v[i + 3];
				if (v[i + 4] > sums.max[k])
					sums.max[k] = v[i + 4];
			}
			for (let p = 0; p < 3; p++)
				sums.covered[p] += m.columns[c].covered[p];
		}
		return sums;
	}

	/* Returns the time of a key in a view: oncpu, runnable, blocked or all. */
	function valueOf(m, sums, k, view) {
		const isOnCpu = m.keyProbe[k] === 1;
		if (view === 'oncpu')
			return isOnCpu ? sums.blocked[k] : 0;
		if (view === 'runnable')
			return isOnCpu ? 0 : sums.runnable[k];
		if (view === 'blocked')
			return isOnCpu ? 0 : sums.blocked[k];
		return sums.blocked[k] + sums.runnable[k];
	}

	function covered(m, sums, k) {
		return sums.covered[m.keyProbe[k]];
	}

	/*
	 * Returns true if a key counts. Idle waits do only with `withIdle`; but in a comparison sleeps do,
	 * as in stackctl diff: one that is longer than before is a finding.
	 */
	function counts(m, k, withIdle, isCompared) {
		return withIdle || !m.keyIdle[k] || (isCompared && m.strings[m.keyReason[k]] === 'sleep');
	}

	/*
	 * Returns the time of each node with all below it; the last member is that of all. If isRate is
	 * true, it is the time per covered second, which can be compared with that of another range.
	 */
	function totals(m, sums, view, withIdle, isRate) {
		const n = m.parent.length, out = new Float64Array(n + 1);
		for (let k = 0; k < m.keyNode.length; k++) {
			if (!counts(m, k, withIdle, isRate))
				continue;
			const value = valueOf(m, sums, k, view), time = covered(m, sums, k);
			if (value > 0)
				out[m.keyNode[k]] += isRate ? (time > 0 ? value / time * 1e9 : 0) : value;
		}
		/* A caller has a lower number than what it calls. */
		for (let i = n - 1; i >= 0; i--)
			out[m.parent[i] === ROOT ? n : m.parent[i]] += out[i];
		return out;
	}

	/*
	 * Places the frames below `root` side by side: x and width are shares of 1, depth 0 is the root.
	 * Frames narrower than `least` are left out. Returns arrays in place of objects: there are many.
	 */
	function layout(m, values, root, least) {
		const n = m.parent.length, whole = root === ROOT ? values[n] : values[root];
		const node = [], x = [], width = [], depth = [];
		let deepest = 0, left = 0;
		if (!(whole > 0))
			return { node, x, width, depth, deepest, left };
		const todo = [[root, 0, 0]];
		while (todo.length > 0) {
			const [i, at, level] = todo.pop();
			const value = i === ROOT ? whole : values[i];
			node.push(i);
			x.push(at);
			width.push(value / whole);
			depth.push(level);
			deepest = Math.max(deepest, level);
			let next = at;
			for (let c = m.first[i + 1]; c < m.first[i + 2]; c++) {
				const child = m.children[c], w = values[child] / whole;
				if (w >= least)
					todo.push([child, next, level + 1]);
				else if (w > 0)
					left++;
				next += w;
			}
		}
		return { node, x, width, depth, deepest, left };
	}

	/*
	 * Returns which nodes have a name that contains the text, as bytes of 0 and 1, and the time in
	 * them, where a match below another one does not count again.
	 */
	function search(m, values, text) {
		const wanted = text.toLowerCase(), n = m.parent.length;
		const isHit = new Uint8Array(m.strings.length), hits = new Uint8Array(n);
		const inside = new Uint8Array(n);
		let time = 0, count = 0;
		if (wanted === '')
			return { hits, time, count };
		m.strings.forEach((s, i) => { isHit[i] = s.toLowerCase().includes(wanted) ? 1 : 0; });
		for (let i = 0; i < n; i++) {
			const frame = m.frame[i];
			hits[i] = isHit[m.frameName[frame]];
			inside[i] = m.parent[i] === ROOT ? 0 : inside[m.parent[i]] | hits[m.parent[i]];
			if (!hits[i] || !(values[i] > 0))
				continue;
			count++;
			if (!inside[i])
				time += values[i];
		}
		return { hits, time, count };
	}

	function processOf(m, k) {
		const p = m.keyProcess[k];
		if (p < 0)
			return null;
		const v = m.data.processes, i = p * PROCESS;
		return {
			pid: v[i], comm: m.strings[v[i + 1]], cgroup: m.strings[v[i + 2]],
			exe: m.strings[v[i + 3]], isKernel: !!v[i + 4],
		};
	}

	/* Returns the outermost frame of a stack: the name of the thread. */
	function commOf(m, node) {
		while (m.parent[node] !== ROOT)
			node = m.parent[node];
		return node;
	}

	/*
	 * Returns what a key is a part of, as a number that is equal for equal groups. In a comparison, equal
	 * stacks of processes of one name are one: most processes of a build live in one of its ranges only.
	 */
	function groupOf(m, k, by, isCompared) {
		const node = m.keyNode[k];
		if (by === 'reason')
			return m.keyProbe[k] === 1 ? -1 : m.keyReason[k];
		if (by === 'process')
			return m.keyProcess[k];
		if (by === 'function')
			return m.keyFunction[k];
		if (by === 'comm')
			return m.frameName[m.frame[commOf(m, node)]];
		return isCompared ? node : node * (m.data.processes.length / PROCESS + 1) + m.keyProcess[k] + 1;
	}

	/*
	 * Returns the rows of a table, the largest first: for each group the time, the time in `base` and
	 * the times per covered second of both. `base` may be null. With it, the largest change is first.
	 * What stackd itself did comes last.
	 */
	function table(m, sums, base, view, by, withIdle) {
		const groups = new Map();
		for (let k = 0; k < m.keyNode.length; k++) {
			if (!counts(m, k, withIdle, !!base))
				continue;
			const value = valueOf(m, sums, k, view);
			const before = base ? valueOf(m, base, k, view) : 0;
			if (!(value > 0) && !(before > 0))
				continue;
			const id = groupOf(m, k, by, !!base);
			let g = groups.get(id);
			if (!g) {
				g = { id, key: k, most: -1, value: 0, before: 0, rate: 0, rateBefore: 0, count: 0,
					max: 0, isEstimated: false };
				groups.set(id, g);
			}
			g.value += value;
			g.before += before;
			g.rate += value > 0 ? value / covered(m, sums, k) * 1e9 : 0;
			g.rateBefore += before > 0 ? before / covered(m, base, k) * 1e9 : 0;
			g.count += sums.count[k];
			g.max = Math.max(g.max, sums.max[k]);
			g.isEstimated = g.isEstimated || !!m.keyEstimated[k];
			if (value + before > g.most) {
				g.most = value + before;
				g.key = k;
			}
		}
		const rows = [...groups.values()], isOwn = (g) => m.strings[m.keyReason[g.key]] === OWN;
		const size = (g) => base ? Math.abs(g.rate - g.rateBefore) : g.value;
		return rows.sort((a, b) => isOwn(a) - isOwn(b) || size(b) - size(a));
	}

	/* Returns the time by reason of each column, without idle waits: [{name, values}], largest first. */
	function byReason(m) {
		const found = new Map();
		m.rows.forEach((v, c) => {
			for (let i = 0; i < v.length; i += ROW) {
				const k = v[i];
				if (m.keyProbe[k] !== 0 || m.keyIdle[k] || !(v[i + 1] > 0))
					continue;
				const word = m.strings[m.keyReason[k]] || 'unknown';
				if (!found.has(word))
					found.set(word, new Float64Array(m.columns.length));
				found.get(word)[c] += v[i + 1];
			}
		});
		return largestFirst(found);
	}

	/* Returns the time in system calls that do I/O, by operation, of each column. */
	function byOperation(m) {
		const found = new Map();
		const layer = m.latencies.some((l) => l.layer === 'syscall') ? 'syscall' : 'block';
		for (const l of m.latencies) {
			if (l.layer !== layer)
				continue;
			if (!found.has(l.name))
				found.set(l.name, new Float64Array(m.columns.length));
			found.get(l.name)[l.column] += l.total;
		}
		return largestFirst(found);
	}

	function largestFirst(found) {
		return [...found].map(([word, values]) => ({
			name: word, values, total: values.reduce((a, b) => a + b, 0),
		})).sort((a, b) => b.total - a.total);
	}

	/* Joins all series from number n on into one. */
	function fold(series, n) {
		if (series.length <= n)
			return series;
		const rest = { name: 'other', total: 0, values: new Float64Array(series[0].values.length) };
		for (const one of series.slice(n - 1)) {
			one.values.forEach((value, i) => { rest.values[i] += value; });
			rest.total += one.total;
		}
		return [...series.slice(0, n - 1), rest];
	}

	/* Returns the kinds of waits and of I/O that have distributions, the most frequent first. */
	function latencyKinds(m) {
		const found = new Map();
		for (const l of m.latencies) {
			const id = l.isIo ? `${l.layer}/${l.name}` : l.name;
			const old = found.get(id) || { id, isIo: l.isIo, layer: l.layer, name: l.name, count: 0 };
			old.count += l.count;
			found.set(id, old);
		}
		return [...found.values()].filter((l) => l.count > 0).sort((a, b) => b.count - a.count);
	}

	/*
	 * Returns the counts of waits or operations in buckets of columns, as {from, to, low, high, cells,
	 * sums, most}: cells[c][b - low] counts those of 2^b up to 2^(b+1) ns. wanted(l) chooses.
	 */
	function heat(m, from, to, wanted) {
		const cells = [], sums = new Float64Array(64);
		let low = 64, high = 0, most = 0;
		for (let c = from; c < to; c++)
			cells.push(new Float64Array(64));
		for (const l of m.latencies) {
			if (l.column < from || l.column >= to || !wanted(l))
				continue;
			l.buckets.forEach((count, i) => {
				if (!(count > 0))
					return;
				const b = l.first + i;
				const value = cells[l.column - from][b] += count;
				sums[b] += count;
				low = Math.min(low, b);
				high = Math.max(high, b + 1);
				most = Math.max(most, value);
			});
		}
		return { from, to, low, high, cells, sums, most };
	}

	/* Joins the gaps of probes that have one reason and, to a second, one time: most are of all. */
	function joinGaps(gaps) {
		const joined = [];
		for (const [probe, start, end, reason] of gaps) {
			const same = joined.find((g) => g.reason === reason && Math.abs(g.start - start) < 1e9 &&
				Math.abs(g.end - end) < 1e9 && !g.probes.includes(PROBES[probe]));
			if (same)
				same.probes.push(PROBES[probe]);
			else
				joined.push({ probes: [PROBES[probe]], start, end, reason });
		}
		return joined;
	}

	/* Returns the first and the last column that overlap a stretch of time, as [from, to). */
	function columnsOf(m, start, end) {
		let from = m.columns.findIndex((c) => c.end > start), to = from;
		if (from < 0)
			return [m.columns.length - 1, m.columns.length];
		while (to < m.columns.length && m.columns[to].start < end)
			to++;
		if (to === from)
			to = from + 1;
		return [from, to];
	}

	/*
	 * Puts waits into lanes so that none overlaps another one in its lane: returns [{wait, lane}], the
	 * longest ones if there is not room for all.
	 */
	function lanes(waits, n) {
		const ends = [];
		const placed = [];
		for (const wait of waits) {
			for (let lane = 0; lane < n; lane++) {
				const taken = ends[lane] || (ends[lane] = []);
				if (taken.some((o) => wait.start < o.start + o.length && o.start < wait.start + wait.length))
					continue;
				taken.push(wait);
				placed.push({ wait, lane });
				break;
			}
		}
		return placed;
	}

	function duration(ns) {
		const a = Math.abs(ns);
		if (a === 0)
			return '0';
		const [unit, word] = a >= 3.6e12 ? [3.6e12, 'h'] : a >= 6e10 ? [6e10, 'min'] :
			a >= 1e9 ? [1e9, 's'] : a >= 1e6 ? [1e6, 'ms'] : a >= 1e3 ? [1e3, 'us'] : [1, 'ns'];
		const value = ns / unit;
		return `${Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) :
			value.toFixed(2)} ${word}`;
	}

	function share(part, whole) {
		if (!(whole > 0))
			return '-';
		const percent = part / whole * 100;
		return percent > 0 && percent < 0.1 ? '<0.1 %' : `${percent.toFixed(percent >= 10 ? 0 : 1)} %`;
	}

	return {
		PROBES, ROOT, read, name, module: module_, kind, path, sum, totals, layout, search,
		processOf, commOf, table, byReason, byOperation, fold, latencyKinds, heat, joinGaps, columnsOf, lanes,
		duration, share, valueOf,
	};
})();

if (typeof module !== 'undefined')
	module.exports = model;
