#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that the rows of each window add up to the sums of its threads, to the nanosecond, although threads on
each CPU are switched all the time: some in the moment between the clock and the number of a cut. Others are init's,
which reaps children; some hosts hide it from BPF."""

from harness import *

WINDOWS = 80


def ends(daemon):
    return [window["end"]["ns"] for window in daemon.call("io.stackd.Windows", probe="offcpu")["windows"]]


def off_by(daemon, start, end):
    """Returns by how much the rows of a window exceed the sums of its threads, in ns. Time after the wakeup of a wait
    that may have been over by then is in no row."""
    reply = daemon.call("io.stackd.Snapshot", probe="offcpu", since_ns=start, until_ns=end, idle=True)
    totals = reply["totals"]
    sums = totals["blocked_ns"] + totals["runnable_ns"] - totals.get("unseen_ns", 0)
    return row_sum(reply["rows"]) - sums


def has_cut(daemon):
    """True if there are enough windows. Leaves init a child to reap."""
    subprocess.run(["sh", "-c", "sleep 0.01 & :"], check=True)
    return len(ends(daemon)) > WINDOWS


need_live()
yielders = [Program("prog_yielders", 3600, cpu).ready() for cpu in os.sched_getaffinity(0)]
daemon = Daemon("window.length=100ms", "window.min_length=50ms", "probe.offcpu.min_wait=0", "store.enabled=no",
                "window.recent_rows=1000000", *ROOM)
for program in yielders:
    program.go()
wait_until(lambda: has_cut(daemon), f"{WINDOWS} windows")
for program in yielders:
    stop_process(program.process)
cuts = ends(daemon)
off = [off_by(daemon, start, end) for start, end in zip(cuts, cuts[1:])]
check(not any(off), f"the rows of {len(off)} windows add up to their totals; off by: {[ns for ns in off if ns]}")
check(daemon.stop() == 0, "the daemon ends")
finish()
