# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows every option and every example of the original profile, in its layout, on a program whose
CPU time is known.
"""

import re

import harness as h
import rounds
from rounds import COMPUTE, ENDLESS, NODE, blocks

r = rounds.Rounds("profile", "oncpu")
P, O, SPINS, CPU = r.pid, r.other_pid, r.tid["spins"], r.cpu


def header(rate="49 Hertz", who="all threads", by=NODE, where="", ending=" for 2 secs."):
    return f"Sampling at {rate} of {who} by {by} stack{where}{ending}"


def spins(low, high):
    """Returns a look at the two threads that share a CPU, which expects low to high samples; other
    threads may want that CPU, too, so much that none of a few samples is left."""

    def look(o):
        n = o.sum(COMPUTE)
        h.estimate(low <= n <= high, f"{o.label}: {low} to {high} samples: {n}", 1 if low < 30 else h.off(n, low))
        for entry in (o.some(COMPUTE) if n else []):
            at = next(i for i, f in enumerate(entry.frames) if COMPUTE in f)
            o.check("spins_main" in entry.frames[at + 1], f"the leaf comes first: {entry.frames}")
            o.check(sum("spins_main" in f for f in entry.frames) == 1, "each frame is there once")

    return look


def mine(o):
    o.check(o.pids() == {P}, f"only {P}: {o.pids()}")
    spins(8, 210)(o)


def one_cpu(is_here):
    def look(o):
        if is_here:
            o.some(COMPUTE)
        else:
            o.none("spins_main")

    return look


def marked(o):
    kernel = [e for e in o.folded().entries if "_[k]" in e.line]
    o.check(kernel, "kernel frames are marked")
    o.check(any(re.search(r"[^]];-;[^;]*_\[k\]", e.line) for e in kernel), "they follow a border")
    o.check(not any(f"{COMPUTE}_[k]" in e.line for e in o.entries), "no others are marked")


def with_idle(o):
    # A host that hides the threads of init from BPF also hides the idle threads that init forked at
    # boot: those of all CPUs but the first.
    o.check(sum(e.value for e in o.entries) > 180, "at least one CPU is sampled, idle or not")


def one_stack(name, other_name):
    return lambda o: (o.some(name), o.none(other_name))


for row, words, look in (
    ("SECONDS", "2", blocks(header(), spins(5, 105))),
    ("-F", "-F 99 2", blocks(header("99 Hertz"), spins(8, 210))),
    ("-c", "-c 1000000 2", blocks(header("every 1000000 events"), spins(100, 2100))),
    ("-p", f"-F 99 -p {P} 2", blocks(header("99 Hertz", f"PID {P}"), mine)),
    ("-p list", f"-F 99 -p {P},{O} 2", blocks(header("99 Hertz", f"PID {P},{O}"), r.two_processes)),
    ("-L", f"-F 99 -L {SPINS} 2", blocks(header("99 Hertz", f"TID {SPINS}"), spins(4, 130))),
    ("-C", f"-F 99 -C {CPU} 2", blocks(header("99 Hertz", where=f" on CPU#{CPU}"), one_cpu(True))),
    ("-I", "-I -F 99 2", blocks(header("99 Hertz"), with_idle)),
    ("-U", f"-U -p {P} 2",
     blocks(header(who=f"PID {P}", by="user"), one_stack(COMPUTE, "schedule"))),
    ("-K", "-K -F 199 2", blocks(header("199 Hertz", by="kernel"), lambda o: o.none("spins_main"))),
    ("-f", "-f 2", lambda o: o.folded().some("spins_main", COMPUTE)),
    ("-a, -d", "-adf -F 499 2", marked),
    ("-d", f"-d -F 999 -p {P} 2", blocks(header("999 Hertz", f"PID {P}"), lambda o: o.some("--"))),
    ("--stack-storage-size", f"--stack-storage-size 64 -p {P} 2",
     blocks(header(who=f"PID {P}"), rounds.storage_noted)),
    ("--ebpf", "--ebpf", rounds.programs("oncpu", "on_sample")),
):
    r.add(row, words, look)
if CPU > 0:
    r.add("-C", "-F 99 -C 0 2", blocks(header("99 Hertz", where=" on CPU#0"), one_cpu(False)))
r.add("until Ctrl-C", "", blocks(header(ending=ENDLESS), lambda o: o.some(COMPUTE)), True)
r.cases.run()
r.finish((
    "-F 9 -c 9",
    "-F 0",
    "-p 1 -L 1",
    "-U -K",
    "-F 10000000 1",
    "-C 999 1",
))
