#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A storm of waits before the governor, which measures once a second, has begun to act: the brakes
of the CPUs leave short waits to chance, no sum loses an event, the estimates are right, and status,
the log and the answer say so. That the brakes bound the cost is tested by live_rotation."""

from storms import *

THREADS, NAP_US = 32, 120


def storms_on_two_cpus():
    """On more CPUs, each would have too few naps for its brake to act."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[:2])
    program = Storms(THREADS, NAP_US)
    os.sched_setaffinity(0, every)
    return program


def estimate(reply):
    """Returns the time of the naps that began and ended asleep, and its standard deviation."""
    naps = [row for row in rows_with(reply, "nap") if row["state"] == "S"]
    sampled = sum(row.get("sampled_ns") or 0 for row in naps)
    return row_sum(naps), math.sqrt(sampled * reply["sample_below_ns"])


def check_wakes(daemon, snapshot, span):
    """offwake has brakes of its own, and its estimate agrees with that of offcpu."""
    end = daemon.cut("offwake")
    wakes = daemon.call("io.stackd.Snapshot", probe="offwake", idle=True, top=0,
                        filter={"pids": [storms.pid]}, since_ns=span["since_ns"], until_ns=end)
    waits, wakes_off = estimate(snapshot), estimate(wakes)
    check(wakes["cost"]["braked"] > 1000, f"offwake's brakes acted: {wakes['cost']}")
    check(wakes_off[1] > 0, "offwake left naps to chance")
    check_near(wakes_off[0], waits[0], 0.03, "offwake: the naps add up to the time of offcpu",
               slack=5 * math.hypot(waits[1], wakes_off[1]))


need_live()
storms = storms_on_two_cpus()
# 4 % of a CPU is the least. In its first 10 s, the governor leaves the level as it is.
daemon = daemon_with_file("0.01%", "window.length=2s", "probe.offwake.enabled=yes")
wait_until(lambda: budget_of(daemon).get("braked") is not None, "the budget")
start = daemon.cut()
storms.begin(4)
switches = storms.switches()
end = daemon.cut()
span = {"since_ns": start, "until_ns": end}
snapshot = daemon.call("io.stackd.Snapshot", probe="offcpu", idle=True, top=0,
                       filter={"pids": [storms.pid]}, **span)
cost = snapshot["cost"]
print(f"{cost['braked']} waits left to chance, under {cost['brake_below_ns'] / 1000:.0f} us; "
      f"{sum(switches.values())} switches")
check(cost["braked"] > 1000, f"the brakes acted: {cost}")
check(cost["brake_below_ns"] > NAP_US * 1000, "the naps were shorter")
check(snapshot["sample_below_ns"] >= cost["brake_below_ns"], "the length is that of the answer")
check_sum(cost["budget_ns"], 0.04 * cost["limited_ns"], 0.001, "the budget is in the windows")
check(cost["limited_ns"] == cost["length_ns"], "all windows had a limit")
check_sums(daemon, snapshot, switches, span)
check_estimate(snapshot, 0.1)
check_wakes(daemon, snapshot, span)
text = re.sub(r"\s+", " ", daemon.ctl("snapshot", "offcpu", "--window", "10s", "--idle", "-v").out)
check(re.search(r"waits under .* are sampled, .* of them only as their CPU had too many", text),
      f"the cost line says it: {text[:1500]}")
check_until(lambda: "short waits and operations were left to chance in bursts" in
            re.sub(r"\s+", " ", daemon.ctl("status", "-v").out), "status says it")
check(daemon.log().count("a CPU had so many waits at once") == 1, "the log says it, once")

# A reload changes the budget of later windows; those before keep theirs.
set_budget(daemon, "off", None)
later = daemon.cut()
wait_until(lambda: daemon.cut() > later + 2 * NS_PER_S, "a window without a limit")
after = daemon.call("io.stackd.Snapshot", probe="offcpu", top=1, since_ns=later)["cost"]
check(after.get("budget_ns") is None and after.get("unknown_ns") is None, f"no limit: {after}")
check(after.get("braked") is None, f"the brakes are off: {after}")
again = daemon.call("io.stackd.Snapshot", probe="offcpu", top=1, **span)["cost"]
check(again["budget_ns"] == cost["budget_ns"], f"the old windows have their budget: {again}")
storms.end()
check(daemon.stop() == 0, "the daemon ends with 0 at SIGTERM")
finish()
