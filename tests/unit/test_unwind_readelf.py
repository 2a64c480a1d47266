#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""test_unwind_readelf.py UNWIND_DUMP [FILE|DIRECTORY]...

Compares unwind rows with readelf, which reads the same call frame information, at random addresses
in functions of ELF files. Without arguments it takes a sample of the files that every Debian has.
"""

import bisect
import os
import random
import re
import shutil
import subprocess
import sys

SAMPLE = (
    "/usr/bin/bash", "/usr/bin/perl", "/usr/bin/env", "/usr/bin/python3",
    "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
)
PLACES = 2000  # addresses compared in each file
ENTRY = re.compile(r"^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ (CIE|FDE)\b")


def readelf_functions(path):
    """Returns [(start, end, [(pc, columns)], is_signal)] as readelf interprets them."""
    done = subprocess.Popen(["readelf", "--debug-dump=frames-interp", path],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            encoding="latin-1")
    functions, cies, rows, names = [], {}, [], []
    section = ""
    for line in done.stdout:
        line = line.rstrip()
        if line.startswith("Contents of the"):
            section = line
            continue
        if ENTRY.match(line):
            words = line.split()
            rows, names = [], []
            if words[3] == "CIE":
                cies[section, words[0]] = rows, "S" in (words[4] if len(words) > 4 else "")
            else:
                cie = line.split("cie=")[1].split()[0]
                start, end = (int(n, 16) for n in line.split("pc=")[1].split(".."))
                default, is_signal = cies.get((section, cie), ([], False))
                functions.append((start, end, rows, default, is_signal))
        elif line.lstrip().startswith("LOC"):
            names = line.split()[1:]
        elif names and re.match(r"[0-9a-f]{16} ", line):
            words = line.replace(" (", "(").split()  # "r9 (r9)": in register r9
            rows.append((int(words[0], 16), dict(zip(names, words[1:]))))
    done.wait()
    return functions


def our_rows(dump, path):
    done = subprocess.run([dump, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          encoding="ascii", check=False)
    if done.returncode == 3:
        return None
    if done.returncode:
        raise RuntimeError(f"{path}: unwind_dump: exit {done.returncode}")
    rows = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return [int(pc, 16) for pc, _ in rows], [text for _, text in rows]


def bx_words(column):
    """Returns where the caller's rbx is, in words below the CFA."""
    if column in ("u", "s"):
        return 0
    offset = -int(column[1:]) if column[0] == "c" else -1
    return offset // 8 if 0 < offset < 8 * 255 and not offset % 8 else 255


def agrees(columns, is_signal, ours):
    """True if one of our rows says the same as readelf's columns."""
    kind = ours.split()[0]
    cfa, bp, pc = columns.get("CFA"), columns.get("rbp", "u"), columns.get("ra", "u")
    if is_signal and cfa == "exp":
        return kind == "signal"
    if pc == "u":
        return kind == "end"
    if columns.get("rsp", "u") not in ("u", "s"):  # where the CFA is not the caller's sp
        return kind == "invalid"
    if kind in ("plain", "rule") and ours.split()[-1] != f"bx{bx_words(columns.get('rbx', 'u'))}":
        return False
    if kind == "plain":
        _, our_cfa, our_bp, _ = ours.split()
        if our_bp == "c+0":
            return cfa == our_cfa and pc == "c-8" and bp in ("u", "s")
        return cfa == our_cfa and pc == "c-8" and bp == our_bp
    if kind == "plt":
        return cfa == "exp"
    if kind == "rule":
        words = ours.split()
        if words[1] == "exp" and cfa != "exp":
            return False
        bp_kind = {"u": "0", "s": "0", "exp": "25", "vexp": "4"}.get(bp, "1" if bp[0] == "c" else "4")
        if words[4][0] not in bp_kind or (bp_kind == "1" and words[4][1:] != bp[1:]):
            return False
        return words[6][0] == ("1" if pc[0] == "c" else "3")
    # A row without a rule is fine only if readelf shows an expression.
    return kind == "invalid" and ("exp" in (cfa, bp, pc) or "vexp" in (cfa, bp, pc))


def agrees_in_go(columns, ours):
    """True if a row agrees for Go code. Its .debug_frame says the same about sp as Go's own table,
    but nothing about bp, nor where the runtime changes stacks: our rows are not plain there."""
    words = ours.split()
    if words[0] == "plain":
        return words[1] == columns["CFA"] and words[2] in ("c-16", "c+0") and columns["ra"] == "c-8"
    return words[0] in ("end", "invalid", "signal", "switch")


def is_go(path):
    done = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE, encoding="latin-1",
                          stderr=subprocess.DEVNULL, check=False)
    return ".gopclntab " in done.stdout


def is_context_start(path, text, start):
    """True at the code of libc to which functions that makecontext() starts return. libc's
    information says that this code has a caller."""
    if text != "end" or not os.path.basename(path).startswith("libc"):
        return False
    with open(path, "rb") as file:
        file.seek(start)  # the beginning of libc is mapped at its offset
        return file.read(11) == bytes.fromhex("4889dc488b3c244885ff74")


def compare(dump, path):
    """Returns (addresses compared, wrong ones, number without a rule)."""
    ours = our_rows(dump, path)
    if not ours:
        return 0, [], 0
    in_go = is_go(path)
    functions = readelf_functions(path)
    starts = {}
    for function in functions:  # the first of equal functions counts
        starts.setdefault(function[0], function)
    order = sorted(starts)
    wrong, invalid, n = [], 0, 0
    for _ in range(PLACES if order else 0):
        i = random.randrange(len(order))
        start, end, rows, default, is_signal = starts[order[i]]
        at = random.randrange(start, end)
        if i + 1 < len(order) and at >= order[i + 1]:
            continue  # the next function begins before this one ends
        j = bisect.bisect_right([pc for pc, _ in rows], at) - 1
        if j >= 0:
            columns = rows[j][1]
        elif default:
            columns = default[-1][1]
        else:
            continue
        k = bisect.bisect_right(ours[0], at) - 1
        text = ours[1][k] if k >= 0 else "none"
        n += 1
        if in_go and agrees_in_go(columns, text):
            invalid += not text.startswith("plain")
        elif not agrees(columns, is_signal, text) and not is_context_start(path, text, start):
            wrong.append(f"{path}: at {at:#x} readelf has {columns}, we {text}")
        elif text == "invalid":
            invalid += 1
    return n, wrong, invalid


def elf_files(paths):
    seen = set()
    for top in paths:
        for folder, _, names in os.walk(top) if os.path.isdir(top) else [("", [], [top])]:
            for name in names:
                path = os.path.realpath(os.path.join(folder, name))
                if path in seen or not os.path.isfile(path):
                    continue
                seen.add(path)
                with open(path, "rb") as f:
                    head = f.read(20)
                if head[:5] == b"\x7fELF\x02" and head[16] in (2, 3) and head[18] == 62:
                    yield path


def main():
    dump, paths = sys.argv[1], sys.argv[2:]
    if not shutil.which("readelf"):
        print("skipped: needs readelf")
        sys.exit(77)
    seed = random.randrange(1 << 32)
    random.seed(seed)
    print(f"seed {seed}")
    files = places = invalid = 0
    wrong = []
    for path in elf_files(paths or SAMPLE):
        n, bad, unknown = compare(dump, path)
        files += n > 0
        places += n
        invalid += unknown
        wrong += bad
        if bad:
            print("\n".join(bad[:3]), flush=True)
    print(f"{files} files, {places} places, {len(wrong)} wrong, {invalid} without a rule")
    sys.exit(1 if wrong or not places else 0)


main()
