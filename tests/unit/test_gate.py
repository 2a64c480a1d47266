# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds tests/gate.py to its rules: what is in the gate, and what a line of the quarantine may say.
Usage: test_gate.py TESTS_DIR
"""

import os
import sys
import tempfile
import unittest

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


if __name__ == "__main__":
    unittest.main()
