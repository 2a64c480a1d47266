# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows every option and every example of the original offwaketime, in its layout, on a program
whose waits and wakers are known.
"""

import re

import harness as h
import rounds
from rounds import DEEP, EDGE, ENDLESS, LONG, NODE, PARTNER, US, pairs

r = rounds.Rounds("offwaketime", "offwake")
P, O, T, PARTNER_T = r.pid, r.other_pid, r.thread, r.tid["partner"]


def header(by=NODE, ending=" for 2 secs."):
    return f"Tracing blocked time (us) by {by} off-CPU and waker stack{ending}"


def partner(o):
    """Checks the thread that waits for the pipe: the writer wakes it, and its waits take 20 ms
    each."""
    o.check(o.pids() == {P}, f"only {P}: {o.pids()}")
    waits = o.some(PARTNER)
    good = [e for e in waits if e.waker == "rounds" and any("wake_partner" in f for f in e.above)]
    blocked = o.sum(PARTNER)
    o.near(sum(e.value for e in good), blocked, 0.02, "all its waits have that waker")
    h.estimate_least(blocked, 1.5 * US, f"{o.label}: blocked for nearly all of 2 s: {blocked} us")
    whole = [e for e in good if any("rounds_main" in f for f in e.above)]
    o.near(sum(e.value for e in whole), blocked, 0.02, "its waker's stack reaches the root")
    for entry in whole:
        at = [i for i, f in enumerate(entry.above) if "wake_partner" in f]
        o.check("rounds_main" in entry.above[at[0] - 1], f"the root comes first: {entry.above}")
        o.check("try_to_wake_up" in entry.above[-1], f"the leaf comes last: {entry.above}")
        o.check(at[0] < len(entry.above) - 2, f"its kernel frames are below: {entry.above}")
        o.check("schedule" in entry.frames[0], f"the target's leaf comes first: {entry.frames}")


def by_timer(o):
    waits = o.some(LONG)
    timer = sum(e.value for e in waits if e.waker == "timer")
    # Some hosts hide threads of init from BPF, and so the interrupts that arrive while they run.
    o.near(timer, sum(e.value for e in waits), 0.1, "a sleep's waker is a timer")


def pair_folded(o):
    target = r"partner;.*;wait_for_partner;.*schedule[^;]*"
    pair = f"{target};--;try_to_wake_up;.*wake_partner;.*;rounds$"
    for entry in o.folded().some(PARTNER):
        o.check(re.match(pair, entry.line) or not entry.line.endswith(";rounds"), entry.line)
    o.check(any(e.line.endswith(";rounds") for e in o.entries), "the waker comes last")


def pair_folded_border(o):
    found = [e for e in o.folded().some(PARTNER) if e.line.endswith(";rounds")]
    for entry in found:
        o.check(re.search(";wait_for_partner;-;.*;--;.*;-;wake_partner;", entry.line), entry.line)
    o.check(found, "rounds is its waker")


def pair_border(o):
    for entry in o.some(PARTNER):
        if entry.waker == "rounds":
            at = next(i for i, f in enumerate(entry.above) if "wake_partner" in f)
            o.check(re.match("- +-$", entry.above[at + 1]), f"{entry.above}")
        o.check(any(re.match("- +-$", f) for f in entry.frames), f"{entry.frames}")


def pair_user(o):
    o.some(PARTNER)
    o.none("schedule")
    o.check(not any("try_to_wake_up" in f for e in o.entries for f in e.above), "nor for wakers")


def pair_kernel(o):
    o.some("schedule")
    o.none(PARTNER)
    o.check(not any("wake_partner" in f for e in o.entries for f in e.above), "nor for wakers")


for row, words, look in (
    ("the layout", f"-p {P} 2", pairs(header(), partner)),
    ("timers", f"-t {T} 2", pairs(header(), by_timer)),
    ("SECONDS", "2", pairs(header(), rounds.all_threads)),
    ("-p list", f"-p {P},{O} 2", pairs(header(), r.two_processes)),
    ("-t", f"-t {PARTNER_T} 2", pairs(header(), lambda o: (o.some(PARTNER), o.none(LONG, DEEP)))),
    ("-u", "-u 2", pairs(header(), rounds.user_threads)),
    ("-k", "-k 2", pairs(header(), rounds.kernel_threads)),
    ("-U", f"-U -p {P} 2", pairs(header("user"), pair_user)),
    ("-K", f"-K -p {P} 2", pairs(header("kernel"), pair_kernel)),
    ("-m", f"-m {EDGE} -t {T} 2", pairs(header(), r.at_least)),
    ("-M", f"-M {EDGE} -t {T} 2", pairs(header(), r.at_most)),
    ("--state", f"--state 2 -p {P} 2", pairs(header(), rounds.uninterruptible)),
    ("-d", f"-d -t {PARTNER_T} 2", pairs(header(), pair_border)),
    ("-f", f"-f -t {PARTNER_T} 2", pair_folded),
    ("-d folded", f"-df -t {PARTNER_T} 2", pair_folded_border),
    ("--stack-storage-size", f"--stack-storage-size 64 -t {T} 2", pairs(header(), rounds.storage)),
    ("--ebpf", "--ebpf", rounds.programs("offwake", None)),
):
    r.add(row, words, look)
r.add("until Ctrl-C", "", pairs(header(ending=ENDLESS), rounds.all_threads), True)
# It shows only waits that have ended.
r.add("a wait that has not ended", f"-p {r.sleeper_pid} 1", rounds.nothing_ended)
r.cases.run()
r.finish(("-p 1 -k", "-U -K", "-v"))
