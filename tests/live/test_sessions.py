# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows ten sessions at the same time, each with a filter of its own: they hold what the data that
is always recorded holds under the same filter, and nothing of them is left in the kernel.
"""

import atexit
import concurrent.futures
import os
import signal
import subprocess
import time

import harness as h

h.need_live()


def sums(reply):
    rows = [row for row in reply["rows"] if row["state"] != "-"]
    return sum(r["count"] for r in rows), sum(r["total_ns"] for r in rows)


def counted(reply):
    """Returns an answer's waits and their time, with the number of its threads."""
    return (*sums(reply), reply["totals"]["threads"])


class Always:
    """What is always recorded, in the windows that a session's answer covers at least or at most."""

    def __init__(self, used, args):
        self.args, (start, end) = args, (used[edge]["ns"] for edge in ("start", "end"))
        windows = [(w["start"]["ns"], w["end"]["ns"])
                   for w in daemon.call("io.stackd.Windows", probe="offcpu")["windows"]]
        self.inner = [w for w in windows if w[0] >= start and w[1] <= end]
        self.outer = [w for w in windows if w[1] > start and w[0] < end]

    def counted(self, windows):
        edges = [(w[0] + w[1]) // 2 for w in (windows[0], windows[-1])]
        reply = daemon.ctl_json("snapshot", "offcpu", "--idle", *self.args, "--since", h.at(edges[0]),
                                "--until", h.at(edges[1]))
        used = reply["coverage"]["used"]
        h.check((used["start"]["ns"], used["end"]["ns"]) == (windows[0][0], windows[-1][1]),
                f"{self.args}: whole windows")
        return counted(reply)

    def check(self, reply, name):
        """A wait at the moment of a cut may be on either side of it, in each thread."""
        (count, total, _), least, most = (
            counted(reply), self.counted(self.inner), self.counted(self.outer))
        slack, slack_ns = 4 * most[2], 10_000_000 * most[2]
        for value, low, high, unit in ((count, least[0] - slack, most[0] + slack, "waits"),
                                       (total, least[1] - slack_ns, most[1] + slack_ns, "ns")):
            h.estimate_least(value, low, f"{name}: {value} {unit}, in the always-on data {low} at least")
            h.estimate_most(value, high, f"{name}: {value} {unit}, in the always-on data {high} at most")


# The shorter the windows are, the closer are the bounds for a session, whose windows are others.
daemon = h.Daemon("window.length=250ms", "window.min_length=100ms", "probe.offcpu.min_wait=20us")
daemon.cut()
before = daemon.started_objects()

# The load: processes that wait often, but not so often that a slow machine has no time for others.
IN_MACHINE = "STACKD_UNIT" in os.environ
WAITS = f"import time\nwhile True: time.sleep({0.01 if IN_MACHINE else 0.002})"
load = [h.spawn(["python3", "-c", WAITS], stdout=subprocess.DEVNULL) for _ in range(3)]
pid = load[0].pid


def start_in(cgroup):
    """Starts another process of the load, in a control group of its own from the start."""
    os.makedirs(cgroup)
    atexit.register(os.rmdir, cgroup)
    move = f'echo $$ > "{cgroup}/cgroup.procs" && exec "$@"'
    load.append(h.spawn(["sh", "-c", move, "sh", "python3", "-c", WAITS], stdout=subprocess.DEVNULL))
    return load[-1].pid


unified = h.cgroup_root()
GROUP, UNIT = f"stackd-test-{os.getpid()}", f"stackd-test-{os.getpid()}.service"
atexit.register(os.rmdir, os.path.join(unified, GROUP))
in_group = start_in(os.path.join(unified, GROUP, "inner"))
in_unit = start_in(os.path.join(unified, GROUP, UNIT))
filters = {
    "pid": ["-p", str(pid)],
    "pids": ["-p", f"{load[0].pid},{load[1].pid}"],
    "tid": ["-t", str(load[2].pid)],
    "user": ["-u"],
    "kernel": ["-k"],
    "sleeping": ["--state", "S"],
    "preempted": ["--state", "R"],
    "python": ["--comm", "python*"],
    "cgroup": ["--cgroup", f"/{GROUP}"],
    "unit": ["--unit", UNIT],
}
ids = {}
for name, args in filters.items():
    result = daemon.ctl("start", "offcpu", "--name", name, *args)
    h.check(result.code == 0 and result.out.strip().isdigit(), f"start {name}: {result}")
    ids[name] = result.out.strip()

# While sessions start and stop, the load gets less of the CPU: the compared range lies in between.
began = time.time_ns()
h.subject_sleep(3 if h.EVENTS_ONLY else 6)
RANGE = ["--since", f"@{began // 10**9 + 1}", "--until", f"@{time.time_ns() // 10**9}"]
for name in filters:
    daemon.call("io.stackd.Stop", session=ids[name])
sessions = {s.get("name"): s for s in daemon.call("io.stackd.Sessions")["sessions"]}
daemon.cut()
for name, args in filters.items():
    session = sessions[name]
    h.check("ended" in session and not session["lost"], f"{name}: ended, nothing lost")
    reply = daemon.ctl_json("snapshot", name, "--idle", *RANGE)
    count, _ = sums(reply)
    h.check(count > 0 or name == "preempted", f"{name}: {count} waits")
    if name in ("pid", "pids", "tid", "python", "cgroup", "unit"):
        Always(reply["coverage"]["used"], args).check(reply, name)
    tids = {row["process"]["pid"] for row in reply["rows"]}
    if name == "pid":
        h.check(tids == {pid}, f"{name}: it has only {pid}: {tids}")
    if name == "cgroup":
        h.check(tids == {in_group, in_unit}, f"{name}: it has those below {GROUP}: {tids}")
    if name == "unit":
        h.check(tids == {in_unit}, f"{name}: it has that of {UNIT}: {tids}")
    if name == "kernel":
        h.check(all(r["process"]["kernel"] for r in reply["rows"]), "kernel: kernel threads only")
    if name == "user":
        h.check(not any(r["process"]["kernel"] for r in reply["rows"]), "user: no kernel threads")
    if name == "sleeping":
        h.check({r["state"] for r in reply["rows"]} <= {"S"}, "sleeping: only state S")

# Lengths are exact: waits that are longer or shorter than asked for are in no row. On a slow
# machine a thread that sleeps for 2 ms wakes late.
LEAST, MOST = 1000, 60_000 if IN_MACHINE else 3000
exact = daemon.ctl("start", "offcpu", "-p", pid, "-m", LEAST, "-M", MOST).out.strip()
h.subject_sleep(1 if h.EVENTS_ONLY else 2)
daemon.call("io.stackd.Stop", session=exact)
reply = daemon.ctl_json("snapshot", exact, "--idle")
rows = [r for r in reply["rows"] if r["count"]]
h.check(
    rows and all(LEAST * 1000 <= r["max_ns"] <= MOST * 1000 for r in rows), "-m and -M are exact"
)
h.estimate_least(sums(reply)[0], 20, f"there are waits of 2 ms: {sums(reply)[0]}")


# The limit is reached by many clients that start sessions at the same time; a client that only asks
# is answered meanwhile. An emulator would take longer for all of them than stackctl waits for an
# answer.
waits = []
with concurrent.futures.ThreadPoolExecutor(6 if IN_MACHINE else 16) as pool:
    began = time.monotonic()
    starts = [pool.submit(daemon.ctl, "start", "oncpu", "-F", "9", timeout=240) for _ in range(16)]
    while not all(start.done() for start in starts):
        asked = time.monotonic()
        daemon.call("io.stackd.Probes")
        waits.append(time.monotonic() - asked)
    took = time.monotonic() - began
many = [start.result().out.strip() for start in starts]
h.estimate_most(max(waits), took / 2, f"16 started in {took:.2f} s, answers within {max(waits):.2f} s")
result = daemon.ctl("start", "oncpu")
h.check(result.code == 3 and "max_sessions" in result.err,
        f"one session too many is refused: {result}")
limit = next(x for x in daemon.status()["limits"] if x["name"] == "control.max_sessions")
h.check(limit["used"] == 16 and limit["hits"] == 1, f"the limit is in the status: {limit}")
for one in many:
    daemon.call("io.stackd.Stop", session=one)
with h.Connection(daemon.socket) as connection:
    connection.send({"method": "io.stackd.Start", "parameters": {"probe": "offcpu"}, "more": True})
    bound = connection.receive()["parameters"]["session"]["id"]


def has_ended(session):
    """Returns what is listed of the session if it has ended, else None."""
    listed = daemon.call("io.stackd.Sessions")["sessions"]
    return next((s for s in listed if s["id"] == session and "ended" in s), None)


h.check(
    h.wait_until(lambda: has_ended(bound), "the bound session to end"),
    "the bound session ends with its connection"
)

# A session ends by its time, and one by a signal.
timed = daemon.ctl("start", "oncpu", "--for", "1s").out.strip()
listed = h.wait_until(lambda: has_ended(timed), "the timed session to end")
length = listed["ended"]["ns"] - listed["since"]["ns"]
h.check(length >= 0.8 * 10**9, f"--for 1s: {length} ns")
record = subprocess.Popen(
    [h.STACKCTL, "-S", daemon.socket, "record", "offcpu", "--duration", "1min", "-p", str(pid), "--json"],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
)
h.wait_until(
    lambda: any(not s["always"] and "ended" not in s
                for s in daemon.call("io.stackd.Sessions")["sessions"]),
    "the recording to begin",
)
h.subject_sleep(2)
record.send_signal(signal.SIGINT)
out, err = record.communicate(timeout=h.HANG_SECONDS)
h.check(record.returncode == 0 and b'"rows":[{' in out.replace(b" ", b""), f"Ctrl-C prints: {err}")

# In a stream, answers follow each other without a gap or an overlap.
with h.Connection(daemon.socket) as connection:
    connection.send(
        {"method": "io.stackd.Follow", "parameters": {"probe": "oncpu", "interval_ns": 10**9, "top": 1}, "more": True}
    )
    ranges = [connection.receive()["parameters"] for _ in range(3)]
for one, two in zip(ranges, ranges[1:]):
    h.check(
        one["coverage"]["used"]["end"]["ns"] == two["coverage"]["used"]["start"]["ns"],
        "an answer begins where the one before ended",
    )
h.check(int(ranges[-1]["cursor"]) == ranges[-1]["coverage"]["used"]["end"]["ns"], "the cursor")

after = daemon.settled_objects(before)
h.check(before and after == before, f"programs, maps, links: {after} as before: {before}")
h.check(daemon.process.poll() is None, "the daemon still runs")
h.finish()
