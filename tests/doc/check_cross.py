# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the client, common/ and proto/ for aarch64, with warnings as errors: there char is unsigned
and other things have other sizes. It is not linked, so no library of that machine is needed; their
headers are those of this machine. Skips (77) where the C library's headers for aarch64 are not there.

Usage: check_cross.py BUILD_ROOT
"""

import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

INCLUDE = os.environ.get("CROSS_INCLUDE", "/usr/aarch64-linux-gnu/include")
ROOMS = ("client/", "common/", "proto/")
HOST_INCLUDE = ("/usr/include", "/usr/include/x86_64-linux-gnu")


def commands_of(build):
    """Returns (source, the words of its command) of each file of these rooms, each once."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    return {c["file"]: shlex.split(c["command"]) for c in commands
            if c["file"].removeprefix("../").startswith(ROOMS)}


def kept(words):
    """Returns the options of a command that say how a file is compiled, not where to."""
    options = []
    for word in words[1:-1]:
        if word.startswith(("-I", "-D", "-W", "-std=", "-f")) and "sanitize" not in word:
            options.append(word)
    return options


def compile_one(build, source, words):
    """Returns what the compiler has to say."""
    with tempfile.TemporaryDirectory() as out:
        argv = ["clang", "--target=aarch64-linux-gnu", "-O2", *kept(words), "-Werror",
                "-Wno-unknown-warning-option", "-isystem", INCLUDE,
                *(f"-idirafter{path}" for path in HOST_INCLUDE), "-c", source, "-o", f"{out}/object"]
        done = subprocess.run(argv, cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              encoding="utf-8", check=False)
    return "" if done.returncode == 0 else f"{source}:\n{done.stdout}"


def main():
    build = sys.argv[1]
    if not os.path.exists(os.path.join(INCLUDE, "stdio.h")) or not shutil.which("clang"):
        print("skipped: needs clang and libc6-dev-arm64-cross")
        return 77
    commands = commands_of(build)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = list(filter(None, pool.map(lambda item: compile_one(build, *item),
                                            commands.items())))
    print("\n".join(errors))
    print(f"{len(commands)} files, {len(errors)} do not compile")
    return 1 if errors or len(commands) < 50 else 0


sys.exit(main())
