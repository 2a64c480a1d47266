# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernel a test machine gets, of those in the cache and in an archive, and that the lack of one is no
failure. Usage: test_machine.py TESTS_DIR
"""

import contextlib
import io
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(sys.argv.pop(1), "vm"))
import machine
import run

NAME = "linux-image-6.1.0-{}-cloud-amd64"
OTHERS = ["linux-image-6.1.0-99-amd64", "linux-image-6.1.0-99-cloud-amd64-dbg",
          "linux-image-6.12.117+deb12-cloud-amd64"]


class Archive:
    """Takes the place of machine.command(): packages that apt knows, and those that it can download."""

    def __init__(self, known, there, after_update=None):
        self.known, self.there, self.after_update, self.calls = known, there, after_update, []

    def __call__(self, argv, cwd=None, **_):
        self.calls.append(argv[1])
        if argv[1] == "search":
            return "".join(f"{name} - Linux\n" for name in [*OTHERS, *map(NAME.format, self.known)]).encode()
        if argv[1] == "show":
            return f"Version: 6.1.{argv[-1].split('-')[3]}-1\n".encode()
        if argv[1] == "update":
            if self.after_update is None:
                raise machine.MachineError("apt-get update: exit 100: noise\nE: no route to the archive\nmore")
            self.known = self.there = self.after_update
        if argv[1] == "download":
            if not any(argv[-1].startswith(NAME.format(number) + "=") for number in self.there):
                raise machine.MachineError("apt-get download: exit 100: E: 404  Not Found")
            with open(os.path.join(cwd, "kernel.deb"), "w", encoding="ascii"):
                pass
        if argv[1] == "-x":
            os.mkdir(argv[-1])
        return b""


class Kernels(unittest.TestCase):
    def setUp(self):
        cache = tempfile.TemporaryDirectory()
        self.addCleanup(cache.cleanup)
        self.enterContext(mock.patch.dict(os.environ, STACKD_CACHE=cache.name))
        self.enterContext(contextlib.redirect_stdout(io.StringIO()))

    def kernel(self, archive, **kwargs):
        """Returns the name of the kernel that a machine gets with this archive."""
        with mock.patch.object(machine, "command", archive):
            return os.path.basename(machine.kernel("6.1", **kwargs))

    def test_the_newest_by_number(self):
        self.assertEqual(self.kernel(Archive([9, 56, 100], [9, 56, 100])), f"{NAME.format(100)}_6.1.100-1")

    def test_a_cache_spares_the_archive(self):
        self.kernel(Archive([53], [53]))
        archive = Archive([53, 54], [53, 54])
        self.assertEqual(self.kernel(archive), f"{NAME.format(53)}_6.1.53-1")
        self.assertEqual(archive.calls, [])
        self.assertEqual(self.kernel(archive, is_fresh=True), f"{NAME.format(54)}_6.1.54-1")
        self.assertEqual(self.kernel(Archive([], [])), f"{NAME.format(54)}_6.1.54-1")

    def test_one_that_is_gone_is_replaced_by_the_next(self):
        archive = Archive([52, 53, 54], [52, 53])
        self.assertEqual(self.kernel(archive), f"{NAME.format(53)}_6.1.53-1")
        self.assertNotIn("update", archive.calls)

    def test_old_lists_are_renewed(self):
        self.assertEqual(self.kernel(Archive([53], [], after_update=[60])), f"{NAME.format(60)}_6.1.60-1")
        self.assertEqual(self.kernel(Archive([60], [60], after_update=[60, 61]), is_fresh=True),
                         f"{NAME.format(61)}_6.1.61-1")
        self.assertEqual(self.kernel(Archive([], []), is_fresh=True), f"{NAME.format(61)}_6.1.61-1")

    def test_none_is_not_run_with_one_line(self):
        for archive, cause in (Archive([], []), "no route to the archive"), (Archive([54], []), "404  Not Found"):
            with self.assertRaises(machine.NotRun) as caught:
                self.kernel(archive)
            self.assertIn(cause, str(caught.exception))
            self.assertEqual(len(str(caught.exception).splitlines()), 1)


class Cache(unittest.TestCase):
    def directory(self, uid, **environment):
        with mock.patch.dict(os.environ, environment, clear=True), mock.patch("os.geteuid", lambda: uid):
            return machine.cache_dir()

    def test_where_it_is(self):
        self.assertEqual(self.directory(0), "/var/cache/stackd-test")
        self.assertEqual(self.directory(0, XDG_CACHE_HOME="/x"), "/var/cache/stackd-test")
        self.assertEqual(self.directory(1000, XDG_CACHE_HOME="/x"), "/x/stackd-test")
        self.assertEqual(self.directory(1000, XDG_CACHE_HOME="/x", STACKD_CACHE="/y"), "/y")


class Outcomes(unittest.TestCase):
    def test_each_test_gets_a_line(self):
        console = ("== install\ntest: install passed in 9 s\n== reboot\ntest: reboot reboots in 5 s\n"
                   "== reboot, phase 1\ntest: reboot FAILED (1) in 7 s\n== unit hook\nKernel panic\n")
        self.assertEqual(run.outcomes(console, ("install", "reboot", "unit hook", "remove")), [
            "test: install passed in 9 s", "test: reboot FAILED (1) in 7 s",
            "test: unit hook FAILED (no end)", "test: remove not run"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
