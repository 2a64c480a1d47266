#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows threads that have slept since before the daemon started: they are open waits of the right
age, charged to every window they span, in `snapshot` and in `stuck`."""

from harness import *

THREADS = 3
BEFORE_S = 3


def check_age(row, asked, text):
    """Checks that the age fits a moment between the question and now."""
    least, most = (asked - asleep) * NS_PER_S, (time.monotonic() - begun) * NS_PER_S
    check(least <= row["max_ns"] <= most,
          f"{text}: age of tid {row['max_tid']}: {row['max_ns']}, {least:.0f} to {most:.0f}")


def check_snapshot(daemon, program):
    asked = time.monotonic()
    snapshot = daemon.snapshot("--window", "3s", "-p", program.pid)
    rows = snapshot["rows"]
    check(row_sum(rows, "open") == THREADS + 1, f"snapshot: {row_sum(rows, 'open')} open waits")
    check(row_sum(rows, "count") == 0, "snapshot: no wait has ended")
    check(snapshot["totals"]["open_waits"] == THREADS + 1, "snapshot: totals count the open waits")
    longest = max(rows, key=lambda row: row["max_ns"])
    check_age(longest, asked, "snapshot")
    check("max_end" not in longest or longest["max_end"] is None, "snapshot: it has no end")
    check(all(row["state"] == "S" for row in rows), "snapshot: state S")
    # In another thread's stack the kernel leaves out its scheduler's own frames, such as
    # do_nanosleep.
    check(
        all("hrtimer_nanosleep" in frame_names(row, "kernel") for row in rows),
        "snapshot: the kernel stack says nanosleep",
    )


def check_stuck(daemon, program):
    asked = time.monotonic()
    daemon.cut()
    reply = daemon.ctl_json("stuck", "--idle", "-p", program.pid)
    rows = reply["rows"]
    check(len(rows) == THREADS + 1, f"stuck: {len(rows)} rows, one for each thread")
    tids = {row["tid"] for row in rows}
    check(tids == set(threads_of(program.pid)), f"stuck: its threads {sorted(tids)}")
    for row in rows:
        check_age({**row, "max_tid": row["tid"]}, asked, "stuck")
    text = daemon.ctl("stuck", "--idle", "-p", program.pid)
    check(text.code == 0 and "prog_sleeper" in text.out, f"stuck as text names it: {text}")
    check("S waits for a timer (nanosleep), idle, since " in text.out,
          "stuck as text says what it waits for")
    # The main thread is among them if the program's own frames are not read.
    grouped = re.search(r"prog_sleeper \(pid \d+\): (\d+) threads", text.out)
    check(grouped and int(grouped[1]) >= THREADS, f"stuck as text groups its threads: {text.out}")


# The program takes a name with Linux's PR_SET_NAME, and then waits.
NAMES_ITSELF = """
import ctypes, time
ctypes.CDLL(None).prctl(15, b"took-a-name", 0, 0, 0)
print(flush=True)
time.sleep(600)
"""


def check_name(daemon):
    process = subprocess.Popen([sys.executable, "-c", NAMES_ITSELF], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        wait_until(
            lambda: "took-a-name (pid" in daemon.ctl("stuck", "--idle", "-p", process.pid).out,
            "the name that a thread took before it slept",
        )
    finally:
        stop_process(process)


def windows_asleep(daemon):
    """Returns two windows or more that began after the program slept; a daemon that ran before has older
    ones."""
    windows = [
        window
        for window in daemon.call("io.stackd.Windows", probe="offcpu")["windows"]
        if window["start"]["ns"] > asleep_at_ns
    ]
    return windows if len(windows) >= 2 else None


def check_each_window(daemon, program):
    for window in wait_until(lambda: windows_asleep(daemon), "windows"):
        reply = daemon.call(
            "io.stackd.Snapshot",
            probe="offcpu",
            since_ns=window["start"]["ns"],
            until_ns=window["end"]["ns"],
            filter={"pids": [program.pid]},
            idle=True,
        )
        seq, totals = window["seq"], reply["totals"]
        whole = window["length_ns"] * (THREADS + 1)
        check(totals["blocked_ns"] == whole, f"window {seq}: blocked for {totals['blocked_ns']} of {whole} ns")
        check(totals["on_cpu_ns"] == 0, f"window {seq}: on a CPU {totals['on_cpu_ns']} ns")
        check(row_sum(reply["rows"]) == whole, f"window {seq}: rows hold {row_sum(reply['rows'])} of {whole} ns")
        check(
            max(row["open_ns"] for row in reply["rows"]) <= window["length_ns"] * (THREADS + 1),
            f"window {seq}: open_ns is what falls into the window",
        )


def check_idle_rule(daemon, program):
    """Idle waits are sent if the filter names a process, that of the session or of the question, and
    in any case as the request says."""
    session = "idlers"
    started = daemon.ctl("start", "offcpu", "--name", session, "-p", program.pid)
    check(started.code == 0, f"a session: {started}")

    def rows(**parameters):
        reply = daemon.call("io.stackd.Snapshot", **parameters)
        check({row["idle"] for row in reply["rows"]} <= {True}, f"only idle waits: {parameters}")
        check(reply["shown"]["rows"] + reply["idle"]["rows"] > 0, f"waits: {parameters}")
        return len(reply["rows"])

    def has_waits():
        with contextlib.suppress(VarlinkError):
            return rows(session=session) > 0
        return False

    wait_until(has_waits, "waits of the session that names a process, idle ones")
    check(rows(session=session, idle=False) == 0, "the session: none if idle is false")
    pids = {"pids": [program.pid]}
    check(rows(probe="offcpu", filter=pids) > 0, "a filter of pids: idle waits, too")
    check(rows(probe="offcpu", filter=pids, idle=False) == 0, "a filter of pids: none if false")
    text = daemon.ctl("stuck", "-p", program.pid, "--no-idle").out
    check("nobody but idle threads" in text, f"stuck --no-idle: {text}")
    check(daemon.ctl("stop", session).code == 0, "the session stops")


need_live()
begun = time.monotonic()
program = Program("prog_sleeper", THREADS).ready()
wait_in(program.pid, "nanosleep")
asleep, asleep_at_ns = time.monotonic(), time.time_ns()
subject_sleep(BEFORE_S)
daemon = Daemon("window.length=1s")
wait_until(lambda: windows_asleep(daemon), "windows")
check_snapshot(daemon, program)
check_stuck(daemon, program)
check_name(daemon)
check_each_window(daemon, program)
check_idle_rule(daemon, program)


def own_waits(daemon):
    """Returns the waits of 1 s and more of the daemon and its helper that do not count as idle. The
    process that starts parsers waits for a message, as one that waits for an answer does."""
    with open(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children",
              encoding="ascii") as f:
        pids = {daemon.process.pid, *(int(pid) for pid in f.read().split())}
    return [(row["comm"], frame_names(row)) for row in daemon.snapshot("--window", "1s")["rows"]
            if row["process"]["pid"] in pids and row["state"] == "S" and not row["idle"]
            and row["max_ns"] > NS_PER_S and not row["comm"].startswith("stackd-parse")]


# The daemon's threads wait for work as other pools do, and so they are not shown by default.
check_until(lambda: not own_waits(daemon), "the daemon's own threads count as idle", lambda: own_waits(daemon))

# The wait ends: it is one wait now, of its whole length, in the window of its end.
program.kill()
daemon.cut()
snapshot = daemon.snapshot("--window", "10s", "-p", program.pid)
check(snapshot["totals"]["open_waits"] == 0, "after its end: there is no open wait")
check(all(row["process"]["exited"] for row in snapshot["rows"]), "after its end: exited")
check(daemon.ctl("stuck", "--idle", "-p", program.pid).code in (0, 4), "stuck: it is gone")
check_nothing_lost(daemon.status(), "status")
finish()
