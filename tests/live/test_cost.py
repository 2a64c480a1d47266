# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that windows have what stackd cost: the CPU time of the daemon's threads as the kernel counts
it, and the time of its BPF programs as the kernel measures it with kernel.bpf_stats_enabled.
"""

import atexit
import glob
import os
import re

import harness as h

h.need_live()
STATS = "/proc/sys/kernel/bpf_stats_enabled"
# What a run takes before and after it reads the clock is a constant of the daemon's (ENTRY_NS). On the machines that
# were tried the true value lies between 25 and 60 ns, so a cost may be off by that.
ENTRY_APART_NS = 20
# Programs that the daemon itself runs: their time is CPU time of its threads.
ITERATORS = ("on_task", "on_open_wait")


def stats_set(value):
    with open(STATS, "r+", encoding="ascii") as f:
        before = f.read().strip()
        f.seek(0)
        f.write(value)
    return before


def threads_ns():
    """Returns the CPU time of the daemon's threads and of the workers that parse files so far."""
    total = daemon.status()["parser"]["cpu_ns"]
    for path in glob.glob(f"/proc/{daemon.process.pid}/task/*/schedstat"):
        with open(path, encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


def programs():
    return [p for probe in daemon.status()["probes"] for p in probe["programs"]
            if not p["name"].startswith(ITERATORS)]


def programs_ns():
    return sum(p["run_ns"] for p in programs())


def measuring_ns():
    """Returns the most that the kernel's measuring can be of the time that it measured. It reads a clock
    twice in each run, which it does not do otherwise and which some virtual machines are slow at: no
    run takes less than that, whatever the program does."""
    some = [p for p in programs() if p["runs"] > 1000]
    return sum(p["runs"] for p in some) * min(p["run_ns"] / p["runs"] for p in some)


def runs():
    return sum(p["runs"] for p in programs())


def totals_ns():
    """Returns the time of the threads, of the programs, and of both."""
    threads, programs = threads_ns(), programs_ns()
    return threads, programs, threads + programs


def cut_between():
    """Cuts; returns its instant, and the totals before and after it."""
    before = totals_ns()
    return daemon.cut(), before, totals_ns()


def check_cost(cost, part, before, after, text, measuring=0, entry=0):
    """Estimates that a cost lies between the least and the most that the kernel counted, within 10 % and
    `entry`, and, at the lower end, what the kernel's measuring took."""
    least, most = after[0][part] - before[1][part], after[1][part] - before[0][part]
    words = f"{text}: {cost / 1e6:.1f} ms of {least / 1e6:.1f} to {most / 1e6:.1f} ms"
    h.estimate_least(cost, (least - measuring) * 0.9 - entry, words)
    h.estimate_most(cost, most * 1.1 + entry, words)


atexit.register(stats_set, stats_set("1"))
# 4 % of one CPU is the least budget, on however few CPUs.
daemon = h.Daemon("window.length=1s", "budget.cpu=0.01%")
CPU = max(os.sched_getaffinity(0))
SLEEPS = "import time\nwhile True: time.sleep(0.0002)"
sleeper = h.spawn(["python3", "-c", SLEEPS])
# Two threads that switch all the time: their waits are far too short for stacks.
yielders = h.Program("prog_yielders", 12, CPU).ready().go()
# Windows before the first measurement have no budget.
h.wait_until(lambda: (daemon.status().get("budget") or {}).get("braked") is not None,
             "the budget")
start, *before = cut_between()
runs_before = runs()
h.wait_until(lambda: daemon.cut() > start + 8 * h.NS_PER_S, "eight seconds")
end, *after = cut_between()
entry = (runs() - runs_before) * ENTRY_APART_NS
SPAN = {"since_ns": start, "until_ns": end}

# A window of one probe has the cost of all. The other probes add theirs about once a second.
for probe in ("offcpu", "oncpu"):
    cost = daemon.call("io.stackd.Snapshot", probe=probe, top=1, **SPAN)["cost"]
    h.check_near(cost["length_ns"], end - start, 0.15, f"{probe}: the cost is that of the range")
    if probe == "offcpu":
        h.check_sum(cost["budget_ns"], 0.04 * cost["length_ns"], 0.0001, "the budget is in it")
        check_cost(cost["cpu_ns"], 0, before, after, "threads")
        measuring = measuring_ns() * (after[0][1] - before[1][1]) / programs_ns()
        print(f"of the programs' time, {measuring / 1e6:.1f} ms may be the kernel's measuring")
        check_cost(cost["bpf_ns"], 1, before, after, "programs", measuring, entry)
        check_cost(cost["cpu_ns"] + cost["bpf_ns"], 2, before, after, "both", measuring, entry)
text = daemon.ctl("snapshot", "--window", "4s", "-v").out
LINE = r"^cost +stackd took [\d.]+ % of a CPU \(budget 4 %\)"
h.check(re.search(LINE + r": [\d.]+ % its threads, [\d.]+ % its",
                  re.sub(r"\n {5,}", " ", text), re.M), f"the overview says it: {text[:800]}")
status = daemon.status()
h.check_near(status["user_ns"] + status["system_ns"], threads_ns(), 0.1, "status has the threads'")
least, most = programs_ns() - measuring_ns(), programs_ns()
words = f"status has the programs': {status['bpf_ns']} of {least:.0f} to {most}"
entry = runs() * ENTRY_APART_NS
h.estimate_least(status["bpf_ns"], least * 0.9 - entry, words)
h.estimate_most(status["bpf_ns"], most * 1.1 + entry, words)
h.check(status["budget_ns"] == 40_000_000, f"status has the budget: {status['budget_ns']}")
flat = re.sub(r"\s+", " ", daemon.ctl("status", "-v").out)
h.check(re.search(r"cost stackd took [\d.]+ % of a CPU: .* that is since the start; .*budget 4 %", flat),
        f"status says it: {flat}")

# What clients cost is in the cost, and by its name beside what the budget is compared with.
h.check(0 < cost["answers_ns"] < cost["cpu_ns"], f"the range has answers: {cost}")
h.check(not cost["sessions_ns"] and not status["sessions_ns"], "nobody started a session")
session = daemon.ctl("start", "offcpu")
h.check(session.code == 0, f"started: {session}")
h.wait_until(lambda: daemon.status()["sessions_ns"], "what the session costs")
begun = daemon.cut()
h.wait_until(lambda: daemon.cut() > begun + 2 * h.NS_PER_S, "two seconds of both")
both = daemon.call("io.stackd.Snapshot", probe="offcpu", top=1, since_ns=begun)["cost"]
h.check(0 < both["sessions_ns"] < both["bpf_ns"], f"its programs are beside those that are always on: {both}")
daemon.ctl("stop", session.out.strip())
h.stop_process(sleeper)
yielders.kill()

# The sum on disk is the same.
daemon.stop()
again = h.Daemon(start=False)
again.argv += ["-o", f"store.path={daemon.store}", "--serve-only"]
again.start()
stored = again.call("io.stackd.Snapshot", probe="offcpu", top=1, **SPAN)["cost"]
known = ("cpu_ns", "bpf_ns", "answers_ns", "length_ns")
h.check(all(stored[k] > 0 for k in known), f"the windows on disk have it: {stored}")
h.finish()
