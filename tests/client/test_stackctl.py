# SPDX-License-Identifier: GPL-2.0-or-later
"""stackctl against a stand-in for the daemon: requests, exit codes, messages, output files,
terminals. Run with: STACKCTL."""

import grp
import json
import os
import pty
import re
import resource
import select
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time as clock
import unittest
import fcntl

import double
from double import error, time

STACKCTL = sys.argv[1]
T0 = 1772334610 * 10**9


def row(**other):
    return {
        "process": {"pid": 4242, "start": time(T0), "comm": "db", "kernel": False,
                    "exited": False},
        "comm": "db", "state": "S", "state_bits": 1, "idle": False, "count": 3,
        "total_ns": 3 * 10**9, "blocked_ns": 3 * 10**9, "runnable_ns": 0, "open": 0,
        "open_ns": 0, "max_ns": 2 * 10**9, "max_end": time(T0 + 10**9), "buckets": [0] * 26,
        "kernel": {"id": "a", "flags": [], "frames": [{"kind": "kernel", "name": "schedule"}]},
        "user": {"id": "b", "flags": [],
                 "frames": [{"kind": "native", "name": "N" * 200, "module": "/bin/db"},
                            {"kind": "native", "name": "main", "module": "/bin/db"}]},
        **other}


def snapshot(rows, complete=True, probe="offcpu"):
    span = {"start": time(T0), "end": time(T0 + 30 * 10**9)}
    rest = {"rows": 0, "threads": 0, "total_ns": 0}
    return {
        "probe": probe, "hook": "h", "min_wait_ns": 100000,
        "coverage": {"asked": span, "used": span, "asked_ns": 30 * 10**9,
                     "covered_ns": 30 * 10**9, "windows": 6, "gaps": [], "complete": complete},
        "totals": {"processes": 1, "threads": 1, "on_cpu_ns": 1, "runnable_ns": 0,
                   "blocked_ns": 3 * 10**9, "waits": 3, "short_waits": 0, "short_ns": 0,
                   "open_waits": 0},
        "lost": [] if complete else [{"reason": "stacks", "count": 3}], "notes": [],
        "shown": {"rows": 1, "threads": 1, "total_ns": 3 * 10**9}, "rest": rest, "idle": rest,
        "rows": rows}


def status(healthy=True, lost=0):
    return {
        "version": "0.1.0", "pid": 1, "started": time(T0), "boot_id": "b", "kernel": "6.1",
        "healthy": healthy, "problems": [] if healthy else ["the drain is late"], "probes": [],
        "windows": 3, "window_ns": 5 * 10**9, "keep_ns": 600 * 10**9, "user_ns": 1,
        "system_ns": 1, "rss_bytes": 1, "map_bytes": 1, "cut_ns": 1, "cut_max_ns": 1,
        "lost": [{"reason": "waits", "count": lost}], "limits": [], "stats_enabled": False}


class Client(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.socket = self.directory.name + "/sock"
        self.daemon = double.Double(self.socket)
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([row()])}]
        self.daemon.replies["Status"] = [{"parameters": status()}]

    def tearDown(self):
        self.daemon.close()
        self.directory.cleanup()

    def run_it(self, *words, env=None, stdout=subprocess.PIPE):
        environment = {**os.environ, "STACKD_SOCKET": self.socket, "TZ": "UTC", **(env or {})}
        done = subprocess.run([STACKCTL, *words], stdout=stdout, stderr=subprocess.PIPE,
                              env=environment, timeout=30)
        return done.returncode, (done.stdout or b"").decode(), done.stderr.decode()

    def asked(self):
        return self.daemon.calls[-1]["parameters"]

    def check(self, words, code, says):
        got, _, err = self.run_it(*words)
        self.assertEqual(got, code, (words, err))
        self.assertIn(says, err)

    # Requests

    def test_request(self):
        code, _, err = self.run_it(
            "snapshot", "offcpu", "-p", "1,2", "-uK", "-m100", "-M", "5ms", "--state", "D,2",
            "--comm", "my*", "--cgroup", "/a", "--unit", "x.service", "--window", "1min", "--sort",
            "max", "--by", "thread", "-n7", "--reverse")
        self.assertEqual((code, err), (0, ""))
        call = self.daemon.calls[-1]
        self.assertEqual(call["method"], "io.stackd.Snapshot")
        self.assertTrue(call["more"])
        self.assertEqual(self.asked(), {
            "probe": "offcpu", "window_ns": 60 * 10**9, "by": "thread", "sort": "max",
            "reverse": True, "top": 7, "idle": True,
            "filter": {"pids": [1, 2], "user_threads": True, "kernel_stacks": True,
                       "min_block_ns": 100000, "max_block_ns": 5000000, "states": ["D", "2"],
                       "comm": "my*", "cgroup": "/a", "unit": "x.service"}})

    def test_rows_asked_for(self):
        for words, top, idle in ((["snapshot", "offcpu"], 20, False),
                                 (["snapshot", "offcpu", "-u"], 20, False),
                                 (["snapshot", "offcpu", "--idle"], 20, True),
                                 (["snapshot", "offcpu", "-t1"], 20, True),
                                 (["snapshot", "offcpu", "-f"], 0, True),
                                 (["snapshot", "offcpu", "--json"], 0, True),
                                 (["snapshot", "offcpu", "--json", "-n5"], 5, True),
                                 (["stuck"], 0, False),
                                 (["stuck", "-p1", "-n5"], 0, True)):
            self.assertEqual(self.run_it(*words)[0], 0)
            self.assertEqual((self.asked()["top"], self.asked()["idle"]), (top, idle), words)

    def test_stuck(self):
        self.run_it("stuck")
        self.assertEqual([self.asked()[name] for name in ("probe", "open", "by", "sort")],
                         ["offcpu", True, "thread", "max"])

    def test_range(self):
        self.run_it("snapshot", "offcpu", "--since", "@1000", "--until", "@2000")
        self.assertEqual((self.asked()["since_ns"], self.asked()["until_ns"]),
                         (1000 * 10**9, 2000 * 10**9))
        code, _, err = self.run_it("snapshot", "offcpu", "--since", "@1000", "--until", "tomorrow")
        self.assertEqual(code, 0)
        self.assertNotIn("until_ns", self.asked())
        self.assertIn("future", err)

    # Answers

    def test_replies_are_put_together(self):
        self.daemon.replies["Snapshot"] = [
            {"parameters": snapshot([row(comm=f"c{i}")]), "continues": i < 2} for i in range(3)]
        code, out, _ = self.run_it("snapshot", "offcpu", "--json")
        self.assertEqual(code, 0)
        self.assertEqual([r["comm"] for r in json.loads(out)["rows"]], ["c0", "c1", "c2"])
        _, out, _ = self.run_it("snapshot", "offcpu", "-f")
        self.assertEqual(out, "".join(f"c{i};main;{'N' * 200};schedule 3000000\n"
                                      for i in range(3)))

    LARGE = 300

    def large(self):
        """Sets an answer of 20 MB, in replies of 64 KiB. Returns its rows, and a list to which the
        number of each reply is added when it is asked for."""
        rows = [row(comm=f"c{i}") for i in range(128)]
        text = [json.dumps(r) for r in rows]
        taken = []

        def replies(parameters):
            head = json.dumps(snapshot([]))[:-2]
            for k in range(self.LARGE):
                taken.append(k)
                more = ',"continues":true' if k + 1 < self.LARGE else ""
                yield f'{{"parameters":{head}{",".join(text)}]}}{more}}}'.encode() + b"\0"

        self.daemon.replies["Snapshot"] = replies
        return rows, taken

    def start(self, *words, **how):
        environment = {**os.environ, "STACKD_SOCKET": self.socket, "TZ": "UTC"}
        return subprocess.Popen([STACKCTL, *words], env=environment, **how)

    def test_a_large_answer_takes_little_memory(self):
        """It is printed whole with 16 MiB of data, which the kernel enforces."""
        rows, _ = self.large()
        limit = None if self.is_sanitized() else lambda: resource.setrlimit(
            resource.RLIMIT_DATA, (16 << 20, 16 << 20))
        for words in (["--json"], ["-f"]):
            with tempfile.TemporaryFile() as file:
                client = self.start("snapshot", "offcpu", *words, stdout=file, preexec_fn=limit)
                self.assertEqual(client.wait(timeout=30), 0)
                file.seek(0)
                text = file.read().decode()
            if words == ["--json"]:
                self.assertGreater(len(text), 10 << 20)
                got = [(r["comm"], len(r["user"]["frames"])) for r in json.loads(text)["rows"]]
                self.assertTrue(got == self.LARGE * [(r["comm"], 2) for r in rows])
            else:
                sums = dict(line.split(" ") for line in text.splitlines())
                self.assertEqual(sums, {f"c{i};main;{'N' * 200};schedule": str(3000000 * self.LARGE)
                                        for i in range(128)})

    @staticmethod
    def is_sanitized():
        with open(STACKCTL, "rb") as file:
            return b"__asan_init" in file.read()

    def test_a_reader_that_is_slow(self):
        """All replies are taken from the daemon, although nobody reads the output yet."""
        rows, taken = self.large()
        client = self.start("snapshot", "offcpu", "--json", stdout=subprocess.PIPE)
        end = clock.monotonic() + 30
        while len(taken) < self.LARGE and clock.monotonic() < end:
            clock.sleep(0.05)
        self.assertEqual(len(taken), self.LARGE)
        out, _ = client.communicate(timeout=30)
        self.assertEqual(client.returncode, 0)
        self.assertEqual(len(json.loads(out)["rows"]), self.LARGE * len(rows))

    def test_a_reader_that_goes_away(self):
        """The call ends when the program that reads the output has exited."""
        _, taken = self.large()
        self.LARGE = 100000
        client = self.start("snapshot", "offcpu", "--json", stdout=subprocess.PIPE)
        self.assertTrue(client.stdout.read(1000))
        client.stdout.close()
        self.assertEqual(client.wait(timeout=30), 7)
        self.assertLess(len(taken), self.LARGE)

    def test_an_answer_that_breaks_off(self):
        """What was printed is no whole document, and no file appears."""
        path = self.directory.name + "/broken.json"
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([row()]), "continues": True}, None]
        code, out, err = self.run_it("snapshot", "offcpu", "--json")
        self.assertEqual(code, 7)
        self.assertIn("closed the connection", err)
        with self.assertRaises(ValueError):
            json.loads(out)
        self.assertEqual(self.run_it("snapshot", "offcpu", "--json", "--output", path)[0], 7)
        self.assertEqual(os.listdir(self.directory.name), ["sock"])

    def test_json_is_the_reply(self):
        want = snapshot([row(tid=5, max_tid=7)])
        self.daemon.replies["Snapshot"] = [{"parameters": want}]
        _, out, _ = self.run_it("snapshot", "offcpu", "--json")

        def without_text(value):
            if isinstance(value, dict):
                return {k: without_text(v) for k, v in value.items() if k != "text"}
            return [without_text(v) for v in value] if isinstance(value, list) else value
        self.assertEqual(without_text(json.loads(out)), without_text(want))

    def test_default_is_status(self):
        code, out, err = self.run_it()
        self.assertEqual(code, 0)
        self.assertTrue(out.startswith("stackd     healthy\n"))
        self.assertIn("stackctl stuck", err)

    def test_check(self):
        self.assertEqual(self.run_it("status", "--check"),
                         (0, "OK: recording; 3 windows, 0 lost, 0 limits reached\n", ""))
        # A loss of long ago is counted, but is no problem.
        self.daemon.replies["Status"] = [{"parameters": status(lost=9)}]
        code, out, _ = self.run_it("status", "--check")
        self.assertEqual((code, out.split(":")[0]), (0, "OK"))
        self.assertIn("9 lost", out)
        self.daemon.replies["Status"] = [{"parameters": status(healthy=False)}]
        code, out, _ = self.run_it("status", "--check")
        self.assertEqual((code, out.count("\n")), (1, 1))
        self.assertIn("the drain is late", out)

    def test_check_of_a_failure(self):
        failed = status(healthy=False)
        failed["probes"] = [{"name": "offcpu", "state": "failed", "blind": [], "programs": []}]
        self.daemon.replies["Status"] = [{"parameters": failed}]
        code, out, _ = self.run_it("status", "--check")
        self.assertEqual((code, out.split(":")[0]), (2, "CRITICAL"))
        self.daemon.replies["Status"] = [error("org.varlink.service.PermissionDenied")]
        code, out, _ = self.run_it("status", "--check")
        self.assertEqual((code, out.split(":")[0]), (3, "UNKNOWN"))
        self.daemon.replies["Status"] = [None]
        code, out, _ = self.run_it("status", "--check")
        self.assertEqual((code, out.split(":")[0]), (2, "CRITICAL"))

    def test_check_of_json(self):
        for code, known in ((0, status()), (1, status(healthy=False)),
                            (2, {**status(healthy=False), "probes": [
                                {"name": "offcpu", "state": "failed", "blind": [],
                                 "programs": []}]})):
            self.daemon.replies["Status"] = [{"parameters": known}]
            got, out, _ = self.run_it("status", "--check", "--json")
            self.assertEqual((got, json.loads(out)["healthy"]), (code, code == 0))
            self.assertEqual(self.run_it("status", "--json"), (0, out, ""))
        # Without an answer there is no document, and a line would not be JSON.
        for code, failed in ((2, None), (3, error("org.varlink.service.PermissionDenied"))):
            self.daemon.replies["Status"] = [failed]
            self.assertEqual(self.run_it("status", "--check", "--json")[:2], (code, ""))

    def test_overview(self):
        ready = row(state="R", blocked_ns=0, runnable_ns=10**9, total_ns=10**9, comm="worker")
        waits = {"name": "runnable", "rows": 70, "total_ns": 5 * 10**9}
        self.answer_overview({"parameters": snapshot([row(), ready], probe="oncpu")},
                             rows=[row(), ready], parts=[waits])
        code, out, err = self.run_it("snapshot", "-p", "4242")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual([call["method"] for call in self.daemon.calls], ["io.stackd.Overview"])
        asked = self.daemon.calls[0]["parameters"]
        self.assertEqual((asked["top"], asked["filter"]["pids"]), (5, [4242]))
        parts = re.findall(r"^(on CPU|runnable|blocked) +(.*stacks?)$", out, re.M)
        self.assertEqual([name for name, _ in parts], ["on CPU", "runnable", "blocked"])
        # The daemon knows how many there are: it sends no more than what is shown.
        self.assertEqual("5 s, 1 of 70 stacks", parts[1][1])
        self.assertIn("  20 %\n", out)
        self.assertIn("1 of 1 stack", parts[2][1])
        self.assertLess(out.index("worker (pid 4242"), out.rindex("db (pid 4242)"))
        code, out, _ = self.run_it("snapshot", "--json")
        self.assertEqual(code, 0)
        self.assertEqual(self.daemon.calls[-1]["parameters"]["top"], 0)
        both = json.loads(out)
        self.assertEqual(both.keys(), {"waits", "samples", "io"})
        self.assertIsNone(both["io"])
        self.assertEqual([r["comm"] for r in both["waits"]["rows"]], ["db", "worker"])
        for words in (["--sort", "max"], ["--by", "thread"], ["--reverse"]):
            self.check(["snapshot", *words], 1, "snapshot offcpu " + " ".join(words))

    def test_overview_folded(self):
        ready = row(state="R", blocked_ns=0, runnable_ns=10**9, total_ns=10**9, comm="worker")
        self.answer_overview({"parameters": snapshot([row(), ready], probe="oncpu")},
                             rows=[row(), ready])
        code, out, err = self.run_it("snapshot", "-f", "-p", "4242")
        self.assertEqual((code, err), (0, ""))
        towers = {}
        for line in out.splitlines():
            stack, value = line.rsplit(" ", 1)
            towers.setdefault(stack.split(";")[0], []).append((stack.split(";")[1], int(value)))
        # The stand-in answers about samples as about waits.
        self.assertEqual(list(towers), ["on CPU", "runnable", "blocked"])
        self.assertEqual(towers["runnable"], [("worker", 1000000)])
        self.assertEqual([comm for comm, _ in towers["blocked"]], ["db"])
        asked = [call["parameters"] for call in self.daemon.calls]
        self.assertEqual([(a["idle"], a["top"]) for a in asked], [(True, 0)])

    def answer_overview(self, samples, rows=None, parts=()):
        """Answers with waits, then with `samples`: a reply, None to disconnect, or the reason why
        there are none ("" where no thread of the filter ran)."""
        waits = snapshot(rows or [row()])
        waits["parts"] = list(parts)
        if isinstance(samples, str):
            empty = snapshot([], probe="oncpu")
            empty["coverage"]["windows"] = 0
            samples = {"parameters": {**empty, **({"missing": samples} if samples else {})}}
        self.daemon.replies["Overview"] = [{"parameters": waits, "continues": True}, samples]

    def test_unknown_probe(self):
        """It is named before anything else that is missing, and without asking the daemon."""
        self.check(["record", "bogus"], 1, "no probe bogus; there are: offcpu, oncpu")
        self.check(["record", "stackcont", "f"], 1, "no probe stackcont; did you mean stackcount?")
        self.check(["start", "bogus"], 1, "no probe bogus")
        self.assertEqual(self.daemon.calls, [])
        self.check(["record", "oncpu"], 1, "record needs --duration")

    def test_errors_name_the_option(self):
        self.daemon.replies["Follow"] = [error("io.stackd.InvalidTime", field="interval_ns",
                                               message="an answer every 1 ms: from 500 ms")]
        self.check(["watch", "offcpu", "-i", "1ms"], 1, "--interval: an answer every 1 ms")
        self.check(["snapshot", "--each", "5s"], 1, "stackctl snapshot offcpu --each 10s")

    def test_snoop_without_calls(self):
        session = {"id": "100", "probe": "stacksnoop", "owner": "root", "since": time(T0),
                   "ended": time(T0 + 10**9), "always": False, "function": "f", "count": 0,
                   "lost": []}
        call = {"time": time(T0), "pid": 1, "tid": 1, "comm": "db", "cpu": 0,
                "count": 1, "kernel": None, "user": None}
        self.daemon.replies["Start"] = [{"parameters": {"session": session, "calls": []}}]
        self.assertEqual(self.run_it("snoop", "f"), (0, "", "stackctl: no call of f was seen\n"))
        self.assertIn("by a thread of the filter", self.run_it("snoop", "f", "--comm", "db")[2])
        self.daemon.replies["Start"] = [
            {"parameters": {"session": {**session, "count": 1}, "calls": [call]}}]
        code, out, err = self.run_it("snoop", "f")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("db", out)

    def test_overview_of_lost_samples(self):
        self.answer_overview({"parameters": snapshot([row()], complete=False, probe="oncpu")})
        code, out, err = self.run_it("snapshot")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("\nlost       nothing\nsamples    lost, stacks: 3\n", out)
        self.check(["snapshot", "--strict"], 5, "not complete: samples: 30 s of 30 s covered, "
                                                "0 gaps, 3 lost\n")

    def test_overview_without_samples(self):
        why = "the probe oncpu is off, and no window of it"
        self.answer_overview(why)
        code, out, err = self.run_it("snapshot")
        self.assertEqual((code, err), (0, ""))
        self.assertIn(f"\non CPU     no samples: {why}\n", out)
        self.assertIn("db (pid 4242)", out)
        code, out, err = self.run_it("snapshot", "--json")
        self.assertEqual((code, err), (0, f"stackctl: no samples: {why}\n"))
        self.assertIsNone(json.loads(out)["samples"])
        self.check(["snapshot", "--strict"], 5, f"no samples: {why}\n")
        # Threads that did not run are in no sample: nothing is missing then.
        self.answer_overview("")
        for words in (["--strict"], ["--strict", "-f"]):
            code, _, err = self.run_it("snapshot", *words)
            self.assertEqual((code, err), (0, ""))
        # The daemon disconnects between the two answers.
        self.answer_overview(None)
        self.check(["snapshot"], 7, "the daemon closed the connection")

    def test_overview_of_nobody(self):
        self.daemon.replies["Overview"] = [error("io.stackd.NoData", what="filter", message="no")]
        self.check(["snapshot", "-p", "1"], 4, "no")

    def test_by(self):
        grouped = row(key="/system.slice/db\x1b.service", state="mixed")
        del grouped["kernel"], grouped["user"]
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([grouped])}]
        _, out, _ = self.run_it("snapshot", "offcpu", "--by", "cgroup")
        self.assertRegex(out, r"(?m)^/system.slice/db\\x1b.service +3 s +100 %$")
        self.assertEqual(self.daemon.calls[-1]["parameters"]["by"], "cgroup")
        _, out, _ = self.run_it("snapshot", "offcpu", "-f", "--by", "cgroup")
        self.assertEqual(out, "/system.slice/db\\x1b.service 3000000\n")

    # Exit codes

    def test_errors(self):
        for name, code in (("io.stackd.NoData", 4), ("io.stackd.UnknownProbe", 1),
                           ("io.stackd.InvalidFilter", 1), ("io.stackd.InvalidTime", 1),
                           ("io.stackd.NotSupported", 6), ("io.stackd.AttachFailed", 6),
                           ("io.example.Unheard", 7)):
            self.daemon.replies["Snapshot"] = [error(
                name, what="w", probe="w", field="w", message="because of \x1b[31m")]
            self.check(["snapshot", "offcpu"], code, name if code == 7 else "because of \\x1b")
        self.daemon.replies["Snapshot"] = [error("org.varlink.service.InvalidParameter",
                                                 parameter="filter.unit")]
        self.check(["snapshot", "offcpu"], 1, "filter.unit")
        self.daemon.replies["Snapshot"] = [error("org.varlink.service.PermissionDenied")]
        self.check(["snapshot", "offcpu"], 3, grp.getgrgid(os.stat(self.socket).st_gid).gr_name)

    def test_strict(self):
        self.assertEqual(self.run_it("snapshot", "offcpu", "--strict")[0], 0)
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([row()], complete=False)}]
        self.assertEqual(self.run_it("snapshot", "offcpu")[0], 0)
        code, out, err = self.run_it("snapshot", "offcpu", "--strict")
        self.assertEqual(code, 5)
        self.assertIn("db (pid 4242)", out)
        self.assertIn("3 lost", err)

    def test_no_daemon(self):
        self.check(["-S", self.socket + "x", "status"], 2, "systemctl start stackd")
        plain = self.directory.name + "/plain"
        open(plain, "w").close()
        self.check(["status", "-S", plain], 2, plain)
        self.check(["-S", "/" + "x" * 200], 1, "too long")
        self.check(["-S", ""], 1, "empty")

    @unittest.skipIf(os.getuid() != 0, "needs root to become somebody else")
    def test_refused(self):
        os.chmod(self.directory.name, 0o755)
        os.chmod(self.socket, 0o660)
        done = subprocess.run([STACKCTL, "-S", self.socket], stderr=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, user=65534, group=65534,
                              extra_groups=[], text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("group root", done.stderr)

    def test_broken_daemon(self):
        for reply in (None, b"\0", b"{}", b"nonsense\0", b'{"parameters":{"rows":3}}\0',
                      b'{"parameters":{}}\0', b"x" * (1 << 21)):
            self.daemon.replies["Snapshot"] = [reply, None]
            code, out, err = self.run_it("snapshot", "offcpu")
            self.assertEqual((code, out), (7, ""), reply)
            self.assertIn(self.socket, err)

    def test_usage(self):
        for words in (["nonsense"], ["snapshot", "offcpu", "--nonsense"], ["status", "-p1"],
                      ["snapshot", "offcpu", "extra"], ["snapshot", "offcpu", "--window", "0"],
                      ["snapshot", "offcpu", "--since", "+1h"], ["help", "nonsense"],
                      ["stuck", "--sort", "max"], ["--nonsense"], ["-p"]):
            calls = len(self.daemon.calls)
            code, out, err = self.run_it(*words)
            self.assertEqual((code, out, err.count("\n")), (1, "", 1), words)
            self.assertEqual(len(self.daemon.calls), calls)

    # Output

    def test_full_and_closed(self):
        for words in (["snapshot", "offcpu"], ["status"], ["help"], ["--version"],
                      ["snapshot", "offcpu", "--json"], ["stuck", "-f"]):
            with open("/dev/full", "w") as full:
                code, _, err = self.run_it(*words, stdout=full)
            self.assertEqual(code, 7, words)
            self.assertIn("No space left", err)
            reader, writer = os.pipe()
            os.close(reader)
            code, _, err = self.run_it(*words, stdout=writer)
            os.close(writer)
            self.assertEqual((code, err), (7, ""), words)

    def test_output_file(self):
        path = self.directory.name + "/out.folded"
        os.symlink(path, path + ".link")
        self.check(["stuck", "--output", path + ".link"], 7, "is a symbolic link")
        open(path, "w").close()
        code, out, err = self.run_it("snapshot", "offcpu", "-f", "--output", path + ".link")
        # Nothing is printed, as cron would send it by mail each time.
        self.assertEqual((code, out, err), (0, "", ""))
        self.assertTrue(os.path.islink(path + ".link"))
        with open(path) as file:
            before = file.read()
        self.assertTrue(before.endswith("3000000\n"))
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o666 & ~mask)
        # A failed call leaves the file as it was, and no temporary file.
        self.daemon.replies["Snapshot"] = [error("io.stackd.NoData", what="range", message="m")]
        self.assertEqual(self.run_it("snapshot", "offcpu", "--output", path)[0], 4)
        with open(path) as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(sorted(os.listdir(self.directory.name)),
                         ["out.folded", "out.folded.link", "sock"])

    def test_output_directory(self):
        directory = self.directory.name + "/d/"
        self.assertEqual(self.run_it("stuck", "--output", directory)[0], 7)
        os.mkdir(directory)
        self.assertEqual(self.run_it("stuck", "--json", "--output", directory)[0], 0)
        (name,) = os.listdir(directory)
        self.assertRegex(name, r"^stuck-\d{8}T\d{6}\.\d{3}Z\.json$")
        with open(directory + name) as file:
            self.assertEqual(json.load(file)["probe"], "offcpu")
        self.check(["stuck", "--output", directory[:-1]], 1, "is a directory")

    def test_output_device(self):
        self.check(["stuck", "--output", "/dev/full"], 7, "No space left")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
        self.assertEqual(self.run_it("stuck", "--output", "/dev/null")[0], 0)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def terminal(self, columns, env, *words, stderr=subprocess.PIPE):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([STACKCTL, *words], stdout=slave, stderr=stderr,
                                   env={**os.environ, "STACKD_SOCKET": self.socket,
                                        "TERM": "xterm", **env})
        os.close(slave)
        out = b""
        while select.select([master], [], [], 10)[0]:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            out += data
        process.communicate(timeout=10)
        os.close(master)
        return out.decode()

    def test_terminal(self):
        environment = {"NO_COLOR": "1"}
        for columns in (40, 80, 200):
            for words in (("snapshot", "offcpu"), ("stuck",), ("status",)):
                out = self.terminal(columns, environment, *words)
                self.assertGreater(len(out), 100)
                self.assertLessEqual(max(map(len, out.split("\r\n"))), columns)
                self.assertNotIn("\x1b", out)
        self.assertIn("\x1b[1m", self.terminal(80, {"NO_COLOR": ""}, "stuck"))
        # If standard error is a terminal, the name of the file is printed there.
        path = self.directory.name + "/written"
        out = self.terminal(200, {}, "stuck", "--output", path, stderr=subprocess.STDOUT)
        self.assertIn(f"wrote {path}", out)
        # Without a terminal there are no colours, and names are whole.
        out = self.run_it("stuck", env={"TERM": "xterm", "NO_COLOR": ""})[1]
        self.assertNotIn("\x1b", out)
        self.assertIn("N" * 200, out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
