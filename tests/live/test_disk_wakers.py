#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows who ends a wait for the disk: an interrupt, or a kernel thread that an interrupt woke, but
never the thread that was interrupted, or in which a softirq ran that it had not raised."""

import atexit
import mmap
import subprocess
import sys

from disks import Loop
from harness import *

COUNT, READS, STRANGERS = 200, 16000, 3

need_live()
daemon = Daemon("window.length=1s", "probe.offwake.enabled=yes", "probe.offwake.min_wait=0", *ROOM)

# Sends to itself on one CPU, without end: each call disables softirqs and enables them again.
STRANGER = """
import os, socket, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
open("/proc/self/comm", "w").write("stranger")
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
print("ready", flush=True)
while True:
    s.sendto(b"x", s.getsockname())
"""


def stranger():
    """The disk's own thread ends a read by a softirq, if it is on another CPU than the reader was.
    Before the kernel's thread for softirqs runs, another may run there, and when it enables softirqs,
    this one runs in it: in one read of some hundred, or of some thousand on a busy host."""
    disk, page, cpus = Loop(8), mmap.mmap(-1, 4096), os.sched_getaffinity(0)
    strangers = [subprocess.Popen([sys.executable, "-c", STRANGER, str(cpu)], stdout=subprocess.PIPE)
                 for cpu in [*cpus] * STRANGERS]
    for process in strangers:
        atexit.register(stop_process, process)
        process.stdout.readline()
    os.sched_setaffinity(0, {min(cpus)})
    file = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
    for i in range(READS):
        os.preadv(file, [page], i % 2048 * 4096)
    os.close(file)
    os.sched_setaffinity(0, cpus)
    for process in strangers:
        stop_process(process)
    daemon.cut("offwake")
    reply = daemon.ctl_json("snapshot", "offwake", "--window", "10min", "-p", os.getpid(), "--idle")
    wakers = {}
    for row in reply["rows"]:
        link = row["waker"]["path"][0]
        if row["state"] == "D":
            who = link["context"], link.get("comm")
            wakers[who] = wakers.get(who, 0) + row["count"]
    check(wakers, f"the reader waits for the disk: woken by {wakers}")
    named = [comm for context, comm in wakers if comm and context != "task"]
    check(not named, f"no thread has a part in what a softirq ends: {named}")


def fsync():
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
        # A journal's or a file system's own thread may be the direct waker: then the path goes on
        # to its waker.
        end = row["waker"]["path"][-1]["context"]
        ends[end] = ends.get(end, 0) + row["count"]
        if link["context"] == "task":
            # The waker is a block device's own thread, or the thread itself, which finds that the
            # disk is done.
            kernel = frame_names(row["waker"], "kernel")
            check("user" not in row["waker"] or link["pid"] == program.pid, f"{link}: {kernel}")
        else:
            check("user" not in row["waker"], f"{link['context']} has no user stack")
            check("comm" not in link, f"{link['context']} has no name: {link}")
    check(rows, "there are waits for the disk")
    check(ends.get("irq", 0) + ends.get("softirq", 0) > 0, f"the last wakers are {ends}")
    check_nothing_lost(snapshot, "snapshot")


run_parts(stranger, fsync)
