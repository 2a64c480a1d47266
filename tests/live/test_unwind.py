#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows user stacks of programs built without frame pointers: they are whole, down to the thread's
first function, wherever the program sleeps; one that is deeper than the limit says so. Where gdb is
installed, a stopped copy's frames are the same. Code without call frame information is walked by
frame pointers where it keeps them, and is the end of the stack where it does not."""

import re

from harness import *
from unwound import (BUILDS, DEEP, FRAMED_BUILDS, PLACES, begins_with, below_nap, flags_of, has_place,
                     tail_of)

SLEEP = ["clock_nanosleep", "nanosleep", "usleep", "nap"]
COUNT = 8


def sleeping_rows(daemon, program):
    rows = daemon.snapshot("-p", program.pid)["rows"]
    return [r for r in rows if "nap" in frame_names(r) and r["state"] == "S"]


def settled_run(daemon, name, *args):
    """Runs a program whose files the daemon has read, up to the end of its work."""
    return daemon.settled(Program(name, *args).ready()).go().done()


def check_count(rows, label):
    """A sleep that the scheduler hides is counted as lost, and a timer may end before the thread sleeps."""
    check(0 < row_sum(rows, "count") <= COUNT, f"{label}: {row_sum(rows, 'count')} sleeps of {COUNT}")
    estimate_least(row_sum(rows, "count"), COUNT - 1, f"{label}: {row_sum(rows, 'count')} sleeps, which is all")


def check_place(daemon, build, place, *args):
    label = " ".join([build, place, *map(str, args)])
    program = settled_run(daemon, f"prog_unwind_{build}", place, *args)
    rows = sleeping_rows(daemon, program)
    whole = [r for r in rows if r["user"]["flags"] == flags_of(build)]
    count = row_sum(whole, "count")
    check_count(rows, label)
    check(count == row_sum(rows, "count"), f"{label}: {count} whole stacks of {COUNT}: "
          f"{[(r['user']['flags'], frame_names(r)) for r in rows if r not in whole]}")
    for row in whole:
        check_whole(label, place, frame_names(row))
    program.end()


def check_whole(label, place, names):
    check(begins_with(below_nap(names), PLACES[place] + tail_of(place)), f"{label}: {names}")
    if place != "thread":
        end = "begins" if place == "begins" else "_start"
        check(names[-1] == end, f"{label}: ends at {end}")


def check_bare(daemon):
    """Checks code without call frame information that does not keep frame pointers: the stack ends
    there and says so, wherever bp points to."""
    for place in ("deep", "alloca", "callback"):
        program = settled_run(daemon, "prog_unwind_bare", place)
        rows = sleeping_rows(daemon, program)
        check_count(rows, f"bare {place}")
        for row in rows:
            names = frame_names(row)
            check(row["user"]["flags"] == ["no_row"] and names[-1] == "nap",
                  f"bare {place}: {row['user']['flags']} {names}")
        program.end()


def check_unchained(daemon):
    """Checks a frame off the alignment whose caller keeps no frame pointer: the stack ends there and says
    so."""
    program = settled_run(daemon, "prog_unwind_framed", "unchained")
    rows = sleeping_rows(daemon, program)
    check_count(rows, "unchained")
    for row in rows:
        check(row["user"]["flags"] == ["frame_pointers", "no_row"] and below_nap(frame_names(row)) == ["unaligned"],
              f"unchained: {row['user']['flags']} {frame_names(row)}")
    program.end()


def check_compat(daemon):
    """Checks that the stack of a 32-bit program says that such stacks are not walked, in a wait
    that has ended and in one that has not."""
    try:
        program = Program("prog_compat").ready()
    except OSError as error:
        print(f"skipped: no 32-bit program can be run here: {error}")
        return
    program.go().done()

    def open_flags():
        daemon.cut()
        rows = daemon.ctl_json("stuck", "--idle", "-p", program.pid)["rows"]
        return [r["user"]["flags"] for r in rows]

    rows = daemon.snapshot("-p", program.pid)["rows"]
    rows = [r for r in rows if r["state"] == "S" and not r["open"]]
    count, flags = row_sum(rows, "count"), [r["user"]["flags"] for r in rows]
    check(count >= COUNT - 1 and all(f == ["compat"] for f in flags),
          f"compat: {count} waits: {flags}")
    wait_until(lambda: open_flags() == [["compat"]], "the flag of the open wait")
    walks = daemon.status()["unwind"]["binaries"]
    found = [w for w in walks if (w.get("binary") or "").endswith("/prog_compat")]
    check(len(found) == 1 and found[0]["compat"] > 0 and not found[0]["no_row"],
          f"compat: status has {found}")
    program.end()


def check_example(daemon):
    program = settled_run(daemon, "prog_unwind_o2", "deep")
    (row,) = sleeping_rows(daemon, program)
    names = frame_names(row)
    # The frames: three of the sleep, nap, ten, work and main, two of libc of which one is named,
    # _start.
    check(names[:4] == SLEEP and len(names) == 19, f"19 of 19 frames: {names}")
    program.end()


def check_probes(daemon):
    """Checks that samples, and waits with their wakers, have the same stacks as waits of offcpu."""
    # Waits below min_wait (100 us) have no stacks.
    program = daemon.settled(Program("prog_unwind_o2", "deep", 1, 100_000_000, 200).ready()).go()

    def rows_of(probe):
        done = daemon.ctl("snapshot", probe, "-p", program.pid, "--format", "json")
        rows = json.loads(done.out)["rows"] if done.code in (0, 5) else []
        return [r for r in rows if "nap" in frame_names(r)]

    for probe in ("oncpu", "offwake"):
        # On a busy host the program gets little of a CPU, and few of the samples are its own.
        rows = wait_until(lambda: rows_of(probe), f"its function in {probe}")
        for row in rows:
            names = frame_names(row)
            check(not row["user"]["flags"] and names[-1] == "_start" and
                  begins_with(below_nap(names), DEEP + tail_of("deep")),
                  f"{probe}: {row['user']['flags']} {names}")
    program.kill()


def check_depths(daemon):
    for depth in (1, 2, 17, 64, 100, 115):
        program = settled_run(daemon, "prog_unwind_o2", "recurse", depth)
        for row in sleeping_rows(daemon, program):
            names = frame_names(row)
            check(names.count("recurse") == depth and not row["user"]["flags"],
                  f"depth {depth}: {names.count('recurse')} {row['user']['flags']}")
        program.end()
    program = settled_run(daemon, "prog_unwind_o2", "recurse", 200)
    rows = sleeping_rows(daemon, program)
    check(rows, "depth 200: it was seen")
    for row in rows:
        names = frame_names(row)
        check(row["user"]["flags"] == ["truncated"] and len(names) == 127,
              f"depth 200: incomplete at 127, and says so: {len(names)} {row['user']['flags']}")
    program.end()


def check_twins(daemon):
    """Checks that stacks which differ only in one return address are not mistaken for each
    other."""
    sleeps = 400
    program = settled_run(daemon, "prog_unwind_o2", "twins", 1, sleeps, 500)
    rows = sleeping_rows(daemon, program)
    for expected in ("left", "right"):
        stack = [expected, "with_twins"]
        found = [r for r in rows if begins_with(below_nap(frame_names(r)), stack)]
        count = row_sum(found, "count")
        # Some timers end before the thread sleeps.
        check(0 < count <= sleeps / 2, f"twins: {expected} {count} times of {sleeps / 2:.0f}")
    program.end()


def check_throw(daemon):
    if not os.path.exists(os.path.join(PROGS, "prog_throw")):
        leave_out("no g++ to build prog_throw")
        return
    program = settled_run(daemon, "prog_throw")
    rows = sleeping_rows(daemon, program)
    for expected in (["destroy", "guarded", "handler", "main"], ["handler", "main"]):
        found = [r for r in rows if begins_with(below_nap(frame_names(r)), expected)]
        check(found and all(not r["user"]["flags"] for r in found),
              f"exception in flight: {expected}: {[frame_names(r) for r in rows][:3]}")
    program.end()


def check_lazy(daemon):
    """Checks ld.so's lazy resolver, which keeps its caller's frame address in a callee-saved
    register."""
    os.environ.pop("LD_BIND_NOW", None)
    program = settled_run(daemon, "prog_lazy")
    rows = [r for r in daemon.snapshot("-p", program.pid, "--state", "S")["rows"]
            if "with_lazy" in frame_names(r)]
    check(row_sum(rows, "count") == 1,
          f"lazy: there is one sleep in it: {[frame_names(r) for r in rows]}")
    for row in rows:
        names = frame_names(row)
        files = [os.path.basename(f.get("module") or "") for f in row["user"]["frames"]]
        at = names.index("with_lazy")
        check(files[0] == "libprog_lazy.so" and set(files[1:at]) == {files[1]} and
              files[1].startswith("ld-linux") and at >= 3,
              f"lazy: the stack goes through ld.so: {files} {names}")
        check(names[at:at + 3] == ["with_lazy", "work", "main"] and names[-1] == "_start" and
              not row["user"]["flags"], f"lazy: it is whole: {names} {row['user']['flags']}")
    program.end()


def check_context(daemon, build):
    """Checks that a stack that makecontext() made ends where its first function returns to."""
    label = f"{build} context"
    program = settled_run(daemon, f"prog_unwind_{build}", "context")
    rows = sleeping_rows(daemon, program)
    check_count(rows, label)
    for row in rows:
        names = frame_names(row)
        check(len(below_nap(names)) == 2 and below_nap(names)[0] == "in_context" and
              not row["user"]["flags"], f"{label}: {row['user']['flags']} {names}")
    program.end()


def check_small_room():
    """Checks a file with more unwind rows than there is memory for: the rows that stacks need are loaded. Only
    node's stacks are recorded: those of others would need rows, too."""
    node = shutil.which("node")
    if not node:
        leave_out("no node, whose rows take 1.3 MiB")
        return
    others = [f"probe.{name}.enabled=no" for name in ("offcpu", "oncpu", "iolat")]
    small = Daemon("unwind.max_memory=1M", "window.length=1s", *others)
    process = subprocess.Popen([node, "-e", "setInterval(() => {}, 10)"])
    atexit.register(stop_process, process)
    started = small.ctl("start", "offcpu", "-p", process.pid)
    check(started.code == 0, f"small room: {started}")
    asked = ("snapshot", started.out.strip(), "--idle", "-t", process.pid, "--window", "1s", "--state", "S", "--json")

    def is_whole():
        result = small.ctl(*asked)
        rows = json.loads(result.out)["rows"] if result.code == 0 else []
        return len(rows) and all(r["user"] and not r["user"]["flags"] for r in rows) and rows

    rows = wait_until(is_whole, "node's stacks to be whole")
    names = frame_names(rows[0])
    check(names[-1] == "_start" and len(names) > 8, f"small room: {len(names)} frames: {names}")
    unwind = small.status()["unwind"]
    check(unwind["bytes"] <= unwind["max_bytes"] < 1 << 20, f"small room: {unwind['bytes']} bytes")
    stop_process(process)
    small.stop()


def gdb_frames(pid):
    """Returns the names of the frames of a process's main thread, leaf first; None where gdb
    fails."""
    done = run(["gdb", "-p", str(pid), "-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex",
                "bt 200"])
    # A frame without an address is inlined into the one below.
    frames = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in |(?=<signal))([^ (]+)", done.out, re.MULTILINE)
    return frames or None


def check_gdb(daemon, place):
    program = daemon.settled(Program("prog_unwind_o2", place, 1, 10000).ready()).go()
    frames = wait_until(lambda: gdb_nap(program.pid), f"gdb to find {place} asleep")
    rows = [r for r in sleeping_rows(daemon, program) if not r["user"]["flags"]]
    ours = below_nap(frame_names(rows[0])) if rows else []
    theirs = frames[frames.index("nap") + 1:]
    # gdb goes no further than main. Where functions are inlined it names the innermost.
    named = {*DEEP, *PLACES[place], "work", "main"}
    same = theirs[-1] == "main" and len(ours) > len(theirs) and all(
        a == b or a not in named for a, b in zip(ours, theirs))
    check(same, f"gdb: {place}: {ours} and {theirs}")
    program.kill()


def gdb_nap(pid):
    frames = gdb_frames(pid)
    return frames if frames and "nap" in frames else None


def some_places():
    """Checks the builds and places that differ most from each other."""
    daemon = Daemon()
    for build in ("o2", "static", "clang"):
        for place in ("deep", "signal", "alloca", "callback"):
            check_place(daemon, build, place)
    check_place(daemon, "o2", "begins")
    check_place(daemon, "framed", "unaligned")
    check_unchained(daemon)
    check_bare(daemon)
    check_twins(daemon)
    check_lazy(daemon)
    check_context(daemon, "o2")
    daemon.stop()


need_live()
if EVENTS_ONLY:
    some_places()
    finish()
daemon = Daemon()
for build in BUILDS + FRAMED_BUILDS:
    for place in PLACES:
        if has_place(build, place):
            check_place(daemon, build, place)
check_bare(daemon)
check_unchained(daemon)
check_compat(daemon)
check_example(daemon)
check_depths(daemon)
check_twins(daemon)
check_throw(daemon)
check_lazy(daemon)
for build in ("o2", "static", "static_pie"):
    check_context(daemon, build)
if shutil.which("gdb"):
    for place in ("deep", "alloca", "realigned", "signal", "callback"):
        check_gdb(daemon, place)
else:
    leave_out("no gdb here: stacks by gdb")
check_nothing_lost(daemon.status(), "status")
daemon.stop()
check_small_room()
daemon = Daemon("probe.offwake.enabled=yes", "probe.oncpu.enabled=yes", "probe.oncpu.frequency=999")
check_probes(daemon)
check_verified(daemon, "verified")
daemon.stop()
finish()
