#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that waits which have not ended are all in `stuck` when they were folded: how many they are,
how long the oldest one lasts, and what they wait for."""

from harness import *

COUNT, ROWS = 60, 10
# So many like processes of those with the most folded time keep rows of their own (fold_own.c).
LIKES = 4


def waiting(text):
    """Returns the number of threads that wait, as text says it."""
    found = re.search(r"^waiting +([\d,]+) threads?$", text, re.M)
    return int(found[1].replace(",", "")) if found else None


def folded_of(rows):
    """Returns the rows that were folded. One may be of a single process, that of nobody else's like."""
    return [row for row in rows if row.get("folded")]


def has_stack(row):
    """True if the stack of a child, or of the parent, was read."""
    return bool({"read", "wait_for_end"} & set(frame_names(row)))


def check_rows(rows, least_ns):
    """At most ROWS threads are whole, and LIKES processes have rows of their own; the others are in
    rows of several processes, which have no pid. The parent waits, too."""
    folded = folded_of(rows)
    check(len(rows) < COUNT // 2, f"{len(rows)} rows for {COUNT} processes")
    check(row_sum(rows, "open") == COUNT + 1, f"{row_sum(rows, 'open')} waits of them all")
    count = row_sum(folded, "open")
    check(count >= COUNT + 1 - ROWS - LIKES, f"{count} of them are folded")
    check(all(row["process"]["pid"] == 0 for row in folded), "folded rows have no pid")
    check(all(has_stack(row) for row in rows), "they have the stack of the wait")
    check(all(row["max_ns"] >= least_ns for row in rows), f"all have waited for {least_ns} ns")


need_live()
daemon = Daemon("window.length=1s", f"window.max_rows={ROWS}", "window.max_folded=5000",
                "window.recent_rows=1")
# The name is that of this run only: others may run on this host.
name = f"crowd-{os.getpid()}"
program = Program(name, COUNT, path=shutil.copy(os.path.join(PROGS, "prog_crowd"),
                                                os.path.join(daemon.dir, name))).ready().go().done()
for pid in [program.pid, *children_of(program.pid)]:
    wait_in(pid, "pipe_read")
subject_sleep(1)
args = ("stuck", "--idle", "--comm", name)


def rows_with_stacks():
    """Returns the rows once their stacks have been read, which takes more than one cut on a host
    where many threads wait."""
    daemon.cut()
    rows = daemon.ctl_json(*args)["rows"]
    return rows if all(has_stack(row) for row in rows) else None


check_rows(wait_until(rows_with_stacks, "their stacks"), NS_PER_S)
text = daemon.ctl(*args).out
check(waiting(text) == COUNT + 1, f"text has the number of threads: {waiting(text)}")
check(re.search(rf"^{name} \(\d+ processes\) ", text, re.M), "and of processes")
check("S waits for data from a pipe" in text, "and what they wait for")

# The parent ends, and with it all of its children.
program.end()


def is_over():
    daemon.cut()
    return not daemon.ctl_json(*args)["rows"]


wait_until(is_over, "the end of all that waited")
check(True, "nobody waits any more")
daemon.stop()
finish()
