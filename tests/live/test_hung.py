# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that one program that hangs on a lock is the first row of what blocks, and of `stackctl stuck`, however long
the threads of a pool wait meanwhile for what is not known as idle."""

import os
import re

import harness as h

h.need_live()

POOL = """
import ctypes, fcntl, sys, threading
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
file = open(sys.argv[2], "w")
fcntl.flock(file, fcntl.LOCK_EX)
lock = threading.Lock()
lock.acquire()
for _ in range(60):
    threading.Thread(target=lock.acquire, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""
HUNG = """
import ctypes, fcntl, sys
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
fcntl.flock(open(sys.argv[2], "w"), fcntl.LOCK_EX)
"""
CONVOY = """
import ctypes, fcntl, sys, threading
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
files = [open(sys.argv[2], "w") for _ in range(31)]
fcntl.flock(files.pop(), fcntl.LOCK_EX)
for file in files:
    threading.Thread(target=fcntl.flock, args=(file, fcntl.LOCK_EX), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""

daemon = h.Daemon("window.length=1s")
name, path = f"pool-{os.getpid()}", os.path.join(daemon.dir, "lock")
pool = h.Program("python3", "-c", POOL, name, path, path="python3").ready()
hung = h.spawn(["python3", "-c", HUNG, name, path])
h.wait_in(hung.pid, "flock", "locks_lock")


def rows():
    """Returns the rows of what blocks in an overview of both, the first one first."""
    daemon.cut()
    out = h.run([h.STACKCTL, "-S", daemon.socket, "snapshot", "--comm", name + "*"]).out
    found = re.search(r"^ *blocked .*\n((?:.+\n)+?)(?= *on CPU|runnable)", out, re.M)
    return found[1].splitlines() if found else []


def is_first():
    found = rows()
    return found and f"({hung.pid})" in found[0] and "flock" in found[0] and found


found = h.wait_until(is_first, "the one that hangs in the first row")
h.check(any(" sem" in line and f"({pool.pid})" in line for line in found), f"the pool is there, too: {found}")


def is_first_stuck():
    """True if the first one that waits is the one behind the lock: the threads of the pool wait for longer."""
    daemon.cut()
    shown = daemon.ctl_json("stuck", "--comm", name, "-n", "1")
    return [row["process"]["pid"] for row in shown["rows"]] == [hung.pid] and shown["rest"]["rows"] >= 60


h.wait_until(is_first_stuck, "the one that hangs in the first row of stuck")
# Neither does it disappear behind many others that wait for another lock, together for longer.
convoy = h.Program("python3", "-c", CONVOY, name + "c", path + "2", path="python3").ready()
h.wait_until(lambda: any(f"({hung.pid})" in row for row in rows()[:2]) and f"({convoy.pid})" in rows()[0],
             "the one that hangs behind those with more time, and before the pool")
daemon.stop()
h.finish()
