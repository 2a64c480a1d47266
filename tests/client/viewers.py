#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Opens what stackctl writes in viewers that others have written, from npm, in headless chromium and in node:
speedscope shows the profile and its sums, and accepts it by its own schema; d3-flame-graph draws the tree of
a report with the widths of the page; pprof-format decodes a profile to the same sums. No test of the
suites, which need no npm. Run by hand with: STACKCTL DIRECTORY, after
    npm install --prefix DIRECTORY --ignore-scripts speedscope@1.25.0 d3-flame-graph@5.0.0 pprof-format@2.3.2"""

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

import browser
import double
from report_answers import Recorder
from rows import ROWS, snapshot, total

STACKCTL, MODULES = sys.argv[1], os.path.abspath(sys.argv[2]) + "/node_modules"
MODEL = os.path.dirname(os.path.abspath(__file__)) + "/../../client/report/model.js"
D3 = ("dispatch", "color", "interpolate", "timer", "ease", "selection", "transition", "array", "format", "time",
      "time-format", "scale", "hierarchy")
SECONDS = {"ns": 1e-9, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1, "min": 60}
DECODE = """
const fs = require('fs'), zlib = require('zlib');
const { Profile } = require(process.argv[1]);
const p = Profile.decode(zlib.gunzipSync(fs.readFileSync(process.argv[2])));
const sums = {};
p.sampleType.forEach((type, i) => {
    sums[p.stringTable.strings[type.type]] = String(p.sample.reduce((sum, s) => sum + BigInt(s.value[i]), 0n));
});
console.log(JSON.stringify({sums, names: p.function.map((f) => p.stringTable.strings[f.name])}));
"""
DRAW = """(() => {
    const m = model.read(DATA), values = model.totals(m, model.sum(m, 0, m.columns.length), 'all', true, false);
    const tree = (node) => ({ id: node, name: node < 0 ? 'all' : model.name(m, node),
        value: node < 0 ? values[values.length - 1] : values[node],
        children: [...m.children.subarray(m.first[node + 1], m.first[node + 2])].map(tree) });
    const chart = flamegraph.default().width(1000).sort(false).transitionDuration(0).minFrameSize(0)
        .inverted(true);
    d3.select('#chart').datum(tree(-1)).call(chart);
    const ours = {}, layout = model.layout(m, values, -1, 0);
    layout.node.forEach((node, i) => { ours[node] = [layout.x[i] * 1000, layout.width[i] * 1000]; });
    return new Promise((done) => setTimeout(() => {
        const theirs = {};
        for (const g of document.querySelectorAll('#chart g.frame'))
            theirs[g.__data__.data.id] = [g.__data__.x0 * 1000, Number(g.querySelector('rect').getAttribute('width'))];
        done([ours, theirs]);
    }, 500));
})()"""


class Viewers(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # of chromium
        self.addCleanup(self.directory.cleanup)
        self.at = self.directory.name
        self.daemon = double.Double(self.at + "/sock")
        self.addCleanup(self.daemon.close)
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot(ROWS)}]

    def write(self, name):
        subprocess.run([STACKCTL, "-S", self.at + "/sock", "snapshot", "offcpu", "--output", f"{self.at}/{name}"],
                       check=True, timeout=double.HANG)
        with open(f"{self.at}/{name}", "rb") as file:
            return file.read()

    def start(self):
        page = browser.Browser(self.at)
        self.addCleanup(page.close)
        return page

    def test_pprof_format(self):
        self.write("x.pb.gz")
        done = subprocess.run(["node", "-e", DECODE, MODULES + "/pprof-format", self.at + "/x.pb.gz"],
                              stdout=subprocess.PIPE, check=True, timeout=double.HANG)
        decoded = json.loads(done.stdout)
        self.assertEqual(decoded["sums"], {
            "waits": str(total("count")), "blocked": str(total("blocked_ns")),
            "runnable": str(total("runnable_ns") - total("throttled_ns")),
            "throttled": str(total("throttled_ns"))})
        self.assertIn("schedule", decoded["names"])

    def test_speedscope_schema(self):
        if not jsonschema:
            self.skipTest("no python3-jsonschema")
        with open(MODULES + "/speedscope/dist/release/file-format-schema.json", encoding="utf-8") as file:
            jsonschema.validate(json.loads(self.write("x.speedscope.json")), json.load(file))

    def test_speedscope(self):
        data = base64.b64encode(self.write("x.speedscope.json")).decode()
        with open(self.at + "/profile.js", "w", encoding="ascii") as file:
            file.write(f"speedscope.loadFileFromBase64('x.speedscope.json', '{data}')")
        page = self.start()
        page.open(f"file://{MODULES}/speedscope/dist/release/index.html#localProfilePath={self.at}/profile.js")
        page.wait("document.title.startsWith('offcpu 2026-03-01 ')")
        page.wait("document.body.innerText.includes('blocked (29 s of 30 s covered')")
        page.press("3")  # the view "Sandwich", a table of functions
        page.wait("document.body.innerText.includes('schedule')")
        text = page.value("document.body.innerText")
        # Each stack ends in schedule(): its own time is that of all.
        found = re.search(r"([\d.]+)(ns|\u00b5s|ms|s|min) \(100(?:\.0+)?%\)", text)
        self.assertAlmostEqual(float(found[1]) * SECONDS[found[2]], total("blocked_ns") / 10**9, delta=0.011)
        self.assertEqual([line for line in page.console if "rror" in line], [])


class Tree(Recorder):
    def test_d3_flame_graph(self):
        with open(MODEL, encoding="ascii") as file:
            model = file.read()
        data = json.dumps(self.data_of(self.page())).replace("<", "\\u003c")
        scripts = [f"{MODULES}/d3-{name}/dist/d3-{name}.js" for name in D3]
        scripts.append(MODULES + "/d3-flame-graph/dist/d3-flamegraph.umd.js")
        with open(self.at + "/d3.html", "w", encoding="utf-8") as file:
            file.write("<!DOCTYPE html><html><meta charset=utf-8><body><div id=chart></div>")
            file.write("".join(f'<script src="file://{path}"></script>' for path in scripts))
            file.write(f"<script>{model}</script><script>const DATA = {data};</script>")
        page = browser.Browser(self.at)
        self.addCleanup(page.close)
        page.open(f"file://{self.at}/d3.html")
        self.assertEqual(page.console, [])
        ours, theirs = page.value(DRAW)
        self.assertGreater(len(theirs), 20)
        self.assertEqual(set(theirs), set(ours))
        for node, (x, width) in theirs.items():
            self.assertAlmostEqual(x, ours[node][0], delta=0.01)
            self.assertAlmostEqual(width, ours[node][1], delta=0.01)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
