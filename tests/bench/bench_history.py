#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures questions about many minutes of churn: time, CPU and memory of the daemon and of
stackctl. Give --base BUILD, a build of an earlier version, to have both in one run.

The history is that of a storm of short-lived processes which stackd records for --seconds, written
--copies times one after the other, so that it covers 20 minutes by default. DB (--db) is a recorded
database to use instead. With --month, the questions are about an hour, a day and 30 days of the
database that bench_month has made, beside a copy of it without summaries; and the first 20
rows of both are compared.
"""

import argparse
import collections
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
QUESTIONS = (
    ("overview, 20 min", 20, ["snapshot"], 1.0),
    ("offcpu top 20, 15 min", 15, ["snapshot", "offcpu"], 0.5),
    ("offcpu, one process, 20 min", 20, ["snapshot", "offcpu", "-p", "PID"], None),
    ("by function, 15 min", 15, ["snapshot", "offcpu", "--by", "function"], None),
    ("oncpu top 20, 15 min", 15, ["snapshot", "oncpu"], None),
    ("JSON of all rows, 5 min", 5, ["snapshot", "offcpu", "--json"], None),
)
HOUR, DAY, MONTH = 60, 1440, 43200  # in minutes
# The last number says how long before the end of the history the range ends.
MONTH_QUESTIONS = (
    ("offcpu top 20, the last hour", HOUR, ["snapshot", "offcpu"], None),
    ("the same, of windows of 1 min", HOUR, ["snapshot", "offcpu"], 0.3, 3 * HOUR),
    ("the same, of windows of 10 min", HOUR, ["snapshot", "offcpu"], 0.3, 2 * DAY),
    ("offcpu top 20, a day", DAY, ["snapshot", "offcpu"], None),
    ("offcpu top 20, 30 days", MONTH, ["snapshot", "offcpu"], 1.0),
    ("overview, 30 days", MONTH, ["snapshot"], None),
)
CLIENTS = 20


def record(build, directory, seconds):
    path = f"{directory}/recorded.db"
    argv = [f"{build}/daemon/stackd", "-o", f"control.socket={directory}/recorded.sock",
            "-o", f"store.path={path}"]
    daemon = subprocess.Popen(argv)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        subprocess.run(["sh", "-c", "cat /etc/passwd | sort | head -1 > /dev/null"], check=False)
    daemon.terminate()
    daemon.wait()
    return path


class Served:
    """A daemon that answers questions from a copy of the database."""

    def __init__(self, build, directory, database, name):
        self.ctl = f"{build}/client/stackctl"
        self.socket = f"{directory}/{name}.sock"
        path = f"{directory}/{name}.db"
        shutil.copy(database, path)
        argv = [f"{build}/daemon/stackd", "--serve-only", "-o", f"control.socket={self.socket}",
                "-o", f"store.path={path}"]
        self.process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        while subprocess.run([self.ctl, "-S", self.socket, "status"], check=False,
                             capture_output=True).returncode == 2:
            time.sleep(0.01)
        self.floor = self.memory()

    def memory(self):
        """Returns the most memory that the daemon had, in MiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmHWM"))

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def start(self, argv):
        return subprocess.Popen([self.ctl, "-S", self.socket, *argv], stdout=subprocess.DEVNULL)

    def ask(self, argv):
        """Returns (seconds, CPU seconds of the daemon, MiB of stackctl)."""
        cpu, begin = self.cpu(), time.monotonic()
        client = self.start(argv)
        _, status, usage = os.wait4(client.pid, 0)
        took = time.monotonic() - begin
        if status not in (0, 4 << 8):
            print(f"{argv}: exit {status >> 8}")
        return took, self.cpu() - cpu, usage.ru_maxrss / 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()


def minutes(end, n):
    """Returns the options for the n minutes before the end of the history."""
    return ["--since", f"@{end - 60 * n}", "--until", f"@{end}"]


def some_pid(served, end):
    """Returns a process that is in the history."""
    done = subprocess.run([served.ctl, "-S", served.socket, "snapshot", "offcpu", "-n", "50",
                           *minutes(end, 1)], capture_output=True, text=True, check=True)
    pids = [word.split(")")[0].split(",")[0] for word in done.stdout.split("(pid ")[1:]]
    return pids[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default=f"{HERE}/../../build")
    parser.add_argument("--base", help="build of an earlier version")
    parser.add_argument("--db", help="a recorded database")
    parser.add_argument("--month", help="a database that bench_month has made; nothing else is done")
    parser.add_argument("--seconds", type=int, default=240)
    parser.add_argument("--copies", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=500, help="fold windows to it; 0: do not")
    args = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="bench-history-")
    try:
        if args.month:
            with sqlite3.connect(args.month) as db:
                end = db.execute("SELECT max(end_real_ns) FROM windows").fetchone()[0]
            plain = f"{directory}/without-summaries.db"
            shutil.copy(args.month, plain)
            with sqlite3.connect(plain) as db:
                db.execute("DELETE FROM summaries")
            for _ in range(args.rounds):
                for name, build, path in (("base", args.base, plain), ("plain", args.build, plain),
                                          ("ours", args.build, args.month)):
                    if build:
                        questions(build, directory, path, name, end // 10**9, MONTH_QUESTIONS)
            tops_compare(args.build, directory, plain, args.month, end // 10**9)
            return
        recorded = args.db or record(args.build, directory, args.seconds)
        for round_number in range(args.rounds):
            path = f"{directory}/history.db"
            subprocess.run(["rm", "-f", path, f"{path}-wal", f"{path}-shm", f"{path}.lock"], check=True)
            subprocess.run([f"{args.build}/tests/bench/churn_replay", recorded, path,
                            str(args.copies), str(args.rows)], check=True)
            end = int(time.time())
            for name, build in (("base", args.base), ("ours", args.build)):
                if build:
                    report(build, directory, path, name, end)
    finally:
        shutil.rmtree(directory)


def questions(build, directory, path, name, end, asked):
    for label, length, argv, goal, *ago in asked:
        served = Served(build, directory, path, name)
        argv = [some_pid(served, end) if word == "PID" else word for word in argv]
        argv += minutes(end - 60 * sum(ago), length)
        served.stop()
        served = Served(build, directory, path, name)
        took, cpu, client = served.ask(argv)
        text = f" (goal {goal} s)" if goal else ""
        print(f"{name} {label:28} {took:6.2f} s{text}, CPU {cpu:5.2f} s, daemon +"
              f"{served.memory() - served.floor:5.0f} MiB, stackctl {client:4.0f} MiB", flush=True)
        served.stop()


def tops(build, directory, path, argv):
    """Returns the first rows, by process, comm, state and stacks, with their sums, and the error that
    the answer states."""
    served = Served(build, directory, path, "top")
    done = subprocess.run([served.ctl, "-S", served.socket, *argv, "-n", "100", "--json"],
                          capture_output=True, text=True, check=False)
    served.stop()
    answer, sums = json.loads(done.stdout), collections.Counter()
    for row in answer["rows"]:
        key = json.dumps([row["process"]["pid"]] +
                         [row.get(part) for part in ("comm", "state", "kernel", "user")])
        if row["comm"] != "(others)" and not row["idle"]:
            sums[key] += row["total_ns"]
    error = (answer["coverage"].get("summaries") or {}).get("bound_ns", 0)
    return sums, error + (answer.get("others") or {}).get("bound_ns", 0)


def tops_compare(build, directory, plain, path, end):
    """Compares the first 20 of the windows with those of the summaries."""
    for label, length, argv, _, *ago in MONTH_QUESTIONS[:-1]:
        argv = argv + minutes(end - 60 * sum(ago), length)
        (windows, error), (ours, bound) = (tops(build, directory, p, argv) for p in (plain, path))
        first = [key for key, _ in windows.most_common(20)]
        same = sum(key in dict(ours.most_common(20)) for key in first)
        worst = max((abs(ours[key] - windows[key]) / windows[key] for key in first), default=0)
        print(f"{label}: {same} of the first {len(first)} are the same, the largest difference is "
              f"{worst:.2%}; the answers may lack {error / 1e9:.1f} s and {bound / 1e9:.1f} s a row",
              flush=True)


def report(build, directory, path, name, end):
    questions(build, directory, path, name, end, QUESTIONS)
    for label, options in (("top 20", []), ("JSON of all rows", ["--json"])):
        served = Served(build, directory, path, name)
        begin = time.monotonic()
        argv = ["snapshot", "offcpu", *options, *minutes(end, 15)]
        clients = [served.start(argv) for _ in range(CLIENTS)]
        codes = [client.wait() for client in clients]
        print(f"{name} {CLIENTS} clients at once, {label}: {time.monotonic() - begin:.2f} s, daemon "
              f"{served.memory():.0f} MiB (goal 128), exit codes {set(codes)}", flush=True)
        served.stop()


if __name__ == "__main__":
    sys.exit(main())
