# SPDX-License-Identifier: GPL-2.0-or-later
"""An answer of a stand-in for the daemon, with names that would break a format, which the tests of
formats share."""

from double import time

T0 = 1772334610 * 10**9
HOSTILE = "=cmd|' /C calc'!A0;</script>]]>\",\n\r\t\\\x1b\u202e\u2028"
NAMES = ["db", HOSTILE, "\"", "--", "a,b;c ", "ünï", "\ud83d\ude00".encode("utf-16", "surrogatepass")
         .decode("utf-16"), "x" * 32768]


def row(name, number, **other):
    blocked, runnable = 2 * 10**9 + number, 10**9 + 7 * number
    return {
        "process": {"pid": 100 + number, "start": time(T0), "comm": name, "kernel": False,
                    "exited": False, "cgroup": "/system.slice/db.service"},
        "comm": name, "state": "SD"[number % 2], "state_bits": 1, "idle": False, "count": 3 + number,
        "total_ns": blocked + runnable, "blocked_ns": blocked, "runnable_ns": runnable,
        "throttled_ns": 5 * number, "open": 0, "open_ns": 0, "max_ns": 10**9,
        "max_end": time(T0 + 10**9), "buckets": [],
        "kernel": {"id": "a", "flags": [], "frames": [{"kind": "kernel", "name": "schedule"}]},
        "user": {"id": hex(number), "flags": [],
                 "frames": [{"kind": "native", "name": name, "module": f"/bin/{name}"},
                            {"kind": "native", "module": "/bin/db", "offset": 64},
                            {"kind": "native", "name": "main", "module": "/bin/db"}]},
        **other}


ROWS = [row(name, number) for number, name in enumerate(NAMES)]


def snapshot(rows, **other):
    span = {"start": time(T0), "end": time(T0 + 30 * 10**9)}
    rest = {"rows": 0, "threads": 0, "total_ns": 0}
    gap = {"start": time(T0), "end": time(T0 + 10**9), "reason": "stackd was killed\n"}
    return {
        "probe": "offcpu", "hook": "h", "min_wait_ns": 100000, "sample_below_ns": 10**6,
        "coverage": {"asked": span, "used": span, "asked_ns": 30 * 10**9, "covered_ns": 29 * 10**9,
                     "windows": 6, "gaps": [gap], "complete": False},
        "totals": {"processes": 1, "threads": 1, "on_cpu_ns": 1, "runnable_ns": 0, "blocked_ns": 0,
                   "waits": 3, "short_waits": 0, "short_ns": 0, "open_waits": 0},
        "lost": [{"reason": "stacks", "count": 3}], "notes": ["a note\n"],
        "shown": {"rows": len(ROWS), "total_ns": 3 * 10**9, "sampled_ns": 2 * 10**9},
        "rest": rest, "idle": rest, "rows": rows, **other}


def total(member):
    return sum(r[member] for r in ROWS)
