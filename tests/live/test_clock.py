#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows how the daemon takes the host's clock being set an hour forward and back, and a sleep of
the host. tests/fault/fault_preload.c changes the clock for the daemon only. Windows go on without a
hole in the monotonic clock, questions about now are answered, gaps give the reasons, and sessions
end in time."""

import threading

import fault
from harness import *

HOUR = 3600 * NS_PER_S
STEPS = [("forward", HOUR), ("back", 0), ("back again", -HOUR), ("forward again", 0)]
if EVENTS_ONLY:
    del STEPS[2:]


def switches(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)


def now(shift):
    return time.time_ns() + shift


def snapshot(daemon, **what):
    """Asks as stackctl does, but by the daemon's clock."""

    def answered():
        try:
            return daemon.call("io.stackd.Snapshot", top=1, filter={"pids": [program.pid]}, **what)
        except VarlinkError as e:
            if e.name != "io.stackd.NoData":
                raise
            return None

    return wait_until(answered, "an answer")


def check_now(daemon, shift, text):
    """Checks that the last second is answered: its window begins after the step."""
    subject_sleep(2)
    reply = snapshot(daemon, probe="offcpu", window_ns=NS_PER_S)
    coverage = reply["coverage"]
    late = now(shift) - coverage["used"]["end"]["ns"]
    check(abs(late) < HOUR / 2, f"{text}: the answer ends {late / 1e9:.3f} s ago, by this clock")
    estimate_most(abs(late), 2 * NS_PER_S, f"{text}: the answer ends {late / 1e9:.3f} s ago")
    whole = coverage["covered_ns"] == coverage["asked_ns"] and not coverage["gaps"]
    check(whole, f"{text}: {coverage['covered_ns']} of {coverage['asked_ns']} ns covered: {coverage['gaps']}")
    check(reply["totals"]["waits"] > 0, f"{text}: {reply['totals']['waits']} waits")
    estimate_least(reply["totals"]["waits"], 50, f"{text}: these are many")


class Follower(threading.Thread):
    """A client of a stream that takes one answer after the other."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.ends, self.error = [], None
        self.connection = Connection(path)
        self.connection.send({"method": "io.stackd.Follow", "more": True,
                              "parameters": {"probe": "offcpu", "interval_ns": NS_PER_S, "top": 1}})
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                reply = self.connection.receive()
                if "error" in reply:
                    self.error = reply
                    return
                self.ends.append(reply["parameters"]["coverage"]["used"]["end"]["ns"])


class Span:
    """The least and the most that can have happened within the session."""

    def __init__(self):
        self.outer = self.inner = None

    @staticmethod
    def read():
        return time.monotonic_ns(), switches(program.pid)

    def begin(self, action):
        before = self.read()
        action()
        self.begun = before, self.read()

    def end(self, action):
        before = self.read()
        action()
        after = self.read()
        self.inner = [e - b for e, b in zip(before, self.begun[1])]
        self.outer = [e - b for e, b in zip(after, self.begun[0])]

    def check(self, which, value, text):
        least, most = self.inner[which], self.outer[which]
        check(0.995 * least <= value <= most * 1.005, f"{text}: {value} is in {least} to {most}")


def check_whole(daemon, span, text):
    """Checks that all windows of a session are there, each once, whatever the clock was set to."""
    reply = snapshot(daemon, session="whole")
    span.check(1, reply["totals"]["waits"], f"{text}: waits of all windows")
    listed = daemon.call("io.stackd.Windows", session="whole")["windows"]
    seqs = [w["seq"] for w in listed]
    check(len(seqs) == len(set(seqs)) and len(seqs) > 10, f"{text}: {len(seqs)} windows, each once")
    lengths = sum(w["length_ns"] for w in listed)
    span.check(0, lengths, f"{text}: they are as long as it ran, ns")
    return reply["totals"]["waits"], seqs


need_live()
if not os.path.exists(fault.FAULT):
    skip(f"needs {fault.FAULT}")
daemon = Daemon("window.length=500ms", "window.min_length=100ms", start=False)
faults = fault.Faults(daemon.dir)
daemon.start(env=faults.environment())
program = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.005)"])
atexit.register(stop_process, program)
daemon.cut()
follower = Follower(daemon.socket)
span = Span()
span.begin(lambda: daemon.ctl("start", "offcpu", "--name", "whole", "-p", program.pid))
check_now(daemon, 0, "as it is")
for name, shift in STEPS:
    began = time.monotonic_ns()
    timed = daemon.ctl("start", "oncpu", "--for", "2s").out.strip()
    seen = len(follower.ends)
    faults.set_clock(real=shift)
    check_now(daemon, shift, name)
    wait_until(lambda: len(follower.ends) > seen + 1 or follower.error, "the stream to go on")
    check(not follower.error, f"{name}: the stream goes on: {follower.error}")
    wait_until(
        lambda: any(s["id"] == timed and "ended" in s
                    for s in daemon.call("io.stackd.Sessions")["sessions"]), "its end")
    # A busy daemon may end it late.
    most = time.monotonic_ns() - began
    shown = daemon.call("io.stackd.Windows", session=timed)["windows"]
    length = sum(w["length_ns"] for w in shown)
    check(1.5 * NS_PER_S <= length <= most,
          f"{name}: a session of 2 s has windows of {length} ns, in {most}")
gaps = daemon.call("io.stackd.Windows", probe="offcpu")["gaps"]
reasons = [gap["reason"] for gap in gaps]
wanted = {"the clock was set forward", "the clock was set, and set again"}
check(reasons and set(reasons) <= wanted, f"gaps: {reasons}")

# The host sleeps for ten minutes, in which only one of three clocks stands still.
faults.set_clock(real=600 * NS_PER_S, boot=600 * NS_PER_S)
check_now(daemon, 600 * NS_PER_S, "after a sleep")
reply = snapshot(daemon, probe="offcpu", window_ns=610 * NS_PER_S)
reasons = [(gap["reason"], gap["end"]["ns"] - gap["start"]["ns"]) for gap in reply["coverage"]["gaps"]]
slept = [length for reason, length in reasons if reason == "the host was suspended"]
check(slept and 590 * NS_PER_S < max(slept) <= 601 * NS_PER_S, f"the sleep is a gap: {reasons}")

span.end(lambda: daemon.ctl("stop", "whole"))
total, seqs = check_whole(daemon, span, "from memory")
written = daemon.status()["store"]["written"]
wait_until(lambda: daemon.status()["store"]["written"] > written + 2, "all of it on disk")
check(daemon.stop() == 0, "a clean stop")
faults.set_clock()
daemon.start(env=faults.environment())
again, stored = check_whole(daemon, span, "from disk")
check((again, stored) == (total, seqs), "the same as before the restart")
finish()
