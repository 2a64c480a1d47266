#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What was recorded before a reboot is answered after it, and so is, after a power cut, all that
had been synced. The time the machine was off is a gap."""

from system import *

NOTES = "/var/lib/test-reboot.json"
REBOOT, POWER_CUT = 88, 89


def record():
    """Runs a program of known waits; returns when, and as whom, once the store has synced it."""
    start = time.time()
    program = Program("prog_waits", 3, 200).ready().go().done()
    program.end()
    end = time.time()
    wait_until(lambda: synced() >= end, 120, "the store to sync it")
    return {"pid": program.pid, "start": start, "end": end}


def synced():
    return call("io.stackd.Status").get("store", {}).get("synced", {}).get("ns", 0) / NS_PER_S


def check_recorded(note, text):
    argv = ["snapshot", "offcpu", "-f", "-p", note["pid"]]
    argv += ["--since", f"@{int(note['start']) - 1}", "--until", f"@{int(note['end']) + 6}"]
    done = ctl(*[str(a) for a in argv], timeout=120)
    stacks = parse_folded(done.out) if done.code == 0 else {}
    value = folded_sum(stacks, "wait_in_pipe_read", "run_waits")
    check(value >= 3 * 200_000, f"{text}: {value} us of waits, {done}")


def check_gap(note, text):
    since = int(note["end"])
    done = ctl("windows", "--since", f"@{since}", timeout=120)
    check("gap" in done.out, f"{text}: the time between is a gap: {done} {done.out[-500:]}")


phase = int(os.environ["PHASE"])
notes = {}
if phase > 0:
    with open(NOTES, encoding="ascii") as file:
        notes = json.load(file)
for name, note in notes.items():
    check_recorded(note, f"{name}, boot {phase}")
if phase == 2:
    check_gap(notes["before the power cut"], "power cut")
    status = call("io.stackd.Status")
    check(not any("store" in p or "stackd.db" in p for p in status["problems"]),
          f"the store opens without a problem: {status['problems']}")
    finish()
name = ("before the reboot", "before the power cut")[phase]
notes[name] = record()
with open(NOTES, "w", encoding="ascii") as file:
    json.dump(notes, file)
    file.flush()
    os.fsync(file.fileno())
if failures():
    finish()
sys.exit(REBOOT if phase == 0 else POWER_CUT)
