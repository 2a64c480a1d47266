#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A process in a container, that is in a mount namespace with a root of its own, in which its
binary is gone by the time it is asked for: its functions have names all the same."""

from harness import *

# $1: a directory that becomes the root, in a file system that nobody else sees.
CONTAINER = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir -p "$1/lib" "$1/lib64" "$1/usr" "$1/proc" "$1/old"
mount --bind /usr "$1/usr"
mount --rbind /lib "$1/lib" 2>/dev/null || true
mount --rbind /lib64 "$1/lib64" 2>/dev/null || true
mount -t proc proc "$1/proc"
cp "$2" "$1/contained_waits"
cd "$1"
pivot_root . old
umount -l /old
exec /contained_waits "$3" "$4"
"""

need_live()
need_tool("unshare")
daemon = Daemon("window.length=1s")
root = make_temp_dir()
argv = ["--mount", "--pid", "--fork", "sh", "-c", CONTAINER, "sh", root]
argv += [os.path.join(PROGS, "prog_waits"), "3", "200"]
program = Program("unshare", *argv, path=need_tool("unshare")).ready()
(pid,) = children_of(program.pid)[:1]
program.go().done()
folded = None
daemon.cut()
rows = rows_with(daemon.snapshot("--window", "30s", "-p", pid), "wait_in_pipe_read")
check(rows, "contained: its functions are named")
for row in rows[:1]:
    check(frame_names(row)[1:3] == ["run_waits", "main"], f"whole stack {frame_names(row)}")
    exe = row["process"].get("exe")
    check(exe and exe.endswith("contained_waits"), f"its exe is {exe}")
program.end()
finish()
