#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A storm of waits that cost more than [budget] cpu allows: they are sampled within seconds, the
cost of stacks keeps to what the rest leaves of the budget, no sum loses an event, and afterwards all
waits are recorded again. Status, the log, the text and JSON say so. What the storm costs without a
limit is measured first, as machines differ."""

from storms import *

THREADS, NAP_US = 16, 150
CPUS = os.cpu_count()


def cost_of(daemon, seconds):
    """Returns the most that walks, hooks and threads cost in some seconds, as shares of a CPU."""
    seen = []
    for _ in range(seconds):
        time.sleep(1)
        seen.append(budget_of(daemon))
    check(not any(b.get("sample_below_ns") for b in seen), "without a limit nothing is sampled")
    return [max(b.get(key, 0) for b in seen) / NS_PER_S
            for key in ("walks_ns", "hooks_ns", "threads_ns")]


def check_said(daemon, span):
    text = daemon.ctl("snapshot", "offcpu", "--window", "10s", "--idle", "-v").out
    flat = re.sub(r"\s+", " ", text)
    line = (r"cost stackd took [\d.]+ % of a CPU \(budget [\d.]+ %\).*; waits under \S+ \S+ are "
            "sampled")
    check(re.search(line, flat), f"the cost line says it: {text[:1500]}")
    check("~" in text, "estimates are marked")
    check("[budget] cpu allows" in flat, f"a note says why: {text[:2500]}")
    flat = re.sub(r"\s+", " ", daemon.ctl("status", "-v").out)
    check(re.search(r"waits are sampled since .*, now those under", flat), f"status says it: {flat}")
    overview = daemon.call("io.stackd.Overview", **span)
    check(overview, "overview answers")


def used_share(budget, limit):
    """Returns which share of what the rest leaves of the budget stacks took in a second; they may
    always take a quarter of the budget."""
    left = limit * NS_PER_S - budget["hooks_ns"] - budget["threads_ns"]
    return budget["walks_ns"] / max(left, limit * NS_PER_S / 4)


def wait_for_calm(daemon, limit, lengths):
    """Waits until the storm is forgotten. Each length is left after 3 s, unless stacks of other waits
    on the host would take more than a fifth of what they may at the next one."""
    begun = busy = time.monotonic()
    while 0 not in lengths:
        time.sleep(0.5)
        budget, now = budget_of(daemon), time.monotonic()
        lengths.add(budget.get("sample_below_ns") or 0)
        if used_share(budget, limit) > 0.09:
            busy = now
        if now - busy > HANG_SECONDS:
            raise TimeoutError(f"all waits are not recorded again: {budget}")
        if now - begun > 2 * HANG_SECONDS:
            print("other waits on this host cost too much to record all of them")
            return
    print(f"all waits are recorded again after {time.monotonic() - begun:.0f} s")


def check_burst(daemon, limit):
    """A storm that was sampled keeps all its stacks as a burst, for which a greater budget has saved."""
    set_budget(daemon, "1000%", 10 * CPUS, burst=10)
    time.sleep(5)
    set_budget(daemon, f"{100 * limit / CPUS:.4f}%", limit, burst=10)
    span = {"since_ns": daemon.cut()}
    storms.begin(4)
    switches = storms.switches()
    span["until_ns"] = daemon.cut()
    snapshot = daemon.call("io.stackd.Snapshot", probe="offcpu", idle=True, top=0,
                           filter={"pids": [storms.pid]}, **span)
    cost = snapshot["cost"]
    used = (cost["cpu_ns"] + cost["bpf_ns"]) / cost["budget_ns"]
    estimate(not cost.get("braked") and snapshot.get("sample_below_ns") is None,
             f"a burst that takes {used:.1f} times the budget keeps its stacks: {cost}")
    check(sum(row["count"] for row in rows_with(snapshot, "nap")) <= sum(switches.values()), "each nap once at most")


need_live()
daemon = daemon_with_file("1000%", "window.length=2s")
storms = Storms(THREADS, NAP_US)
wait_until(lambda: budget_of(daemon).get("hooks_ns"), "a measurement")
before = cost_of(daemon, 5)[0]
storms.begin(7)
time.sleep(1)
walks, hooks, threads = cost_of(daemon, 5)
storms.switches()
print(f"without a limit, walks took {before:.1%} of a CPU before the storm; in it, walks "
      f"{walks:.1%}, hooks {hooks:.1%}, threads {threads:.1%}")
check(walks > 0.02, "the storm costs something")
limit = max(hooks + threads + walks / 4, 0.04)
begun = time.time_ns()
set_budget(daemon, f"{100 * limit / CPUS:.4f}%", limit)

start = daemon.cut()
stormed = time.time_ns()
storms.begin(16)
wait_until(lambda: budget_of(daemon).get("sample_below_ns"), "samples")
took = (time.time_ns() - stormed) / NS_PER_S
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
shares = [used_share(b, limit) for b in states]
check(sorted(shares)[1] < 1.2, f"of what they may take, walks took {shares}")
# The old storm may have been over the new budget before the next one began.
check(begun <= state["since"]["ns"] <= time.time_ns(), f"status says since when: {state['since']}")
switches = storms.switches()
end = daemon.cut()
span = {"since_ns": start, "until_ns": end}
check_said(daemon, span)
snapshot = daemon.call("io.stackd.Snapshot", probe="offcpu", idle=True, top=0,
                       filter={"pids": [storms.pid]}, **span)
check_sums(daemon, snapshot, switches, span)
check_estimate(snapshot)

# The length is halved step by step, at the latest with a limit that a busy host does not reach.
lengths = {state["sample_below_ns"]}
wait_for_calm(daemon, limit, lengths)
set_budget(daemon, "1000%", 10 * CPUS)


def is_over():
    length = budget_of(daemon).get("sample_below_ns") or 0
    lengths.add(length)
    return not length


wait_until(is_over, "all waits again")
check(len(lengths) > 2, f"step by step: {sorted(lengths)}")
check("are sampled" not in daemon.ctl("status", "-v").out, "status does not say it any more")
log = daemon.log()
begins = log.count("are sampled from now on")
# Other waits on the host may have begun it again before the new limit.
check(begins in (1, 2), f"the log says it once: {log}")
check(log.count("no wait is sampled any more") == begins, "the log says the end")
# A wait that was picked in a window with a length may be recorded in the next one, which says that length, too.
daemon.cut()
after = daemon.cut()
wait_until(lambda: daemon.cut() > after + 2 * NS_PER_S, "a window without samples")
later = daemon.call("io.stackd.Snapshot", probe="offcpu", top=1, since_ns=after + NS_PER_S // 2)
check(later.get("sample_below_ns") is None, f"new windows have every wait: {later['coverage']}")
check_burst(daemon, limit)
storms.end()
check(daemon.stop() == 0, "the daemon ends with 0 at SIGTERM")
finish()
