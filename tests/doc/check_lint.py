# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs linters over the tree: shellcheck over shell scripts, pyflakes3 over Python, codespell over all
text. Skips (77) where one of them is not installed.

Usage: check_lint.py SOURCE_ROOT
"""

import os
import re
import shutil
import subprocess
import sys

# Words that are right here: a file system, misspelled input of tests, and a word that a screen shortens.
WORDS = ("msdos", "lenght", "ser", "nin", "longe")

# Folders of builds and of inputs that are no text.
LEFT_OUT = re.compile(r"(^|/)(\.|build|corpus)")

TEXTS = (".c", ".h", ".md", ".py", ".sh", ".1", ".5", ".8", ".in", ".def", ".build", ".varlink", ".cc")


def files_of(root):
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not LEFT_OUT.search(name)]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


def is_shell(root, path):
    with open(os.path.join(root, path), "rb") as f:
        return re.match(rb"#!(/bin/(ba)?sh|/usr/bin/env (ba)?sh)\b", f.readline()) is not None


def findings(root, argv, paths, kept=lambda line: True):
    """Returns the lines that a linter prints about these files."""
    done = subprocess.run([*argv, *paths], cwd=root, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    lines = [line for line in done.stdout.splitlines() if line.strip() and kept(line)]
    if done.returncode not in (0, 1, 65):  # codespell: 65 for findings
        lines.append(f"{argv[0]} ended with {done.returncode}")
    return lines


def is_no_star(line):
    """True if a line is not about `from harness import *`, by which the live tests have its names."""
    return "import *" not in line and "from star imports" not in line


def main():
    root = sys.argv[1]
    missing = [tool for tool in ("shellcheck", "pyflakes3", "codespell") if not shutil.which(tool)]
    if missing:
        print(f"skipped: needs {' '.join(missing)}")
        return 77
    paths = files_of(root)
    shell = [".ci/run", *(path for path in paths if is_shell(root, path))]
    python = [path for path in paths if path.endswith(".py")]
    texts = [path for path in paths if path.endswith(TEXTS)]
    print(f"{len(shell)} scripts, {len(python)} Python files, {len(texts)} texts")
    lines = findings(root, ["shellcheck"], shell)
    lines += findings(root, ["pyflakes3"], python, is_no_star)
    lines += findings(root, ["codespell", "-L", ",".join(WORDS)], texts)
    print("\n".join(lines))
    return 1 if lines or not shell or not python else 0


sys.exit(main())
