#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows who ends a wait for the disk: an interrupt, or a kernel thread that an interrupt woke, but
never the thread that was interrupted."""

from harness import *

COUNT = 200

need_live()
daemon = Daemon("window.length=1s", "probe.offwake.enabled=yes", "probe.offwake.min_wait=0", *ROOM)
program = Program("prog_fsync", os.path.join(daemon.dir, "file"), COUNT).ready().go().done()
truth = program.value("wait_in_fsync")
if truth["ns"] < COUNT * 20_000:
    skip(f"this file system does not wait at fsync ({truth['ns'] // COUNT} ns each)")
program.end()
daemon.cut("offwake")
snapshot = daemon.ctl_json("snapshot", "offwake", "--window", "10min", "-p", program.pid, "--idle")
rows = [row for row in rows_with(snapshot, "wait_in_fsync") if row["state"] == "D"]
ends = {}
for row in rows:
    link = row["waker"]["path"][0]
    # A journal's or a file system's own thread may be the direct waker: then the path goes on to
    # its waker.
    end = row["waker"]["path"][-1]["context"]
    ends[end] = ends.get(end, 0) + row["count"]
    if link["context"] == "task":
        # The waker is a block device's own thread, or the thread itself, which finds that the disk
        # is done.
        kernel = frame_names(row["waker"], "kernel")
        check("user" not in row["waker"] or link["pid"] == program.pid, f"{link}: {kernel}")
    else:
        check("user" not in row["waker"], f"{link['context']} has no user stack")
        check("comm" not in link, f"{link['context']} has no name: {link}")
check(rows, "there are waits for the disk")
check(ends.get("irq", 0) + ends.get("softirq", 0) > 0, f"the last wakers are {ends}")
check_nothing_lost(snapshot, "snapshot")
finish()
