# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that windows have the pressure that the kernel counts: for the host and for a control group
whose two threads share one CPU; that the sums over windows from memory and from disk are the same;
and that what cannot be read is said.
"""

import atexit
import contextlib
import os
import re
import sqlite3
import time

import harness as h

h.need_live()
if not os.path.exists("/proc/pressure/cpu"):
    h.skip("this kernel has no PSI")
root = h.cgroup_root()
if not root or not os.path.exists(f"{root}/cpu.pressure"):
    h.skip("this host has no pressure files in cgroup v2")
UNIT = f"stackd-pressure-{os.getpid()}.service"
group = os.path.join(root, UNIT)
RESOURCES = ("cpu", "io", "memory")


def totals_ns(path, suffix=""):
    """Returns {(resource, kind): total in ns} of the files in a directory."""
    totals = {}
    for resource in RESOURCES:
        with open(f"{path}/{resource}{suffix}", encoding="ascii") as f:
            for line in f:
                kind, *fields = line.split()
                totals[resource, kind] = int(fields[-1].removeprefix("total=")) * 1000
    return totals


def cut_between():
    """Cuts; returns its instant, and what the kernel counted before and after it, with the time of
    either reading outside of which the daemon did not read."""
    read = lambda: (totals_ns("/proc/pressure"), totals_ns(group, ".pressure"))
    before = (*read(), time.monotonic_ns())
    cut, now = daemon.cut(), time.monotonic_ns()
    return cut, before, (*read(), now)


def check_stalls(stalls, before, after, text):
    """Checks that each stall lies between the least and the most that the kernel counted."""
    for resource in RESOURCES:
        for kind in ("some", "full"):
            if (resource, kind) not in before[0]:
                continue
            key = resource, kind
            least, most = after[0][key] - before[1][key], after[1][key] - before[0][key]
            ns = stalls[resource][f"{kind}_ns"]
            h.check(least <= ns <= most, f"{text}: {resource} {kind}: {ns} of {least} to {most}")


def unit_of(reply):
    found = [u for u in reply["pressure"]["units"] if u["cgroup"] == f"/{UNIT}"]
    return found[0] if found else None


os.mkdir(group)
atexit.register(os.rmdir, group)
daemon = h.Daemon("window.length=500ms")
CPU = max(os.sched_getaffinity(0))
spinners = h.Program("prog_spinners", 2, CPU).ready()
with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
    f.write(str(spinners.pid))
spinners.go().read_until("spinning")
start, *before = cut_between()
h.wait_until(lambda: daemon.cut() > start + 3 * h.NS_PER_S, "three seconds")
end, *after = cut_between()
SPAN = {"since_ns": start, "until_ns": end}
host = [[b[0] for b in before], [a[0] for a in after]]
unit = [[b[1] for b in before], [a[1] for a in after]]

reply = daemon.call("io.stackd.Snapshot", probe="offcpu", top=1, **SPAN)
pressure = reply["pressure"]
h.check("missing" not in pressure and "units_missing" not in pressure, "nothing is missing")
# The daemon reads the totals some time after a cut, on a busy host.
least, most = after[0][2] - before[1][2], after[1][2] - before[0][2]
h.check(least <= pressure["length_ns"] <= most,
        f"the pressure is that of the range: {pressure['length_ns']} of {least} to {most} ns")
check_stalls(pressure, *host, "host")
mine = unit_of(reply)
if h.check(mine is not None, f"the unit is there: {[u['cgroup'] for u in pressure['units']]}"):
    check_stalls(mine, *unit, "unit")
    # Two threads on one CPU: one of them waits at any time.
    h.estimate_least(mine["cpu"]["some_ppm"], 900_000, f"its threads share a CPU: {mine['cpu']}")
    want = mine["cpu"]["some_ns"] / pressure["units_length_ns"] * 1e6
    h.check(abs(mine["cpu"]["some_ppm"] - want) <= 1, f"ppm are the share of time: {want}")
    most = [max(u[r]["some_ns"] for r in RESOURCES) for u in pressure["units"]]
    h.check(most == sorted(most, reverse=True), f"the most pressure comes first: {most}")
for probe in ("oncpu", "iolat"):
    other = daemon.call("io.stackd.Snapshot", probe=probe, top=1, **SPAN)["pressure"]
    share = pressure["cpu"]["some_ppm"]
    h.check_near(other["cpu"]["some_ppm"], share, 0, f"{probe} has that of the host, too", 50_000)
    h.check(not other["units"], f"{probe} has no units")

text = daemon.ctl("snapshot", "--window", "2s")
h.check(re.search(rf"^CPUs .*; pressure cpu \d.*most:\s.*{UNIT}\s+cpu\s+\d", text.out, re.M | re.S),
        f"the overview says who presses: {text.out[:1200]}")
both = daemon.ctl_json("snapshot", "--window", "2s")
h.check(unit_of(both["waits"]) is not None, "json has it")
source = daemon.status()["pressure"]
h.check(source["units"] >= 1 and "missing" not in source, f"status says what is read: {source}")
limit = [x for x in daemon.status()["limits"] if x["name"] == "pressure.max_units"][0]
h.check(limit["value"] == 128 and limit["hits"] == 0, f"the number of units has a limit: {limit}")

# A copy of the database, served by another daemon, has the same pressure. Windows on disk may be
# joined from several that clients cut, and then the answer covers a little more than was asked for.
def is_stored():
    with contextlib.closing(sqlite3.connect(daemon.store)) as db:
        newest = db.execute("SELECT max(end_real_ns) FROM windows").fetchone()[0]
    return newest is not None and newest >= end


h.wait_until(is_stored, "the range is on disk")
again = h.Daemon()
again.stop()
again.argv[again.argv.index(f"store.path={again.store}")] = f"store.path={daemon.dir}/copy.db"
again.argv.append("--serve-only")
with contextlib.closing(sqlite3.connect(daemon.store)) as db:
    with contextlib.closing(sqlite3.connect(f"{daemon.dir}/copy.db")) as copy:
        db.backup(copy)
again.start()
reply = again.call("io.stackd.Snapshot", probe="offcpu", top=1, **SPAN)
stored, used = reply["pressure"], reply["coverage"]["used"]
h.check(used["start"]["ns"] <= start and used["end"]["ns"] >= end, f"the disk has it all: {used}")
pressure = daemon.call("io.stackd.Snapshot", probe="offcpu", top=1,
                       since_ns=used["start"]["ns"], until_ns=used["end"]["ns"])["pressure"]
for resource in RESOURCES:
    h.check(stored[resource] == pressure[resource], f"disk: {resource}: {stored[resource]}")
h.check([u["cgroup"] for u in stored["units"]] == [u["cgroup"] for u in pressure["units"]],
        "disk: the units are the same")
h.check("pressure" not in again.status(), "a daemon that only serves reads no pressure")
again.stop()

# A limit on the units, and none of them.
few = h.Daemon("pressure.max_units=1")
other = f"{group}-2"
os.mkdir(other)
atexit.register(os.rmdir, other)
few.cut()
limit = [x for x in few.status()["limits"] if x["name"] == "pressure.max_units"][0]
h.check(limit["hits"] >= 1, f"units beyond the limit are counted: {limit}")
h.check("units are not read: [pressure] max_units" in few.ctl("status", "-v").out, "status says so")
few.stop()
spinners.kill()
h.finish()
