#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that a daemon does not depend on what its parent left: closed descriptors, open ones, ignored
and blocked signals, a umask, the environment. Its open windows are on disk before the rest of it
stops."""

import select
import sqlite3

import fault
from harness import *

# Runs the rest of the command line as a careless parent would.
PARENT = """
import os, signal, sys
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.umask(0o777)
for fd in map(int, sys.argv[1].split(",")):
    os.close(fd)
os.execv(sys.argv[2], sys.argv[2:])
"""


def windows(daemon):
    """Counts the windows on disk and the runs that ended well."""
    with contextlib.closing(sqlite3.connect(f"file:{daemon.store}?mode=ro", uri=True)) as db:
        return (db.execute("SELECT count(*) FROM windows").fetchone()[0],
                db.execute("SELECT count(*) FROM runs WHERE is_clean").fetchone()[0])


def threads(daemon, name):
    """Counts the threads of this name."""
    count = 0
    for tid in os.listdir(f"/proc/{daemon.process.pid}/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{daemon.process.pid}/task/{tid}/comm",
                                                          encoding="utf-8") as f:
            count += f.read() == name + "\n"
    return count


def check_closed(closed):
    """Starts a daemon whose parent has closed descriptors and left a pipe open, and stops it."""
    daemon = Daemon("window.length=10min", start=False)
    reader, writer = os.pipe()
    daemon.start(prefix=[sys.executable, "-c", PARENT, closed], pass_fds=[writer],
                 env={**os.environ, "UV_THREADPOOL_SIZE": "1"})
    os.close(writer)
    for fd in map(int, closed.split(",")):
        name = os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}")
        check(name == "/dev/null", f"without {closed}, descriptor {fd} is {name}")
    check(select.select([reader], [], [], 0)[0], "the parent's pipe is closed")
    os.close(reader)
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as f:
        masks = {name: int(value, 16) for name, value in re.findall(r"(Sig\w+):\s*(\w+)", f.read())}
    wanted = sum(1 << (number - 1) for number in (signal.SIGPIPE, signal.SIGXFSZ))
    unwanted = sum(1 << (number - 1) for number in (signal.SIGTERM, signal.SIGCHLD))
    check(masks["SigBlk"] == 0, "no signal is blocked")
    check(masks["SigIgn"] & (wanted | unwanted) == wanted, "SIGPIPE and SIGXFSZ are ignored, no others of the four")
    # The main thread and the pool have the name of the program.
    check(threads(daemon, "stackd") > 2, "its pool is not the size that UV_THREADPOOL_SIZE says")
    check(os.stat(daemon.store).st_mode & 0o700 == 0o600, "the database is its owner's to read and write")
    check(daemon.stop() == 0, f"SIGTERM ends it with {daemon.process.returncode}")
    found = windows(daemon)
    check(found[0] >= 1 and found[1] == 1, f"the open windows are on disk: {found}")


def check_hanging():
    """Hangs the threads that answer: the daemon does not come to its end, but its windows do."""
    daemon = Daemon("window.length=10min", start=False)
    faults = fault.Faults(daemon.dir)
    daemon.start(env=faults.environment())
    faults.hang("stackd")  # the threads of libuv's pool have the name of the program
    client = spawn([STACKCTL, "-S", daemon.socket, "snapshot", "offcpu", "--since", "-1h"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: faults.hits() > 0, "a query to hang")
    check(client.poll() is None, "a query hangs")
    daemon.process.terminate()
    wait_until(lambda: windows(daemon)[1] == 1, "the open windows on disk")
    check(windows(daemon)[0] >= 1, "the open windows are on disk")
    check(daemon.process.poll() is None, "the daemon still waits for the query")
    faults.hang("")
    check(daemon.process.wait(HANG_SECONDS) == 0, f"it ends with {daemon.process.returncode}")


need_live()
for closed in ("0,1,2", "2", "0"):
    check_closed(closed)
check_hanging()
finish()
