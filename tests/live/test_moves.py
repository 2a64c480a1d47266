#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that a process is in the control group in which it was at the time: before it was moved in the
old one, from then on in the new one, in answers from memory and from disk."""

from harness import *

need_live()
NAMES = ["a", "b"]
GROUPS = [f"/stackd-moves-{os.getpid()}-{name}" for name in NAMES]
LOOP = [sys.executable, "-c", "import time\nwhile 1: time.sleep(0.005)"]
for group in GROUPS:
    os.mkdir(cgroup_root() + group)
    atexit.register(os.rmdir, cgroup_root() + group)


def move(pid, group):
    with open(cgroup_root() + group + "/cgroup.procs", "w", encoding="ascii") as f:
        f.write(str(pid))


def pids(probe, times, group):
    """Returns the processes that have rows in the group between two times."""
    result = daemon.ctl("snapshot", probe, "--since", at(times[0]), "--until", at(times[1]), "--cgroup", group,
                        "--by", "process", "-n", "0", "--idle", "--format", "json")
    if result.code == 4:
        return set()
    rows = json.loads(result.out)["rows"]
    check({row["process"]["cgroup"] for row in rows} == {group}, f"rows are of {group}: {rows}")
    return {row["process"]["pid"] for row in rows}


daemon = Daemon("window.length=1s")
slept = spawn(LOOP)
spun = spawn([sys.executable, "-c", "while 1: pass"])
MOVED = {"offcpu": slept.pid, "oncpu": spun.pid}
times = {}
for name, group in zip(NAMES, GROUPS):
    for pid in MOVED.values():
        move(pid, group)
    # Windows of up to a second, written together, may have both groups.
    begun = max(daemon.cut(probe) for probe in MOVED) + 2 * NS_PER_S
    wait_until(lambda: time.time_ns() > begun + 2 * NS_PER_S, "windows in one group")
    times[name] = begun, begun + NS_PER_S


def check_answers(text):
    for probe, pid in MOVED.items():
        for window in NAMES:
            for name, group in zip(NAMES, GROUPS):
                found = pids(probe, times[window], group)
                check((pid in found) == (window == name),
                      f"{text}: {probe} of the time in {window} has {found} in {name}, moved was {pid}")


check_answers("in memory")
check(daemon.stop() == 0, "the daemon ends")
daemon.start()
check_answers("on disk")


def sleeper(group):
    """Returns a process that sleeps again and again in the group."""
    process = spawn(LOOP)
    move(process.pid, group)
    return process


def is_recorded(process):
    rows = daemon.ctl_json("snapshot", "group", "--by", "process", "-n", "0", "--idle")["rows"]
    return process.pid in {row["process"]["pid"] for row in rows}


# A restart of a unit removes its cgroup and makes another one, which the session follows.
GROUP = GROUPS[0] + "/a.service"
os.mkdir(cgroup_root() + GROUP)
atexit.register(lambda: os.path.exists(cgroup_root() + GROUP) and os.rmdir(cgroup_root() + GROUP))
first = sleeper(GROUP)
result = daemon.ctl("start", "offcpu", "--unit", "a.service", "--cgroup", GROUP, "--name", "group")
check(result.code == 0, f"a session of the unit starts: {result}")
wait_until(lambda: is_recorded(first), "the unit to be recorded")
stop_process(first)
wait_until(lambda: not open(cgroup_root() + GROUP + "/cgroup.procs", encoding="ascii").read(), "its end")
os.rmdir(cgroup_root() + GROUP)
os.mkdir(cgroup_root() + GROUP)
wait_until(lambda: "was made anew" in daemon.log(), "the new cgroup to be seen")
second = sleeper(GROUP)
wait_until(lambda: is_recorded(second), "the unit to be recorded after its restart")
stop_process(second)

# Of two units with the same name, as those of two users, neither is chosen.
other = cgroup_root() + GROUPS[1] + "/a.service"
os.mkdir(other)
atexit.register(os.rmdir, other)
result = daemon.ctl("start", "offcpu", "--unit", "a")
check(result.code != 0 and GROUP in result.err and GROUPS[1] + "/a.service" in result.err,
      f"both are named: {result}")
finish()
