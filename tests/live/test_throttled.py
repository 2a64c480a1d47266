# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows a thread whose control group has used up its CPU quota: that time is shown apart from its
other waits for a CPU, and is what the kernel itself counts for the group.
"""

import os
import time

import harness as h
from quota import Quota

h.need_live()
NS_PER_MS = 1_000_000
OVER_ENDS = 190 * NS_PER_MS


def cut_between():
    """Cuts; returns its instant, and the kernel's count before and after it, because a cut may take
    long."""
    before = quota.throttled_ns()
    return daemon.cut(), before, quota.throttled_ns()


quota = Quota(5 * NS_PER_MS)
daemon = h.Daemon("window.length=500ms")
free = h.Program("prog_spinners", 1).ready()
held = h.Program("prog_spinners", 1).ready()
quota.add(held.pid)
os.sched_setaffinity(free.pid, {0})
os.sched_setaffinity(held.pid, {max(os.sched_getaffinity(0))})
for program in (free, held):
    program.go().read_until("spinning")
# The group uses up a first period before the measurement.
time.sleep(0.3)
start, *before = cut_between()
time.sleep(4)
end, *after = cut_between()
wall, least, most = end - start, after[0] - before[1], after[1] - before[0]
SPAN = [word for name, ns in (("--since", start), ("--until", end))
        for word in (name, f"@{ns // h.NS_PER_S}.{ns % h.NS_PER_S:09}")]


def snapshot(pid, *args):
    return daemon.ctl_json("snapshot", "offcpu", *SPAN, "-p", pid, *args)


h.check(least > wall / 50, f"the group was throttled for some time: {least} of {wall} ns")
reply = snapshot(held.pid)
totals = reply["totals"]
# A period may extend over either end.
h.check(least * 0.98 - OVER_ENDS <= totals["throttled_ns"] <= most * 1.02 + OVER_ENDS,
        f"throttled time: {totals['throttled_ns']} ns, the kernel counts {least} to {most}")
h.check(totals["throttled_ns"] <= totals["runnable_ns"], "it is a part of the runnable time")
rows = [r for r in reply["rows"] if r["throttled_ns"] > 0]
h.check_sum(h.row_sum(rows, "throttled_ns"), totals["throttled_ns"], 0.01, "the rows add up")
h.check(all(r["state"] == "R" for r in rows), "it was ready: R")
h.check(all(r["throttled_ns"] <= r["runnable_ns"] for r in reply["rows"]),
        "it is part of the runnable time in each row")
spin = [r for r in rows if any("spin" in name for name in h.frame_names(r))]
h.check(h.row_sum(spin, "throttled_ns") > 0.9 * least,
        "most of it is at the stack that was throttled")

other = snapshot(free.pid)["totals"]["throttled_ns"]
h.check(other == 0, f"a process without a quota is not throttled: {other}")

by_thread = snapshot(held.pid, "--by", "thread")["rows"]
h.check_sum(h.row_sum(by_thread, "throttled_ns"), totals["throttled_ns"], 0.01,
             "rows by thread add up, too")
by_comm = snapshot(held.pid, "--by", "comm")["rows"]
h.check_sum(h.row_sum(by_comm, "throttled_ns"), totals["throttled_ns"], 0.01,
             "rows by comm add up, too")

text = daemon.ctl("snapshot", "offcpu", *SPAN, "-p", held.pid).out
h.check("R throttled: its cgroup's CPU quota is used up" in text, "text: the row gives the state")
h.check("no CPU quota left in its cgroup" in text, "text: the sum says how much of it that is")
text = daemon.ctl("snapshot", *SPAN, "-p", held.pid).out
h.check("\nthrottled" in text, f"the overview has it apart: {text}")
text = daemon.ctl("snapshot", "offcpu", *SPAN, "-p", free.pid).out
h.check("throttled" not in text, "text: it is not mentioned where it is 0")

# Throttled time is counted in waits that are left to chance, too.
daemon.stop()
daemon = h.Daemon("window.length=500ms", "probe.offcpu.sample_below=1s")
start, *before = cut_between()
time.sleep(4)
end, *after = cut_between()
least, most = after[0] - before[1], after[1] - before[0]
reply = daemon.call("io.stackd.Snapshot", probe="offcpu", since_ns=start, until_ns=end,
                    filter={"pids": [held.pid]}, idle=True)
found = reply["totals"]["throttled_ns"]
h.check(least * 0.98 - OVER_ENDS <= found <= most * 1.02 + OVER_ENDS,
        f"sampled: {found} ns throttled, the kernel counts {least} to {most}")
found = h.row_sum(reply["rows"], "throttled_ns")
h.estimate_least(found, least * 0.5, f"sampled: the rows have {found} ns of it")
more = [(r["throttled_ns"], r["runnable_ns"], r["state"]) for r in reply["rows"] if r["throttled_ns"] > r["runnable_ns"]]
h.check(not more, f"sampled: it is part of the runnable time: {more}")

for program in (free, held):
    program.kill()

# Before 6.18 a queue that is out of quota also holds back threads that have not run yet.
if [int(n) for n in os.uname().release.split("-")[0].split(".")[:2]] < [6, 18]:
    shell = h.spawn(["/bin/sh", "-c", "while :; do (:); done"])
    quota.add(shell.pid)
    os.sched_setaffinity(shell.pid, {max(os.sched_getaffinity(0))})
    start = daemon.cut()

    def new_throttled():
        reply = daemon.call(
            "io.stackd.Snapshot",
            probe="offcpu",
            since_ns=start,
            until_ns=daemon.cut(),
            filter={"comm": "sh"},
            idle=True,
        )
        new = [r for r in reply["rows"] if "new_thread" in r.get("kernel", {}).get("flags", ())]
        return h.row_sum(new, "throttled_ns")

    h.wait_until(lambda: new_throttled() > 0, "new threads that are held back")
    h.stop_process(shell)
h.finish()
