# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds what `stackctl --json` prints of the answers of a stand-in for the daemon to the JSON Schema that
is installed, where a member that the schema does not have is an error. Run with: STACKCTL SCHEMA."""

import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:
    if sys.executable != "/usr/bin/python3":  # the one for which Debian has the package
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("skipped: needs python3-jsonschema")
    sys.exit(77)

import double
from double import time
from rows import ROWS, T0, row, snapshot

STACKCTL = sys.argv[1]
with open(sys.argv[2], encoding="ascii") as opened:
    SCHEMA = json.load(opened)

STATUS = {
    "version": "0.1.0", "pid": 1, "started": time(T0), "boot_id": "b", "kernel": "6.1", "healthy": False,
    "problems": ["the drain is late"], "probes": [], "windows": 3, "window_ns": 5 * 10**9,
    "keep_ns": 600 * 10**9, "user_ns": 1, "system_ns": 1, "rss_bytes": 1, "map_bytes": 1, "cut_ns": 1,
    "cut_max_ns": 1, "lost": [{"reason": "waits", "count": 4}], "limits": [], "stats_enabled": False}
WINDOWS = {
    "windows": [{"seq": 1, "start": time(T0), "end": time(T0 + 1), "length_ns": 1, "rows": 1,
                 "threads": 1, "open": 0, "bytes": 1, "lost": []}],
    "gaps": [{"start": time(T0), "end": time(T0 + 1), "reason": "it was off"}]}
IO = {"layer": "syscall", "op": "read", "own_ns": 0, "cpu_ns": 0, "runnable_ns": 0, "device_ns": 0,
      "queue_ns": 0, "throttled_ns": 0, "other_ns": 9, "async": 0, "errors": 0, "bytes": 4096,
      "merges": 0, "requeues": 0}
STACK = {"id": "c", "flags": ["truncated"], "frames": [{"kind": "jit", "offset": 3}]}
WAKER = {"path": [{"context": "task", "pid": 3, "tid": 4, "comm": "jbd2"}, {"context": "timer"}],
         "kernel": STACK, "user": STACK}


def strict():
    """Returns the schema where members that it does not have are errors."""
    definitions = {name: {**one, "additionalProperties": False}
                   for name, one in SCHEMA["$defs"].items()}
    return {**SCHEMA, "$defs": definitions}


def errors(name, document):
    validator = jsonschema.Draft202012Validator({**strict(), "$ref": f"#/$defs/{name}"})
    return [f"{'/'.join(map(str, e.path))}: {e.message[:200]}" for e in validator.iter_errors(document)]


class Schema(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.daemon = double.Double(self.directory.name + "/sock")

    def tearDown(self):
        self.daemon.close()
        self.directory.cleanup()

    def printed(self, method, reply, *words):
        """Returns the document that stackctl prints of the reply to a method."""
        self.daemon.replies[method] = [{"parameters": reply}]
        done = subprocess.run([STACKCTL, *words, "--json"], stdout=subprocess.PIPE, timeout=double.HANG,
                              env={**os.environ, "STACKD_SOCKET": self.directory.name + "/sock"},
                              check=False)
        return json.loads(done.stdout)

    def check(self, name, document):
        self.assertEqual(errors(name, document), [])

    def test_it_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)
        for name in ("Snapshot", "Status", "Windows", "Probes", "Sessions", "Row", "Time"):
            self.assertIn(name, SCHEMA["$defs"])

    def test_snapshots(self):
        rows = {
            "offcpu": ROWS,
            "offwake": [row("db", 1, waker=WAKER, tid=4, reason="pipe", object="/x",
                            holders=[{"pid": 5, "comm": "a"}], deadlock=True)],
            "iolat": [row("db", 1, io=IO)],
        }
        for probe, some in rows.items():
            document = self.printed("Snapshot", snapshot(some, probe=probe), "snapshot", probe)
            self.assertEqual(len(document["rows"]), len(some))
            for printed, sent in zip(document["rows"], some):
                self.assertEqual([m for m in sent if m not in printed and sent[m] != []], [])
            self.check("Snapshot", document)

    def test_others(self):
        self.check("Status", self.printed("Status", STATUS, "status"))
        self.check("Windows", self.printed("Windows", WINDOWS, "windows"))

    def test_what_is_no_answer(self):
        answer = self.printed("Snapshot", snapshot(ROWS), "snapshot", "offcpu")
        self.check("Snapshot", answer)

        def with_change(change):
            other = copy.deepcopy(answer)
            change(other)
            return errors("Snapshot", other)

        self.assertEqual(len(with_change(lambda a: a.pop("coverage"))), 1)
        self.assertEqual(len(with_change(lambda a: a.update(rows=3))), 1)
        self.assertEqual(len(with_change(lambda a: a.update(unknown=3))), 1)
        self.assertEqual(len(with_change(lambda a: a["rows"][1].update(unknown=3))), 1)
        self.assertEqual(len(with_change(lambda a: a["rows"][0].update(count="3"))), 1)
        self.assertEqual(len(with_change(lambda a: a["rows"][0]["process"]["start"].pop("ns"))), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
