#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that comments and messages are in plain English: finds phrases that doc/style.md bans.

It cannot recognise good English. It finds habits that made comments hard to read: sentences without a
subject, and words that stand for any kind of communication.

Usage: check_prose.py SOURCE_ROOT [FOLDER...]
"""

import os
import re
import subprocess
import sys

# Phrases that are banned in comments, docstrings and strings, and what to write instead.
BANNED = {
    r"\btold\b": "reported, recorded, known",
    r"\bin (goes|go|comes?) [^.]*\bout (goes|go|comes?)\b": "Takes ..., returns ...",
    r"\bout comes?\b|\bout goes?\b": "returns",
    r"\b(comes?|goes?) out\b": "returns",
    r"\bso (many|much|often|long)( \w+)?(?=[.,;:)]|$)": "name the number",
    r"\bnobody's\b|\bsomebody's\b|\beverybody's\b": "name the owner",
    r"\bof no account\b|\bto be had\b|\bsays of\b": "a verb of its own",
}
# A comment must not begin with these words: it has no subject then, or hides it.
OPENINGS = re.compile(
    r"(Of|What|Whose|Who|Whoever|Whatever|Those|In go|In goes|In come|In comes|As|The same (of|for)|"
    r"None|Nothing|Nobody)\b(?! (is|are|was|were|has|have|can|must) )")
OPENING_IS_FINE = re.compile(r"(As (long|soon|far) as|As (\w+ ){1,8}(is|are|has|have|does|do)\b|"
                             r"Nothing (is|but)|Those (that|of|which) )")

C_COMMENT = re.compile(r"/\*(.*?)\*/|//([^\n]*)", re.DOTALL)
C_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
PY_COMMENT = re.compile(r'(?m)(?<!["\'])#(?!!)([^\n]*)|"""(.*?)"""', re.DOTALL)
FOLDERS = ("common", "bpf", "proto", "daemon", "client")


def comments(path, text):
    """Yields (line, words of one comment), joined where a comment goes over several lines."""
    pattern = PY_COMMENT if path.endswith(".py") else C_COMMENT
    for match in pattern.finditer(text):
        words = next(group for group in match.groups() if group is not None)
        words = re.sub(r"\s*\n\s*(\*|#)?\s*", " ", words).strip(" *\n")
        if words and "clang-format" not in words and "SPDX" not in words:
            yield text.count("\n", 0, match.start()) + 1, words


def strings(path, text):
    """Yields (line, string) of the literals of C sources: messages, help and log lines."""
    if path.endswith((".c", ".h")):
        bare = C_COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        for match in C_STRING.finditer(bare):
            yield bare.count("\n", 0, match.start()) + 1, match[0][1:-1]


def faults(words):
    for pattern, better in BANNED.items():
        match = re.search(pattern, words, re.IGNORECASE)
        if match:
            yield f"'{match[0]}' ({better})"


def check(root, path):
    found = []
    with open(os.path.join(root, path), encoding="utf-8") as source:
        text = source.read()
    for line, words in comments(path, text):
        found += [(line, fault, words) for fault in faults(words)]
        if OPENINGS.match(words) and not OPENING_IS_FINE.match(words):
            found.append((line, f"begins with '{words.split()[0]}' (a subject and a verb)", words))
    for line, words in strings(path, text):
        found += [(line, fault, words) for fault in faults(words)]
    for line, fault, words in sorted(found):
        print(f"{path}:{line}: {fault}: {words[:100]}")
    return len(found)


def main():
    root, folders = sys.argv[1], sys.argv[2:] or FOLDERS
    listed = subprocess.run(["find", *folders, "-name", "*.[ch]", "-o", "-name", "*.py"], cwd=root,
                            stdout=subprocess.PIPE, encoding="utf-8", check=True)
    paths = sorted(listed.stdout.split())
    n = sum(check(root, path) for path in paths)
    print(f"{len(paths)} files, {n} to mend")
    sys.exit(1 if n or not paths else 0)


main()
