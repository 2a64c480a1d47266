# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that tests/stress.py counts right, and that its loads and its test end with it, however it ends.
Usage: test_stress.py TESTS_DIR
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, sys.argv.pop(1))
import stress

HANG_SECONDS = 120

# The loads that need no root, and the one that starts others.
PROFILES = [name for name in stress.LOADS if name != "freeze"] + ([] if os.geteuid() else ["freeze", "noisy"])


def run(is_good=True, seconds=1.0, *margins):
    return stress.Run(is_good, seconds, list(margins))


class Arithmetic(unittest.TestCase):
    def test_the_bound_is_that_of_tables(self):
        # Without a failure it is 1 - 0.05^(1/n); the others are from tables of Clopper and Pearson.
        for failed, runs, rate in ((0, 1, 0.95), (0, 40, 0.0722), (1, 10, 0.3942), (2, 20, 0.2826), (5, 5, 1)):
            self.assertAlmostEqual(stress.upper_bound(failed, runs), rate, places=4)

    def test_a_row_has_the_worst_wait_of_all_runs(self):
        is_good, line = stress.summarize("one", [run(True, 3, (0.1, "a cut"), (0.4, "the end")), run(True, 1),
                                                 run(True, 2, (0.3, "a map"))])
        self.assertTrue(is_good)
        self.assertRegex(line, r"^one +3 +0 +63\.2% +2\.0 +3\.0 +0\.400  the end$")

    def test_a_failure_or_half_of_a_deadline_is_bad(self):
        self.assertFalse(stress.summarize("one", [run(), run(False)])[0])
        self.assertFalse(stress.summarize("one", [run(True, 1, (0.5, "a cut"))])[0])
        self.assertTrue(stress.summarize("one", [run(True, 1, (0.49, "a cut"))])[0])


def wait_until(condition):
    until = time.monotonic() + HANG_SECONDS
    while not (value := condition()):
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.01)
    return value


def processes():
    """Returns {pid: pid of the parent} of the processes that have not ended."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                found[int(pid)] = int(parent)
    return found


def below(pid):
    """Returns the processes that this one has started, and those which they have."""
    parents, found = processes(), {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


class Build(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = directory.name
        os.mkdir(os.path.join(self.path, "meson-info"))
        self.set_test("true")

    def set_test(self, script):
        test = {"name": "one", "cmd": ["sh", "-c", script], "env": {"WORD": "said"}, "workdir": None,
                "suite": ["stackd:live", "stackd:gate"], "timeout": HANG_SECONDS}
        with open(os.path.join(self.path, "meson-info/intro-tests.json"), "w", encoding="utf-8") as file:
            json.dump([test, {**test, "name": "two", "cmd": ["true"]}, {**test, "name": "other", "suite": []}], file)

    def start(self, *args):
        process = subprocess.Popen([sys.executable, stress.__file__, "-C", self.path, *args], encoding="utf-8",
                                   env={**os.environ, "TMPDIR": self.path},
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def finish(self, *args):
        process = self.start("--profile", "idle", *args)
        output = process.communicate()[0]
        return process.returncode, output


class Runs(Build):
    def test_the_tests_of_the_gate_run_in_rounds(self):
        code, output = self.finish("-n", "3")
        self.assertEqual(code, 0, output)
        self.assertEqual(re.findall(r"^(\w+) +(\d+) +(\d+) ", output, re.M), [("one", "3", "0"), ("two", "3", "0")])
        self.assertEqual(os.listdir(os.path.join(self.path, "meson-logs/stress")), [])

    def test_the_log_of_a_run_that_fails_is_kept(self):
        self.set_test("echo $WORD; exit 3")
        code, output = self.finish("-n", "1", "one")
        self.assertEqual(code, 1, output)
        path = re.search(r"^FAILED: one, run 1: (.*)$", output, re.M)[1]
        with open(path, encoding="utf-8") as log:
            self.assertEqual(log.read(), "said\n\nexit code: 3\n")

    def test_margins_are_those_of_the_harness(self):
        self.set_test("echo 0.0100 a cut >> $STACKD_MARGINS; echo 0.6000 the very end >> $STACKD_MARGINS")
        code, output = self.finish("-n", "1", "one")
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"\none .* 0\.600  the very end\n")

    def test_names_are_those_of_tests(self):
        code, output = self.finish("on")
        self.assertEqual(code, 2)
        self.assertIn("no test is called on;", output)


class Ends(Build):
    def check_end(self, profile, number):
        """Sends the signal once the load and the test run; all that it has started must end then."""
        self.set_test("touch begun; exec sleep 1000")
        stress_process = self.start("--profile", profile, "one")
        wait_until(lambda: os.path.exists(os.path.join(self.path, "begun")))
        # The test, and at least one process of the load; noisy is one that starts others.
        least = 3 if profile == "noisy" else 1 + stress.LOADS[profile][1]
        started = wait_until(lambda: len(found := below(stress_process.pid)) >= least and found)
        stress_process.send_signal(number)
        stress_process.wait()
        wait_until(lambda: not started & processes().keys())

    def test_loads_end_when_it_is_killed(self):
        for profile in PROFILES:
            with self.subTest(profile):
                self.check_end(profile, signal.SIGKILL)

    def test_loads_end_when_it_is_interrupted(self):
        self.check_end(PROFILES[-1], signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
