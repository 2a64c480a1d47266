#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits below sample_below are recorded by chance. 20 runs of a seeded mixture of waits of 5 us to
20 ms: what the rows say of short waits is an estimate whose error is what the rule promises, each
longer wait is recorded, and the sums of each thread are exact. A function that waits for 50 us has
its name and its time, and of 100,000 waits over the limit each has its stacks."""

import math
import subprocess

from harness import *
from mixture import check_spread, rows_of, sampled

RUNS, COUNT = 20, 4000
BELOW = 200_000
SHORT = ["wait_5us", "wait_20us", "wait_50us", "wait_100us"]
LONG = ["wait_500us", "wait_2ms", "wait_20ms"]


def check_short(program, snapshot, name):
    """Returns the error of a row's time in standard deviations."""
    truth = program.value(name)
    rows = rows_of(snapshot, program.pid, name)
    # Waits that a busy host made longer than the limit are recorded as they are.
    short_ns = truth["ns"] - (row_sum(rows) - sampled(rows))
    variance = short_ns * BELOW - truth["squares_us2"] * 1e6
    return (row_sum(rows) - truth["ns"]) / math.sqrt(variance)


def check_long(program, snapshot, name):
    truth = program.value(name)
    rows = rows_of(snapshot, program.pid, name)
    count = sum(row["count"] - (row.get("sampled") or 0) for row in rows)
    check(count >= truth["count"], f"{program.pid}: {name}: {count} of {truth['count']} waits")
    # A call may have a short wait beside the long one.
    check_near(row_sum(rows), truth["ns"], 0.01, f"{program.pid}: {name}: its time",
               slack=BELOW + 2 * sampled(rows))


def check_runs(programs, snapshot):
    errors = []
    for name in SHORT:
        some = [check_short(program, snapshot, name) for program in programs]
        mean = sum(some) / len(some)
        check(abs(mean) < 4 / math.sqrt(len(some)), f"{name}: {mean:.2f} sigma on average")
        errors += some
    check_spread(errors, "all lengths")
    for name in LONG:
        for program in programs:
            check_long(program, snapshot, name)


def check_sums(programs, snapshot, daemon):
    totals = snapshot["totals"]
    check(snapshot["sample_below_ns"] == BELOW, "the answer says which waits were sampled")
    off_cpu = totals["blocked_ns"] + totals["runnable_ns"]
    check_sum(sum(row["total_ns"] for row in snapshot["rows"]), off_cpu, 0.0001,
               "the rows add up to the exact total", slack=1_000_000)
    sigma = math.sqrt(totals["short_ns"] * BELOW)
    off = (totals["sampled_ns"] - totals["short_ns"]) / sigma
    check(abs(off) < 4, f"the estimate of all short waits is off by {off:.2f} sigma")
    by_thread = daemon.snapshot("--window", "5min", "-n", "0", "--by", "thread")
    threads, totals = by_thread["rows"], by_thread["totals"]
    check_sum(sum(row["total_ns"] for row in threads), totals["blocked_ns"] + totals["runnable_ns"],
              0.0001, "threads: exact sums", slack=1_000_000)
    for program in programs:
        truth = sum(program.value(name)["ns"] for name in SHORT + LONG)
        mine = sum(row["total_ns"] for row in threads if row["tid"] == program.pid)
        check(mine >= truth * 0.99, f"{program.pid}: {mine} ns in all, {truth} in its functions")


def check_text(programs, daemon):
    text = daemon.ctl("snapshot", "offcpu", "--window", "5min", "--idle", "-n", "0").out
    check("~" in text and "accuracy" in text, f"text: estimates are marked: {text}")
    folded = daemon.folded("--window", "5min", "--idle", "-p", programs[0].pid)
    snapshot = daemon.snapshot("--window", "5min", "-p", programs[0].pid)
    totals = snapshot["totals"]
    off_cpu = (totals["blocked_ns"] + totals["runnable_ns"]) / 1000
    check_sum(sum(folded.values()), off_cpu, 0.001, "folded: the sum is the exact total, us")


def check_many(daemon):
    """A function that waits for some 50 us, many times."""
    program = Program("prog_mixture", 99, 130000, 0, BELOW // 1000, "wait_50us").ready().go().done()
    truth = program.value("wait_50us")
    program.end()
    snapshot = daemon.snapshot("--window", "5min", "-n", "0", "-p", program.pid)
    rows = rows_of(snapshot, program.pid, "wait_50us")
    check_near(row_sum(rows), truth["ns"], 0.02,
               f"wait_50us, {truth['count']} times: its time")
    check("run_mixture" in frame_names(rows[0]) and "main" in frame_names(rows[0]),
          f"its stack: {frame_names(rows[0])}")
    check_nothing_lost(snapshot, "many")


def check_every():
    """Each wait over the limit has both stacks, down to the function that waits."""
    daemon = Daemon("probe.offcpu.min_wait=1us", "probe.offcpu.sample_below=2us")
    program = daemon.settled(Program("prog_mixture", 3, 100000, 0, 2, "wait_5us").ready()).go().done()
    truth = program.value("wait_5us")
    program.end()
    snapshot = daemon.snapshot("--window", "5min", "-n", "0", "-p", program.pid)
    rows = [row for row in rows_of(snapshot, program.pid, "wait_5us")
            if (row.get("kernel") or {}).get("frames")]
    count = sum(row["count"] - (row.get("sampled") or 0) for row in rows)
    check(count >= truth["count"], f"{count} of {truth['count']} waits over the limit have stacks")
    check(all("main" in frame_names(row) for row in rows), "these are whole")
    check_nothing_lost(snapshot, "every")
    check(daemon.stop() == 0, "the daemon of long waits ends with 0 at SIGTERM")


def check_wakers(daemon):
    """offwake records short waits by the same rule."""
    program = Program("prog_mixture", 7, 130000, 0, BELOW // 1000, "wait_50us").ready().go().done()
    truth = program.value("wait_50us")
    program.end()
    daemon.cut("offwake")
    snapshot = daemon.ctl_json("snapshot", "offwake", "--window", "5min", "--idle", "-n", "0",
                               "-p", str(program.pid))
    rows = rows_of(snapshot, program.pid, "wait_50us")
    if not check(rows, "offwake: wait_50us has its name"):
        return
    # What is no sleep, offwake does not have: preemptions by other programs.
    other = rows_of(daemon.snapshot("--window", "5min", "-n", "0", "-p", program.pid),
                    program.pid, "wait_50us")
    preempted = row_sum([row for row in other if row["state"] != "S"])
    check_near(row_sum(rows), truth["ns"] - preempted, 0.03, "offwake: wait_50us: its time")
    check(sampled(rows) > 0.5 * row_sum(rows), "offwake: the row says what of it is an estimate")
    mine = [row for row in rows if row["waker"]["path"][0].get("pid") == program.pid]
    check_near(row_sum(mine), row_sum(rows), 0.02, "offwake: the peer woke it")
    check(snapshot["totals"]["sampled_ns"] > 0, "offwake: the totals say so, too")
    check(any("estimates" in note for note in snapshot["notes"]), "offwake: a note says so")
    check("~" in daemon.ctl("snapshot", "offwake", "--window", "5min", "--idle").out,
          "offwake: the text marks estimates")
    check_nothing_lost(snapshot, "offwake")


def check_operations():
    """iolat records short operations by stack by the same rule. Rows by process are exact."""
    below = 50_000
    daemon = Daemon("probe.iolat.top=syscall", "probe.iolat.slow=50us",
                    f"probe.iolat.sample_below={below // 1000}us")
    load = spawn(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=400000"],
                 stderr=subprocess.DEVNULL)
    check(load.wait(HANG_SECONDS) == 0, "dd")
    daemon.cut("iolat")

    def rows_by(what):
        reply = daemon.ctl_json("snapshot", "iolat", "--window", "5min", "-n", "0", "--by", what,
                                "--layer", "syscall", "-p", str(load.pid))
        return reply, [row for row in reply["rows"] if row["io"]["op"] in ("read", "write")]

    _, exact = rows_by("process")
    reply, rows = rows_by("stack")
    check(reply["sample_below_ns"] == below, "iolat: the answer says what was sampled")
    check(not any(row.get("sampled_ns") for row in exact), "iolat: rows by process are exact")
    check(row_sum(exact, "count") >= 800_000, "iolat: all operations were counted")
    error = (row_sum(rows) - row_sum(exact)) / math.sqrt(row_sum(exact) * below)
    check(abs(error) < 4.5, f"iolat: the estimate by stack is off by {error:.2f} sigma")
    # How much that is depends on how often the load was preempted: such operations are long.
    check(0 < sampled(rows) <= row_sum(rows), "iolat: rows say what of them is an estimate")
    check(all(row.get("user") for row in rows), "iolat: they have stacks")
    check(any("estimates" in note for note in reply["notes"]), "iolat: a note says so")
    check(daemon.stop() == 0, "the daemon of iolat ends with 0 at SIGTERM")


need_live()
check_operations()
check_every()
daemon = Daemon(f"probe.offcpu.sample_below={BELOW // 1000}us", "window.length=1s")
programs = []
for run_number in range(RUNS):
    args = (run_number, COUNT, run_number % 2, BELOW // 1000)
    programs.append(Program("prog_mixture", *args).ready().go().done())
    programs[-1].end()
snapshot = daemon.snapshot("--window", "5min", "-n", "0")
check_runs(programs, snapshot)
check_sums(programs, snapshot, daemon)
check_text(programs, daemon)
check_many(daemon)
check(daemon.stop() == 0, "the daemon ends with 0 at SIGTERM")
wakers = Daemon(f"probe.offcpu.sample_below={BELOW // 1000}us", "probe.offwake.enabled=yes",
                f"probe.offwake.sample_below={BELOW // 1000}us")
check_wakers(wakers)
check(wakers.stop() == 0, "the daemon of offwake ends with 0 at SIGTERM")
finish()
