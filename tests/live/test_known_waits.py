#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows a program that waits 5 x 200 ms in each of four functions: each is a stack with its
function's name, the right sum, count and state, wherever the windows are cut."""

from harness import *

COUNT, MS = 5, 200
PLACES = {
    "wait_in_nanosleep": "S",
    "wait_in_futex": "S",
    "wait_in_pipe_read": "S",
    "wait_in_vfork": "D",
}


def check_place(program, snapshot, folded, name, state, label):
    truth = program.value(name)
    value = folded_sum(folded, name, "run_waits", "main")
    # On a slow machine much of the time is spent on the way to the wait.
    off_cpu = truth["ns"] - truth["cpu_ns"]
    check_near(value * 1000, off_cpu, 0.01, f"{label}: {name} against its own clocks, ns")
    # On a busy host the program itself waits longer than intended.
    if truth["ns"] <= COUNT * MS * 1_010_000:
        check_near(value, COUNT * MS * 1000, 0.02, f"{label}: {name} in the folded snapshot, us")
    rows = [row for row in rows_with(snapshot, name) if row["state"] == state]
    if not check(rows, f"{label}: {name} has rows of state {state}"):
        return
    check(row_sum(rows, "count") == COUNT, f"{label}: {name}: {row_sum(rows, 'count')} waits")
    check(row_sum(rows, "open") == 0, f"{label}: {name}: none is open")
    check(len({row["user"]["id"] for row in rows}) == 1, f"{label}: {name}: one user stack")
    names = frame_names(rows[0])
    check(names[:3] == [name, "run_waits", "main"],
          f"{label}: {name}: the leaf is first: {names[:4]}")
    longest = max(row["max_ns"] for row in rows)
    # Time besides the wait: on the CPU, and in preemptions, which are waits of their own.
    besides = truth["cpu_ns"] + row_sum(rows_with(snapshot, name)) - row_sum(rows)
    check(
        (truth["max_ns"] - besides) * 0.99 <= longest <= truth["max_ns"],
        f"{label}: {name}: the longest wait {longest}, with {besides} ns besides {truth['max_ns']}",
    )
    check(
        sum(sum(row["buckets"]) for row in rows) == COUNT,
        f"{label}: {name}: its buckets add up to its count",
    )
    # 200 ms lie between 2^27 and 2^28 ns; buckets[i] begins at 2^(i+9).
    if truth["max_ns"] < 1 << 28:
        check(
            sum(row["buckets"][18] for row in rows if len(row["buckets"]) > 18) == COUNT,
            f"{label}: {name}: in the bucket of 134 to 268 ms",
        )


def check_waits(label, *overrides):
    daemon = Daemon(*overrides)
    program = Program("prog_waits", COUNT, MS).ready().go().done()
    program.end()
    snapshot = daemon.snapshot("--window", "2min", "-p", program.pid)
    folded = daemon.folded("--window", "2min", "-p", program.pid)
    for name, state in PLACES.items():
        check_place(program, snapshot, folded, name, state, label)
    check(any(line.startswith("prog_waits;") for line in folded), f"{label}: lines begin with comm")
    totals = snapshot["totals"]
    off_cpu = (totals["blocked_ns"] + totals["runnable_ns"]) / 1000
    check_near(sum(folded.values()), off_cpu, 0.001, f"{label}: the folded sum is the total, us")
    processes = [row["process"] for row in snapshot["rows"]]
    check({p["pid"] for p in processes} == {program.pid}, f"{label}: only its pid")
    check(all(p["exited"] for p in processes), f"{label}: the process is known to have exited")
    check_nothing_lost(snapshot, label)
    check(daemon.stop() == 0, f"{label}: the daemon ends with 0 at SIGTERM")


need_live()
check_waits("windows of 5 s")
check_waits("windows of 1 s", "window.length=1s")
check_waits("windows of 130 ms", "window.length=130ms", "window.min_length=100ms")
finish()
