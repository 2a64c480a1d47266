#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that the past keeps all of its detail when memory is short: the oldest windows leave memory
before their time, which status says, and are read from disk, where they are as they were recorded. So a
range has the same answer while stackd runs and after a restart."""

from harness import *

KEEP, LIVES, WAIT_MS, RATE = 600, 60, 50, 250
MAX_ROWS = 200


def evicted(daemon):
    limits = {limit["name"]: limit for limit in daemon.status()["limits"]}
    return limits["window.max_memory"]["hits"]


def names(row, side):
    return tuple(frame.get("name") or "?" for frame in (row.get(side) or {}).get("frames", []))


def sums(rows):
    """Returns the waits and the time of each process and thread name."""
    found = {}
    for row in rows:
        key = (row["process"]["pid"], row["comm"])
        count, total = found.get(key, (0, 0))
        found[key] = (count + row["count"], total + row["total_ns"])
    return sorted(found.items())


def told(reply, with_stacks):
    """Returns what an answer says, apart from addresses, which only memory has. Waits of any process
    may end between two answers, and then have another stack. The rows of short waits for a CPU lose
    their stacks where a window is folded."""
    rows = sums(reply["rows"])
    if with_stacks:
        rows = sorted(
            (row["process"]["pid"], row["comm"], row["count"], row["total_ns"],
             row.get("folded") or 0, names(row, "kernel"), names(row, "user"))
            for row in reply["rows"] if row["state"][0] != "R"
        )
    return {"totals": reply["totals"], "folded": reply.get("folded"), "lost": reply["lost"],
            "coverage": reply["coverage"], "rows": rows}


def answers(daemon, pids, start, end):
    """Asks about all processes, those with the program's name, and some by their pids."""
    filters = {"all": {}, "comm": {"comm": "prog_shortlived"}}
    filters.update({f"pid {i}": {"pids": [pid]} for i, pid in enumerate(pids[::6])})
    found = {}
    for name, wanted in filters.items():
        reply = daemon.call("io.stackd.Snapshot", probe="offcpu", since_ns=start, until_ns=end,
                            filter=wanted, idle=True)
        found[name] = told(reply, name != "all")
    return found


def check_equal(before, after):
    for name, wanted in before.items():
        got = after[name]
        if got == wanted:
            check(True, f"{name}: the same")
            continue
        parts = [key for key in wanted if wanted[key] != got[key]]
        check(False, f"{name}: other {' and '.join(parts)}")


need_live()
daemon = Daemon("window.length=1s", f"window.keep={KEEP}s", "window.max_memory=5M",
                f"window.max_rows={MAX_ROWS}", f"window.max_folded={MAX_ROWS}",
                "window.recent_rows=1",
                "probe.offcpu.min_wait=0")
start = daemon.cut()
pids = short_lives(LIVES, WAIT_MS)
end = daemon.cut()
fresh = answers(daemon, pids, start, end)
storm = spawn([os.path.join(PROGS, "prog_storm"), str(RATE), str(RATE * KEEP), "/bin/true"],
              stdout=subprocess.DEVNULL)
wait_until(lambda: daemon.status()["oldest"]["ns"] >= end, "the windows to leave memory")
stop_process(storm)
check(evicted(daemon) > 0, "for the memory that they take")
before = answers(daemon, pids, start, end)
check(before["comm"]["totals"]["processes"] >= LIVES, f"{before['comm']['totals']['processes']} processes")
check(before["comm"]["rows"], "with rows")
# On a busy host the cut folds processes, too. Where the disk joins windows, such a process may have
# rows of its own in one of them, and then is not looked for among the folded ones.
alone = [name for name in set(fresh) - {"all"} if not any(row[4] for row in fresh[name]["rows"])]
check(len(alone) > 1 or fresh["comm"]["folded"], f"rows of one process each: {alone}")
for name in alone:
    check(fresh[name]["rows"] == before[name]["rows"], f"{name}: the same rows as at first")
daemon.stop()
daemon.start()
check_equal(before, answers(daemon, pids, start, end))
daemon.stop()
finish()
