#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows libraries that are mapped one after the other at the same address: the stacks of each have
its own names, in the current window and in later answers."""

from harness import *

NAMES = ("one", "two", "three")


def library(name):
    return os.path.join(PROGS, f"libprog_reload_{name}.so")


def library_rows(daemon, pid, *args):
    rows = daemon.snapshot("-p", pid, *args)["rows"]
    return [r for r in rows if r["state"] == "S" and "nap" in frame_names(r)]


def check_names(daemon, label, pid, sleeps, slept, *args):
    """Returns the share of the sleeps that has a name, which depends on how soon the daemon could read the
    mappings; all that is said must be right."""
    rows = library_rows(daemon, pid, *args)
    found = {name: 0 for name in NAMES}
    for row in rows:
        names = frame_names(row)
        at = names.index("nap") + 1
        where = names[at] if at < len(names) else "?"
        if where.removeprefix("in_") in found:
            found[where.removeprefix("in_")] += row["count"]
            # If the library was only just loaded, the target of a call in it may still be unknown.
            check(names[at + 1:at + 2] in ([], ["library_call"]), f"{label}: {names}")
            module = row["user"]["frames"][at].get("module")
            check(module == library(where.removeprefix("in_")), f"{label}: {where} in {module}")
            if not row["user"]["flags"]:
                check("main" in names and names[-1] == "_start",
                      f"{label}: the stack goes on to its end: {names}")
    total = row_sum(rows, "count")
    for name, count in found.items():
        check(count <= sleeps, f"{label}: {count} of {sleeps} sleeps in {name}, none of another's")
    named = sum(found.values())
    check(total == slept, f"{label}: {total} sleeps of {slept}")
    whole = sum(r["count"] for r in rows if not r["user"]["flags"])
    print(f"{label}: {total} sleeps, {named} with a name, {whole} whole")
    return named / total


def check_reload(daemon, rounds, count, us):
    """Returns what check_names() returns."""
    label = f"{rounds} rounds of {count} sleeps of {us} us"
    program = Program("prog_reload", rounds, count, us, *map(library, NAMES)).ready().go()
    lines = program.done().lines
    places = {line.split()[1] for line in lines if line.startswith("where ")}
    check(len(places) == 1, f"{label}: all were mapped at one place: {places}")
    slept = int(next(line.split()[1] for line in lines if line.startswith("slept ")))
    check(slept >= rounds * count * len(NAMES) / 2, f"{label}: slept {slept} times")
    now = check_names(daemon, label, program.pid, rounds * count, slept)
    later = check_names(daemon, label + ", later", program.pid, rounds * count, slept, "--window", "5min")
    program.end()
    return min(now, later)


def check_plugins(daemon):
    """Checks programs that load a library which nobody has mapped before, wait in it and unload it
    within milliseconds: the leaf of each stack has the path of its library, also where /proc has
    been read too late. Where the kernel opens files by their inode, it has the function, too."""
    directory, count = make_temp_dir(), 100
    plugins = [os.path.join(directory, f"plugin{i}.so") for i in range(count)]
    for plugin in plugins:
        shutil.copy(library("one"), plugin)
    program = Program("prog_reload", 1, 0, 2000, *plugins).ready().go()
    lines = program.done().lines
    slept = int(next(line.split()[1] for line in lines if line.startswith("slept ")))
    rows = [r for r in daemon.snapshot("-p", program.pid, "--window", "5min")["rows"]
            if r["state"] == "S" and any("nanosleep" in n for n in frame_names(r, "kernel"))]
    leaves = [(r["user"]["frames"][0], r["count"]) for r in rows if r.get("user")]
    paths = sum(n for leaf, n in leaves if leaf.get("module") in plugins)
    named = sum(n for leaf, n in leaves if leaf.get("name") == "leaf_one")
    wrong = {leaf["name"] for leaf, _ in leaves if leaf.get("name") not in (None, "leaf_one")}
    check(slept >= count * 0.8, f"plugins: slept {slept} times in {count}")
    check(paths >= slept * 0.98, f"plugins: {paths} of {slept} leaves have the path of theirs")
    check(not wrong, f"plugins: no leaf has another's name: {wrong}")
    system = run(["stat", "-f", "-c", "%T", directory]).out.strip()
    if system in ("ext2/ext3", "xfs", "f2fs"):
        check(named >= slept * 0.9, f"plugins: {named} of {slept} leaves have their function")
    else:
        print(f"the kernel opens no files of {system} by their inode: {named} have a function")
    program.end()


def check_full_ring():
    """Checks a full ring: stacks in mappings that did not fit have no names, rather than those of
    the mapping before, and there are names again as soon as there is room."""
    rounds, label = 20, "full ring"
    daemon = Daemon("probe.offcpu.min_wait=0", "probe.offcpu.stack_ring=1M", "window.length=1min",
                    "probe.oncpu.enabled=no", "probe.iolat.enabled=no")
    # The first sleep in a library lets the daemon read its names, on a slow machine too late for
    # some.
    Program("prog_reload", 1, 20, 5000, *map(library, NAMES)).ready().go().done().end()
    program = Program("prog_reload", rounds, 1, 1000, *map(library, NAMES)).ready()
    forker = Program("prog_forker", 3000, 1).ready()
    os.kill(daemon.process.pid, signal.SIGSTOP)
    try:
        forker.go().done()
        program.go().done()
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)
    rows = library_rows(daemon, program.pid, "--window", "5min")
    for name in NAMES:
        count = row_sum([r for r in rows if f"in_{name}" in frame_names(r)], "count")
        check(count <= rounds, f"{label}: {count} of {rounds} sleeps in {name}, none of another's")
    reasons = {entry["reason"]: entry["count"] for entry in daemon.status()["lost"]}
    check("mappings of stacks: the ring was full" in reasons, f"{label}: lost {reasons}")
    forker.end()
    program.end()
    check(check_reload(daemon, 20, 2, 2000) > 0.9, f"{label}: most have names afterwards")
    daemon.stop()


def used_by(daemon):
    """Returns the CPU seconds and the MiB that the daemon has used."""
    with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as f:
        rss = int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) / 1024
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), rss


def check_pieces(daemon):
    """Checks that the daemon's own time and memory do not grow with thousands of pieces of code, or
    with code that is replaced at one address all the time."""
    rounds = 3000  # some machines need a second to read the pieces for the first time
    os.environ["PIECES"] = "3000"
    program = Program("prog_reload", rounds, 1, 300, *map(library, NAMES)).ready()
    begun, (cpu, rss) = time.monotonic(), used_by(daemon)
    lines = program.go().done().lines
    took, (cpu_after, rss_after) = time.monotonic() - begun, used_by(daemon)
    del os.environ["PIECES"]
    check(cpu_after - cpu < took * 0.5, f"pieces: {cpu_after - cpu:.2f} s of {took:.2f} s")
    check(rss_after - rss < 48, f"pieces: {rss_after - rss:.0f} MiB more")
    slept = int(next(line.split()[1] for line in lines if line.startswith("slept ")))
    # It takes a while to read that many mappings while they change, and a minute on a busy host.
    named = check_names(daemon, "pieces", program.pid, rounds, slept, "--window", "5min")
    check(named > 0, f"pieces: a share of {named} has names")
    program.end()


def rounds():
    daemon = Daemon("probe.offcpu.min_wait=0")
    wait_until(lambda: check_reload(daemon, 1, 20, 5000) > 0.9, "names of most of 20 sleeps")
    wait_until(lambda: check_reload(daemon, 20, 2, 2000) > 0.9, "names of most of 2 sleeps")
    daemon.stop()


def others():
    """Checks what depends on how fast the host is."""
    daemon = Daemon("probe.offcpu.min_wait=0")
    check(check_reload(daemon, 100, 1, 300) > 0.9, "most single sleeps have names")
    check_pieces(daemon)
    check_plugins(daemon)
    check_nothing_lost(daemon.status(), "status")
    daemon.stop()
    check_full_ring()


need_live()
run_parts(rounds, others)
