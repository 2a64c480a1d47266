#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that recordings outlive the daemon, also those of clients' sessions: after a stop, a kill,
and with a daemon that does not record, the same questions have the same answers, and all windows
are listed."""

import sqlite3

from harness import *


def names(row):
    """Returns a row's frame names. Addresses are kept in memory only, names also on disk."""
    frames = (row.get("user") or {}).get("frames", [])
    return tuple(frame.get("name") or "?" for frame in frames)


def answer(daemon, name):
    """Returns a session's answer as numbers, which another run of stackd must give as well."""
    reply = daemon.ctl_json("snapshot", name, "--idle")
    rows = sorted(
        (row["process"]["pid"], row["count"], row["total_ns"], names(row))
        for row in reply["rows"]
    )
    return {"rows": rows, "used": reply["coverage"]["used"], "lost": reply["lost"]}


def has_rows(daemon, name):
    with contextlib.suppress(VarlinkError):
        return daemon.call("io.stackd.Snapshot", session=name, idle=True)["rows"]
    return []


def listed(daemon, name):
    sessions = daemon.call("io.stackd.Sessions")["sessions"]
    return next((s for s in sessions if s.get("name") == name), None)


def windows(daemon, **of):
    return daemon.call("io.stackd.Windows", **of)["windows"]


def check_answers(daemon, before, text):
    for name, wanted in before.items():
        session = listed(daemon, name)
        check(session and session["ended"]["ns"] >= wanted["ended"] - 10**7, f"{text}: {name} is listed")
        got = answer(daemon, name)
        check(got == wanted["answer"], f"{text}: {name} has {len(got['rows'])} rows as before")
        by_id = answer(daemon, session["id"])
        check(by_id == got, f"{text}: the answer by its id is the same, {session['id']}")
        of_it = windows(daemon, session=name)
        same = [w["session"] for w in of_it] == [session["id"]] * wanted["windows"]
        check(same, f"{text}: {len(of_it)} windows of {name}, {wanted['windows']} before")
        kept = [w["rows"] for w in of_it]
        check(kept == wanted["rows"], f"{text}: with as many rows each: {kept}")


def check_windows(daemon, probes):
    every = windows(daemon)
    check({w["probe"] for w in every} == probes, f"windows of {sorted({w['probe'] for w in every})}")
    starts = [w["start"]["ns"] for w in every]
    check(starts == sorted(starts), "the oldest is first")
    for probe in probes:
        of_it = windows(daemon, probe=probe)
        text = daemon.ctl("windows", probe)
        check(of_it and all(w["probe"] == w["session"] == probe for w in of_it),
              f"only windows of {probe} are listed")
        check(text.code == 0 and text.out.count(f" {probe} ") >= len(of_it), f"as text: {text}")
    refused = daemon.ctl("windows", "no-such-session")
    check(refused.code == 1 and "no session no-such-session" in refused.err, str(refused))


def check_many(daemon, before):
    """Starts more sessions than memory keeps: the windows still name the oldest. Returns the last
    number."""
    numbers = []
    for _ in range(66):
        numbers.append(daemon.ctl("start", "oncpu", "-F", "1").out.strip())
        daemon.ctl("stop", numbers[-1])
    written = daemon.status()["store"]["written"]
    wait_until(lambda: daemon.status()["store"]["written"] > written + 4, "all on disk")
    known = [session["id"] for session in daemon.call("io.stackd.Sessions")["sessions"]]
    missing = [number for number in numbers if known.count(number) != 1]
    check(not missing, f"{len(numbers)} sessions are listed once each, but for {missing}")
    check(all(listed(daemon, name) for name in before), "so are those before them")
    return int(numbers[-1])


need_live()
daemon = Daemon("window.length=1s", "probe.offwake.enabled=yes")
program = Program("prog_sleeper").ready()
daemon.cut()
filters = {
    "waits": ["offcpu", "-m", "1", "-p", program.pid],
    "samples": ["oncpu", "-F", "99", "-u"],
    "empty": ["offcpu", "--comm", "no-such-name"],
}
for name, args in filters.items():
    started = daemon.ctl("start", "--name", name, *args)
    check(started.code == 0, f"start {name}: {started}")
# A question would cut windows short, and such are joined on disk.
subject_sleep(3)
before = {}
for name in filters:
    check(daemon.ctl("stop", name).code == 0, f"stop {name}")
    session = listed(daemon, name)
    before[name] = {
        "id": int(session["id"]),
        "answer": answer(daemon, name),
        "ended": session["ended"]["ns"],
        "windows": len(windows(daemon, session=name)),
        "rows": [w["rows"] for w in windows(daemon, session=name)],
    }
    last = int(session["id"])
check(before["waits"]["answer"]["rows"] and before["samples"]["answer"]["rows"], "they have rows")
check_windows(daemon, {"iolat", "offcpu", "oncpu", "offwake"})


def is_written():
    """True if the windows of all sessions are in the database."""
    with contextlib.closing(sqlite3.connect(f"file:{daemon.store}?mode=ro", uri=True)) as db:
        found = dict(db.execute("SELECT session, count(*) FROM windows GROUP BY session"))
    return all(found.get(of["id"]) == of["windows"] for of in before.values())


wait_until(is_written, "the windows on disk")

if not EVENTS_ONLY and "STACKD_UNIT" not in os.environ:  # in a machine this many sessions take minutes
    last = check_many(daemon, before)

daemon.process.kill()
daemon.process.wait()
daemon.start()
check_answers(daemon, before, "after a kill")
again = daemon.ctl("start", "offcpu", "--name", "waits", "-p", program.pid)
check(again.code == 0 and int(again.out) > last, f"a new number after {last}: {again.out}")
wait_until(lambda: has_rows(daemon, "waits"), "rows of the new session")
newer = daemon.call("io.stackd.Snapshot", session="waits")
check(newer["coverage"]["used"]["start"]["ns"] > before["waits"]["ended"],
      "a name stands for the newest session")
refused = daemon.ctl("stop", "samples")
check(refused.code == 1 and "has ended already" in refused.err, f"it cannot be stopped: {refused}")
check(daemon.ctl("stop", "waits").code == 0, "a session that runs can")
check(daemon.stop() == 0, "a clean stop")

del before["waits"]
daemon.argv.append("--serve-only")
daemon.start()
check_answers(daemon, before, "served only")
refused = daemon.ctl("start", "offcpu")
check(refused.code != 0 and "records nothing" in refused.err, f"no session is started: {refused}")
refused = daemon.ctl("watch", "offcpu")
check(refused.code == 6 and "records nothing" in refused.err, f"and nothing is watched: {refused}")
check_windows(daemon, {"iolat", "offcpu", "oncpu", "offwake"})
finish()
