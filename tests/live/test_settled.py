#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that the word `settled` holds: the very next wait of such a process has a whole stack. The files of each
program are copies that the daemon has never read, so that a word that comes too early gives stacks that end."""

from harness import *

BUILDS = ("o2", "static", "clang")
COPIES = 8
SLEEP_US = 2000
# room for the rows of all that runs on the host
ROOMY = "unwind.max_memory=256M"


def copies(build):
    """Yields the paths of copies of a program, each a file of its own, with the library that it may load."""
    for _ in range(COPIES):
        directory = make_temp_dir()
        shutil.copy(os.path.join(PROGS, "libprog_unwind.so"), directory)
        yield shutil.copy(os.path.join(PROGS, f"prog_unwind_{build}"), directory)


def check_first(daemon, programs, text):
    """Lets each program sleep once, as soon as it is settled, and checks the stacks of these waits."""
    programs = [daemon.settled(program).go().done() for program in programs]
    pids = ",".join(str(program.pid) for program in programs)
    rows = [row for row in rows_with(daemon.snapshot("-p", pids), "nap") if row["state"] == "S"]
    # A sleep that the host hides from BPF has no row.
    check(0 < row_sum(rows, "count") <= len(programs), f"{text}: {row_sum(rows, 'count')} first waits")
    cut_short = [(row["user"]["flags"], frame_names(row)) for row in rows
                 if row["user"]["flags"] or frame_names(row)[-1] != "_start"]
    check(not cut_short, f"{text}: their stacks are whole: {cut_short}")
    for program in programs:
        program.end()


def started(build):
    """Starts programs, one when the next one is wanted: the daemon must not have had time for it."""
    for path in copies(build):
        yield Program("", "deep", 1, 1, SLEEP_US, path=path).ready()


def new_files():
    """Programs that the daemon learns of by their forks and execs."""
    daemon = Daemon(ROOMY)
    for build in BUILDS:
        check_first(daemon, started(build), build)
    daemon.stop()


def before_the_daemon():
    """Programs that were there before the daemon, and have not waited since."""
    programs = list(started("o2"))
    daemon = Daemon(ROOMY)
    check_first(daemon, programs, "before the daemon")
    daemon.stop()


def big_file():
    """A program so big that its unwind rows are read only when a walk needs them, or somebody asks. It has slept
    since before the daemon, and stacks of sleepers are not read: no walk has needed them."""
    path = next(copies("o2"))
    os.truncate(path, 9 << 20)
    program = Program("", "deep", 1, 1, SLEEP_US, path=path).ready()
    wait_in(program.pid, "pipe_read")
    daemon = Daemon(ROOMY, "probe.offcpu.max_open_stacks=0")
    first = daemon.call("io.stackd.Settled", pid=program.pid)
    check(not first["settled"] and first["awaited"], f"a big file is awaited: {first}")
    check_first(daemon, [program], "a big file")
    daemon.stop()


def words():
    """What stackctl prints, and what it refuses."""
    daemon = Daemon(ROOMY)
    program = daemon.settled(Program("prog_unwind_o2", "deep").ready())
    result = daemon.ctl("status", "-p", program.pid)
    check(result.code == 0 and result.out == f"prog_unwind_o2 ({program.pid}): settled: 4 files, all with unwind rows\n",
          f"text: {result.out!r} {result}")
    answer = daemon.ctl_json("status", "-p", program.pid)
    check(answer == {"settled": True, "comm": "prog_unwind_o2", "files": 4, "awaited": [], "lacks": []}, f"{answer}")
    check(daemon.call("io.stackd.Settled", pid=2)["files"] == 0, "a thread of the kernel has no files")
    thread = max(threads_of(daemon.process.pid))
    program.end()
    for pid, word in ((thread, f"{thread} is a thread of process {daemon.process.pid}: ask for that"),
                      (program.pid, f"there is no process {program.pid}"),
                      (-1, "there is no process -1")):
        try:
            daemon.call("io.stackd.Settled", pid=pid)
            check(False, f"{pid} was answered")
        except VarlinkError as error:
            check(error.name == "io.stackd.InvalidFilter" and word in str(error), f"{pid}: {error}")
    for args, word in ((("-p", "1,2"), "one process"), (("-p", "1", "--check"), "--check")):
        result = daemon.ctl("status", *args)
        check(result.code == 1 and word in result.err, f"{args}: {result}")
    daemon.stop()


need_live()
run_parts(new_files, big_file, before_the_daemon, words)
