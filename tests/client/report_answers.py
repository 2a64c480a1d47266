# SPDX-License-Identifier: GPL-2.0-or-later
"""A recorder that is not there: answers of a stand-in for the daemon about several windows, with a gap, for
the tests of `stackctl report`. A test that imports it is run with STACKCTL as its first argument."""

import json
import re
import subprocess
import sys
import tempfile
import unittest

import double
from double import time
from rows import ROWS, T0, row, snapshot

STACKCTL = sys.argv[1]
WINDOW = 5 * 10**9
LOOKED_UP_BEFORE = 40 * 10**9  # the time from the look-up of holders to the end of the answers, in ns
GAP = 2  # the number of the column that has no window
EVIL = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">]]>"


def part(name, total):
    return {"name": name, "rows": 1, "total_ns": total}


def answer(number, rows, probe="offcpu", unsent=0, **other):
    """The answer about one column, with rows that are not sent."""
    start = T0 + number * WINDOW
    span = {"start": time(start), "end": time(start + WINDOW)}
    gaps = [{"start": time(start - WINDOW), "end": time(start), "reason": "stackd was killed " + EVIL}]
    blocked = sum(r.get("blocked_ns", 0) for r in rows)
    runnable = sum(r.get("runnable_ns", 0) for r in rows)
    parts = [part("on CPU", sum(r["total_ns"] for r in rows) + 3 * unsent)] if probe == "oncpu" else [
        part("blocked", blocked + 2 * unsent), part("runnable", runnable + unsent - 5),
        part("throttled", 5)]
    reply = snapshot(rows, probe=probe, parts=parts)
    reply["coverage"] = {"asked": span, "used": span, "asked_ns": WINDOW, "covered_ns": WINDOW,
                         "windows": 1, "gaps": gaps if number == GAP + 1 else [],
                         "complete": number != GAP + 1}
    reply["shown"] = {"rows": len(rows), "total_ns": 1}
    reply["rest"] = {"rows": 7 if unsent else 0, "total_ns": 3 * unsent}
    reply["totals"] = {**reply["totals"], "on_cpu_ns": 4 * 10**9 + number, "cpus": 2,
                       "blocked_ns": blocked + 2 * unsent, "runnable_ns": runnable + unsent}
    if probe == "offcpu":
        stall = {"some_ns": 10**9 + number, "full_ns": 10**8, "some_ppm": 0, "full_ppm": 0}
        reply["pressure"] = {"length_ns": WINDOW, "cpu": stall, "io": stall, "memory": stall,
                             "units": [], "units_length_ns": 0, "units_beyond": 0,
                             "units_unreadable": 0}
    if probe == "oncpu":
        reply["totals"]["samples"] = 150
    return {**reply, **other}


def waits_of(number):
    """Rows of a column: those of other columns with other times, one of them idle."""
    rows = [dict(r, blocked_ns=r["blocked_ns"] + 11 * number, reason="flock" if i % 2 else "pipe",
                 idle=i == 2, buckets=[0, 1, 2 + number], max_tid=500 + i, max_ns=10**9 + 1000 * i,
                 max_end=time(T0 + number * WINDOW + 10**9)) for i, r in enumerate(ROWS)]
    rows.append(row(EVIL, 40 + number, comm=EVIL, reason="tcp", key=None))
    return [{k: v for k, v in r.items() if v is not None} for r in rows]


def samples_of(number):
    sampled = row("db", 1, total_ns=3 * 10**9 + number)
    for name in ("state", "state_bits", "blocked_ns", "runnable_ns", "throttled_ns", "max_ns",
                 "max_end", "buckets", "open", "open_ns"):
        del sampled[name]
    return [sampled]


IO = {"layer": "syscall", "op": "read", "own_ns": 0, "cpu_ns": 0, "runnable_ns": 0, "device_ns": 0,
      "queue_ns": 0, "throttled_ns": 0, "other_ns": 9, "async": 0, "errors": 0, "bytes": 4096,
      "merges": 0, "requeues": 0}


def io_of(number):
    one = row("db", 1, io=IO, count=8, total_ns=9 * 10**6, buckets=[0] * 20 + [8 + number])
    return [one]


def sent_once(one, sent):
    """The row without the frames of stacks that were sent before."""
    brief = dict(one)
    for name in {"kernel", "user"} & one.keys():
        stack = one[name]
        if stack["id"] != "0x0" and stack in sent:
            brief[name] = {**stack, "frames": [], "flags": []}
        sent.append(stack)
    return brief


class Recorder(unittest.TestCase):
    """Starts the stand-in before each test; has no tests of its own."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # of chromium
        self.at = self.directory.name
        self.daemon = double.Double(self.at + "/sock")
        self.columns = 6  # the numbers of windows, with that of the gap
        self.unsent = 0
        self.make = waits_of
        self.daemon.replies["Windows"] = self.windows
        self.daemon.replies["Snapshot"] = self.snapshot

    def numbers(self):
        return [n for n in range(self.columns) if n != GAP]

    def windows(self, _):
        windows = [{"seq": n, "start": time(T0 + n * WINDOW), "end": time(T0 + (n + 1) * WINDOW),
                    "length_ns": WINDOW, "rows": 1, "threads": 1, "open": 0, "bytes": 1, "lost": []}
                   for n in self.numbers()]
        return [{"parameters": {"windows": windows, "gaps": []}}]

    def tearDown(self):
        self.daemon.close()
        self.directory.cleanup()

    def answers(self, probe):
        """All answers about a probe, the newest first, as the daemon sends them."""
        make = {"offcpu": self.make, "oncpu": samples_of, "iolat": io_of}[probe]
        return [answer(n, make(n), probe, self.unsent) for n in reversed(self.numbers())]

    def snapshot(self, request):
        if request.get("open"):
            held = row("waiter", 1, tid=77, object="/x" + EVIL, reason="flock", deadlock=True,
                       holders=[{"pid": 5, "comm": EVIL}], max_ns=60 * 10**9,
                       holders_at=time(T0 + self.columns * WINDOW - LOOKED_UP_BEFORE))
            return [{"parameters": answer(self.columns - 1, [held])}]
        replies, sent = [], []
        for reply in self.answers(request["probe"]):
            rows = [sent_once(r, sent) if request.get("stacks_once") else r for r in reply["rows"]]
            if not request.get("groups"):
                rows = [{k: v for k, v in r.items() if k != "function"} for r in rows]
            for at in range(0, max(len(rows), 1), 100):
                replies.append({"parameters": {**reply, "rows": rows[at:at + 100]},
                                "continues": True})
        replies[-1]["continues"] = False
        return replies

    def run_report(self, *words, output="x.html", code=0, **keywords):
        command = [STACKCTL, "-S", self.at + "/sock", "report", "--since", "2026-03-01 00:00", "--until",
                   "2026-03-02 00:00", *words]
        if output:
            command += ["-o", output if output.startswith("/") else f"{self.at}/{output}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=double.HANG, check=False, **keywords)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def page(self, *words):
        self.run_report(*words)
        with open(self.at + "/x.html", encoding="utf-8") as file:
            return file.read()

    def data_of(self, page):
        found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
        self.assertEqual(len(found), 1)
        return json.loads(found[0])
