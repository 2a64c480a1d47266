# SPDX-License-Identifier: GPL-2.0-or-later
"""stackctl diff against a stand-in for the daemon: what it asks for, and what it says of the answers. Run
with: STACKCTL."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

import double
from double import error, time
from rows import ROWS, row, snapshot

STACKCTL = sys.argv[1]
S = 10**9
T0 = 1772334610 * S


def answer(start, length, rows, **other):
    span = {"start": time(start), "end": time(start + length)}
    reply = snapshot(rows, lost=[], notes=[], **other)
    reply["coverage"] = {"asked": span, "used": span, "asked_ns": length, "covered_ns": length,
                         "windows": length // (5 * S), "gaps": [], "complete": True}
    reply["shown"] = {"rows": len(rows), "total_ns": 0}
    return reply


class Diff(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.daemon = double.Double(self.directory.name + "/sock")
        self.base = answer(T0, 60 * S, [row("same", 0, total_ns=2 * S), row("gone", 0, total_ns=S)])
        self.new = answer(T0 + 60 * S, 30 * S, [row("new", 0, total_ns=7), *ROWS,
                                                row("same", 0, total_ns=3 * S)])

    def tearDown(self):
        self.daemon.close()
        self.directory.cleanup()

    def run_both(self, *words):
        environment = {**os.environ, "STACKD_SOCKET": self.directory.name + "/sock", "TZ": "UTC"}
        return subprocess.run([STACKCTL, "diff", *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment, timeout=double.HANG, text=True,
                              check=False)

    def run_it(self, *words, code=0):
        done = self.run_both(*words)
        self.assertEqual(done.returncode, code, (words, done.stderr))
        return done.stdout if code == 0 else done.stderr

    def reply_in_one_call(self):
        self.daemon.replies["Snapshot"] = [
            {"parameters": self.base, "continues": True},
            {"parameters": {**self.new, "rows": self.new["rows"][:3]}, "continues": True},
            {"parameters": {**self.new, "rows": self.new["rows"][3:]}}]

    def test_notes_are_lines(self):
        """A note is one line of the text, and what a long form says of each answer is in -v only."""
        self.base["notes"] = ["sampled: of the waits", "budget: more", "some rows were folded"]
        self.reply_in_one_call()
        options = ("offcpu", "--since", "@2000", "--until", "@2010", "--base", "-30min")
        self.assertEqual(re.findall("note: (.*)", self.run_it(*options)), ["some rows were folded"])
        self.assertIn("note: sampled: of the waits", self.run_it(*options, "-v"))

    def test_two_ranges(self):
        self.reply_in_one_call()
        document = json.loads(self.run_it("offcpu", "--json", "--since", "@2000", "--until", "@2010",
                                          "--base", "-30min", "-p", "42"))
        (call,) = self.daemon.calls
        self.assertEqual(call["parameters"], {
            "probe": "offcpu", "top": 0, "idle": True, "filter": {"pids": [42]},
            "ranges": [{"since_ns": 200 * S, "until_ns": 210 * S},
                       {"since_ns": 2000 * S, "until_ns": 2010 * S}]})
        rows = {tuple(r["stack"]): r for r in document["rows"]}
        self.assertEqual(len(rows), len(ROWS) + 3)
        for r in rows.values():
            self.assertEqual(r["scaled_base"] + r["change"], r["new"])
        self.assertEqual(sum(r["scaled_base"] for r in rows.values()), document["scaled_total"])
        self.assertEqual(document["scaled_total"], 3 * S // 2)
        self.assertEqual(document["base"]["total"], 3 * S)
        self.assertEqual(sum(r["new"] for r in rows.values()), document["new"]["total"])
        changes = [abs(r["change"]) for r in document["rows"]]
        self.assertEqual(changes, sorted(changes, reverse=True))
        gone = next(r for name, r in rows.items() if name[0] == "gone")
        self.assertEqual((gone["base"], gone["scaled_base"], gone["change"], gone["new"]),
                         (S, S // 2, -S // 2, 0))

    def test_lines(self):
        """The text has a line for each process, reason and function, and stackd itself last."""
        stacks = {"kernel": None, "user": None}

        def line(name, ns, **other):
            made = {**row(name, 0, total_ns=ns, state="S", **other), **stacks}
            return {k: v for k, v in made.items() if v is not None}

        self.base["rows"] = [line("db", 6 * S, reason="flock", function="commit"), line("stackd", S, own=True)]
        self.new["rows"] = [line("stackd", 9 * S, own=True), line("db", 2 * S, reason="flock", function="commit"),
                            line("db", S, reason="flock", function="commit"),
                            line("web", S, comm="worker-3", reason="poll", function="serve")]
        for reply in (self.base, self.new):
            reply["shown"]["rows"] = len(reply["rows"])
        self.daemon.replies["Snapshot"] = [{"parameters": self.base, "continues": True}, {"parameters": self.new}]
        lines = self.run_it("offcpu", "--base", "-30s").splitlines()
        self.assertEqual(self.daemon.calls[-1]["parameters"]["by"], "line")
        rows = [re.split(r" {2,}", text.strip()) for text in lines[lines.index(next(
            text for text in lines if text.startswith("change"))):]]
        self.assertEqual(rows[0][-3:], ["process", "waits for", "function"])
        self.assertEqual(rows[1], ["+1.00s", "0ns 1.00s", "new", "web/worker-*", "poll", "serve"])
        self.assertEqual(rows[2][-3:], ["db", "flock", "commit"])
        self.assertEqual(rows[3][-1], "stackd itself")
        self.daemon.replies["Snapshot"] = [{"parameters": self.base, "continues": True}, {"parameters": self.new}]
        document = json.loads(self.run_it("offcpu", "--base", "-30s", "--by", "line", "--json"))
        self.assertEqual(document["rows"][0]["stack"], ["web/worker-*", "poll", "serve"])

    def test_waits_that_go_on(self):
        """A wait that has ended has frames of the scheduler at its leaf, which one that goes on lacks. They are no
        change, but for what ran there."""
        def stacks(*names, **more):
            return {"kernel": {"id": "k", "flags": [], "frames": [{"kind": "kernel", "name": n} for n in names], **more}}
        for rest, more in (((), {}), (("__schedule", "schedule"), {}), (("schedule", "do_nanosleep"), {"scheduler": 2})):
            self.base["rows"] = [row("db", 0, total_ns=2 * S, **stacks("hrtimer_nanosleep", "sys_nanosleep"))]
            self.new["rows"] = [row("db", 0, total_ns=S, **stacks(*rest, "hrtimer_nanosleep", "sys_nanosleep", **more))]
            for reply in (self.base, self.new):
                reply["shown"]["rows"] = 1
            self.daemon.replies["Snapshot"] = [{"parameters": self.base, "continues": True}, {"parameters": self.new}]
            rows = json.loads(self.run_it("offcpu", "--base", "-30s", "--json"))["rows"]
            self.assertEqual([r["stack"][-2:] for r in rows], [["sys_nanosleep", "hrtimer_nanosleep"]], rest)
        for reply in (self.base, self.new):
            reply["probe"] = "oncpu"
            reply["totals"] = {**reply["totals"], "samples": 9}
            reply["rows"] = [{k: v for k, v in r.items() if k in ("process", "comm", "idle", "count", "total_ns", "user",
                                                                  "kernel")} for r in reply["rows"]]
        self.daemon.replies["Snapshot"] = [{"parameters": self.base, "continues": True}, {"parameters": self.new}]
        self.assertEqual(len(json.loads(self.run_it("oncpu", "--base", "-30s", "--json"))["rows"]), 2)

    def test_sleeps(self):
        """The text has the sleeps of idle threads, and no other idle row, unless somebody is named."""
        slept, idle = [row(name, 0, total_ns=5 * S, idle=True, reason=reason, function="f")
                       for name, reason in (("web", "sleep"), ("server", "epoll"))]
        self.new["rows"] = [slept, idle]
        self.new["shown"]["rows"] = 2
        for words, asked in (((), True), (("--no-idle",), False), (("-p", "42"), None), (("--idle",), True)):
            self.daemon.replies["Snapshot"] = [{"parameters": self.base, "continues": True}, {"parameters": self.new}]
            text = self.run_it("offcpu", "--base", "-1d", *words)
            self.assertEqual(self.daemon.calls[-1]["parameters"].get("idle"), asked, words)
            self.assertIn("web", text)
            self.assertEqual("server" in text, words != (), text)
            self.assertEqual("idle: 0 s before, not scaled; 5 s after" in text, words == (), text)
        self.daemon.replies["Snapshot"] = [{"parameters": self.base, "continues": True}, {"parameters": self.new}]
        picture = self.run_it("offcpu", "--base", "-1d", "--format", "svg")
        self.assertEqual(("web" in picture, "server" in picture), (True, False))

    def test_top(self):
        """What -n leaves out is added up, so that the sums stay whole; --reverse turns what is shown."""
        self.reply_in_one_call()
        everything = json.loads(self.run_it("offcpu", "--base", "-1d", "--json"))
        self.assertEqual(everything["rest"]["rows"], 0)
        self.reply_in_one_call()
        document = json.loads(self.run_it("offcpu", "--base", "-1d", "--json", "-n", "2", "--reverse"))
        self.assertEqual(document["rows"], everything["rows"][1::-1])
        self.assertEqual(document["rest"]["rows"], len(everything["rows"]) - 2)
        for key in ("change", "base", "scaled_base", "new", "base_count", "new_count", "base_bytes", "new_bytes"):
            self.assertEqual(sum(r[key] for r in [*document["rows"], document["rest"]]),
                             sum(r[key] for r in everything["rows"]), key)

    def test_gaps(self):
        """The covered time is what the daemon says: it lists a part of many gaps."""
        self.base["coverage"]["used_ns"] = 15 * S
        self.reply_in_one_call()
        document = json.loads(self.run_it("offcpu", "--base", "-1d", "--json"))
        self.assertEqual(document["base"]["covered_ns"], 15 * S)
        self.assertEqual(document["scaled_total"], 6 * S)

    def test_default_base(self):
        """The base ends where the windows of the range begin, so that none is in both."""
        self.daemon.replies["Snapshot"] = lambda asked: [
            {"parameters": self.base if asked["ranges"][0].get("until_ns") == T0 + 60 * S
             else self.new}]
        self.assertRegex(self.run_it("--window", "20s", "-n0", "--stacks"), r"gone +gone\n")
        first, second = [call["parameters"]["ranges"] for call in self.daemon.calls]
        self.assertNotIn("until_ns", first[0])
        self.assertEqual(second, [{"since_ns": T0 + 30 * S, "until_ns": T0 + 60 * S}])
        # The window of a moment is compared with the time before it.
        self.run_it("--at", "@2000")
        first, second = [call["parameters"]["ranges"] for call in self.daemon.calls[-2:]]
        self.assertEqual(first, [{"since_ns": 2000 * S, "until_ns": 2000 * S + 1}])
        self.assertEqual(second, [{"since_ns": T0 + 30 * S, "until_ns": T0 + 60 * S}])

    def test_sessions(self):
        self.daemon.replies["Snapshot"] = lambda asked: [
            {"parameters": self.base if asked["session"] == "s1" else self.new}]
        self.assertRegex(self.run_it("s1", "s2", "-n0", "--stacks"), r"gone +gone\n")
        self.assertIn("without --base", self.run_it("s1", "s2", "--base", "-1d", code=1))
        self.new["probe"] = "oncpu"
        self.assertIn("no rows in common", self.run_it("s1", "s2", code=1))

    def test_ids(self):
        self.reply_in_one_call()
        text = self.run_it("offcpu", "--base", "-1d", "-n0", "--by", "process", "--folded")
        self.assertIn("gone (pid 100);", text)

    def test_folded(self):
        self.reply_in_one_call()
        lines = self.run_it("offcpu", "--base", "-1d", "--folded").splitlines()
        fields = [line.rsplit(" ", 2) for line in lines]
        self.assertEqual(sum(int(before) for _, before, _ in fields), 3 * S // 2 // 1000)
        self.assertTrue(all(stack.count(";") == 4 for stack, _, _ in fields), lines)

    def test_nothing(self):
        self.base["missing"] = "no window is in the range"
        self.base["coverage"]["used"] = {"start": time(T0), "end": time(T0)}
        self.base["rows"], self.base["shown"]["rows"] = [], 0
        self.reply_in_one_call()
        self.assertIn("no data in the base range: no window", self.run_it(
            "offcpu", "--base", "-1d", code=4))
        self.daemon.replies["Snapshot"] = [error("io.stackd.UnknownSession", session="s", message="m")]
        self.run_it("s", code=1)

    def test_nobody(self):
        """A filter that matches no thread is said, of each range by itself."""
        for side, says, code in (("base", "no thread of the filter was seen in the base range", 0),
                                 ("new", "no thread of the filter was seen in either range", 4)):
            reply = getattr(self, side)
            reply["totals"]["threads"], reply["rows"], reply["shown"]["rows"] = 0, [], 0
            self.daemon.replies["Snapshot"] = [{"parameters": self.base, "continues": True},
                                               {"parameters": self.new}]
            done = self.run_both("offcpu", "--base", "-1d", "-p", "42")
            self.assertEqual(done.returncode, code, done)
            self.assertIn(says, done.stderr)
        self.assertIn("without --until", self.run_it("s1", "s2", "--until", "@2010", code=1))

    def test_screen(self):
        """The lines of an answer, a message above them and the prompt below them fit on the screen."""
        self.base["totals"]["threads"], self.base["rows"], self.base["shown"]["rows"] = 0, [], 0
        self.new["rows"] = [row(f"name{chr(ord('a') + i)}", 0) for i in range(26)]
        self.new["shown"]["rows"] = 26
        self.daemon.replies["Snapshot"] = [{"parameters": self.base, "continues": True}, {"parameters": self.new}]
        main, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**os.environ, "STACKD_SOCKET": self.directory.name + "/sock", "PAGER": "cat",
                       "SYSTEMD_PAGER": ""}
        subprocess.run([STACKCTL, "diff", "offcpu", "--base", "-1d", "-p", "42"], stdout=end, stderr=end,
                       env=environment, timeout=double.HANG, check=True)
        os.close(end)
        text = os.read(main, 65536).decode()
        os.close(main)
        self.assertIn("no thread of the filter", text)
        self.assertEqual(text.count("\n"), 23, text)

    def test_strict(self):
        self.base["coverage"]["complete"] = False
        self.reply_in_one_call()
        self.assertIn("base", self.run_it("--base", "-1d", "--strict", code=5))

    def test_usage(self):
        for words, says in ((["--by", "parent"], "--by parent"),
                            (["--base", "yesterday"], "--base yesterday: a range is T..T"),
                            (["--base", "-x"], "a length of time"),
                            (["--base", "-0"], "more than 0"),
                            (["--base", "@2010..@2000"], "--base @2010..@2000"),
                            (["--format", "pprof"], "a comparison: --format text|folded|json|svg"),
                            (["offcpu", "--sort", "max"], "takes no --sort"),
                            (["a", "b", "c"], "unexpected")):
            self.assertIn(says, self.run_it(*words, code=1))

    def test_no_half_file(self):
        self.reply_in_one_call()
        path = self.directory.name + "/x.json"
        self.run_it("--base", "-1d", "--output", path)
        with open(path) as file:
            self.assertEqual(json.load(file)["probe"], "offcpu")
        self.assertIn("No space", self.run_it("--base", "-1d", "--json", "--output", "/dev/full",
                                              code=7))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
