#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that windows with too many rows are folded without loss: sixty processes that wait alike
share rows that say so, each of them is found by its pid, the rows add up to the totals, and what was
folded is said in answers, windows and status. For a minute, they have all of their rows."""

from harness import *

COUNT, MS = 60, 300


def waits_of(reply):
    return [row for row in rows_with(reply, "short_wait") if row["state"] == "S"]


def check_rows(reply):
    rows = waits_of(reply)
    folded = [row for row in rows if row.get("folded")]
    check(row_sum(rows, "count") <= COUNT, f"{row_sum(rows, 'count')} waits of {COUNT} processes")
    check_near(row_sum(rows, "count"), COUNT, 0, "waits of all processes")
    check_near(row_sum(rows, "blocked_ns"), COUNT * MS * 1_000_000, 0.05, "their time, ns",
               COUNT * 5_000_000, noise.MOST)
    check(folded, "some are in rows of several processes")
    check(all(row["process"]["pid"] == 0 for row in folded), "which have no pid")
    check(all(row["comm"] == "prog_shortlived" for row in rows), "all rows have the comm")
    # The path of a program that ended at once may not have been read when the window was folded.
    exes = {row["process"].get("exe") for row in rows} - {None}
    check(len(exes) == 1, f"the rows have one program: {exes}")
    check(not any(row["process"]["exited"] for row in folded), "folded rows have not exited")
    alike = sum(row.get("folded") or 1 for row in rows)
    check(0 < alike <= COUNT, f"{alike} processes in rows with the wait")
    estimate_least(alike, COUNT * 0.8, f"{alike} processes are most")
    # A walk may end early in a process whose mappings are not known yet.
    whole = sum(row["count"] for row in rows if "main" in frame_names(row))
    check(whole > 0, f"{whole} waits have their stack up to main")
    estimate_least(whole, COUNT * 0.8, f"{whole} waits are most")


def check_pids(daemon, pids, start, end):
    """Each process is found by its pid, in a row of its own or in one of several processes. If it has
    other rows of its own, as those of a long wait for a CPU, the answer says that it lacks some. On a
    host with thousands of other processes a window that was joined with others does not list all of
    them, and says how many it lacks."""
    seen, shared, unlisted = 0, 0, 0
    for pid in pids:
        reply = daemon.call("io.stackd.Snapshot", probe="offcpu", since_ns=start, until_ns=end,
                            filter={"pids": [pid]}, idle=True)
        rows = waits_of(reply)
        lacks = f"some rows of process {pid} were folded with those of others"
        seen += bool(rows) or any(lacks in text for text in reply["notes"])
        unlisted = max(unlisted, (reply.get("folded") or {}).get("unlisted", 0))
        if any(row.get("folded") for row in rows):
            shared += 1
            note = f"process {pid} was folded: rows and totals are the sums of "
            if not any(text.startswith(note) for text in reply["notes"]):
                check(False, f"a note says {note}...: {reply['notes']}")
    check(COUNT - unlisted <= seen <= COUNT,
          f"{seen} processes are found by their pids, {unlisted} of the windows' are not listed")
    check(shared or unlisted >= COUNT, f"{shared} of them in rows of several processes")


def check_sums(reply):
    """All waits are in the rows, whatever was folded."""
    total = reply["totals"]["blocked_ns"] + reply["totals"]["runnable_ns"]
    check(row_sum(reply["rows"]) == total, f"the rows add up to {row_sum(reply['rows'])} of {total} ns")


def check_recent():
    """The windows of the last minute have all rows, each with its process; on disk they are folded."""
    daemon = Daemon("window.length=1min", "window.max_rows=10", "window.recent_rows=1000000",
                    "probe.offcpu.min_wait=0", *ROOM)
    start = daemon.cut()
    pids = short_lives(COUNT, 1)
    reply = daemon.call("io.stackd.Snapshot", probe="offcpu", since_ns=start, until_ns=daemon.cut(),
                        idle=True)
    check_sums(reply)
    check(not reply.get("folded"), f"nothing was folded: {reply.get('folded')}")
    missing = set(pids) - {row["process"]["pid"] for row in reply["rows"]}
    check(not missing, f"{COUNT - len(missing)} of {COUNT} processes have rows of their own")
    check(daemon.status()["folded"]["rows"] > 0, "status says what was folded for the disk")
    daemon.stop()


need_live()
check_recent()
# All of the processes are in one window.
daemon = Daemon("window.length=1min", "window.max_rows=10", "window.max_folded=5000",
                "window.recent_rows=1", "probe.offcpu.min_wait=0", *ROOM)
learn(daemon, [os.path.join(PROGS, "prog_shortlived"), str(MS)], "short_wait")
start = daemon.cut()
pids = short_lives(COUNT, MS)
end = daemon.cut()
reply = daemon.call("io.stackd.Snapshot", probe="offcpu", since_ns=start, until_ns=end,
                    filter={"comm": "prog_shortlived"}, idle=True)
check_rows(reply)
check_nothing_lost(reply, "the answer")
check_pids(daemon, pids, start, end)

everything = daemon.call("io.stackd.Snapshot", probe="offcpu", since_ns=start,
                         until_ns=end, idle=True)
check_sums(everything)
folded = everything["folded"]
check(folded["processes"] >= COUNT - 10, f"the answer says what was folded: {folded}")
check(folded["unlisted"] == 0, "all folded processes are listed")

text = daemon.ctl("snapshot", "offcpu", "--window", "1min", "--comm", "prog_shortlived", "--idle").out
check(" processes)" in text, "text has their number in place of a pid")
check("\nfolded " in text, "text has a line of what was folded")
windows = daemon.call("io.stackd.Windows", probe="offcpu")["windows"]
check(any((window.get("folded") or {}).get("rows") for window in windows),
      "the list of windows says what was folded")
check(daemon.status()["folded"]["rows"] > 0, "status says what was folded")
daemon.stop()
daemon.start()
check_pids(daemon, pids, start, end)  # from disk
daemon.stop()
finish()
