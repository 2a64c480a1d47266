# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds tests/gate.py to its rules: what is in the gate, and what a line of the quarantine may say.
Usage: test_gate.py TESTS_DIR
"""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
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
# The child is the shell until it executes sleep.
ORPHAN = """trap '' HUP TERM; sleep 1000 >/dev/null &
until read name </proc/$!/comm && [ "$name" = sleep ]; do :; done; echo $!"""

REAPER = f"""
import subprocess, sys
sys.path.insert(0, {os.path.dirname(gate.__file__)!r})
import gate
gate.LEFTOVER_SECONDS = 0
gate.set_up_process()
pid = int(subprocess.run(["sh", "-c", sys.argv[1]], stdout=subprocess.PIPE, check=True).stdout)
sys.exit(0 if gate.kill_leftovers() == {{pid}} else 1)
"""


def make(path):
    """Makes a map of code, or a directory."""
    if path.endswith("map"):
        with open(path, "w", encoding="ascii"):
            pass
    else:
        os.mkdir(path)


def ended_pid():
    with subprocess.Popen(["true"]) as process:
        return process.pid


@contextlib.contextmanager
def sleeper():
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            yield process
        finally:
            process.kill()


def said_by(function, *args):
    """Returns what the function returns, and what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        return function(*args), output.getvalue()


class Leftovers(unittest.TestCase):
    def test_an_orphan_is_named_and_killed(self):
        done = subprocess.run([sys.executable, "-c", REAPER, ORPHAN], stdout=subprocess.PIPE, encoding="utf-8",
                              check=False)
        self.assertEqual(done.returncode, 0)
        pid = re.fullmatch(r"left behind by a test, killed: (\d+) sleep 1000\n", done.stdout)[1]
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_descendants_are_own(self):
        # The shell says the pid of its child, and waits for it.
        with subprocess.Popen(["sh", "-c", "sleep 1000 >/dev/null & echo $!; wait"], stdout=subprocess.PIPE,
                              encoding="utf-8") as process:
            child = int(process.stdout.readline())
            found = gate.descendants()
            os.kill(child, signal.SIGKILL)
        self.assertLessEqual({process.pid, child}, found)
        self.assertNotIn(os.getpid(), found)
        self.assertNotIn(os.getppid(), found)

    def test_maps_and_groups_of_own_processes_are_named_and_removed(self):
        with tempfile.TemporaryDirectory() as directory, sleeper() as own, \
                unittest.mock.patch.object(gate, "mark_directories", lambda: kinds):
            kinds = [(directory, gate.PERF_MAP), (directory, gate.CGROUP)]
            names = [f"perf-{own.pid}.map", f"stackd-moves-{own.pid}-a", f"stackd-test-{own.pid}"]
            others = ["stackd-test", f"stackd-test-{os.getppid()}", f"stackd-test-{own.pid}x"]
            for name in [*names, f"stackd-test-{own.pid}/inner", *others]:
                make(os.path.join(directory, name))
            seen = {}
            gate.note_marks(seen)
            self.assertEqual(set(seen.values()), {own.pid})
            alive, said = said_by(gate.remove_marks, seen)
            self.assertEqual((alive, said), ([], ""))
            own.kill()
            own.wait()
            left, said = said_by(gate.remove_marks, seen)
            paths = [os.path.join(directory, name) for name in names]
            self.assertEqual(sorted(left), paths)
            words = [f"left behind by a test, removed: {path}" for path in paths]
            self.assertEqual(sorted(said.splitlines()), words)
            self.assertEqual(sorted(os.listdir(directory)), sorted(others))

    def test_what_is_older_than_the_process_is_not_its_own(self):
        with tempfile.NamedTemporaryFile() as older:
            time.sleep(0.5)
            with sleeper() as process, tempfile.NamedTemporaryFile() as younger:
                found = [gate.is_younger(file.name, process.pid) for file in (older, younger)]
            self.assertEqual(found, [False, True])
            self.assertFalse(gate.is_younger(older.name, process.pid))

    def test_maps_and_groups_are_looked_for_where_they_are(self):
        places = dict(gate.mark_directories())
        self.assertIs(places["/tmp"], gate.PERF_MAP)
        if os.path.exists("/sys/fs/cgroup/cgroup.procs"):
            self.assertIs(places["/sys/fs/cgroup"], gate.CGROUP)

    def test_a_group_that_is_in_use_is_named(self):
        pid = ended_pid()
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, f"stackd-test-{pid}")
            os.mkdir(path)
            make(os.path.join(path, "a.map"))
            left, said = said_by(gate.remove_marks, {path: pid})
            self.assertEqual(left, [path])
            self.assertRegex(said, f"^left behind by a test, cannot be removed: .*{path}")

    @unittest.skipIf(os.geteuid(), "only root may mount")
    def test_mounts_are_named_and_taken_away_the_last_one_first(self):
        with tempfile.TemporaryDirectory() as directory:
            # A name that begins with the own one is that of another gate.
            others, own = os.path.join(directory, "gate 10"), os.path.join(directory, "gate 1")
            paths = [os.path.join(others, "disk"), os.path.join(own, "disk"), os.path.join(own, "disk/inner")]
            self.addCleanup(subprocess.run, ["umount", "-q", paths[0]], check=False)
            for path in paths:
                os.makedirs(path)
                if subprocess.run(["mount", "-t", "tmpfs", "none", path], check=False).returncode:
                    self.skipTest("this host refuses a mount")
            left, said = said_by(gate.unmount_below, own)
            self.assertEqual(left, paths[:0:-1])
            self.assertEqual(said.splitlines(), [f"left behind by a test, unmounted: {path}" for path in left])
            self.assertEqual([os.path.ismount(path) for path in paths[:2]], [True, False])
            subprocess.run(["umount", paths[0]], check=True)

    def test_the_directory_of_a_gate_that_was_killed_is_removed(self):
        ended = ended_pid()
        with tempfile.TemporaryDirectory() as directory, \
                unittest.mock.patch.object(gate, "DIRECTORY", os.path.join(directory, "gate.{}.")):
            for pid in (os.getpid(), ended):
                os.makedirs(gate.DIRECTORY.format(pid) + "x/y")
            os.symlink(tempfile.gettempdir(), gate.DIRECTORY.format(ended) + "link")
            own = gate.directory_lock(gate.DIRECTORY.format(os.getpid()) + "x")
            self.addCleanup(os.close, own)
            gate.remove_old_directories()
            self.assertEqual(sorted(os.listdir(directory)),
                             sorted([f"gate.{os.getpid()}.x", f"gate.{ended}.link"]))

    def test_a_link_is_removed_as_such(self):
        with tempfile.TemporaryDirectory() as directory:
            link, kept = os.path.join(directory, "perf-1.map"), os.path.join(directory, "real/empty")
            os.makedirs(kept)
            os.symlink(os.path.dirname(kept), link)
            gate.remove(link)
            self.assertEqual((os.path.lexists(link), os.path.isdir(kept)), (False, True))


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
