# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs every example of stackctl's help and of the man pages against a stand-in for the daemon. Run with:
STACKCTL SOURCE_ROOT."""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest

import double
from rows import ROWS, snapshot

STACKCTL, ROOT = os.path.abspath(sys.argv[1]), sys.argv[2]
os.environ["SYSTEMD_PAGER"] = ""


def help_of(*words):
    return subprocess.run([STACKCTL, "help", *words], stdout=subprocess.PIPE, check=True, text=True).stdout


def verbs():
    return re.findall(r"^  (\w+)", help_of().split("\nVerbs\n")[1].split("\n\n")[0], re.M)


def examples_of_help():
    """Returns the commands of help: whole ones, and those made of a verb and a group's example."""
    found = re.findall(r"^  .*?  stackctl (.*)$", help_of(), re.M)
    for verb in verbs():
        text = help_of(verb)
        found += re.findall(r"^  stackctl (\S.*?)(?:  .*)?$", text, re.M)
        found += [f"{verb} {words(verb, example)} {example}"
                  for example in re.findall(r"^\S.*, as in (-.*)$", text, re.M)]
    return found


def words(verb, example):
    """Returns the arguments without which a verb does nothing, with a probe for which the example is."""
    probe = "iolat" if "--disk" in example else "offwake" if "--chain" in example else "offcpu"
    return {"start": probe, "record": f"{probe} --duration 1s", "watch": probe, "snoop": "vfs_read --duration 1s",
            "stop": "1", "snapshot": probe, "probes": "--functions 'vfs_*'", "report": "-o x.html",
            "help": "status"}.get(verb, "")


def examples_of_man():
    """Returns the commands of the man pages, each of which is a line of its own."""
    found = []
    for name in ("stackctl.1", "stackd.8", "stackd.conf.5.in"):
        with open(f"{ROOT}/man/{name}", encoding="utf-8") as file:
            text = file.read().replace("\\-", "-").replace("\\(aq", "'")
        found += re.findall(r"^(?:\.B |\.BR \"|# |\$ |)stackctl (\S[^\"\n]*)", text, re.M)
    # A verb alone is a mention.
    return [command for command in found if command == "stuck" or (" " in command and command[0] != "-")]


class Examples(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.daemon = double.Double(self.directory.name + "/sock")
        answer = {"parameters": snapshot(ROWS[:2], shown={"rows": 2, "total_ns": 1})}
        self.daemon.replies["Snapshot"] = lambda asked: (
            [answer, answer] if asked.get("ranges") else [answer])

    def tearDown(self):
        self.daemon.close()
        self.directory.cleanup()

    def check_accepted(self, command):
        """Runs an example. The stand-in answers only Snapshot, and hangs up on other calls, so that the
        exit code is 0 or 7 for a command that stackctl has accepted, and 1 for one it has refused."""
        # Neither the directory nor the daemon or the gateway of an example is there.
        line = re.split(r" [|>] ", command)[0].replace("/var/log/offcpu/", "./")
        arguments = [word for word in shlex.split(line) if word != "--fleet"]
        while "-S" in arguments:
            at = arguments.index("-S")
            del arguments[at:at + 2]
        done = subprocess.run([STACKCTL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.directory.name, timeout=double.HANG,
                              env={**os.environ, "STACKD_SOCKET": self.directory.name + "/sock"})
        err = done.stderr.decode()
        codes = (1,) if arguments[0] == "top" else (0, 5, 7, 9)
        self.assertIn(done.returncode, codes, f"stackctl {command}: {err}")
        if arguments[0] == "top":
            self.assertIn("terminal", err)
        self.assertNotIn(done.returncode, (-signal.SIGABRT, -signal.SIGSEGV))

    def test_help(self):
        found = examples_of_help()
        self.assertGreater(len(found), 60)
        for command in found:
            with self.subTest(command):
                self.check_accepted(command)

    def test_man(self):
        found = examples_of_man()
        self.assertGreaterEqual(len(found), 10)
        for command in found:
            with self.subTest(command):
                self.check_accepted(command)

    def test_a_wrong_example_is_found(self):
        for command in ("snapshot offcpu --no-such", "stuck --window 5x", "nonsense"):
            with self.assertRaises(AssertionError):
                self.check_accepted(command)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
