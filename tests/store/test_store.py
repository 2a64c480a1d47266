# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of the disk and of those who use it: whatever happens to the database, each window that was
written can be read or is reported as lost, none is wrong, and the writer goes on.

Usage: test_store.py STORE_TOOL NAME; skips (77) with the reason where a fault cannot be made.
"""

import contextlib
import glob
import errno
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

TOOL, NAME = sys.argv[1:]
SEED = 20260309
NO_PID = 0x3f000000  # the pid of all processes that STORE_TOOL writes
SKIP = 77
MAN = os.path.join(os.path.dirname(__file__), "..", "..", "man", "stackd.8")


def run(*argv, timeout=120, limit=0, **settings):
    """Runs the tool; `limit` is the greatest size in bytes that a file of its may have."""
    before = ["prlimit", f"--fsize={limit}", "--"] if limit else []
    return subprocess.run(
        [*before, TOOL, *map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        encoding="utf-8", timeout=timeout, check=False, env={**os.environ, **settings})


def need(condition, text):
    if not condition:
        print(f"FAILED: {text}")
        sys.exit(1)


def write(path, count, *rest, **settings):
    done = run("write", path, count, *rest, **settings)
    killed = -signal.SIGKILL if "STORE_DIE" in settings else 0
    need(done.returncode == killed, f"writing ended with {done.returncode}: {done.stderr}")
    found = re.findall(r"^(\d+) written (\d+) synced (\d+) dropped \d+$", done.stdout, re.M)
    counts = [0] + [int(written) for _, written, _ in found]
    return {
        "seqs": [int(seq) for seq, _, _ in found],
        "said": {int(f[0]) for f, before in zip(found, counts) if int(f[1]) > before},
        "synced": int(found[-1][2]),
        "syncs": {int(f[2]) for f in found},
        "written": int(re.findall(r"written (\d+)", done.stdout)[-1]),
        "dropped": int(re.findall(r"dropped (\d+)", done.stdout)[-1]),
        "evicted": int(re.findall(r"evicted (\d+)", done.stdout)[-1]) if not killed else 0,
        "longest_ms": int(re.search(r"^longest (\d+) ms$", done.stdout, re.M)[1]) if not killed else 0,
        "problem": re.search(r"^problem: (.*)$", done.stdout, re.M)[1],
        "notice": re.search(r"^notice: (.*)$", done.stdout, re.M)[1],
        "merged": int(re.search(r"^merged: (.*)$", done.stdout, re.M)[1]),
    }


def check(path, **settings):
    """Returns what can be read: (windows, parts, bad, damaged, seqs); fails if a window is wrong."""
    done = run("check", path, **settings)
    need(done.returncode == 0, f"reading ended with {done.returncode}: {done.stderr}")
    found = re.search(r"windows (\d+) parts (\d+) bad (\d+) damaged (\d+)", done.stdout)
    files = re.search(r"damaged (\d+) without file (\d+)", done.stdout)
    need(not files or files[2] == "0" or files[1] != "0",
         f"frames without their file, and no damage: {done.stdout[-200:]}")
    seqs = {int(line) for line in done.stdout.splitlines() if line.isdigit()}
    return tuple(map(int, found.groups())) + (seqs,) if found else (0, 0, 0, 0, seqs)


def test_kill(directory):
    """After each of 100 kill -9, windows reported as written can be read, and nothing is damaged."""
    path, said, chance = f"{directory}/stackd.db", set(), random.Random(SEED)
    for round_number in range(100):
        writer = subprocess.Popen([TOOL, "write", path, "0"], stdout=subprocess.PIPE,
                                  encoding="utf-8")
        first = writer.stdout.readline()
        need(first, f"round {round_number}: the writer wrote nothing")
        time.sleep(chance.random() * 0.08)
        writer.kill()
        out = first + writer.stdout.read()
        writer.wait()
        # The last line may be incomplete.
        lines = [line for line in out.split("\n")[:-1] if re.fullmatch(r"\d+ written \d+ .*", line)]
        need(all(line.endswith("dropped 0") for line in lines), f"windows were dropped: {lines[-1]}")
        said |= {int(line.split()[0]) for line in lines}
        if round_number % 10 == 9:
            windows, _, bad, damaged, seqs = check(path)
            need(bad == damaged == 0, f"round {round_number}: {bad} bad, {damaged} damaged")
            need(said <= seqs, f"round {round_number}: {len(said - seqs)} windows are missing")
    print(f"{windows} windows, {len(said)} numbers reported as written, after 100 kills")
    need(windows >= 100, "there were enough windows")


def mounted(directory, options):
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory],
                          stderr=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode != 0:
        print(f"cannot mount a tmpfs: {done.stderr.strip()}")
        sys.exit(SKIP)


def test_full(directory):
    """The disk fills up: the oldest windows are evicted, the newest are kept."""
    disk = f"{directory}/disk"
    os.mkdir(disk)
    mounted(disk, "size=12m")
    try:
        with open(f"{disk}/other", "wb"):
            pass  # made now: a full disk may have no space for a name
        result = write(f"{disk}/stackd.db", 4000)
        print(f"written {result['written']}, dropped {result['dropped']}: {result['problem']}")
        need(result["written"] > 3500, "most windows are written")
        windows, _, bad, damaged, seqs = check(f"{disk}/stackd.db")
        need(bad == damaged == 0, f"{bad} bad, {damaged} damaged")
        need(windows > 100 and max(result["seqs"]) in seqs, f"only {windows} windows are left")
        # Another file takes the space that is left.
        # Unbuffered: what a buffer still held would be written, and fail, once more at the close.
        with open(f"{disk}/other", "wb", buffering=0) as other:
            try:
                while True:
                    other.write(b"x" * 65536)
            except OSError:
                pass
        result = write(f"{disk}/stackd.db", 50)
        print(f"with nothing left: written {result['written']}: {result['problem']}")
        need(result["written"] + result["dropped"] == 50, "each window is written or counted")
        os.unlink(f"{disk}/other")
        result = write(f"{disk}/stackd.db", 5)
        need(result["written"] == 5 and not result["problem"], f"with room again: {result}")
        need(check(f"{disk}/stackd.db")[2:4] == (0, 0), "all is sound afterwards")
    finally:
        subprocess.run(["umount", disk], check=False)


def test_held(directory):
    """A query reads for long while the log has become long: no window waits for that query."""
    path = f"{directory}/stackd.db"
    write(path, 600)
    usual = max(write(path, 60, STORE_PACE="20")["longest_ms"] for _ in range(3))
    reader = subprocess.Popen([TOOL, "check", path], stdout=subprocess.DEVNULL,
                              env={**os.environ, "STORE_HOLD": "600000"})
    try:
        # The log is looked at every 5 s. 16 MiB of it, from which on windows do wait, are not reached.
        result, longest, begun = {"longest_ms": 0}, 0, time.monotonic()
        while time.monotonic() - begun < 12:
            result = write(path, 60, STORE_PACE="20")
            longest = max(longest, result["longest_ms"])
    finally:
        reader.kill()
        reader.wait()
    print(f"a window took {longest} ms at the most, {usual} before")
    # Others use the disk, too. A window that waits for a reader waits for 2 s.
    need(longest < 1500 + usual, f"a window waited for {longest} ms")


def test_readers(directory):
    """Readers overlap, so that one is always active: the log stays short all the same."""
    path = f"{directory}/stackd.db"
    write(path, 300)
    # At 13 KiB a window, a log that is never restarted would have 39 MiB.
    writer = subprocess.Popen([TOOL, "write", path, "3000"], stdout=subprocess.PIPE,
                              encoding="utf-8", env={**os.environ, "STORE_PACE": "6"})
    readers, reads, longest, last, cuts = [], 0, 0, 0, 0
    while writer.poll() is None:
        readers = [reader for reader in readers if reader.poll() is None]
        while len(readers) < 3:
            readers.append(subprocess.Popen([TOOL, "check", path], stdout=subprocess.DEVNULL,
                                            env={**os.environ, "STORE_HOLD": "300"}))
            reads += 1
            time.sleep(0.1)  # the other readers are still active when this one ends
        # Empty the pipe, or the writer would block.
        for _ in range(20):
            writer.stdout.readline()
        size = os.path.getsize(f"{path}-wal")
        longest, last, cuts = max(longest, size), size, cuts + (size < last)
    for reader in readers:
        need(reader.wait() == 0, "what is read is right")
    print(f"{reads} readings, the log had {longest >> 10} KiB at the most, and was cut {cuts} times")
    need(reads > 10, "it was read")
    # How far it grows beyond 16 MiB depends on how long the readers take.
    need(longest < 32 << 20 and cuts, f"the log grew to {longest} bytes, and was cut {cuts} times")
    windows, _, bad, damaged, _ = check(path)
    need((windows, bad, damaged) == (3300, 0, 0), f"{windows} windows, {bad} bad, {damaged} damaged")


def test_readonly(directory):
    disk = f"{directory}/disk"
    os.mkdir(disk)
    mounted(disk, "size=32m")
    try:
        seqs = set(write(f"{disk}/stackd.db", 20)["seqs"])
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        result = write(f"{disk}/stackd.db", 3)
        need(result["written"] == 0 and result["dropped"] == 3, f"nothing is written: {result}")
        need("Read-only" in result["problem"], f"the problem is named: {result['problem']}")
        need(check(f"{disk}/stackd.db")[4] == seqs, "what is there can be read")
    finally:
        subprocess.run(["umount", disk], check=False)


def damage(directory, make, rounds):
    """Reads damaged copies, and writes to some of them; returns how many windows survive."""
    origin, path = f"{directory}/origin.db", f"{directory}/stackd.db"
    seqs = set(write(origin, 400)["seqs"])
    chance, size, least = random.Random(SEED), os.path.getsize(origin), []
    for round_number in range(rounds):
        for name in os.listdir(directory):
            if name.startswith("stackd.db"):
                os.unlink(f"{directory}/{name}")
        shutil.copy(origin, path)
        make(path, size, chance)
        windows, _, bad, _, found = check(path)
        need(found <= seqs, f"round {round_number}: there are only windows that were written")
        least.append(windows - bad)
        if round_number % 8 == 0:
            result = write(path, 3)
            need(result["written"] == 3, f"round {round_number}: writing goes on: {result}")
            need(not result["problem"], f"round {round_number}: {result['problem']}")
            after = check(path)
            need(set(result["seqs"]) <= after[4], f"round {round_number}: the new ones are there")
            need(after[2] == 0 or not result["notice"], f"round {round_number}: {after} in a new file")
    least.sort()
    print(f"of {len(seqs)} windows readable: {least[0]} at the least, {least[len(least) // 2]} "
          f"as a rule, {sum(n == len(seqs) for n in least)} times of {rounds} all")
    return least


def flip(path, size, chance):
    with open(path, "r+b") as f:
        f.seek(chance.randrange(size))
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ (1 << chance.randrange(8))]))


def cut(path, size, chance):
    os.truncate(path, chance.randrange(size))


def test_flip(directory):
    least = damage(directory, flip, 400)
    need(least[len(least) // 4] >= 390, "a damaged byte costs one window in most cases")


def test_index(directory):
    """Bytes of an index are damaged: no row is overwritten by another, and no window is missed."""
    origin, path = f"{directory}/origin.db", f"{directory}/stackd.db"
    seqs = set(write(origin, 400)["seqs"])
    with sqlite3.connect(origin) as db:
        try:
            pages = [page for page, in db.execute(
                "SELECT pageno FROM dbstat WHERE name LIKE 'sqlite_autoindex_%s_1' "
                "OR name = 'windows_time'")]
        except sqlite3.OperationalError as e:
            print(f"this SQLite does not say which pages are an index's: {e}")
            sys.exit(SKIP)
    db.close()
    chance, begun = random.Random(SEED), 0
    for round_number in range(80):
        for name in os.listdir(directory):
            if name.startswith("stackd.db"):
                os.unlink(f"{directory}/{name}")
        shutil.copy(origin, path)
        page = chance.choice(pages)
        with open(path, "r+b") as f:
            f.seek((page - 1) * 4096 + chance.randrange(4096))
            byte = f.read(1)[0]
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte ^ (1 << chance.randrange(8))]))
        result = write(path, 3)
        begun += bool(result["notice"])
        wanted = set(result["seqs"]) if result["notice"] else seqs | set(result["seqs"])
        windows, _, bad, _, found = check(path)
        need(result["written"] == 3 and not result["problem"], f"round {round_number}: {result}")
        need(found == wanted and bad == 0,
             f"round {round_number}: {windows} windows, {bad} bad, {len(wanted - found)} missing")
    print(f"80 bytes of {len(pages)} pages changed, {begun} times a new file was begun")
    need(begun > 10, "the damage was noticed")


def synced_bytes(log):
    """Returns how much of a log a power cut cannot take: SQLite syncs it before it copies frames to
    the database, and has in the file -shm how many it has begun to copy (nBackfillAttempted, "The
    WAL-index file format")."""
    with open(log.removesuffix("-wal") + "-shm", "rb") as f:
        frames = int.from_bytes(f.read(132)[128:], sys.byteorder)
    return 32 + frames * (24 + 4096) if frames else 0


def test_power(directory):
    """A power cut leaves any part of the log that was not synced: windows reported as synced can be
    read, and nothing is damaged."""
    path, copy, chance = f"{directory}/stackd.db", f"{directory}/cut.db", random.Random(SEED)
    result = write(path, 150, STORE_SYNC="300", STORE_PACE="10", STORE_DIE="1")
    need(len(result["said"]) == 150, f"all are written: {result}")
    log, safe = os.path.getsize(f"{path}-wal"), synced_bytes(f"{path}-wal")
    need(result["synced"] in result["seqs"][10:], f"some are synced: {result['synced']}")
    synced = {seq for seq in result["seqs"] if seq <= result["synced"]}
    least = len(result["seqs"])
    for round_number in range(60):
        shutil.copy(path, copy)
        shutil.copy(f"{path}-wal", f"{copy}-wal")
        # Synced windows are in the database; the rest of the log may end anywhere, or have a hole.
        size = chance.randrange(safe, log + 1)
        os.truncate(f"{copy}-wal", size)
        if round_number % 2 and size > safe + 8192:
            with open(f"{copy}-wal", "r+b") as f:
                f.seek(chance.randrange(safe, size - 4096))
                f.write(bytes(4096))
        windows, _, bad, damaged, found = check(copy)
        need(bad == damaged == 0, f"round {round_number}: {bad} bad, {damaged} damaged")
        need(synced <= found, f"round {round_number}: {len(synced - found)} synced ones are lost")
        least = min(least, windows)
        after = write(copy, 2)
        need(after["written"] == 2 and not after["problem"], f"round {round_number}: {after}")
        for name in (f"{copy}-wal", f"{copy}-shm"):
            if os.path.exists(name):
                os.unlink(name)
    print(f"of 150 windows {len(synced)} were synced, {least} of them were there in the worst case")


def test_behind(directory):
    """Windows of one probe are an hour ahead of another's. The time up to which the other's windows
    are synced is known all the same, so no window is reported as safe that is not written yet."""
    path = f"{directory}/stackd.db"
    result = write(path, 60, STORE_SYNC="20", STORE_PACE="5", STORE_AHEAD="1")
    need(result["written"] == 60 and not result["problem"], f"all are written: {result}")
    late, syncs = result["seqs"][1::2], result["syncs"] - {0}
    need(len(syncs) > 3 and syncs <= set(late), f"synced: {syncs}; those behind: {late}")


def faulty(faults, path, count, kind, error, first, times):
    """Makes some system calls of the writer fail; returns the result."""
    faults.reset()
    faults.arm(kind, error, first, times)
    result = write(path, count, STORE_SYNC="20", STORE_PACE="2",
                   **{k: v for k, v in faults.environment().items() if k not in os.environ})
    result["hits"] = faults.hits()
    return result


def test_faults(directory):
    """Writing and syncing fail once, for a while, or always: each window is written or counted as
    dropped, those reported as written can be read, and the writer recovers."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
    import fault

    faults, hit, dropped = fault.Faults(directory), 0, 0
    cases = [(kind, error, first, times)
             for kind in (fault.WRITE, fault.SYNC)
             for error in (errno.ENOSPC, errno.EIO)
             for first, times in ((1, 1), (4, 1), (20, 3), (60, 40), (9, fault.FOREVER))]
    for number, (kind, error, first, times) in enumerate(cases):
        text = f"{'write' if kind == fault.WRITE else 'sync'} {first} on, {times} times, {error}"
        path = f"{directory}/{number}.db"
        before = set(write(path, 30)["seqs"])
        result = faulty(faults, path, 40, kind, error, first, times)
        hit += result["hits"]
        dropped += result["dropped"]
        need(result["written"] + result["dropped"] == 40, f"{text}: each is counted: {result}")
        if result["dropped"] and times == fault.FOREVER:
            need(result["problem"], f"{text}: the problem is named")
        windows, _, bad, damaged, found = check(path)
        need(bad == damaged == 0, f"{text}: {bad} bad, {damaged} damaged of {windows}")
        gone = (before | result["said"]) - found
        # On a full disk the oldest windows may be evicted.
        need(not gone or (error == errno.ENOSPC and result["dropped"] < 40 and gone <= before),
             f"{text}: {len(gone)} windows that were written are not there: {result}")
        after = write(path, 3)
        need(after["written"] == 3 and not after["problem"], f"{text}: afterwards: {after}")
        need(set(after["seqs"]) <= check(path)[4], f"{text}: the new ones are there")
    print(f"{len(cases)} cases, {hit} calls failed, {dropped} windows were dropped and counted")
    need(hit > 20 and dropped > 0, "calls failed")


class Served:
    """A stackd that serves a database with --serve-only."""

    def __init__(self, directory, path):
        self.path = f"{directory}/socket"
        argv = [os.environ["STACKD"], "-c", "/dev/null", "-o", f"control.socket={self.path}", "-o",
                f"store.path={path}", "--serve-only"]
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        for _ in range(600):
            if self.ctl("status").returncode == 0:
                return self
            time.sleep(0.05)
        self.__exit__()
        need(False, "it answers")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def ctl(self, *args):
        return subprocess.run([os.environ["STACKCTL"], "-S", self.path, *args], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    def windows(self, *args):
        done = self.ctl("windows", "offcpu", "--json", *args)
        need(done.returncode == 0, f"windows are listed: {done.stderr}")
        return json.loads(done.stdout)

    def replies(self, method, **parameters):
        """Calls a method with `more`; yields each reply as it comes, (error or None,
        parameters)."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(self.path)
            call = {"method": f"io.stackd.{method}", "parameters": parameters, "more": True}
            connection.sendall(json.dumps(call).encode() + b"\0")
            data, more = b"", True
            while more:
                while b"\0" not in data:
                    part = connection.recv(1 << 16)
                    need(part, f"{method}: the connection ended")
                    data += part
                message, data = data.split(b"\0", 1)
                reply = json.loads(message)
                more = reply.get("continues", False)
                yield reply.get("error"), reply["parameters"]

    def call(self, method, **parameters):
        return next(self.replies(method, **parameters))


def test_unreadable(directory):
    """A range whose windows are all damaged is answered, and the gap says why; an invalid time is
    refused."""
    path = f"{directory}/stackd.db"
    write(path, 12, STORE_SHIFT="-600")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE windows SET blob_sum = blob_sum + 1 WHERE id BETWEEN 4 AND 6")
        start, end = db.execute("SELECT min(start_real_ns), max(end_real_ns) FROM windows "
                                "WHERE id BETWEEN 4 AND 6").fetchone()
    db.close()
    with Served(directory, path) as server:
        asked = {"start": {"ns": start}, "end": {"ns": end}}
        error, reply = server.call("Snapshot", probe="offcpu", since_ns=start, until_ns=end)
        need(not error, f"it is answered: {error} {reply}")
        used = {key: {"ns": reply["coverage"]["used"][key]["ns"]} for key in asked}
        need(used == asked, f"used is what was asked for: {used}")
        reasons = {gap["reason"] for gap in reply["coverage"]["gaps"]}
        need(reasons == {"unreadable on disk"}, f"the gap says why: {reasons}")
        need(any("could not be read" in note for note in reply["notes"]), f"{reply['notes']}")
        done = server.ctl("snapshot", "offcpu", "--since", f"@{start // 10**9}", "--until",
                          f"@{end // 10**9}")
        need(done.returncode in (0, 5), f"stackctl has the answer: {done.stderr}")
        for method in ("Snapshot", "Windows"):
            for field in ("since_ns", "until_ns"):
                error, reply = server.call(method, probe="offcpu", **{field: -9 * 10**18})
                need(error == "io.stackd.InvalidTime" and field in reply["message"],
                     f"{method} {field}: {error} {reply}")
        error, reply = server.call("Snapshot", probe="offcpu", window_ns=9 * 10**18)
        need(not error and reply["coverage"]["asked"]["start"]["ns"] == 0, f"since 1970: {reply}")


def test_served(directory):
    """A daemon that serves a database which is not there, or is none, says so and is not healthy."""
    path = f"{directory}/stackd.db"

    def said(server):
        return server.call("Status")[1]["problems"]

    with Served(directory, path) as server:
        need(len(said(server)) == 1 and "cannot be read: No such file" in said(server)[0], said(server))
        done = server.ctl("snapshot", "offcpu")
        need(done.returncode == 4 and "No such file" in done.stderr, f"so does an answer: {done}")
        write(path, 3)
        need(not said(server), f"with a database: {said(server)}")
        os.unlink(path)
        with open(path, "w", encoding="ascii") as file:
            file.write("this is no database\n" * 400)
        need("is damaged, or no database" in said(server)[0], said(server))


def test_rows(directory):
    """A damaged row of a stack, a frame, a process or a file costs what that row says: no window is
    unreadable, each row of the windows is there, and all sums are the same."""
    origin, path = f"{directory}/origin.db", f"{directory}/stackd.db"
    write(origin, 20, STORE_CHURN="1", STORE_SHIFT="-3600")
    whole = None
    for table, lost in ((None, 0), ("stacks", 1), ("frames", 1), ("processes", 1), ("files", 0)):
        shutil.copy(origin, path)
        with sqlite3.connect(path) as db:
            if table:
                db.execute(f"UPDATE {table} SET sum = sum + 1 WHERE id = (SELECT max(id) - 9 FROM {table})")
        db.close()
        found, answer = [], {}
        with Served(directory, path) as server:
            for error, reply in server.replies("Snapshot", probe="offcpu", since_ns=0, idle=True):
                need(not error, f"{table}: it is answered: {error} {reply}")
                found += reply.pop("rows")
                answer.update({key: value for key, value in reply.items() if value is not None})
            damaged = server.call("Status")[1]["store"]["damaged"]
        reasons = {gap["reason"] for gap in answer["coverage"]["gaps"]}
        sums = (answer["totals"], answer["coverage"]["windows"], len(found),
                *(sum(row[key] for row in found) for key in ("count", "blocked_ns")))
        named = sum("lost on disk" in json.dumps(row) for row in found)
        print(f"{table}: {damaged} damaged, {named} of {len(found)} rows have lost a name")
        whole = whole or sums
        need(sums == whole, f"{table}: {sums} as {whole}")
        need("unreadable on disk" not in reasons, f"{table}: no window is unreadable: {reasons}")
        need((damaged > 0) == bool(table), f"{table}: the damage is counted: {damaged}")
        need(lost <= named <= lost * 40, f"{table}: {named} rows are without a name")


def test_once(directory):
    """With stacks_once, each stack comes once, and all rows are the same."""
    path = f"{directory}/stackd.db"
    write(path, 20, STORE_CHURN="1", STORE_SHIFT="-3600")
    asked = {"probe": "offcpu", "since_ns": 0, "each_ns": 0, "idle": True}
    with Served(directory, path) as server:
        want = [row for _, reply in server.replies("Snapshot", **asked) for row in reply["rows"]]
        got = [row for _, reply in server.replies("Snapshot", stacks_once=True, **asked)
               for row in reply["rows"]]
    kept, left_out = {}, 0
    for row in got:
        for name in {"kernel", "user"} & row.keys():
            stack = row[name]
            if stack["frames"]:
                kept[stack["id"]] = stack
            else:
                row[name] = kept[stack["id"]]
                left_out += 1
    print(f"{len(got)} rows, {len(kept)} stacks, {left_out} left out")
    need(got == want, "the rows are the same")
    need(left_out > len(kept), f"most stacks are left out: {left_out}, {len(kept)}")


def test_processes(directory):
    """A range has more processes than the table of living ones takes: all of its windows are read,
    each process counts, and the daemon keeps to the memory of a query."""
    path, count, images, living = f"{directory}/stackd.db", 3400, 40, 131072
    write(path, count, STORE_CHURN="1", STORE_SHIFT="-36000")
    with Served(directory, path) as server:
        error, reply = server.call("Snapshot", probe="offcpu", since_ns=0, idle=True, top=20)
        need(not error, f"it is answered: {error} {reply}")
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as f:
            most_mib = int(re.search(r"^VmHWM:\s+(\d+) kB$", f.read(), re.M)[1]) // 1024
        limits = {limit["name"]: limit for limit in server.call("Status")[1]["limits"]}
        damaged = server.call("Status")[1]["store"]["damaged"]
    reasons = {gap["reason"] for gap in reply["coverage"]["gaps"]}
    processes, windows = reply["totals"]["processes"], reply["coverage"]["windows"]
    print(f"{processes} processes in {windows} windows, {most_mib} MiB at most, gaps {reasons}")
    need(limits["processes"]["value"] == living, f"the limit is what it was: {limits['processes']}")
    # So many are counted to within about 1 %, see daemon/query/aggregate_set.h.
    need(abs(processes - count * images) < count * images // 20, f"{processes} processes")
    need(count * images > living, "they are more than the table takes")
    need(windows == count and damaged == 0, f"{windows} windows, {damaged} damaged rows")
    need("unreadable on disk" not in reasons, f"a limit is no damage: {reasons}")
    need(len(reply["rows"]) == 20, f"{len(reply['rows'])} rows")
    need(any("max_memory" in note for note in reply["notes"]), f"what is left out is said: {reply['notes']}")
    need(most_mib <= 96, f"{most_mib} MiB")


def test_follow(directory):
    """A stream continues over windows without a matching thread, and reports each window once."""
    path = f"{directory}/stackd.db"
    write(path, 12, STORE_SHIFT="-3600")
    with Served(directory, path) as server:
        tiers = server.call("Status")[1]["store"]["tiers"]
        need([tier["windows"] for tier in tiers] == [12, 0, 0], f"all are in the first tier: {tiers}")
        need(tiers[0]["bytes"] > 0 and tiers[0]["reach_ns"] >= 3000 * 10**9,
             f"its size and reach: {tiers[0]}")
        first = server.windows()["windows"][0]["start"]["ns"]
        last = server.windows()["windows"][-1]["end"]["ns"]
        for pids, is_there in (([1], False), ([0x3f000000], True)):
            error, reply = server.call("Follow", probe="offcpu", cursor=str(first),
                                       interval_ns=10**9, filter={"pids": pids})
            need(not error, f"it goes on: {error} {reply}")
            need(bool(reply["rows"]) == is_there, f"rows of {pids}: {len(reply['rows'])}")
            need(bool(reply["notes"]) or is_there, "a note says that no thread was seen")
            need(reply["cursor"] == str(last), f"the stream got up to {last}: {reply['cursor']}")
        error, reply = server.call("Snapshot", probe="offcpu", since_ns=first,
                                   filter={"pids": [1]})
        need(error == "io.stackd.NoData", f"a single answer is an error: {error}")


def test_many(directory):
    """There are more windows than one list takes: the newest are listed, and a gap says why the
    others are not."""
    path, most, more = f"{directory}/stackd.db", 32768, 40
    write(path, most + more, STORE_SMALL="1", STORE_SHIFT=str(-200 * 86400))
    with sqlite3.connect(path) as db:
        starts = [start for start, in db.execute("SELECT start_real_ns FROM windows ORDER BY id")]
    db.close()
    why = "more windows than one answer reads: ask for a shorter range"
    with Served(directory, path) as server:
        for args, gap in (([], [starts[0], starts[more], why]), (["--since", f"@{starts[0] // 10**9 - 86400}"], None),
                          (["--since", f"@{starts[more] // 10**9}"], [])):
            reply = server.windows(*args)
            begins = [w["start"]["ns"] for w in reply["windows"]]
            need(begins == starts[more:], f"{args}: {len(begins)} windows of {len(starts)}")
            found = [[g["start"]["ns"], g["end"]["ns"], g["reason"]] for g in reply["gaps"]]
            found = [g for g in found if g[1] <= starts[more]]
            print(f"{args}: gaps {found}")
            need([g[1:] for g in found] == [[starts[more], why]] if gap is None
                 else found == ([gap] if gap else []), f"{args}: gaps {found}")


def test_gone(directory):
    """A query over many windows ends when its client has gone before the first reply, also when it
    waits for others: the CPU time that it takes stops growing, and its place is free."""
    path = f"{directory}/stackd.db"
    write(path, 12000, STORE_SHIFT=str(-7 * 86400))
    # A sum for each thread name: there is much to add up, but little to send.
    parameters = {"probe": "offcpu", "since_ns": 0, "by": "comm", "idle": True}
    asked = json.dumps({"method": "io.stackd.Snapshot", "parameters": parameters, "more": True})

    def cpu_ms(server):
        with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf("SC_CLK_TCK")

    def limit(server):
        limits = server.call("Status")[1]["limits"]
        return next(limit for limit in limits if limit["name"] == "query.max_streams")

    def ask(server):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(server.path)
        connection.sendall(asked.encode() + b"\0")
        return connection

    with Served(directory, path) as server:
        before = cpu_ms(server)
        error, reply = server.call("Snapshot", **parameters)
        need(not error and reply["coverage"]["windows"] == 12000, f"all windows: {error}")
        need("threads" not in reply["shown"] and reply["idle"]["threads"] == 0,
             f"threads are counted only for idle rows: {reply['shown']} {reply['idle']}")
        whole = cpu_ms(server) - before
        print(f"a whole query takes {whole} ms of CPU")
        need(whole >= 100, "which is long enough to be told from a part")
        places = limit(server)["value"]
        before = cpu_ms(server)
        clients = [ask(server) for _ in range(places)]
        waiting = ask(server)
        while cpu_ms(server) - before < whole / 10 or not limit(server)["hits"]:
            time.sleep(0.005)
        need(limit(server)["used"] == places and limit(server)["hits"] == 1, f"{limit(server)}")
        waiting.close()
        for client in clients:
            client.close()
        while limit(server)["used"]:
            time.sleep(0.01)
        took = cpu_ms(server) - before
        print(f"{places} queries whose clients went take {took} ms")
        need(took < places * whole / 2, "they ended early")
        # Nothing goes on: another whole query takes what the first one took.
        before = cpu_ms(server)
        error, reply = server.call("Snapshot", **parameters)
        need(not error and reply["coverage"]["windows"] == 12000, f"all windows: {error}")
        again = cpu_ms(server) - before
        need(again < 2 * whole, f"a whole query takes {again} ms afterwards")


def test_moved(directory):
    """A database, or its directory, that is moved away in use keeps its windows; the next ones are in a
    new file at the old path, none is lost, and a notice says so. Neither is one lost if only the log,
    its index or the lock file is removed."""
    for what in ("file", "directory", "removed", "all", "-wal", "-shm", ".lock"):
        at, away = f"{directory}/{what}/at", f"{directory}/{what}/away"
        os.makedirs(at)
        path, count = f"{at}/stackd.db", 200
        writer = subprocess.Popen(
            [TOOL, "write", path, str(count)], stdout=subprocess.PIPE, encoding="utf-8",
            env={**os.environ, "STORE_PACE": "5"})
        out = [writer.stdout.readline() for _ in range(40)]
        if what == "directory":
            os.rename(at, away)
        elif what == "file":
            os.mkdir(away)
            os.rename(path, f"{away}/stackd.db")
        else:
            for suffix in {"removed": ("",), "all": ("", "-wal", "-shm")}.get(what, (what,)):
                os.unlink(path + suffix)
        out += writer.stdout.read().splitlines()
        need(writer.wait() == 0, f"{what}: the writer ended with {writer.returncode}")
        text = "\n".join(line.rstrip() for line in out)
        need(f"written {count} " in text and "dropped 0 evicted" in text, f"{what}: {out[-8:]}")
        need("was moved, removed or replaced" in re.search(r"^notice: (.*)$", text, re.M)[1], f"{what}: {out[-3:]}")
        _, _, bad, damaged, after = check(path)
        need(not bad and not damaged and after, f"{what}: the new file")
        if what in ("removed", "all"):
            need(len(after) >= count - 60, f"{what}: {len(after)} windows are in the new file")
            continue
        if what not in ("file", "directory"):
            need(len(after) == count, f"{what}: {len(after)} windows of {count}")
            with contextlib.closing(sqlite3.connect(path)) as db:
                need(db.execute("SELECT count(*) FROM runs").fetchone() == (1,), f"{what}: its runs")
            continue
        _, _, bad, damaged, before = check(f"{away}/stackd.db")
        need(not bad and not damaged and len(before) >= 40, f"{what}: the old file, {len(before)}")
        need(len(before) + len(after) == count and not before & after,
             f"{what}: {len(before)} + {len(after)} of {count} windows")


def test_overwritten(directory):
    """A database that is emptied or overwritten in use, with the same inode, is noticed: what was put
    there is kept as it is, later windows are in a new file, none of them is lost, and a notice says so."""
    copies, count = f"{directory}/copies", 200
    os.mkdir(copies)
    write(f"{copies}/other", 20)
    # Its header counts more changes than that of the database.
    with contextlib.closing(sqlite3.connect(f"{copies}/foreign", isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("CREATE TABLE words (word)")
        for number in range(3000):
            db.execute("INSERT INTO words VALUES (?)", (number,))
    for what in ("emptied", "garbage", "other", "foreign", "older"):
        path = f"{directory}/{what}.db"
        if what == "older":
            write(path, 300)
            shutil.copyfile(path, f"{copies}/older")
        put = b"no database" * 5000 if what == "garbage" else b""
        if os.path.exists(f"{copies}/{what}"):
            with open(f"{copies}/{what}", "rb") as f:
                put = f.read()
        writer = Watched(path, count, STORE_PACE="5")
        try:
            writer.read(100)
            if what == "older":
                with contextlib.closing(sqlite3.connect(path)) as db:
                    db.execute("PRAGMA wal_checkpoint")
                writer.read(120)
            inode = os.stat(path).st_ino
            if what == "garbage":
                with open(f"{path}.overwritten", "wb") as f:
                    f.write(b"earlier")
            with open(path, "r+b") as f:
                f.write(put)
                f.truncate()
            writer.read(140)
            out = writer.end()
        finally:
            writer.process.kill()
            writer.process.wait()
        need("was overwritten" in out, f"{what}: the notice: {out[-300:]}")
        need(os.stat(path).st_ino != inode, f"{what}: a new file")
        _, _, bad, damaged, after = check(path)
        need(not bad and not damaged and len(after) >= count - 130, f"{what}: {len(after)} windows")
        moved = f"{path}.overwritten"
        if what == "garbage":
            with open(moved, "rb") as f:
                need(f.read() == b"earlier", "what was moved before is kept")
            (moved,) = glob.glob(f"{moved}.*")
        with open(moved, "rb") as f:
            need(os.fstat(f.fileno()).st_ino == inode and f.read() == put, f"{what}: what was put there")


def test_moved_read(directory):
    """The log is removed while another program reads the database: the problem names the program, windows
    go on, and when it ends, all of them are in the database."""
    path, count = f"{directory}/stackd.db", 400
    writer = Watched(path, count, STORE_PACE="5")
    try:
        writer.read(40)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM windows").fetchall()
            os.unlink(f"{path}-wal")
            wait_for(lambda: f"as long as pid {os.getpid()} (" in writer.said(), "the problem")
            written = writer.text(writer.out).count("\n")
            writer.read(written + 40)
            db.execute("ROLLBACK")
        need(writer.process.wait(120) == 0, f"the writer ended with {writer.process.returncode}")
    finally:
        writer.process.kill()
        writer.process.wait()
    _, _, bad, damaged, after = check(path)
    need(not bad and not damaged and len(after) == count, f"{len(after)} windows of {count}")


def test_replaced(directory):
    """A file system is mounted over the directory; its files have the same inode numbers."""
    disk, other = f"{directory}/disk", f"{directory}/other"
    path, mounts = f"{disk}/stackd.db", [disk, other]
    try:
        for at in mounts[:]:
            os.mkdir(at)
            mounted(at, "size=64m")
        write(f"{other}/stackd.db", 20, STORE_DIE="1")
        writer = Watched(path, 300, STORE_PACE="5")
        writer.read(40)
        numbers = [{name: os.stat(f"{at}/{name}").st_ino for name in os.listdir(at)} for at in mounts]
        need(numbers[0] == numbers[1], f"this shows nothing: the inode numbers are {numbers}")
        subprocess.run(["mount", "--bind", other, disk], check=True)
        mounts.append(disk)
        out = writer.end()
        need("was moved, removed or replaced" in out, f"the notice: {out[-300:]}")
        windows, _, bad, damaged, _ = check(path)
        need(20 + 300 - 60 <= windows < 320 and not bad and not damaged, f"{windows} are in the other one")
    finally:
        for at in mounts:
            subprocess.run(["umount", "-l", at], check=False)


class Watched:
    """STORE_TOOL as it writes. Its log and what it prints go to files, so that it never waits."""

    def __init__(self, path, *args, **settings):
        self.out, self.err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [TOOL, "write", path, *map(str, args)], stdout=self.out, stderr=self.err,
            env={**os.environ, **settings})

    @staticmethod
    def text(file):
        file.seek(0)
        return file.read()

    def said(self):
        return self.text(self.err)

    def read(self, count):
        """Waits until so many windows were written."""
        wait_for(lambda: self.text(self.out).count(" written ") >= count, f"{count} windows")

    def end(self):
        need(self.process.wait(300) == 0, f"the writer ended with {self.process.returncode}")
        return self.text(self.out)


def wait_for(condition, what):
    deadline = time.monotonic() + 100
    while not condition():
        need(time.monotonic() < deadline, f"waited for {what}")
        time.sleep(0.05)


def test_locked(directory):
    """Another program locks the database for longer than SQLite waits: no window is lost, and the
    problem names the program."""
    path, count = f"{directory}/stackd.db", 200
    writer = Watched(path, count, STORE_PACE="5")
    writer.read(40)
    with contextlib.closing(sqlite3.connect(path, timeout=100, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        wait_for(lambda: f"locked by pid {os.getpid()} (" in writer.said(), "the problem")
        db.execute("ROLLBACK")
    out = writer.end()
    need(f"written {count} " in out and "\ndropped 0 " in out and "problem: \n" in out, out[-200:])
    need(check(path)[0] == count, "all can be read")


def test_reading(directory):
    """Another program reads one state of the database for ever: the log grows to 16 MiB and no further,
    the problem names the program, and no window is lost meanwhile."""
    path = f"{directory}/stackd.db"
    writer = Watched(path, 0, 16 << 20)
    try:
        writer.read(40)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM windows").fetchall()
            said = f"pid {os.getpid()} ("
            wait_for(lambda: said in writer.said() and "log is full" in writer.said(), "the problem")
            sizes, written = [], []
            for _ in range(2):
                sizes.append(os.path.getsize(f"{path}-wal"))
                written.append(writer.text(writer.out).count("\n"))
                time.sleep(2)
            need(16 << 20 <= sizes[0] < 20 << 20, f"the log has {sizes[0]} bytes")
            need(sizes[0] == sizes[1], f"it does not grow: {sizes}")
            db.execute("ROLLBACK")
        writer.read(written[0] + 40)
        need(os.path.getsize(f"{path}-wal") < 16 << 20, "the log is restarted")
    finally:
        writer.process.kill()
        writer.process.wait()
    need(not re.search("dropped [1-9]", writer.text(writer.out)), "no window was lost")
    need(check(path)[2:4] == (0, 0), "all is sound")


def test_gaps(directory):
    """Between two runs of stackd there is a gap, and it says how the first one ended."""
    path, length, shift = f"{directory}/stackd.db", 20, 0
    steps = [
        ({}, "stackd was stopped"),
        ({"STORE_DIE": "1"}, "stackd was killed or crashed"),
        ({}, "stackd was stopped, and the host restarted"),
        ({"STORE_BOOT": "b-boot", "STORE_DIE": "1"}, "stackd was not stopped: the host went down"),
        ({"STORE_BOOT": "c-boot"}, None),
    ]
    for settings, _ in steps:
        write(path, length, STORE_SHIFT=str(shift - 6000), **settings)
        shift += length * 5 + 60
    with Served(directory, path) as server:
        reply = server.windows()
    need(len(reply["windows"]) == length * len(steps), f"{len(reply['windows'])} windows")
    gaps = [(gap["reason"], gap["end"]["ns"] - gap["start"]["ns"]) for gap in reply["gaps"]]
    need(gaps == [(reason, 60 * 10**9) for _, reason in steps if reason], f"gaps: {gaps}")
    print(f"gaps: {gaps}")
    # A gap that a run noted does not explain the time before and after it.
    start, slow = reply["gaps"][3]["start"]["ns"], "not written: the disk was too slow"
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO gaps (start_real_ns, end_real_ns, reason) VALUES (?, ?, ?)",
                   (start + 10 * 10**9, start + 30 * 10**9, slow))
    db.close()
    with Served(directory, path) as server:
        reply = server.windows()
    split = [(gap["reason"], gap["end"]["ns"] - gap["start"]["ns"]) for gap in reply["gaps"]]
    why = gaps[3][0]
    need(split == [*gaps[:3], (why, 10 * 10**9), (slow, 20 * 10**9), (why, 30 * 10**9)], f"gaps: {split}")


def test_truncate(directory):
    """A file that is cut off is read as far as it goes, and a new one is begun."""
    damage(directory, cut, 60)


def test_recover(directory):
    """The command of stackd(8) copies the windows of the readable part of a damaged file, and no stackd writes to
    the copy; a second damaged file does not take the place of the first, but a third that of the second."""
    path, copy = f"{directory}/half.db", f"{directory}/copy.db"
    with open(MAN, encoding="utf-8") as f:
        command = re.search(r"^# (\(sqlite3 .*? NEW)$", f.read(), re.M | re.S)[1].replace("\\-", "-")
    seqs = set(write(path, 400)["seqs"])
    with open(path, "rb") as f:
        whole = f.read()
    for number in (1, 2, 3):
        with open(path, "wb") as f:
            f.write(whole[:len(whole) * 3 // 4])
        result = write(path, 3)
        need(result["written"] == 3 and check(path)[4] == set(result["seqs"]), f"a new file: {result}")
        need(("broken.last;" in result["notice"]) == (number > 1), f"the name: {result}")
    aside = sorted(name for name in os.listdir(directory) if ".broken" in name and "-" not in name)
    need(aside == ["half.db.broken", "half.db.broken.last"], f"the first and the last stay: {aside}")
    need(shutil.which("sqlite3"), "this test needs sqlite3")
    subprocess.run(command.replace("stackd.db", path).replace("NEW", copy), shell=True, check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, bad, _, saved = check(copy)
    print(f"{len(saved)} of 400 windows were copied from three quarters of the file, {bad} are damaged")
    need(len(saved) > 100 and saved <= seqs, f"only {len(saved)} were copied")
    result = write(copy, 3)
    need("copy of a damaged one" in result["notice"] and check(copy)[4] == set(result["seqs"]), f"{result}")


def test_version(directory):
    """A database of another version is moved aside as it is, and served by none; a new one is begun."""
    path = f"{directory}/stackd.db"
    for schema in (99, 6):
        write(path, 5)
        with sqlite3.connect(path) as db:
            db.execute(f"PRAGMA user_version = {schema}")
        db.close()
        with open(path, "rb") as f:
            before = hashlib.sha256(f.read()).digest()
        with Served(directory, path) as server:
            problems = server.call("Status")[1]["problems"]
            need("by another version" in problems[0], f"it is not served: {problems}")
        result = write(path, 3)
        aside = f"{path}.schema{schema}"
        need(f"(schema {schema}, this one has" in result["notice"] and aside in result["notice"], f"{result}")
        need(check(path)[4] == set(result["seqs"]) and not result["problem"], f"a new file: {result}")
        with open(aside, "rb") as f:
            need(hashlib.sha256(f.read()).digest() == before, "it is left as it was")
        os.unlink(path)
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE windows (other TEXT)")
        db.execute("PRAGMA user_version = 72")
    db.close()
    result = write(path, 1)
    need("another program made this" in result["problem"] and os.listdir(directory).count("stackd.db") == 1,
         f"the database of another program is left alone: {result}")


def test_garbage(directory):
    """A file that is no database is moved aside."""
    path = f"{directory}/stackd.db"
    with open(path, "wb") as f:
        f.write(b"this is no database\n" * 4000)
    result = write(path, 3)
    need(result["written"] == 3 and "moved" in result["notice"], f"a new one is begun: {result}")
    need(os.path.getsize(f"{path}.broken") == 80000, "the old one is kept aside")


def test_second(directory):
    path = f"{directory}/stackd.db"
    first = subprocess.Popen([TOOL, "write", path, "0"], stdout=subprocess.PIPE, encoding="utf-8")
    first.stdout.readline()
    result = write(path, 2)
    need(result["written"] == 0 and f"pid {first.pid}" in result["problem"], f"refused: {result}")
    need("written" in first.stdout.readline(), "the first writer goes on")
    first.kill()
    first.stdout.read()
    first.wait()
    need(write(path, 2)["written"] == 2, "a second writer can write when the first one has ended")


def test_size(directory):
    """max_size is kept, and the windows that are left are undamaged and the newest."""
    path = f"{directory}/stackd.db"
    result = write(path, 8000, 10 << 20)
    size = sum(os.path.getsize(f"{directory}/{name}") for name in os.listdir(directory))
    windows, _, bad, damaged, seqs = check(path)
    print(f"{windows} windows of 8000 in {size} bytes")
    need(size <= 10 << 20, f"{size} bytes are more than 10 MiB")
    need(bad == damaged == 0, f"{bad} bad, {damaged} damaged")
    need(windows < 8000 and set(result["seqs"][-windows + 20:]) <= seqs, "the newest are there")
    print(f"{summaries(path)} summaries")


def test_limit(directory):
    """A limit on the size of a file is kept: each window is written, the oldest are evicted, and the limit
    is named. Where not even the tables have room, that is named, too."""
    path, limit = f"{directory}/stackd.db", 1500000
    result = write(path, 3000, limit=limit)
    sizes = [os.path.getsize(f"{directory}/{name}") for name in os.listdir(directory)]
    windows, _, bad, damaged, seqs = check(path)
    print(f"{windows} windows of 3000, evicted {result['evicted']}: {result['notice']}")
    need(max(sizes) <= limit, f"{sizes} are more than {limit} bytes")
    need(bad == damaged == 0, f"{bad} bad, {damaged} damaged")
    need(result["written"] == 3000 and not result["problem"], f"each is written: {result['problem']}")
    need(100 < windows < 3000 and set(result["seqs"][-100:]) <= seqs, "the newest are there")
    need(result["notice"].endswith("dropped: the limit on the size of a file was reached"), "the limit is named")
    with contextlib.closing(sqlite3.connect(path)) as db:
        (reason,) = db.execute("SELECT text FROM meta WHERE key = 'evicted'").fetchone()
    need("the limit on the size of a file" in reason, f"the gap says why: {reason}")
    result = write(f"{directory}/none.db", 5, limit=20000)
    need(result["dropped"] == 5 and "/none.db: File too large (the limit on the size of a file" in result["problem"],
         f"with room for nothing: {result['problem']}")


def test_churn(directory):
    """If each window has processes of its own, they are dropped with their windows: unused rows do
    not fill the database."""
    path = f"{directory}/stackd.db"
    result = write(path, 3000, 16 << 20, STORE_CHURN="1")
    size = sum(os.path.getsize(f"{directory}/{name}") for name in os.listdir(directory))
    windows, _, bad, damaged, seqs = check(path)
    print(f"{windows} windows of 3000 in {size} bytes")
    need(size <= 16 << 20, f"{size} bytes are more than 16 MiB")
    need(bad == damaged == 0, f"{bad} bad, {damaged} damaged")
    need(400 < windows < 3000 and set(result["seqs"][-300:]) <= seqs, "the newest are there")


def test_crowd(directory):
    """If few windows fill the database with processes of their own, the newest of them are kept all
    the same."""
    path = f"{directory}/stackd.db"
    for round_number in (1, 2):
        result = write(path, 400, 16 << 20, STORE_CHURN="3000")
        size = sum(os.path.getsize(f"{directory}/{name}") for name in os.listdir(directory))
        windows, _, bad, damaged, seqs = check(path)
        print(f"round {round_number}: {windows} windows of 400 in {size} bytes")
        need(size <= 16 << 20, f"{size} bytes are more than 16 MiB")
        need(bad == damaged == 0, f"{bad} bad, {damaged} damaged")
        need(windows > 20 and set(result["seqs"][-20:]) <= seqs, "the newest are there")


def test_turns(directory):
    """A frame that a stack shares with a dropped stack is kept as long as the stack is, and so is
    the file of a frame. A file of no frame is dropped."""
    path = f"{directory}/stackd.db"
    orphans = []
    for count in (300, 12, 12, 12):
        write(path, count, 16 << 20, STORE_CHURN="3000", STORE_TURNS="1")
        windows, _, bad, damaged, _ = check(path, STORE_TURNS="1")
        print(f"{windows} windows, {bad} bad, {damaged} damaged")
        need(20 < windows < 300 and bad == damaged == 0, f"{windows} windows, {damaged} damaged")
        orphans.append(len(rows(path, "SELECT id FROM files WHERE hash = 12345")))
        with sqlite3.connect(path) as db:
            db.execute("INSERT OR IGNORE INTO files (hash, sum, data) VALUES (12345, 0, x'')")
        db.close()
    print(f"files of no frame after each run: {orphans}")
    need(0 in orphans[1:], "a file of no frame is dropped")


def test_merge(directory):
    """Old windows are compacted into longer ones without any loss in their sums."""
    path = f"{directory}/stackd.db"
    result = write(path, 240, 512 << 20, 1000)
    windows, parts, bad, damaged, _ = check(path)
    print(f"{windows} windows of {parts}, {result['merged']} merged")
    need(parts == 240 and bad == damaged == 0, f"{parts} parts, {bad} bad, {damaged} damaged")
    need(windows < 60, f"{windows} windows are too many")


def rows(path, sql):
    with sqlite3.connect(path) as db:
        found = db.execute(sql).fetchall()
    db.close()
    return found


def summaries(path):
    """Returns the number of summaries; fails unless each has all the windows that it says, in one
    tier, and no window is in two."""
    wrong = rows(path, """
        SELECT id FROM summaries AS s WHERE windows != (SELECT count(*) FROM window_tiers AS t
          WHERE t.session = s.session AND t.id BETWEEN s.id AND last_id
            AND tier = (SELECT tier FROM window_tiers WHERE id = s.id))
        OR parts != (SELECT sum(parts) FROM windows AS w
          WHERE w.session = s.session AND w.id BETWEEN s.id AND last_id)
        OR size != length(blob) OR (SELECT count(*) FROM summaries AS o WHERE o.session = s.session
          AND o.id <= s.last_id AND o.last_id >= s.id) != 1""")
    need(not wrong, f"summaries are not those of their windows: {wrong}")
    return rows(path, "SELECT count(*) FROM summaries")[0][0]


def summaries_make(path, wanted, **settings):
    """Runs a writer until there are so many summaries, and kills it."""
    writer = subprocess.Popen(
        [TOOL, "write", path, "0", str(64 << 20)], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env={**os.environ, "STORE_PACE": "1000", **settings})
    end = time.monotonic() + 60
    while not os.path.exists(path) or rows(path, "SELECT count(*) FROM sqlite_master WHERE "
                                           "name = 'summaries'") == [(0,)] or summaries(path) < wanted:
        need(time.monotonic() < end, f"there are {wanted} summaries")
        time.sleep(0.02)
    writer.kill()
    writer.wait()


# A day in the past: what a later writer adds is far away.
SUMMARIZED = {"STORE_CHURN": "30", "STORE_FOLD": "16", "STORE_TIERS": "5:99999999:100",
              "STORE_SHIFT": "-90000"}


def test_summaries(directory):
    """A long range is read from summaries, with the same sums; a question that they cannot answer
    is not; kill -9 while they are made leaves only whole ones; a damaged one is not missed."""
    path, plain = f"{directory}/stackd.db", f"{directory}/plain.db"
    count = 600
    write(path, count, 64 << 20, **SUMMARIZED)
    summaries_make(path, count // 24 - 1, **{**SUMMARIZED, "STORE_SHIFT": "-40000"})
    need(check(path)[:4][1:] >= (count, 0, 0), f"the windows are there: {check(path)[:4]}")
    start, end = rows(path, f"SELECT min(start_real_ns), max(end_real_ns) FROM windows "
                            f"WHERE id <= {count}")[0]
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    shutil.copy(path, plain)
    with sqlite3.connect(plain) as db:
        db.execute("DELETE FROM summaries")
    db.close()
    asked = {"probe": "offcpu", "since_ns": start, "until_ns": end}

    def ask(server, **more):
        error, reply = server.call("Snapshot", **asked, **more)
        need(not error, f"{more}: {error} {reply}")
        return reply

    with Served(directory, plain) as server:
        few = ask(server, top=20)
        others = [{}, {"top": 101}, {"top": 20, "by": "thread"}, {"top": 20, "by": "process"},
                  {"top": 20, "by": "comm"}, {"top": 20, "sort": "max"}, {"top": 20, "reverse": True},
                  {"top": 20, "filter": {"comm": "known"}}, {"top": 20, "filter": {"pids": [NO_PID]}},
                  {"top": 20, "filter": {"min_block_ns": 1}}, {"top": 20, "open": True}]
        answers = [ask(server, **other) for other in others]
        parts = [reply for _, reply in server.replies("Overview", top=5, since_ns=start, until_ns=end)]
        slices = list(server.replies("Snapshot", each_ns=600 * 10**9, top=20, **asked))
    with Served(directory, path) as server:
        reply = ask(server, top=20)
        found = reply["coverage"].pop("summaries", None)
        need(found and found["windows"] > count * 4 // 5 and found["read"] <= count // 12,
             f"summaries are read: {found}")
        for field in ("coverage", "lost"):
            need(reply[field] == few[field], f"{field}: {reply[field]}, not {few[field]}")
        same = ("on_cpu_ns", "blocked_ns", "runnable_ns", "waits", "open_waits")
        need(all(reply["totals"][key] == few["totals"][key] for key in same),
             f"{reply['totals']} {few['totals']}")
        total = [sum(answer[part]["total_ns"] for part in ("shown", "rest", "idle"))
                 for answer in (reply, few)]
        need(total[0] == total[1], f"the sums of all rows: {total}")
        for other, wanted in zip(others, answers):
            need(ask(server, **other) == wanted, f"{other}: not the answer of the windows")
        need(list(server.replies("Snapshot", each_ns=600 * 10**9, top=20, **asked)) == slices,
             "slices are not those of the windows")
        overview = next(server.replies("Overview", top=5, since_ns=start, until_ns=end))[1]
        need(overview["coverage"].pop("summaries", None) == found, "the overview reads summaries")
        need(overview["coverage"] == parts[0]["coverage"], f"{overview['coverage']}")
        total = [[(part["name"], part["total_ns"]) for part in answer["parts"]]
                 for answer in (overview, parts[0])]
        need(total[0] == total[1] and len(total[0]) > 1, f"the sums of the parts: {total}")
        with sqlite3.connect(path) as db:
            db.execute("UPDATE summaries SET blob_sum = blob_sum + 1 WHERE id = "
                       "(SELECT max(id) FROM summaries)")
        db.close()
        need(ask(server, top=20) == few, "a damaged summary: not the answer of the windows")
    chance, seen, base = random.Random(SEED), set(), f"{directory}/base.db"
    shutil.copy(plain, base)
    round_number = 0
    # A busy host makes few summaries between two kills: more rounds are needed there.
    while round_number < 20 or (len(seen) < 5 and round_number < 200):
        if round_number % 10 == 0:
            shutil.copy(base, plain)
        writer = subprocess.Popen([TOOL, "write", plain, "0", str(64 << 20)],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env={**os.environ, **SUMMARIZED, "STORE_PACE": "50",
                                       "STORE_SHIFT": "-40000"})
        writer.stdout.readline()
        time.sleep(chance.random() * 0.1)
        writer.kill()
        writer.communicate()
        seen.add(summaries(plain))
        need(check(plain)[2:4] == (0, 0), f"round {round_number}: {check(plain)[:4]}")
        round_number += 1
    print(f"{found}; {round_number} kills, after which there were {sorted(seen)} summaries")
    need(len(seen) >= 5, f"summaries were made between the kills: {seen}")


def test_join(directory):
    """Short windows are written as one; what kill -9 costs is less than a window of full length; a
    step of the clock in between does not hide in a window."""
    path = f"{directory}/stackd.db"
    write(path, 23, STORE_LENGTH="1000")
    need(check(path)[:4] == (5, 23, 0, 0), f"5 rows of 23 windows: {check(path)[:4]}")
    lengths = [(end - start) // 10**9 for start, end in
               rows(path, "SELECT start_ns, end_ns FROM windows ORDER BY id")]
    need(lengths == [5, 5, 5, 5, 3], f"their lengths: {lengths}")
    killed = f"{directory}/killed.db"
    write(killed, 23, STORE_LENGTH="1000", STORE_DIE="1")
    need(check(killed)[:4] == (4, 20, 0, 0), f"4 rows of 20 windows: {check(killed)[:4]}")
    stepped = f"{directory}/stepped.db"
    write(stepped, 20, STORE_LENGTH="1000", STORE_STEP="7")
    found = rows(stepped, "SELECT parts, end_real_ns - start_real_ns FROM windows ORDER BY id")
    need([parts for parts, _ in found] == [5, 2, 5, 5, 3], f"no row spans the step: {found}")
    need(all(ns == parts * 10**9 for parts, ns in found), f"each is as long as its parts: {found}")


def test_tiers(directory):
    """A tier that exceeds its share gives way to the next one: the newest windows stay as they are,
    older ones become longer, and none is lost as long as the last tier has room."""
    path = f"{directory}/stackd.db"
    count = 16000
    result = write(path, count, 16 << 20, STORE_TURNS="1",
                   STORE_TIERS="5:999999:20 60:9999999:30 600:99999999:50")
    windows, parts, bad, damaged, seqs = check(path, STORE_TURNS="1")
    found = dict((tier, (count, size)) for tier, count, size in
                 rows(path, "SELECT tier, count(*), sum(size) FROM window_tiers GROUP BY tier"))
    size = sum(os.path.getsize(f"{directory}/{name}") for name in os.listdir(directory))
    print(f"{windows} windows of {parts} parts in {size} bytes, by tier: {found}")
    need(bad == damaged == 0 and parts == count, f"{parts} parts, {bad} bad, {damaged} damaged")
    need(size <= 16 << 20, f"{size} bytes are more than 16 MiB")
    need(windows < count and len(found) > 1, f"old ones were merged: {found}")
    need(set(result["seqs"][-60:]) <= seqs, "the newest are as they were")
    early = dict(rows(path, "SELECT key, number FROM meta WHERE key LIKE 'early%'"))
    need("early0" in early, f"the database says that a tier gave way early: {early}")
    print(f"{summaries(path)} summaries")


def test_fold(directory):
    """Each window has processes of its own, and there is no room for their names: a tier first folds
    its windows to half as many rows, then to a quarter, and so on; no time is lost, and all sums are
    right."""
    path, count = f"{directory}/stackd.db", 2500
    result = write(path, count, 16 << 20, STORE_CHURN="150", STORE_TURNS="1", STORE_FOLD="32",
                   STORE_TIERS="5:999999:30 60:9999999:30 600:99999999:40")
    windows, parts, bad, damaged, _ = check(path, STORE_TURNS="1")
    found = rows(path, "SELECT tier, count(*), sum(size), min(row_limit), max(row_limit) "
                 "FROM window_tiers GROUP BY tier")
    size = sum(os.path.getsize(f"{directory}/{name}") for name in os.listdir(directory))
    print(f"{windows} windows of {parts} parts in {size} bytes, by tier: {found}")
    need(not result["problem"] and bad == damaged == 0, f"{bad} bad, {damaged} damaged: {result}")
    need(parts == count, f"{count - parts} windows are lost")
    need(size <= 16 << 20, f"{size} bytes are more than 16 MiB")
    need(all(tier[4] in (0, 2, 4, 8, 16, 32) for tier in found), f"rows are halved: {found}")
    folded = rows(path, "SELECT count(*) FROM window_tiers WHERE row_limit BETWEEN 1 AND 31")[0][0]
    need(folded > 0, f"a tier folded windows: {found}")
    processes = rows(path, "SELECT count(*) FROM processes")[0][0]
    need(processes < 40 * count // 2, f"names that nobody needs are gone: {processes} are left")
    # The next run of stackd goes on with as many rows.
    newest = "SELECT row_limit FROM window_tiers WHERE tier = 0 ORDER BY id DESC LIMIT 1"
    before = rows(path, newest)
    write(path, 1, 16 << 20, STORE_CHURN="150", STORE_TURNS="1", STORE_FOLD="32",
          STORE_TIERS="5:999999:30 60:9999999:30 600:99999999:40")
    need(rows(path, newest) == before, f"rows of a window, before and now: {before}, {rows(path, newest)}")


def test_rush(directory):
    """A full database costs no window: room is made in short steps while windows come all the
    time."""
    path, count = f"{directory}/stackd.db", 3000
    result = write(path, count, 16 << 20, STORE_CHURN="150", STORE_TURNS="1", STORE_FOLD="32",
                   STORE_RUSH="5",
                   STORE_TIERS="5:999999:30 60:9999999:30 600:99999999:40")
    windows, parts, bad, damaged, _ = check(path, STORE_TURNS="1")
    size = sum(os.path.getsize(f"{directory}/{name}") for name in os.listdir(directory))
    print(f"{windows} windows of {parts} parts in {size} bytes, {result['evicted']} evicted")
    need(result["dropped"] == 0, f"{result['dropped']} windows were not written")
    need(not result["problem"] and bad == damaged == 0, f"{bad} bad, {damaged} damaged")
    need(size <= 16 << 20, f"{size} bytes are more than 16 MiB")
    need(parts == count - result["evicted"] and result["evicted"] < count // 10,
         f"{count - parts} windows are gone, {result['evicted']} evicted")


def used_shares(directory, size, shares):
    """Returns what each tier really takes on disk, as a part of its share of `size`; 1 if its share
    is nothing. Checks that the files keep to `size`."""
    files = sum(os.path.getsize(f"{directory}/{name}") for name in os.listdir(directory))
    need(files <= size, f"{files} bytes are more than {size}")
    done = subprocess.run([os.environ["STORE_BYTES"], f"{directory}/stackd.db", "--bytes"],
                          stdout=subprocess.PIPE, encoding="utf-8", check=True)
    used = dict(map(int, line.split()) for line in done.stdout.splitlines())
    room = size - (6 << 20)  # tier.c: RESERVE
    return [used.get(tier, 0) * 100 / (room * share) if share else 1
            for tier, share in enumerate(shares)]


def test_shares(directory):
    """Windows are small beside their processes, and each tier has another mixture of both: each
    uses its share before it drops time. That stays so after a kill, in a database that does not
    say what the tiers take, and if it says nonsense."""
    path, size, shares = f"{directory}/stackd.db", 11 << 20, (30, 30, 40)
    settings = {"STORE_SMALL": "1", "STORE_CHURN": "2000",
                "STORE_TIERS": "5:999999:30 20:9999999:30 60:99999999:40"}
    weights = "SELECT key, number FROM meta WHERE key LIKE 'weight%'"
    write(path, 2500, size, STORE_DIE="1", **settings)
    need(len(rows(path, weights)) == 3, f"weights: {rows(path, weights)}")
    for change in ("", "DELETE FROM meta WHERE key LIKE 'weight%'",
                   "UPDATE meta SET number = number * -1 WHERE key = 'weight0';"
                   "UPDATE meta SET number = 1 << 60 WHERE key = 'weight1';"
                   "UPDATE meta SET number = NULL WHERE key = 'weight2'"):
        with sqlite3.connect(path) as db:
            db.executescript(change)
        db.close()
        result = write(path, 600, size, **settings)
        used = used_shares(directory, size, shares)
        print(f"each tier uses {['%.2f' % part for part in used]} of its share after '{change}'")
        need(not result["problem"] and result["evicted"], f"time was dropped: {result['problem']}")
        need(all(0.8 < part < 1.1 for part in used), f"each tier uses its share: {used}")
        found = dict(rows(path, weights))
        need(len(found) == 3 and all(1000 <= n <= 1000000 for n in found.values()),
             f"weights: {found}")


def test_nothing_full(directory):
    """A tier whose share is nothing leaves the room to the others: those fill it, and the newest
    windows are there."""
    size = 11 << 20
    for shares in ((50, 50, 0), (0, 50, 50)):
        path = f"{directory}/stackd.db"
        tiers = " ".join(f"{length}:{keep}:{share}" for (length, keep), share in
                         zip(((5, 999999), (20, 9999999), (60, 99999999)), shares))
        result = write(path, 2500, size, STORE_SMALL="1", STORE_CHURN="2000", STORE_TIERS=tiers)
        used = used_shares(directory, size, shares)
        print(f"each tier uses {['%.2f' % part for part in used]} of its share of {shares}")
        need(not result["problem"] and result["evicted"], f"time was dropped: {result['problem']}")
        need(all(0.8 < part < 1.1 for part in used), f"each tier uses its share: {used}")
        newest = rows(path, "SELECT max(seq) FROM windows")[0][0]
        need(newest == result["seqs"][-1], f"{newest} is not the newest window")
        os.remove(path)


def test_interrupt(directory):
    """kill -9 while windows are merged, folded and unused rows deleted: no time is lost or there
    twice, and all sums are right."""
    path, fresh, chance = f"{directory}/stackd.db", f"{directory}/fresh.db", random.Random(SEED)
    write(fresh, 600, 64 << 20, STORE_CHURN="300", STORE_TURNS="1", STORE_SHIFT="-200000")
    round_number, changes = 0, 0
    count, left = 600, 0
    # How much is merged between two kills depends on the host: more rounds may be needed.
    while round_number < 40 or (changes <= 10 and round_number < 400):
        if left < 200:  # there is little left to be merged
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path + suffix)
            shutil.copy(fresh, path)
            count, left = 600, 600
        # A smaller size in each second round makes room at once, and deletes many rows.
        writer = subprocess.Popen(
            [TOOL, "write", path, "0", str(64 << 20 if round_number % 2 else 20 << 20)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "STORE_TURNS": "1", "STORE_FOLD": "16", "STORE_PACE": "20",
                 "STORE_TIERS": "5:60:30 60:600:30 600:99999999:40"})
        writer.stdout.readline()
        time.sleep(chance.random() * 0.1)
        writer.kill()
        writer.communicate()
        windows, parts, bad, damaged, _ = check(path, STORE_TURNS="1")
        need(bad == damaged == 0, f"round {round_number}: {bad} bad, {damaged} damaged")
        need(parts > count, f"round {round_number}: {parts} parts after {count}")
        spans = rows(path, "SELECT start_real_ns, end_real_ns FROM windows WHERE id <= 600 ORDER BY 1")
        need(all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), f"round {round_number}: twice")
        need(sum(b - a for a, b in spans) == 600 * 5 * 10**9, f"round {round_number}: a time is lost")
        summaries(path)
        # Of the first 600 windows, as many are left; each of the new ones has one part.
        before, left, count = left, windows - (parts - 600), parts
        changes += left != before
        round_number += 1
    print(f"{windows} windows of {parts} parts; merged in {changes} of {round_number} rounds")
    need(changes > 10, f"windows were merged between the kills {changes} times")


def test_nothing(directory):
    """A tier whose share is nothing passes its windows on at once."""
    path = f"{directory}/stackd.db"
    write(path, 60, 512 << 20, 1, STORE_TIERS="5:999:0 60:99999:30 600:999999:70",
          STORE_SHIFT="-100")
    windows, parts, bad, damaged, _ = check(path)
    found = rows(path, "SELECT tier, count(*) FROM window_tiers GROUP BY tier")
    print(f"{windows} windows of {parts}: {found}")
    need(parts == 60 and bad == damaged == 0, f"{parts} parts, {bad} bad, {damaged} damaged")
    need(dict(found)[0] <= 12 and dict(found)[1] >= 4, f"they are merged: {found}")


def test_step(directory):
    """A step of the clock within a tier: the windows before and after it are merged apart."""
    path = f"{directory}/stackd.db"
    write(path, 240, 512 << 20, 1000, STORE_STEP="100")
    windows, parts, bad, damaged, _ = check(path)
    need(parts == 240 and bad == damaged == 0, f"{parts} parts, {bad} bad, {damaged} damaged")
    found = rows(path, "SELECT start_real_ns, end_real_ns, parts FROM windows ORDER BY id")
    need(all(end - start == 5 * 10**9 * n for start, end, n in found), f"no row has the step: {found}")
    gaps = [b[0] - a[1] for a, b in zip(found, found[1:]) if b[0] != a[1]]
    need(gaps == [60 * 10**9], f"the step is the only gap: {gaps}")
    need(windows < 60, f"{windows} windows are too many")


def main():
    with tempfile.TemporaryDirectory(prefix="stackd-store.") as directory:
        globals()[f"test_{NAME}"](directory)


main()
