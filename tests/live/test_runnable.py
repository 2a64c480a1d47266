#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows threads that never sleep: if there are more of them than CPUs, they are runnable, not
blocked, for the rest of the time. Preemption and sched_yield() are waits of state R, shown apart.
Without threads that sleep, schedstat's run-queue delay is right, and stackd's is the same."""

from harness import *


def totals_of(daemon, tids, start, end):
    return daemon.call(
        "io.stackd.Snapshot",
        probe="offcpu",
        since_ns=start,
        until_ns=end,
        filter={"tids": tids},
        idle=True,
    )


def read_delay(pid, tids):
    """Returns the run-queue delay of these threads so far in ns, and when it was read."""
    delay = 0
    for tid in tids:
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            delay += int(f.read().split()[1])
    return delay, time.time_ns()


def cut_with_delay(daemon, pid, tids):
    """Cuts; returns the cut, and the run-queue delay at that instant, interpolated between two
    readings."""
    before, when_before = read_delay(pid, tids)
    cut = daemon.cut()
    after, when_after = read_delay(pid, tids)
    share = (cut - when_before) / (when_after - when_before)
    return cut, before + (after - before) * share


def check_spinners(daemon, threads, cpus, args, label):
    """Checks spinners that share `cpus` CPUs, over a time in which all of them spin."""
    born, interrupts = daemon.cut(), interrupt_ns()
    program = Program("prog_spinners", threads, *args).ready()
    tids = [v["tid"] for v in program.values("spinner")]
    program.go().read_until("spinning")
    start, delay_at_start = cut_with_delay(daemon, program.pid, tids)
    time.sleep(4)
    end, delay_at_end = cut_with_delay(daemon, program.pid, tids)
    program.go().done().end()
    reply = totals_of(daemon, tids, start, end)
    totals, wall = reply["totals"], (end - start) * threads
    check(totals["threads"] == threads, f"{label}: {totals['threads']} threads")
    share = totals["runnable_ns"] / wall
    expected = 1 - cpus / threads
    check(
        expected - 0.03 <= share,
        f"{label}: runnable {share:.1%} of their wall time, {expected:.0%} if nothing else ran",
    )
    # schedstat adds a delay when it ends: at each edge, part of one for each thread is missing.
    longest = max(row["max_ns"] for row in reply["rows"])
    check_near(
        totals["runnable_ns"],
        delay_at_end - delay_at_start,
        0.02,
        f"{label}: runnable against schedstat, each delay at most {longest} ns",
        slack=longest * threads,
    )
    check(totals["blocked_ns"] <= wall * 0.005, f"{label}: blocked {totals['blocked_ns']} ns")
    total = totals["on_cpu_ns"] + totals["runnable_ns"] + totals["blocked_ns"]
    check_near(total, wall, 0.01, f"{label}: the sum is their wall time")
    rows = rows_with(reply, "spin")
    check(rows, f"{label}: there are rows with the function they were preempted in")
    check(
        all(row["state"].startswith("R") or row["state"] == "preempted" for row in rows),
        f"{label}: states {sorted({row['state'] for row in rows})}",
    )
    check(row_sum(rows, "blocked_ns") == 0, f"{label}: these rows hold no blocked time")
    check_own_clocks(daemon, program, born, interrupts, label)


def check_own_clocks(daemon, program, born, interrupts, label):
    """Compares on-CPU time over the whole life with each thread's own CPU clock."""
    died = daemon.cut()
    # One thread may have had all the time that interrupts and the hypervisor took. Some virtual
    # machines do not say how much that was; 2 % is what the law allows.
    slack = interrupt_ns() - interrupts + 5_000_000
    sum_ns = sum_own_ns = 0
    for value in program.values("spun"):
        totals = totals_of(daemon, [value["tid"]], born, died)["totals"]
        text = f"{label}: on-CPU of tid {value['tid']} against its own clock"
        check_near(totals["on_cpu_ns"], value["cpu_ns"], 0.02, text, slack)
        sum_ns += totals["on_cpu_ns"]
        sum_own_ns += value["cpu_ns"]
    check_near(sum_ns, sum_own_ns, 0.02, f"{label}: on-CPU of all against their clocks", slack)


def check_yielders(daemon):
    program = Program("prog_yielders", 2, 0).ready().go().done()
    program.end()
    snapshot = daemon.snapshot("--window", "2min", "-p", program.pid)
    switches = sum(v["voluntary"] + v["involuntary"] for v in program.values("yielded"))
    # The program also waits when it starts, joins its threads and reads stdin.
    others = 30
    check_near(
        snapshot["totals"]["waits"], switches, 0.0, "yielders: waits = switches", slack=others
    )
    # Each turn of another program on that CPU takes milliseconds.
    check(switches > 10 * others, f"yielders: {switches} switches")
    rows = rows_with(snapshot, "yield_turn")
    check(all(row["blocked_ns"] == 0 for row in rows), "yielders: no row is blocked time")
    main = program.values("yielded")[0]["tid"]
    totals = daemon.snapshot("--window", "2min", "-t", main)["totals"]
    check(totals["runnable_ns"] > 0.3 * 2 * NS_PER_S, "yielders: each waits for the other's turn")


def shares():
    cpus = os.cpu_count()
    daemon = Daemon("window.length=1s", "window.min_length=50ms", "probe.offcpu.min_wait=1us", *ROOM)
    check_spinners(daemon, 4 * cpus, cpus, [], f"{4 * cpus} spinners, {cpus} CPUs")
    check_spinners(daemon, 2, 1, [0], "2 spinners on one CPU")
    check_yielders(daemon)
    check_nothing_lost(daemon.status(), "status")


def ran_before(daemon, tid):
    """Returns who ran before the longest waits of each row of a thread."""
    rows = daemon.snapshot("--window", "1h", "-t", tid)["rows"]
    return [row["ran_before"] for row in rows if "ran_before" in row]


def culprits():
    """Shows that a wait for a CPU has the name of the thread that ran there until it ended, and has
    none if the waiting thread was moved to another CPU, or if that one ran for a moment only."""
    daemon = Daemon("window.length=1s", "window.min_length=50ms", *ROOM)
    program = Program("prog_queue").ready().go().done()
    daemon.cut()
    stayed, others = program.values("stayed"), program.values("shared") + program.values("moved")
    named = []
    for value in stayed:
        longest = max(ran_before(daemon, value["waiter"]), key=lambda v: v["ns"], default={"ns": 0})
        if longest["ns"] < value["ns"]:
            continue
        named.append(value)
        check(
            (longest["tid"], longest["pid"], longest["comm"]) == (value["hog"], program.pid, "prog_queue"),
            f"the hog {value['hog']} ran for {value['ns']} ns before the waiter: {longest}",
        )
    check(named, f"a hog is named in one of {len(stayed)} rounds")
    text = daemon.ctl("snapshot", "offcpu", "--window", "1h", "-t", named[0]["waiter"]).out if named else ""
    words = f"ran before it: prog_queue({program.pid})/prog_queue({named[0]['hog']})" if named else None
    check(words and words in text, f"stackctl names it, by its process: {text}")
    for value in others:
        rows = daemon.snapshot("--window", "1h", "-t", value["waiter"])["rows"]
        ready = max((row["runnable_ns"] for row in rows), default=0)
        check(ready >= value["ns"], f"the other thread was ready for {ready} ns of {value['ns']}")
        before = ran_before(daemon, value["waiter"])
        check(not any(v["ns"] >= value["ns"] for v in before), f"nobody ran before it: {before}")
    program.end()


need_live()
run_parts(culprits, shares)
