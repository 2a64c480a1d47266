# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows offcputime in each of the forms that it prints, on a program whose waits are known."""

import re

import rounds
from compat import TIME
from rounds import ENDLESS, LONG, US, blocks, offcputime_header as header

r = rounds.Rounds("offcputime", "offcpu")
P, T = r.pid, r.thread


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
    body = o.result.out.split("\n", 1)[1]
    times = TIME.findall(body)
    o.check(2 <= len(times) <= 5, f"there is a time each second: {times}")
    o.blocks(header(f"TID {T}", " for 4 secs."), is_sorted=False)
    whole = sum(e.value for e in o.entries)
    o.check(3.6 * US < whole < 6 * US, f"each wait counts once, in 4 s or a little more: {whole} us")


for row, words, look in (
    ("-U", f"-U -p {P} 2", blocks(header(f"PID {P}", by="user stack"), user_stacks)),
    ("-K", f"-K -p {P} 2", blocks(header(f"PID {P}", by="kernel stack"), kernel_stacks)),
    ("-f", "-f 2", folded),
    ("-d", f"-dp {P} 2", blocks(header(f"PID {P}"), border)),
    ("-d folded", f"-df -t {T} 2", folded_border),
    ("-v, -s", f"-vst {T} 2", blocks(header(f"TID {T}"), addresses_and_offsets)),
    ("-i and -T", f"-Ti 1 -t {T} 4", intervals),
    ("--stack-storage-size", f"--stack-storage-size 4096 -t {T} 2",
     blocks(header(f"TID {T}"), rounds.storage)),
    ("--ebpf", "--ebpf", rounds.programs("offcpu", "on_switch")),
):
    r.add(row, words, look)
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
