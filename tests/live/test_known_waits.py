#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows a program that waits 5 x 200 ms in each of four functions: each is a stack with its
function's name, the right sum, count and state, wherever the windows are cut."""

from harness import *

COUNT, MS = 5, 200
MIN_WAIT_NS = 100_000
PLACES = {
    "wait_in_nanosleep": "S",
    "wait_in_futex": "S",
    "wait_in_pipe_read": "S",
    "wait_in_vfork": "D",
}


def between_waits(snapshot):
    """Returns how long the program was off its CPU on the way from one wait to the next."""
    return row_sum([row for row in rows_with(snapshot, "run_waits") if not set(PLACES) & set(frame_names(row))])


def check_place(program, snapshot, folded, name, state, label, unseen_ns):
    """Checks one of the places. unseen_ns is what interrupts may have taken from its clocks."""
    truth = program.value(name)
    value = folded_sum(folded, name, "run_waits", "main") * 1000
    unseen_ns += between_waits(snapshot)
    # On a slow machine much of the time is spent on the way to the wait.
    least = truth["ns"] - truth["cpu_ns"] - unseen_ns
    check(least <= value <= truth["ns"], f"{label}: {name} waits {value} ns, {least} to {truth['ns']} by its clocks")
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
    besides = truth["cpu_ns"] + row_sum(rows_with(snapshot, name)) - row_sum(rows) + unseen_ns
    check(
        truth["max_ns"] - besides <= longest <= truth["max_ns"],
        f"{label}: {name}: the longest wait {longest}, with {besides} ns besides {truth['max_ns']}",
    )
    check(
        sum(sum(row["buckets"]) for row in rows) == COUNT,
        f"{label}: {name}: its buckets add up to its count",
    )
    # 200 ms lie between 2^27 and 2^28 ns; buckets[i] begins at 2^(i+9). A program that is held up on its way
    # to the wait waits shorter.
    if truth["max_ns"] < 1 << 28 and besides < 60_000_000:
        check(
            sum(row["buckets"][18] for row in rows if len(row["buckets"]) > 18) == COUNT,
            f"{label}: {name}: in the bucket of 134 to 268 ms",
        )


def check_sums(snapshot, folded, label):
    """Checks that the rows are what is off the CPU, in both forms."""
    rows, totals, windows = snapshot["rows"], snapshot["totals"], snapshot["coverage"]["windows"]
    rest = row_sum(rows) - sum(folded.values()) * 1000
    check(0 <= rest <= 1000 * len(rows), f"{label}: the folded sum is that of {len(rows)} rows but for {rest} ns")
    # Only the totals have a wait that is younger than probe.offcpu.min_wait at the end of a window.
    rest = totals["blocked_ns"] + totals["runnable_ns"] - row_sum(rows)
    most = MIN_WAIT_NS * totals["threads"] * windows
    check(0 <= rest <= most, f"{label}: the rows are the totals but for {rest} of {most} ns")


def check_waits(label, *overrides):
    daemon = Daemon(*overrides)
    interrupts = interrupt_ns()
    program = daemon.settled(Program("prog_waits", COUNT, MS).ready()).go().done()
    program.end()
    snapshot = daemon.snapshot("--window", "2min", "-p", program.pid)
    folded = daemon.folded("--window", "2min", "-p", program.pid)
    # /proc/stat counts ticks.
    unseen_ns = interrupt_ns() - interrupts + 3 * NS_PER_S // os.sysconf("SC_CLK_TCK")
    for name, state in PLACES.items():
        check_place(program, snapshot, folded, name, state, label, unseen_ns)
    check(any(line.startswith("prog_waits;") for line in folded), f"{label}: lines begin with comm")
    check_sums(snapshot, folded, label)
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
