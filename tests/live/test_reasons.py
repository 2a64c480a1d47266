#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that the daemon names the reason of each wait: of a program that waits in four known ways,
by stack, with kernel stacks left out, by reason, and filtered by reason, in memory and from disk; and of
a thread that waits for a file lock. Rows that have several stacks or lack one have the program's own
function."""

import fcntl

from harness import *

COUNT, MS = 3, 200
# The function, the state of its threads, and what they wait for.
REASONS = {
    "wait_in_nanosleep": ("S", "sleep"),
    "wait_in_futex": ("S", "futex"),
    "wait_in_pipe_read": ("S", "pipe-read"),
    "wait_in_vfork": ("D", "vfork"),
}


def check_stacks(snapshot, label):
    """Checks the reason of the waits in each function; preemptions are waits for a CPU."""
    for name, (state, reason) in REASONS.items():
        rows = rows_with(snapshot, name)
        slept = {row["reason"] for row in rows if row["state"] == state}
        check(slept == {reason}, f"{label}: {name} waits for {slept}")
        ready = {row["reason"] for row in rows if row["state"] == "R"}
        check(ready <= {"cpu", "throttled"}, f"{label}: {name}, preempted: {ready}")


def check_answers(daemon, program, label):
    whole = daemon.snapshot("--window", "10min", "-p", program.pid)
    check_stacks(whole, label)
    check(all("reason" not in row for row in whole["rows"] if row["state"] == "-"),
          f"{label}: short waits have no reason")

    user_only = daemon.snapshot("--window", "10min", "-p", program.pid, "-U")
    check(not any(row.get("kernel") for row in user_only["rows"] if row["state"] != "-"),
          f"{label}: -U leaves kernel stacks out")
    check_stacks(user_only, f"{label}, -U")

    by_reason = daemon.snapshot("--window", "10min", "-p", program.pid, "--by", "reason")
    check(row_sum(by_reason["rows"]) == row_sum(whole["rows"]), f"{label}: the sum by reason")
    rows = [row for row in by_reason["rows"] if row["state"] != "-"]
    check(all(row["reason"] == row["key"] for row in rows), f"{label}: the key is the reason")
    for _, reason in REASONS.values():
        sums = [(row_sum(some), row_sum(some, "count"))
                for some in ([row for row in rows if row["key"] == reason],
                             [row for row in whole["rows"] if row.get("reason") == reason])]
        check(sums[0] == sums[1] and sums[0][1] >= COUNT, f"{label}: {reason} by reason: {sums}")

    some = daemon.snapshot("--window", "10min", "-p", program.pid, "--reason", "pipe-*,vfork")
    check({row["reason"] for row in some["rows"]} == {"pipe-read", "vfork"},
          f"{label}: two reasons were asked for")
    wanted = [row for row in whole["rows"] if row.get("reason") in ("pipe-read", "vfork")]
    check(row_sum(some["rows"]) == row_sum(wanted), f"{label}: the sum of two reasons")
    check(some["totals"]["blocked_ns"] == whole["totals"]["blocked_ns"],
          f"{label}: the totals are of all waits")

    by_process = daemon.snapshot("--window", "10min", "-p", program.pid, "--by", "process",
                                 "--reason", "sleep")
    check({row["reason"] for row in by_process["rows"]} == {"sleep"},
          f"{label}: one reason, by process")


def check_functions(daemon, program, label):
    """Rows of several stacks, and rows without user stacks, have the program's own function, too."""
    for args in (["-K"], ["-U"], *(["--by", by] for by in ("process", "comm", "unit", "reason", "function"))):
        rows = daemon.snapshot("--window", "10min", "-p", program.pid, "--reason", "vfork", *args)["rows"]
        have = {(row.get("function"), row.get("reason")) for row in rows}
        check(have == {("wait_in_vfork", "vfork")}, f"{label}: {args}: {have}")


def check_lock(daemon):
    """Two threads wait, one for a file lock. Which one, stuck says in one word."""
    path = os.path.join(daemon.dir, "lock")
    script = "import fcntl, sys\nfcntl.flock(open(sys.argv[1], 'w'), fcntl.LOCK_EX)"
    with open(path, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiter = spawn([sys.executable, "-c", script, path])

        def waits():
            with open("/proc/locks", encoding="utf-8") as locks:
                return any("->" in line and f" {waiter.pid} " in line for line in locks)

        wait_until(waits, "the program to wait for the lock")
        daemon.cut()
        rows = daemon.ctl_json("stuck", "--reason", "flock")["rows"]
        check([row for row in rows if row["process"]["pid"] == waiter.pid], "stuck --reason flock")
        check({row["reason"] for row in rows} == {"flock"}, "stuck has no other reason")
        rows = daemon.ctl_json("stuck", "--reason", "pipe-read,fcntl", "-p", waiter.pid)["rows"]
        check(rows == [], f"stuck leaves out the others: {rows}")
        text = daemon.ctl("stuck", "-U", "-p", waiter.pid).out
        check("S waits for a file lock (flock)" in text, f"stuck as text: {text}")
    check(waiter.wait(HANG_SECONDS) == 0, "the program got the lock")


def check_errors(daemon):
    refused = daemon.ctl("stuck", "--reason", "flok")
    check(refused.code == 1 and "did you mean flock?" in refused.err, f"a misspelt word: {refused}")
    refused = daemon.ctl("snapshot", "oncpu", "--reason", "flock")
    check(refused.code == 1 and "see offcpu and offwake" in refused.err, f"of oncpu: {refused}")
    refused = daemon.ctl("snapshot", "oncpu", "--by", "reason")
    check(refused.code == 1 and "see offcpu and offwake" in refused.err, f"by, of oncpu: {refused}")


need_live()
daemon = Daemon("window.length=1s")
program = Program("prog_waits", COUNT, MS).ready().go().done()
program.end()
check_answers(daemon, program, "in memory")
check_functions(daemon, program, "in memory")
check_lock(daemon)
check_errors(daemon)
recorded = daemon.ctl_json("record", "offcpu", "--duration", "2s", "--reason", "sleep")
check(recorded["rows"], "a recording has waits for a timer")
check({row["reason"] for row in recorded["rows"]} == {"sleep"}, "and shows no others")
check(daemon.stop() == 0, "the daemon ends")
daemon.start()
check_answers(daemon, program, "from disk")
check_functions(daemon, program, "from disk")
finish()
