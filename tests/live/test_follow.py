#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that a stream goes on exactly where its last answer ended, and after the daemon was restarted and
windows that were cut early were joined on disk, with the one of these windows in which it ended."""

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
first, last = used(answers[0])[0], used(answers[-1])[1]
stored = [w for w in windows if w[0] >= first and w[1] <= last]
check(len(stored) < ANSWERS, f"{len(stored)} windows on disk of {ANSWERS} answers: they were joined")
again = stream(daemon, 1, cursor=str(cursor))[0]
# The window on disk that has the cursor in it is shown whole: no part is missing, and no other is twice.
# It may begin a little earlier or later if the clock was adjusted meanwhile.
begin = min([w[0] for w in windows if w[1] > cursor + 1_000_000])
check(begin < cursor + 1_000_000, f"windows on disk have the time from the cursor on: {begin - cursor} ns after it")
check(used(again)[0] == begin, f"the stream goes on {used(again)[0] - begin} ns after that window began")
check(used(again)[1] >= end, "it has what was recorded since then")
daemon.stop()
finish()
