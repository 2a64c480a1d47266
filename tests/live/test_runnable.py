#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads that never sleep: more of them than CPUs are runnable, not blocked, for the rest of the
time; preemption and sched_yield() are waits of state R, told apart."""

from harness import *


def totals_of(daemon, tids, start, end):
    return daemon.call(
        "io.stackd.Snapshot",
        probe="offcpu",
        since_ns=start,
        until_ns=end,
        filter={"tids": tids},
        idle=True,
    )


def check_spinners(daemon, threads, cpus, args, label):
    """Spinners that share cpus CPUs, looked at from one second after the start to one before."""
    program = Program("prog_spinners", threads, 10, *args).ready()
    tids = [v["tid"] for v in program.values("spinner")]
    program.go()
    time.sleep(1)
    start = daemon.cut()
    time.sleep(4)
    end = daemon.cut()
    program.done().end()
    reply = totals_of(daemon, tids, start, end)
    totals, wall = reply["totals"], (end - start) * threads
    check(totals["threads"] == threads, f"{label}: {totals['threads']} threads")
    share = totals["runnable_ns"] / wall
    expected = 1 - cpus / threads
    check(
        expected - 0.03 <= share <= expected + 0.12,
        f"{label}: runnable {share:.1%} of their wall time, {expected:.0%} if nothing else ran",
    )
    check(totals["blocked_ns"] <= wall * 0.005, f"{label}: blocked {totals['blocked_ns']} ns")
    total = totals["on_cpu_ns"] + totals["runnable_ns"] + totals["blocked_ns"]
    check_near(total, wall, 0.01, f"{label}: the sum is their wall time")
    rows = rows_with(reply, "spin")
    check(rows, f"{label}: rows with the function they were preempted in")
    check(
        all(row["state"].startswith("R") or row["state"] == "preempted" for row in rows),
        f"{label}: states {sorted({row['state'] for row in rows})}",
    )
    check(row_sum(rows, "blocked_ns") == 0, f"{label}: these rows hold no blocked time")
    return program, tids


def check_own_clocks(daemon, program, tids, label):
    """On-CPU time over the whole life, against each thread's own CPU clock."""
    now = time.time_ns()
    for value in program.values("spun"):
        totals = totals_of(daemon, [value["tid"]], now - 20 * NS_PER_S, now)["totals"]
        check_near(
            totals["on_cpu_ns"],
            value["cpu_ns"],
            0.01,
            f"{label}: on-CPU of tid {value['tid']} against its own clock",
            slack=5_000_000,
        )


def check_yielders(daemon):
    program = Program("prog_yielders", 2, 0).ready().go().done()
    program.end()
    snapshot = daemon.snapshot("--window", "20s", "-p", program.pid)
    switches = sum(v["voluntary"] + v["involuntary"] for v in program.values("yielded"))
    # Besides the loops: starts, the join, reading stdin.
    check_near(
        snapshot["totals"]["waits"], switches, 0.0, "yielders: waits = switches", slack=30
    )
    check(switches > 20_000, f"yielders: {switches} switches")
    rows = rows_with(snapshot, "yield_turn")
    check(all(row["blocked_ns"] == 0 for row in rows), "yielders: no row is blocked time")
    main = program.values("yielded")[0]["tid"]
    totals = daemon.snapshot("--window", "20s", "-t", main)["totals"]
    check(totals["runnable_ns"] > 0.3 * 2 * NS_PER_S, "yielders: each waits for the other's turn")


need_live()
cpus = os.cpu_count()
daemon = Daemon("window.length=1s", "probe.offcpu.min_wait=1us")
program, tids = check_spinners(daemon, 4 * cpus, cpus, [], f"{4 * cpus} spinners, {cpus} CPUs")
check_own_clocks(daemon, program, tids, "spinners")
check_spinners(daemon, 2, 1, [0], "2 spinners on one CPU")
check_yielders(daemon)
check_nothing_lost(daemon.status(), "status")
finish()
