#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A storm of waits that cost more than [budget] cpu allows: they are sampled within seconds, the
cost falls, no sum loses an event, and afterwards all waits are recorded again. Status, the log, the
text and JSON say so. What the storm costs without a limit is measured first, as machines differ."""

import math
import signal

from harness import *

THREADS, NAP_US = 16, 150
CPUS = os.cpu_count()


class Storms(Program):
    def __init__(self):
        super().__init__("prog_naps", THREADS, NAP_US)
        self.ready()

    def begin(self, seconds):
        self.lines.clear()
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def switches(self):
        """Waits for the end of the storm; returns how often each thread was switched."""
        self.done()
        return {values["tid"]: values["switches"] for values in self.values("napped")}


def daemon_with_file(text):
    """Starts a daemon whose budget is in its file, so that a reload changes it."""
    daemon = Daemon("window.length=2s", start=False)
    at = daemon.argv.index("budget.cpu=off")
    del daemon.argv[at - 1 : at + 1]
    configure(daemon, text)
    daemon.start()
    return daemon


def configure(daemon, text):
    with open(daemon.config, "w", encoding="utf-8") as f:
        f.write(f"[budget]\ncpu = {text}\n")


def budget_of(daemon):
    """Returns what status says of the budget; nothing before the first measurement."""
    return daemon.status().get("budget") or {}


def cost_of(daemon, seconds):
    """Returns the most that walks, hooks and threads cost in some seconds, as shares of a CPU."""
    seen = []
    for _ in range(seconds):
        time.sleep(1)
        seen.append(budget_of(daemon))
    check(not any(b.get("sample_below_ns") for b in seen), "without a limit nothing is sampled")
    return [max(b.get(key, 0) for b in seen) / NS_PER_S
            for key in ("walks_ns", "hooks_ns", "threads_ns")]


def check_sums(daemon, snapshot, switches, span):
    totals = snapshot["totals"]
    off_cpu = totals["blocked_ns"] + totals["runnable_ns"]
    check_nothing_lost(snapshot, "storm")
    check_near(row_sum(snapshot["rows"]), off_cpu, 0.0001, "the rows add up to the exact total",
               slack=1_000_000)
    length = span["until_ns"] - span["since_ns"]
    for tid, count in switches.items():
        mine = daemon.call("io.stackd.Snapshot", probe="offcpu", top=1, filter={"tids": [tid]},
                           **span)["totals"]
        parts = mine["on_cpu_ns"] + mine["blocked_ns"] + mine["runnable_ns"]
        check_near(parts, length, 0.001, f"thread {tid}: all of its time is there")
        # The waits for the storm and after it are in the range, too.
        check(0 <= mine["waits"] - count <= 8, f"thread {tid}: {mine['waits']} waits of {count}")


def check_estimate(snapshot):
    """The naps' row stands for nearly all of the threads' sleep."""
    below = snapshot["sample_below_ns"]
    naps = [row for row in rows_with(snapshot, "nap")]
    exact = snapshot["totals"]["blocked_ns"] + snapshot["totals"]["runnable_ns"]
    sampled = sum(row.get("sampled_ns") or 0 for row in naps)
    sigma = math.sqrt(max(sampled, 1) * below)
    check(sampled > 0.3 * row_sum(naps), f"most of the naps were sampled: {sampled} ns")
    # The wait between storms has a row of its own.
    other = row_sum([row for row in rows_with(snapshot, "pthread_barrier_wait")])
    check(abs(row_sum(naps) + other - exact) < 5 * sigma + 0.02 * exact,
          f"naps: {row_sum(naps)} ns, others {other}, of {exact}; sigma {sigma:.0f}")


def check_said(daemon, span):
    text = daemon.ctl("snapshot", "offcpu", "--window", "10s", "--idle").out
    flat = re.sub(r"\s+", " ", text)
    line = (r"cost stackd took [\d.]+ % of a CPU \(budget [\d.]+ %\).*; waits under \S+ \S+ are "
            "sampled")
    check(re.search(line, flat), f"the cost line says it: {text[:1500]}")
    check("~" in text, "estimates are marked")
    check("[budget] cpu allows" in flat, f"a note says why: {text[:2500]}")
    flat = re.sub(r"\s+", " ", daemon.ctl("status").out)
    check(re.search(r"waits under \S+ \S+ are sampled, since", flat), f"status says it: {flat}")
    overview = daemon.call("io.stackd.Overview", **span)
    check(overview, "overview answers")


need_live()
daemon = daemon_with_file("1000%")
storms = Storms()
wait_until(lambda: budget_of(daemon).get("hooks_ns"), 60, "a measurement")
before = cost_of(daemon, 5)[0]
storms.begin(7)
time.sleep(1)
walks, hooks, threads = cost_of(daemon, 5)
storms.switches()
print(f"without a limit, walks took {before:.1%} of a CPU before the storm; in it, walks "
      f"{walks:.1%}, hooks {hooks:.1%}, threads {threads:.1%}")
check(walks > 0.02, "the storm costs something")
limit = max(hooks + threads + walks / 4, 0.04)
configure(daemon, f"{100 * limit / CPUS:.4f}%")
daemon.process.send_signal(signal.SIGHUP)
wait_until(lambda: abs(daemon.status()["budget_ns"] / NS_PER_S - limit) < 0.01, 30, "the reload")

start = daemon.cut()
begun = time.time_ns()
storms.begin(16)
wait_until(lambda: budget_of(daemon).get("sample_below_ns"), patience(8), "samples")
took = (time.time_ns() - begun) / NS_PER_S
print(f"sampled after {took:.1f} s", flush=True)
time.sleep(7)
states = []
for _ in range(4):
    time.sleep(1)
    states.append(budget_of(daemon))
state = states[-1]
check(state["sample_below_ns"] > NAP_US * 1000, f"the length is above that of the naps: {state}")
left = min(b["walks_ns"] for b in states) / NS_PER_S
check(left < max(walks / 2, limit / 4), f"walks fell from {walks:.1%} to {left:.1%} of a CPU")
check(begun <= state["since"]["ns"] <= time.time_ns(), "status says since when")
switches = storms.switches()
end = daemon.cut()
span = {"since_ns": start, "until_ns": end}
check_said(daemon, span)
snapshot = daemon.call("io.stackd.Snapshot", probe="offcpu", idle=True, top=0,
                       filter={"pids": [storms.pid]}, **span)
check_sums(daemon, snapshot, switches, span)
check_estimate(snapshot)

# With a limit that the rest of a busy host does not reach, the length is halved step by step.
configure(daemon, "1000%")
daemon.process.send_signal(signal.SIGHUP)
lengths = {state["sample_below_ns"]}


def is_over():
    lengths.add(budget_of(daemon).get("sample_below_ns") or 0)
    return 0 in lengths


wait_until(is_over, 120, "all waits again")
check(len(lengths) > 2, f"step by step: {sorted(lengths)}")
check("are sampled" not in daemon.ctl("status").out, "status does not say it any more")
log = daemon.log()
check(log.count("are sampled from now on") == 1, f"the log says it once: {log}")
check(log.count("no wait is sampled any more") == 1, "the log says the end")
after = daemon.cut()
wait_until(lambda: daemon.cut() > after + 2 * NS_PER_S, 30, "a window without samples")
later = daemon.call("io.stackd.Snapshot", probe="offcpu", top=1, since_ns=after + NS_PER_S // 2)
check(later.get("sample_below_ns") is None, f"new windows have every wait: {later['coverage']}")
storms.end()
check(daemon.stop() == 0, "the daemon ends with 0 at SIGTERM")
finish()
