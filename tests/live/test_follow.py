#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that a stream goes on exactly where its last answer ended, also after the daemon was
restarted and windows that were cut early were joined on disk."""

from harness import *

LENGTH_S, INTERVAL_NS, ANSWERS = 5, 700_000_000, 9


def stream(daemon, answers, **parameters):
    """Returns the first answers of a stream, without their rows."""
    with Connection(daemon.socket) as connection:
        connection.send({"method": "io.stackd.Follow", "more": True, "parameters": {
            "probe": "offcpu", "interval_ns": INTERVAL_NS, "top": 1, **parameters}})
        return [connection.receive()["parameters"] for _ in range(answers)]


def used(answer):
    return tuple(answer["coverage"]["used"][key]["ns"] for key in ("start", "end"))


need_live()
daemon = Daemon(f"window.length={LENGTH_S}s")
Program("prog_sleeper", 3).ready()
answers = stream(daemon, ANSWERS)
cursor = int(answers[-1]["cursor"])
check(cursor == used(answers[-1])[1], "the cursor is the end of the last answer")
check(all(used(a)[1] == used(b)[0] for a, b in zip(answers, answers[1:])), "no gap, no overlap")


def newest():
    return daemon.call("io.stackd.Windows", probe="offcpu")["windows"][-1]["end"]["ns"]


# The windows around the cursor are on disk once a later window of full length is.
wait_until(lambda: newest() > cursor + 2 * LENGTH_S * NS_PER_S, "later windows")
end = newest()
wait_until(lambda: (daemon.status()["store"]["newest"] or {"ns": 0})["ns"] >= end, "them on disk")
daemon.stop()
daemon.start()
windows = [(w["start"]["ns"], w["end"]["ns"])
           for w in daemon.call("io.stackd.Windows", probe="offcpu", until_ns=end)["windows"]]
inside = [w for w in windows if w[0] < cursor < w[1]]
check(not inside, f"no window on disk has the cursor in it: {inside}")
first, last = used(answers[0])[0], used(answers[-1])[1]
stored = [w for w in windows if w[0] >= first and w[1] <= last]
check(len(stored) < ANSWERS, f"{len(stored)} windows on disk of {ANSWERS} answers: they were joined")
again = stream(daemon, 1, cursor=str(cursor))[0]
# A window on disk may begin a little earlier or later if the clock was adjusted meanwhile.
check(abs(used(again)[0] - cursor) < 1_000_000,
      f"the stream goes on {used(again)[0] - cursor} ns after its last answer")
check(used(again)[1] >= end, "it has what was recorded since then")
daemon.stop()
finish()
