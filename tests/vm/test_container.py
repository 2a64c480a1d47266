#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon names functions of binaries that it cannot open by their path: a binary that was deleted
and replaced by another one, and a binary in a container (a mount namespace with its own root)."""

from container import Contained
from harness import *


def check_rows(daemon, pid, text):
    daemon.cut()
    snapshot = daemon.snapshot("--window", "30s", "-p", pid)
    rows = [r for r in rows_with(snapshot, "wait_in_pipe_read") if r["state"] == "S"]
    if not check(rows, f"{text}: its functions are named"):
        return
    names = frame_names(rows[0])
    check(names[1:3] == ["run_waits", "main"], f"{text}: whole stack {names}")
    kernel = frame_names(rows[0], "kernel")
    check(any("pipe_read" in name for name in kernel), f"{text}: with the kernel's: {kernel}")
    exe = rows[0]["process"].get("exe")
    check(exe and text in exe, f"{text}: its exe is {exe}")


def check_deleted(daemon):
    path = os.path.join(make_temp_dir(), "deleted_waits")
    shutil.copy(os.path.join(PROGS, "prog_waits"), path)
    program = Program("deleted_waits", 3, 200, path=path).ready()
    os.unlink(path)
    shutil.copy(os.path.join(PROGS, "prog_churn"), path)
    program.go().done()
    program.end()
    check_rows(daemon, program.pid, "deleted")


def check_contained(daemon):
    program = Contained("prog_waits", 3, 200).ready()
    program.go().done()
    program.end()
    check_rows(daemon, program.pid_there, "contained")


need_live()
daemon = Daemon("window.length=1s")
check_deleted(daemon)
check_contained(daemon)
check_nothing_lost(daemon.status(), "status")
finish()
