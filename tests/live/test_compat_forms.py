# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows offcputime in each of the forms that it prints, on a program whose waits are known."""

import re

import harness as h
import rounds
from compat import TIME
from rounds import ENDLESS, LONG, US, blocks, offcputime_header as header

r = rounds.Rounds("offcputime", "offcpu")
P, T = r.pid, r.thread
INTERVALS = 3


def user_stacks(o):
    o.some(LONG)
    o.none("schedule", "nanosleep")


def kernel_stacks(o):
    o.some("schedule", "nanosleep")
    o.none(LONG, "rounds_main")


def folded(o):
    for entry in o.folded().some(LONG):
        order = [entry.line.find(w) for w in ("rounds;", "rounds_main;", f"{LONG};", "schedule")]
        o.check(order == sorted(order) and order[0] == 0, f"root first, user, kernel: {entry.line}")


def folded_border(o):
    for entry in o.folded().some(LONG):
        o.check(re.search(f";{LONG};-;[^;]", entry.line), f"there is a border: {entry.line}")
    for entry in o.entries:
        o.check(entry.line.count(";-;") <= 1, "there is at most one")


def border(o):
    for entry in o.some(LONG):
        at = [i for i, f in enumerate(entry.frames) if f == "--"]
        o.check(len(at) == 1 and LONG in entry.frames[at[0] + 1],
                f"there is a border: {entry.frames}")


def addresses_and_offsets(o):
    for entry in o.some(LONG):
        good = all(re.match("(0x[0-9a-f]+|-) +[^ ]", f) for f in entry.frames)
        o.check(good, f"addresses: {entry.frames}")
        o.check(all("+0x" in f for f in entry.frames), f"offsets: {entry.frames}")


def intervals(o):
    """It is interrupted when three intervals were printed. A busy host may make them longer."""
    body = o.result.out.split("\n", 1)[1]
    times = [int(text[:2]) * 3600 + int(text[3:5]) * 60 + int(text[6:]) for text in TIME.findall(body)]
    o.check(len(times) >= INTERVALS, f"there is a time for each interval: {times}")
    o.blocks(header(f"TID {T}", ENDLESS), is_sorted=False)
    whole = sum(e.value for e in o.entries)
    least, most = max((times[-1] - times[0]) % 86400 - 1, 0) * US, o.result.took * US
    o.check(whole < 1.02 * most, f"each wait counts once: {whole} us, {most:.0f} at most")
    h.estimate_least(whole, 0.9 * least, f"{o.label}: nearly all of the time: {whole} us of {least}")


for row, words, look in (
    ("-U", f"-U -p {P} 2", blocks(header(f"PID {P}", by="user stack"), user_stacks)),
    ("-K", f"-K -p {P} 2", blocks(header(f"PID {P}", by="kernel stack"), kernel_stacks)),
    ("-f", "-f 2", folded),
    ("-d", f"-dp {P} 2", blocks(header(f"PID {P}"), border)),
    ("-d folded", f"-df -t {T} 2", folded_border),
    ("-v, -s", f"-vst {T} 2", blocks(header(f"TID {T}"), addresses_and_offsets)),
    ("--stack-storage-size", f"--stack-storage-size 4096 -t {T} 2",
     blocks(header(f"TID {T}"), rounds.storage)),
    ("--ebpf", "--ebpf", rounds.programs("offcpu", "on_switch")),
):
    r.add(row, words, look)
r.add("-i and -T", f"-Ti 1 -t {T}", intervals, INTERVALS)
r.add("until Ctrl-C", "", blocks(header("all threads", ENDLESS), rounds.all_threads), True)
r.add("until Ctrl-C", f"-m 1000 -t {T}",
      blocks(header(f"TID {T}", ENDLESS), lambda o: o.some(LONG)), True)
r.cases.run()
r.finish((
    "-U -K",
    "0",
    "5s",
    "1 2",
    "-x",
    "--stack-storage-size none",
    "-i 0",
))
