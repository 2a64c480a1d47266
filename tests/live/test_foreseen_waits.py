#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks are taken before the waits, as on a kernel without a better place. Which waits get them is
decided by the average of the thread's last ones. 20 runs of a seeded mixture of waits of 5 us to 20
ms: the estimates for short waits are right on average, with the spread that follows from the odds;
each longer wait is recorded with its length and at least its kernel stack; sums are exact. Waits of
5 and 20 us are in the mixture only: among programs that use the caches, the stack takes so long that
their timer has run out before they are off the CPU."""

import math

from harness import *
from mixture import check_spread, rows_of, sampled

RUNS, COUNT, BELOW = 20, 4000, 200_000
ONE_COUNT, ONE_NS = 60_000, 50_000
SHORT = ["wait_50us", "wait_100us"]
LONG = ["wait_500us", "wait_2ms", "wait_20ms"]
NOT_TAKEN = "[stack not taken]"
NO_ROOM = "stacks whose frames never arrived, or found no room"
# Switches in which some hosts run no BPF programs; later hooks than this one find out about them.
HIDDEN = "switch-outs of threads not known to be on a CPU"


def check_estimates(programs, snapshot):
    errors = []
    for name in SHORT:
        some = []
        for program in programs:
            truth = program.value(name)
            estimate = sampled(rows_of(snapshot, program.pid, name))
            some.append((estimate - truth["short_ns"]) / math.sqrt(truth["foreseen_us2"] * 1e6))
        mean = sum(some) / len(some)
        check(abs(mean) < 4 / math.sqrt(len(some)), f"{name}: {mean:.2f} sigma on average")
        errors += some
    check_spread(errors, "all lengths")


def check_long(program, snapshot):
    """Waits over the limit are as they were. Some of them came when they were not expected."""
    truth = [program.value(name) for name in LONG]
    mine = [row for row in snapshot["rows"]
            if row["process"]["pid"] == program.pid and row["state"]]
    late = [row for row in mine if NOT_TAKEN in frame_names(row)]
    named = [row for name in LONG for row in rows_of(snapshot, program.pid, name)]
    count = sum(row["count"] - (row.get("sampled") or 0) for row in mine)
    longest = sum(row["total_ns"] - (row.get("sampled_ns") or 0) for row in mine)
    check(count >= sum(kind["count"] for kind in truth), f"{program.pid}: {count} long waits")
    check(longest > 0.97 * sum(kind["ns"] for kind in truth), f"{program.pid}: {longest} ns in all")
    check(late and all(frame_names(row, "kernel") for row in late),
          f"{program.pid}: {len(late)} rows have no user stack, but kernel stacks")
    check(row_sum(named, "count") > 0, f"{program.pid}: long waits that were expected have both")
    check(not any(row.get("sampled_ns") for row in late), f"{program.pid}: these are exact")


def check_sums(programs):
    """The programs' estimates are brought to their exact sum. Threads that the host hides are left out: of a wait
    whose end was not seen, rows have more than totals."""
    answer = daemon.call("io.stackd.Snapshot", probe="offcpu", idle=True, top=0, window_ns=300 * NS_PER_S,
                         filter={"pids": [program.pid for program in programs]})
    totals = answer["totals"]
    check_sum(sum(row["total_ns"] for row in answer["rows"]), totals["blocked_ns"] + totals["runnable_ns"], 0,
              "the rows add up to the exact total", slack=1_000_000)
    check_lost(answer, "the mixture")


def check_lost(snapshot, text):
    """Other programs' stacks may find no room on a busy host: that loses names, but no time."""
    lost = [lost for lost in snapshot["lost"] if lost["reason"] not in (HIDDEN, NO_ROOM)]
    check(not lost, f"{text}: lost {lost_text(snapshot)}")


def check_one_length(daemon):
    """A function that waits for some 50 us, many times: a quarter of the waits have stacks. The
    thread's exact sums are the truth, as the time that stacks take is no part of a wait, but is in
    the program's log."""
    program = Program("prog_mixture", 99, ONE_COUNT, 0, BELOW // 1000, "wait_50us").ready()
    start = daemon.cut()
    program.go().done()
    log = program.value("wait_50us")
    program.end()
    sigma_ns = math.sqrt(log["foreseen_us2"] * 1e6)
    answers = {probe: one_length_answer(daemon, probe, program.pid, start)
               for probe in ("offcpu", "offwake")}
    totals, rows = answers["offcpu"]
    off = (totals["sampled_ns"] - totals["short_ns"]) / sigma_ns
    check(abs(off) < 4, f"offcpu: {totals['sampled_ns']} ns of {totals['short_ns']}: "
          f"{off:.2f} sigma")
    named = sampled(rows_of({"rows": rows}, program.pid, "wait_50us"))
    check(named > 0.98 * totals["sampled_ns"], f"offcpu: {named} ns are wait_50us")
    preempted = row_sum([row for row in rows if row["state"] != "S"], "sampled")
    check_sleeps(answers["offwake"], program.pid, totals["short_waits"] - preempted, log)


def one_length_answer(daemon, probe, pid, start):
    """Returns the totals and the rows of the thread, after some checks."""
    snapshot = daemon.call("io.stackd.Snapshot", probe=probe, idle=True, top=0,
                           filter={"tids": [pid]}, since_ns=start, until_ns=daemon.cut(probe))
    check_lost(snapshot, probe)
    return snapshot["totals"], [row for row in snapshot["rows"] if row.get("sampled_ns")]


def check_sleeps(answer, pid, count, log):
    """offwake's own dice pick other waits, and the stacks of offcpu are no part of them, so their
    number is compared. A few waits are under the limit by the times of one probe only. As each wait
    is one of 50 us, their time has limits, too."""
    mine = rows_of({"rows": answer[1]}, pid, "wait_50us")
    seen, seen_ns = row_sum(mine, "sampled"), sampled(mine)
    sigma_ns = math.sqrt(log["foreseen_us2"] * 1e6)
    off = abs(seen - count) - 0.005 * count
    check(off < 4 * sigma_ns / ONE_NS, f"offwake: {seen} waits of {count}: "
          f"{(seen - count) * ONE_NS / sigma_ns:.2f} sigma")
    check(0.99 * seen * ONE_NS < seen_ns < log["ns"] + 4 * sigma_ns,
          f"offwake: {seen_ns} ns; in the log, {log['ns']} ns")


need_live()
daemon = Daemon("probe.offcpu.hook=switch_out", f"probe.offcpu.sample_below={BELOW // 1000}us",
                "probe.offwake.enabled=yes", f"probe.offwake.sample_below={BELOW // 1000}us",
                "window.length=1s")
programs = []
for run_number in range(RUNS):
    args = (run_number, COUNT, run_number % 2, BELOW // 1000)
    programs.append(Program("prog_mixture", *args).ready().go().done())
    programs[-1].end()
snapshot = daemon.snapshot("--window", "5min", "-n", "0")
check_estimates(programs, snapshot)
for program in programs:
    check_long(program, snapshot)
check_sums(programs)
check_one_length(daemon)
check(daemon.stop() == 0, "the daemon ends with 0 at SIGTERM")
finish()
