#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""After a reboot, queries show what was recorded before it. After a power cut under load, they show
everything that had been synced. The time in which the machine was off is shown as a gap."""

from system import *

NOTES = "/var/lib/test-reboot.json"
REBOOT, POWER_CUT = 88, 89
SETTINGS = "/etc/stackd/stackd.conf.d/reboot.conf"
SLOW = "not written: the disk was too slow"
# The reason of gaps from before the power cut: a machine that is emulated on a busy host falls behind.
BEHIND = "a window could not be kept"
ENOUGH = 3  # programs recorded and synced before the power may go
PHASE = os.environ["PHASE"]


def record(count, ms):
    """Runs a program with known waits. Returns its pid and times when the store has synced them."""
    start = time.time()
    program = Program("prog_waits", count, ms).ready().go().done()
    program.end()
    end = time.time()
    wait_until(lambda: synced() >= end, "the store to sync it")
    return {"pid": program.pid, "start": start, "end": end, "us": count * ms * 1000}


def synced():
    return call("io.stackd.Status").get("store", {}).get("synced", {}).get("ns", 0) / NS_PER_S


def load_notes():
    """Returns the notes; a line that the power cut truncated is skipped."""
    with open(NOTES, encoding="ascii") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def add_note(note):
    with open(NOTES, "a", encoding="ascii") as file:
        file.write(json.dumps(note) + "\n")
        file.flush()
        os.fsync(file.fileno())


def coverage(start, end=None):
    parameters = {"until_ns": int(end * NS_PER_S)} if end else {}
    reply = call("io.stackd.Snapshot", probe="offcpu", since_ns=int(start * NS_PER_S), top=1,
                 **parameters)
    return reply["coverage"]


def check_recorded(note, text):
    argv = ["snapshot", "offcpu", "-f", "-p", note["pid"]]
    argv += ["--since", f"@{note['start']:.3f}", "--until", f"@{note['end']:.3f}"]
    done = ctl(*[str(a) for a in argv])
    stacks = parse_folded(done.out) if done.code == 0 else {}
    value = folded_sum(stacks, "wait_in_pipe_read", "run_waits")
    check(value >= note["us"], f"{text}: {value} us of waits, {done}")
    gaps = coverage(note["start"], note["end"])["gaps"]
    check(not gaps, f"{text}: covered without a gap: {gaps}")


def check_gap(since, reason, text, *before):
    """Checks that the last gap has this reason; before: reasons that earlier gaps may have."""
    gaps = [g["reason"] for g in coverage(since)["gaps"]]
    check(gaps[-1:] == [reason] and set(gaps[:-1]) <= set(before),
          f"{text}: the time between is a gap, {reason}: {gaps}")


def check_store():
    status = call("io.stackd.Status")
    check(not any("store" in p or "stackd.db" in p for p in status["problems"]),
          f"the store opens without a problem: {status['problems']}")


def keep_recording():
    """Records programs until the machine ends, and notes each one when it has been synced."""
    # The load: threads that wake each other, files that are synced, processes that come and go.
    subprocess.Popen(["stress-ng", "-q", "--switch", "1", "--hdd", "1", "--hdd-bytes", "8m",
                      "--hdd-opts", "fsync", "--fork", "1", "--temp-path", "/var/tmp"])
    while True:
        add_note(record(1, 100))


def start_recording():
    subprocess.Popen([sys.executable, __file__], env={**os.environ, "PHASE": "load"})
    before = len(load_notes())
    wait_until(lambda: len(load_notes()) >= before + ENOUGH, "programs to be recorded")


if PHASE == "load":
    keep_recording()
elif PHASE == "0":
    write(SETTINGS, "[window]\nlength = 2s\n[budget]\ncpu = off\n")
    check(systemctl("restart", UNIT).code == 0, "restarted with short windows")
    add_note(record(3, 200))
    sys.exit(REBOOT)
wait_for_store()
notes = load_notes()
check_recorded(notes[0], f"before the reboot, boot {PHASE}")
if PHASE == "1":
    check_gap(notes[0]["end"], "stackd was stopped, and the host restarted", "reboot")
    start_recording()
    if failures():
        finish()
    sys.exit(POWER_CUT)
print(f"{len(notes) - 1} programs noted before the power was cut")
for note in notes[1:]:
    check_recorded(note, "before the power cut")
whole = coverage(notes[1]["start"], notes[-1]["end"])
gaps = {gap["reason"] for gap in whole["gaps"]} - {SLOW, BEHIND}
check(not gaps, f"the power cut took none of {whole['windows']} windows: {gaps}")
check_gap(notes[-1]["end"], "stackd was not stopped: the host went down", "power cut",
          SLOW, BEHIND)
check_store()
os.unlink(SETTINGS)
check(systemctl("restart", UNIT).code == 0, "restarted with windows as they were")
finish()
