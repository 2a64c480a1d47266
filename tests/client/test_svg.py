# SPDX-License-Identifier: GPL-2.0-or-later
"""The flame graphs that stackctl writes as SVG from the answers of a stand-in for the daemon: a parser of
XML reads them whatever the names are, the widths are the sums of the rows, and chromium shows them
without an error. Run with: STACKCTL. The test that needs chromium is skipped without it."""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
import zlib

import double
from double import time
from rows import HOSTILE, ROWS, T0, row, snapshot

STACKCTL = sys.argv[1]
SVG = "{http://www.w3.org/2000/svg}"
ROOM, ROW = 1180, 17
EVIL = "</title></svg><script>alert(1)</script>]]>&lt;<!-- \ufffe\uffff"
LONG = "y" * 100000


def names_of(index):
    """The frames of a row of ROWS, as the picture has them, the outermost first."""
    return ["main", "db+0x40", escaped(ROWS[index]["comm"]), "schedule"]


def escaped(name):
    out = name.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\x0d").replace("\x1b", "\\x1b")
    return out.replace("\u202e", "\\u202e").replace("\u2028", "\\u2028")


class Frame:
    def __init__(self, group):
        rect = group.find(SVG + "rect")
        self.title = group.find(SVG + "title").text
        self.value = int(group.get("data-value"))
        self.x, self.y = float(rect.get("x")), int(rect.get("y"))
        self.width = float(rect.get("width"))
        self.kind = rect.get("class")
        text = group.find(SVG + "text")
        self.text = None if text is None else text.text


class Pictures(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # of chromium
        self.at = self.directory.name
        self.daemon = double.Double(self.at + "/sock")

    def tearDown(self):
        self.daemon.close()
        self.directory.cleanup()

    def replies(self, *answers):
        replies = [{"parameters": a, "continues": True} for a in answers]
        replies[-1]["continues"] = False
        self.daemon.replies["Snapshot"] = self.daemon.replies["Overview"] = replies

    def run_it(self, *words, code=0):
        done = subprocess.run([STACKCTL, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "STACKD_SOCKET": self.at + "/sock", "TZ": "UTC"},
                              timeout=double.HANG, check=False)
        self.assertEqual((done.returncode, done.stdout), (code, b""), (words, done.stderr))
        return done.stderr.decode()

    def picture(self, *words):
        """Returns the root of the picture that stackctl writes, and its frames."""
        self.run_it(*words, "--output", self.at + "/x.svg")
        root = ET.parse(self.at + "/x.svg").getroot()
        self.assertEqual(root.tag, SVG + "svg")
        self.assertEqual({e.tag for e in root.iter()} - {
            SVG + name for name in ("svg", "title", "style", "rect", "text", "g")}, set())
        with open(self.at + "/x.svg", encoding="utf-8") as file:
            data = file.read()
        self.assertNotIn("\u202e", data)
        self.assertEqual(data.count("http"), 1)  # the name space
        return root, [Frame(g) for g in root.iter(SVG + "g")]

    def lines(self, root):
        return [t.text for t in root.findall(SVG + "text")]

    def check_graph(self, frames, widest):
        """The widths are the values, and each frame is above one that it is a part of."""
        rows = {}
        for frame in frames:
            self.assertAlmostEqual(frame.width, frame.value * ROOM / widest, delta=0.006)
            rows.setdefault(frame.y, []).append(frame)
        bottom = max(rows)
        self.assertEqual(len(rows[bottom]), 1)
        for y, some in rows.items():
            self.assertEqual((bottom - y) % ROW, 0)
            self.assertLessEqual(sum(f.value for f in some), rows[bottom][0].value)
            some.sort(key=lambda f: f.x)
            for left, right in zip(some, some[1:]):
                self.assertLessEqual(left.x + left.width, right.x + 0.02)
            for f in some if y != bottom else ():
                below = [p for p in rows[y + ROW]
                         if p.x - 0.02 <= f.x and f.x + f.width <= p.x + p.width + 0.02]
                self.assertEqual(len(below), 1, f.title)
        return rows[bottom][0]

    def test_sums(self):
        self.replies(snapshot(ROWS[:3]), snapshot(ROWS[3:]))
        root, frames = self.picture("snapshot", "offcpu")
        total = sum(r["total_ns"] for r in ROWS)
        self.assertEqual(self.check_graph(frames, total).value, total)
        self.assertEqual(root.get("data-unit"), "nanoseconds")
        for name in ("main", "schedule", "db+0x40"):
            self.assertEqual(sum(f.value for f in frames if f.title.startswith(name + " ")), total)
        kinds = {f.title.split(" ")[0]: f.kind[0] for f in frames}
        self.assertEqual((kinds["schedule"], kinds["main"], kinds["all:"]), ("k", "u", "n"))
        # Each row has a tower, whose names are whole in the titles, up to a length.
        for r in ROWS:
            name = escaped(r["comm"])[:1000]
            self.assertEqual([f.value for f in frames if f.title.startswith(name + ": ")], [r["total_ns"]])
        head = self.lines(root)
        self.assertTrue(head[0].startswith("offcpu, 2026-03-01 03:10:10"), head)
        self.assertEqual(head[1], "29 s of 30 s covered, 1 gap, lost 3, 2 s of the sums estimated")
        self.assertIn("in all", head[2])

    def test_idle(self):
        """Idle waits are left out as in text, and their sum is said."""
        self.replies(snapshot(ROWS, idle={"rows": 3, "threads": 412, "total_ns": 90 * 10**9}))
        root, _ = self.picture("snapshot", "offcpu")
        self.assertIn("idle waits are not shown: 90 s of 412 threads; --idle shows them",
                      self.lines(root))
        self.picture("snapshot", "offcpu", "--idle")
        self.assertEqual([call["parameters"].get("idle") for call in self.daemon.calls], [None, True])
        self.assertEqual([call["parameters"]["top"] for call in self.daemon.calls], [0, 0])

    def test_hostile(self):
        raw = snapshot([row(EVIL, 1), row(HOSTILE, 2), row(LONG, 3), row(LONG[1:], 4)])
        self.replies(raw)
        root, frames = self.picture("snapshot", "offcpu")
        total = sum(r["total_ns"] for r in raw["rows"])
        self.assertEqual(self.check_graph(frames, total).value, total)
        titles = "".join(f.title for f in frames)
        self.assertIn("</title></svg><script>alert(1)</script>]]>&lt;<!-- \\ufffe\\uffff: ", titles)
        self.assertLess(os.path.getsize(self.at + "/x.svg"), 100000)
        self.assertEqual(len(root.findall(".//" + SVG + "script")), 0)

    def test_calls_io_and_nothing(self):
        calls = snapshot(ROWS, probe="stackcount")
        calls["totals"]["calls"] = 1
        self.replies(calls)
        root, frames = self.picture("snapshot", "stackcount")
        self.assertEqual(root.get("data-unit"), "count")
        self.assertEqual(self.check_graph(frames, sum(r["count"] for r in ROWS)).value,
                         sum(r["count"] for r in ROWS))
        self.replies(snapshot([]))
        root, frames = self.picture("snapshot", "offcpu")
        self.assertEqual(frames, [])
        self.assertIn("0 s in all; there is nothing to draw", self.lines(root))

    def test_overview(self):
        samples = snapshot([row("db", 1, total_ns=5 * 10**9)], probe="oncpu")
        self.replies(snapshot(ROWS), samples)
        root, frames = self.picture("snapshot")
        sums = {f.title.split(":")[0]: f.value for f in frames}
        throttled = sum(r["throttled_ns"] for r in ROWS)
        want = {"on CPU": 5 * 10**9, "blocked": sum(r["blocked_ns"] for r in ROWS),
                "runnable": sum(r["runnable_ns"] for r in ROWS) - throttled}
        self.assertEqual({name: sums[name] for name in want}, want)
        total = sum(want.values()) + throttled
        self.assertEqual(self.check_graph(frames, total).value, total)
        self.assertIn("overview, ", self.lines(root)[0])

    def test_small_share(self):
        """A share below 1 % has a character that XML gives a meaning."""
        rows = [row("big", 0, total_ns=10**12), row("small", 0, total_ns=5 * 10**9)]
        self.replies(snapshot(rows))
        _, frames = self.picture("snapshot", "offcpu")
        self.check_graph(frames, 1005 * 10**9)
        self.assertIn("small: 5 s, <1 %", [f.title for f in frames])

    def test_narrow_frames(self):
        """Of many small rows the widest are drawn, and the others are counted."""
        many = [row(f"t{i}", 1, total_ns=10**6, user=None, kernel=None) for i in range(30000)]
        many = [{k: v for k, v in r.items() if v is not None} for r in many] + [row("db", 0)]
        self.replies(*[snapshot(many[i:i + 500]) for i in range(0, len(many), 500)])
        root, frames = self.picture("snapshot", "offcpu")
        total = sum(r["total_ns"] for r in many)
        self.assertEqual(self.check_graph(frames, total).value, total)
        self.assertLess(len(frames), 100)
        self.assertIn("; frames too narrow to be drawn: 30,000", self.lines(root)[2])

    def answer(self, start, length, rows):
        span = {"start": time(start), "end": time(start + length)}
        reply = snapshot(rows, lost=[], notes=[])
        reply["coverage"] = {"asked": span, "used": span, "asked_ns": length, "covered_ns": length,
                             "windows": 1, "gaps": [], "complete": True}
        reply["shown"] = {"rows": len(rows), "total_ns": 0}
        return reply

    def test_difference(self):
        s = 10**9
        self.replies(self.answer(T0, 60 * s, [row("same", 0, total_ns=2 * s),
                                              row("gone" + EVIL, 0, total_ns=s)]),
                     self.answer(T0 + 60 * s, 30 * s, [row("new", 0, total_ns=7 * s),
                                                       row("same", 0, total_ns=3 * s)]))
        root, frames = self.picture("diff", "--since", "@2000", "--until", "@2010", "--base", "-30min")
        roots = [f for f in frames if f.title.startswith("all:")]
        self.assertEqual([f.value for f in roots], [10 * s, 3 * s // 2])
        now = [f for f in frames if f.y <= roots[0].y]
        before = [f for f in frames if f.y > roots[0].y]
        self.check_graph(now, 10 * s)
        self.check_graph(before, 10 * s)
        # The base is scaled to the half of the time; what is gone is only in the lower graph.
        self.assertEqual([f.value for f in before if f.title.startswith("gone") and f.width], [s // 2] * 2)
        self.assertEqual([f.title for f in now if f.title.startswith("gone")], [])
        self.assertEqual({f.kind for f in before if f.title.startswith("gone")}, {"l5"})
        self.assertEqual({f.kind for f in now if f.title.startswith("new:")}, {"m5"})
        self.assertIn("same: 1 s before, 3 s now, +2 s", [f.title for f in now])
        self.assertEqual(self.lines(root)[0], "offcpu: what changed")

    def test_in_browser(self):
        browser = shutil.which("chromium")
        if not browser:
            self.skipTest("no chromium")
        self.replies(snapshot([*ROWS, row(EVIL, 3)]))
        self.picture("snapshot", "offcpu")
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             "--log-level=0", f"--user-data-dir={self.at}/profile", "--window-size=1200,400",
             f"--screenshot={self.at}/x.png", f"file://{self.at}/x.svg"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200, check=False)
        self.assertEqual([line for line in done.stderr.splitlines() if "CONSOLE" in line], [])
        self.assertGreater(colours(self.at + "/x.png"), 10)


def colours(path):
    """Returns how many colours the pixels of a PNG have."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed, width, size = 8, b"", 0, 4
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width = struct.unpack(">I", data[at + 8:at + 12])[0]
            size = {2: 3, 6: 4}[data[at + 17]]
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += length + 12
    found, line = set(), width * size + 1
    raw = zlib.decompress(packed)
    before = bytes(line)
    for at in range(0, len(raw), line):
        now = bytearray(raw[at:at + line])
        unfilter(now, before, size)
        found.update(bytes(now[i:i + 3]) for i in range(1, line, size))
        before = now
    return len(found)


def unfilter(now, before, size):
    """Undoes the filter of a line of a PNG, see its specification."""
    kind = now[0]
    for i in range(1, len(now)):
        left = now[i - size] if i > size else 0
        up, corner = before[i], before[i - size] if i > size else 0
        guess = left + up - corner
        nearest = min((abs(guess - v), k, v) for k, v in enumerate((left, up, corner)))[2]
        now[i] = (now[i] + (0, left, up, (left + up) // 2, nearest)[kind]) & 255


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
