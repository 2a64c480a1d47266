#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Who ends a wait for the disk: an interrupt, a timer or a kernel thread, never who was interrupted."""

from harness import *

COUNT = 200

need_live()
daemon = Daemon("window.length=1s", "probe.offwake.enabled=yes", "probe.offwake.min_wait=0")
program = Program("prog_fsync", os.path.join(daemon.dir, "file"), COUNT).ready().go().done()
truth = program.value("wait_in_fsync")
if truth["ns"] < COUNT * 20_000:
    skip(f"this file system does not wait at fsync ({truth['ns'] // COUNT} ns each)")
program.end()
snapshot = daemon.ctl_json("snapshot", "offwake", "--window", "30s", "-p", program.pid, "--idle")
rows = [row for row in rows_with(snapshot, "wait_in_fsync") if row["state"] == "D"]
contexts = {}
for row in rows:
    link = row["waker"]["path"][0]
    contexts[link["context"]] = contexts.get(link["context"], 0) + row["count"]
    if link["context"] == "task":
        # A block device's own thread, or the thread itself that finds the disk done.
        kernel = frame_names(row["waker"], "kernel")
        check("user" not in row["waker"] or link["pid"] == program.pid, f"{link}: {kernel}")
    else:
        check("user" not in row["waker"], f"{link['context']} has no user stack")
        check("comm" not in link, f"{link['context']} has no name: {link}")
check(rows, "waits for the disk")
check(contexts.get("irq", 0) + contexts.get("softirq", 0) > 0, f"woken by {contexts}")
check_nothing_lost(snapshot, "snapshot")
finish()
