# SPDX-License-Identifier: GPL-2.0-or-later
"""stackd-fleet send against stand-ins for the daemon and for ClickHouse, whose server fails in every
way: in the end, each window is there once, with the rows and sums of the daemon's answer.

Usage: test_fleet_send.py STACKD_FLEET
"""

import base64
import collections
import gzip
import http.server
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

import double

FLEET = sys.argv.pop(1)
SEED = 20260309
SECOND = 10**9
# Half a day ago, as the server keeps windows for 3 days; 20 seconds into a minute.
START = (int(time.time()) // 3600 * 3600 - 12 * 3600 + 800) * SECOND
HOSTILE = "a\tb\n'\\\"; DROP TABLE rows; --\u00e9"


def unescape(field):
    letters = {"t": "\t", "n": "\n", "r": "\r"}
    return re.sub(r"\\(.)", lambda m: letters.get(m[1], m[1]), field)


def unhex(sql):
    """Returns the SQL with its literals as they are meant."""
    return re.sub(r"unhex\('([0-9a-f]*)'\)", lambda m: repr(bytes.fromhex(m[1]).decode()), sql)


class ClickHouse(http.server.ThreadingHTTPServer):
    """Keeps the rows of inserts as dictionaries. `fault` says what happens to the next insert of rows."""

    daemon_threads = True

    def handle_error(self, *_):
        pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.tables = collections.defaultdict(list)
        self.version, self.fault, self.inserts, self.faults = 2, lambda: None, 0, collections.Counter()
        self.queries, self.logins, self.busy = [], set(), 0
        self.hides_version = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def insert(self, statement, body):
        table, columns = re.fullmatch(r"INSERT INTO (\w+) \((.*)\) FORMAT TabSeparated", statement).groups()
        names = columns.split(", ")
        rows = []
        for line in body.decode().splitlines():
            fields = line.split("\t")
            assert len(fields) == len(names), (len(fields), len(names))
            rows.append(dict(zip(names, fields)))
        self.tables[table] += rows

    def select(self, sql):
        if "version()" in sql:
            return "18.16.1\n"
        if "max(version)" in sql:
            return f"{self.version}\n"
        found = re.match(r"SELECT start, end FROM (\w+) WHERE kind IN \(0, 4\) AND probe = '(\w+)'", sql)
        return "".join(f"{row['start']}\t{row['end']}\n" for row in self.tables[found[1]]
                       if row["kind"] in ("0", "4") and row["probe"] == found[2])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self):  # pylint: disable=invalid-name
        self.server.busy += 1
        self.server.logins.add(self.headers["Authorization"])
        try:
            self.post()
        except OSError:
            # The sender was killed.
            self.close_connection = True
        finally:
            self.server.busy -= 1

    def post(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        words = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        server = self.server
        if "query" not in words:
            server.queries.append(unhex(body.decode()))
            if "version()" in server.queries[-1] and server.hides_version:
                self.answer(500, "Code: 202, e.displayText() = DB::Exception: Too many simultaneous queries\n")
                return
            self.answer(200, server.select(unhex(body.decode())))
            return
        assert self.headers["Content-Encoding"] == "gzip"
        statement, body = words["query"][0], gzip.decompress(body)
        server.inserts += 1
        fault = server.fault() if "rows" in statement or "units" in statement else None
        server.faults[fault] += 1
        if fault == "refused":
            self.answer(500, "Code: 241, e.displayText() = DB::Exception: Memory limit\n")
            return
        if fault == "broken":
            self.close_connection = True
            return
        server.insert(statement, body)
        if fault == "unsure":
            # The rows are there, and the sender does not get to know it.
            self.close_connection = True
            return
        self.answer(200, "")


class Daemon(double.Double):
    """Has windows of 5 s with rows that differ from window to window."""

    def __init__(self, path):
        super().__init__(path)
        self.windows, self.gaps = [], []
        self.replies = {"Status": [{"parameters": self.status()}], "Windows": self.list_windows,
                        "Snapshot": self.snapshot}

    @staticmethod
    def status():
        unset = {name: 0 for name in ("pid", "windows", "keep_ns", "user_ns", "system_ns", "rss_bytes",
                                      "map_bytes", "cut_ns", "cut_max_ns")}
        return {**unset, "version": "1", "started": double.time(1), "window_ns": 5 * SECOND,
                "boot_id": "11111111-2222-3333-4444-555555555555", "kernel": "6.1", "healthy": True,
                "problems": [], "probes": [], "lost": [], "limits": [], "stats_enabled": False}

    def list_windows(self, parameters):
        if parameters["probe"] != "offcpu":
            return [double.error("io.stackd.UnknownProbe", probe="oncpu", message="none")]
        windows = [{"seq": i + 1, "start": double.time(a), "end": double.time(b), "length_ns": b - a, "rows": 1,
                    "threads": 1, "open": 0, "bytes": 1, "lost": []} for i, (a, b) in enumerate(self.windows)]
        gaps = [{"start": double.time(a), "end": double.time(b), "reason": r} for a, b, r in self.gaps]
        return [{"parameters": {"windows": windows, "gaps": gaps}}]

    def rows_of(self, since, until):
        """The rows of a range are those of its windows."""
        return [row for a, b in self.windows if a >= since and b <= until for row in make_rows(a)]

    def snapshot(self, parameters):
        since, until = parameters["since_ns"], parameters["until_ns"]
        assert parameters["idle"] and parameters["groups"] and "top" in parameters
        rows = self.rows_of(since, until)
        used = {"start": double.time(since), "end": double.time(until)}
        nothing = {"rows": 0, "total_ns": 0}
        head = {"probe": "offcpu", "hook": "h", "lost": [{"reason": HOSTILE, "count": 3}], "notes": [],
                "coverage": {"asked": used, "used": used, "asked_ns": 1, "covered_ns": until - since,
                             "windows": 1, "gaps": [], "complete": True},
                "totals": {"processes": 1, "threads": len(rows), "on_cpu_ns": 7},
                "shown": {"rows": len(rows), "total_ns": sum(row["total_ns"] for row in rows)},
                "rest": nothing, "idle": nothing}
        half = len(rows) // 2
        return [{"parameters": {**head, "rows": rows[:half]}, "continues": True},
                {"parameters": {**head, "rows": rows[half:]}}]


def make_rows(start):
    """Rows of all states; few have most of the time."""
    chance, rows = random.Random(start), []
    for i in range(60):
        blocked = chance.randrange(10**9 if i % 10 == 0 else 10**5)
        stack = {"id": hex(1000 + chance.randrange(40)), "flags": [],
                 "frames": [{"kind": "native", "name": HOSTILE, "offset": 7}, {"kind": "pseudo"}]}
        rows.append({
            "process": {"pid": i % 7, "start": double.time(5), "comm": HOSTILE, "kernel": False,
                        "exited": False, "cgroup": f"/u{i % 3}.service"},
            "comm": "t", "idle": i % 4 == 0, "count": chance.randrange(50), "total_ns": blocked + i,
            "state": "SDR-"[i % 4], "reason": "futex", "blocked_ns": blocked, "runnable_ns": i,
            "max_ns": blocked, "buckets": [chance.randrange(9) for _ in range(5)], "kernel": stack,
            "unit": f"u{i % 3}.service", "function": HOSTILE, "module": "m"})
    return rows


def sums_of(rows):
    sums = collections.Counter()
    for row in rows:
        cgroup = row["cgroup"] if "cgroup" in row else row["process"]["cgroup"]
        for name in ("count", "total_ns", "blocked_ns", "runnable_ns"):
            sums[cgroup, row["state"], row["reason"], int(row["idle"]), name] += int(row[name])
    return +sums


class SendTest(unittest.TestCase):
    def setUp(self):
        # pylint: disable=consider-using-with
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.daemon = Daemon(f"{self.directory}/s")
        self.addCleanup(self.daemon.close)
        self.server = ClickHouse()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.daemon.windows = [(START + 5 * SECOND * i, START + 5 * SECOND * (i + 1)) for i in range(60)]

    def argv(self, *words):
        settings = {"server.url": self.server.url, "send.socket": self.daemon.path, "send.host": HOSTILE,
                    "send.lock_file": f"{self.directory}/lock", "send.batch": "100ms"}
        options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        return [FLEET, "-c", "/dev/null", *options, *words]

    def send(self, code=0):
        done = subprocess.run(self.argv("send", "--once"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              encoding="utf-8", timeout=double.HANG, check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def check(self, windows):
        """Each window has one header, and its rows have the sums of the daemon's."""
        for table, ranges in (("rows", windows), ("rows60", minutes_of(windows))):
            rows = self.server.tables[table]
            headers = [(int(row["start"]), int(row["end"])) for row in rows if row["kind"] == "0"]
            self.assertEqual(sorted(headers), sorted(ranges))
            for start, end in ranges:
                own = [row for row in rows if int(row["start"]) == start and row["kind"] in "123"]
                (header,) = [row for row in rows if int(row["start"]) == start and row["kind"] == "0"]
                answer = self.daemon.rows_of(start, end)
                self.assertEqual(sums_of(own), sums_of(answer))
                self.assertEqual(int(header["h_rows"]), len(own))
                self.assertEqual(int(header["h_of_rows"]), sum(int(row["of_rows"]) for row in own))
                self.assertEqual(int(header["h_total_ns"]), sum(row["total_ns"] for row in answer))
                self.assertEqual(json.loads(unescape(header["h_json"]))["lost"][0]["reason"], HOSTILE)
                self.check_buckets(own, answer)
        units = [row for row in self.server.tables["units"] if row["kind"] == "3"]
        self.assertEqual(sum(int(row["total_ns"]) for row in units),
                         sum(row["total_ns"] for start, _ in windows for row in make_rows(start)))

    def check_buckets(self, own, answer):
        self.assertEqual([sum(column) for column in zip(*(row["buckets"] for row in answer))],
                         [sum(column) for column in zip(*(json.loads(row["buckets"]) for row in own))])

    def test_all_is_there_once(self):
        self.assertIn("sent 66 windows, 0 gaps", self.send())
        self.check(self.daemon.windows)
        self.assertIn("sent 0 windows, 0 gaps, 0 rows, 0 stacks", self.send())
        self.check(self.daemon.windows)
        kinds = collections.Counter(row["kind"] for row in self.server.tables["rows"])
        self.assertTrue(kinds["1"] and kinds["2"] and kinds["3"], kinds)
        self.assertLess(kinds["1"] + kinds["2"] + kinds["3"], 60 * 60 * 3 // 4)

    def test_left_by_the_parent(self):
        """Descriptors that the parent has closed are not taken for others, and what cannot be printed is said."""
        for closed, says in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor"),
                             ("<&- >&-", "Bad file descriptor")):
            for words in (["--help"], ["--version"], ["--dump-config"], ["schema"], ["send", "--once"]):
                done = subprocess.run(["sh", "-c", f'umask 0777; exec "$@" {closed}', "sh", *self.argv(*words)],
                                      stderr=subprocess.PIPE, encoding="utf-8", timeout=double.HANG, check=False)
                self.assertEqual((done.returncode, done.stderr), (1, f"stackd-fleet: standard output: {says}\n"), words)
        self.check(self.daemon.windows)
        self.assertEqual(os.stat(f"{self.directory}/lock").st_mode & 0o777, 0o600)

    def test_byte_order_mark(self):
        """It is a part neither of the settings nor of the password."""
        for name, text in (("password", "secret\n"),
                           ("conf", f"[server]\nuser = u\npassword_file = {self.directory}/password\n")):
            with open(f"{self.directory}/{name}", "w", encoding="utf-8-sig") as file:
                file.write(text)
            os.chmod(file.name, 0o600)
        argv = [word if word != "/dev/null" else f"{self.directory}/conf" for word in self.argv("send", "--once")]
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=double.HANG, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(self.server.logins, {"Basic " + base64.b64encode(b"u:secret").decode()})

    def test_hostile_names(self):
        """Names cannot leave their fields, and do not get into SQL."""
        self.send()
        row = next(row for row in self.server.tables["rows"] if row["kind"] == "1")
        self.assertEqual(unescape(row["pcomm"]), HOSTILE)
        self.assertEqual(unescape(row["host"]), HOSTILE)
        self.assertEqual(unescape(self.server.tables["stacks"][0]["frames"]), f"['{HOSTILE}','']")
        self.assertTrue(any(f"host = {HOSTILE!r}" in query for query in self.server.queries))

    def test_stacks_once(self):
        """A stack is sent once, before the rows that have it, and rows refer to those that were sent."""
        self.send()
        ids = [row["id"] for row in self.server.tables["stacks"]]
        self.assertEqual(len(ids), len(set(ids)))
        used = {row["kstack"] for row in self.server.tables["rows"] if row["kind"] == "1"}
        self.assertLessEqual(used, set(ids))
        self.assertNotIn("0", used)

    def test_faults(self):
        """Inserts are refused, broken off, or done without an answer."""
        chance = random.Random(SEED)
        self.server.fault = lambda: chance.choice(["refused", "broken", "unsure", None])
        kills = 0
        # A run of its own each time: one sender would wait longer after each failure.
        for _ in range(400):
            last = self.daemon.windows[-1][1]
            self.daemon.windows = self.daemon.windows + [(last, last + 5 * SECOND)]
            sender = subprocess.Popen(self.argv("send", "--once"), stdout=subprocess.DEVNULL,  # pylint: disable=R1732
                                      stderr=subprocess.DEVNULL)
            if chance.random() < 0.3:
                time.sleep(chance.random() / 4)
                sender.kill()
                kills += 1
            sender.wait(120)
            # An insert of a sender that was killed may go on; a later sender would not see it yet.
            while self.server.busy:
                time.sleep(0.01)
            if kills and all(self.server.faults[fault] >= 2 for fault in ("refused", "broken", "unsure", None)):
                break
        self.server.fault = lambda: None
        self.send()
        rows = self.server.tables["rows"]
        headers = [row["start"] for row in rows if row["kind"] == "0"]
        self.assertEqual(len(headers), len(set(headers)))
        self.assertEqual(sorted(map(int, headers)), [start for start, _ in self.daemon.windows])
        self.assertGreaterEqual(min(self.server.faults[fault] for fault in ("refused", "broken", "unsure")), 2)
        print(f"{kills} kills, inserts by fault: {dict(self.server.faults)}", file=sys.stderr)

    def test_gaps(self):
        """What aged away is a gap with the daemon's reason, or with one of the sender's."""
        self.send()
        last = self.daemon.windows[-1][1]
        late = last + 3600 * SECOND
        self.daemon.windows = [(late, late + 5 * SECOND), (late + 10 * SECOND, late + 15 * SECOND)]
        self.daemon.gaps = [(late + 5 * SECOND, late + 10 * SECOND, HOSTILE)]
        for _ in range(2):
            self.send()
            gaps = [(int(row["start"]), int(row["end"]), unescape(row["reason"]))
                    for row in self.server.tables["rows"] if row["kind"] == "4"]
            self.assertEqual(gaps, [(last, late, "the daemon did not keep it until it was sent"),
                                    (late + 5 * SECOND, late + 10 * SECOND, HOSTILE)])

    def test_merged(self):
        """Windows that the daemon merged after they were sent are not sent again."""
        self.send()
        first, last = self.daemon.windows[0][0], self.daemon.windows[-1][1]
        self.daemon.windows = [(first, last), (last, last + 60 * SECOND)]
        self.send()
        starts = [int(row["start"]) for row in self.server.tables["rows"] if row["kind"] in "04"]
        self.assertEqual(len(starts), 61)
        self.assertEqual(max(starts), last)

    def test_versions(self):
        self.server.version = 0
        self.assertIn("stackd-fleet schema --apply", self.send(1))
        self.server.version = 3
        self.assertIn("update this program", self.send(1))
        self.assertFalse(self.server.tables)

    def test_no_version(self):
        """That a server fails as it is asked for its version, before the first insert, is an error; all is sent later."""
        self.server.hides_version = True
        self.assertIn("Too many simultaneous queries", self.send(1))
        self.assertFalse(any(self.server.tables.values()))
        self.server.hides_version = False
        self.send()
        self.check(self.daemon.windows)

    def test_no_daemon(self):
        self.daemon.replies["Status"] = [None]
        self.assertIn("the daemon", self.send(1))
        self.assertFalse(self.server.tables)

    def test_bad_answers(self):
        """An answer that is no answer of a daemon, or that breaks off, sends nothing."""
        whole = self.daemon.snapshot
        for name, bad in (("broken off", lambda p: [whole(p)[0], None]),
                          ("no JSON", lambda p: [b"{\0"]),
                          ("too few rows", lambda p: [{**whole(p)[0], "continues": False}]),
                          ("twice", lambda p: [whole(p)[0], whole(p)[0], whole(p)[1]])):
            with self.subTest(name):
                self.daemon.replies["Snapshot"] = bad
                self.assertIn("the daemon", self.send(1))
                self.assertFalse(self.server.tables["rows"])

    def test_second_sender(self):
        first = subprocess.Popen(self.argv("send"), stderr=subprocess.DEVNULL)  # pylint: disable=R1732
        self.addCleanup(first.wait)
        self.addCleanup(first.kill)
        deadline = time.monotonic() + 60
        while not self.server.tables["rows"]:
            self.assertIsNone(first.poll())
            self.assertLess(time.monotonic(), deadline, "the first sender sent nothing")
            time.sleep(0.02)
        self.assertIn("another sender", self.send(1))


def minutes_of(windows):
    minutes = collections.OrderedDict()
    for start, end in windows:
        minutes.setdefault((start + (end - start) // 2) // (60 * SECOND), []).append((start, end))
    return [(parts[0][0], parts[-1][1]) for parts in minutes.values()]


if __name__ == "__main__":
    os.umask(0o022)
    unittest.main(verbosity=1)
