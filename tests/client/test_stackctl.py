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
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time as clock
import unicodedata
import unittest
import fcntl

import double
from double import error, time

STACKCTL = sys.argv[1]
os.environ["SYSTEMD_PAGER"] = ""
for name in ("SUDO_UID", "LESSSECURE"):  # with the first, which sudo sets, less is the only pager
    os.environ.pop(name, None)
T0 = 1772334610 * 10**9
FORMATS = ("text", "folded", "json", "csv", "speedscope", "pprof", "svg")


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


def columns_of(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in line)


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

    def run_it(self, *words, env=None, stdout=subprocess.PIPE, shell=None):
        environment = {**os.environ, "STACKD_SOCKET": self.socket, "TZ": "UTC", **(env or {})}
        before = ["sh", "-c", shell, "sh"] if shell else []
        done = subprocess.run([*before, STACKCTL, *words], stdout=stdout, stderr=subprocess.PIPE,
                              env=environment, timeout=double.HANG)
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
            "snapshot", "offcpu", "-p", "1,2", "-uK", "-m100", "-M", "5ms", "--state", "D,2", "--reason", "flock,tcp",
            "--comm", "my*", "--cgroup", "/a", "--unit", "x.service", "--window", "1min", "--sort",
            "max", "--by", "thread", "-n7", "--reverse")
        self.assertEqual((code, err), (0, ""))
        call = self.daemon.calls[-1]
        self.assertEqual(call["method"], "io.stackd.Snapshot")
        self.assertTrue(call["more"])
        self.assertEqual(self.asked(), {
            "probe": "offcpu", "window_ns": 60 * 10**9, "by": "thread", "sort": "max",
            "reverse": True, "top": 7,
            "filter": {"pids": [1, 2], "user_threads": True, "kernel_stacks": True,
                       "min_block_ns": 100000, "max_block_ns": 5000000, "states": ["D", "2"],
                       "reasons": ["flock", "tcp"],
                       "comm": "my*", "cgroup": "/a", "unit": "x.service"}})

    def test_request_with_lists(self):
        code, _, err = self.run_it(
            "snapshot", "offcpu", "--comm", "a*", "--comm", "b", "--unit", "x", "--unit", "y", "--cgroup", "/c",
            "--cgroup", "/d", "--not-pid", "1,2", "--not-comm", "c", "--not-unit", "z", "--not-cgroup", "/e",
            "--not-state", "D", "--not-reason", "tcp,flock", "--function", "f(int, int)", "--function", "g*",
            "--not-function", "h", "--callers", "f*")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.asked()["filter"], {
            "comms": ["a*", "b"], "units": ["x", "y"], "cgroups": ["/c", "/d"], "not_pids": [1, 2],
            "not_comms": ["c"], "not_units": ["z"], "not_cgroups": ["/e"], "not_states": ["D"],
            "not_reasons": ["tcp", "flock"], "functions": ["f(int, int)", "g*"], "not_functions": ["h"],
            "callers": ["f*"]})
        self.run_it("stuck", "--not-comm", "a", "--function", "f")
        self.assertEqual(self.asked()["filter"], {"not_comms": ["a"], "functions": ["f"]})
        # A session takes no exceptions, so neither start nor snoop has options for them.
        for verb in (["start", "offcpu"], ["snoop", "f"]):
            self.check([*verb, "--not-comm", "a"], 1, f"{verb[0]} takes no --not-comm")
        self.check(["record", "iolat", "--duration", "1s", "--function", "f"], 1,
                   "--function: iolat has rows of operations")
        self.check(["record", "offcpu", "--duration", "1s", "--not-reason", "flok"], 1, "did you mean flock?")
        self.check(["snapshot", "offcpu", "--callers", "a", "--lines"], 1, "--callers and --lines exclude")
        self.check(["snapshot", "offcpu", *(33 * ["--not-comm", "a"])], 1, "more than 32 are too many")

    def test_what_the_filter_keeps(self):
        answer = snapshot([row()])
        answer["totals"]["blocked_ns"] = 10 * 10**9
        answer["totals"]["excluded_ns"] = 2 * 10**9
        self.daemon.replies["Snapshot"] = [{"parameters": answer}]
        out = self.run_it("snapshot", "offcpu", "--not-comm", "a")[1]
        self.assertIn("kept       3 s of 12 s (25 %): the filter leaves out the rest", out)
        del answer["totals"]["excluded_ns"]
        out = self.run_it("snapshot", "offcpu", "--function", "main")[1]
        self.assertIn("kept       3 s of 10 s (30 %)", out)
        self.assertNotIn("kept", self.run_it("snapshot", "offcpu")[1])

    def test_recording_with_exceptions(self):
        session = {"id": "7", "probe": "offcpu", "state": "ended", "since": time(T0), "until": time(T0 + 10**9),
                   "ended": time(T0 + 10**9), "lost": [], "always": False, "owner": "root", "count": 1,
                   "windows": 1}
        self.daemon.replies["Start"] = [{"parameters": {"session": session}}]
        code, _, err = self.run_it("record", "offcpu", "--duration", "1s", "--comm", "a", "--comm", "b", "--unit", "u",
                                   "--not-comm", "c", "--function", "f", "--reason", "tcp")
        self.assertEqual((code, err), (0, ""))
        start, answer = self.daemon.calls[-2:]
        self.assertEqual(start["method"], "io.stackd.Start")
        self.assertEqual(start["parameters"]["filter"], {"unit": "u"})
        self.assertEqual(answer["parameters"]["filter"],
                         {"comms": ["a", "b"], "not_comms": ["c"], "functions": ["f"], "reasons": ["tcp"]})

    def test_recording_of_several_names(self):
        """What only an answer could pick is not left out in silence: the daemon refuses it, by option."""
        refused = "offcpu records one name: start a session for each (an answer can be limited to several)"
        for words in (["start", "offcpu"], ["snoop", "vfs_read"]):
            for option, member in (("--comm", "comms"), ("--cgroup", "cgroups"), ("--unit", "units")):
                self.daemon.replies["Start"] = [error("io.stackd.InvalidFilter", field=member, message=refused)]
                self.check([*words, option, "/a", option, "/b"], 1, f"stackctl: {option}: {refused}\n")
                self.assertEqual(self.asked()["filter"], {member: ["/a", "/b"]})

    def test_watch_asks_as_snapshot_does(self):
        self.daemon.replies["Follow"] = [None]
        common = {"by", "sort", "top", "idle", "addresses", "fold_own", "groups", "filter"}
        for words in ([], ["--json"], ["-v"], ["-s", "--idle"], ["--by", "process", "--sort", "max", "-n3", "-p1"]):
            asked = []
            for verb in ("snapshot", "watch"):
                self.run_it(verb, "oncpu", *words)
                asked.append({name: value for name, value in self.asked().items() if name in common})
            self.assertEqual(asked[0], asked[1], words)

    def test_rows_asked_for(self):
        for words, top, idle in ((["snapshot", "offcpu"], 20, None),
                                 (["snapshot", "offcpu", "-u"], 20, None),
                                 (["snapshot", "offcpu", "--idle"], 20, True),
                                 (["snapshot", "offcpu", "-t1", "--no-idle"], 20, False),
                                 (["snapshot", "offcpu", "-t1"], 20, None),
                                 (["snapshot", "offcpu", "-f", "--no-idle"], 0, False),
                                 (["snapshot", "offcpu", "-f"], 0, True),
                                 (["snapshot", "offcpu", "--json"], 0, True),
                                 (["snapshot", "offcpu", "--json", "-n5"], 5, True),
                                 (["stuck"], 0, None),
                                 (["stuck", "--idle", "-n5"], 0, True)):
            self.assertEqual(self.run_it(*words)[0], 0)
            self.assertEqual((self.asked()["top"], self.asked().get("idle")), (top, idle), words)

    def test_stuck(self):
        self.run_it("stuck")
        self.assertEqual([self.asked()[name] for name in ("probe", "open", "by", "sort")],
                         ["offcpu", True, "thread", "max"])

    def test_a_holder_behind_a_long_path(self):
        """On a terminal, the path of 4 KiB takes a line; elsewhere it is whole."""
        path = "/run/\n\u202e" + "d" * 4080 + "/the-lock"
        holder = {"pid": 8, "tid": 8, "comm": "holder", "reason": None, "object": None, "for_ns": 0}
        held = row(tid=7, open=1, count=0, reason="flock", object=path, holders=[holder])
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([held])}]
        for columns in (40, 80, 400):
            for words in ([], ["--stacks"]):
                out = self.terminal(columns, {"NO_COLOR": "1"}, "stuck", *words)
                self.assertLessEqual(max(map(len, out.split("\r\n"))), columns)
                if columns > 40 or words:
                    self.assertIn("holder", out, (columns, words))
                self.assertLess(out.count("\n"), 20)
        self.assertIn("the-lock", out)
        out = self.run_it("stuck", "--stacks")[1]
        self.assertIn("/run/\\n\\u202e" + "d" * 4080 + "/the-lock", re.sub(r"\n +(?=d)", "", out))

    def test_stuck_by(self):
        rows = [row(key="mutex", open=37, max_ns=41 * 10**9, max_comm="w\x1b", max_tid=4250, kernel=None, user=None,
                    reason="mutex"),
                row(key="tcp", open=2, max_ns=10**9, max_comm="x", max_tid=7, kernel=None, user=None)]
        self.daemon.replies["Snapshot"] = [{"parameters": {**snapshot(rows), "rest": {"rows": 3, "total_ns": 1}}}]
        code, out, err = self.run_it("stuck", "--by", "reason", "-n2")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual([self.asked()[name] for name in ("probe", "open", "by", "sort", "top")],
                         ["offcpu", True, "reason", "max", 2])
        self.assertIn("waiting    39 threads in these rows", out)
        self.assertRegex(out, r"41.0s +37 +mutex +a mutex of the program.* +w\\x1b\(4250\)")
        self.assertIn("3 more: -n 0 shows all", out)
        for by in ("process", "comm", "unit", "container", "cgroup", "user", "module", "function"):
            self.assertEqual(self.run_it("stuck", "--by", by)[0], 0)
            self.assertEqual((self.asked()["by"], self.asked()["top"]), (by, 20))
        self.check(["stuck", "--by", "thread"], 1, "one of process|comm")
        self.check(["snapshot", "offcpu", "--fail"], 1, "snapshot takes no --fail")

    def test_stuck_fail(self):
        idle = row(tid=1, idle=True, open=1)
        for words in ([], ["--json"], ["--by", "process"], ["-f"], ["-m", "30s", "-n", "1"]):
            self.daemon.replies["Snapshot"] = [{"parameters": snapshot([row(tid=1, open=1)])}]
            code, out, err = self.run_it("stuck", "--fail", *words)
            self.assertEqual((code, err), (9, ""), words)
            self.assertNotEqual(out, "")
            self.assertEqual((self.asked()["idle"], self.asked()["top"]), (False, 0))
            self.assertEqual(self.run_it("stuck", *words)[0], 0)
            nobody = snapshot([])
            nobody["shown"]["rows"] = 0
            nobody["idle"] = {"rows": 5, "threads": 5, "total_ns": 1}
            self.daemon.replies["Snapshot"] = [{"parameters": nobody}]
            self.assertEqual(self.run_it("stuck", "--fail", *words)[0], 0, words)
            # The row is not sent, but there is one.
            nobody["rest"] = {"rows": 1, "total_ns": 1}
            self.assertEqual(self.run_it("stuck", "--fail", *words)[0], 9, words)
            # A wait that may be over is none.
            doubt = snapshot([row(tid=1, open=1, unseen=1)])
            self.daemon.replies["Snapshot"] = [{"parameters": doubt}]
            self.assertEqual(self.run_it("stuck", "--fail", *words)[0], 0, words)
        self.check(["stuck", "--fail", "--json", "-n", "1"], 1, "--fail has to see all rows: without --top")
        self.check(["stuck", "--by", "reason", "-U"], 1, "it does not go with --user-stacks")
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([idle])}]
        self.assertEqual(self.run_it("stuck", "--fail", "--idle")[0], 9)
        self.assertEqual(self.asked()["idle"], True)
        # What went wrong is told apart from what was found.
        self.daemon.replies["Snapshot"] = [error("io.stackd.NoData", what="filter", message="nobody")]
        self.assertEqual(self.run_it("stuck", "--fail", "-p1")[0], 4)
        partial = snapshot([], complete=False)
        partial["shown"]["rows"] = 0
        self.daemon.replies["Snapshot"] = [{"parameters": partial}]
        self.assertEqual(self.run_it("stuck", "--fail", "--strict")[0], 5)

    def test_messages_name_what_was_meant(self):
        def unknown(asked):
            return [error("io.stackd.UnknownSession", session=asked["session"],
                          message=f"no session {asked['session']}: stackctl sessions lists them")]
        self.daemon.replies["Snapshot"] = unknown
        for word, hint in (("ofcpu", "did you mean the probe offcpu?"), ("off-cpu", "did you mean the probe offcpu?"),
                           ("cpu", "did you mean the probe oncpu?"), ("4242", "a process is: stackctl snapshot offcpu -p 4242"),
                           ("nightly", "stackctl help lists the probes")):
            self.check(["snapshot", word], 1, hint)
        self.daemon.replies["Stop"] = [error("io.stackd.UnknownSession", session="7",
                                             message="session 7 has ended already")]
        self.assertEqual(self.run_it("stop", "7")[2], "stackctl: session 7 has ended already\n")
        for option in ("--breakdown", "--over-time", "--queued", "--milliseconds"):
            self.check(["snapshot", "offcpu", option], 1, f"{option} shows answers of the probe iolat, not of offcpu")
            self.check(["snapshot", option], 1, f"as in: stackctl snapshot iolat {option}")
        self.check(["watch", "iolat", "--chain"], 1, "--chain shows answers of the probe offwake, not of iolat")
        self.check(["snapshot", "--chain"], 1, "as in: stackctl snapshot offwake --chain")
        self.check(["snapshot", "offcpu", "--since", "10min"], 1, "a length of time, not a time; did you mean -10min?")
        self.check(["snapshot", "offcpu", "--st", "S"], 1, "several options: --state, --strict, --stacks")
        self.check(["probes", "-r"], 1, "--regexp is about the PATTERN of --functions")
        missing = self.directory.name + "/none/"
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([row()])}]
        self.check(["snapshot", "offcpu", "--output", missing], 7, f"--output {missing}: there is no such directory")

    def test_words_that_are_no_verbs(self):
        for word, hint in (("list", "stackctl sessions, windows or probes"), ("hung", "stackctl stuck"),
                           ("locks", "stackctl stuck"), ("ps", "snapshot oncpu --by process"),
                           ("offcpu", "offcpu is a probe, not a verb, as in: stackctl snapshot offcpu"),
                           ("stackcount2", "did you mean stackcount?"), ("4242", "stackctl snapshot offcpu -p 4242"),
                           ("tpo", "did you mean top?"), ("bogus", "stackctl --help lists them")):
            self.check([word], 1, hint)
            self.check(["help", word], 1, hint)
        self.check(["watch", "stuck"], 1, "stackctl top shows the overview and who is stuck")
        self.check(["watch", "snapshot"], 1, "as in: stackctl watch offcpu")
        # Calls have no length and no state.
        for option in (["-m", "5"], ["-M", "5"], ["--state", "S"]):
            self.check(["snoop", "f", *option], 1, "snoop takes no --")
        self.assertEqual(self.daemon.calls, [])

    def test_one_name_for_a_length(self):
        for words in (["snapshot", "offcpu"], ["stuck"], ["snapshot"]):
            self.run_it(*words, "--for", "5min")
            with_for = self.asked()
            self.run_it(*words, "--window", "5min")
            self.assertEqual(self.asked(), with_for)
        for verb in ("snapshot", "stuck", "windows", "record", "start", "snoop"):
            text = self.run_it("help", verb)[1]
            self.assertIsNone(re.search(r"--for D +the same as", text), verb)
            self.assertRegex(text, r"--(window|duration) D +the same as --for", verb)

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

    def test_ranges_are_one_call(self):
        """Each answer is printed by itself, in the order of the options. Ranges without data are no
        error unless all are."""
        words = ["snapshot", "offcpu", "--range", "@1000..@2000", "--range", "@100.."]
        two = snapshot([row(comm="a"), row(comm="b")])
        two["shown"]["rows"] = 2
        none = {**snapshot([]), "missing": "no window in the range"}
        none["coverage"] = {**none["coverage"], "windows": 0, "covered_ns": 0, "complete": False}
        none["shown"] = none["rest"]
        first = [{**two, "rows": two["rows"][:1]}, {**two, "rows": two["rows"][1:]}]
        self.daemon.replies["Snapshot"] = [{"parameters": reply, "continues": i < 2}
                                           for i, reply in enumerate(first + [none])]
        code, out, _ = self.run_it(*words, "--json")
        self.assertEqual(code, 0)
        self.assertEqual([[r["comm"] for r in answer["rows"]] for answer in json.loads(out)],
                         [["a", "b"], []])
        self.assertEqual(self.asked()["ranges"], [{"since_ns": 1000 * 10**9, "until_ns": 2000 * 10**9},
                                                  {"since_ns": 100 * 10**9}])
        code, out, err = self.run_it(*words)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(len(re.findall(r"(?m)^time ", out)), 2)
        self.assertEqual(len(re.findall(r"\n\ntime ", out)), 1, out)
        self.assertLess(out.index("db(4242)/b"), out.index("no data    no window in the range"))
        self.assertEqual(self.run_it(*words, "--strict")[0], 5)
        self.daemon.replies["Snapshot"] = [{"parameters": none, "continues": True}, {"parameters": none}]
        for format in (["--json"], []):
            code, out, err = self.run_it(*words, *format)
            self.assertEqual((code, err), (4, "stackctl: no data in any of the 2 ranges\n"))
            self.assertTrue(out)
        # A connection that breaks leaves no file.
        self.daemon.replies["Snapshot"] = [{"parameters": two, "continues": True}, None]
        path = self.directory.name + "/ranges.txt"
        self.assertEqual(self.run_it(*words, "--output", path)[0], 7)
        self.assertEqual(os.listdir(self.directory.name), ["sock"])

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
                self.assertEqual(client.wait(timeout=double.HANG), 0)
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
        end = clock.monotonic() + double.HANG
        while len(taken) < self.LARGE and clock.monotonic() < end:
            clock.sleep(0.05)
        self.assertEqual(len(taken), self.LARGE)
        out, _ = client.communicate(timeout=double.HANG)
        self.assertEqual(client.returncode, 0)
        self.assertEqual(len(json.loads(out)["rows"]), self.LARGE * len(rows))

    def test_a_reader_that_goes_away(self):
        """The call ends when the program that reads the output has exited."""
        _, taken = self.large()
        self.LARGE = 100000
        client = self.start("snapshot", "offcpu", "--json", stdout=subprocess.PIPE)
        self.assertTrue(client.stdout.read(1000))
        client.stdout.close()
        self.assertEqual(client.wait(timeout=double.HANG), 7)
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

    def test_fleet(self):
        """An answer of a fleet has no hint to what its gateway refuses, and no figure that is not known."""
        refused = r"stackctl (stuck|probes|record)|record (PROBE|offcpu)|iolat"
        fleet = {"fleet": {"hosts": 2}}
        off = {"name": "oncpu", "state": "off", "blind": [], "programs": []}
        for words in ([], ["-v"]):
            self.daemon.replies["Status"] = [{"parameters": {**status(), "probes": [off]}}]
            _, own, _ = self.run_it("status", *words)
            self.daemon.replies["Status"] = [{"parameters": {**status(), "probes": [off], **fleet}}]
            _, out, _ = self.run_it("status", *words)
            self.assertNotRegex(out, refused)
            self.assertRegex(out, "^fleet +healthy, 2 hosts")
            self.assertTrue(words or re.search(refused, own), own)
        waits = {**snapshot([row(estimated=True, sampled=1, sampled_ns=10**9)]), "sample_below_ns": 10**9}
        self.daemon.replies["Snapshot"] = [{"parameters": waits}]
        _, own, _ = self.run_it("snapshot", "offcpu", "-p", "1")
        self.daemon.replies["Snapshot"] = [{"parameters": {**waits, **fleet}}]
        _, out, _ = self.run_it("snapshot", "offcpu", "-p", "1")
        self.assertRegex(own, refused)
        self.assertNotRegex(out, refused)
        self.assertIn("totals     runnable 0ns, blocked 3.00s\n", out)
        self.assertNotIn("CPUs", out)
        self.daemon.replies["Snapshot"] = [{"parameters": {**waits, **fleet, "parts": []}}]
        _, out, err = self.run_it("snapshot", "offcpu", "-p", "1", "--each", "10s")
        self.assertRegex(out, r"(?m)^\d\d:\d\d:\d\d +\? ", err)

    def test_default_is_status(self):
        code, out, err = self.run_it()
        self.assertEqual(code, 0)
        self.assertTrue(out.startswith("stackd     healthy\n"))
        self.assertIn("stackctl stuck", err)

    def test_check(self):
        self.assertEqual(self.run_it("status", "--check"),
                         (0, "OK: all probes are off, so that nothing is recorded; 3 windows, 0 lost, "
                             "0 limits reached\n", ""))
        # A loss of long ago is counted, but is no problem.
        self.daemon.replies["Status"] = [{"parameters": status(lost=9)}]
        code, out, _ = self.run_it("status", "--check")
        self.assertEqual((code, out.split(":")[0]), (0, "OK"))
        self.assertIn("9 lost", out)
        self.daemon.replies["Status"] = [{"parameters": status(healthy=False)}]
        code, out, _ = self.run_it("status", "--check")
        self.assertEqual((code, out.count("\n")), (1, 1))
        self.assertIn("the drain is late", out)

    def test_status_of_a_process(self):
        known = {"settled": False, "comm": "a\nb", "files": 7, "awaited": ["2 files wait to be read", "more"],
                 "lacks": []}
        for changed, line in (
                ({}, "not settled: 2 files wait to be read, more\n"),
                ({"settled": True, "awaited": []}, "settled: 7 files, all with unwind rows\n"),
                ({"settled": True, "awaited": [], "files": 0}, "settled: 0 files\n"),
                ({"settled": True, "awaited": [], "lacks": ["x", "y"]}, "settled: 7 files\n  lacks: x; y\n")):
            self.daemon.replies["Settled"] = [{"parameters": {**known, **changed}}]
            code, out, err = self.run_it("status", "-p", "42")
            self.assertEqual((code, out, err), (0, f"a\\nb (42): {line}", ""))
            self.assertEqual(self.asked(), {"pid": 42})
        self.assertEqual(json.loads(self.run_it("status", "-p", "42", "--json")[1])["lacks"], ["x", "y"])
        for words in (["-p", "1,2"], ["-p", "1", "--check"], ["-p", "1", "-v"]):
            self.assertEqual(self.run_it("status", *words)[:2], (1, ""), words)

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
        code, out, err = self.run_it("snapshot", "--stacks", "-p", "4242")
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
        self.check(["record", "oncpu"], 1, "record needs --for")
        # What only the output needs is refused before anything is recorded.
        wrong = (
            (["oncpu", "--reason", "flock"], "oncpu has no waits that have a reason"),
            (["oncpu", "--by", "reason"], "--by reason: oncpu has no waits that have a reason"),
            (["oncpu", "--not-state", "S"], "--not-state: oncpu has no waits that have a state"),
            (["oncpu", "--not-reason", "flock"], "--not-reason: oncpu has no waits that have a reason"),
            (["offcpu", "--reason", "tcp,flok"], "flok is no reason to wait for; did you mean flock"),
            (["offcpu", "--not-reason", "disk-write"], "--not-reason: disk-write is called writeback now"),
        )
        for words, message in wrong:
            self.check(["record", *words, "--duration", "1s"], 1, message)

    def test_busy(self):
        """The exit code is one of its own. What was recorded can still be asked for."""
        busy = error("io.stackd.Busy", setting="query.max_answers", message="stackd is busy")
        self.daemon.replies["Snapshot"] = [busy]
        for words in (["snapshot", "offcpu"], ["stuck"], ["snapshot", "offcpu", "--json"],
                      ["snapshot", "offcpu", "--range", "-5min.."]):
            self.assertEqual(self.run_it(*words), (8, "", "stackctl: stackd is busy\n"))
        session = {"id": "100", "probe": "oncpu", "owner": "root", "since": time(T0),
                   "ended": time(T0 + 10**9), "always": False, "count": 1, "lost": []}
        self.daemon.replies["Start"] = [{"parameters": {"session": session, "calls": []}}]
        code, out, err = self.run_it("record", "oncpu", "--duration", "1s")
        self.assertEqual((code, out), (8, ""))
        self.assertIn("kept for a while: stackctl snapshot 100", err)

    def test_losses_of_old_tools(self):
        """Their layouts have no place for what was lost: it is on standard error, and nothing is if all is there."""
        session = {"id": "100", "probe": "offcpu", "owner": "root", "since": time(T0),
                   "ended": time(T0 + 10**9), "always": False, "count": 1, "lost": []}
        self.daemon.replies["Start"] = [{"parameters": {"session": session, "calls": []}}]
        answer = snapshot([row()])
        outs = []
        for lost, gaps, wanted in (([], [], ""), (
                [{"reason": "waits", "count": 4}], [{"start": time(T0), "end": time(T0 + 10**6), "reason": "no\x1b"}],
                r"stackctl: gap .*: no\\x1b\nstackctl: lost 4: waits\n")):
            answer["lost"], answer["coverage"]["gaps"] = lost, gaps
            self.daemon.replies["Snapshot"] = [{"parameters": answer}]
            code, out, err = self.run_it("offcputime", "1")
            outs.append(out)
            self.assertEqual(code, 0)
            self.assertRegex(err, rf"^{wanted}$")
        self.assertEqual(outs[0], outs[1])

    def test_watch_of_silence(self):
        """A daemon that hangs is told from one that has nothing to say, and Ctrl-C ends either."""
        is_over = threading.Event()
        answer = {"parameters": snapshot([row()]), "continues": True}

        def silent(parameters):
            yield answer
            is_over.wait(60)

        self.daemon.replies["Follow"] = silent
        for has_info in (True, False):
            watch = subprocess.Popen([STACKCTL, "-S", self.socket, "watch", "offcpu", "-i", "500ms"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertIn("time ", watch.stdout.readline())
            # The stand-in answers one call at a time: this one answers what the other does not.
            other = None
            if has_info:
                os.rename(self.socket, self.socket + "-old")
                other = double.Double(self.socket)
                other.replies["GetInfo"] = [{"parameters": {}}]
            said = watch.stderr.readline()
            watch.send_signal(signal.SIGINT)
            self.assertEqual(watch.wait(30), 0)
            watch.communicate()
            self.assertIn("the daemon is there" if has_info else "has not answered for 10 s, nor another call", said)
            if other:
                other.close()
                os.rename(self.socket + "-old", self.socket)
            is_over.set()
            is_over.clear()

    def test_a_signal_ends_any_call(self):
        """A daemon that takes the call and never answers, in Start as in any other, holds nobody."""
        path = self.directory.name + "/silent"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
            silent.bind(path)
            silent.listen(64)
            started = [(words, number, subprocess.Popen(
                            [STACKCTL, words[0], "-S", path, *words[1:]], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)))
                       for words in (["start", "offcpu"], ["record", "offcpu", "--for", "1h"], ["snoop", "f"],
                                     ["stop", "7"], ["watch", "offcpu"], ["snapshot"], ["status"])
                       for number in (signal.SIGINT, signal.SIGTERM)]
            for _ in started:
                asked = silent.accept()[0]
                while not asked.recv(65536).endswith(b"\0"):
                    pass
                self.addCleanup(asked.close)
            for words, number, client in started:
                client.send_signal(number)
                code = client.wait(60)
                self.assertIn(code, (0, 4) if words[0] in ("record", "snoop", "watch") else (-number,), words)
                client.communicate()

    def test_a_signal_ends_a_recording_before_its_answer(self):
        """The daemon may see the end of a connection after the next call: the client stops the session first."""
        is_over = threading.Event()
        session = {"id": "100", "probe": "offcpu", "owner": "root", "since": time(T0), "always": False, "count": 1,
                   "lost": []}

        def streaming(parameters):
            yield {"parameters": {"session": session, "calls": []}, "continues": True}
            is_over.wait(60)

        self.daemon.replies["Start"] = streaming
        self.daemon.replies["Stop"] = [error("io.stackd.UnknownSession", session="100", message="has ended already")]
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([row()])}]
        tool = subprocess.Popen([STACKCTL, "-S", self.socket, "offcputime"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        self.assertIn("Tracing off-CPU time", tool.stdout.readline())
        tool.send_signal(signal.SIGINT)
        is_over.set()
        out, err = tool.communicate(timeout=double.HANG)
        self.assertEqual((tool.returncode, err), (0, ""))
        self.assertIn("db", out)
        methods = [call["method"].rpartition(".")[2] for call in self.daemon.calls[-3:]]
        self.assertEqual(methods, ["Start", "Stop", "Snapshot"])
        self.assertEqual([call["parameters"].get("session") for call in self.daemon.calls[-2:]], ["100", "100"])

    def test_a_signal_ends_a_blocked_write(self):
        answer = snapshot([row() for _ in range(100)])
        answer["shown"]["rows"] = 100
        self.daemon.replies["Follow"] = lambda _: ({"parameters": answer, "continues": True} for _ in range(100))
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        watch = subprocess.Popen([STACKCTL, "-S", self.socket, "watch", "offcpu", "--json"], stdout=writer)
        os.close(writer)
        try:
            while struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"1234"))[0] < 4096:
                self.assertIsNone(watch.poll())
                clock.sleep(0.01)
            watch.terminate()
            self.assertEqual(watch.wait(60), -signal.SIGTERM)
        finally:
            watch.kill()
            watch.wait()
            os.close(reader)

    def test_errors_name_the_option(self):
        self.daemon.replies["Follow"] = [error("io.stackd.InvalidTime", field="interval_ns",
                                               message="an answer every 1 ms: from 500 ms")]
        self.check(["watch", "offcpu", "-i", "1ms"], 1, "--interval: an answer every 1 ms")
        self.check(["snapshot", "--each", "5s"], 1, "stackctl snapshot offcpu --each 10s")
        self.check(["snapshot", "--range", "-5min.."], 1, "stackctl snapshot offcpu --range -5min..")
        self.daemon.replies["Snapshot"] = [error("io.stackd.InvalidTime", field="ranges",
                                                 message="300 ranges; one call may have at most 256")]
        self.check(["snapshot", "offcpu", "--range", "-5min.."], 1, "--range: 300 ranges")

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
        self.assertNotIn("program", out)
        self.assertEqual([line for line in out.splitlines() if line != line.rstrip()], [])
        call["exec"] = {"path": "/bin/ls", "arguments": ["ls", "", "a b", "\x1b", "x$"], "arguments_more": 1234,
                        "parent": 7, "parent_comm": "b\nash"}
        self.daemon.replies["Start"] = [
            {"parameters": {"session": {**session, "count": 1}, "calls": [call]}}]
        self.assertIn("      program   /bin/ls\n"
                      "      arguments ls '' 'a b' \\x1b 'x$'... 1,234 bytes more\n"
                      "      parent    b\\nash (pid 7)\n", self.run_it("snoop", "f")[1])

    def test_overview_of_lost_samples(self):
        self.answer_overview({"parameters": snapshot([row()], complete=False, probe="oncpu")})
        code, out, err = self.run_it("snapshot", "--stacks")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("\nlost       samples: 3: stacks\n", out)
        self.assertIn("\nlost       nothing\nsamples    lost, stacks: 3\n", self.run_it("snapshot", "-v")[1])
        self.check(["snapshot", "--strict"], 5, "not complete: samples: 30 s of 30 s covered, "
                                                "0 gaps, 3 lost\n")

    def test_overview_without_samples(self):
        why = "the probe oncpu is off, and no window of it"
        self.answer_overview(why)
        self.assertIn(f"\non CPU     no samples: {why}\n", self.run_it("snapshot")[1])
        code, out, err = self.run_it("snapshot", "--stacks")
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
        _, out, _ = self.run_it("snapshot", "offcpu", "--by", "cgroup", "--stacks")
        self.assertRegex(out, r"(?m)^/system.slice/db\\x1b.service +3 s +100 %$")
        self.assertEqual(self.daemon.calls[-1]["parameters"]["by"], "cgroup")
        _, out, _ = self.run_it("snapshot", "offcpu", "-f", "--by", "cgroup")
        self.assertEqual(out, "/system.slice/db\\x1b.service 3000000\n")

    def test_reasons_of_a_row(self):
        """A row of a process says for what it waited, with shares of its time, and in full with --stacks."""
        grouped = row(state="mixed", reasons=[
            {"reason": "flock", "total_ns": 2 * 10**9}, {"reason": "pipe\x1b", "total_ns": 980 * 10**6},
            {"reason": "cpu", "total_ns": 20 * 10**6}])
        del grouped["kernel"], grouped["user"]
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([grouped])}]
        _, out, _ = self.run_it("snapshot", "offcpu", "--by", "process")
        self.assertRegex(out, r"(?m) flock 67 %, pipe\\x1b 33 %$")
        _, out, _ = self.run_it("snapshot", "offcpu", "--by", "process", "--stacks")
        self.assertRegex(out, r"(?m)^  for flock 2 s, pipe\\x1b 980 ms, cpu 20 ms$")

    def test_idle_threads_that_were_folded(self):
        """A row that was folded counts once, however many threads it stands for, so there are more."""
        answer = snapshot([row()])
        answer["idle"] = {"rows": 3, "threads": 7, "total_ns": 10**9}
        for folded, text in ((None, "7 idle threads"), ({"rows": 9, "processes": 40, "total_ns": 5, "unlisted": 0},
                                                       r"7\+ idle threads")):
            if folded:
                answer["folded"] = folded
            self.daemon.replies["Snapshot"] = [{"parameters": answer}]
            _, out, _ = self.run_it("snapshot", "offcpu", "--by", "process")
            self.assertRegex(out, rf"(?m)^hidden +{text}, 1\.00s \(--idle\)$")

    def test_idle_threads_whose_number_is_not_known(self):
        """A fleet has the time of idle threads, and not how many they are."""
        answer = snapshot([row()])
        answer["idle"] = {"rows": 3, "total_ns": 10**9}
        self.daemon.replies["Snapshot"] = [{"parameters": answer}]
        _, out, _ = self.run_it("snapshot", "offcpu", "--by", "process")
        self.assertRegex(out, r"(?m)^hidden +idle threads, 1\.00s \(--idle\)$")

    # One line a row

    def lines_on_terminal(self, columns, *words):
        """Returns the lines that stackctl prints on a terminal of that width."""
        pid, master = os.forkpty()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.environ["TERM"] = "dumb"
            os.execv(STACKCTL, [STACKCTL, "-S", self.socket, *words])
        out = b""
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            out += data
        os.close(master)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        return out.decode().replace("\r\n", "\n").splitlines()

    def test_lines(self):
        hostile = "\x1b[31m\u202e\n" + "\u6f22" * 40 + "e\u0301" * 40
        names = ["db", hostile, "x" * 4096]
        rows = [row(comm=name, process={**row()["process"], "comm": name}, reason="flock")
                for name in names]
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot(rows)}]
        for columns in (40, 80, 100, 400):
            lines = self.lines_on_terminal(columns, "snapshot", "offcpu")
            at = next(i for i, line in enumerate(lines) if line.lstrip().startswith("share"))
            wide = [line for line in lines if columns_of(line) > columns]
            self.assertEqual(wide, [])
            table = lines[at + 1:at + 4]
            self.assertTrue(all("100 %" in line for line in table), table)
            self.assertIn("db(4242)", table[0])
            self.assertTrue(lines[at + 4].startswith("rows  "), "one line for each row")
            self.assertEqual("average" in lines[at], columns > 40)
            self.assertEqual("count" in lines[at], columns > 40)
            self.assertIn("S flock", table[0])
        # Elsewhere nothing is shortened, and no name breaks a line.
        _, out, _ = self.run_it("snapshot", "offcpu")
        table = out.split("share")[1].splitlines()[1:4]
        self.assertIn("x" * 4096 + "(4242)", table[2])
        self.assertIn("\\x1b[31m\\u202e\\n", table[1])

    def test_a_screen_is_full_and_no_more(self):
        """On a terminal, answers in lines are as long as the screen, with a head of at most four lines."""
        rows = [row(comm=f"p{i}", process={**row()["process"], "pid": 100 + i, "comm": f"p{i}"}, total_ns=10**9 - i,
                    kernel=None, user=None, function="serve", processes=1) for i in range(40)]
        own = row(own=True, comm="stackd", process={"pid": 0, "start": time(0), "comm": "stackd", "kernel": False,
                                                    "exited": False})
        del own["kernel"], own["user"]
        answer = snapshot([*rows, own])
        answer["notes"] = ["not seen: x", "sampled: x", "budget: x", "windows combined from several"]
        answer["lost"] = []
        answer["coverage"] = {**answer["coverage"], "covered_ns": 30 * 10**9, "gaps": [], "complete": True}
        answer["shown"] = {"rows": 41, "total_ns": 41 * 10**9}
        answer["rest"] = {"rows": 9, "total_ns": 9 * 10**9}
        self.daemon.replies["Snapshot"] = [{"parameters": answer}]
        for words, is_own_last in ((["snapshot", "offcpu"], True), (["stuck"], False)):
            lines = self.terminal(80, {"NO_COLOR": "1"}, *words).rstrip("\r\n").split("\r\n")
            self.assertEqual(len(lines), 23, lines)
            head = next(i for i, line in enumerate(lines) if "process" in line)
            self.assertLessEqual(head, 4, lines)
            self.assertRegex(lines[-1], r"^rows +1[0-9] of (50, .*|41); all: -n 0; stacks: --stacks$")
            self.assertEqual("stackd itself" in lines[-2], is_own_last, lines)
            # All rows that were asked for by their number are there.
            lines = self.terminal(80, {"NO_COLOR": "1"}, *words, "-n", "41").rstrip("\r\n").split("\r\n")
            self.assertGreater(len(lines), 42)
        self.assertEqual(self.asked()["sort"], "max")
        # The daemon reverses the rows: the largest are the last ones.
        self.daemon.replies["Snapshot"] = [{"parameters": {**answer, "rows": [own, *reversed(rows)]}}]
        lines = self.terminal(80, {"NO_COLOR": "1"}, "snapshot", "offcpu", "--reverse").rstrip("\r\n").split("\r\n")
        self.assertIn(" p0(100) ", lines[-2])
        self.assertEqual(len(lines), 23, lines)
        self.terminal(80, {"NO_COLOR": "1"}, "snapshot", "offcpu")
        self.assertEqual((self.asked()["by"], self.asked()["top"]), ("line", 23))
        self.run_it("snapshot", "offcpu", "--json")
        self.assertEqual((self.asked().get("by"), self.asked().get("top")), (None, 0))

    def test_programs_of_several_processes(self):
        """A row that stands for several processes says how many, also where they were folded."""
        process = {**row()["process"], "pid": 0, "comm": "sh"}
        rows = [row(comm="sh", process=process, processes=6280), row(comm="worker-*", process=process, processes=2),
                row(comm="sh", process=process, folded=1), row(comm="db", processes=1),
                row(comm="others", process={**process, "comm": "others"})]
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot(rows)}]
        _, out, _ = self.run_it("snapshot", "offcpu")
        for who in ("sh(x6,280) ", "sh(x2)/worker-* ", "sh(x1) ", "db(4242) ", " others "):
            self.assertIn(who, out)

    def test_the_object_of_several_waits(self):
        """A row of several waits says that object and holder are those of the longest one."""
        held = {"reason": "flock", "object": "/run/lock", "holders": [{"pid": 31040, "comm": "backup-job"}],
                "urgent": True}
        for of, words in (({"count": 0, "open": 1}, ""), ({"count": 1, "open": 1}, "longest "),
                          ({"count": 0, "open": 1, "processes": 9}, "longest ")):
            self.daemon.replies["Snapshot"] = [{"parameters": snapshot([row(**held, **of)])}]
            self.assertIn(f" S flock {words}/run/lock ", self.run_it("snapshot", "offcpu")[1])
            self.answer_screen(["db", "x" * 100])
            self.daemon.replies["Overview"][0]["parameters"]["rows"][1].update({**held, **of})
            self.assertIn(f" {words}held by backup-job(31040)", self.run_it("snapshot")[1])
            lines = self.lines_on_terminal(80, "snapshot")
            first = next(i for i, line in enumerate(lines) if line.startswith(" blocked")) + 1
            # Where there is little room, the name and the id are what stays.
            self.assertRegex(lines[first], r" backup-job\(31040\)$")

    def test_who_is_to_blame_for_what_has_ended(self):
        """A wait for a lock, a child or others on this host has a culprit. Of the disk's, who ended it says nothing,
        and no holder is known of what idles."""
        by = {"held_up_by": {"ns": 10**9, "pid": 9, "tid": 31, "comm": "hol\x1bder"}}
        whole = "  hol\\x1bder(31) for 1.00s"
        for of, words in (({"reason": "mutex"}, whole), ({"reason": "child"}, whole), ({"reason": "unix"}, whole),
                          ({"reason": "disk"}, None), ({"reason": "pipe-read", "idle": True}, None),
                          ({"reason": None}, None), ({"reason": "mutex", "max_ns": 3 * 10**9}, None)):
            rows = [{k: v for k, v in row(**{"count": 2, **of}, **by).items() if v is not None}]
            self.daemon.replies["Snapshot"] = [{"parameters": snapshot(rows)}]
            out = self.run_it("snapshot", "offcpu")[1]
            self.assertEqual(words is not None and words in out, "held up by" in out, (of, out))
            self.assertEqual(words is not None, "(31)" in out, (of, out))
            self.assertIn("up to 1 s asleep; held up by: hol\\x1bder(31)",
                          self.run_it("snapshot", "offcpu", "--stacks")[1])

    def test_culprits_have_the_names_of_their_processes(self):
        """A thread is found by its process. One that has no name of its own is that process."""
        by = {"ns": 10**9, "pid": 9, "tid": 31, "comm": "GC\x1bThread", "process": "ja\x1bva"}
        for change, words, whole in (({}, "ja\\x1bva(9)/GC\\x1bThread", "ja\\x1bva(9)/GC\\x1bThread(31)"),
                                     ({"comm": "ja\x1bva"}, "ja\\x1bva(9)", "ja\\x1bva(9)/ja\\x1bva(31)"),
                                     ({"tid": 9}, "GC\\x1bThread(9)", "GC\\x1bThread(9)")):
            culprit = {**by, **change}
            self.daemon.replies["Snapshot"] = [{"parameters": snapshot([
                row(count=2, reason="mutex", held_up_by=culprit, ran_before=culprit)])}]
            self.assertIn(f"  {words} for 1.00s", self.run_it("snapshot", "offcpu")[1])
            out = self.run_it("snapshot", "offcpu", "--stacks")[1]
            self.assertIn(f"up to 1 s asleep; held up by: {whole}\n", out)
            self.assertIn(f"up to 1 s ready; ran before it: {whole}\n", out)

    def test_parts_of_requests_are_no_layer(self):
        """Where only disks are recorded, an overview has no queue of a disk as a layer above it."""
        self.answer_screen(["db"])
        (*others, io) = self.daemon.replies["Overview"]
        rows = io["parameters"]["rows"]
        queued = [{**r, "io": {**r["io"], "layer": "queue"}} for r in rows if r["io"]["layer"] == "block"]
        blocks = [r for r in rows if r["io"]["layer"] == "block"]
        io["parameters"]["rows"] = [*queued, *blocks]
        io["parameters"]["parts"] = [{"name": layer, "rows": len(blocks), "total_ns": 10**12}
                                     for layer in ("queue", "block")]
        self.daemon.replies["Overview"] = [*others, io]
        _, out, _ = self.run_it("snapshot")
        self.assertRegex(out, r"disk read +\S+")
        self.assertNotRegex(out, r"(?<!disk )\bread +sda")

    def test_frames_of_entry_are_left_out(self):
        """What leads from the start of a thread or a system call to what it does is in -v only."""
        def stack(*frames):
            return {"id": "0x1", "flags": [], "frames": [{"kind": "native", "name": name, "module": module}
                                                         for name, module in frames]}
        entry = stack(("work", "/bin/db"), ("clone_world", "/bin/db"), ("start_thread", "/lib/libc.so.6"),
                      ("clone3", "/lib/libc.so.6"))
        kernel = stack(("do_futex", None), ("__x64_sys_futex", None), ("do_syscall_64", None),
                       ("entry_SYSCALL_64_after_hwframe", None))
        only = stack(("_start", "/bin/db"))
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([row(kernel=kernel, user=entry), row(user=only)])}]
        names = ("__x64_sys_futex", "do_syscall_64", "entry_SYSCALL_64_after_hwframe", "start_thread", "clone3")
        _, out, _ = self.run_it("snapshot", "offcpu", "--stacks")
        self.assertEqual([name for name in names if name in out], [])
        for name in ("do_futex", "work", "clone_world", "_start"):
            self.assertIn(name, out)
        _, out, _ = self.run_it("snapshot", "offcpu", "-v")
        self.assertEqual([name for name in names if name not in out], [])

    def test_what_is_idle_has_no_room_in_an_overview(self):
        """The screen says what idle waits it leaves out. Those of a process that is named come last."""
        self.daemon.replies["Overview"] = [{"parameters": snapshot([row()])}]
        for words, idle in (([], False), (["-p", "42"], None), (["-p", "42", "--idle"], True), (["--json"], True),
                            (["-p", "42", "--no-idle"], False), (["-p", "42", "--stacks"], None)):
            self.run_it("snapshot", *words)
            self.assertEqual(self.asked().get("idle"), idle, words)
        rows = [row(kernel=None, user=None, reason=reason, idle=idle, blocked_ns=ns, total_ns=ns, max_ns=ns)
                for reason, idle, ns in (("sleep", True, 9_000_000_000), ("mutex", False, 100_000_000))]
        self.daemon.replies["Overview"] = [{"parameters": snapshot(rows)}]
        _, out, _ = self.run_it("snapshot", "-p", "42")
        self.assertLess(out.index("S mutex"), out.index("S sleep, idle"), out)

    def test_wakers_in_lines(self):
        """Who ended the waits has a column."""
        def woken(*path):
            return {**row(comm="worker-*", kernel=None, user=None, function="serve", reason="mutex"),
                    "waker": {"path": list(path)}}
        rows = [woken({"context": "task", "pid": 7, "tid": 8, "comm": "flusher"}), woken({"context": "timer"}), woken(),
                woken({"context": "task", "comm": "shell-*"})]
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot(rows, probe="offwake")}]
        _, out, _ = self.run_it("snapshot", "offwake")
        self.assertEqual(self.asked()["by"], "line")
        for line in ("flusher\\(7\\) +serve", "timer +serve", " {12,}serve", "shell-\\* +serve"):
            self.assertRegex(out, rf"(?m)db\(4242\)/worker-\* +S mutex +{line}$")
        self.assertRegex(out, r"(?m)^totals     1 thread: 3 waits, blocked 3.00s, runnable 0ns$")

    def test_estimates_have_their_error(self):
        """A time that rests on a few samples has one digit and says how far the truth may be."""
        estimates = [row(comm=f"p{i}", process={**row()["process"], "comm": f"p{i}"}, estimated=True, total_ns=ns,
                         sampled_ns=sampled, sampled=3) for i, (ns, sampled) in enumerate(
                             ((2 * 10**6, 2 * 10**6), (54_321_000, 54_321_000), (5_432_100_000, 3 * 10**9),
                              (9_990_000, 9_990_000), (960_000, 960_000)))]
        answer = {**snapshot([*estimates, row()]), "sample_below_ns": 10**6}
        self.daemon.replies["Snapshot"] = [{"parameters": answer}]
        _, out, _ = self.run_it("snapshot", "offcpu")
        self.assertRegex(out, r"(?m)^accuracy   ~ \(2 sigma\): waits under 1 ms sampled; exact: record offcpu$")
        for figures in (" ~2ms >100 % ", " ~54ms +27 % ", " ~5.43s +2 % ", " (?:~9ms|~10ms) +63 % ", " ~1ms >100 % "):
            self.assertRegex(out, figures)
        self.assertRegex(out, r"(?m) 3.00s {6,}[^%]*db\(4242\)")
        self.daemon.replies["Snapshot"] = [{"parameters": {**answer, "rows": [row()]}}]
        _, out, _ = self.run_it("snapshot", "offcpu")
        self.assertNotIn("accuracy", out)
        self.assertNotIn("error", out)

    def test_io_in_lines(self):
        """Bytes, process and device are in one line for each row, and each request is in one."""
        io = {"layer": "block", "op": "write", "device": "vda", "filesystem": "ext4", "p50_ns": 10**6, "p90_ns": 10**7,
              "p99_ns": 10**8, **dict.fromkeys(("own_ns", "cpu_ns", "runnable_ns", "device_ns", "queue_ns",
                                                "throttled_ns", "other_ns", "async", "errors", "merges",
                                                "requeues"), 0), "bytes": 3 * 10**9}
        rows = [row(io=io, kernel=None, user=None),
                row(io={**io, "layer": "fs", "bytes": 0, "open": 3, "oldest_ns": 12 * 10**9, "oldest_tid": 7},
                    kernel=None, user=None)]
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot(rows, probe="iolat")}]
        _, out, _ = self.run_it("snapshot", "iolat", "--sort", "bytes")
        self.assertEqual((self.asked()["by"], self.asked()["sort"]), ("line", "bytes"))
        self.assertRegex(out, r"(?m)^ *3\.00s +3 +100 +1\.00ms +100ms +2\.00s +db\(4242\) +disk write +ext4 vda$")
        self.assertRegex(out, r"(?m) +db\(4242\) +write +ext4 vda$")
        self.assertRegex(out, r"(?m)^open +3 not ended; the oldest for 12 s: write of db\(4242\)$")
        # By operation, the layers share the screen.
        rows = [row(io={**io, "layer": layer, "device": f"vd{i}", "merges": 9}, kernel=None, user=None)
                for layer in ("block", "queue", "device") for i in range(12)]
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot(rows, probe="iolat")}]
        words = ("snapshot", "iolat", "--by", "operation")
        lines = self.terminal(80, {"NO_COLOR": "1"}, *words).rstrip("\r\n").split("\r\n")
        self.assertLessEqual(len(lines), 23, lines)
        self.assertLessEqual(next(i for i, line in enumerate(lines) if "count" in line), 4, lines)
        shown = sum(" write " in line for line in lines)
        self.assertEqual(shown % 3, 0)
        self.assertIn(f"{36 - shown} more: -n 0 shows all", lines)
        _, out, _ = self.run_it(*words)
        self.assertEqual(len(re.findall(r"(?m)^  write ", out)), 36)
        # By operation, by stack and for --queued, it is the table that it was.
        for words in (["--by", "operation"], ["--by", "stack"], ["--queued"], ["--milliseconds"]):
            _, out, _ = self.run_it("snapshot", "iolat", *words)
            self.assertRegex(out, r"(?m)^block$", words)
            self.assertNotEqual(self.asked().get("by"), "line")

    def test_status_is_one_screen(self):
        self.daemon.replies["Status"] = [{"parameters": status()}]
        lines = self.terminal(80, {"NO_COLOR": "1"}, "status").rstrip("\r\n").split("\r\n")
        self.assertLessEqual(len(lines), 23, lines)
        self.assertEqual(lines[-1], "more       stackctl status -v, stackctl probes")
        more = self.terminal(80, {"NO_COLOR": "1"}, "status", "-v").split("\r\n")
        self.assertGreater(len(more), len(lines))

    def test_status_fits_when_all_goes_wrong(self):
        """At 80 columns, no line lacks its end but that of the disk, which has a path there."""
        shed = [{"name": name, "length_ns": 10**9, "since": time(T0)}
                for name in ("samples", "calls", "frames", "brief")]
        probe = {"name": "offcpu", "state": "on", "hook": "tp_btf/sched_exit_tp", "blind": ["x"], "programs": []}
        problem = ("over [budget] cpu for 75 s: stackd took 5.1 % of a CPU in the last minute, 4 % are allowed, and "
                   "counters in the kernel took 2.5 %; raise [budget] cpu or set a [probe.NAME] enabled = no")
        tiers = [{"length_ns": length, "keep_ns": 3600 * 10**9, "share": 25, "windows": 9, "bytes": 10**7,
                  "max_bytes": 2 * 10**6, "reach_ns": 391 * 10**9} for length in (5 * 10**9, 60 * 10**9)]
        store = {"path": "/var/lib/stackd/a/long/path", "state": "writing", "bytes": 4 << 20, "max_bytes": 512 << 20,
                 "windows": 9, "oldest": time(T0), "newest": time(T0), "queued": 0, "written": 9, "dropped": 631,
                 "evicted": 0, "merged": 0, "damaged": 0, "tiers": tiers}
        reply = {**status(healthy=False), "problems": [problem, "631 windows were not written to disk"],
                 "probes": [{**probe, "name": name} for name in ("offcpu", "oncpu", "iolat")],
                 "oldest": time(T0), "newest": time(T0), "store": store, "budget_ns": 40 * 10**6,
                 "budget": {"walks_ns": 0, "hooks_ns": 0, "threads_ns": 0, "asked_ns": 2 * 10**6, "shed": shed,
                            "sample_below_ns": 12800000, "since": time(T0)}}
        self.daemon.replies["Status"] = [{"parameters": reply}]
        lines = self.terminal(80, {"NO_COLOR": "1"}, "status").rstrip("\r\n").split("\r\n")
        self.assertLessEqual(len(lines), 23, lines)
        self.assertEqual([line for line in lines if line.endswith("...")],
                         [line for line in lines if line.startswith("disk ")])
        text = "\n".join(lines)
        self.assertRegex(text, r"(?m)^disk +windows since .* UTC, 631 missing, 4\.0 MiB of 512")
        self.assertRegex(text, r"(?m)^cost +by minute: from 2 min after start \(budget 4 %, the least, not 0\.2 %\)$")
        self.assertRegex(text, r"(?m)^ +waits are sampled since .*, now under 12\.80 ms$")
        self.assertIn("left out to keep it: most samples, I/O calls, deep frames, new files\n", text)
        flat = re.sub(r"\s+", " ", self.run_it("status", "-v")[1])
        self.assertIn("windows of at most 5 s: back 391 s of 1 h; 9.5 MiB (1.9 MiB are for them in any case) "
                      "windows of 60 s: back", flat)

    def test_status_compares_a_minute_with_the_budget(self):
        """Not the start, and not what clients cost; that is said beside it."""
        age, ms = 10**6 * 10**9, 10**6  # so long ago that the test takes no share of it
        budget = {"walks_ns": 0, "hooks_ns": 0, "threads_ns": 0}
        known = {**status(), "started": time(clock.time_ns() - age), "user_ns": age // 5, "system_ns": age // 100,
                 "bpf_ns": age // 25, "answers_ns": age * 9 // 100, "sessions_ns": age * 3 // 100, "budget_ns": 40 * ms}
        beside = r"beside this, answers to clients 9.0 %, sessions of clients 3.0 %"
        for more, first in (({}, r"by minute: from 2 min after start \(budget 4 %\)"),
                            ({"minute_ns": 21 * ms}, r"2.1 % of a CPU in the last minute \(budget 4 %\)"),
                            ({"minute_ns": 21 * ms, "asked_ns": 10 * ms},
                             r"2.1 % of a CPU in the last minute \(budget 4 %, the least, not 1 %\)"),
                            ({"minute_ns": 52 * ms, "burst_ns": 18 * ms},
                             r"5.2 % of a CPU in the last minute \(budget 4 %, and 1.8 % for a burst\)")):
            self.daemon.replies["Status"] = [{"parameters": {**known, "budget": {**budget, **more}}}]
            out = self.run_it("status")[1]
            self.assertRegex(out, rf"(?m)^cost +.*{first}")
            self.assertIn("budget 4 %", out)
            self.assertRegex(out, r"(?m)^ +13.0 % since start;")
            self.assertRegex(out, rf"(?m)^ +{beside}$")
            flat = re.sub(r"\s+", " ", self.run_it("status", "-v")[1])
            self.assertRegex(flat, r"cost stackd took 13.0 % of a CPU: 12.0 % its threads, 1.0 % its programs"
                             rf" in the kernel; {beside} that is since the start; .*{first}")

    def test_head_says_that_a_minute_broke_the_budget(self):
        """Whatever the range itself cost, which may be a start: the daemon compares, and only minutes."""
        cost = {"length_ns": 10**10, "limited_ns": 10**10, "cpu_ns": 2 * 10**9, "bpf_ns": 0, "answers_ns": 0,
                "sessions_ns": 0, "budget_ns": 4 * 10**8}
        self.daemon.replies["Snapshot"] = [{"parameters": {**snapshot([row()]), "cost": cost}}]
        self.assertNotIn("cost", self.run_it("snapshot", "offcpu")[1])
        # What was not recorded is one line, of what touches the rows.
        for seconds, words in ((30, "not recorded"), (5, "at times not recorded")):
            shed = [{"name": name, "length_ns": seconds * 10**9} for name in ("samples", "calls", "frames", "brief")]
            self.daemon.replies["Snapshot"] = [{"parameters": {**snapshot([row()]), "cost": {**cost, "shed": shed}}}]
            self.assertIn(f"\nbudget     {words}: deep frames, new files (-v)\n", self.run_it("snapshot", "offcpu")[1])
        for cpu_ns, bpf_ns, words in ((3, 1, r"its threads: raise \[budget\] cpu or \[window\] length"),
                                      (1, 3, r"its programs in the kernel: raise \[budget\] cpu or set a \[probe\.NAME\] enabled = no")):
            more = {"cpu_ns": (cpu_ns + 2) * 10**8, "answers_ns": 2 * 10**8, "bpf_ns": (bpf_ns + 1) * 10**8,
                    "sessions_ns": 10**8, "beyond_ns": 5 * 10**9}
            self.daemon.replies["Snapshot"] = [{"parameters": {**snapshot([row()]), "cost": {**cost, **more}}}]
            said = r"over budget for 5 s: more than 4 % of a CPU over a minute, most by " + words
            flat = re.sub(r"\s+", " ", self.run_it("snapshot", "offcpu")[1])
            self.assertRegex(flat, "cost " + said)
            flat = re.sub(r"\s+", " ", self.run_it("snapshot", "offcpu", "-v")[1])
            self.assertRegex(flat, r"cost stackd took 4\.0 % of a CPU \(budget 4 %\): .* in the kernel;.* " + said)

    def test_by_line(self):
        """The rows of the overview, all of them, with their trends."""
        rows = [row(comm="worker-*", kernel=None, user=None, function="serve", reason="mutex",
                    slots_ns=[0, 10**9, 2 * 10**9], slots_runnable_ns=[0, 0, 0])]
        self.daemon.replies["Snapshot"] = [{"parameters": {**snapshot(rows), "slots_ns": [5 * 10**9] * 3}}]
        for locale, mark in (("C.UTF-8", " \u2585\u2588"), ("C", " +@")):
            out = self.run_it("snapshot", "offcpu", "--by", "line", env={"LC_ALL": locale})[1]
            self.assertRegex(out, rf"trend +process +waits for +function\n.* {re.escape(mark)}  db\(4242\)/worker-\* "
                             r" S mutex +serve\n")
        self.assertEqual((self.asked()["by"], self.asked()["fold_own"]), ("line", True))
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([row()])}]
        self.assertNotIn("trend", self.run_it("snapshot", "offcpu", "--by", "process")[1])
        # The function of a row is a column of its own, unless the row is called by it.
        named = {**row(key="db", state="S", reason="flock", function="commit"), "kernel": None, "user": None}
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([named])}]
        self.assertRegex(self.run_it("snapshot", "offcpu", "--by", "comm")[1], r" db +S flock +commit\n")
        # A file whose functions have no names yet is no function.
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([{**named, "function": "/usr/bin/db"}])}]
        self.assertRegex(self.run_it("snapshot", "offcpu", "--by", "comm")[1], r" db +S flock +\[db\]\n")
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([{**named, "key": "commit"}])}]
        self.assertRegex(self.run_it("snapshot", "offcpu", "--by", "function")[1], r" commit +S flock\n")

    def test_lines_of_stuck(self):
        lock = row(tid=4243, state="S", reason="flock", object="/run/lock", open=1, count=0,
                   holders=[{"pid": 7, "comm": "holder"}], max_ns=5 * 10**9)
        nap = row(tid=4244, state="S", reason="sleep", open=1, count=0, max_ns=90 * 10**9)
        naps = [{**nap, "tid": tid} for tid in range(5000, 5300)]
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([*naps, lock])}]
        _, out, _ = self.run_it("stuck")
        table = out.split("function\n")[1].splitlines()
        self.assertRegex(table[0], r"^5\.00s +1 +\S+ +S flock /run/lock +holder\(7\)")
        self.assertRegex(table[1], r"^90\.0s +300 +\S+ +S sleep")
        self.assertEqual(table[2:], ["rows       2 of 2; stacks: --stacks"])
        _, out, _ = self.run_it("stuck", "--stacks")
        self.assertIn("file /run/lock, held by holder (pid 7)", out)
        # A deadlock is certain: it comes before older waits for locks, but after those that not even a kill ends.
        dead = row(tid=4245, state="S", reason="flock", open=1, count=0, max_ns=2 * 10**9, deadlock=True)
        hard = row(tid=4246, state="D", reason="disk", open=1, count=0, max_ns=60 * 10**9)
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([lock, hard, dead])}]
        table = self.run_it("stuck")[1].split("function\n")[1].splitlines()
        self.assertEqual([line.split()[0] for line in table[:3]], ["60.0s", "2.00s", "5.00s"])

    def test_holders_of_an_earlier_moment(self):
        """What was looked up before the end of the range may be over: each screen says when that was, also
        where names are shortened."""
        held = row(state="S", reason="flock", object="/run/lock", open=1, count=0, urgent=True,
                   holders=[{"pid": 31040, "comm": "backup-job"}])
        for seconds, words in ((29, "as of 03:10:39 "), (-86400, "as of 2026-02-28 03:10:10 "), (30, ""),
                               (None, "")):
            at = {} if seconds is None else {"holders_at": time(T0 + seconds * 10**9)}
            self.daemon.replies["Snapshot"] = [{"parameters": snapshot([{**held, **at}])}]
            self.assertIn(f" {words}backup-job(31040)", self.run_it("stuck")[1])
            self.answer_screen(["db", "x" * 100])
            self.daemon.replies["Overview"][0]["parameters"]["rows"][1].update({**held, **at})
            self.assertIn(f" {words}held by backup-job(31040)", self.run_it("snapshot")[1])
            lines = self.lines_on_terminal(80, "snapshot")
            first = next(i for i, line in enumerate(lines) if line.startswith(" blocked")) + 1
            self.assertRegex(lines[first], r" was \S+\(31040\)$" if words else r" backup-job\(31040\)$")

    def test_own_threads_are_one_line(self):
        """Where rows are lines about threads, the daemon is asked to put its own into one."""
        own = row(own=True, comm="stackd", state="mixed", open=3, count=0,
                  process={"pid": 0, "start": time(0), "comm": "stackd", "kernel": False,
                           "exited": False})
        del own["kernel"], own["user"]
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([row(), own])}]
        for words, folds in ((["snapshot", "offcpu"], True), (["stuck"], True),
                             (["snapshot", "oncpu", "--by", "comm"], True),
                             (["snapshot", "offcpu", "--by", "unit"], None),
                             (["snapshot", "offcpu", "--stacks"], None),
                             (["stuck", "--json"], None), (["snapshot", "offcpu", "-f"], None)):
            code, out, err = self.run_it(*words)
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(self.asked().get("fold_own"), folds, words)
        self.daemon.replies["Follow"] = [{"parameters": snapshot([row(), own]), "continues": True}, None]
        for words, folds in (([], True), (["--by", "unit"], None), (["--stacks"], None),
                             (["--json"], None)):
            _, out, _ = self.run_it("watch", "offcpu", *words)
            self.assertEqual(self.asked().get("fold_own"), folds, words)
            self.assertEqual("stackd itself" in out, "--json" not in words, words)
        _, out, _ = self.run_it("snapshot", "offcpu")
        self.assertRegex(out, r"(?m) 3  stackd itself +for its own work$")
        _, out, _ = self.run_it("stuck")
        self.assertRegex(out, r"(?m) 3  stackd itself +for its own work$")
        # The lines of slices have the row with the most time of all others.
        _, out, _ = self.run_it("snapshot", "offcpu", "--each", "5s")
        self.assertIn("db", out)
        self.assertNotIn("stackd itself", out)

    def test_slices_are_printed_from_the_oldest_on(self):
        """The daemon sends the newest slice first."""
        replies = []
        for i in reversed(range(3)):
            reply = snapshot([row(comm=f"slice{i}")])
            used = {"start": time(T0 + 10 * i * 10**9), "end": time(T0 + 10 * (i + 1) * 10**9)}
            reply["coverage"].update(asked=used, used=used, asked_ns=10**10, covered_ns=10**10,
                                     windows=2)
            replies.append({"parameters": reply, **({"continues": True} if i else {})})
        self.daemon.replies["Snapshot"] = replies
        code, out, err = self.run_it("snapshot", "offcpu", "--each", "10s")
        self.assertEqual((code, err), (0, ""))
        places = [out.find(text) for text in ("03:10:10", "03:10:20", "03:10:30", "03:10:40")]
        self.assertNotIn(-1, places, out)
        starts = [line.split()[0] for line in out.splitlines() if line.startswith("03:")]
        self.assertEqual(starts, ["03:10:10", "03:10:20", "03:10:30"], out)

    def answer_screen(self, names):
        """Answers with more rows than fit on a screen; the one of the last name holds up others."""
        slots = [4 * 10**9] * 5 + [0]
        rows = [row(comm=name, process={**row()["process"], "pid": 100 + i, "comm": name},
                    reason="pipe-read", function="f" * 200, runnable_ns=10**9, total_ns=4 * 10**9,
                    slots_ns=[n * 10**8 for n in range(6)], slots_runnable_ns=[10**7] * 6)
                for i, name in enumerate(names)]
        rows[-1] = {**rows[-1], "urgent": True, "reason": "flock", "object": "/run/lock",
                    "blocked_ns": 10**9, "total_ns": 2 * 10**9, "open": 1, "count": 0,
                    "holders": [{"pid": 7, "comm": "holder"}]}
        del rows[-1]["max_end"]
        own = row(own=True, comm="stackd", total_ns=70 * 10**9, blocked_ns=70 * 10**9,
                  process={**row()["process"], "pid": 0, "comm": "stackd"})
        waits = snapshot([*rows, own])
        waits["parts"] = [{"name": name, "rows": 99, "total_ns": 200 * 10**9}
                          for name in ("runnable", "blocked")]
        waits["idle"] = {"rows": 5, "threads": 300, "total_ns": 9 * 10**12}
        waits["slots_ns"] = slots
        samples = snapshot(rows, probe="oncpu")
        samples["totals"]["samples"] = 99
        samples["slots_ns"] = slots
        zeros = dict.fromkeys(("own_ns", "cpu_ns", "runnable_ns", "device_ns", "queue_ns",
                               "throttled_ns", "other_ns", "async", "errors", "bytes", "merges",
                               "requeues"), 0)
        io = snapshot([row(io={"layer": layer, "op": "read", "device": "sda", **zeros},
                           comm=name, process={**row()["process"], "comm": name}, state=None)
                       for layer in ("syscall", "block") for name in names], probe="iolat")
        io["parts"] = [{"name": layer, "rows": len(names), "total_ns": 10**12}
                       for layer in ("syscall", "block")]
        answers = [{"parameters": answer, "continues": True} for answer in (waits, samples, io)]
        for answer in answers:
            answer["parameters"]["shown"]["rows"] = len(answer["parameters"]["rows"])
        del answers[-1]["continues"]
        self.daemon.replies["Overview"] = answers

    def test_overview_is_one_screen(self):
        hostile = "\x1b[31m\u202e\n" + "\u6f22" * 40 + "e\u0301" * 40
        self.answer_screen(["db", hostile, "x" * 4096, "a", "b", "culprit"])
        for columns in (40, 80, 100, 400):
            lines = self.lines_on_terminal(columns, "snapshot")
            asked = self.asked()
            self.assertEqual((asked["by"], asked["top"], asked["fold_own"]), ("line", 4, True))
            self.assertLessEqual(len(lines), 23, "with a prompt, it fits into 24 lines")
            self.assertEqual([line for line in lines if columns_of(line) > columns], [])
            heads = [match[1] for match in map(re.compile(" *(blocked|on CPU|runnable|I/O) ").match,
                                               lines) if match]
            self.assertEqual(heads, ["blocked", "on CPU", "runnable", "I/O"])
            first = next(i for i, line in enumerate(lines) if line.startswith(" blocked")) + 1
            self.assertRegex(lines[first], r" culp\S*105\) +S flo")
            self.assertTrue(lines[-1].startswith("more "))
            self.assertTrue(lines[-2].startswith("hidden "))
        self.assertIn("culprit(105)", lines[first])
        self.assertRegex(lines[first], r"S flock /run/lock +held by holder\(7\)$")
        self.assertIn("300 idle threads, 2.5h (--idle); stackd: 0ns on CPU, 70.0s waiting",
                      lines[-2])
        # As many rows as were asked for, on a screen of any size.
        lines = self.lines_on_terminal(80, "snapshot", "-n", "6")
        self.assertEqual(self.asked()["top"], 6)
        self.assertGreater(len(lines), 24)

    def answer_spawns(self):
        self.answer_screen(["db", "x" * 4096, "a", "b", "culprit"])
        sums = {"forks": 1, "execs": 3900, "exits": 3900, "short_lived": 3900, "cpu_ns": 9 * 10**9,
                "life_ns": 39 * 10**9}
        none = dict.fromkeys(sums, 0)
        rows = [{"parent": "make", "comm": "cc1plus", "sums": sums},
                {"parent": "make", "comm": "as\x1b", "sums": {**none, "exits": 311, "short_lived": 311}},
                {"parent": "sh", "comm": "sh", "sums": {**none, "forks": 5}}]
        total = {"forks": 6, "execs": 3900, "exits": 4223, "short_lived": 4223, "cpu_ns": 9 * 10**9,
                 "life_ns": 42 * 10**9}
        self.daemon.replies["Overview"][0]["parameters"]["spawns"] = {
            "length_ns": 30 * 10**9, "total": total, "rows": rows,
            "others": {**none, "exits": 12, "short_lived": 12}, "rows_folded": 2}

    def test_short_lived_processes(self):
        self.answer_spawns()
        lines = self.lines_on_terminal(100, "snapshot")
        self.assertIn("processes  4,223 short-lived, 9.00s of CPU, life 9.95ms; 4,211 by make: cc1plus, as\\x1b", lines)
        for columns in (40, 80):
            lines = self.lines_on_terminal(columns, "snapshot")
            self.assertLessEqual(len(lines), 23, "with a prompt, it fits into 24 lines")
            self.assertEqual([line for line in lines if columns_of(line) > columns], [])
        _, out, _ = self.run_it("snapshot", "--json")
        self.assertEqual(json.loads(out)["waits"]["spawns"]["rows"][1]["comm"], "as\x1b")

    def test_processes_by_parent(self):
        self.answer_spawns()
        code, out, err = self.run_it("snapshot", "--by", "parent")
        self.assertEqual((code, err), (0, ""))
        asked = self.asked()
        self.assertEqual((asked["top"], asked["io"]), (1, False))
        table = out.split("process\n")[1].splitlines()
        self.assertEqual([line.split()[-1] for line in table],
                         ["all", "make", "cc1plus", "as\\x1b", "sh", "sh", "(others)"])
        self.assertRegex(table[0], r"^ +6 +3,900 +4,223 +4,223 +9.00s +9.95ms +all$")
        self.assertRegex(table[2], r" 9.00s +10.0ms +  cc1plus$")
        _, out, _ = self.run_it("snapshot", "--by", "parent", "-n", "1")
        self.assertIn("1 more: -n 0 shows all\n", out)
        code, out, _ = self.run_it("snapshot", "--by", "parent", "--json")
        self.assertEqual((code, len(json.loads(out)["waits"]["spawns"]["rows"])), (0, 3))
        for words in (["snapshot", "offcpu"], ["watch", "offcpu"], ["record", "offcpu"]):
            code, _, err = self.run_it(*words, "--by", "parent")
            self.assertEqual(code, 1)
            self.assertIn("goes without a probe: stackctl snapshot --by parent", err)
        code, _, err = self.run_it("snapshot", "--by", "parent", "-f")
        self.assertEqual(code, 1)
        self.assertIn("--by parent has no folded output: text or json", err)
        # An older daemon does not count processes.
        del self.daemon.replies["Overview"][0]["parameters"]["spawns"]
        _, out, _ = self.run_it("snapshot", "--by", "parent")
        self.assertIn("not known: ", out)
        self.assertNotIn("processes ", self.run_it("snapshot")[1])

    def test_a_process_before_its_exec(self):
        """A process that has executed another program has not exited."""
        old = row(process={**row()["process"], "replaced": True})
        self.daemon.replies["Snapshot"] = [{"parameters": snapshot([old])}]
        _, out, _ = self.run_it("snapshot", "offcpu", "--stacks")
        self.assertRegex(out, r"\(pid \d+, before exec\)")
        _, out, _ = self.run_it("snapshot", "offcpu")
        self.assertRegex(out, r"\(\d+ before exec\)")
        _, out, _ = self.run_it("snapshot", "offcpu", "--json")
        self.assertTrue(json.loads(out)["rows"][0]["process"]["replaced"])

    def test_overview_elsewhere(self):
        """In a file or a pipe nothing is shortened; the trend is ASCII where UTF-8 is not known."""
        self.answer_screen(["db", "x" * 4096, "culprit"])
        for env, is_utf8 in (({"LC_ALL": "C"}, False), ({"LC_ALL": "de_DE.utf8"}, True),
                             ({"LC_ALL": "", "LC_CTYPE": "C.UTF-8", "LANG": "C"}, True),
                             ({"LC_ALL": "", "LC_CTYPE": "", "LANG": ""}, False)):
            code, out, err = self.run_it("snapshot", env=env)
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(" \u2582\u2584\u2586\u2588\u00b7  culprit" in out, is_utf8)
            self.assertEqual(" :=*@?  culprit" in out, not is_utf8)
            self.assertIn("x" * 4096 + "(101)", out)
            line = next(line for line in out.splitlines() if " db(100)" in line)
            self.assertIn("f" * 200, line)
            self.assertNotIn("\x1b", out)
        self.assertTrue(out.isascii())
        # Other formats have what they had.
        for words in (["--json"], ["-f"], ["--stacks"]):
            self.run_it("snapshot", *words)
            self.assertIsNone(self.asked().get("by"), words)
            self.assertIsNone(self.asked().get("fold_own"), words)

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
        self.assertIn("db(4242)", out)
        self.assertIn("3 lost", err)

    def test_no_daemon(self):
        self.check(["-S", self.socket + "x", "status"], 2, "systemctl start stackd")
        plain = self.directory.name + "/plain"
        open(plain, "w").close()
        self.check(["status", "-S", plain], 2, plain)
        self.check(["-S", "/" + "x" * 200], 1, "too long")
        self.check(["-S", ""], 1, "empty")
        for words in (["--fleet", "-S", plain, "snapshot"], ["-S", plain, "--fleet", "snapshot"], ["--fleet", "-S", plain]):
            self.check(words, 1, "--socket and --fleet exclude each other")
        self.check(["--fleet", "offcputime"], 1, "offcputime records on this host: without --fleet")

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
        for words in (["nonsense"], ["snapshot", "offcpu", "--nonsense"], ["status", "-t1"],
                      ["snapshot", "offcpu", "extra"], ["snapshot", "offcpu", "--window", "0"],
                      ["snapshot", "offcpu", "--since", "+1h"], ["help", "nonsense"],
                      ["stuck", "--sort", "max"], ["--nonsense"], ["-p"]):
            calls = len(self.daemon.calls)
            code, out, err = self.run_it(*words)
            self.assertEqual((code, out, err.count("\n")), (1, "", 1), words)
            self.assertEqual(len(self.daemon.calls), calls)

    # Output

    def test_full_and_closed(self):
        self.daemon.replies["Follow"] = [{"parameters": snapshot([row()]), "continues": True}, None]
        for words in (["snapshot", "offcpu"], ["status"], ["help"], ["--version"], ["watch", "offcpu"],
                      ["snapshot", "offcpu", "--range", "-10min..-5min", "--range", "-5min.."],
                      *(["snapshot", "offcpu", "--format", name] for name in FORMATS)):
            with open("/dev/full", "w") as full:
                code, _, err = self.run_it(*words, stdout=full)
            self.assertEqual((code, err), (7, "stackctl: standard output: No space left on device\n"), words)
            # It was closed by who started it: nothing is written to the connection that got its number.
            for closed in (">&-", "<&- >&-"):
                code, _, err = self.run_it(*words, shell=f'exec "$@" {closed}')
                self.assertEqual((code, err), (7, "stackctl: standard output: Bad file descriptor\n"), words)
            self.assertEqual(self.run_it(*words, shell='exec "$@" <&- >&- 2>&-'), (7, "", ""), words)
            reader, writer = os.pipe()
            os.close(reader)
            code, _, err = self.run_it(*words, stdout=writer)
            os.close(writer)
            self.assertEqual((code, err), (7, ""), words)

    def test_output_file(self):
        path = self.directory.name + "/out.folded"
        os.symlink(path, path + "_link")
        self.check(["stuck", "--output", path + "_link"], 7, "is a symbolic link")
        open(path, "w").close()
        code, out, err = self.run_it("snapshot", "offcpu", "-f", "--output", path + "_link")
        # Nothing is printed, as cron would send it by mail each time.
        self.assertEqual((code, out, err), (0, "", ""))
        self.assertTrue(os.path.islink(path + "_link"))
        with open(path) as file:
            before = file.read()
        self.assertTrue(before.endswith("3000000\n"))
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o666 & ~mask)
        # A file that was there keeps who may read it.
        owner = 1000 if os.geteuid() == 0 else os.geteuid()
        os.chown(path, owner, -1)
        os.chmod(path, 0o640)
        self.assertEqual(self.run_it("snapshot", "offcpu", "-f", "--output", path)[0], 0)
        self.assertEqual((stat.S_IMODE(os.stat(path).st_mode), os.stat(path).st_uid), (0o640, owner))
        # A failed call leaves the file as it was, and no temporary file.
        self.daemon.replies["Snapshot"] = [error("io.stackd.NoData", what="range", message="m")]
        self.assertEqual(self.run_it("snapshot", "offcpu", "--output", path)[0], 4)
        with open(path) as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(sorted(os.listdir(self.directory.name)),
                         ["out.folded", "out.folded_link", "sock"])

    def test_output_standard(self):
        """Standard output is -, also by its path, which is a link without a target if it is a pipe."""
        wanted = self.run_it("snapshot", "offcpu", "-f")
        self.assertTrue(wanted[1])
        for name in ("-", "/dev/stdout"):
            self.assertEqual(self.run_it("snapshot", "offcpu", "-f", "--output", name), wanted)
        self.assertFalse(os.path.exists("-"))
        # A file that standard output is appended to is not replaced.
        path = self.directory.name + "/appended"
        with open(path, "w+") as file:
            file.write("before\n")
            file.flush()
            self.run_it("snapshot", "offcpu", "-f", "--output", "/dev/stdout", stdout=file)
            file.seek(0)
            self.assertEqual(file.read(), "before\n" + wanted[1])

    def test_output_page(self):
        """A page is of another verb."""
        for name in ("x.html", "x.htm", "x.pftrace"):
            self.check(["snapshot", "offcpu", "--output", name], 1, f"stackctl report --output {name}")

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

    def test_limit_of_file_size(self):
        """The limit is named, and no unfinished file is left."""
        path = self.directory.name + "/out"
        says = ": File too large (the limit on the size of a file: ulimit -f, LimitFSIZE=)\n"
        for name in FORMATS:
            words = ["snapshot", "offcpu", "--format", name]
            code, out, err = self.run_it(*words, "--output", path, shell='ulimit -f 0; exec "$@"')
            self.assertEqual((code, out, err), (7, "", f"stackctl: {path}{says}"), name)
            self.assertEqual(os.listdir(self.directory.name), ["sock"])
            with open(path, "w") as file:
                code, _, err = self.run_it(*words, stdout=file, shell='ulimit -f 0; exec "$@"')
            self.assertEqual((code, err), (7, f"stackctl: standard output{says}"), name)
            os.unlink(path)

    def test_left_by_the_parent(self):
        """Signals that the parent ignores or blocks still end it; those that nohup ignores stay ignored."""
        code = ("import os, signal, sys\n"
                "for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)\n"
                "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n"
                "os.execv(sys.argv[1], sys.argv[1:])")
        is_over = threading.Event()
        self.daemon.replies["Snapshot"] = lambda parameters: [is_over.wait(60) and None]
        process = subprocess.Popen([sys.executable, "-c", code, STACKCTL, "-S", self.socket, "snapshot", "offcpu"])
        while not self.daemon.calls:
            clock.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), -signal.SIGTERM)
        is_over.set()

    def test_output_device(self):
        for name in FORMATS:
            self.check(["snapshot", "offcpu", "--format", name, "--output", "/dev/full"], 7,
                       "stackctl: /dev/full: No space left on device\n")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
        self.assertEqual(self.run_it("stuck", "--output", "/dev/null")[0], 0)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def terminal(self, columns, env, *words, stderr=subprocess.PIPE):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([STACKCTL, *words], stdout=slave, stderr=stderr,
                                   env={**os.environ, "STACKD_SOCKET": self.socket,
                                        "TERM": "xterm", "SYSTEMD_PAGER": "", **env})
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
        process.communicate(timeout=double.HANG)
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

    def test_dumb_terminals(self):
        """A terminal that knows no escape sequences gets none."""
        self.daemon.replies["Follow"] = [{"parameters": snapshot([row()])}]
        session = {"id": "100", "probe": "offcpu", "owner": "root", "since": time(T0), "ended": time(T0 + 10**9),
                   "always": False, "count": 1, "lost": []}
        self.daemon.replies["Start"] = [{"parameters": {"session": session, "calls": []}}]
        self.assertIn("\x1b[2J", self.terminal(80, {"NO_COLOR": "1"}, "watch", "offcpu"))
        for term in ("dumb", ""):
            for words in (["watch", "offcpu"], ["record", "offcpu", "--for", "1s"], ["snapshot", "offcpu"]):
                out = self.terminal(80, {"TERM": term}, *words, stderr=subprocess.STDOUT)
                self.assertIn("db", out, words)
                self.assertNotIn("\x1b", out, words)

    def test_watch_goes_on(self):
        """On a terminal, watch waits for a daemon that has ended, and goes on with the next one."""
        answers = [[{"parameters": snapshot([row(comm="before")]), "continues": True}, None],
                   [{"parameters": snapshot([row(comm="after")])}]]
        self.daemon.replies["Follow"] = lambda _: answers.pop(0)
        self.daemon.replies["GetInfo"] = [{"parameters": {}}]
        out = self.terminal(80, {"TERM": "dumb"}, "watch", "offcpu", stderr=subprocess.STDOUT)
        said = [out.find(text) for text in ("before", "waiting for it to start again", "after")]
        self.assertEqual(said, sorted(said))
        self.assertNotIn(-1, said)
        # Nor does it wait for ever without its terminal.
        self.daemon.replies["GetInfo"] = [None]
        answers[:] = [[{"parameters": snapshot([row()]), "continues": True}, None]]
        master, slave = pty.openpty()
        watch = subprocess.Popen([STACKCTL, "watch", "offcpu"], stdout=slave, stderr=subprocess.PIPE, text=True,
                                 env={**os.environ, "STACKD_SOCKET": self.socket})
        os.close(slave)
        self.assertIn("closed the connection", watch.stderr.readline())
        self.assertIn("waiting for it to start again", watch.stderr.readline())
        os.close(master)
        self.assertEqual(watch.wait(60), 0)
        watch.stderr.close()
        # A daemon that gave no answer is no daemon that has ended, and a script is told.
        answers[:] = [[None]]
        self.assertIn("closed the connection", self.terminal(80, {}, "watch", "offcpu", stderr=subprocess.STDOUT))
        answers[:] = [[{"parameters": snapshot([row()]), "continues": True}, None]]
        self.assertEqual(self.run_it("watch", "offcpu")[0], 7)

    def test_narrow_terminals(self):
        """What has no room is left out, and is not cut in its middle."""
        window = {"probe": "offcpu", "seq": 1, "start": time(T0), "end": time(T0 + 5 * 10**9), "length_ns": 5 * 10**9,
                  "rows": 12345, "threads": 678, "open": 12, "bytes": 9876543, "lost": []}
        self.daemon.replies["Windows"] = [{"parameters": {"windows": [window], "gaps": []}}]
        io = {"layer": "block", "op": "write", "device": "vda", "filesystem": "ext4", "p50_ns": 10**6, "p90_ns": 10**7,
              "p99_ns": 10**8, **dict.fromkeys(("own_ns", "cpu_ns", "runnable_ns", "device_ns", "queue_ns",
                                                "throttled_ns", "other_ns", "async", "errors", "bytes", "merges",
                                                "requeues"), 0)}
        answer = snapshot([row(io=io, kernel=None, user=None)], probe="iolat")
        answer["totals"]["ios"] = 3
        self.daemon.replies["Snapshot"] = [{"parameters": answer}]
        for words, columns, has, lacks in (
                (["windows"], 40, ["start", "03:10:10.000", "5 s"], ["threads", "2026"]),
                (["windows"], 60, ["threads", "2026-03-01 03:10:10.000", "678"], ["rows", "memory"]),
                (["windows"], 80, ["rows", "12,345", "open", "memory", "9.4 MiB"], []),
                (["snapshot", "iolat"], 40, ["total", "process", "operation"], ["p50~ ", "longest"]),
                (["snapshot", "iolat"], 60, ["p99~", "100ms", "where"], ["p50~ "]),
                (["snapshot", "iolat"], 80, ["count", "p50~ ", "longest", "2.00s"], [])):
            lines = self.terminal(columns, {"NO_COLOR": "1"}, *words).split("\r\n")
            table = "\n".join(line for line in lines if "window" in line or "offcpu" in line or "total" in line or
                              "write" in line)
            self.assertLessEqual(max(map(len, lines)), columns, words)
            self.assertEqual([line for line in lines if line != line.rstrip()], [], words)
            self.assertEqual([word for word in has if word not in table], [], (words, columns, table))
            self.assertEqual([word for word in lacks if word in table], [], (words, columns, table))

    def test_pager(self):
        pager = self.directory.name + "/pager"
        with open(pager, "w") as file:
            file.write('#!/bin/sh\necho "pager $* LESS=$LESS SECURE=$LESSSECURE"\nexec sed "s/^/P:/"\n')
        os.chmod(pager, 0o755)
        bare = {"NO_COLOR": "1", "SYSTEMD_LESS": "X"}
        # 36.5 hours ago: the hours that status prints do not change during the test.
        started = time(clock.time_ns() - 131_400 * 10**9)
        self.daemon.replies["Status"] = [{"parameters": {**status(), "started": started}}]
        for words in (["snapshot", "offcpu"], ["stuck"], ["status"], ["help"], ["snapshot", "offcpu", "--json"],
                      ["help", "snapshot"], ["snapshot", "offcpu", "-f"]):
            out = self.terminal(100, {**bare, "SYSTEMD_PAGER": f"{pager}  -x\ty", "PAGER": "false"}, *words)
            first, *lines = out.split("\r\n")
            self.assertEqual(first, "pager -x y LESS=X SECURE=", words)
            self.assertTrue(lines and all(line.startswith("P:") for line in lines[:-1]), (words, out))
            plain = self.terminal(100, bare, *words, "--no-pager")
            self.assertEqual([line[2:] for line in lines[:-1]], plain.split("\r\n")[:-1])
            self.assertNotIn("P:", plain)
        # As wide as the terminal, although standard output is a pipe, and in its colours.
        out = self.terminal(40, {"SYSTEMD_PAGER": pager, "NO_COLOR": ""}, "stuck", "--stacks")
        self.assertLessEqual(max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in out.split("\r\n")[1:]), 42)
        self.assertIn("\x1b[1m", out)

    def test_pager_is_chosen(self):
        def paged(**env):
            return "P:" in self.terminal(80, {"NO_COLOR": "1", **env}, "stuck")
        path = self.directory.name + "/bin"
        os.mkdir(path)
        for name in ("less", "mine"):
            with open(f"{path}/{name}", "w") as file:
                file.write('#!/bin/sh\n[ "$LESSSECURE" = 1 ] && echo secure\nexec /bin/sed "s/^/P:/"\n')
            os.chmod(f"{path}/{name}", 0o755)
        self.assertFalse(paged(SYSTEMD_PAGER="", PAGER="mine", PATH=path))
        self.assertFalse(paged(SYSTEMD_PAGER="cat", PATH=path))
        self.assertTrue(paged(SYSTEMD_PAGER="mine", PATH=path))
        # One that cannot be run is replaced by less; without either, there is none.
        self.assertTrue(paged(SYSTEMD_PAGER="no-such-pager", PATH=path))
        self.assertFalse(paged(SYSTEMD_PAGER="no-such-pager", PATH="/nonexistent"))
        # Under sudo, nothing but less, which may start no programs.
        out = self.terminal(80, {"SYSTEMD_PAGER": "mine", "SUDO_UID": "1000", "PATH": path}, "stuck")
        self.assertTrue(out.startswith("secure\r\n"), out)
        os.unlink(path + "/less")
        self.assertFalse(paged(SYSTEMD_PAGER="mine", SUDO_UID="1000", PATH=path))
        # There is none where standard output is no terminal.
        self.assertNotIn("P:", self.run_it("stuck", env={"SYSTEMD_PAGER": "mine", "PATH": path})[1])

    def test_pager_that_is_left(self):
        answer = snapshot([row(comm=f"c{i}") for i in range(500)])
        answer["shown"]["rows"] = 500
        self.daemon.replies["Snapshot"] = [{"parameters": answer}]
        for words in (["snapshot", "offcpu", "-n0", "--stacks"], ["snapshot", "offcpu", "--json"],
                      ["stuck", "-n0", "--stacks"], ["stuck", "-n0", "--stacks", "--fail"], ["status"], []):
            master, slave = pty.openpty()
            process = subprocess.Popen([STACKCTL, *words], stdout=slave, stderr=subprocess.PIPE,
                                       env={**os.environ, "STACKD_SOCKET": self.socket, "SYSTEMD_PAGER": "true",
                                            "TERM": "xterm"})
            os.close(slave)
            _, err = process.communicate(timeout=double.HANG)
            os.close(master)
            if words:
                self.assertEqual(err, b"", words)
            self.assertEqual(process.returncode, 9 if "--fail" in words else 0, words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
