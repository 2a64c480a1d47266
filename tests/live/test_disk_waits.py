#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that waits for the disk are in state D, under the function that synced."""

from harness import *

COUNT = 200

need_live()
daemon = Daemon("window.length=1s", "probe.offcpu.min_wait=1us", *ROOM)
program = Program("prog_fsync", os.path.join(daemon.dir, "file"), COUNT).ready().go().done()
truth = program.value("wait_in_fsync")
if truth["ns"] < COUNT * 20_000:
    skip(f"this file system does not wait at fsync ({truth['ns'] // COUNT} ns each)")
program.end()
snapshot = daemon.snapshot("--window", "10min", "-p", program.pid)
rows = rows_with(snapshot, "wait_in_fsync")
blocked = row_sum(rows, "blocked_ns")
check(blocked <= truth["ns"], f"blocked {blocked} ns, no more than fsync took: {truth['ns']}")
# A thread that was woken may have to wait for a CPU.
waited = blocked + row_sum(rows, "runnable_ns")
check(waited >= truth["ns"] * 0.3, f"waited {waited} ns, a fair share of {truth['ns']}")
disk = [row for row in rows if row["state"] == "D"]
check(disk, f"rows of state D among {sorted({row['state'] for row in rows})}")
check(row_sum(disk, "blocked_ns") >= blocked * 0.5, "most of it is in state D")

only = daemon.snapshot("--window", "10min", "-p", program.pid, "--state", "D")
check(only["rows"], "--state D finds them")
check({row["state"] for row in only["rows"]} == {"D"}, "--state D gives nothing else")
check(
    row_sum(rows_with(only, "wait_in_fsync"), "blocked_ns") == row_sum(disk, "blocked_ns"),
    "--state D gives all of them",
)
check_nothing_lost(snapshot, "snapshot")
finish()
