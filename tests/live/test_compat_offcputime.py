# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows which threads and which waits offcputime selects, on a program whose waits are known;
test_compat_forms.py shows the forms in which they are printed.
"""

import harness as h
import rounds
from rounds import DEEP, EDGE, LONG, NESTED, SHORT, US, blocks, offcputime_header as header

r = rounds.Rounds("offcputime", "offcpu")
P, O, T, NESTED_T = r.pid, r.other_pid, r.thread, r.tid["nested"]


def one_process(o):
    o.check(o.pids() == {P}, f"only {P}: {o.pids()}")
    both = o.sum("rounds_main")
    h.estimate_least(both, 1.8 * US, f"{o.label}: one thread only waits, for 2 s or a little more: {both} us")
    o.near(o.sum(NESTED), both, 0.1, "so does the thread that waits below many frames")
    for entry in o.some(LONG):
        # The other stacks are of a preemption on its way back from the sleep.
        kernel = [i for i, f in enumerate(entry.frames) if "nanosleep" in f or "exit_to" in f]
        user = [i for i, f in enumerate(entry.frames) if LONG in f]
        o.check("schedule" in entry.frames[0], f"the leaf is on top: {entry.frames[0]}")
        o.check(kernel and kernel[-1] < user[0], f"the kernel's frames are above: {entry.frames}")
    o.check(o.sum(LONG) > o.sum(SHORT), f"20 ms, 0.5 ms: {o.sum(LONG)}, {o.sum(SHORT)} us")


def asleep(o):
    o.some(LONG)
    o.none("wait_for_vfork_done", rounds.COMPUTE)


def bitmask(o):
    for name in (LONG, NESTED, DEEP):
        o.some(name)
    o.none(rounds.COMPUTE)


def two_threads(o):
    o.some(LONG)
    o.none(DEEP)
    # Other entries are of a preemption on its way to the sleep.
    asleep_there = [e for e in o.some(NESTED) if any("nanosleep" in f for f in e.frames)]
    o.check(asleep_there, "its sleeps")
    for entry in asleep_there:
        n = sum(NESTED in f for f in entry.frames)
        o.check(n == 61, f"there are 61 frames of the recursion: {n}")


for row, words, look in (
    ("SECONDS", "2", blocks(header("all threads"), rounds.all_threads)),
    ("-p", f"-p {P} 2", blocks(header(f"PID {P}"), one_process)),
    ("-p list", f"-p {P},{O} 2", blocks(header(f"PID {P},{O}"), r.two_processes)),
    ("-t", f"-t {T} 2", blocks(header(f"TID {T}"), r.one_thread)),
    ("-t list, 127 frames", f"-t {T},{NESTED_T} 2",
     blocks(header(f"TID {T},{NESTED_T}"), two_threads)),
    ("-u", "-u 2", blocks(header("user threads"), rounds.user_threads)),
    ("-k", "-k 2", blocks(header("kernel threads"), rounds.kernel_threads)),
    ("-m", f"-m {EDGE} -t {T} 2", blocks(header(f"TID {T}"), r.at_least)),
    ("-M", f"-M {EDGE} -t {T} 2", blocks(header(f"TID {T}"), r.at_most)),
    ("--state 1", f"--state 1 -p {P} 2", blocks(header(f"PID {P}"), asleep)),
    ("--state 2", f"--state 2 -p {P} 2", blocks(header(f"PID {P}"), rounds.uninterruptible)),
    ("--state 3", f"--state 3 -p {P} 2", blocks(header(f"PID {P}"), bitmask)),
    ("--state D", f"--state D -p {P} 2", blocks(header(f"PID {P}"), rounds.uninterruptible)),
    ("--state 0", f"--state 0 -p {P} 2", blocks(header(f"PID {P}"), rounds.preempted)),
    ("--state preempted", f"--state preempted -p {P} 2",
     blocks(header(f"PID {P}"), rounds.preempted)),
):
    r.add(row, words, look)
# It shows only waits that have ended.
r.add("a wait that has not ended", f"-p {r.sleeper_pid} 1", rounds.nothing_ended)
r.cases.run()
r.check_sides()
r.finish((
    "-p 1 -t 1",
    "-p 1 -u",
    "-u -k",
    "-m",
    "--cgroupmap /sys/fs/bpf/x",
    "-p nobody",
    "-p 4194000 1",
))
