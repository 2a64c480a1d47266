# SPDX-License-Identifier: GPL-2.0-or-later
"""stackctl top in a terminal of tmux, against a stand-in for the daemon: what it asks for after
each key, and what the screen says. Run with: STACKCTL."""

import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time as clock
import unittest

import double
from double import error, time
from rows import HOSTILE, NAMES, ROWS, row, snapshot

STACKCTL = os.path.abspath(sys.argv[1])
S = 10**9
T0 = 1772334610 * S


def answer(probe, rows, start=T0, **other):
    span = {"start": time(start), "end": time(start + 5 * S)}
    reply = snapshot(rows, probe=probe, lost=[], notes=[], **other)
    reply["coverage"] = {"asked": span, "used": span, "asked_ns": 5 * S, "covered_ns": 5 * S,
                         "windows": 1, "gaps": [], "complete": True}
    if probe == "oncpu":
        reply["totals"] = {**reply["totals"], "samples": 5}
    reply["shown"] = {"rows": len(rows), "total_ns": sum(r["total_ns"] for r in rows)}
    return reply


def sample(name, number):
    known = row(name, number, total_ns=3 * S)
    return {member: known[member] for member in ("process", "comm", "idle", "count", "total_ns",
                                                 "kernel", "user")}


SPAWNS = dict.fromkeys(("forks", "execs", "exits", "short_lived", "cpu_ns", "life_ns"), 0)


def overview(parameters):
    """Answers as of the time that is asked for."""
    start = parameters.get("until_ns", T0 + 5 * S) - 5 * S
    slow = row("slow", 1, blocked_ns=9 * S, runnable_ns=8 * S)
    waits = answer("offcpu", [slow, *ROWS], start, parts=[
        {"name": "blocked", "rows": 9, "total_ns": 100 * S},
        {"name": "runnable", "rows": 9, "total_ns": 50 * S}], spawns={
            "length_ns": 5 * S, "total": {**SPAWNS, "short_lived": 1200}, "rows": [], "others": SPAWNS, "rows_folded": 0})
    samples = answer("oncpu", [sample("busy", 2)], start)
    return [{"parameters": reply, "continues": reply is waits} for reply in (waits, samples)]


class Screen:
    """A program in a terminal of its own."""

    def __init__(self, directory, columns, lines, *words, term="screen-256color"):
        self.server = directory + "/tmux"
        command = shlex.join(["env", "-C", directory, f"TERM={term}", "TZ=UTC", STACKCTL, "-S",
                              directory + "/sock", "top", *words])
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                  f"{command} 2>&1; echo ended with $?; cat")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.server, *words], stdout=subprocess.PIPE,
                              timeout=double.HANG, text=True, check=True).stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def text(self):
        return self.tmux("capture-pane", "-p")

    def wait_for(self, *words):
        """Waits until the screen has all of the words, and is drawn to its end; returns it."""
        end, before = clock.monotonic() + double.HANG, None
        while clock.monotonic() < end:
            text = self.text()
            if text == before and all(word in text for word in words):
                return text
            before = text
            clock.sleep(0.02)
        raise AssertionError(f"no {words} on the screen:\n{text}")

    def close(self):
        subprocess.run(["tmux", "-S", self.server, "kill-server"], stderr=subprocess.DEVNULL,
                       timeout=double.HANG, check=False)


class Top(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.daemon = double.Double(self.directory.name + "/sock")
        self.daemon.replies["Overview"] = overview
        self.daemon.replies["Snapshot"] = lambda parameters: [{"parameters": answer(
            parameters["probe"], [sample("busy", 2)] if parameters["probe"] == "oncpu" else
            [] if parameters["probe"] == "iolat" else [row("slow", 1), row("next", 2)])}]
        self.screen = None

    def tearDown(self):
        if self.screen:
            self.screen.close()
        self.daemon.close()
        self.directory.cleanup()

    def open(self, columns=80, lines=24, *words, **other):
        self.screen = Screen(self.directory.name, columns, lines, *words, **other)
        return self.screen

    def asked(self, method, **expected):
        """Waits for a call of the method with these members."""
        end = clock.monotonic() + double.HANG
        while clock.monotonic() < end:
            for call in list(self.daemon.calls):
                parameters = {**call["parameters"], **call["parameters"].get("filter", {})}
                if call["method"].endswith("." + method) and expected.items() <= parameters.items():
                    return
            clock.sleep(0.05)
        self.fail(f"no {method} with {expected}: {self.daemon.calls[-3:]}")

    def test_overview(self):
        screen = self.open()
        text = screen.wait_for("on CPU", "busy(102)", "blocked", "slow(101)", "runnable",
                               "2026-03-01 03:10:10..03:10:15")
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()))
        self.assertEqual(len(text.splitlines()), 24)
        # A name of 32 KiB, one with escapes and one with a right-to-left mark are a line each.
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\u202e", text)
        self.assertIn("6 stuck  1,200 short-lived\n", text)
        screen.keys("q")
        screen.wait_for("ended with 0")

    def test_lines(self):
        """The rows of the overview are those of `stackctl snapshot`, in its order: first what holds others up. Their
        stacks are asked for."""
        line = {"processes": 1, "function": "own_part", "kernel": None, "user": None}
        lines = [{k: v for k, v in {**row(name, number, blocked_ns=(20 - number) * S), **line, **other}.items()
                  if v is not None}
                 for number, (name, other) in enumerate((
                     ("longer", {"runnable_ns": 5 * S, "reason": "mutex", "ran_before": {
                         "ns": S, "pid": 7, "tid": 8, "comm": "hog"}, "held_up_by": {
                             "ns": 15 * S, "pid": 6, "tid": 9, "comm": "keeper"}}),
                     ("locked", {"urgent": True, "runnable_ns": 0, "holders_at": time(T0), "holders": [
                         {"pid": 31, "tid": 32, "comm": "backup"}]}),
                     ("m[a*", {"processes": 3, "runnable_ns": 0, "object": "/run/lock", "process": {
                         **row("m[a*", 2)["process"], "pid": 0}})))]
        reply = answer("offcpu", lines)
        self.daemon.replies["Overview"] = [{"parameters": reply}]
        screen = self.open(150, 24)
        text = screen.wait_for("locked(101)", "longer(100)", "m[a*(x3)")
        self.asked("Overview", by="line", io=True)
        shown = [line.split()[0] + " " + line[line.index("("):].split()[0] for line in text.splitlines()
                 if line.startswith(("blocked ", "runnable "))]
        self.assertEqual(shown, ["blocked (101)", "blocked (100)", "blocked (x3)", "runnable (100)"])
        self.assertIn("<- as of 03:10:10 backup(32): ", text)
        self.assertEqual(text.count("longest behind hog(8)"), 1)
        self.assertEqual(text.count("held up by keeper(9) for 15.0s"), 1)
        self.assertIn("own_part", text)
        screen.keys("Down", "Down", "w")
        self.assertNotIn("pid", screen.wait_for("m[a* (3 processes)", "/run/lock"))
        screen.keys("Escape", "Enter")
        self.asked("Snapshot", probe="offcpu", by="stack", comm="m\\[a*", since_ns=T0, until_ns=T0 + 5 * S)
        self.assertNotIn("pids", self.daemon.calls[-1]["parameters"]["filter"])
        screen.wait_for("slow (pid 101)", "schedule", "program below")
        screen.keys("Escape", "Up", "Up", "Enter")
        self.asked("Snapshot", probe="offcpu", by="stack", pids=[101], since_ns=T0, until_ns=T0 + 5 * S)
        screen.wait_for("slow (pid 101)", "schedule", "program below")
        screen.keys("Escape", "q")
        screen.wait_for("ended with 0")

    def test_tabs(self):
        screen = self.open()
        screen.wait_for("busy(102)")
        screen.keys("2")
        self.asked("Snapshot", probe="offcpu", by="stack", sort="total", idle=False)
        screen.wait_for("next(102)", "by stack, total")
        screen.keys("s", "g", "i")
        self.asked("Snapshot", probe="offcpu", by="process", sort="max", idle=True)
        screen.keys("3")
        self.asked("Snapshot", probe="oncpu", by="process")
        screen.keys("5", "g")
        self.asked("Snapshot", probe="iolat", by="process")
        screen.keys("1", "g")
        screen.wait_for("always of one name and one reason")
        screen.keys("s")
        screen.wait_for("always by time")
        screen.keys("6")
        self.asked("Snapshot", probe="offcpu", by="thread", sort="max", open=True)
        screen.keys("/")
        screen.wait_for("thread name, not its id:")
        screen.keys("sql", "Enter")
        self.asked("Snapshot", probe="offcpu", open=True, comm="*sql*")
        screen.keys("C-c")
        screen.wait_for("ended with 0")

    def test_panes(self):
        screen = self.open()
        screen.keys("2")
        screen.wait_for("next(102)")
        screen.keys("Down", "Enter")
        screen.wait_for("next (pid 102", "schedule", "main")
        screen.keys("Escape", "w")
        self.asked("Snapshot", probe="offwake", pids=[102], since_ns=T0, until_ns=T0 + 5 * S)
        screen.wait_for("slow (pid 101")
        screen.keys("?")
        screen.wait_for("one window back in time")
        screen.keys("Escape")
        screen.wait_for("next(102)")

    def test_messages(self):
        """A message that is wider than the screen takes several lines, in a pane and at the end of the screen."""
        message = "the probe offwake is off\x1b: " + "[probe.offwake] enabled = no; " * 8 + "then: record"
        shown = message.replace("\x1b", "\\x1b")
        may_answer = self.daemon.replies["Snapshot"]
        self.daemon.replies["Snapshot"] = lambda parameters: [error("io.stackd.NoData", message=message)] \
            if parameters["probe"] == "offwake" else [error("io.stackd.Busy", message=message)] \
            if parameters["top"] == 0 else may_answer(parameters)
        screen = self.open()
        screen.keys("2")
        screen.wait_for("next(102)")
        screen.keys("w")
        self.assertIn(shown, " ".join(screen.wait_for("record").split()))
        screen.keys("Escape")
        screen.wait_for("next(102)")
        screen.keys("x")
        text = screen.wait_for("no picture: ", "record")
        self.assertIn(shown, " ".join(text.split()))
        self.assertTrue(text.rstrip().endswith("record"))
        self.assertIn("slow(101)", text)

    def test_stuck(self):
        """Holders are shown in the pane of wakers, and rows can be grouped."""
        held = row("slow", 1, tid=7, state="S", reason="mutex", object="lock\x1b" + "x" * 4096, max_ns=9 * S,
                   holders=[{"pid": 8, "tid": 8, "comm": "hol\u202ed\n", "reason": None, "object": None,
                             "for_ns": 0}])
        grouped = row("slow", 1, key="mutex", open=5, count=0, max_ns=8 * S)
        own = row("stackd", 2, own=True, function="drain_run", open=1, count=0, max_ns=S)

        def snapshot_of(parameters):
            if parameters["probe"] == "offwake":
                return [error("io.stackd.NoData", message="offwake is off")]
            return [{"parameters": answer("offcpu", [held] if parameters["by"] == "thread" else [grouped, own])}]

        self.daemon.replies["Snapshot"] = snapshot_of
        screen = self.open(120, 24)
        screen.keys("6")
        screen.wait_for("by stack", "<- hol\\u202ed\\n(8)")
        screen.keys("w")
        text = screen.wait_for("hol\\u202ed\\n (pid 8)", "who ended waits of this process before:", "offwake is off")
        self.assertNotIn("\x1b", text)
        screen.keys("Escape", "b", "s")
        screen.wait_for("always has the longest waits first")
        screen.keys("G")
        self.asked("Snapshot", probe="offcpu", by="reason", open=True)
        screen.wait_for("by reason", " 8.00s", "stackd itself")
        screen.keys("w")
        screen.wait_for("the row is not of one process")
        screen.keys("Enter")
        screen.wait_for("5 times")

    def test_stuck_is_folded(self):
        """Threads that wait alike are one row, locks come first, and what there was no room for is said."""
        pool = [row("pool", 1, tid=n, state="S", reason="sem", object=None, max_ns=(90 + n) * S, open=1, count=0,
                    holders_unknown="too many", holders_missed=True) for n in range(30)]
        held = row("next", 2, tid=102, state="S", reason="flock", object="/lock", max_ns=9 * S, open=1, count=0)
        reply = answer("offcpu", [*pool, held])
        reply["rest"] = {"rows": 520, "total_ns": S}
        self.daemon.replies["Snapshot"] = lambda parameters: [{"parameters": reply}]
        screen = self.open(100, 24)
        screen.keys("6")
        lines = screen.wait_for("by stack; 520 more: stackctl stuck", "pool(101)").splitlines()[4:]
        self.assertRegex(lines[0], r"S +9.00s +1 next\(102\) +flock /lock")
        self.assertRegex(lines[1], r"S +119s +30 pool\(101\) +sem <- not looked up")
        self.assertEqual(lines[2], "")
        screen.keys("Down", "Enter")
        text = screen.wait_for("pool (pid 101): 30 threads", "2026-03-01 03:10:15")
        self.assertIn("and 6 more, g: a row for each", " ".join(text.split()))
        self.assertNotIn("next", text)
        screen.keys("Escape", "g", "g")
        text = screen.wait_for("by thread;", "pool(101)/", "90.0s", "91.0s", "92.0s")
        self.assertGreater(text.count("pool(101)"), 9)

    def test_operations(self):
        """Enter on a row of I/O shows the operation. Rows by operation are of all processes, whichever theirs is."""
        io = dict.fromkeys(("cpu_ns", "runnable_ns", "device_ns", "queue_ns", "throttled_ns", "other_ns", "async",
                            "merges", "requeues"), 0)
        known = row("writer", 1, count=256, total_ns=2 * S, buckets=[0] * 20 + [200, 56], io={
            **io, "layer": "device", "op": "write", "filesystem": "ext4", "device": "vda", "own_ns": 2 * S,
            "bytes": 50 * 10**6, "p50_ns": 10**6, "p90_ns": 2 * 10**6, "p99_ns": 3 * 10**6, "errors": 7})
        known = {member: known[member] for member in ("process", "comm", "idle", "count", "total_ns", "max_ns",
                                                      "buckets", "io")}
        self.daemon.replies["Snapshot"] = lambda parameters: [{"parameters": answer("iolat", [known])}]
        screen = self.open()
        screen.keys("5")
        self.assertNotIn("writer", screen.wait_for("by operation, total", "(all processes)", "device write vda"))
        screen.keys("w")
        screen.wait_for("the row is not of one process")
        screen.keys("Enter")
        text = screen.wait_for("2 s, 100 % of the time of I/O; 50.0 MB, 10.0 MB/s", "ext4 vda", "p99~", "7 failed",
                               "1048576 -> 2097151    : 200")
        self.assertNotIn("writer", text)
        screen.keys("Escape", "g")
        screen.wait_for("by process, total", "writer(101)")
        screen.keys("Enter")
        screen.wait_for("writer (pid 101)", "ext4 vda")

    def test_leaf_of_samples(self):
        """What ran on a CPU is shown also if it is the scheduler, in a thread of the kernel."""
        frames = [{"kind": "kernel", "name": name} for name in ("__schedule", "schedule", "worker_thread")]
        ran = {**sample("kworker", 2), "kernel": {"id": "a", "flags": [], "frames": frames}}
        del ran["user"]
        self.daemon.replies["Snapshot"] = lambda parameters: [{"parameters": answer("oncpu", [ran])}]
        screen = self.open()
        screen.keys("3")
        screen.wait_for("kworker(102)", "__schedule")

    def test_folded_operations(self):
        """A row of I/O of several processes has their name."""
        known = row("writer", 1, count=2, folded=7, io={**dict.fromkeys((
            "cpu_ns", "runnable_ns", "device_ns", "queue_ns", "throttled_ns", "other_ns", "async", "merges",
            "requeues", "bytes", "errors", "p50_ns", "p90_ns", "p99_ns"), 0), "layer": "device", "op": "write",
            "own_ns": 2 * S})
        known = {member: known[member] for member in ("process", "comm", "idle", "count", "total_ns", "max_ns",
                                                      "folded", "io")}
        known["process"] = {**known["process"], "pid": 0}
        self.daemon.replies["Snapshot"] = lambda parameters: [{"parameters": answer("iolat", [known])}]
        screen = self.open()
        screen.keys("5", "g")
        screen.wait_for("writer(x7)")

    def test_picture(self):
        screen = self.open()
        screen.wait_for("busy(102)")
        screen.keys("x")
        self.asked("Overview", top=0, since_ns=T0, until_ns=T0 + 5 * S, io=False)
        name = "stackd-overview-20260301T031010Z.svg"
        screen.wait_for(f"wrote {name}", "busy(102)")
        with open(f"{self.directory.name}/{name}", encoding="utf-8") as file:
            picture = file.read()
        for part in ("<svg", "on CPU", "blocked", "runnable", "busy", "slow", "</svg>"):
            self.assertIn(part, picture)
        screen.keys("x")
        screen.wait_for(f"{name} was written before")
        screen.keys("2")
        screen.wait_for("next(102)")
        screen.keys("x")
        self.asked("Snapshot", probe="offcpu", by="stack", top=0)
        screen.wait_for("wrote stackd-blocked-20260301T031010Z.svg")
        self.daemon.replies["Snapshot"] = lambda parameters: [{"parameters": answer("oncpu", [sample("busy", 2)])}] \
            if parameters["top"] else [error("io.stackd.Busy", message="too \x1bbusy")]
        screen.keys("3")
        screen.wait_for("busy(102)")
        screen.keys("x")
        screen.wait_for("no picture: too \\x1bbusy")
        screen.keys("q")
        screen.wait_for("ended with 0")

    def test_times(self):
        screen = self.open()
        screen.wait_for("03:10:10..03:10:15")
        screen.keys("Left")
        self.asked("Overview", since_ns=T0 - 10**6, until_ns=T0)
        screen.wait_for("03:10:05..03:10:10", "PAST")
        screen.keys("Left")
        screen.wait_for("03:10:00..03:10:05")
        screen.keys("Right")
        self.asked("Overview", since_ns=T0 - 5 * S, until_ns=T0 - 5 * S + 10**6)
        screen.keys("t")
        screen.wait_for("time:")
        screen.keys("2026-03-01 02:00", "Enter")
        self.asked("Overview", since_ns=1772330400 * S)
        screen.keys("b")
        screen.wait_for("CHANGE", "+0ns")
        screen.keys("n")
        screen.wait_for("03:10:10..03:10:15")
        # Frozen: the same rows, whatever comes.
        screen.keys("Space")
        screen.wait_for("FROZEN")
        n = len(self.daemon.calls)
        clock.sleep(3)
        self.assertLessEqual(len(self.daemon.calls), n + 1)
        screen.keys("2")
        self.asked("Snapshot", since_ns=T0, until_ns=T0 + 5 * S)

    def test_base(self):
        """Rows are compared with those of the base that stand for the same, however many have one name; and not with
        rows of another kind."""
        line = {"kernel": None, "user": None, "runnable_ns": 0, "throttled_ns": 0}
        count = [0]

        def overview_of(parameters):
            count[0] += 1
            rows = [{k: v for k, v in {**row(name, 1), **line, **other, "blocked_ns": ns, "total_ns": ns}.items()
                     if v is not None}
                    for name, ns, other in (
                        ("flusher", 560 * 10**6, {"reason": "disk", "function": f"f{count[0]}"}),
                        ("flusher", 168 * 10**6, {"reason": "writeback", "function": f"f{count[0]}"}),
                        ("flusher", 20 * 10**6, {"reason": "disk", "key": "other"}),
                        ("server", 90 * 10**6, {"reason": "pipe", "processes": count[0], "process": {
                            **row("server", 2)["process"], "pid": 102 if count[0] == 1 else 0}}))]
            return [{"parameters": answer("offcpu", rows)}]

        self.daemon.replies["Overview"] = overview_of
        screen = self.open(100, 24)
        screen.wait_for("server(102)")
        screen.keys("b")
        screen.wait_for("CHANGE", "against the base", "server(x3)")
        text = screen.text()
        self.assertEqual(text.count(" +0ns "), 4, text)
        folded = [row("pool", 3, folded=4, process={**row("pool", 3)["process"], "pid": 0, "cgroup": f"/{name}"})
                  for name in "ab"]
        self.daemon.replies["Snapshot"] = lambda parameters: [{"parameters": answer("offcpu", [row("next", 2), *folded])}]
        for key, title in (("2", "by stack, total"), ("g", "by process, total")):
            screen.keys(key)
            self.assertNotIn("CHANGE", screen.wait_for(title, "next(102)", "the base is of other rows"))
        screen.keys("b")
        self.assertEqual(screen.wait_for("CHANGE", "against the base", "+0ns").count(" +0ns "), 3)
        screen.keys("g")
        self.assertNotIn("CHANGE", screen.wait_for("by thread, total", "next(102)", "the base is of other rows"))
        screen.keys("G")
        screen.wait_for("CHANGE", "against the base", "+0ns")
        screen.keys("b")
        self.assertNotIn("CHANGE", screen.wait_for("the base is forgotten"))

    def test_gap(self):
        none = answer("offcpu", [], missing="stackd was not running")
        none["coverage"]["windows"] = 0
        self.daemon.replies["Overview"] = [{"parameters": none}]
        screen = self.open()
        screen.wait_for("stackd was not running")
        screen.keys("Left")
        self.asked("Overview", until_ns=T0 - 60 * S)

    def test_gap_by_error(self):
        """Where the daemon has nothing, the keys go on from there, not from the last answer."""

        def overview_of(parameters):
            if parameters.get("until_ns", T0 + S) <= T0:
                return [error("io.stackd.NoData", message="stackd was not running")]
            return overview(parameters)

        self.daemon.replies["Overview"] = overview_of
        screen = self.open()
        screen.wait_for("busy(102)")
        screen.keys("Left")
        self.asked("Overview", until_ns=T0)
        screen.wait_for("stackd was not running")
        screen.keys("Left")
        self.asked("Overview", until_ns=T0 - S // 1000 - 60 * S)

    def test_errors(self):
        """The screen stays when the daemon goes away, and goes on when it is back."""
        screen = self.open(80, 24, "-i", "1s")
        screen.wait_for("busy(102)")
        self.daemon.close()
        screen.wait_for("no daemon at", "busy(102)")
        self.daemon = double.Double(self.directory.name + "/sock")
        self.daemon.replies["Overview"] = [error("io.stackd.NoData", message="nothing yet")]
        self.assertNotIn("busy", screen.wait_for("nothing yet"))
        self.daemon.replies["Overview"] = overview
        screen.wait_for("? help", "busy(102)")
        screen.keys("q")
        screen.wait_for("ended with 0")

    def test_nobody(self):
        """Where nobody has the name there are no rows and no time, but what the daemon says."""
        message = "no thread of comm *nobody* was seen in the range; " + "not recorded: 20ms of the range (gaps) " * 5

        def overview_of(parameters):
            if "comm" in parameters.get("filter", {}):
                return [error("io.stackd.NoData", message=message)]
            return overview(parameters)

        self.daemon.replies["Overview"] = overview_of
        screen = self.open()
        screen.wait_for("busy(102)")
        screen.keys("/", "nobody", "Enter")
        text = screen.wait_for("name *nobody*", "no thread of comm *nobody* was seen")
        self.assertNotIn("busy", text)
        self.assertNotIn("03:10", text)
        # All of it is there, over several lines.
        self.assertIn(" ".join(message.split()), " ".join(text.split()))
        screen.keys("Enter", "w", "b")
        screen.wait_for("there is nothing to compare with")
        screen.keys("/")
        # What was typed before is not there any more.
        screen.wait_for("thread name, not its id: _")
        screen.keys("Enter")
        screen.wait_for("busy(102)", "03:10:10..03:10:15", "? help")
        screen.keys("q")
        screen.wait_for("ended with 0")

    def test_hanging(self):
        """A daemon that does not answer is told from one that has nothing to say, and q still ends
        the program."""
        is_over = threading.Event()

        def hang(parameters):
            is_over.wait(60)
            return []

        self.daemon.replies["Overview"] = hang
        screen = self.open()
        screen.wait_for("the daemon has not answered for")
        screen.keys("q")
        screen.wait_for("ended with 0")
        is_over.set()

    def test_keys_while_it_hangs(self):
        """What a key asks for is of the row that was selected then, whatever is shown later."""
        is_over, may_answer = threading.Event(), self.daemon.replies["Snapshot"]
        screen = self.open()
        screen.keys("2")
        screen.wait_for("next(102)")

        def hang(parameters):
            is_over.wait(60)
            return may_answer(parameters)

        self.daemon.replies["Snapshot"] = hang
        screen.keys("s")
        screen.wait_for("by stack, max")
        screen.keys("Down", "w", "3", "x")
        screen.wait_for("by stack, total", "3 on CPU")
        is_over.set()
        screen.wait_for("busy(102)")
        screen.keys("q")
        screen.wait_for("ended with 0")

    def test_resized_while_drawing(self):
        screen = self.open(80, 24, "-i", "500ms")
        screen.wait_for("busy(102)")
        for step in range(40):
            columns, lines = ((40, 10), (400, 100), (1, 1), (81, 3), (200, 50))[step % 5]
            screen.tmux("resize-window", "-x", str(columns), "-y", str(lines))
            screen.keys(str(step % 6 + 1), *(("Enter", "?", "Down", "Escape")[step % 4],))
        screen.tmux("resize-window", "-x", "400", "-y", "100")
        screen.keys("Escape", "1")
        text = screen.wait_for("busy(102)", "AVERAGE", "q quit")
        self.assertEqual(len(text.splitlines()), 100)
        screen.tmux("resize-window", "-x", "80", "-y", "24")
        text = screen.wait_for("busy(102)", "q quit")
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()))
        screen.keys("q")
        screen.wait_for("ended with 0")

    def test_sizes(self):
        screen = self.open(40, 10)
        text = screen.wait_for("busy(")
        self.assertEqual(len(text.splitlines()), 10)
        screen.tmux("resize-window", "-x", "200", "-y", "50")
        screen.wait_for("AVERAGE", "COUNT")
        screen.tmux("resize-window", "-x", "10", "-y", "3")
        screen.keys("2", "Down", "Enter", "q")
        screen.wait_for("ended")

    def test_terminals(self):
        screen = self.open(term="dumb")
        screen.wait_for('top cannot use a terminal of the type "dumb"', "ended with 1")
        done = subprocess.run([STACKCTL, "top"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=double.HANG, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("top needs a terminal", done.stderr)

    def test_names(self):
        """Each name is one line, however it is made."""
        self.daemon.replies["Snapshot"] = lambda parameters: [
            {"parameters": answer("offcpu", [row(name, i, total_ns=(9 - i) * S)
                                             for i, name in enumerate(NAMES)])}]
        screen = self.open(120, 24)
        screen.keys("2")
        text = screen.wait_for("=cmd|", "ünï(105)", "xxx")
        self.assertIn(HOSTILE, NAMES)
        lines = text.splitlines()[4:4 + len(NAMES)]
        self.assertTrue(all("(10" in line for line in lines), lines)


unittest.main(argv=sys.argv[:1], verbosity=2)
