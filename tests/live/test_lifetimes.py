#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows processes that come and go: names are those of the moment. It tries a short life, an exec,
an exit, a deleted binary, a reused pid and many forks."""

from harness import *


def prog(name):
    return os.path.join(PROGS, name)


def rows_of(daemon, pid, name):
    snapshot = daemon.snapshot("--window", "10min", "-p", pid)
    return [row for row in rows_with(snapshot, name) if row["state"] == "S"]


def check_short_life(daemon):
    process = subprocess.Popen([prog("prog_shortlived"), "100"])
    process.wait()
    rows = rows_of(daemon, process.pid, "short_wait")
    if not check(rows, "short life: its function is named"):
        return
    check(frame_names(rows[0])[:2] == ["short_wait", "main"], "short life: short_wait;main")
    # This is the time until it was made runnable; on a busy host it may have waited for a CPU after
    # that.
    check_near(row_sum(rows, "blocked_ns"), 100_000_000, 0.05, "short life: its wait, ns", 5_000_000,
               noise.MOST)
    check(rows[0]["process"]["exited"], "short life: it is known to have exited")
    check(rows[0]["process"]["comm"] == "prog_shortlived", "short life: comm")
    exe = rows[0]["process"].get("exe")
    check(exe == os.path.realpath(prog("prog_shortlived")), f"short life: exe {exe}")


def check_exec_chain(daemon):
    argv = [prog("prog_shortlived"), "100", prog("prog_forker"), "1", "100"]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    process.wait()
    snapshot = daemon.snapshot("--window", "10min", "-p", process.pid)
    comms = {row["comm"] for row in snapshot["rows"]}
    check({"prog_shortlived", "prog_forker"} <= comms, f"exec: comms before and after: {comms}")
    before = rows_with(snapshot, "short_wait")
    check(before and frame_names(before[0])[1] == "main", "exec: the old image's names")
    check(all(r["comm"] == "prog_shortlived" for r in before), "exec: with the old comm")
    after = [r for r in snapshot["rows"] if r["comm"] == "prog_forker" and r.get("user")]
    names = {name for row in after for name in frame_names(row)}
    check({"parent_wait", "main"} <= names, f"exec: the new image's names: {sorted(names)[:12]}")
    check("short_wait" not in names, "exec: no name of the old image")
    for comm in ("prog_shortlived", "prog_forker"):
        totals = daemon.snapshot("--window", "10min", "-p", process.pid, "--comm", comm)["totals"]
        check_near(totals["blocked_ns"], 100_000_000, 0.1, f"exec: {comm} blocked, ns",
                   10_000_000, noise.MOST)


def check_thread_exec(daemon):
    """Checks an exec in a thread that is not the main one. The thread gets the main thread's pid
    and start time; a session of the thread's old number has its time up to then."""
    program = Program("prog_threadexec").ready()
    tid, spun = program.value("thread")["tid"], 300_000_000
    session = daemon.ctl("start", "offcpu", "-t", tid).out.strip()
    program.go().done()
    program.end()
    gone = time.time_ns()

    def totals_since(when):
        """Returns the session's totals once it has two whole windows after that moment."""
        reply = daemon.ctl_json("snapshot", session, "-n", "0")
        if reply["coverage"]["used"]["end"]["ns"] < when + 2 * NS_PER_S:
            return None
        return reply["totals"]

    totals = wait_until(lambda: totals_since(gone), "the session's next windows")
    daemon.call("io.stackd.Stop", session=session)
    on_cpu = totals["on_cpu_ns"]
    check(spun <= on_cpu, f"thread's exec: -t {tid}: {on_cpu} ns on a CPU")
    estimate_most(on_cpu, spun + NS_PER_S, f"thread's exec: -t {tid}: {on_cpu} ns on a CPU, no more")
    snapshot = daemon.snapshot("--window", "10min", "-p", program.pid)
    for name, expected in ("wait_before", tid), ("wait_after", program.pid):
        tids = {row["max_tid"] for row in rows_with(snapshot, name)}
        check(tids == {expected}, f"thread's exec: {name} in {tids}, it is {expected}")
    for probe in "offcpu", "oncpu":
        reply = daemon.ctl_json("snapshot", probe, "--window", "10min", "-p", program.pid, "--by",
                                "thread", "--comm", "prog_threadexec")
        tids = sorted(row["tid"] for row in reply["rows"]
                      if row.get("state") != "-" and not row["idle"])
        check(tids == [program.pid, tid], f"thread's exec: {probe}: one row each: {tids}")
        check(reply["totals"]["threads"] == 2, f"thread's exec: {probe}: {reply['totals']}")


def check_deleted_binary(daemon):
    path = os.path.join(daemon.dir, "deleted_waits")
    shutil.copy(prog("prog_waits"), path)
    program = Program("deleted_waits", 1, 200, path=path).ready()
    os.unlink(path)
    # Another program takes the path: its symbols must not be used.
    shutil.copy(prog("prog_churn"), path)
    program.go().done()
    program.end()
    rows = rows_of(daemon, program.pid, "wait_in_pipe_read")
    check(rows, "deleted binary: its functions are named")
    if rows:
        check(frame_names(rows[0])[1:3] == ["run_waits", "main"],
              "deleted binary: the stack is whole")


def start_with_pid(pid, argv):
    """Starts argv as process pid; returns None if another process took the number."""
    with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as f:
        f.write(str(pid - 1))
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    process.wait()
    return process if process.pid == pid else None


def check_reused_pid(daemon):
    if not os.path.exists("/proc/sys/kernel/ns_last_pid"):
        leave_out("no ns_last_pid: a reused pid")
        return
    first = subprocess.Popen([prog("prog_shortlived"), "60"])
    first.wait()
    argv = [prog("prog_forker"), "4", "60"]
    wait_until(lambda: start_with_pid(first.pid, argv), f"pid {first.pid} to be given a second time")
    snapshot = daemon.snapshot("--window", "10min", "-p", first.pid)
    starts = {}
    for row in snapshot["rows"]:
        starts.setdefault(row["process"]["start"]["ns"], set()).add(row["comm"])
    # Another program may have had the number for a moment in between.
    ours = [comms for comms in starts.values() if comms & {"prog_shortlived", "prog_forker"}]
    check(len(ours) == 2, f"reused pid: two processes are shown apart: {starts}")
    processes = snapshot["totals"]["processes"]
    check(processes == len(starts), f"reused pid: totals count {processes} processes")
    for row in rows_with(snapshot, "short_wait"):
        check(row["comm"] == "prog_shortlived",
              "reused pid: the stack is shown for the first process")
    for row in snapshot["rows"]:
        if row["comm"] == "prog_forker":
            check("short_wait" not in frame_names(row), "reused pid: no name of the first")


def check_forks():
    count, ms = 200, 5
    # a short wait would have no state otherwise
    daemon = Daemon("window.length=1s", "probe.offcpu.min_wait=0", *ROOM)
    start = daemon.cut()
    program = Program("prog_forker", count, ms).ready().go().done()
    program.end()
    end = daemon.cut()
    reply = daemon.call(
        "io.stackd.Snapshot",
        probe="offcpu",
        since_ns=start,
        until_ns=end,
        filter={"comm": "prog_forker"},
        idle=True,
    )
    rows = [row for row in rows_with(reply, "child_wait") if row["state"] == "S"]
    # Where a CPU is taken away for long, some children do not have to wait; some also sleep for a
    # page. A wait that the kernel counts as a sleep is one for stackd, too.
    sleeps, waits = program.value("child_wait")["switches"], row_sum(rows, "count")
    check(0 < waits <= count, f"forks: {waits} waits of {count} children")
    estimate_least(waits, count * 0.9, f"forks: {waits} waits, which is most")
    slept = [
        row
        for row in reply["rows"]
        if row["process"]["pid"] != program.pid and row["state"] in ("S", "D")
    ]
    total = row_sum(slept, "count")
    check(waits <= sleeps <= total, f"forks: {waits} <= {sleeps} sleeps by the kernel <= {total}")
    # A child's own clock also runs while it is preempted just before and after its wait.
    least, most = waits * ms * 1_000_000, program.value("child_wait")["ns"]
    check(least <= row_sum(rows) <= most, f"forks: {least} <= {row_sum(rows)} <= {most} ns")
    pids = {row["process"]["pid"] for row in rows}
    check(len(pids) == waits, f"forks: {len(pids)} processes")
    check(
        all(frame_names(row)[:1] == ["child_wait"] for row in rows), "forks: leaf of each is named"
    )
    check_nothing_lost(reply, "forks")
    daemon.stop()


def check_execs_under_load():
    """Checks that waits before an exec keep the old name, though a task may be preempted in the
    middle of its exec, when it has the new name already."""
    count = 150
    daemon = Daemon("window.length=1s", "probe.offcpu.min_wait=1us", *ROOM)
    paths = [os.path.join(daemon.dir, name) for name in ("exec_even", "exec_odd")]
    for path in paths:
        shutil.copy(prog("prog_execs"), path)
    load = Program("prog_spinners", 2 * os.cpu_count()).ready()
    load.go().read_until("spinning")
    start = daemon.cut()
    process = subprocess.Popen([paths[0], str(count), paths[1]], stdin=subprocess.DEVNULL)
    check(process.wait(HANG_SECONDS) == 0, "execs under load: all done")
    end = daemon.cut()
    load.go().done().end()
    reply = daemon.call(
        "io.stackd.Snapshot",
        probe="offcpu",
        since_ns=start,
        until_ns=end,
        filter={"pids": [process.pid]},
        idle=True,
    )
    for name, comm in ("wait_as_even", "exec_even"), ("wait_as_odd", "exec_odd"):
        rows = rows_with(reply, name)
        # Some processes exit before their mappings are read: their functions have no names.
        waits = row_sum([row for row in rows if row["state"] == "S"], "count")
        check(0 < waits <= count // 2, f"execs under load: {name}: {waits} named of {count // 2}")
        comms = {row["comm"] for row in rows}
        check(comms == {comm}, f"execs under load: {name} is of {comm}: {comms}")
    check_nothing_lost(reply, "execs under load")
    daemon.stop()


need_live()
daemon = Daemon("window.length=1s")
learn(daemon, [prog("prog_shortlived"), "100"], "short_wait")
learn(daemon, [prog("prog_forker"), "1", "100"], "parent_wait")
check_short_life(daemon)
check_exec_chain(daemon)
check_thread_exec(daemon)
check_deleted_binary(daemon)
check_reused_pid(daemon)
check_nothing_lost(daemon.status(), "status")
daemon.stop()
check_forks()
check_execs_under_load()
finish()
