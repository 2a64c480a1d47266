# SPDX-License-Identifier: GPL-2.0-or-later
"""The formats of other tools, written by stackctl from the answers of a stand-in for the daemon and read
by other readers: names that would break a format do not, and the sums are those of the rows. Run with:
STACKCTL."""

import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

import double
from double import error
from rows import ROWS, snapshot, total

STACKCTL = sys.argv[1]


class Formats(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.daemon = double.Double(self.directory.name + "/sock")
        # The rows come in several replies.
        self.daemon.replies["Snapshot"] = [
            {"parameters": snapshot(ROWS[:3]), "continues": True},
            {"parameters": snapshot(ROWS[3:])}]

    def tearDown(self):
        self.daemon.close()
        self.directory.cleanup()

    def run_it(self, *words, limit=None):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        environment = {**os.environ, "STACKD_SOCKET": self.directory.name + "/sock", "TZ": "UTC"}
        done = subprocess.run([STACKCTL, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment, timeout=double.HANG, preexec_fn=small_files if limit else None,
                              restore_signals=not limit)  # SIGXFSZ stays ignored
        return done.returncode, done.stdout, done.stderr.decode()

    def written(self, name, *words):
        """Returns what is in the file of this name that stackctl wrote, whose name chooses the format."""
        path = f"{self.directory.name}/{name}"
        code, out, err = self.run_it("snapshot", "offcpu", *words, "--output", path)
        self.assertEqual((code, out, err), (0, b"", ""))
        with open(path, "rb") as file:
            return file.read()

    def test_csv(self):
        text = self.written("x.csv").decode("ascii", "backslashreplace")
        rows = list(csv.DictReader(text.splitlines(), strict=True))
        self.assertEqual(len(rows), len(ROWS))
        for got, want in zip(rows, ROWS):
            self.assertNotIn(None, got)
            self.assertNotIn(None, got.values())
            self.assertNotIn(got["comm"][:1], list("=+-@"))
            for member in ("count", "total_ns", "blocked_ns", "runnable_ns", "throttled_ns"):
                self.assertEqual(int(got[member]), want[member])
            self.assertEqual(int(got["pid"]), want["process"]["pid"])
            self.assertEqual(len(got["user_stack"].split(";")), 3)
            self.assertEqual(int(got["covered_ns"]), 29 * 10**9)

    def test_speedscope(self):
        data = self.written("x.speedscope.json").decode()
        file = json.loads(data)
        self.assertNotIn("</script", data)
        self.assertEqual(file["$schema"], "https://www.speedscope.app/file-format-schema.json")
        frames = file["shared"]["frames"]
        self.assertTrue(all(set(f) <= {"name", "file", "line"} and f["name"] for f in frames))
        profiles = {p["name"].split(" ")[0]: p for p in file["profiles"]}
        self.assertEqual(list(profiles), ["blocked", "runnable", "throttled"])
        for name, want in (("blocked", total("blocked_ns")), ("throttled", total("throttled_ns")),
                           ("runnable", total("runnable_ns") - total("throttled_ns"))):
            profile = profiles[name]
            self.assertEqual(sum(profile["weights"]), want)
            self.assertEqual((profile["startValue"], profile["endValue"]), (0, want))
            self.assertEqual((profile["type"], profile["unit"]), ("sampled", "nanoseconds"))
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertTrue(all(0 <= i < len(frames) for s in profile["samples"] for i in s))
            self.assertIn("(29 s of 30 s covered, 1 gap, lost 3, 2 s of the sums estimated)",
                          profile["name"])
        stack = [frames[i]["name"] for i in profiles["blocked"]["samples"][0]]
        self.assertEqual(stack, ["db", "main", "db+0x40", "db", "schedule"])
        self.assertEqual(file["activeProfileIndex"], 0)

    def test_an_option_is_stronger_than_the_name(self):
        self.assertEqual(json.loads(self.written("x.csv", "--json"))["probe"], "offcpu")
        self.assertIn(b"process", self.written("x.log"))
        self.assertEqual(json.loads(self.written("x.json"))["probe"], "offcpu")

    def test_refused(self):
        for words, says in ((["watch", "offcpu", "--format", "csv"], "watch prints several"),
                            (["status", "--format", "csv"], "has no stacks"),
                            (["snapshot", "offcpu", "--format", "speedscope", "-n", "5"], "--top"),
                            (["snapshot", "offcpu", "--each", "5s", "--format", "csv"], "--each")):
            code, out, err = self.run_it(*words)
            self.assertEqual((code, out), (1, b""), words)
            self.assertIn(says, err)

    def test_no_half_file(self):
        """A file that cannot be written to its end, and an answer that breaks off, leave nothing."""
        def names():
            return sorted(os.listdir(self.directory.name))

        for name in FILES:
            path = f"{self.directory.name}/{name}"
            code, _, err = self.run_it("snapshot", "offcpu", "--output", path, limit=512)
            self.assertEqual(code, 7, (name, err))
            self.assertIn("File too large", err)
            self.assertEqual(names(), ["sock"])
            code, _, err = self.run_it("snapshot", "offcpu", "--format", FILES[name], "--output",
                                       "/dev/full")
            self.assertEqual(code, 7, (name, err))
        self.daemon.replies["Snapshot"] = [
            {"parameters": snapshot(ROWS[:3]), "continues": True}, error("io.stackd.Busy", setting="s",
                                                                         message="m")]
        for name in FILES:
            self.assertNotEqual(self.run_it("snapshot", "offcpu", "--output",
                                            f"{self.directory.name}/{name}")[0], 0)
            self.assertEqual(names(), ["sock"])

    def test_directory(self):
        directory = self.directory.name + "/d/"
        os.mkdir(directory)
        code, _, err = self.run_it("snapshot", "offcpu", "--format", "speedscope", "--output", directory)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(os.listdir(directory)[0], r"^offcpu-.*Z\.speedscope\.json$")


FILES = {"x.csv": "csv", "x.speedscope.json": "speedscope", "x.pb.gz": "pprof", "x.svg": "svg"}

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
