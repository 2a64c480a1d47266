# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows recordings that are queried afterwards: each filter, order and view of one range of a
program whose threads wait, are woken and compute in known functions.
"""

import os
import re

import harness as h

h.need_live()

LONG, SHORT, NESTED, DEEP = "wait_long", "wait_short", "wait_nested", "wait_in_vfork"
PARTNER, COMPUTE = "wait_for_partner", "compute_alone"
CPU = max(os.sched_getaffinity(0))
PROBES = ("offcpu", "offwake", "oncpu")

# All windows stay in memory to the end, even where a disk is too slow for such short windows.
daemon = h.Daemon("window.length=1s", "window.max_memory=512M", "probe.offwake.enabled=yes",
                  "probe.oncpu.frequency=199")
program, other = (h.Program("prog_rounds", CPU).ready() for _ in range(2))
P, O = program.pid, other.pid
frames = os.path.join(h.PROGS, "prog_frames")
frames = h.spawn([frames]) if os.path.exists(frames) else None
TIDS = {}
for line in program.lines:
    if found := re.match(r"thread (\w+) tid=(\d+)", line):
        TIDS.setdefault(found[1], []).append(int(found[2]))
SECONDS = 15 if "STACKD_UNIT" in os.environ else 4
start = daemon.cut()
h.wait_until(lambda: daemon.cut() > start + (SECONDS + 2) * h.NS_PER_S, "windows of it")
end = min(daemon.cut(probe) for probe in PROBES) // h.NS_PER_S
RANGE = ["--since", f"@{end - SECONDS}", "--until", f"@{end}", "--idle", "-n", "0"]
# Addresses are kept in memory only, with the windows that have just ended. All other data is also
# there after a process has exited, and a slow machine answers sooner once these have exited.
now = daemon.ctl("snapshot", "offcpu", "--window", "2s", "-n", "0", "-p", P, "-v").out
for one in (program, other):
    h.check(one.end() == 0, f"{one.pid} ended well")
if frames:
    h.stop_process(frames)


def answer(probe, *args):
    reply = daemon.ctl_json("snapshot", probe, *RANGE, *args)
    h.check_nothing_lost(reply, f"{probe} {args}")
    return reply


def rows(probe, *args):
    return answer(probe, *args)["rows"]


def sums(found):
    return h.row_sum(found, "count"), h.row_sum(found)


def same(found, expected, text):
    have, want = sums(found), sums(expected)
    h.check(have == want and want[0] > 0, f"{text}: {have} waits or samples and ns, {want} expected")


def at(found, name):
    return [r for r in found if name in h.frame_names(r)]


def kernel_thread(row):
    return row["process"]["kernel"]


for probe in PROBES:
    every = rows(probe)
    mine = rows(probe, "-p", P)
    ours = [r for r in every if r["process"]["pid"] == P]
    same(mine, ours, f"{probe} -p: the same as its rows among all")
    h.check({r["process"]["pid"] for r in mine} == {P}, f"{probe} -p: no other process")
    same(rows(probe, "-p", f"{P},{O}"), mine + rows(probe, "-p", O),
         f"{probe} -p: two pids give the rows of both")

    # Its threads, by number and by name, have all of its rows.
    seen = {r["tid"] for r in rows(probe, "--by", "thread", "-p", P)}
    by_tid = {
        name: rows(probe, "-t", ",".join(map(str, seen.intersection(tids))))
        for name, tids in {**TIDS, "main": [P]}.items() if seen.intersection(tids)
    }
    same(sum(by_tid.values(), []), mine, f"{probe} -t: its threads add up to the process")
    for name in {"rounds", "spins"}.intersection(by_tid):
        same(rows(probe, "-p", P, "--comm", f"{name[:3]}*"), by_tid[name], f"{probe} --comm {name}")
    places = (COMPUTE,) if probe == "oncpu" else (LONG, SHORT, PARTNER, DEEP, NESTED)
    for place in places:
        h.check(at(mine, place), f"{probe}: there are rows at {place}")
    for name, place in (("rounds", COMPUTE), ("spins", LONG), ("partner", NESTED)):
        h.check(not at(by_tid.get(name, []), place), f"{probe} -t: {name} is not at {place}")

    # Kernel threads and other threads, kernel and user stacks.
    users, kernels = rows(probe, "-u"), rows(probe, "-k")
    h.check(not any(map(kernel_thread, users)), f"{probe} -u: no kernel threads")
    h.check(all(map(kernel_thread, kernels)), f"{probe} -k: kernel threads only")
    same(users + kernels, every, f"{probe} -u and -k: together they have all rows")
    for option, kept, gone in (("-U", "user", "kernel"), ("-K", "kernel", "user")):
        halves = rows(probe, "-p", P, option)
        same(halves, mine, f"{probe} {option}: the sums are those with both stacks")
        # The row of short waits is an exception: it has a text in the stack's place.
        left = [r[gone] for r in halves if gone in r and r.get("state") != "-"]
        h.check(not left, f"{probe} {option}: no {gone} stack: {left[:2]}")
        h.check(any(kept in r for r in halves), f"{probe} {option}: there are {kept} stacks")

    # Rows grouped by a common field.
    processes = rows(probe, "--by", "process", "-p", f"{P},{O}")
    h.check({r["process"]["pid"] for r in processes} == {P, O},
            f"{probe} --by process: it has both")
    same([r for r in processes if r["process"]["pid"] == P], mine, f"{probe} --by process")
    threads = rows(probe, "--by", "thread", "-p", P)
    for name, tids in TIDS.items():
        if name in by_tid:
            same([r for r in threads if r["tid"] in tids], by_tid[name], f"{probe} --by thread: {name}")

    # The order of rows.
    orders = ["total", "count"] if probe == "oncpu" else ["total", "count", "max"]
    for order in orders:
        field = {"total": "total_ns", "count": "count", "max": "max_ns"}[order]
        values = [r.get(field) or 0 for r in rows(probe, "-p", P, "--sort", order)]
        h.check(values == sorted(values, reverse=True), f"{probe} --sort {order}: {values[:6]}")
        first = answer(probe, "-p", P, "--sort", order, "-n", "2")
        h.check([r.get(field) or 0 for r in first["rows"]] == values[:2], f"{probe} -n 2 of these")
        turned = [r.get(field) or 0 for r in rows(probe, "-p", P, "--sort", order, "--reverse")]
        h.check(sorted(turned) == turned and len(turned) == len(values), f"{probe} --reverse: {order}")

waits = [r for r in rows("offcpu", "-p", P) if r["state"] != "-"]

# States, by name and by bit, alone and together.
states = {r["state"] for r in waits}
h.check({"S", "D", "R"} <= states <= {"S", "D", "R", "I"}, f"states: {states}")
for state in sorted(states):
    same(rows("offcpu", "-p", P, "--state", state), [r for r in waits if r["state"] == state],
         f"--state {state}")
asleep = [r for r in waits if r["state"] in ("S", "D")]
for both in ("S,D", "3", "1,2"):
    same(rows("offcpu", "-p", P, "--state", both), asleep, f"--state {both}")
same(rows("offcpu", "-p", P, "--state", "preempted"), [r for r in waits if r["state"] == "R"],
     "--state preempted")

# Lengths are compared by powers of two; the answer names the one it used, here 2^23 ns. Waits on
# both sides of it are all waits.
longer, shorter = (answer("offcpu", "-p", P, *args) for args in (("-m", "8389"), ("-M", "8388")))
long, short = ([r for r in reply["rows"] if r["state"] != "-"] for reply in (longer, shorter))
h.check(h.row_sum(long + short, "count") == h.row_sum(waits, "count"),
        "-m and -M: together they have all waits")
slept = [[r for r in found if r["state"] == "S" and r["count"]] for found in (long, short)]
h.check(at(slept[0], LONG), "-m: it has the waits of 20 ms")
h.estimate(not at(slept[1], LONG), "-M: it has none of them")
h.check(at(slept[1], SHORT), "-M: it has the waits of 0.5 ms")
# A thread whose timer was already running before it left its CPU slept for less.
few, many = (h.row_sum(at(found, NESTED), "count") for found in reversed(slept))
h.estimate_most(few, 0.1 * many, f"-M: hardly any of 10 ms: {few}, and {many} by -m")
for reply in (longer, shorter):
    h.check(any("8.38" in note for note in reply["notes"]),
            f"a note names the edge: {reply['notes']}")

# The longest wait of a process, and the thread that had it.
T = TIDS["rounds"][0]
whole, longest = (
    max(rows("offcpu", "-t", T, *args), key=lambda r: r.get("max_ns") or 0)
    for args in (("--by", "process"), ())
)
h.check(whole["max_ns"] == longest["max_ns"], f"the longest: {whole['max_ns']}")
h.check(whole["max_tid"] == T and whole["max_comm"] == "rounds", f"its thread: {whole['max_tid']}")
ended = whole["max_end"]["ns"] / h.NS_PER_S
h.check(end - SECONDS - 1 <= ended <= end + 1, f"the time when it ended: {ended}")


def text(probe, *args):
    result = daemon.ctl("snapshot", probe, *RANGE, *args)
    h.check(result.code == 0, f"snapshot {probe} {args}: {result}")
    return result.out


# The forms in which frames are written.
h.check(re.search(rf"^ +{LONG}\+0x[0-9a-f]+", text("offcpu", "-p", P, "-s"), re.M), "-s: offsets")
h.check(re.search(rf"^ +0x[0-9a-f]+ +{LONG}", now, re.M), f"-v: addresses: {now[:2000]}")
line = rf"^rounds;.*;{LONG};-;.*_\[k\].* \d+$"
h.check(re.search(line, text("offcpu", "-p", P, "-f", "-d", "-a"), re.M), "-f -d -a: a border and marks")
if frames:
    mangled, plain = (text("offcpu", "-p", frames.pid, *args) for args in ((), ("--short",)))
    h.check("thrower(int)" in mangled, f"C++ in full: {mangled[:600]}")
    h.check("thrower" in plain and "thrower(" not in plain, "--short: names have no arguments")
h.finish()
