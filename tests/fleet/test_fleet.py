# SPDX-License-Identifier: GPL-2.0-or-later
"""stackd-fleet against Debian's ClickHouse: what the tables say of each window is what the daemon says.
The daemon serves a database that store_tool wrote, so that nothing is recorded. The checker asks the
daemon and the server by itself, and uses nothing of the sender.

Usage: test_fleet.py NAME CACHE; the programs are in the environment. Skips (77) without a server.
"""

import collections
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import server

NAME, CACHE = sys.argv[1:]
SEED = 20260309
HOST = "node-\\1'"
MINUTE = 60 * 10**9
SUMS = ("count", "total_ns", "blocked_ns", "runnable_ns", "throttled_ns")


def need(condition, text):
    if not condition:
        print(f"FAILED: {text}")
        sys.exit(1)


def write(path, count, **settings):
    """Writes windows that end 10 minutes ago at the latest, unless STORE_SHIFT says otherwise."""
    settings.setdefault("STORE_SHIFT", str(-5 * count - 600))
    subprocess.run([os.environ["STORE_TOOL"], "write", path, str(count)], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "STORE_KINDS": "1", **settings})


class Served:
    """A stackd that serves a database with --serve-only."""

    def __init__(self, directory, path):
        self.socket = f"{directory}/stackd.sock"
        argv = [os.environ["STACKD"], "-c", "/dev/null", "-o", f"control.socket={self.socket}", "-o",
                f"store.path={path}", "--serve-only"]
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        while self.process.poll() is None:
            try:
                list(self.replies("Status"))
                return self
            except OSError:
                time.sleep(0.02)
        return need(False, "stackd serves the database")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def replies(self, method, **parameters):
        """Calls a method, and yields the parameters of each reply."""
        more = method != "Status"
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(120)
            connection.connect(self.socket)
            call = {"method": f"io.stackd.{method}", "parameters": parameters, "more": more}
            connection.sendall(json.dumps(call).encode() + b"\0")
            data, more = b"", True
            while more:
                while b"\0" not in data:
                    part = connection.recv(1 << 16)
                    need(part, f"{method}: the connection stays open")
                    data += part
                message, data = data.split(b"\0", 1)
                reply = json.loads(message)
                need("error" not in reply, f"{method}: {message[:300]}")
                more = reply.get("continues", False)
                yield reply["parameters"]

    def windows(self):
        found = [w for reply in self.replies("Windows", probe="offcpu") for w in reply["windows"]]
        return [(w["start"]["ns"], w["end"]["ns"]) for w in found]

    def snapshot(self, since, until):
        """Returns the totals and all rows of a range."""
        parts = list(self.replies("Snapshot", probe="offcpu", since_ns=since, until_ns=until, idle=True))
        return parts[0], [row for part in parts for row in part["rows"]]


class Fleet:
    """A server, a daemon with a database, and what sends from one to the other."""

    def __init__(self, directory, count, **settings):
        self.directory = directory
        os.chmod(directory, 0o755)
        os.mkdir(f"{directory}/ch")
        self.server = server.Server(f"{directory}/ch", CACHE)
        write(f"{directory}/stackd.db", count, **settings)
        self.daemon = Served(directory, f"{directory}/stackd.db")
        with open(f"{directory}/password", "w", encoding="ascii") as file:
            file.write("secret\n")
        os.chmod(f"{directory}/password", 0o600)
        with open(f"{directory}/fleet.conf", "w", encoding="ascii") as file:
            file.write(f"[server]\nurl = {self.server.url}\nuser = sender\n"
                       f"password_file = {directory}/password\n[send]\nhost = {HOST}\n"
                       f"socket = {self.daemon.socket}\nlock_file = {directory}/lock\n"
                       "labels = role=web version=1\npast = 30d\nbatch = 100ms\n")

    def __enter__(self):
        self.server.start()
        self.daemon.__enter__()
        return self

    def __exit__(self, *_):
        self.daemon.__exit__()
        self.server.stop()

    def argv(self, *args):
        return [os.environ["STACKD_FLEET"], "-c", f"{self.directory}/fleet.conf", *args]

    def run(self, *args, code=0):
        done = subprocess.run(self.argv(*args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              encoding="utf-8", timeout=300, check=False)
        need(done.returncode == code, f"{args} ends with {done.returncode}, not {code}: {done.stdout}")
        return done.stdout

    def query(self, sql):
        return self.server.query(sql)


def text_of(field):
    """Undoes the escapes of a field."""
    letters = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "b": "\b", "f": "\f"}
    return re.sub(r"\\(.)", lambda m: letters.get(m[1], m[1]), field)


def list_of(field):
    """Reads an array of texts."""
    return [text_of(item) for item in re.findall(r"'((?:[^'\\]|\\.)*)'", field)]


def key_of(row):
    """What all sums keep of a row of the daemon."""
    return (row["process"].get("cgroup", ""), row.get("state", ""), row.get("reason", ""), row["idle"])


def sums_of(rows):
    sums = collections.defaultdict(lambda: [0] * len(SUMS))
    for row in rows:
        for i, name in enumerate(SUMS):
            sums[key_of(row)][i] += row.get(name, 0)
    return {key: value for key, value in sums.items() if any(value)}


def buckets_of(rows):
    sums = collections.Counter()
    for row in rows:
        for i, count in enumerate(row.get("buckets", [])):
            sums[i] += count
    return +sums


def stack_of(stack):
    if not stack:
        return None
    return [(f["kind"], f.get("name", ""), f.get("module", ""), f.get("offset", -1)) for f in stack["frames"]]


def read_stacks(fleet):
    stacks = {"0": None}
    for number, kinds, names, modules, offsets in fleet.query(
            "SELECT id, any(kinds), any(frames), any(modules), any(offsets) FROM stackd.stacks GROUP BY id"):
        stacks[number] = list(zip(list_of(kinds), list_of(names), list_of(modules),
                                  json.loads(offsets)))
    return stacks


COLUMNS = ("kind, cgroup, state, reason, idle, count, total_ns, blocked_ns, runnable_ns, throttled_ns, buckets, "
           "pid, pcomm, comm, kstack, ustack, of_rows, max_ns, max_tid, unit, function, module, exe")


def read_rows(fleet, table, start):
    names = [name.strip() for name in COLUMNS.split(",")]
    rows = []
    for fields in fleet.query(f"SELECT {COLUMNS} FROM stackd.{table} WHERE start = {start} AND kind IN (1, 2, 3)"):
        row = dict(zip(names, map(text_of, fields)))
        for name in names:
            if name not in ("cgroup", "state", "reason", "buckets", "pcomm", "comm", "unit", "function",
                            "module", "exe", "kstack", "ustack"):
                row[name] = int(row[name])
        row["process"], row["idle"] = {"cgroup": row["cgroup"]}, bool(row["idle"])
        row["buckets"] = json.loads(row["buckets"])
        rows.append(row)
    return rows


def check_verbatim(row, answer, stacks, where):
    """A row of kind 1 is one of the daemon's rows, with the same stacks."""
    for own in answer:
        if (own["process"]["pid"] == row["pid"] and own["comm"] == row["comm"] and
                own["process"]["comm"] == row["pcomm"] and key_of(own) == key_of(row) and
                all(own.get(name, 0) == row[name] for name in SUMS) and own["buckets"] == row["buckets"] and
                own.get("max_tid", 0) == row["max_tid"] and own["process"].get("exe", "") == row["exe"] and
                stack_of(own.get("kernel")) == stacks[row["kstack"]] and
                stack_of(own.get("user")) == stacks[row["ustack"]]):
            return
    need(False, f"{where}: {row} is a row of the daemon's answer, {json.dumps(answer)[:2000]}")


def check_range(fleet, table, since, until, stacks):
    """Compares one window or minute: rows = header = the daemon's own answer."""
    reply, answer = fleet.daemon.snapshot(since, until)
    where = f"{table} from {since} to {until}"
    headers = fleet.query(f"SELECT h_rows, h_of_rows, h_total_ns, h_count, h_threads, h_blocked_ns, h_json, host, "
                          f"end FROM stackd.{table} WHERE kind = 0 AND start = {since}")
    need(len(headers) == 1, f"{where}: one header, not {len(headers)}")
    n_rows, of_rows, total, count, threads, blocked = map(int, headers[0][:6])
    rows = read_rows(fleet, table, since)
    need(text_of(headers[0][7]) == HOST and int(headers[0][8]) == until, f"{where}: host and end are right")
    need(n_rows == len(rows) and of_rows == len(answer) == sum(row["of_rows"] for row in rows),
         f"{where}: the header's {n_rows} rows of {of_rows} are {len(rows)} of {len(answer)}")
    need(total == sum(row["total_ns"] for row in rows) == sum(row["total_ns"] for row in answer),
         f"{where}: all sums of time are the same")
    need(count == sum(row["count"] for row in rows) == sum(row["count"] for row in answer),
         f"{where}: all sums of counts are the same")
    need(threads == reply["totals"]["threads"] and blocked == reply["totals"]["blocked_ns"],
         f"{where}: the header has the totals")
    need(json.loads(text_of(headers[0][6]))["totals"] == reply["totals"], f"{where}: the answer is in the header")
    need(sums_of(rows) == sums_of(answer), f"{where}: sums by cgroup, state, reason and idle are the same")
    need(buckets_of(rows) == buckets_of(answer), f"{where}: the buckets are the same")
    need(max(row["max_ns"] for row in rows) == max(row["max_ns"] for row in answer), f"{where}: the longest wait")
    for row in rows:
        if row["kind"] == 1:
            check_verbatim(row, answer, stacks, where)
    return collections.Counter(row["kind"] for row in rows)


def minutes_of(windows):
    """The windows of each aligned minute: those whose middle lies in it."""
    minutes = collections.OrderedDict()
    for start, end in windows:
        minutes.setdefault((start + (end - start) // 2) // MINUTE, []).append((start, end))
    return [(parts[0][0], max(end for _, end in parts)) for parts in minutes.values()]


def check_all(fleet, some=None):
    """Compares all windows and minutes or, of each, `some` by chance. No header may be there twice."""
    windows, stacks, kinds = fleet.daemon.windows(), read_stacks(fleet), collections.Counter()
    chance = random.Random(SEED)
    for table, ranges in (("rows", windows), ("rows60", minutes_of(windows))):
        found = fleet.query(f"SELECT start, end FROM stackd.{table} WHERE kind = 0 ORDER BY start")
        need([tuple(map(int, row)) for row in found] == ranges,
             f"{table} has each of {len(ranges)} stretches once: {len(found)}")
        for since, until in chance.sample(ranges, some) if some and some < len(ranges) else ranges:
            kinds += check_range(fleet, table, since, until, stacks)
    units = fleet.query("SELECT sum(total_ns), sum(count) FROM stackd.units WHERE kind = 3")
    need(units == fleet.query("SELECT sum(total_ns), sum(count) FROM stackd.rows60 WHERE kind IN (1, 2, 3)"),
         "units have the sums of the minutes")
    named = fleet.query("SELECT unit, sum(total_ns) FROM stackd.units WHERE kind = 3 GROUP BY unit ORDER BY unit")
    since, until = windows[0][0], windows[-1][1]
    own = [reply for reply in fleet.daemon.replies("Snapshot", probe="offcpu", since_ns=since, until_ns=until,
                                                   idle=True, by="unit")]
    need({text_of(unit): int(ns) for unit, ns in named} ==
         {row["key"]: row["total_ns"] for reply in own for row in reply["rows"]},
         f"units are what the daemon says by unit: {named}")
    return len(windows), kinds


def test_exact(directory):
    """Sent once and again: each window is there once, and exact, row for row."""
    with Fleet(directory, 240) as fleet:
        need("no tables" in fleet.run("send", "--once", code=1), "without tables it says what to do")
        fleet.run("schema", "--apply")
        print(fleet.run("send", "--once").strip())
        again = fleet.run("send", "--once")
        need(again.startswith("sent 0 windows, 0 gaps, 0 rows"), f"the second time, nothing is missing: {again}")
        windows, kinds = check_all(fleet, 40)
        need(kinds[1] > 0 and kinds[2] > 0 and kinds[3] > 0, f"rows of all kinds: {kinds}")
        host = fleet.query("SELECT host, labels_k, labels_v FROM stackd.hosts FINAL")
        need(len(host) == 1 and text_of(host[0][0]) == HOST and list_of(host[0][1]) == ["role", "version"],
             f"the host is listed: {host}")
        print(f"{windows} windows, rows by kind {dict(kinds)}")


def count_windows(fleet):
    return int(fleet.query("SELECT count() FROM stackd.rows WHERE kind = 0")[0][0])


def test_faults(directory):
    """kill -9 of the sender and of the server at any moment: in the end, each window is there once."""
    chance, kills = random.Random(SEED), collections.Counter()
    with Fleet(directory, 1500) as fleet:
        fleet.run("schema", "--apply")
        for number in range(8):
            sender = subprocess.Popen(fleet.argv("send"), stdout=subprocess.DEVNULL,  # pylint: disable=R1732
                                      stderr=subprocess.DEVNULL)
            # The first one is killed after it has sent something, however busy the host is.
            while number == 0 and count_windows(fleet) == 0:
                need(sender.poll() is None, "the sender runs")
                time.sleep(0.05)
            time.sleep(chance.random() * 1.5)
            if chance.random() < 0.5:
                fleet.server.signal(signal.SIGKILL)
                kills["server"] += 1
                fleet.server.start()
                time.sleep(chance.random())
            kills["sender"] += 1
            sender.kill()
            sender.wait()
        before = count_windows(fleet)
        need(before > 0, "senders that were killed have sent something")
        fleet.run("send", "--once")
        windows, _ = check_all(fleet, 25)
        print(f"{dict(kills)}; {before} of {windows} windows were there before the last round")


def check_settings(fleet):
    """Wrong settings have an exit code of their own, and a password in an address is in no message."""
    for url in ("http://u:secret@127.0.0.1:1", "http://127.0.0.1:1 http://127.0.0.1:1?password=secret"):
        for verb in (["send", "--once"], ["schema"], ["serve"]):
            said = fleet.run("-o", f"server.url={url}", *verb, code=78)
            need("neither a user nor parameters" in said and "secret" not in said, f"{verb}: {said}")
    said = fleet.run("-o", "server.url=" + "http://u:secret@h " * 300, "schema", code=78)
    need("must be at most 256 names, but has 300" in said and "secret" not in said, said)
    for probes in ("offcpu iolat", "offcpu oncpu offcpu"):
        said = fleet.run("-o", f"send.probes={probes}", "send", "--once", code=78)
        need("[send] probes" in said, f"{probes}: {said}")


def test_refused(directory):
    """What must not work, says why: a wrong password, newer tables, a second sender, a file all may read."""
    with Fleet(directory, 12) as fleet:
        fleet.run("schema", "--apply")
        need("version 2 was there" in fleet.run("schema", "--apply"), "a second time, nothing is to be done")
        os.chmod(f"{directory}/password", 0o644)
        need("all users may read" in fleet.run("send", "--once", code=78), "a password that all may read")
        os.chmod(f"{directory}/password", 0o600)
        wrong = fleet.run("-o", "server.user=nobody", "send", "--once", code=1)
        need("Code: 19" in wrong or "Code: 516" in wrong, f"a wrong user: {wrong}")
        need("connect" in fleet.run("-o", "server.url=http://127.0.0.1:1", "send", "--once", code=1).lower(),
             "no server")
        check_settings(fleet)
        first = subprocess.Popen(fleet.argv("send"), stdout=subprocess.DEVNULL,  # pylint: disable=R1732
                                 stderr=subprocess.DEVNULL)
        while count_windows(fleet) == 0:
            need(first.poll() is None, "the sender runs")
            time.sleep(0.05)
        need("another sender" in fleet.run("send", "--once", code=1), "a second sender")
        first.terminate()
        need(first.wait(60) == 0, "the sender ends at SIGTERM")
        check_all(fleet)
        fleet.query("INSERT INTO stackd.schema (version, applied) VALUES (99, now())")
        need("update this program" in fleet.run("send", "--once", code=1), "newer tables")
        need("update it" in fleet.run("schema", "--apply", code=1), "newer tables are left alone")


def test_migrate(directory):
    """Tables of version 1 become those of version 2, and what is in them stays."""
    with Fleet(directory, 24) as fleet:
        fleet.run("schema", "--apply")
        fleet.run("-o", "send.tiers=5s 1min", "send", "--once")
        fleet.query("DROP TABLE stackd.units")
        fleet.query("ALTER TABLE stackd.schema DELETE WHERE version = 2")
        while fleet.query("SELECT max(version) FROM stackd.schema") != [["1"]]:
            time.sleep(0.05)
        need("schema --apply" in fleet.run("send", "--once", code=1), "older tables")
        need("from version 1 to 2" in fleet.run("schema", "--apply"), "it says what it did")
        fleet.run("send", "--once")
        check_all(fleet)


def test_gaps(directory):
    """What the daemon lost before it was sent is a gap with a reason, and a host without windows none."""
    with Fleet(directory, 60, STORE_SHIFT="-7200") as fleet:
        fleet.run("schema", "--apply")
        fleet.run("send", "--once")
        last = fleet.daemon.windows()[-1][1]
        fleet.daemon.__exit__()
        for end in ("", "-wal", "-shm", ".lock"):
            if os.path.exists(f"{directory}/stackd.db{end}"):
                os.unlink(f"{directory}/stackd.db{end}")
        write(f"{directory}/stackd.db", 60, STORE_SHIFT="-600")
        fleet.daemon = Served(directory, f"{directory}/stackd.db")
        fleet.daemon.__enter__()
        first = fleet.daemon.windows()[0][0]
        need(first > last, "the second database begins later")
        for _ in range(2):
            fleet.run("send", "--once")
            for table in ("rows", "rows60"):
                gaps = fleet.query(f"SELECT start, end, reason FROM stackd.{table} WHERE kind = 4")
                need(len(gaps) == 1 and gaps[0][:2] == [str(last), str(first)] and gaps[0][2],
                     f"{table}: one gap from {last} to {first}: {gaps}")
        print(f"the gap: {gaps[0][2]}")


def main():
    os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="stackd-fleet.") as directory:
        globals()[f"test_{NAME}"](directory)


if __name__ == "__main__":
    main()
