# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that the tests of the older tools' verbs share besides compat.py: two processes of
prog_rounds, whose waits, wakers and CPU time are known, and looks, which check what any of these
tools prints about them.
"""

import os
import time

import harness as h
from compat import Cases

LONG, SHORT, DEEP, NESTED = "wait_long", "wait_short", "wait_in_vfork", "wait_nested"
PARTNER, COMPUTE = "wait_for_partner", "compute_alone"
US = 1_000_000
EDGE = 8000  # us, between the short and the long waits
NODE = "user + kernel"
ENDLESS = "... Hit Ctrl-C to end."


def offcputime_header(who, ending=" for 2 secs.", by=f"{NODE} stack"):
    return f"Tracing off-CPU time (us) of {who} by {by}{ending}"


def is_kernel_thread(pid):
    """True if a running process has PF_KTHREAD; None if it has exited."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return bool(int(f.read().rsplit(")", 1)[1].split()[6]) & 0x200000)
    except (FileNotFoundError, ProcessLookupError):
        return None


def blocks(header, look):
    return lambda o: look(o.blocks(header))


def pairs(header, look):
    return lambda o: look(o.pairs(header))


def programs(probe, name):
    def look(o):
        o.check(o.lines[:1] and o.lines[0].startswith(f"probe {probe}"), f"{o.lines[:1]}")
        # A probe that is not always on has no programs until it records.
        out, err = o.result.out, o.result.err
        has_programs = f"program {name} on " in out if name else "when a recording starts" in err
        o.check(has_programs, f"{o.result.out} {o.result.err}")

    return look


def all_threads(o):
    o.some(LONG)
    o.check(len(o.pids()) > 2, f"several processes are shown: {len(o.pids())}")


def user_threads(o):
    o.some(LONG)
    kernel = [p for p in o.pids() if is_kernel_thread(p)]
    o.check(not kernel, f"no kernel threads: {kernel}")


def kernel_threads(o):
    o.check(o.entries, "something")
    users = [p for p in o.pids() if is_kernel_thread(p) is False]
    o.check(not users, f"kernel threads only: {users}")


def uninterruptible(o):
    o.some(DEEP)
    o.none(LONG, SHORT, NESTED)


def preempted(o):
    """Checks preemptions: two threads share a CPU, and a thread that sleeps hardly ever disturbs
    another."""
    o.some(COMPUTE)
    whole = o.sum()
    h.estimate_least(o.sum(COMPUTE), whole / 2,
                     f"{o.label}: most of the time is of threads that compute: {o.sum(COMPUTE)} of {whole} us")
    h.estimate_most(o.sum(LONG), 0.2 * US, f"{o.label}: sleeps are left out: {o.sum(LONG)} us")


def storage_noted(o):
    o.check("--stack-storage-size" in o.result.err, f"a size is noted: {o.result.err}")


def storage(o):
    o.some(LONG)
    storage_noted(o)


def nothing_ended(o):
    o.check(not "".join(o.lines[1:]).strip(), f"there is no entry: {o.lines[1:3]}")
    o.check("no wait that was asked for ended" in o.result.err,
            f"and the reason is printed: {o.result.err}")


class Rounds:
    """One tool's cases, on a daemon of their own that has nothing always on but its probe. pid, tid
    (by name) and thread, the one that only waits, are of the first process, other_pid is of the
    second; sleeper_pid waits all the time."""

    def __init__(self, tool, probe):
        h.need_live()
        self.tool, self.cpu = tool, max(os.sched_getaffinity(0))
        # Other probes, and the store, would take their share of a slow machine.
        others = {"offcpu", "oncpu", "iolat"} - {probe}
        settings = [f"probe.{name}.enabled=no" for name in sorted(others)]
        self.daemon = h.Daemon("store.enabled=no", "control.max_sessions=32", *settings)
        self.programs = [self.daemon.settled(h.Program("prog_rounds", self.cpu).ready()) for _ in range(2)]
        self.pid, self.other_pid = (program.pid for program in self.programs)
        threads = [line.split() for line in self.programs[0].lines if line.startswith("thread ")]
        self.tid = {name: int(tid.removeprefix("tid=")) for _, name, tid in threads}
        self.thread = self.tid["rounds"]
        self.sleeper = self.daemon.settled(h.Program("prog_sleeper").ready())
        self.sleeper_pid = self.sleeper.pid
        self.began = time.time()
        self.sides = {}
        self.cases = Cases(self.daemon)

    def add(self, row, words, look, until_interrupted=False):
        self.cases.add(f"{self.tool}: {row}", f"{self.tool} {words}", look, until_interrupted)

    def one_thread(self, o):
        """Checks that only the process of the thread that only waits is shown."""
        o.check(o.pids() == {self.pid}, f"only {self.pid}: {o.pids()}")
        o.some(LONG)
        o.none(DEEP, NESTED, PARTNER)

    def two_processes(self, o):
        both = {self.pid, self.other_pid}
        o.check(o.pids() == both, f"both of {both}: {o.pids()}")

    # These two record the thread that only waits, for 2 s: each of its waits is on one side of
    # EDGE.

    def at_least(self, o):
        o.some(LONG)
        o.check(all(e.value >= EDGE for e in o.entries), "none is shorter")
        self.sides["-m"] = o.sum("rounds_main")

    def at_most(self, o):
        o.some(SHORT)
        o.none(NESTED)
        o.check(all((e.longest or 0) <= EDGE for e in o.entries), "none is longer")
        self.sides["-M"] = o.sum("rounds_main")

    def check_sides(self):
        both = sum(self.sides.values())
        h.estimate_least(both, 1.8 * US, f"-m and -M split the waits at {EDGE} us, {both} in all")

    def finish(self, refused):
        """Checks the calls that the tool has to refuse, and ends the test."""
        for words in refused:
            result = self.daemon.ctl(self.tool, *words.split())
            is_refused = result.code == 1 and result.err and not result.out
            h.check(is_refused, f"{words}: {result} {result.out}")
        # All sessions of the cases must have ended.
        sessions = self.daemon.call("io.stackd.Sessions")["sessions"]
        h.check(all("ended" in s or s["always"] for s in sessions), "all sessions have ended")
        h.finish()
