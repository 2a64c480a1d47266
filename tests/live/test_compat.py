# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs that are older tools by name: every option and every example of the originals runs, on
a program whose waits, wakers and CPU time are known, in the layout of that tool.
"""

import os
import re
import time

import harness as h
from compat import TIME, Cases

h.need_live()

CPU = max(os.sched_getaffinity(0))
LONG, SHORT, DEEP, NESTED = "wait_long", "wait_short", "wait_in_vfork", "wait_nested"
COMPUTE = "compute_alone"
US, EDGE = 1_000_000, 8000
NODE = "user + kernel"


def tids_of(program):
    return {
        name: [int(re.search(r"tid=(\d+)", line)[1]) for line in program.lines if f" {name} " in line]
        for name in ("rounds", "partner", "deep", "nested", "spins")
    }


def is_kernel_thread(pid):
    """Of a process that is still there; PF_KTHREAD."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return bool(int(f.read().rsplit(")", 1)[1].split()[6]) & 0x200000)
    except (FileNotFoundError, ProcessLookupError):
        return None


daemon = h.Daemon("window.length=1s", "control.max_sessions=32", "control.max_clients=64")
daemon.cut()
program = h.Program("prog_rounds", CPU).ready()
other = h.Program("prog_rounds", CPU).ready()
P, O, TID = program.pid, other.pid, tids_of(program)
T = TID["rounds"][0]
cases = Cases(daemon)
began = time.time()

# ---- offcputime

OFF = "Tracing off-CPU time (us) of"
ENDLESS = "... Hit Ctrl-C to end."


def off(who, seconds=2, by=f"{NODE} stack"):
    return f"{OFF} {who} by {by} for {seconds} secs."


def all_threads(o):
    o.some(LONG)
    o.check(len(o.pids()) > 2, f"of several processes: {len(o.pids())}")


def one_process(o):
    o.check(o.pids() == {P}, f"only {P}: {o.pids()}")
    both = o.sum("rounds_main")
    o.check(both > 1.8 * US, f"the thread that only waits, for 2 s or what it took: {both} us")
    o.near(o.sum(NESTED), both, 0.1, "and so the one that waits below many frames")
    for entry in o.some(LONG):
        # Or it was preempted as it came back.
        kernel = [i for i, f in enumerate(entry.frames) if "nanosleep" in f or "exit_to" in f]
        user = [i for i, f in enumerate(entry.frames) if LONG in f]
        o.check("schedule" in entry.frames[0], f"the leaf is on top: {entry.frames[0]}")
        o.check(kernel and kernel[-1] < user[0], f"the kernel's above: {entry.frames}")
    o.check(o.sum(LONG) > o.sum(SHORT), f"20 ms, 0.5 ms: {o.sum(LONG)}, {o.sum(SHORT)} us")


def one_thread(o):
    o.check(o.pids() == {P}, f"only {P}: {o.pids()}")
    o.some(LONG)
    o.none(DEEP, NESTED, "wait_for_partner")


def user_threads(o):
    o.some(LONG)
    kernel = [p for p in o.pids() if is_kernel_thread(p)]
    o.check(not kernel, f"no kernel threads: {kernel}")


def kernel_threads(o):
    o.check(o.entries, "something")
    users = [p for p in o.pids() if is_kernel_thread(p) is False]
    o.check(not users, f"kernel threads only: {users}")


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
        o.check(re.search(f";{LONG};-;[^;]", entry.line), f"a border: {entry.line}")
    for entry in o.entries:
        o.check(entry.line.count(";-;") <= 1, "at most one")


def border(o):
    for entry in o.some(LONG):
        at = [i for i, f in enumerate(entry.frames) if f == "--"]
        o.check(len(at) == 1 and LONG in entry.frames[at[0] + 1], f"a border: {entry.frames}")


def addresses(o):
    for entry in o.some(LONG):
        good = all(re.match("(0x[0-9a-f]+|-) +[^ ]", f) for f in entry.frames)
        o.check(good, f"addresses: {entry.frames}")


def offsets(o):
    for entry in o.some(LONG):
        o.check(all("+0x" in f for f in entry.frames), f"offsets: {entry.frames}")


# The thread that only waits, in 2 s: each of its waits is on one side of the edge.
sides = {}


def at_least(o):
    o.some(LONG)
    o.check(all(e.value >= EDGE for e in o.entries), "none is shorter")
    sides[o.label.split()[0], "m"] = o.sum("rounds_main")


def at_most(o):
    o.some(SHORT)
    o.none(NESTED)
    o.check(all((e.longest or 0) <= EDGE for e in o.entries), "none is longer")
    sides[o.label.split()[0], "M"] = o.sum("rounds_main")


def asleep(o):
    o.some(LONG)
    o.none("wait_for_vfork_done", COMPUTE)


def uninterruptible(o):
    o.some(DEEP)
    o.none(LONG, SHORT, NESTED)


def bitmask(o):
    for name in (LONG, NESTED, DEEP):
        o.some(name)
    o.none(COMPUTE)


def preempted(o):
    """Two threads share a CPU; who sleeps is hardly ever in the way of anybody."""
    o.some(COMPUTE)
    whole = o.sum()
    o.check(o.sum(COMPUTE) > whole / 2, f"most is of who computes: {o.sum(COMPUTE)} of {whole} us")
    o.check(o.sum(LONG) < 0.2 * US, f"sleeps are none: {o.sum(LONG)} us")


def intervals(o):
    body = o.result.out.split("\n", 1)[1]
    times = TIME.findall(body)
    o.check(2 <= len(times) <= 5, f"a time each second: {times}")
    o.blocks(off(f"TID {T}", 4), is_sorted=False)
    whole = sum(e.value for e in o.entries)
    o.check(3.6 * US < whole < 6 * US, f"each wait once, in 4 s and what it took: {whole} us")


def deep_stack(o):
    # Others are of a preemption on its way there.
    asleep_there = [e for e in o.some(NESTED) if any("nanosleep" in f for f in e.frames)]
    o.check(asleep_there, "its sleeps")
    for entry in asleep_there:
        n = sum(NESTED in f for f in entry.frames)
        o.check(n == 61, f"61 frames of the recursion: {n}")


def storage(o):
    o.some(LONG)
    o.check("--stack-storage-size" in o.result.err, f"a size is noted: {o.result.err}")


def blocks(header, look):
    return lambda o: look(o.blocks(header))


def programs(probe, name):
    def look(o):
        o.check(o.lines[:1] and o.lines[0].startswith(f"probe {probe}"), f"{o.lines[:1]}")
        # One that is not always on has none until it is recorded with.
        has_programs = f"program {name} on " in o.result.out if name else "as it starts" in o.result.err
        o.check(has_programs, f"{o.result.out} {o.result.err}")

    return look


for row, words, look in (
    ("offcputime: SECONDS", "2", blocks(off("all threads"), all_threads)),
    ("offcputime: -p", f"-p {P} 2", blocks(off(f"PID {P}"), one_process)),
    ("offcputime: -p list", f"-p {P},{O} 2",
     blocks(off(f"PID {P},{O}"), lambda o: o.check(o.pids() == {P, O}, f"both: {o.pids()}"))),
    ("offcputime: -t", f"-t {T} 2", blocks(off(f"TID {T}"), one_thread)),
    ("offcputime: -t list", f"-t {T},{TID['nested'][0]} 2",
     blocks(off(f"TID {T},{TID['nested'][0]}"), lambda o: (o.some(LONG), o.some(NESTED), o.none(DEEP)))),
    ("offcputime: -u", "-u 2", blocks(off("user threads"), user_threads)),
    ("offcputime: -k", "-k 2", blocks(off("kernel threads"), kernel_threads)),
    ("offcputime: -U", f"-U -p {P} 2", blocks(off(f"PID {P}", by="user stack"), user_stacks)),
    ("offcputime: -K", f"-K -p {P} 2", blocks(off(f"PID {P}", by="kernel stack"), kernel_stacks)),
    ("offcputime: -f", "-f 2", folded),
    ("offcputime: -d", f"-dp {P} 2", blocks(off(f"PID {P}"), border)),
    ("offcputime: -d folded", f"-df -t {T} 2", folded_border),
    ("offcputime: -v", f"-vt {T} 2", blocks(off(f"TID {T}"), addresses)),
    ("offcputime: -s", f"-st {T} 2", blocks(off(f"TID {T}"), offsets)),
    ("offcputime: -i and -T", f"-Ti 1 -t {T} 4", intervals),
    ("offcputime: -m", f"-m {EDGE} -t {T} 2", blocks(off(f"TID {T}"), at_least)),
    ("offcputime: -M", f"-M {EDGE} -t {T} 2", blocks(off(f"TID {T}"), at_most)),
    ("offcputime: --state 1", f"--state 1 -p {P} 2", blocks(off(f"PID {P}"), asleep)),
    ("offcputime: --state 2", f"--state 2 -p {P} 2", blocks(off(f"PID {P}"), uninterruptible)),
    ("offcputime: --state 3", f"--state 3 -p {P} 2", blocks(off(f"PID {P}"), bitmask)),
    ("offcputime: --state D", f"--state D -p {P} 2", blocks(off(f"PID {P}"), uninterruptible)),
    ("offcputime: --state 0", f"--state 0 -p {P} 2", blocks(off(f"PID {P}"), preempted)),
    ("offcputime: --state preempted", f"--state preempted -p {P} 2", blocks(off(f"PID {P}"), preempted)),
    ("offcputime: 127 frames", f"-t {TID['nested'][0]} 2", blocks(off(f"TID {TID['nested'][0]}"), deep_stack)),
    ("offcputime: --stack-storage-size", f"--stack-storage-size 4096 -t {T} 2", blocks(off(f"TID {T}"), storage)),
    ("offcputime: --ebpf", "--ebpf", programs("offcpu", "on_switch")),
):
    cases.add(row, f"offcputime {words}", look)
cases.add("offcputime: until Ctrl-C", "offcputime", blocks(f"{OFF} all threads by {NODE} stack{ENDLESS}", all_threads), True)
cases.add("offcputime: until Ctrl-C", f"offcputime -m 1000 -t {T}",
          blocks(f"{OFF} TID {T} by {NODE} stack{ENDLESS}", lambda o: o.some(LONG)), True)

# ---- topwaits

TOP = "Tracing waits (us: total, longest; end of the longest) of"


def top(who):
    return f"{TOP} {who} by process and stack for 2 secs."


def longest(o):
    o.check(o.pids() == {P}, f"only {P}: {o.pids()}")
    for entry in o.some(LONG):
        o.check(20_000 <= entry.longest < 300_000, f"20 ms and a little: {entry.longest}")
        o.check(entry.longest <= entry.value, f"of {entry.value}")
        o.check(began < entry.end < time.time(), f"its end: {entry.end}")


def record(o):
    longest(o)
    # Where a thread is preempted is anywhere: places of one function have one name.
    preempted = ("exit_to_user_mode", "irqentry_exit", "preempt_schedule", "cond_resched")
    stacks = [tuple(e.frames) for e in o.entries
              if not any(word in frame for frame in e.frames for word in preempted)]
    o.check(len(stacks) == len(set(stacks)), "one record a process and stack")
    for name in (NESTED, "wait_for_partner", DEEP):
        o.some(name)
    o.check(o.sum(NESTED) > 1.8 * US, f"its total: {o.sum(NESTED)} us")


for row, words, look in (
    ("topwaits: the record", f"-p {P} 2", blocks(top(f"PID {P}"), record)),
    ("topwaits: SECONDS", "2", blocks(top("all threads"), all_threads)),
    ("topwaits: -t", f"-t {T} 2", blocks(top(f"TID {T}"), one_thread)),
    ("topwaits: -m", f"-m {EDGE} -t {T} 2", blocks(top(f"TID {T}"), at_least)),
    ("topwaits: -M", f"-M {EDGE} -t {T} 2", blocks(top(f"TID {T}"), at_most)),
    ("topwaits: --state 0", f"--state 0 -p {P} 2", blocks(top(f"PID {P}"), preempted)),
    ("topwaits: --state 2", f"--state 2 -p {P} 2", blocks(top(f"PID {P}"), uninterruptible)),
    ("topwaits: --stack-storage-size", f"--stack-storage-size 64 -t {T} 2", blocks(top(f"TID {T}"), storage)),
    ("topwaits: --ebpf", "--ebpf", programs("offcpu", "on_switch")),
):
    cases.add(row, f"topwaits {words}", look)
cases.add("topwaits: until Ctrl-C", f"topwaits -p {P}",
          blocks(f"{TOP} PID {P} by process and stack{ENDLESS}", longest), True)

# ---- offwaketime

PARTNER = TID["partner"][0]


def wake(by=NODE, ending=" for 2 secs."):
    return f"Tracing blocked time (us) by {by} off-CPU and waker stack{ending}"


def partner(o):
    """Who waits for the pipe is woken by who writes to it; its waits are all of 20 ms."""
    o.check(o.pids() == {P}, f"only {P}: {o.pids()}")
    waits = o.some("wait_for_partner")
    good = [e for e in waits if e.waker == "rounds" and any("wake_partner" in f for f in e.above)]
    o.near(sum(e.value for e in good), sum(e.value for e in waits), 0.02, "its waker, of all its waits")
    blocked = o.sum("wait_for_partner")
    o.check(blocked > 1.5 * US, f"blocked for nearly all of 2 s: {blocked} us")
    for entry in good:
        at = [i for i, f in enumerate(entry.above) if "wake_partner" in f]
        o.check("clone" in entry.above[0], f"the waker's root first: {entry.above}")
        o.check("try_to_wake_up" in entry.above[-1], f"its leaf last: {entry.above}")
        o.check(at[0] < len(entry.above) - 2, f"its kernel frames below: {entry.above}")
        o.check("schedule" in entry.frames[0], f"the target's leaf first: {entry.frames}")


def by_timer(o):
    waits = o.some(LONG)
    timer = sum(e.value for e in waits if e.waker == "timer")
    # Some hosts hide threads of init from programs, and with them the interrupts that come then.
    o.near(timer, sum(e.value for e in waits), 0.1, "a sleep's waker is a timer")


def pairs(header, look):
    return lambda o: look(o.pairs(header))


def pair_folded(o):
    for entry in o.folded().some("wait_for_partner"):
        line = r"partner;.*;wait_for_partner;.*schedule[^;]*;--;try_to_wake_up;.*wake_partner;.*;rounds$"
        o.check(re.match(line, entry.line) or not entry.line.endswith(";rounds"), f"{entry.line}")
    o.check(any(e.line.endswith(";rounds") for e in o.entries), "the waker comes last")


def pair_folded_border(o):
    found = [e for e in o.folded().some("wait_for_partner") if e.line.endswith(";rounds")]
    for entry in found:
        o.check(re.search(r";wait_for_partner;-;.*;--;.*;-;wake_partner;", entry.line), f"{entry.line}")
    o.check(found, "woken by rounds")


def pair_border(o):
    for entry in o.some("wait_for_partner"):
        if entry.waker == "rounds":
            o.check(re.match("- +-$", entry.above[entry.above.index(wake_frame(entry)) + 1]), f"{entry.above}")
        o.check(any(re.match("- +-$", f) for f in entry.frames), f"{entry.frames}")


def wake_frame(entry):
    return next(f for f in entry.above if "wake_partner" in f)


def pair_user(o):
    o.some("wait_for_partner")
    o.none("schedule")
    o.check(not any("try_to_wake_up" in f for e in o.entries for f in e.above), "nor of wakers")


def pair_kernel(o):
    o.some("schedule")
    o.none("wait_for_partner")
    o.check(not any("wake_partner" in f for e in o.entries for f in e.above), "nor of wakers")


for row, words, look in (
    ("offwaketime: the layout", f"-p {P} 2", pairs(wake(), partner)),
    ("offwaketime: timers", f"-t {T} 2", pairs(wake(), by_timer)),
    ("offwaketime: SECONDS", "2", pairs(wake(), all_threads)),
    ("offwaketime: -p list", f"-p {P},{O} 2", pairs(wake(), lambda o: o.check(o.pids() == {P, O}, f"{o.pids()}"))),
    ("offwaketime: -t", f"-t {PARTNER} 2", pairs(wake(), lambda o: (o.some("wait_for_partner"), o.none(LONG, DEEP)))),
    ("offwaketime: -u", "-u 2", pairs(wake(), user_threads)),
    ("offwaketime: -k", "-k 2", pairs(wake(), kernel_threads)),
    ("offwaketime: -U", f"-U -p {P} 2", pairs(wake("user"), pair_user)),
    ("offwaketime: -K", f"-K -p {P} 2", pairs(wake("kernel"), pair_kernel)),
    ("offwaketime: -m", f"-m {EDGE} -t {T} 2", pairs(wake(), at_least)),
    ("offwaketime: -M", f"-M {EDGE} -t {T} 2", pairs(wake(), at_most)),
    ("offwaketime: --state", f"--state 2 -p {P} 2", pairs(wake(), uninterruptible)),
    ("offwaketime: -d", f"-d -t {PARTNER} 2", pairs(wake(), pair_border)),
    ("offwaketime: -f", f"-f -t {PARTNER} 2", pair_folded),
    ("offwaketime: -d folded", f"-df -t {PARTNER} 2", pair_folded_border),
    ("offwaketime: --stack-storage-size", f"--stack-storage-size 64 -t {T} 2", pairs(wake(), storage)),
    ("offwaketime: --ebpf", "--ebpf", programs("offwake", None)),
):
    cases.add(row, f"offwaketime {words}", look)
cases.add("offwaketime: until Ctrl-C", "offwaketime", pairs(wake(ending=ENDLESS), all_threads), True)

# ---- Who waits all the time: only what has ended is in these.

asleep = h.Program("prog_sleeper").ready()


def nothing_ended(o):
    o.check(not "".join(o.lines[1:]).strip(), f"no entry: {o.lines[1:3]}")
    o.check("no wait that was asked for ended" in o.result.err, f"and why: {o.result.err}")


for tool in ("offcputime", "offwaketime", "topwaits"):
    cases.add(f"{tool}: who waits still", f"{tool} -p {asleep.pid} 1", nothing_ended)

# ---- profile


def on(rate="49 Hertz", who="all threads", by=NODE, where=""):
    return f"Sampling at {rate} of {who} by {by} stack{where} for 2 secs."


def spins(low, high):
    """So many samples of the two threads that share a CPU, which others may want too."""

    def look(o):
        n = o.sum(COMPUTE)
        o.check(low <= n <= high, f"{low} to {high} samples: {n}")
        for entry in o.some(COMPUTE):
            at = next(i for i, f in enumerate(entry.frames) if COMPUTE in f)
            o.check("spins_main" in entry.frames[at + 1], f"leaf first: {entry.frames}")
            o.check(sum("spins_main" in f for f in entry.frames) == 1, "each frame once")

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
    o.check(any(re.search(r"[^]];-;[^;]*_\[k\]", e.line) for e in kernel), "below a border")
    o.check(not any(f"{COMPUTE}_[k]" in e.line for e in o.entries), "and no others")


def with_idle(o):
    # A host that hides the threads of init from BPF hides the idle ones that init forked at boot,
    # all but the first CPU's.
    o.check(sum(e.value for e in o.entries) > 180, "a CPU at least, idle or not")


def one_stack(name, other_name):
    return lambda o: (o.some(name), o.none(other_name))


SPINS = TID["spins"][0]
for row, words, look in (
    ("profile: SECONDS", "2", blocks(on(), spins(5, 105))),
    ("profile: -F", "-F 99 2", blocks(on("99 Hertz"), spins(8, 210))),
    ("profile: -c", "-c 1000000 2", blocks(on("every 1000000 events"), spins(100, 2100))),
    ("profile: -p", f"-F 99 -p {P} 2", blocks(on("99 Hertz", f"PID {P}"), mine)),
    ("profile: -p list", f"-F 99 -p {P},{O} 2",
     blocks(on("99 Hertz", f"PID {P},{O}"), lambda o: o.check(o.pids() == {P, O}, f"{o.pids()}"))),
    ("profile: -L", f"-F 99 -L {SPINS} 2", blocks(on("99 Hertz", f"TID {SPINS}"), spins(4, 130))),
    ("profile: -C", f"-F 99 -C {CPU} 2", blocks(on("99 Hertz", where=f" on CPU#{CPU}"), one_cpu(True))),
    ("profile: -I", "-I -F 99 2", blocks(on("99 Hertz"), with_idle)),
    ("profile: -U", f"-U -p {P} 2", blocks(on(who=f"PID {P}", by="user"), one_stack(COMPUTE, "schedule"))),
    ("profile: -K", "-K -F 199 2", blocks(on("199 Hertz", by="kernel"), lambda o: o.none("spins_main"))),
    ("profile: -f", "-f 2", lambda o: o.folded().some("spins_main", COMPUTE)),
    ("profile: -a, -d", "-adf -F 499 2", marked),
    ("profile: -d", f"-d -F 999 -p {P} 2", blocks(on("999 Hertz", f"PID {P}"), lambda o: o.some("--"))),
    ("profile: --stack-storage-size", f"--stack-storage-size 64 -p {P} 2",
     blocks(on(who=f"PID {P}"), lambda o: o.check("--stack-storage-size" in o.result.err, "noted"))),
    ("profile: --ebpf", "--ebpf", programs("oncpu", "on_sample")),
):
    cases.add(row, f"profile {words}", look)
if CPU > 0:
    cases.add("profile: -C", "profile -F 99 -C 0 2", blocks(on("99 Hertz", where=" on CPU#0"), one_cpu(False)))
cases.add("profile: until Ctrl-C", "profile",
          blocks(f"Sampling at 49 Hertz of all threads by {NODE} stack{ENDLESS}", lambda o: o.some(COMPUTE)), True)

cases.run()
for tool in ("offcputime", "topwaits"):
    both = sides[tool, "m"] + sides[tool, "M"]
    h.check(both > 1.8 * US, f"{tool}: -m and -M are the two sides of {EDGE} us, {both} in all")

# ---- What cannot be.

for words in (
    "offcputime -p 1 -t 1",
    "offcputime -p 1 -u",
    "offcputime -u -k",
    "offcputime -U -K",
    "offcputime 0",
    "offcputime 5s",
    "offcputime 1 2",
    "offcputime -x",
    "offcputime -m",
    "offcputime --stack-storage-size none",
    "offcputime --cgroupmap /sys/fs/bpf/x",
    "offcputime -p nobody",
    "offcputime -p 4194000 1",
    "offcputime -i 0",
    "profile -F 9 -c 9",
    "profile -F 0",
    "profile -p 1 -L 1",
    "profile -U -K",
    "profile -F 10000000 1",
    "profile -C 999 1",
    "offwaketime -p 1 -k",
    "offwaketime -U -K",
    "offwaketime -v",
    "topwaits -k",
    "topwaits -p 1 -t 1",
    "topwaits --state Q 1",
):
    result = daemon.ctl(*words.split())
    h.check(result.code == 1 and result.err and not result.out, f"{words}: {result} {result.out}")

# Nothing is left of any of them.
sessions = daemon.call("io.stackd.Sessions")["sessions"]
h.check(all("ended" in s or s["always"] for s in sessions), "all sessions have ended")
h.finish()
