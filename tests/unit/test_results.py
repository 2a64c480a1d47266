# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds tests/results.py to what it must not hide: failures, skips, parts that tests leave out, and estimates
without a verdict; and holds the harness of the live tests to when an estimate has none.
Usage: test_results.py TESTS_DIR
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
import unittest.mock

TESTS = sys.argv.pop(1)
sys.path[:0] = [TESTS, os.path.join(TESTS, "live")]
import harness
import noise
import results
MAY_SKIP = """# a comment
live_one  this kernel
vm_system  suspend: no clock
"""
MACHINE = """== install
test: install passed in 9 s
== unit hook
{hook}
test: unit hook {end}
== reboot
test: reboot reboots in 5 s
== reboot, phase 1
test: reboot passed in 7 s
test: install passed in 9 s
test: unit hook {end}
test: reboot passed in 7 s
test: remove not run
machine: linux-image-6.1.0-56-cloud-amd64_6.1.192-2, 9 s of CPU time in 60 s: 1 failed
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
        allowed = result("vm_system", stdout="== unit suspend\nskipped: no clock to wake it\n")
        self.assertEqual(self.run_on(allowed)[0], 0)
        self.assertEqual(self.run_on({**allowed, "name": "stackd:vm / vm_kernel_6.12"})[0], 1)
        other = {**allowed, "stdout": allowed["stdout"].replace("suspend", "hook")}
        code, lines = self.run_on(other)
        self.assertEqual(code, 1)
        self.assertIn("vm_system: FAILED, as it must not be left out here: hook: no clock to wake it", lines)

    def test_each_test_of_a_machine_is_named(self):
        record = self.write("record", "")
        text = MACHINE.format(hook="FAILED: a hook", end="FAILED (1) in 3 s")
        code, lines = self.run_on(result("vm_system", "FAIL", stdout=text),
                                  options=("--record", record, "2026-11-26 abc machines"))
        self.assertEqual(code, 1)
        at = lines.index("vm_system: install passed in 9 s")
        self.assertEqual(lines[at:at + 5], [
            "vm_system: install passed in 9 s", "vm_system: hook FAILED (1) in 3 s",
            "vm_system: reboot passed in 7 s", "vm_system: remove not run",
            "vm_system with linux-image-6.1.0-56-cloud-amd64_6.1.192-2, 9 s of CPU time in 60 s: "
            "2 passed; 1 failed: hook; 1 not run: remove"])
        with open(record, encoding="utf-8") as f:
            self.assertEqual(f.read(), "2026-11-26 abc machines 0 min: 0 passed, 1 failed, 0 skipped vm_system(hook)\n")

    def test_a_skip_in_a_machine_is_named(self):
        text = MACHINE.format(hook="skipped: no clock", end="skipped in 3 s").replace("remove not run", "remove passed in 1 s")
        lines = self.run_on(result("vm_system", stdout=text), options=())[1]
        self.assertIn("vm_system: left out: hook: no clock", lines)
        self.assertIn("vm_system with linux-image-6.1.0-56-cloud-amd64_6.1.192-2, 9 s of CPU time in 60 s: "
                      "3 passed; 0 failed; 1 skipped: hook", lines)

    def test_lines_of_other_tests_are_theirs(self):
        lines = self.run_on(result("a", stdout=MACHINE.format(hook="", end="FAILED")))[1]
        self.assertEqual([line for line in lines if "hook" in line], [])

    def test_no_verdict_is_neither(self):
        text = "ok: a\nno verdict: b is c (others used 43 % of the CPUs, steal 2 %)\n1 estimates have no verdict\n"
        record = self.write("record", "")
        for outcome in ("SKIP", "OK"):
            for options in ((), ("--strict",), ("--record", record, "abc live")):
                code, lines = self.run_on(result("a"), result("b", outcome, text), options=options)
                self.assertEqual((code, lines[-1]), (3, "1 passed, 0 failed, 0 skipped, 1 without verdict"))
                self.assertIn("b: no verdict: b is c (others used 43 % of the CPUs, steal 2 %)", lines)
        with open(record, encoding="utf-8") as f:
            self.assertTrue(f.readline().endswith(" 1 without verdict b (no verdict: b is c "
                                                  "(others used 43 % of the CPUs, steal 2 %))\n"))
        self.assertEqual(self.run_on(result("b", "SKIP", text))[0], 3)
        self.assertEqual(self.run_on(result("b", "SKIP", text), result("c", "FAIL"))[0], 1)
        code, lines = self.run_on(result("b", "SKIP", f"left out: no java here\n{text}"))
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))
        code, lines = self.run_on(result("b", "FAIL", text))
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))

    def test_a_whole_run_has_only_skips_that_are_allowed(self):
        allowed = result("live_one", "SKIP", "skipped: this kernel cannot\n")
        other = result("live_two", "SKIP", "skipped: this kernel cannot\n")
        self.assertEqual(self.run_on(result("a"), allowed, options=("--whole",))[0], 0)
        code, lines = self.run_on(result("a"), other, options=("--whole",))
        self.assertEqual((code, lines[-1]), (3, "1 passed, 0 failed, 1 skipped"))
        self.assertEqual(self.run_on(result("a"), other, result("b", "FAIL"), options=("--whole",))[0], 1)

    def test_meson_itself_failed(self):
        code, lines = self.run_on(result("a"), options=("--code", "3"))
        self.assertEqual(code, 1)
        self.assertIn("meson test ended with code 3", lines)


class Estimates(unittest.TestCase):
    """Each estimate has one of three results."""

    def setUp(self):
        self.kept = harness._noise, harness._failures, harness._no_verdicts
        harness._noise, harness._failures, harness._no_verdicts = noise.Noise(), [], []
        harness._noise.note = lambda: None

    def tearDown(self):
        harness._noise, harness._failures, harness._no_verdicts = self.kept

    def result_of(self, taken, function, *args):
        """Returns "ok", "FAILED" or "no verdict" of an estimate where others took this part of one CPU."""
        harness._noise.others, out = taken / os.cpu_count(), io.StringIO()
        with contextlib.redirect_stdout(out):
            function(*args, "text")
        return out.getvalue().partition(":")[0]

    def test_within_its_bound_is_good_on_any_host(self):
        for taken in (0, 0.5, 2):
            self.assertEqual(self.result_of(taken, harness.check_near, 104, 100, 0.05), "ok")
            self.assertEqual(self.result_of(taken, harness.estimate, True), "ok")

    def test_out_of_its_bound_fails_on_a_quiet_host(self):
        for function, *args in ((harness.check_near, 106, 100, 0.05), (harness.estimate_most, 11, 10),
                                (harness.estimate_least, 9, 10), (harness.estimate, False)):
            self.assertEqual(self.result_of(noise.QUIET * os.cpu_count() * 0.9, function, *args), "FAILED")
            self.assertEqual(self.result_of(0.5, function, *args), "no verdict")
        self.assertIn("others used", harness._no_verdicts[0])

    def test_what_noise_cannot_cause_fails(self):
        """Half of a CPU that is taken stretches to twice the time, and however much, to MOST times; two accounts
        of one time are never MOST_APART."""
        for taken, most in ((0.5, 2), (os.cpu_count(), noise.MOST)):
            for off, expected in ((most * 0.99, "no verdict"), (most * 1.01, "FAILED")):
                self.assertEqual(self.result_of(taken, harness.estimate_most, 10 * off, 10), expected)
                self.assertEqual(self.result_of(taken, harness.estimate_least, 10 / off, 10), expected)
            for value, expected in ((6.7, "no verdict"), (-14.9, "no verdict"), (6.6, "FAILED"), (-15.1, "FAILED")):
                bound = 10 if value > 0 else -10
                self.assertEqual(self.result_of(taken, harness.check_near, value, bound, 0), expected)
            for value in (0, -10):
                self.assertEqual(self.result_of(taken, harness.check_near, value, 10, 0.1), "FAILED")

    def test_an_event_has_no_third_result(self):
        self.assertEqual(self.result_of(2, harness.check, False), "FAILED")
        self.assertEqual(self.result_of(2, harness.check_sum, 9, 10, 0.05), "FAILED")

    def test_the_exit_code_tells_them_apart(self):
        for failures, unsure, code in (([], [], 0), ([], ["a"], harness.SKIP), (["b"], ["a"], 1)):
            harness._failures, harness._no_verdicts = failures, unsure
            with self.assertRaises(SystemExit) as end, contextlib.redirect_stdout(io.StringIO()):
                harness.finish()
            self.assertEqual(end.exception.code, code)

    def test_noise_is_what_others_use(self):
        table = {1: (0, 5), 10: (1, 30), 11: (10, 20), 12: (1, 70), 13: (11, 7), 14: (99, 1), 20: (1, 400)}
        with unittest.mock.patch("noise.processes", lambda: table):
            own = noise.Noise()
            own.roots, own.own, own.sum = {10, 20}, 0, 0
            self.assertEqual(own.own_ticks(), 457)
            # The parent of 13 has ended, and init has waited for it: 13 is still the test's.
            table = {1: (0, 25), 10: (1, 31), 13: (1, 9), 20: (1, 400)}
            self.assertEqual(own.own_ticks(), 457)
            table[13] = (1, 19)
            self.assertEqual(own.own_ticks(), 467)

    def test_the_worst_stretch_counts(self):
        cpus, tick, one = os.cpu_count(), noise.TICKS, noise.Noise()
        one.last = (-9, 0, 0)
        for reading in ((0, 0, 0), (2, cpus * tick, 0), (4, cpus * tick, 0.2 * cpus * tick)):
            with unittest.mock.patch.object(one, "read", lambda: reading), \
                    unittest.mock.patch("time.monotonic", lambda: reading[0]):
                one.note()
        self.assertEqual(one.words(), "others used 50 % of the CPUs, steal 0 %")


if __name__ == "__main__":
    unittest.main(verbosity=2)
