#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that waits by futex, pipe, signal and timer have the waker that ended them, and the path of
wakeups before it; children of vfork() wake their parents with whole stacks."""

import atexit
import json
import os
import re
import subprocess
import sys

from harness import *

ROUNDS = 200

need_live()
daemon = Daemon("window.length=1s", "probe.offwake.enabled=yes")
program = Program("prog_wakers", ROUNDS).ready().go().done()
program.end()
daemon.cut("offwake")
snapshot = json.loads(
    daemon.ctl("snapshot", "offwake", "--json", "--window", "10min", "-p", program.pid).out
)
rows = snapshot["rows"]


def rows_of(comm, function):
    """Returns the thread's rows at that function. At its start and end a thread may wait elsewhere,
    for memory or for its end."""
    return [row for row in rows if row["comm"] == comm and function in frame_names(row)]


def check_count(found, comm):
    """A wait may be over before the thread is off its CPU."""
    count = row_sum(found, "count")
    check(0 < count <= ROUNDS, f"{comm}: {count} waits of {ROUNDS}")
    estimate_least(count, ROUNDS * 0.9, f"{comm}: {count} waits, which is most")


def context_counts(rows):
    counts = {}
    for row in rows:
        context = row["waker"]["path"][0]["context"]
        counts[context] = counts.get(context, 0) + row["count"]
    return counts


for comm, function, wakes in (
    ("by_futex", "wait_for_futex", "wake_by_futex"),
    ("by_pipe", "wait_for_pipe", "wake_by_pipe"),
    ("by_signal", "wait_for_signal", "wake_by_signal"),
):
    found = rows_of(comm, function)
    check_count(found, comm)
    check(set(context_counts(found)) == {"task"}, f"{comm}: woken by {context_counts(found)}")
    for row in found:
        link = row["waker"]["path"][0]
        check(
            link["comm"] == "wakes" and link["pid"] == program.pid, f"{comm}: the waker is {link}"
        )
        check(wakes in frame_names(row["waker"]), f"{comm}: {frame_names(row['waker'])}")
        leaf = frame_names(row["waker"], "kernel")[0]
        check(leaf == "try_to_wake_up", f"{comm}: the waker's kernel stack begins at {leaf}")

# Their stacks are equal, so that only the paths of the rows differ.
found = rows_of("by_two", "wait_for_pipe")
check_count(found, "by_two")
wakers = {name: row_sum([row for row in found if row["waker"]["path"][0].get("comm") == name], "count")
          for name in ("one", "two")}
check(sum(wakers.values()) == row_sum(found, "count"), f"by_two: woken by {wakers} only")
check(all(0 < count <= ROUNDS / 2 for count in wakers.values()), f"by_two: woken by {wakers}, half by each")

found = rows_of("by_timer", "wait_for_timer")
check_count(found, "by_timer")
counts = context_counts(found)
# Some hosts hide init's threads from programs, and so the interrupts that arrive while they run.
unknown = counts.pop("unknown", 0)
check(set(counts) == {"timer"}, f"by_timer: woken by {counts}")
estimate_most(unknown, ROUNDS * 0.05, f"by_timer: {unknown} wakers not seen")
for row in found:
    if row["waker"]["path"][0]["context"] == "unknown":
        continue
    check("user" not in row["waker"], "a timer has no user stack")
    check(row["waker"]["path"][0].keys() == {"context"},
          f"a timer has no name: {row['waker']['path']}")
    names = frame_names(row["waker"], "kernel")
    check(any("hrtimer" in name for name in names), f"by_timer: {names}")
    check(
        names and names[-1].startswith(("asm_", "sysvec_", "__irq", "common_")),
        f"by_timer: {row['count']} by {row['waker']}",
    )

found = rows_of("link4", "wait_for_pipe")
paths = {}
for row in found:
    path = tuple(link.get("comm", link["context"]) for link in row["waker"]["path"])
    paths[path] = paths.get(path, 0) + row["count"]
whole = paths.get(("link3", "link2", "link1", "timer"), 0)
check_count(found, "link4")
check(whole > 0, f"the path to link4: {paths}")
estimate_least(whole, sum(paths.values()) * 0.9, f"it is whole for most: {paths}")

ours = ("--window", "10min", "--idle", "-n", "0", "-p", program.pid, "--comm", "link4")
text = " ".join(daemon.ctl("snapshot", "offwake", "--chain", *ours).out.split())
path = r"link4 waits <- link3 \([^)]*\) woke it <- link2 \([^)]*\) <- link1 \([^)]*\) <- timer"
check(re.search(path, text), f"--chain prints the path: {text[:600]}")
text = daemon.ctl("snapshot", "offwake", *ours).out
order = [text.find(word) for word in ("waker: link3", "wake_by_pipe", "--  ", "wait_for_pipe")]
check(order == sorted(order) and order[0] >= 0, f"the waker stands above the target: {order}")
# The stacks of the first waits may be incomplete.
lines = daemon.ctl("snapshot", "offwake", "--folded", "-d", *ours).out
check(
    re.search(
        r"^link4;.*;wait_for_pipe;-;.*;--;try_to_wake_up;.*;-;wake_by_pipe;link_main;.*;link3 \d+$",
        lines, re.M,
    ),
    f"the folded line: {lines[:600]}",
)
check_nothing_lost(snapshot, "snapshot")

# A peer on the same host sends, and the kernel wakes the receiver in a softirq of the sender.
PEERS = """
import os, socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
if not os.fork():
    open("/proc/self/comm", "w").write("tcp_sender")
    s = socket.create_connection(server.getsockname())
    for _ in range(ROUNDS):
        time.sleep(0.005)
        s.send(b"x")
    os._exit(0)
open("/proc/self/comm", "w").write("tcp_receiver")
s = server.accept()[0]
while s.recv(1):
    pass
os.wait()
print("done", flush=True)
sys.stdin.read()
""".replace("ROUNDS", str(ROUNDS))
peers = subprocess.Popen([sys.executable, "-c", PEERS], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, encoding="utf-8")
atexit.register(stop_process, peers)
peers.stdout.readline()
daemon.cut("offwake")
reply = daemon.ctl_json("snapshot", "offwake", "--window", "10min", "-p", peers.pid, "--idle")
found = [row for row in reply["rows"]
         if any(name.startswith("tcp_recvmsg") for name in frame_names(row, "kernel"))]
links = {}
for row in found:
    link = row["waker"]["path"][0]
    links[link["context"], link.get("comm")] = (
        links.get((link["context"], link.get("comm")), 0) + row["count"])
total, named = sum(links.values()), links.get(("softirq", "tcp_sender"), 0)
# What a real interrupt ends, or the kernel's softirq thread, has no task.
check(named > 0, f"loopback: woken by {links}")
estimate_least(total, ROUNDS * 0.8, f"loopback: {total} waits")
estimate_least(named, total * 0.9, f"loopback: {total} waits, woken by {links}")
check({comm for _, comm in links} <= {"tcp_sender", "ksoftirqd/0", None} |
      {f"ksoftirqd/{cpu}" for cpu in range(os.cpu_count())}, f"loopback: nobody else: {links}")
row = max((r for r in found if "pid" in r["waker"]["path"][0]), key=lambda r: r["count"])
names = frame_names(row["waker"], "kernel")
check(any("softirq" in name for name in names) and any("tcp_sendmsg" in name for name in names),
      f"loopback: from the softirq to the call that sends: {names}")
names = frame_names(row["waker"])
check(names and names[-1] == "_start", f"loopback: the sender's own stack: {names}")
text = daemon.ctl("snapshot", "offwake", "--window", "10min", "-p", peers.pid, "--idle").out
marked = re.search(r"waker: tcp_sender \(pid \d+, in a softirq\)", text)
check(marked, f"it is marked: {text[:600]}")
peers.communicate()

# The child of a vfork wakes its parent in its exec, before it has a stack and mappings of its own.
# From the first child on, a stack is whole and has names, or it says why it is not. What the child wakes
# later in its exec, when it drops the lock of the old mappings for which the parent waits, has no user stack:
# there is none.
daemon.stop()
daemon = Daemon("window.length=1s", "probe.offwake.enabled=yes", "probe.offwake.min_wait=0", *ROOM)
vforks = Program("prog_vforks", 30).ready().go().done()
vforks.end()
daemon.cut("offwake")
reply = daemon.ctl_json("snapshot", "offwake", "--window", "10min", "-p", vforks.pid, "--idle")
starts = {"vfork": ("run_child", "_start"), "spawn": ("__spawni_child", "clone3")}
for how, ends in starts.items():
    pids = {value["pid"] for value in vforks.values(how)}
    found = [row for row in reply["rows"] if row["waker"]["path"][0].get("pid") in pids
             and {"complete", "begin_new_exec"} <= set(frame_names(row["waker"], "kernel"))]
    whole = [row for row in found if not row["waker"].get("user", {}).get("flags", ["none"])]
    print(f"{how}: woken in an exec {row_sum(found, 'count')} times, {row_sum(whole, 'count')} of "
          "them by a stack that ends where it must")
    check(found, f"{how}: the child wakes its parent in its exec")
    estimate_least(row_sum(found, "count"), 20, f"{how}: each does")
    estimate_least(row_sum(whole, "count"), row_sum(found, "count") * 0.5, f"{how}: most are whole")
    check(all("user" in row["waker"] for row in found), f"{how}: all have a user stack")
    lists = {tuple(frame_names(row["waker"])) for row in whole}
    check(all(ends[0] in names and names[-1] == ends[1] for names in lists), f"{how}: {lists}")
daemon.stop()
finish()
