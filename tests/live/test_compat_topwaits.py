# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows every option of the original topwaits, in its layout, on a program whose waits are
known."""

import time

import harness as h
import rounds
from rounds import DEEP, EDGE, ENDLESS, LONG, NESTED, PARTNER, US, blocks

r = rounds.Rounds("topwaits", "offcpu")
P, T = r.pid, r.thread


def header(who, ending=" for 2 secs."):
    what = "Tracing waits (us: total, longest; end of the longest) of"
    return f"{what} {who} by process and stack{ending}"


def longest(o):
    o.check(o.pids() == {P}, f"only {P}: {o.pids()}")
    # The other stacks are of a preemption on its way back from the sleep.
    for entry in [e for e in o.some(LONG) if e.has("nanosleep")]:
        o.check(20_000 <= entry.longest, f"20 ms at least: {entry.longest}")
        h.estimate_most(entry.longest, 300_000, f"{o.label}: it is little more: {entry.longest}")
        o.check(entry.longest <= entry.value, f"it is within the total of {entry.value}")
        o.check(r.began < entry.end < time.time(), f"it ended during the recording: {entry.end}")


def record(o):
    longest(o)
    # A thread can be preempted anywhere; entries at several addresses of one function look alike.
    preempted = ("exit_to_user_mode", "irqentry_exit", "preempt_schedule", "cond_resched")
    stacks = [tuple(e.frames) for e in o.entries
              if not any(word in frame for frame in e.frames for word in preempted)]
    o.check(len(stacks) == len(set(stacks)), "there is one record for each process and stack")
    for name in (NESTED, PARTNER, DEEP):
        o.some(name)
    h.estimate_least(o.sum(NESTED), 1.8 * US, f"{o.label}: its total: {o.sum(NESTED)} us")


for row, words, look in (
    ("the record", f"-p {P} 2", blocks(header(f"PID {P}"), record)),
    ("SECONDS", "2", blocks(header("all threads"), rounds.all_threads)),
    ("-t", f"-t {T} 2", blocks(header(f"TID {T}"), r.one_thread)),
    ("-m", f"-m {EDGE} -t {T} 2", blocks(header(f"TID {T}"), r.at_least)),
    ("-M", f"-M {EDGE} -t {T} 2", blocks(header(f"TID {T}"), r.at_most)),
    ("--state 0", f"--state 0 -p {P} 2", blocks(header(f"PID {P}"), rounds.preempted)),
    ("--state 2", f"--state 2 -p {P} 2", blocks(header(f"PID {P}"), rounds.uninterruptible)),
    ("--stack-storage-size", f"--stack-storage-size 64 -t {T} 2",
     blocks(header(f"TID {T}"), rounds.storage)),
    ("--ebpf", "--ebpf", rounds.programs("offcpu", "on_switch")),
):
    r.add(row, words, look)
r.add("until Ctrl-C", f"-p {P}", blocks(header(f"PID {P}", ENDLESS), longest), True)
# It shows only waits that have ended.
r.add("a wait that has not ended", f"-p {r.sleeper_pid} 1", rounds.nothing_ended)
r.cases.run()
r.check_sides()
r.finish(("-k", "-p 1 -t 1", "--state Q 1"))
