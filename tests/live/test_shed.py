#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Switches that cost more than [budget] cpu allows although hardly any stack is taken: other details
are shed, in their order, and come back in reverse order. Status, the log, the answers and the stacks
say so, and what is left of the samples stands for all. Programs that nobody has run before and that
live for less than a second are then not read: all their time is there, under their paths, and their
stacks say why they end."""

from storms import *

ORDER = ["samples", "calls", "frames", "brief"]
WORDS = ["most samples of oncpu", "operations of iolat", "frames of user stacks",
         "functions in new files"]
NEW_FILES, WAIT_MS = 20, 400


def shed_names(daemon):
    return [shed["name"] for shed in budget_of(daemon).get("shed") or []]


def positions(daemon, prefix):
    """Returns where the log names each detail after this prefix; -1: nowhere."""
    log = daemon.log()
    return [log.find(f"{prefix}: {words}") for words in WORDS]


def check_depth(daemon):
    # A sleep that is longer than any length below which waits are left to chance. The program is
    # read when it has lived for a second, and its stack is taken after the sleep.
    sleep_us = 5_000_000
    program = Program("prog_unwind_o2", "recurse", 100, 1, sleep_us).ready().go().done()
    rows = rows_with(daemon.snapshot("-p", str(program.pid)), "recurse")
    check(rows, "the deep stack was seen")
    for row in rows:
        names = frame_names(row, "user")
        check(len(names) == 32 and {"shed", "truncated"} <= set(row["user"]["flags"]),
              f"it has 32 frames and says why: {len(names)} {row['user']['flags']}")
    program.end()


def check_samples(daemon, start, end):
    span = {"since_ns": start, "until_ns": end, "idle": True, "top": 0}
    samples = daemon.call("io.stackd.Snapshot", probe="oncpu", **span)
    exact = daemon.call("io.stackd.Snapshot", probe="offcpu", **span)["totals"]["on_cpu_ns"]
    names = [shed["name"] for shed in samples["cost"]["shed"]]
    check("samples" in names, f"the answer names what was shed: {samples['cost']}")
    # These are some 150 samples, so 0.4 is five standard deviations; a wrong weight is off by twice.
    check(all(r.get("estimated") for r in samples["rows"]), "its rows say that they are estimates")
    check_near(row_sum(samples["rows"]), exact, 0.4, "one of 8 samples stands for all")


def run_new_files():
    """Runs programs that nobody has run before, for WAIT_MS each; returns {pid: path}."""
    directory, paths = make_temp_dir(), {}
    for first in range(0, NEW_FILES, 5):
        processes = []
        for i in range(first, first + 5):
            path = shutil.copy(os.path.join(PROGS, "prog_shortlived"), f"{directory}/new{i}")
            processes.append(spawn([path, str(WAIT_MS)]))
            paths[processes[-1].pid] = path
        for process in processes:
            process.wait()
    return paths


def snapshot_new_files(daemon):
    """Runs new programs. Returns {pid: path} and, by pid, the user stacks that go through their
    files. All their time is there, under their paths."""
    start = daemon.cut()
    paths = run_new_files()
    reply = daemon.call("io.stackd.Snapshot", probe="offcpu", idle=True, top=0,
                        filter={"pids": list(paths)}, since_ns=start, until_ns=daemon.cut())
    stacks, seen = {}, set()
    for row in reply["rows"]:
        pid, frames = row["process"]["pid"], (row.get("user") or {}).get("frames", [])
        if row["process"].get("exe") == paths[pid]:
            seen.add(pid)
        if any(frame.get("module") == paths[pid] for frame in frames):
            stacks.setdefault(pid, []).append(row["user"])
    check(seen == set(paths), f"{len(seen)} of {len(paths)} new programs have rows with their path")
    least = NEW_FILES * WAIT_MS * 1_000_000
    totals = reply["totals"]
    check(totals["blocked_ns"] >= least, f"all of their waits: {totals['blocked_ns']} of {least} ns")
    check_sum(sum(row["total_ns"] for row in reply["rows"]),
               totals["blocked_ns"] + totals["runnable_ns"], 0.0001, "the rows add up to the total",
               slack=1_000_000)
    return paths, stacks


def names_in(stacks, path):
    frames = [frame for stack in stacks for frame in stack["frames"] if frame.get("module") == path]
    return {frame.get("name") for frame in frames}


def check_brief(daemon):
    """On a busy host, a program may live for more than a second, and is then read."""
    before = budget_of(daemon).get("put_off") or 0
    paths, stacks = snapshot_new_files(daemon)
    unread = [pid for pid in stacks if names_in(stacks[pid], paths[pid]) == {None}]
    check(stacks, f"{len(stacks)} of {len(paths)} new programs have stacks")
    check(2 * len(unread) >= len(stacks), f"{len(unread)} of {len(stacks)} were not read")
    flags = [set(stack["flags"]) for pid in unread for stack in stacks[pid]]
    check(all(flags), "each of their stacks says what is missing")
    check(2 * sum("shed" in some for some in flags) >= len(flags), f"and why: {flags}")
    wait_until(lambda: (budget_of(daemon).get("put_off") or 0) - before >= NEW_FILES / 2,
               "the number of processes in status")
    flat = re.sub(r"\s+", " ", daemon.ctl("status", "-v").out)
    check("processes lived less than a second, and their files were not looked at" in flat,
          "status says it")


def check_read(daemon):
    paths, stacks = snapshot_new_files(daemon)
    named = [pid for pid in stacks if "short_wait" in names_in(stacks[pid], paths[pid])]
    check(2 * len(named) >= NEW_FILES, f"{len(named)} of {NEW_FILES} new programs were read")
    check(not any("shed" in stack["flags"] for pid in stacks for stack in stacks[pid]),
          "no stack lacks frames for the budget")


need_live()
# Two threads that hand a CPU to each other switch some 500,000 times a second, and the hooks of the switches alone,
# which nothing sheds, cost several times the budget.
daemon = daemon_with_file("0.01%", "window.length=300ms", "window.min_length=100ms",
                          "probe.offwake.enabled=yes")
iolat = next(probe for probe in daemon.call("io.stackd.Probes")["probes"] if probe["name"] == "iolat")
has_calls = not any("I/O above block" in blind for blind in iolat["blind"])
if not has_calls:
    # What the kernel does not let it record is not shed.
    ORDER.remove("calls")
    del WORDS[1]
yielders = Program("prog_yielders", 900, max(os.sched_getaffinity(0))).ready().go()
wait_until(lambda: "samples" in shed_names(daemon), "the first step")
wait_until(lambda: shed_names(daemon) == ORDER, "all steps")
state = budget_of(daemon)
check(state["shed"][0]["every"] == 8, f"one of 8 samples: {state['shed']}")
check(all(shed["since"]["ns"] <= time.time_ns() for shed in state["shed"]), "since when")
told = positions(daemon, "not recorded from now on")
check(-1 < told[0] and told == sorted(told), f"the log names them in their order: {told}")
start = daemon.cut()
wait_until(lambda: daemon.cut() > start + 2 * NS_PER_S, "a window")
check_depth(daemon)
check_brief(daemon)
wait_until(lambda: daemon.cut() > start + 20 * NS_PER_S, "windows")
end = daemon.cut()
check_samples(daemon, start, end)
flat = re.sub(r"\s+", " ", daemon.ctl("status", "-v").out)
check("not recorded since" in flat and all(words in flat for words in WORDS),
      f"status says it: {flat[:1500]}")
flat = re.sub(r"\s+", " ", daemon.ctl("snapshot", "offcpu", "--window", "5s", "-v").out)
for words in WORDS[-2:]:
    check(re.search(f"not recorded for [0-9.]+ .?s: {words}", flat),
          f"the answer says it: {flat[:1500]}")
gone = daemon.ctl("snapshot", "iolat", "--window", "2s", "-p", yielders.pid)
check(not has_calls or gone.code == 4 and "not recorded: I/O other than requests to disks for" in gone.err
      and f"stackctl record iolat -p {yielders.pid}" in gone.err,
      f"nobody is said to have done no I/O: {gone}")
recorded = daemon.ctl_json("record", "oncpu", "--for", "1s")["cost"].get("shed") or []
check({shed["name"] for shed in recorded} <= {"brief"},
      f"the session of a client lacks nothing for the budget: {recorded}")
text = daemon.ctl("snapshot", "offcpu", "--window", "5s").out
check("\nbudget     not recorded: deep frames, new files (-v)\n" in text, f"its head, in one line: {text[:800]}")

# The counters alone are beyond the budget: once a minute of that is over, all say so.
wait_until(lambda: budget_of(daemon).get("beyond_since"), "a minute that broke the budget")
check("[budget] cpu" in " ".join(daemon.status()["problems"]), f"a problem: {daemon.status()['problems']}")
checked = daemon.ctl("status", "--check")
check(checked.code == 1 and "raise [budget] cpu or" in checked.out, f"status --check says it: {checked}")
check("over [budget] cpu" in daemon.log(), "the log says it")
broken = daemon.cut()
wait_until(lambda: daemon.cut() > broken + 2 * NS_PER_S, "a window in such a time")
cost = daemon.call("io.stackd.Snapshot", probe="offcpu", top=1, since_ns=broken)["cost"]
check(cost["beyond_ns"] > 0, f"windows say it: {cost}")
flat = re.sub(r"\s+", " ", daemon.ctl("snapshot", "offcpu", "--window", "2s").out)
check("cost over budget for" in flat, f"the head says it: {flat[:500]}")

set_budget(daemon, "1000%", 10 * os.cpu_count())
wait_until(lambda: not shed_names(daemon), "all details again")
told = positions(daemon, "recorded again")
check(-1 < told[-1] and told == sorted(told, reverse=True),
      f"the log names them in reverse order: {told}")
check(all(daemon.log().count(f"not recorded from now on: {words}") == 1 for words in WORDS),
      "the log named each once")
later = daemon.cut()
wait_until(lambda: daemon.cut() > later + 2 * NS_PER_S, "a window with all details")
cost = daemon.call("io.stackd.Snapshot", probe="offcpu", top=1, since_ns=later)["cost"]
check(not cost.get("shed"), f"new windows have all details: {cost}")
check_read(daemon)
check_samples(daemon, start, end)
yielders.kill()
check(daemon.stop() == 0, "the daemon ends with 0 at SIGTERM")
finish()
