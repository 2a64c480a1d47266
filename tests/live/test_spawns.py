#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that processes that begin and end are counted exactly, by parent and by name, without a session:
forks, execs, exits, their CPU time as the kernel reports it to the parent, and their lives; and that the
disk has the same."""

import resource

from harness import *

# Many of each kind: an answer has only the rows with the most events, and a busy host has others, too.
FORKS, SHELLS, EACH, SPINNERS, THREADS = 500, 20, 15, 10, 6
EXECS = SHELLS * EACH


def copy_prog(source, name):
    """Copies a program, so that its processes have a name that no other process has."""
    path = os.path.join(daemon.dir, name)
    shutil.copy(source, path)
    return path


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * NS_PER_S


def answer():
    daemon.cut()
    return daemon.ctl_json("snapshot", "offcpu", "--window", "10min", "-n", "1")


def row_of(parent, comm):
    """Returns the numbers of these processes, and how many events of processes were lost."""
    reply = answer()
    lost = sum(x["count"] for x in reply["lost"] if x["reason"].startswith("fork, exec"))
    found = [r["sums"] for r in reply["spawns"]["rows"] if (r["parent"], r["comm"]) == (parent, comm)]
    return (found[0] if found else dict.fromkeys(reply["spawns"]["total"], 0)), lost


def check_row(parent, comm, **wanted):
    """Checks the numbers of events, and returns the row. The last moments of a process come after its
    parent knows that it has ended."""

    def is_there():
        row, lost = row_of(parent, comm)
        return all(row[name] >= n - lost for name, n in wanted.items())

    wait_until(is_there, f"{comm} of {parent}: {wanted}")
    row, lost = row_of(parent, comm)
    check(all(n - lost <= row[name] <= n for name, n in wanted.items()), f"{comm} of {parent}: {row}, lost {lost}")
    return row


def check_cpu(ns, expected, text):
    """The clocks differ: stackd's includes interrupts, and the time after the last accounting."""
    check(expected / 2 <= ns <= expected * 2, f"{text}: {ns / 1e6:.1f} ms of {expected / 1e6:.1f} ms")


need_live()
daemon = Daemon("window.length=1s")
with open("/proc/self/comm", encoding="ascii") as f:
    mine = f.read().strip()

# Children that never call exec have the name of their parent. Each waits for a millisecond.
forker = Program("forkmany", FORKS, 1, path=copy_prog(os.path.join(PROGS, "prog_forker"), "forkmany"))
forker.ready().go().read_until("child_wait")
row = check_row("forkmany", "forkmany", forks=FORKS, execs=0, exits=FORKS, short_lived=FORKS)
check(row["life_ns"] >= row["short_lived"] * 10**6, f"forks: they live for {row['life_ns']} ns")
forker.end()

# Shells that start programs, all with one name.
shell = copy_prog("/bin/sh", "spawnshell")
program = copy_prog(os.path.join(PROGS, "prog_shortlived"), "spawned")
script = f"i=0; while [ $i -lt {EACH} ]; do {program} 1; i=$((i + 1)); done"
before = children_cpu()
for _ in range(SHELLS):
    subprocess.run([shell, "-c", script], stdin=subprocess.DEVNULL, check=True)
cpu = children_cpu() - before
row = check_row("spawnshell", "spawned", forks=0, execs=EXECS, exits=EXECS)
check_row("spawnshell", "spawnshell", forks=EXECS, execs=0, exits=0)
own = check_row(mine, "spawnshell", forks=0, execs=SHELLS, exits=SHELLS)
check_cpu(row["cpu_ns"] + own["cpu_ns"], cpu, "CPU time of the shells and their children")
check(row["life_ns"] >= row["short_lived"] * 10**6, f"execs: they live for {row['life_ns']} ns")

# Processes whose threads all end at the same moment.
spin = copy_prog(os.path.join(PROGS, "prog_spinners"), "spinmany")
before = children_cpu()
for _ in range(SPINNERS):
    spinners = Program("spinmany", THREADS, path=spin)
    spinners.ready().go().read_until("spinning")
    time.sleep(0.1)
    spinners.kill()
cpu = children_cpu() - before
row = check_row(mine, "spinmany", forks=0, execs=SPINNERS, exits=SPINNERS)
if row["short_lived"] == SPINNERS:
    check_cpu(row["cpu_ns"], cpu, "CPU time of all threads")

reply = answer()
found = reply["spawns"]
for member in found["total"]:
    rows = sum(r["sums"][member] for r in found["rows"])
    check(found["total"][member] == rows + found["others"][member], f"rows add up: {member}")
text = daemon.ctl("snapshot", "--window", "10min").out
check(re.search(r"^processes +[\d,]+ short-lived, ", text, re.M), f"the overview says so: {text[:600]}")
text = daemon.ctl("snapshot", "--by", "parent", "--window", "10min").out
check(re.search(r"^ *0 +[1-9]\d* +[1-9]\d* +[1-9].*  spawned$", text, re.M), f"by parent: {text[-2000:]}")
filtered = daemon.ctl_json("snapshot", "offcpu", "--window", "10min", "-p", os.getpid())
check("spawns" not in filtered, "a filter leaves them out")
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")

# The database has the same.
again = Daemon()
again.stop()
again.argv[again.argv.index(f"store.path={again.store}")] = f"store.path={daemon.store}"
again.argv.append("--serve-only")
again.start()
stored = again.ctl_json("snapshot", "offcpu", "--since", "-1h", "-n", "1")["spawns"]
for parent, comm in (("forkmany", "forkmany"), ("spawnshell", "spawned"), (mine, "spinmany")):
    kept = [r["sums"] for r in found["rows"] if (r["parent"], r["comm"]) == (parent, comm)]
    disk = [r["sums"] for r in stored["rows"] if (r["parent"], r["comm"]) == (parent, comm)]
    check(kept == disk, f"on disk: {comm}: {kept} {disk}")
again.stop()
finish()
