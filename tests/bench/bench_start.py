#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures a start: from exec to READY=1 on the notify socket, with 200 processes on the host."""

import os
import socket
import subprocess
import time

from bench import arguments, table, verdict

args = arguments(__doc__, runs=10, processes=200)

import harness  # noqa: E402


def measure(directory):
    """Returns the milliseconds until READY=1."""
    path = os.path.join(directory, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(path)
        notify.settimeout(30)
        config = os.path.join(directory, "stackd.conf")
        with open(config, "w", encoding="utf-8"):
            pass
        argv = [harness.STACKD, "-c", config, "-o", f"control.socket={directory}/sock"]
        argv += ["-o", f"store.path={directory}/stackd.db"]
        environment = {**os.environ, "NOTIFY_SOCKET": path}
        start = time.monotonic()
        daemon = subprocess.Popen(argv, env=environment, stderr=subprocess.DEVNULL)
        try:
            while b"READY=1" not in notify.recv(4096).split(b"\n"):
                pass
            return (time.monotonic() - start) * 1000
        finally:
            harness.stop_process(daemon)
            os.unlink(path)


running = sum(name.isdigit() for name in os.listdir("/proc"))
wanted = max(args.processes - running, 0)
sleepers = [harness.Program("prog_sleeper").ready() for _ in range(wanted)]
times = sorted(measure(harness.make_temp_dir()) for _ in range(args.runs))
for sleeper in sleepers:
    sleeper.kill()
median = times[len(times) // 2]
print(f"{args.runs} starts with {running + wanted} processes; ms from exec to READY=1")
table(
    ["", "least", "median", "most", "goal", ""],
    [
        [
            "start",
            f"{times[0]:.0f}",
            f"{median:.0f}",
            f"{times[-1]:.0f}",
            "1000",
            verdict(times[-1] <= 1000),
        ]
    ],
)
