# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that stackctl --help, stackctl(1) and the bash completion name the same verbs and options, and
that stackctl(1) names every field of a snapshot.

Usage: check_stackctl.py STACKCTL SOURCE_ROOT
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

STACKCTL, ROOT = sys.argv[1], sys.argv[2]


def run(*words):
    return subprocess.run([STACKCTL, *words], stdout=subprocess.PIPE, check=True, text=True).stdout


def read(path):
    with open(f"{ROOT}/{path}", encoding="utf-8") as file:
        return file.read()


def verbs():
    return re.findall(r"^  ([A-Za-z]+) ", run("help").split("\n\nVerbs\n")[1].split("\n\n")[0], re.M)


def options_of_help(verb):
    """Returns {long option: its letter or ''} of the help of a verb."""
    found = re.findall(r"^  (?:-(\w),|   ) --([a-z-]+)", run("help", verb), re.M)
    return {name: letter for letter, name in found}


def options_of_man():
    text = read("man/stackctl.1").split(".SH OPTIONS")[1].split(".SH TIMES")[0]
    tagged = "\n".join(re.findall(r"^\.TP\n(.*)$", text, re.M)).replace("\\-", "-")
    tagged = re.sub(r'"|\\f\w', "", tagged)
    found = re.findall(r"^\.\w+ (?:-(\w) *, *)?--([a-z-]+)", tagged, re.M)
    return {name: letter for letter, name in found}


def completion(verb, word):
    return complete(*([verb] if verb else []), word)


def complete(*words, program=STACKCTL):
    """Returns the words that bash offers to complete the last of these words after stackctl."""
    line = [program, *words]
    script = f"""
_init_completion() {{ cur={line[-1]!r} prev={line[-2]!r} cword={len(words)} split=false
words=({" ".join(repr(w) for w in line)}); }}
source {ROOT}/client/stackctl.bash
_stackctl
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    out = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, check=True, text=True)
    return set(out.stdout.split())


class Documents(unittest.TestCase):
    def test_verbs(self):
        text = read("man/stackctl.1").split(".SH VERBS")[1].split(".SH OPTIONS")[0]
        tagged = re.findall(r"^\.TP\n\.\w+ ([A-Za-z]+)", text, re.M)
        self.assertEqual(sorted(tagged), sorted(verbs()))
        self.assertEqual(completion("help", ""), set(verbs()))
        self.assertLessEqual(set(verbs()), completion("", ""))

    def test_help_fits_a_terminal(self):
        for words in [["--help"], *(["help", verb] for verb in verbs())]:
            wide = [line for line in run(*words).splitlines() if len(line) > 80]
            self.assertEqual(wide, [], words)

    def test_options_are_where_they_apply(self):
        for verb in ("stuck", "snoop"):
            self.assertFalse({"layer", "chain", "breakdown"} & set(options_of_help(verb)), verb)
        for verb in ("snapshot", "record", "watch"):
            self.assertLessEqual({"layer", "chain", "breakdown"}, set(options_of_help(verb)), verb)
        # A stream never ends, so --strict and --output cannot apply, and it cannot ask for lines.
        once = {"strict", "lines", "output", "build-ids", "debuginfod", "debuginfod-timeout"}
        self.assertFalse(once & set(options_of_help("watch")))
        for verb in ("snapshot", "stuck", "record"):
            self.assertLessEqual(once, set(options_of_help(verb)), verb)

    def test_man_has_the_options_of_help(self):
        help_options = {}
        for verb in verbs():
            help_options.update(options_of_help(verb))
        self.assertGreater(len(help_options), 30)
        self.assertEqual(options_of_man(), help_options)

    def test_completion_runs_no_word(self):
        # Whoever makes control groups chooses their names.
        with tempfile.TemporaryDirectory() as directory:
            words = [f"$(touch {directory}/a)", f"`touch {directory}/b`", "plain;name"]
            script = f'''
source {ROOT}/client/stackctl.bash
cur=
_stackctl_complete {" ".join(shlex.quote(w) for w in words)}
printf '%s\\n' "${{COMPREPLY[@]}}"
eval "set -- ${{COMPREPLY[*]}}"
printf '%s\\n' "$@"
'''
            out = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, check=True, text=True)
            self.assertEqual(out.stdout.splitlines()[len(words):], words)
            self.assertEqual(os.listdir(directory), [])

    def test_completion_has_the_options_of_help(self):
        for verb in verbs():
            if verb == "help":
                continue
            options = options_of_help(verb)
            want = {f"--{name}" for name in options} | {f"-{c}" for c in options.values() if c}
            # The verbs of bcc and libbpf-tools also have options with only a letter or only a name.
            want |= set(re.findall(r"^  (-\w|--[a-z-]+) ", run("help", verb), re.M))
            self.assertGreater(len(want), 2, verb)
            self.assertEqual(completion(verb, "-"), want, verb)
        self.assertLessEqual({"-S", "--socket", "--help", "--version"}, completion("", "-"))

    def test_completion_without_its_package(self):
        script = f"""
source {ROOT}/client/stackctl.bash
COMP_WORDS=({STACKCTL} snapshot --sort '') COMP_CWORD=3
_stackctl
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        done = subprocess.run(["bash", "--norc", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "LC_ALL": "C"}, check=True, text=True)
        self.assertEqual((set(done.stdout.split()), done.stderr), ({"total", "max", "count", "bytes"}, ""))

    def test_completion_knows_values(self):
        text = re.sub(r"\|\n +", "|", run("help", "snapshot"))
        for option in ("format", "sort", "by"):
            values = set(re.search(rf"--{option} (\S+\|\S+)", text)[1].split("|"))
            self.assertEqual(complete("snapshot", f"--{option}", ""), values)

    def test_completion_of_other_values(self):
        self.assertEqual(complete("record", "oncpu", "--event", "c"), {"cpu-clock", "cycles"})
        self.assertEqual(complete("snapshot", "-n", ""), set())
        self.assertEqual(complete("snapshot", "--comm", ""), set())
        self.assertEqual(complete("stackcount", "-i", ""), set())
        self.assertIn("offcpu", complete("snapshot", "--idle", ""))
        self.assertIn("iolat", complete("record", ""))

    def test_completion_knows_the_reasons(self):
        reasons = re.findall(r'X\(\w+,\s*"([^"]+)"',
                             read("common/wait_reason.h").replace("\\\n", " "))
        self.assertGreater(len(reasons), 60)
        self.assertEqual(complete("snapshot", "--reason", ""), set(reasons))
        self.assertEqual(complete("stuck", "--not-reason", "flo"), {"flock"})

    def test_completion_knows_the_sessions(self):
        listed = """\
1          offcpu, of root, since 2026-11-22 14:36:00.000 UTC, always
           on
101        oncpu, mine, of root, since 2026-11-22 14:36:00.000 UTC
           ended 2026-11-22 14:37:00.000 UTC
102        stackcount, of root, since 2026-11-22 14:38:00.000 UTC
           vfs_*: 3 functions, 2 calls
"""
        with tempfile.TemporaryDirectory() as directory:
            path = f"{directory}/stackctl"
            with open(path, "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\n[ $1 = sessions ] || exec {shlex.quote(os.path.abspath(STACKCTL))} \"$@\"\n"
                           f"cat <<'END'\n{listed}END\n")
            os.chmod(path, 0o755)
            self.assertEqual(complete("stop", "", program=path), {"102"})
            self.assertEqual(complete("snapshot", "10", program=path), {"101", "102"})
            self.assertIn("offcpu", complete("windows", "", program=path))

    def test_man_has_the_fields_of_a_snapshot(self):
        interface = read("proto/io.stackd.varlink")
        body = interface.split("method Snapshot(")[1].split("->")[1]
        names = set(re.findall(r"(\w+):", body[:body.index("\n)")]))
        for kind in ("Coverage", "Gap", "Lost", "Totals", "Rest", "Row", "Process", "Stack",
                     "Frame", "Source", "Time", "Range"):
            names |= set(re.findall(r"(\w+):", re.search(rf"type {kind} \((.*?)\)\n\n",
                                                         interface + "\n\n", re.S)[1]))
        text = read("man/stackctl.1").split(".SH JSON OUTPUT")[1].split(".SH EXIT STATUS")[0]
        bold = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"^\.BR? (.*)$", text, re.M))))
        self.assertGreater(len(names), 50)
        self.assertEqual(names - bold, set())

    def test_flags_are_those_of_the_daemon(self):
        names = re.search(r"stack_flag_names\[\] = \{(.*?)\n\};", read("daemon/query/answer_stacks.c"),
                          re.S)[1]
        flags = set(re.findall(r'"(\w+)"', names))
        text = re.search(r"known to be wrong with it: (.*?)\.\n", read("man/stackctl.1"), re.S)[1]
        self.assertEqual(set(re.split(r",\s+|\s+and\s+", text)), flags)
        words = re.search(r"flag_words\[\] = \{(.*?)\n\};", read("client/render/frames.c"), re.S)[1]
        self.assertEqual(set(re.findall(r'\{ "(\w+)"', words)), flags)

    def test_man_has_the_reasons(self):
        rows = dict(re.findall(r'X\(\w+,\s*"([^"]+)",\s*(?:"([^"]*)"|NULL)\)',
                               read("common/wait_reason.h").replace("\\\n", " ")))
        table = read("man/stackctl.1").split(".SH REASONS")[1].split("\n.SH")[0]
        table = table.replace("\\-", "-").replace("\\(aq", "'")
        man = re.findall(r"^\.TP\n\.B (\S+)\n(.*)$", table, re.M)
        self.assertGreater(len(rows), 60)
        man = {word: text.rstrip(".") for word, text in man}
        self.assertEqual({word: text.lower() for word, text in man.items() if rows.get(word)},
                         {word: text.lower() for word, text in rows.items() if text})
        self.assertEqual(set(man), set(rows))

    def test_exit_codes(self):
        header = read("client/base/exit_code.h")
        codes = set(re.findall(r"= (\d),", header))
        text = read("man/stackctl.1").split(".SH EXIT STATUS")[1].split(".SH")[0]
        self.assertEqual(set(re.findall(r"^\.B (\d)$", text, re.M)), codes)

    def test_man_page_is_well_formed(self):
        out = subprocess.run(["groff", "-man", "-Tutf8", "-ww", f"{ROOT}/man/stackctl.1"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        self.assertEqual(out.stderr, b"")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
