#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what many clients at once cost a daemon that records: its memory, and how late windows end
meanwhile. Needs root. With windows of 1 s and of 5 s, while short-lived processes come and go:

    quiet        no client
    20 at once   20 stackctl at a time, again and again: top 20, overviews, JSON of all rows
    deaf         60 clients ask for all rows and do not read
    deaf follow  64 clients follow all rows and do not read
    a day        200 clients ask for all rows of a day, 64 of them at a time, and read

Goals: at most 128 MiB, and no window later than without clients. Give --other STACKD to have another
version beside it. With --db DB, the daemon records into a copy of that database, so that a day is one.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

NS = 10**9
PARTS = (["snapshot", "offcpu"], ["snapshot"], ["snapshot", "offcpu", "--json"],
         ["snapshot", "oncpu"])


class Recorder:
    """A daemon that records, and a storm of short-lived processes."""

    def __init__(self, stackd, ctl, length, database):
        self.directory = tempfile.mkdtemp(prefix="bench-clients-")
        self.socket, self.ctl, self.length = f"{self.directory}/s", ctl, length
        if database:
            shutil.copy(database, f"{self.directory}/db")
        self.process = subprocess.Popen(
            [stackd, "-o", f"control.socket={self.socket}", "-o", f"store.path={self.directory}/db",
             "-o", f"window.length={length}s", "-o", "control.max_clients=256"],
            stderr=subprocess.DEVNULL)
        while not os.path.exists(self.socket):
            time.sleep(0.05)
        self.storm = subprocess.Popen(
            ["sh", "-c", "while :; do cat /etc/passwd | sort | head -1 > /dev/null; done"])

    def stop(self):
        self.storm.terminate()
        self.storm.wait()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.directory)

    def memory(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmRSS"))

    def ask(self, *words):
        return json.loads(subprocess.run([self.ctl, "-S", self.socket, *words, "--json"], check=True,
                                         capture_output=True, text=True).stdout)

    def connect(self, method, **parameters):
        """Makes a call and returns its connection; nothing is read."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(60)
        connection.connect(self.socket)
        message = {"method": f"io.stackd.{method}", "parameters": parameters, "more": True}
        connection.sendall(json.dumps(message).encode() + b"\0")
        return connection


def quiet(recorder, seconds):
    time.sleep(seconds)
    return ""


def at_once(recorder, seconds):
    end, n, codes = time.monotonic() + seconds, 0, {}
    while time.monotonic() < end:
        clients = [subprocess.Popen([recorder.ctl, "-S", recorder.socket, *PARTS[i % len(PARTS)],
                                     "--window", "40s"], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL) for i in range(20)]
        for client in clients:
            code = client.wait()
            codes[code] = codes.get(code, 0) + 1
        n += len(clients)
    return f"{n} answers, exit codes {codes}"


def deaf(recorder, seconds):
    clients = [recorder.connect("Snapshot", probe="offcpu", window_ns=120 * NS) for _ in range(60)]
    time.sleep(seconds)
    for client in clients:
        client.close()
    return ""


def deaf_follow(recorder, seconds):
    clients = [recorder.connect("Follow", probe="offcpu", interval_ns=recorder.length * NS)
               for _ in range(64)]
    time.sleep(seconds)
    for client in clients:
        client.close()
    return ""


def read_all(recorder, counts, lock):
    try:
        with recorder.connect("Snapshot", probe="offcpu", window_ns=86400 * NS) as connection:
            last = b""
            while True:
                data = connection.recv(1 << 16)
                if not data:
                    result = "cut off"
                    break
                last = (last + data)[-(1 << 21):]
                if data.endswith(b"\0"):
                    message = json.loads(last[last.rfind(b"\0", 0, -1) + 1:-1])
                    if not message.get("continues"):
                        result = message.get("error", "answered")
                        break
    except (OSError, ValueError) as error:
        result = type(error).__name__
    with lock:
        counts[result] = counts.get(result, 0) + 1


def a_day(recorder, seconds):
    counts, lock, begin = {}, threading.Lock(), time.monotonic()
    threads = [threading.Thread(target=read_all, args=(recorder, counts, lock)) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return f"{counts} in {time.monotonic() - begin:.0f} s"


PHASES = {"quiet": quiet, "20 at once": at_once, "deaf": deaf, "deaf follow": deaf_follow,
          "a day": a_day}


def measure(recorder, phase, seconds):
    peak, is_over = [0], threading.Event()

    def sample():
        while not is_over.wait(0.05):
            peak[0] = max(peak[0], recorder.memory())

    since = time.time_ns()
    sampler = threading.Thread(target=sample)
    sampler.start()
    said = PHASES[phase](recorder, seconds)
    until = time.time_ns()
    is_over.set()
    sampler.join()
    time.sleep(recorder.length + 1)
    listed = recorder.ask("windows", "offcpu")
    windows = [w for w in listed["windows"] if w["end"]["ns"] > since and w["start"]["ns"] < until]
    gaps = [g["reason"] for g in listed["gaps"] if g["end"]["ns"] > since]
    longest = max((w["length_ns"] for w in windows), default=0) / NS
    print(f"  {phase:12} {peak[0]:7.0f} MiB, longest window {longest:6.2f} s, {len(windows)} windows, "
          f"{len(gaps)} gaps {gaps[:2] or ''} {said}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--other", metavar="STACKD", help="another version of the daemon")
    parser.add_argument("--db", help="a recorded database")
    parser.add_argument("--seconds", type=int, default=20, help="length of a phase (20)")
    parser.add_argument("--lengths", default="1,5", help="lengths of windows in seconds (1,5)")
    parser.add_argument("--phases", default=",".join(PHASES), help="the phases, by name")
    arguments = parser.parse_args()
    versions = [("this", f"{arguments.build}/daemon/stackd")]
    if arguments.other:
        versions.insert(0, ("other", arguments.other))
    for name, stackd in versions:
        for length in map(int, arguments.lengths.split(",")):
            recorder = Recorder(stackd, f"{arguments.build}/client/stackctl", length, arguments.db)
            try:
                time.sleep(max(40, 3 * length))
                print(f"{name}, windows of {length} s, {recorder.memory():.0f} MiB before", flush=True)
                for phase in arguments.phases.split(","):
                    measure(recorder, phase, arguments.seconds)
            finally:
                recorder.stop()


main()
