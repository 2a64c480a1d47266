# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds tests/gate.py to its rules: what is in the gate, and what a line of the quarantine may say.
Usage: test_gate.py TESTS_DIR
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

sys.path.insert(0, sys.argv.pop(1))
import gate

LINE = "live_one 2026-11-20 2026-12-01 a wait of 3 s was missing\n"


def test(name, *suites):
    return {"name": name, "suite": [f"stackd:{suite}" for suite in suites]}


TESTS = [test("live_one", "live", "gate"), test("live_two", "live", "gate"), test("slow", "live"),
         test("parse", "unit", "gate")]


class Names(unittest.TestCase):
    def test_only_those_of_suite_gate_and_of_the_asked_suites(self):
        self.assertEqual(gate.gate_names(TESTS, ["live"], []), ["live_one", "live_two"])
        self.assertEqual(gate.gate_names(TESTS, ["unit", "proto"], []), ["parse"])

    def test_not_those_of_the_quarantine(self):
        self.assertEqual(gate.gate_names(TESTS, ["live"], ["live_one"]), ["live_two"])

    def test_the_quarantine_names_tests_of_the_gate(self):
        for name in ("live_on", "slow"):
            with self.assertRaisesRegex(gate.BadLine, name):
                gate.gate_names(TESTS, ["live"], [name])


    def test_a_name_is_that_of_one_test(self):
        with self.assertRaisesRegex(gate.BadLine, "parse"):
            gate.gate_names([*TESTS, test("parse", "store", "gate")], ["live"], [])

    def test_each_is_in_a_lane(self):
        with self.assertRaisesRegex(gate.BadLine, "far"):
            gate.gate_names([*TESTS, test("far", "fleet", "gate")], ["live"], [])

    def test_there_is_some(self):
        with self.assertRaises(gate.BadLine):
            gate.gate_names(TESTS, ["store"], [])


class Quarantine(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "quarantine")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return gate.read_quarantine(path)

    def test_a_line_has_a_name_two_dates_and_what_was_seen(self):
        (name, date, until, seen), = self.read("# a comment\n\n" + LINE)
        self.assertEqual((name, str(date), str(until)), ("live_one", "2026-11-20", "2026-12-01"))
        self.assertEqual(seen, "a wait of 3 s was missing")

    def test_bad_lines_are_refused(self):
        for line in ("live_one", "live_one 2026-11-20 2026-12-01", "live_one today 2026-12-01 why",
                     "live_one 2026-11-20 2026-11-19 why", "live_one 2026-11-20 2026-12-05 why"):
            with self.assertRaises(gate.BadLine):
                self.read(line + "\n")

    def test_it_has_five_lines_at_most(self):
        self.assertEqual(len(self.read(5 * LINE)), 5)
        with self.assertRaisesRegex(gate.BadLine, "6 lines"):
            self.read(6 * LINE)

    def test_the_one_in_the_tree_is_right(self):
        gate.read_quarantine()


# Leaves a process behind that ignores what it can, and says its pid.
ORPHAN = "trap '' HUP TERM; sleep 1000 >/dev/null & echo $!"

REAPER = f"""
import subprocess, sys
sys.path.insert(0, {os.path.dirname(gate.__file__)!r})
import gate
gate.LEFTOVER_SECONDS = 0
gate.set_up_process()
pid = int(subprocess.run(["sh", "-c", sys.argv[1]], stdout=subprocess.PIPE, check=True).stdout)
sys.exit(0 if gate.kill_leftovers() == {{pid}} else 1)
"""


class Leftovers(unittest.TestCase):
    def test_an_orphan_is_named_and_killed(self):
        done = subprocess.run([sys.executable, "-c", REAPER, ORPHAN], stdout=subprocess.PIPE, encoding="utf-8",
                              check=False)
        self.assertEqual(done.returncode, 0)
        pid = re.fullmatch(r"left behind by a test, killed: (\d+) sleep 1000\n", done.stdout)[1]
        self.assertFalse(os.path.exists(f"/proc/{pid}"))


class Lanes(unittest.TestCase):
    def test_a_lane_that_ends_by_an_exception_is_not_good(self):
        with unittest.mock.patch.object(gate, "names_of", lambda part, quarantined: ["a"]), \
                unittest.mock.patch.object(threading, "excepthook"):
            lane = gate.Lane([gate.Part("/dev/null", "gate", ("unit",), False)], [], 1, None)
            lane.start()
            lane.join()
        self.assertFalse(lane.is_good)


if __name__ == "__main__":
    unittest.main()
