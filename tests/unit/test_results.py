# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds tests/results.py to what it must not hide: failures, skips, and parts that tests leave out.
Usage: test_results.py TESTS_DIR
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))
import results
MAY_SKIP = """# a comment
live_one  this kernel
vm_6.1  no clock
"""


def result(name, outcome="OK", stdout="", stderr=""):
    return {"name": f"stackd:live / {name}", "result": outcome, "duration": 1.5, "stdout": stdout,
            "stderr": stderr}


class Results(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def write(self, name, text):
        path = os.path.join(self.dir.name, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def run_on(self, *entries, options=("--strict",)):
        """Returns the exit code and the lines printed for a log of these results."""
        log = self.write("log.json", "".join(json.dumps(one) + "\n" for one in entries))
        out, argv = io.StringIO(), sys.argv
        sys.argv = ["results.py", *options, self.write("may_skip", MAY_SKIP), log, "/nowhere/log.json"]
        with contextlib.redirect_stdout(out):
            code = results.main()
        sys.argv = argv
        return code, out.getvalue().splitlines()

    def test_all_passed(self):
        code, lines = self.run_on(result("a"), result("b", "EXPECTEDFAIL"))
        self.assertEqual((code, lines[-1]), (0, "2 passed, 0 failed, 0 skipped"))

    def test_a_failure_is_shown_and_fails(self):
        for outcome in ("FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"):
            code, lines = self.run_on(result("a"), result("b", outcome, "said\n", "why\n"))
            self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))
            self.assertIn(f"-- stackd:live / b: {outcome} after 2 s", lines)
            self.assertTrue({"said", "why"} <= set(lines))

    def test_a_test_without_a_result_has_failed(self):
        self.write("log.names", "live_one\nunheard\n")
        code, lines = self.run_on(result("live_one"))
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("-- unheard: NOT RUN after 0 s", lines)

    def test_notes_stand_before_the_last_line(self):
        code, lines = self.run_on(result("a"), options=("--note", "quarantined: b"))
        self.assertEqual((code, lines[-3]), (0, "quarantined: b"))

    def test_a_record_gets_a_line_with_what_failed(self):
        record = self.write("record", "# first\n")
        for entries in ((result("a"),), (result("a"), result("b", "FAIL"), result("c", "SKIP"))):
            self.run_on(*entries, options=("--record", record, "2026-11-26 abc live"))
        with open(record, encoding="utf-8") as f:
            self.assertEqual(f.read().splitlines(), [
                "# first",
                "2026-11-26 abc live 0 min: 1 passed, 0 failed, 0 skipped",
                "2026-11-26 abc live 0 min: 1 passed, 1 failed, 1 skipped b",
            ])

    def test_no_test_is_no_success(self):
        self.assertEqual(self.run_on()[0], 1)

    def test_a_skip_that_is_not_allowed_fails(self):
        skip = result("live_two", "SKIP", "skipped: this kernel cannot\n")
        code, lines = self.run_on(result("a"), skip)
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("live_two: FAILED, as it must not be skipped here: this kernel cannot", lines)
        code, lines = self.run_on(result("a"), skip, options=())
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("live_two: skipped: this kernel cannot", lines)

    def test_a_skip_is_allowed_by_name_and_reason(self):
        skip = result("live_one", "SKIP", "seed 3\nskipped: this kernel cannot\n")
        code, lines = self.run_on(result("a"), skip)
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 1 skipped"))
        other = result("live_one", "SKIP", "skipped: not this kernel\n")
        self.assertEqual(self.run_on(result("a"), other)[0], 1)

    def test_a_part_that_is_left_out_counts_as_a_skip(self):
        for text in ("left out: no java here\n", "no java here: left out\n",
                     "skipped: no java here\r\n",
                     "test_x (m.C.test_x) ... skipped 'no java here'\n"):
            code, lines = self.run_on(result("a"), result("b", stdout=text))
            self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"), text)
            self.assertTrue(any(line.startswith("b: FAILED, as it must not be left out here: ")
                                and line.endswith("no java here") for line in lines), lines)
            code, lines = self.run_on(result("a"), result("b", stdout=text), options=())
            self.assertEqual((code, lines[-1]), (0, "2 passed, 0 failed, 0 skipped"))

    def test_a_part_by_cmocka(self):
        text = "[  SKIPPED ] test_x\n[  PASSED  ] 3 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n"
        code, lines = self.run_on(result("b", stderr=f"{text}[  SKIPPED ] test_x\n"))
        self.assertEqual(code, 1)
        self.assertEqual(sum("test_x" in line for line in lines), 1)

    def test_a_machine(self):
        """Its test says what its own tests left out."""
        allowed = result("vm_6.1", stdout="== service\nskipped: no clock to wake it\n")
        self.assertEqual(self.run_on(allowed)[0], 0)
        self.assertEqual(self.run_on({**allowed, "name": "stackd:vm / vm_6.12"})[0], 1)

    def test_meson_itself_failed(self):
        code, lines = self.run_on(result("a"), options=("--code", "3"))
        self.assertEqual(code, 1)
        self.assertIn("meson test ended with code 3", lines)


if __name__ == "__main__":
    unittest.main(verbosity=2)
