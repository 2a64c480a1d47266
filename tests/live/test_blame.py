#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows who is to blame for a sleep that has ended: who let go of a lock, wrote to a pipe or ended as
a child, also through threads that were asleep for most of the time themselves, but not for what one
does that waits for any of several events; and nobody where several had a lock in turn, or for what a
timer ends, whatever thread it interrupts."""

from harness import *

need_live()
daemon = Daemon("window.length=1s", "window.min_length=50ms", *ROOM)
program = Program("prog_blame").ready()
session = daemon.ctl("start", "offcpu", "-p", program.pid).out.strip()
program.go().done()
daemon.cut()


def rows_for(tid, reason):
    rows = daemon.snapshot("--window", "1h", "-t", tid, "--idle")["rows"]
    return [row for row in rows if row.get("reason") == reason]


def blamed(tid):
    """Returns who is to blame for the longest sleeps of each row of a thread."""
    rows = daemon.snapshot("--window", "1h", "-t", tid)["rows"]
    return [row["held_up_by"] for row in rows if "held_up_by" in row]


named = []
for value in program.values("blame"):
    longest = max(blamed(value["sleeper"]), key=lambda v: v["ns"], default=None)
    if not value["sure"]:
        continue
    if not check(longest and longest["ns"] >= value["ns"], f"somebody is to blame for {value}: {longest}"):
        continue
    named.append(value)
    check(longest["tid"] == value["by"], f"{value['by']} held up {value['sleeper']}: {longest}")
    check(longest["comm"] == "prog_blame", f"its name: {longest['comm']}")
check(len(named) > 5, f"{len(named)} are known for sure, more than those that wait for children")
for value in program.values("queued"):
    rows = rows_for(value["sleeper"], "mutex")
    check(rows, f"it waited: {value}")
    found = [row["held_up_by"] for row in rows if "held_up_by" in row]
    check(not value["sure"] or not found, f"no single one held up {value}: {found}")
for value in program.values("event"):
    found = blamed(value["sleeper"])
    check(all(by["tid"] == value["by"] for by in found), f"nobody else is to blame for {value}: {found}")
value = program.value("napped")
rows = rows_for(value["sleeper"], "sleep")
check(row_sum(rows, "count") > value["count"] / 2, f"{row_sum(rows, 'count')} naps of {value} are known")
check(not any("held_up_by" in row for row in rows), f"timers ended the naps: {rows}")

# The children are none of the threads that the session follows: whether one slept is not known there.
rows = daemon.ctl_json("snapshot", session, "--idle", "-n", "0")["rows"]
check(any("held_up_by" in row for row in rows), f"a session with a filter names threads: {len(rows)} rows")
rows = [row for row in rows if row.get("reason") == "child"]
check(rows and not any("held_up_by" in row for row in rows), f"and only those that it follows: {rows}")

# The screens say so.
first = named[0]
for options in (["offcpu"], ["offcpu", "--stacks"]):
    text = daemon.ctl("snapshot", *options, "--window", "1h", "-t", first["sleeper"]).out
    check(f"prog_blame({first['by']})" in text, f"stackctl snapshot {options} names it: {text}")
program.end()
finish()
