# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that stackd-fleet --help, its settings and stackd-fleet(1) name the same verbs, options and
settings.

Usage: check_fleet.py STACKD_FLEET PAGE
"""

import re
import subprocess
import sys

FLEET, PAGE = sys.argv[1:]


def run(*words):
    return subprocess.run([FLEET, "-c", "/dev/null", *words], stdout=subprocess.PIPE, check=True,
                          encoding="utf-8").stdout


def tags(page, start, end):
    """Returns the words in the tagged lines of a part of the page."""
    part = page.split(f".SH {start}\n")[1].split(f".SH {end}\n")[0]
    return " ".join(re.findall(r"^\.TP\n(.*)$", part, re.M)).replace("\\-", "-")


def main():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    usage = run("--help")
    pairs = {
        "verbs": (re.findall(r"^  ([a-z]+) ", usage, re.M),
                  re.findall(r"\.B ([a-z]+)", tags(page, "VERBS", "OPTIONS"))),
        "options": (re.findall(r"^  (?:-\w,|   ) (--[a-z-]+)", usage, re.M),
                    re.findall(r"--[a-z-]+", tags(page, "OPTIONS", "SETTINGS"))),
        "settings": (re.findall(r"^#?([a-z_]+) =", run("--dump-config"), re.M),
                     re.findall(r"[a-z]\w+", tags(page, "SETTINGS", "WHAT IS SENT"))),
    }
    failed = False
    for what, (program, manual) in pairs.items():
        if not program or sorted(program) != sorted(manual):
            print(f"FAILED: {what}: the program has {sorted(program)}, the page {sorted(manual)}")
            failed = True
    for verb in pairs["verbs"][0]:
        if not re.search(rf"^(Usage:|      ) stackd-fleet \[OPTION\]\.\.\. {verb}", usage, re.M):
            print(f"FAILED: --help has no usage of {verb}")
            failed = True
    print(", ".join(f"{len(program)} {what}" for what, (program, _) in pairs.items()))
    sys.exit(failed)


main()
