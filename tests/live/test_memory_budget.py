#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows [budget] memory: when stackd takes more than it, windows in memory make room step by step,
status and log say so, and they get the room back when they may."""

from harness import *

MIB = 1 << 20
MAX = 16  # MiB for windows
RATE = 250


def limit(daemon, name):
    return next(limit for limit in daemon.status()["limits"] if limit["name"] == name)


def windows(daemon):
    return limit(daemon, "window.max_memory")["used"] / MIB


def set_budget(daemon, text):
    with open(daemon.config, "w", encoding="utf-8") as f:
        f.write(f"[budget]\nmemory = {text}\n")
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: f"budget.memory is {text}" in daemon.log(), "the reload")


need_live()
daemon = Daemon("window.length=1s", "window.keep=60s", "window.max_rows=500",
                f"window.max_memory={MAX}M", start=False)
at = daemon.argv.index("budget.memory=16G")
del daemon.argv[at - 1:at + 1]  # the file of settings is to say it
with open(daemon.config, "w", encoding="utf-8") as f:
    f.write("[budget]\nmemory = 16G\n")
daemon.start()
storm = spawn([os.path.join(PROGS, "prog_storm"), str(RATE), str(RATE * 600), "/bin/true"],
              stdout=subprocess.DEVNULL)
wait_until(lambda: windows(daemon) > MAX / 2, "windows to take memory")
check(limit(daemon, "budget.memory")["hits"] == 0, "nothing made room for a budget of 16G")

set_budget(daemon, "32M")
told = wait_until(lambda: (lambda l: l if l["hits"] else None)(limit(daemon, "budget.memory")),
                  "windows to make room")
check(told["value"] == 32 * MIB and told["used"] > told["value"], f"status says why: {told}")
check("[budget] memory allows 32 MiB" in daemon.log(), "so does the log")
# Each 16 s, the limit is lowered by a sixteenth, down to a quarter (unit test memory_budget).
wait_until(lambda: windows(daemon) <= MAX * 0.75, "windows to take less")
check(True, f"windows take {windows(daemon):.1f} MiB of {MAX}")
past = daemon.ctl("snapshot", "offcpu", "--window", "20s")
check(past.code == 0, f"the past can be asked: exit {past.code}")
check_nothing_lost(daemon.status(), "status")

set_budget(daemon, "8G")
wait_until(lambda: "what [window] max_memory says again" in daemon.log(),
           "the log to say that windows may have the memory again")
wait_until(lambda: windows(daemon) > MAX * 0.8, "windows to take the memory again")
stop_process(storm)
check(daemon.stop() == 0, "it ends well")
finish()
