# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that the source files of a room are layers: none calls, by way of others, a file that calls it. The
symbols of the built objects tell, so a call counts and an include does not.

Usage: check_circles.py BUILD_ROOT
"""

import glob
import os
import subprocess
import sys


def symbols(room):
    """Returns {file: (the symbols that it defines, those that it uses)} of the objects of a room."""
    files = {}
    objects = glob.glob(f"{room}/*.a.p/*.o")
    listed = subprocess.run(["nm", "-A", "-g", "--format=posix", *objects], check=True, capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        path, symbol, kind = line.split()[:3]
        defines, uses = files.setdefault(os.path.basename(path).removesuffix(".o:"), (set(), set()))
        (uses if kind == "U" else defines).add(symbol)
    return files


def reached(start, calls):
    """Returns the files that a file calls, itself or by way of others."""
    seen, left = set(), [start]
    while left:
        for callee in calls[left.pop()] - seen:
            seen.add(callee)
            left.append(callee)
    return seen


def circle(room):
    """Returns the calls inside circles of a room, a line each."""
    files = symbols(room)
    home = {symbol: name for name, (defines, _) in files.items() for symbol in defines}
    calls = {name: {home[s] for s in uses if s in home} - {name} for name, (_, uses) in files.items()}
    reach = {name: reached(name, calls) for name in files}
    return [f"{name} calls {callee}: " + " ".join(sorted(files[name][1] & files[callee][0]))
            for name in sorted(files) for callee in sorted(calls[name]) if name in reach[callee]]


os.chdir(sys.argv[1])
rooms = sorted(path for path in glob.glob("*/*") if glob.glob(f"{path}/*.a.p"))
failed = len(rooms) < 20
if failed:
    print(f"only {len(rooms)} rooms were found in {sys.argv[1]}")
for room in rooms:
    found = circle(room)
    if found:
        failed = True
        print(f"{room}: its files call each other in a circle:", *found, sep="\n  ")
sys.exit(failed)
