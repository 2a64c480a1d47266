# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that every man page renders without warnings, and that no line is longer than 80 columns.

Usage: check_man.py PAGE...
"""

import os
import re
import shutil
import subprocess
import sys

SKIP = 77
COLUMNS = 80

failures = []


def fail(text):
    print(f"FAILED: {text}")
    failures.append(text)


def check_page(path):
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-P-c", f"-rLL={COLUMNS - 2}n", path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode != 0 or done.stderr.strip():
        fail(f"{path}: {done.stderr.strip()}")
    text = re.sub(".\b", "", done.stdout)
    if not re.search(r"^NAME$", text, re.MULTILINE):
        fail(f"{path}: rendered without a NAME section")
    for line in text.splitlines():
        if len(line) > COLUMNS:
            fail(f"{path}: wider than {COLUMNS} columns: {line.strip()!r}")


def main():
    pages = sys.argv[1:]
    if not shutil.which("groff"):
        print("skipped: needs groff (Debian: groff-base)")
        sys.exit(SKIP)
    for page in pages:
        check_page(page)
    names = sorted(os.path.basename(page) for page in pages)
    if names not in (["stackctl.1", "stackd-fleet.1", "stackd.8", "stackd.conf.5"],
                     ["stackctl.1", "stackd.8", "stackd.conf.5"]):
        fail(f"the pages are {names}")
    print(f"{len(pages)} pages checked: {', '.join(names)}")
    sys.exit(1 if failures else 0)


main()
