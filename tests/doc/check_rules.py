# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the rules of the tree: which rooms may include the headers of which others and of libraries,
the licence in the first line of every source file, clang-format, and headers that compile alone.

Usage: check_rules.py SOURCE_ROOT BUILD_ROOT
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys

# The rooms, lowest first. A file may include headers of its own room, of common/, and of the rooms that
# are named for its room here. These all come earlier in this list, so that there is no circle. Every
# room of the daemon may also include the headers in bpf/ that it shares with the BPF programs.
ROOMS = {
    "common": (),
    "bpf": (),
    "proto": (),
    "daemon/base": (),
    "daemon/host": ("daemon/base",),
    "daemon/holder": ("daemon/base", "daemon/host"),
    "daemon/config": ("daemon/base",),
    "daemon/broker": ("daemon/base", "daemon/host"),
    "daemon/elf": ("daemon/base", "daemon/host"),
    "daemon/symbol": ("daemon/base", "daemon/host", "daemon/elf"),
    "daemon/unwind": ("daemon/base", "daemon/elf"),
    "daemon/parse": ("daemon/base", "daemon/host", "daemon/elf", "daemon/symbol", "daemon/unwind"),
    "daemon/module": (
        "daemon/base", "daemon/host", "daemon/elf", "daemon/symbol", "daemon/unwind", "daemon/parse"),
    "daemon/process": (
        "daemon/base", "daemon/host", "daemon/symbol", "daemon/unwind", "daemon/parse",
        "daemon/module"),
    "daemon/probe": (
        "daemon/base", "daemon/host", "daemon/config", "daemon/broker", "daemon/elf", "daemon/symbol",
        "daemon/unwind", "daemon/parse", "daemon/process"),
    "daemon/window": ("daemon/base", "daemon/host", "daemon/symbol", "daemon/process"),
    "daemon/drain": (
        "daemon/base", "daemon/host", "daemon/config", "daemon/process", "daemon/probe",
        "daemon/window"),
    "daemon/store": ("daemon/base", "daemon/host", "daemon/process", "daemon/window"),
    "daemon/session": (
        "proto", "daemon/base", "daemon/host", "daemon/holder", "daemon/config", "daemon/broker",
        "daemon/symbol", "daemon/unwind", "daemon/parse", "daemon/process", "daemon/probe",
        "daemon/window", "daemon/drain", "daemon/store"),
    "daemon/query": (
        "proto", "daemon/base", "daemon/holder", "daemon/broker", "daemon/symbol", "daemon/parse",
        "daemon/process", "daemon/probe", "daemon/window", "daemon/drain", "daemon/store",
        "daemon/session"),
    "daemon/service": ("proto", "daemon/base", "daemon/query"),
    "daemon": (
        "daemon/base", "daemon/host", "daemon/holder", "daemon/config", "daemon/broker", "daemon/symbol",
        "daemon/parse", "daemon/session", "daemon/service"),
    "client/base": ("proto",),
    "client/render": ("proto", "client/base"),
    "client/report": ("proto", "client/base", "client/render"),
    "client/option": ("proto", "client/base", "client/render"),
    "client/debuginfod": ("client/base",),
    "client/call": (
        "proto", "client/base", "client/option", "client/render", "client/debuginfod"),
    "client/compat": ("proto", "client/base", "client/option", "client/render", "client/call"),
    "client/top": ("proto", "client/base", "client/option", "client/render", "client/call"),
    "client/verb": (
        "proto", "client/base", "client/option", "client/render", "client/call", "client/compat",
        "client/top", "client/report"),
    "client": (
        "client/base", "client/render", "client/call", "client/compat", "client/verb"),
    "fleet/base": ("proto", "daemon/base", "daemon/config"),
    "fleet/send": ("proto", "fleet/base"),
    "fleet/serve": (
        "proto", "daemon/base", "daemon/process", "daemon/window", "daemon/session", "daemon/query",
        "daemon/service", "fleet/base"),
    "fleet": ("daemon/base", "fleet/base", "fleet/send", "fleet/serve"),
}

# A pattern for the headers of each library, and the rooms that may include them.
DOORS = {
    r"bpf/|.*\.skel\.h|linux/bpf\.h": ("bpf", "daemon/probe", "daemon/drain"),
    r"curl/": ("fleet/base",),
    r"gcrypt\.h": ("fleet/base",),
    r"uv\.h": ("daemon/service",),
    r"json-c/|json\.h": ("proto",),
    r"elfutils/debuginfod\.h": ("client/debuginfod",),
    r"libelf\.h|gelf\.h|elfutils/(?!debuginfod)|dwarf\.h|libdw": (
        "daemon/elf", "daemon/symbol", "daemon/unwind"),
    r"lzma\.h": ("daemon/elf",),
    r"n?curses\.h": ("client/top",),
    r"libiberty/": ("common",),
    r"pcre2\.h": ("daemon/probe",),
    r"systemd/": ("daemon/base",),
    r"sqlite3": ("daemon/store",),
    r"zlib\.h": ("client/base", "fleet/base"),
    r"zstd": ("daemon/store", "daemon/symbol"),
}
# Types of the kernel, which clash with those of libc.
BPF_ONLY = ("bpf/kernel.h", "bpf/io_kernel.h")
# Tests may include every header.
EXEMPT = re.compile(r"tests/")

SPDX = "SPDX-License-Identifier: GPL-2.0-or-later"
SPDX_BPF = "SPDX-License-Identifier: GPL-2.0"
SOURCE = re.compile(r".*\.(c|h|def|py|sh|bt)|(.*/)?meson\.build|meson_options\.txt|bootstrap|\.ci/run")

failures = []


def fail(text):
    print(f"FAILED: {text}")
    failures.append(text)


def source_files(root):
    found = []
    for folder, folders, names in os.walk(root):
        # Build trees, hidden folders and caches hold no sources.
        folders[:] = [f for f in folders if not re.match(r"build(-[a-z]+)?$|\.(?!ci)|__pycache__", f)]
        paths = [os.path.relpath(os.path.join(folder, name), root) for name in names]
        found += [path for path in paths if SOURCE.fullmatch(path)]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def check_licence(path, text):
    lines = text.splitlines() or [""]
    first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
    if SPDX not in first and not (path.startswith("bpf/") and SPDX_BPF in first):
        fail(f"{path}: the first line is not '{SPDX}'")


def check_includes(path, text):
    """Checks each include of a file: those of this tree by ROOMS, those of libraries by DOORS."""
    if EXEMPT.match(path):
        return
    room = os.path.dirname(path)
    if room not in ROOMS:
        fail(f"{path}: {room} is not in ROOMS")
        return
    for header in re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)', text, re.MULTILINE):
        other = os.path.dirname(header)
        # Ours is what the source tree has or, for a generated header, the build.
        if other in ROOMS and any(os.path.exists(os.path.join(top, header)) for top in sys.argv[1:]):
            shared = ("common", "bpf") if room.startswith("daemon") else ("common",)
            if other != room and other not in ROOMS[room] + shared:
                fail(f"{path}: includes {header}, which {room} may not")
            continue
        for pattern, allowed in DOORS.items():
            if re.match(pattern, header) and room not in allowed:
                fail(f"{path}: includes {header}, which only {', '.join(allowed)} may")


def check_rooms():
    """Checks that ROOMS allows no circle, and that each of its rooms is a folder."""
    rooms = list(ROOMS)
    for room, uses in ROOMS.items():
        if not os.path.isdir(os.path.join(sys.argv[1], room)):
            fail(f"{room} is in ROOMS and is no folder")
        for other in uses:
            if rooms.index(other) >= rooms.index(room):
                fail(f"{room} may include {other}, which does not come before it in ROOMS")


def check_readme(root):
    """Holds the README's table of rooms to the folders."""
    table = re.search(r"^## Life of a sample\n(.*?)^## ", read(root, "README.md"), re.S | re.M)
    named = set(re.findall(r"`((?:daemon/)?\w+)/`", table[1] if table else ""))
    for room in ROOMS:
        if room not in named and not room.startswith(("client/", "fleet/")) and room != "daemon":
            fail(f"README.md: 'Life of a sample' does not name {room}/")
    for room in sorted(named - set(ROOMS)):
        fail(f"README.md: 'Life of a sample' names {room}/, which is no room")


def check_schema(root):
    """Checks that the command of stackd(8) that copies a damaged database gives the copy the present schema."""
    schema = re.search(r"STORE_SCHEMA = (\d+),", read(root, "daemon/store/db.h"))[1]
    if f"PRAGMA user_version = \\-{schema};" not in read(root, "man/stackd.8"):
        fail(f"man/stackd.8: the copy of a damaged database has another schema than {schema}")


def check_tests(root, build):
    """Checks that each test that tests/README.md names exists, and that each law has some in the gate."""
    with open(os.path.join(build, "meson-info/intro-tests.json"), encoding="utf-8") as f:
        tests = {test["name"]: test["suite"] for test in json.load(f)}
    laws = re.findall(r"^\| *(\d+)\. [^|]*\|([^|]*)\|$", read(root, "tests/README.md"), re.MULTILINE)
    if [law for law, _ in laws] != [str(n + 1) for n in range(10)]:
        fail(f"tests/README.md: its laws are {[law for law, _ in laws]}")
    for law, cell in laws:
        named = re.findall(r"`([\w.]+)`", cell)
        for name in named:
            if name not in tests:
                fail(f"tests/README.md: law {law} names {name}, which is no test")
        if not any(suite.endswith(":gate") for name in named for suite in tests.get(name, ())):
            fail(f"tests/README.md: law {law} has no test in the gate")


def check_format(root, paths):
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *paths], cwd=root,
                          stderr=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode != 0:
        fail(f"clang-format would change these:\n{done.stderr}")


def compile_alone(root, build, path):
    done = subprocess.run(
        ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Werror", "-x", "c",
         "-I", root, "-I", build, "-I", os.path.join(build, "bpf"), "-"],
        # The header is included twice, to test its guard, too.
        input=f'#include "{path}"\n#include "{path}"\n',
        stderr=subprocess.PIPE, encoding="utf-8", check=False)
    return path, done.returncode, done.stderr


def compile_bpf_alone(root, path):
    """Compiles a header of the programs in the kernel for their machine, included twice."""
    multiarch = subprocess.run(["cc", "-print-multiarch"], stdout=subprocess.PIPE, encoding="utf-8",
                               check=True).stdout.strip()
    done = subprocess.run(
        ["clang", "--target=bpf", "-mcpu=v3", "-O2", "-std=gnu11", "-fsyntax-only", "-Wall", "-Werror",
         "-Wno-unused-function", "-D__TARGET_ARCH_x86", "-idirafter", f"/usr/include/{multiarch}",
         "-I", root, "-x", "c", "-"],
        input=f'#include "{path}"\n#include "{path}"\n',
        stderr=subprocess.PIPE, encoding="utf-8", check=False)
    return path, done.returncode, done.stderr


def main():
    root, build = sys.argv[1:]
    paths = source_files(root)
    check_rooms()
    check_readme(root)
    check_schema(root)
    check_tests(root, build)
    for path in paths:
        text = read(root, path)
        check_licence(path, text)
        if path.endswith((".c", ".h")):
            check_includes(path, text)
    check_format(root, [p for p in paths if p.endswith((".c", ".h"))])
    headers = [p for p in paths if p.endswith(".h") and not p.endswith(".bpf.h") and
               p not in BPF_ONLY]
    bpf_headers = [p for p in paths if p.startswith("bpf/") and p.endswith(".h")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, code, err in pool.map(lambda p: compile_alone(root, build, p), headers):
            if code != 0:
                fail(f"{path}: does not compile alone:\n{err}")
        for path, code, err in pool.map(lambda p: compile_bpf_alone(root, p), bpf_headers):
            if code != 0:
                fail(f"{path}: does not compile alone for BPF:\n{err}")
    if len(paths) < 10 or not headers:
        fail(f"found only {len(paths)} sources and {len(headers)} headers under {root}")
    print(f"{len(paths)} files, {len(headers) + len(bpf_headers)} headers checked")
    sys.exit(1 if failures else 0)


main()
