#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock of a machine is set back by an hour and forward again, and the machine is suspended.
Queries find recordings under the time that the clock showed then, and each gap has its reason."""

from system import *

HOUR = 3600
MS, COUNT = 200, 3
ASLEEP = 15
STATES = "/sys/power/state"
ALARM = "/sys/class/rtc/rtc0/wakealarm"


def record():
    """Runs a program with known waits. Returns its pid, and its times by the clock at that time."""
    daemon.cut()
    start = time.time()
    program = Program("prog_waits", COUNT, MS).ready().go().done()
    program.end()
    daemon.cut()
    us = program.value("wait_in_pipe_read")["ns"] // 1000
    return {"pid": program.pid, "start": start, "end": time.time(), "us": us}


def check_recorded(note, text):
    """Checks that a query of the times in note finds the waits."""
    done = daemon.ctl("snapshot", "offcpu", "-f", "-p", note["pid"], "--since",
                      f"@{note['start']:.3f}", "--until", f"@{note['end']:.3f}")
    value = folded_sum(parse_folded(done.out), "wait_in_pipe_read") if done.code == 0 else 0
    check_near(value, note["us"], 0.15, f"{text}: us of waits, {done}")


def check_last(note, other):
    """Checks that --window counts back from the time that the clock shows now."""
    window = f"{time.time() - note['start']:.3f}s"
    shown = [daemon.ctl("snapshot", "offcpu", "-f", "-p", n["pid"], "--window", window)
             for n in (note, other)]
    value = folded_sum(parse_folded(shown[0].out), "wait_in_pipe_read")
    check_near(value, note["us"], 0.15, f"--window {window}: us of waits, {shown[0]}")
    check(not shown[1].out, f"without what was recorded under another time: {shown[1]}")


def gaps(start, end):
    """Returns (seconds, reason) of each gap longer than a second, since setting a clock takes time."""
    reply = daemon.call("io.stackd.Snapshot", probe="offcpu", since_ns=int(start * NS_PER_S),
                        until_ns=int(end * NS_PER_S), top=1)
    found = [((g["end"]["ns"] - g["start"]["ns"]) / NS_PER_S, g["reason"])
             for g in reply["coverage"]["gaps"]]
    return [gap for gap in found if gap[0] > 1]


def set_clock(seconds):
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)


def check_steps():
    before = record()
    set_clock(-HOUR)
    back = record()
    check_last(back, before)
    set_clock(HOUR)
    forth = record()
    check_last(forth, back)
    notes = {"before the clock was set": before, "while it was behind": back, "set forth": forth}
    for text, note in notes.items():
        check_recorded(note, text)
    # Gaps of earlier tests, which restarted the daemon, lie before this range.
    found = gaps(before["end"], forth["start"])
    check([why for _, why in found] == ["the clock was set, and set again"],
          f"what the clock did not show is a gap: {found}")
    return notes


def slept():
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


def suspend():
    """Suspends to memory until the real-time clock wakes the machine. Returns the seconds, 0: it cannot."""
    with open(STATES, encoding="ascii") as states:
        if "mem" not in states.read().split() or not os.path.exists(ALARM):
            return 0
    before = slept()
    for path, word in ((ALARM, "0"), (ALARM, f"+{ASLEEP}"), (STATES, "mem")):
        with open(path, "w", encoding="ascii") as file:
            file.write(word)
    return slept() - before


def check_sleep():
    before = record()
    seconds = suspend()
    if not seconds:
        print("skipped: this machine cannot sleep, or has no clock to wake it")
        return {}
    check(seconds > ASLEEP / 2, f"it slept {seconds:.1f} s")
    after = record()
    check_last(after, before)
    notes = {"before it slept": before, "after it slept": after}
    for text, note in notes.items():
        check_recorded(note, text)
    found = gaps(before["start"], after["end"])
    ours = len(found) == 1 and found[0][1] == "the host was suspended"
    check(ours and abs(found[0][0] - seconds) < 2, f"a gap of {seconds:.1f} s: {found}")
    return notes


need_live()
daemon = Daemon("window.length=1s")
noted = {**check_steps(), **check_sleep()}
check_nothing_lost(daemon.status(), "status")
# The next daemon answers the same from the disk.
daemon = Daemon("window.length=2s")
for label, entry in noted.items():
    check_recorded(entry, f"{label}, after a restart")
finish()
