#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that clients that do not read cost others no memory, no answer and no window: as many answers
are made as [query] allows, further calls wait and are then refused with Busy, and stackctl says so."""

import harness as h

h.need_live()

CLIENTS = 60
MIB = 1 << 20
daemon = h.Daemon("window.length=1s", "window.max_rows=5000", "control.max_clients=160",
                  "query.max_wait=500ms", "query.max_memory=16M")
# 800 processes are rows of their own: an answer of all rows is far more than a socket holds.
crowd = h.Program("prog_crowd", 800).ready().go().done()


def rows():
    """Returns the number of rows of the last windows; 0 where the crowd is in none of them yet."""
    result = daemon.ctl("snapshot", "offcpu", "--idle", "--comm", "prog_crowd", "--window", "2s", "--json")
    if result.code == 4:
        return 0
    h.check(result.code in (0, 5), "their rows can be asked for")
    return h.json.loads(result.out)["shown"]["rows"]


h.wait_until(lambda: rows() >= 800, "their rows")


def limits():
    return {limit["name"]: limit for limit in daemon.status()["limits"]}


def deaf(method, **parameters):
    """Returns connections that have called, and do not read."""
    clients = []
    for _ in range(CLIENTS):
        client = h.socket.socket(h.socket.AF_UNIX)
        client.connect(daemon.socket)
        call = {"method": f"io.stackd.{method}", "parameters": parameters, "more": True}
        client.sendall(h.json.dumps(call).encode() + b"\0")
        clients.append(client)
    return clients


def check_meanwhile(text, before):
    now = limits()
    h.check(now["query.max_streams"]["used"] <= 2, f"{text}: answers in being: {now['query.max_streams']}")
    h.check(now["query.max_answers"]["used"] <= now["query.max_answers"]["value"], f"{text}: their memory")
    grown = daemon.status()["rss_bytes"] - before
    h.check(grown < 96 * MIB, f"{text}: they cost {grown / MIB:.0f} MiB")
    cut = daemon.cut()
    h.wait_until(lambda: daemon.cut() > cut + 2 * h.NS_PER_S, f"{text}: windows end")
    result = daemon.ctl("snapshot", "offcpu", "--window", "2s")
    h.check(result.code == 0, f"{text}: a short answer is made: {result.code} {result.err}")


before = daemon.status()["rss_bytes"]
followers = deaf("Follow", probe="offcpu", idle=True, interval_ns=h.NS_PER_S)
h.wait_until(lambda: limits()["query.max_streams"]["hits"] > 3, "followers that wait")
check_meanwhile("deaf followers", before)
h.check(limits()["query.max_wait"]["hits"] == 0, "no follower is refused")
for client in followers:
    client.close()
h.wait_until(lambda: limits()["query.max_streams"]["used"] == 0, "the followers are gone")

readers = deaf("Snapshot", probe="offcpu", idle=True, window_ns=30 * h.NS_PER_S)
h.wait_until(lambda: limits()["query.max_wait"]["hits"] >= CLIENTS // 4, "calls that are refused")
check_meanwhile("deaf readers", before)


def is_refused():
    result = daemon.ctl("snapshot", "offcpu", "--idle", "--json", "--window", "2s")
    if result.code == 0:  # a client that does not read was cut off just before
        return None
    return result


result = h.wait_until(is_refused, "an answer that is refused")
h.check(result.code == 8 and "query.max_streams" in result.err and "ask again later" in result.err
        and not result.out, f"stackctl says that the daemon is busy: {result}")
problems = [text for text in daemon.status()["problems"] if "were refused" in text]
h.check(len(problems) == 1 and "query.max_streams" in problems[0],
        f"status says that queries were refused: {problems}")
for client in readers:
    client.close()
h.wait_until(lambda: limits()["query.max_streams"]["used"] == 0, "the readers are gone")
whole = daemon.ctl_json("snapshot", "offcpu", "--idle", "--comm", "prog_crowd", "--window", "2s")
h.check(whole["shown"]["rows"] >= 800, "then all is answered again")

windows = daemon.call("io.stackd.Windows", probe="offcpu")
longest = max(w["length_ns"] for w in windows["windows"]) / h.NS_PER_S
h.check(not windows["gaps"], "no window is missing")
h.estimate_most(longest, 4, f"no window was late: {longest} s")
h.check_nothing_lost(daemon.status(), "status")
h.check(daemon.process.poll() is None, "the daemon goes on")
crowd.end()
h.finish()
