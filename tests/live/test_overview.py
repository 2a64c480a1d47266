# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that the overview puts each program of known truth where its time went, and that rows
grouped by a common field add up to the rows they are made of.
"""

import atexit
import os
import re
import subprocess

import harness as h

h.need_live()

daemon = h.Daemon("window.length=1s", "probe.oncpu.frequency=199")
spinners = h.Program("prog_spinners", 3 * os.cpu_count()).ready().go()
spinners.read_until("spinning")
sleeper = h.spawn(
    ["python3", "-c", "import time\nwhile True: time.sleep(0.05)"], stdout=subprocess.DEVNULL
)

# A program in the control group of a unit.
UNIT = f"stackd-test-{os.getpid()}.service"
group = os.path.join(h.cgroup_root(), UNIT)
os.mkdir(group)
atexit.register(os.rmdir, group)
LOOP = "import time\nwhile True: time.sleep(0.01); sum(range(100000))"
of_unit = h.spawn(
    ["sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh", "python3", "-c", LOOP]
)
start = daemon.cut()
h.wait_until(lambda: daemon.cut() > start + 4 * h.NS_PER_S, "four seconds")


def part(text, name):
    """Returns the lines of one part of the overview: its head and the lines below it."""
    found = re.search(rf"^{name} +\S+ \S+(?: by samples)?, \d+ of \d+ stacks?\n((?:.+\n)*)", text, re.M)
    return found[1] if found else ""


def overview(*args):
    result = daemon.ctl("snapshot", "--window", "4s", *args)
    h.check(result.code == 0 and not result.err, f"snapshot {args}: {result}")
    for label in ("time", "CPUs", "on CPU", "runnable", "blocked"):
        h.check(re.search(rf"^{label} +", result.out, re.M), f"snapshot {args}: {label}")
    return result.out


text = overview()
h.check(f"(pid {spinners.pid})" in part(text, "on CPU"), f"on CPU: the spinners: {text}")
h.check(f"(pid {spinners.pid})" in part(text, "runnable"), f"runnable: too many spin: {text}")
h.check(len(re.findall(r"^\S.* \(.*\) .* %$", part(text, "blocked"), re.M)) <= 5,
        "5 stacks at most")
text = overview("-p", sleeper.pid)
h.check(f"(pid {sleeper.pid})" in part(text, "blocked"), f"blocked: the sleeper: {text}")
h.check(f"(pid {spinners.pid})" not in text, "-p: no other process")
asleep = h.Program("prog_sleeper").ready()
start = daemon.cut()
h.wait_until(lambda: daemon.cut() > start + 5 * h.NS_PER_S, "five seconds in which it sleeps")
text = overview("-p", asleep.pid)
h.check(re.search("^on CPU +no samples$", text, re.M),
        f"a sleeping process is in no sample: {text}")
result = daemon.ctl("snapshot", "oncpu", "--window", "4s", "-p", asleep.pid)
h.check(result.code == 4 and " exists, but was in no sample" in result.err, f"it says so: {result}")
listed = [w["rows"] for w in daemon.call("io.stackd.Windows", probe="oncpu")["windows"]]
h.check(max(listed) > 0, f"windows say how many rows of samples they have: {listed}")
text = overview("--unit", UNIT)
for name in ("on CPU", "blocked"):
    h.check(f"(pid {of_unit.pid})" in part(text, name), f"--unit: {name}: its process: {text}")
h.check(set(re.findall(r"\(pid (\d+)\)", text)) == {str(of_unit.pid)}, "--unit: no other process")
text = overview("-n", "1")
h.check(text.count(f"(pid {spinners.pid})") == 2, f"-n 1: one stack of each part: {text}")
both = daemon.ctl_json("snapshot", "--window", "4s", "-p", spinners.pid)
h.check({r["process"]["pid"] for r in both["waits"]["rows"]} == {spinners.pid}, "json: its waits")
spin = h.rows_with(both["samples"], "spin")
h.check(h.row_sum(spin) > 0, f"json: its samples: {h.row_sum(spin)} ns")
h.check("throttled_ns" in both["waits"]["totals"], "json: throttled time is apart")
end = min(daemon.cut(probe) for probe in ("offcpu", "oncpu")) // h.NS_PER_S
RANGE = ["--since", f"@{end - 4}", "--until", f"@{end}"]
both = daemon.ctl_json("snapshot", "-p", spinners.pid, *RANGE)
towers = h.parse_folded(daemon.ctl("snapshot", "-f", "-p", spinners.pid, *RANGE).out)
for tower, want in (
    ("on CPU", h.row_sum(both["samples"]["rows"])),
    ("blocked", h.row_sum(both["waits"]["rows"], "blocked_ns")),
):
    have = sum(us for stack, us in towers.items() if stack.startswith(f"{tower};"))
    h.check(abs(have - want / 1000) <= 1, f"folded: {tower}: {have} us of {want} ns")
spinning = sum(us for stack, us in towers.items() if re.match(r"on CPU;prog_spin.*;spin$", stack))
h.check(spinning > 0.9 * h.row_sum(both["samples"]["rows"]) / 1000, f"folded: in spin(): {spinning}")
result = daemon.ctl("snapshot", "--unit", "no-such-unit")
h.check(result.code == 4 and not result.out, f"a unit without processes: {result}")
result = daemon.ctl("snapshot", "-p", "4194000")
h.check(result.code == 4 and not result.out, f"no process: {result}")

# Rows grouped by a common field, over a range that stays the same.
end = min(daemon.cut(probe) for probe in ("offcpu", "oncpu")) // h.NS_PER_S
RANGE = ["--since", f"@{end - 4}", "--until", f"@{end}"]
for probe in ("offcpu", "oncpu"):
    stacks = daemon.ctl_json("snapshot", probe, "--idle", *RANGE)["rows"]
    for by in ("comm", "cgroup", "unit", "container", "user", "module", "function"):
        rows = daemon.ctl_json("snapshot", probe, "--idle", "--by", by, *RANGE)["rows"]
        keys = [(r["key"], r["idle"], r.get("state") == "-") for r in rows]
        h.check(0 < len(rows) < len(stacks), f"{probe} by {by}: {len(rows)} of {len(stacks)}")
        h.check(len(set(keys)) == len(keys), f"{probe} by {by}: no key is there twice")
        for field in ("total_ns", "count"):
            have, want = (sum(r[field] for r in x) for x in (rows, stacks))
            h.check(have == want, f"{probe} by {by}: {field} {have} of {want}")
        h.check(
            [r["total_ns"] for r in rows] == sorted((r["total_ns"] for r in rows), reverse=True),
            f"{probe} by {by}: the most time comes first",
        )
        named = {key for key, *_ in keys}
        if by == "comm":
            h.check("prog_spinners" in named, f"{probe} by comm: {named}")
        if by == "function" and probe == "oncpu":
            h.check(rows[0]["key"] == "spin" or "spin" in named, f"the spinners' loop: {named}")
        if by == "module":
            h.check(any("spinners" in k for k in named), f"{probe} by module: {named}")
    args = ["snapshot", probe, "--idle", "--by", "comm", *RANGE]
    everything, top = daemon.ctl_json(*args)["rows"], daemon.ctl_json(*args, "-n", "1", "--reverse")
    h.check([r["key"] for r in top["rows"]] == [everything[0]["key"]], f"{probe}: -n 1")
    h.check(top["rest"]["rows"] == len(everything) - 1, f"{probe}: the rest: {top['rest']}")
text = daemon.ctl("snapshot", "offcpu", "--by", "comm", "--idle", "-n", "0", *RANGE)
h.check(text.code == 0 and re.search(r"^python3 +\S", text.out, re.M), f"text: {text} {text.out[:500]}")
folded = daemon.ctl("snapshot", "oncpu", "-f", "--by", "comm", *RANGE)
h.check(re.search(r"^prog_spinners \d+$", folded.out, re.M), f"folded: {folded} {folded.out[:200]}")

h.finish()
