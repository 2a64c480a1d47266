#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows threads that have slept since before the daemon started: they have whole user stacks while
they still sleep, in `snapshot` and in `stuck`, also where their stack's pages are not mapped. The
stack of a wait is read once."""

from harness import *
from unwound import (BUILDS, FRAMED_BUILDS, O2_PLACES, PLACES, begins_with, below_nap, flags_of, has_place,
                     tail_of)

FOREVER_US = 3_600_000_000
HAS_LIBRARY = os.path.exists(os.path.join(PROGS, "libprog_unwind.so"))


def sleeping(rows):
    return [r for r in rows if "nap" in frame_names(r)]


def check_place(label, place, rows, whole=()):
    found = sleeping(rows)
    flags = [r["user"]["flags"] for r in found]
    check(flags == [list(whole)], f"{label}: one open wait, its stack whole: {flags}")
    for row in found:
        names = below_nap(frame_names(row))
        check(begins_with(names, PLACES[place] + tail_of(place)), f"{label}: {names}")


def open_rows(daemon, program):
    rows = daemon.ctl_json("snapshot", "offcpu", "--idle", "-p", program.pid)["rows"]
    return [r for r in rows if r["open"]]


def stuck_rows(daemon, program):
    return daemon.ctl_json("stuck", "--idle", "-p", program.pid)["rows"]


def are_whole(daemon, programs):
    """Cuts; true if all stacks are whole. A process that was unknown at one cut is known at the
    next."""
    daemon.cut()
    return all(
        row["user"]["flags"] == flags_of(build) for (build, _), p in programs.items()
        for row in sleeping(stuck_rows(daemon, p))
    ) and all(sleeping(stuck_rows(daemon, p)) for p in programs.values())


def limit(daemon):
    limits = daemon.status()["limits"]
    return next(l for l in limits if l["name"] == "probe.offcpu.max_open_stacks")


need_live()
programs = {}
for build in BUILDS + FRAMED_BUILDS:
    for place in PLACES:
        if has_place(build, place) and (place not in O2_PLACES or HAS_LIBRARY):
            programs[build, place] = Program(f"prog_unwind_{build}", place, 1, 1, FOREVER_US)
for program in programs.values():
    program.ready().go()
    wait_in(program.pid, "nanosleep", "futex")
paged = Program("prog_paged").ready()
check(paged.lines[0].endswith("present=0"), f"the stack's pages are gone: {paged.lines[0]}")

daemon = Daemon("window.length=2s")
daemon.cut()
probe = next(p for p in daemon.status()["probes"] if p["name"] == "offcpu")
unread = [b for b in probe.get("blind", []) if "waits that have not ended" in b]
if unread:
    skip(f"this kernel: {unread[0]}")
wait_until(lambda: are_whole(daemon, programs), "whole stacks of all that sleep")
for (build, place), program in programs.items():
    whole = flags_of(build)
    check_place(f"stuck: {build} {place}", place, stuck_rows(daemon, program), whole)
    check_place(f"snapshot: {build} {place}", place, open_rows(daemon, program), whole)

# The threads are not woken, so their stacks are not read again; few other threads sleep for long.
reads = limit(daemon)
check(reads["value"] == 512 and reads["used"] >= len(programs), f"reads are counted: {reads}")

found = sleeping(stuck_rows(daemon, paged))
names = below_nap(frame_names(found[0])) if found else []
check(
    len(found) == 1 and found[0]["user"]["flags"] == [] and begins_with(
        names, ["f5", "f4", "f3", "f2", "f1", "worker", ...]
    ),
    f"the stack that is not in memory has: {names}",
)

# A thread that is woken and sleeps again is read again: here in the handler of the signal that woke it.
os.kill(programs["o2", "alloca"].pid, signal.SIGUSR1)
expected = ["on_signal", ..., "nap", *PLACES["alloca"], *tail_of("alloca")]


def is_read_again():
    daemon.cut()
    return any(begins_with(below_nap(frame_names(row)), expected)
               for row in sleeping(stuck_rows(daemon, programs["o2", "alloca"])))


wait_until(is_read_again, "the stack of the next wait")

text = daemon.ctl("stuck", "--idle", "-p", programs["o2", "deep"].pid).out
check(" f10 " in text and "not read" not in text, f"as text: {text}")

# A session also has these stacks.
started = daemon.ctl("start", "offcpu", "--name", "sleepers", "-p", programs["o2", "deep"].pid)
check(started.code == 0, f"a session: {started}")


def recorded():
    """Returns the session's open waits once their stacks were read."""
    with contextlib.suppress(VarlinkError):
        rows = daemon.call("io.stackd.Snapshot", session="sleepers", idle=True)["rows"]
        found = [row for row in rows if row["open"]]
        return found if sleeping(found) and all(frame_names(row) for row in found) else None
    return None


check_place("session", "deep", wait_until(recorded, "the session's stacks"))
check(daemon.ctl("stop", "sleepers").code == 0, "the session stops")
check_nothing_lost(daemon.status(), "status")
check(daemon.stop() == 0, "the daemon stops")

# The limit is lower than the number of stacks: the others are read at the next cuts.
# Other programs' threads sleep, too.
AT_ONCE = len(programs) // 3
daemon = Daemon(f"probe.offcpu.max_open_stacks={AT_ONCE}", "window.length=1s")
wait_until(lambda: are_whole(daemon, programs), f"whole stacks, {AT_ONCE} at a cut")
reads = limit(daemon)
check(reads["used"] == AT_ONCE and reads["hits"] > 0, f"at most {AT_ONCE} at a time: {reads}")
check(daemon.stop() == 0, "the daemon stops")

# With a limit of 0 no stack is read.
daemon = Daemon("probe.offcpu.max_open_stacks=0", "window.length=1s")
daemon.cut()
rows = stuck_rows(daemon, programs["o2", "deep"])
check(
    [r["user"]["flags"] for r in rows if r["user"]] == [["unread"]],
    f"none: {[r['user']['flags'] for r in rows if r['user']]}",
)
daemon.stop()
finish()
