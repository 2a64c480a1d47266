#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows the limits on the cost of a function that is called often: over [probe.stackcount] max_cpu
its calls are sampled, and the recorded ones stand for all; where even the calls that are skipped
cost more, the session ends and gives that reason. The rate and the cost are measured first, because
machines differ a thousandfold."""

from harness import *

OTHERS = ("probe.offcpu.enabled=no", "probe.oncpu.enabled=no", "probe.iolat.enabled=no")
SECONDS = 5
FUNCTION = sys.argv[1] if len(sys.argv) > 1 else "t:raw_syscalls:sys_enter"


def session_of(daemon, id_text):
    return {s["id"]: s for s in daemon.call("io.stackd.Sessions")["sessions"]}[id_text]


def counted(daemon, rate):
    """Counts calls at a rate; returns (the session's state while the calls were made, with the
    largest `every` that was seen; its last state; calls counted; calls made)."""
    program = daemon.settled(Program("prog_calls", 0, SECONDS, rate).ready())
    started = daemon.ctl("start", "stackcount", FUNCTION, "-p", program.pid)
    check(started.code == 0, f"started: {started}")
    program.go()
    deadline, states = time.monotonic() + SECONDS - 1, []
    while time.monotonic() < deadline:
        states.append(session_of(daemon, started.out.strip()))
        time.sleep(0.3)
    program.done()
    made = program.value("flood")["calls"]
    program.end()
    states.append(session_of(daemon, started.out.strip()))
    daemon.ctl("stop", started.out.strip())
    reply = daemon.ctl_json("snapshot", started.out.strip(), "-n", "0", "--idle")
    total = sum(row["count"] for row in reply["rows"])
    running = [s for s in states if not s.get("ended")] or states
    seen = {**running[-2:][0], "every": max(s.get("every", 1) for s in running)}
    return seen, states[-1], total, made


def load_of(daemon):
    """Returns a rate at which recording every call takes a good part of a CPU, and that part in %. It is not more
    than the host could make: at a higher one, calls that are skipped may cost more than the budget."""
    rate = 10000
    while True:
        state, _, total, made = counted(daemon, rate)
        print(f"{rate} wanted: {made / SECONDS:.0f} calls a second, {state.get('load')} %", flush=True)
        if state["load"] >= 15 or made < 0.8 * rate * SECONDS:
            check_near(total, made, 0.02, "no limit: calls counted")
            return int(min(rate, made / SECONDS)), state["load"]
        rate = min(rate * max(2, 20 // max(state["load"], 1)), rate * 16)


def check_sampled(rate, load):
    """Checks that calls are sampled with a budget of a third of their cost."""
    budget = max(load // 3, 2)
    daemon = Daemon(*OTHERS, f"probe.stackcount.max_cpu={budget}")
    state, last, total, made = counted(daemon, rate)
    print(f"budget {budget} %: {made / SECONDS:.0f} calls a second, {state.get('load')} %, one in "
          f"{state['every']}")
    is_whole = estimate(not last.get("note"), f"sampled: it was recorded to the end: {last.get('note')}")
    estimate(state["every"] > 1, f"sampled: one in {state['every']} was recorded")
    estimate_most(state["load"], load, f"sampled: {state['load']} % of a CPU instead of {load}")
    if is_whole:
        check_near(total, made, 0.05, "sampled: those recorded stand for all")
    daemon.stop()


def check_ended():
    """Checks that the session ends with as many calls as possible and the least budget allowed."""
    daemon = Daemon(*OTHERS, "probe.stackcount.max_cpu=1")
    state, last, total, made = counted(daemon, 0)
    note = last.get("note") or ""
    has_ended = estimate(last.get("ended") and "[probe.stackcount] max_cpu" in note,
                         f"ended: at {state.get('calls_per_s')} calls a second, {state.get('load')} % and one in "
                         f"{state['every']}: {note}")
    check(0 < total <= made * 1.02, f"ended: {total} of {made} calls counted until then")
    shown = daemon.ctl("sessions").out
    check("[probe.stackcount] max_cpu" in re.sub(r"\s+", " ", shown) or not has_ended,
          f"ended: sessions says why:\n{shown}")
    check(daemon.ctl("status").code == 0, "ended: the daemon still runs")
    daemon.stop()


need_live()
free = Daemon(*OTHERS, "probe.stackcount.max_cpu=10000")
often, cost = load_of(free)
free.stop()
check_sampled(often, cost)
check_ended()
finish()
