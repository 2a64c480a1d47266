#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that answers can be limited to a function, to the callers of a function, and to all but some,
in memory and from disk: of a program that waits in four known functions, a known number of times.
What is kept and what is left out is the whole, to the nanosecond. Waits that have not ended are
counted by reason and by process."""

from harness import *

COUNT, MS = 3, 200
NAMES = ("wait_in_nanosleep", "wait_in_futex", "wait_in_pipe_read", "wait_in_vfork")


def functions(row, side):
    return [frame.get("name") for frame in row.get(side, {}).get("frames", [])]


def slept(snapshot):
    """Returns the number of waits that are not for a CPU."""
    return sum(row["count"] for row in snapshot["rows"] if row["state"] in "SD")


def total(snapshot):
    return sum(row["total_ns"] for row in snapshot["rows"])


def check_answers(daemon, program, label):
    asked = ["--window", "10min", "-p", program.pid]
    whole = daemon.snapshot(*asked)
    for name in NAMES:
        only = daemon.snapshot(*asked, "--function", name)
        check(all(name in functions(row, "user") for row in only["rows"]), f"{label}: only stacks with {name}")
        check(slept(only) >= COUNT, f"{label}: {slept(only)} waits in {name}")
        others = daemon.snapshot(*asked, "--not-function", name)
        check(not any(name in functions(row, "user") for row in others["rows"]), f"{label}: none with {name}")
        check(total(only) + total(others) == total(whole),
              f"{label}: {total(only)} and {total(others)} are {total(whole)} ns")
        callers = daemon.snapshot(*asked, "--callers", name)
        check(all(functions(row, "user")[0] == name and "kernel" not in row for row in callers["rows"]),
              f"{label}: stacks begin with {name}")
        check((slept(callers), total(callers)) == (slept(only), total(only)),
              f"{label}: callers have the same waits")
    some = daemon.snapshot(*asked, "--function", "wait_in_nano*", "--function", "wait_in_vfork")
    check(slept(some) >= 2 * COUNT, f"{label}: {slept(some)} waits in one of two functions")
    nobody = daemon.ctl("snapshot", "offcpu", *asked, "--not-pid", program.pid)
    check(nobody.code == 4, f"{label}: no thread is left: {nobody}")


def check_open(daemon):
    program = Program("prog_locks", "chain", 5).ready()

    def groups(*words):
        """Returns {key: number of waits}. Idle waits have rows of their own."""
        daemon.cut()
        found = {}
        for row in daemon.ctl_json("stuck", "--idle", "-p", program.pid, *words)["rows"]:
            key = row.get("key", row["process"]["pid"])
            found[key] = found.get(key, 0) + row["open"]
        return found

    wait_until(lambda: groups("--by", "reason").get("mutex") == 4, "four waits for mutexes by reason")
    waits = len(daemon.ctl_json("stuck", "--idle", "-p", program.pid)["rows"])
    check(groups("--by", "process") == {program.pid: waits} and waits > 4, f"one row has all {waits} threads")
    check(daemon.ctl("stuck", "--fail", "-p", program.pid, "--reason", "mutex").code == 9, "--fail finds them")
    check(daemon.ctl("stuck", "--fail", "-p", program.pid, "--reason", "flock").code == 0, "and no others")


need_live()
daemon = Daemon("window.length=1s")
program = Program("prog_waits", COUNT, MS).ready().go().done()
program.end()
check_answers(daemon, program, "in memory")
check_open(daemon)
check(daemon.stop() == 0, "the daemon ends")
daemon.start()
check_answers(daemon, program, "from disk")
finish()
