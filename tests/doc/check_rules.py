# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules of the tree: one door for each library, a licence line first in every source file, and
headers that compile alone.

Usage: check_rules.py SOURCE_ROOT BUILD_ROOT
"""

import concurrent.futures
import os
import re
import subprocess
import sys

# What a header's name looks like, and the files that may include it.
DOORS = {
    r"bpf/|.*\.skel\.h": r"bpf/.*|daemon/(probe|drain)[^/]*",
    r"linux/bpf\.h": r"bpf/.*|daemon/(probe|drain)[^/]*",
    r"uv\.h": r"daemon/(loop|server)[^/]*",
    r"json-c/|json\.h": r"proto/[^/]*",
    r"libelf\.h|gelf\.h|elfutils/|dwarf\.h|libdw": r"daemon/(elf|sym|unwind|module)[^/]*",
    r"lzma\.h": r"daemon/elf_debug[^/]*",
    r"systemd/": r"daemon/(log|notify)[^/]*",
    r"sqlite3|zstd": r"daemon/store[^/]*",
}
# Tests may use what they test with.
EXEMPT = re.compile(r"tests/")

SPDX = "SPDX-License-Identifier: GPL-2.0-or-later"
SPDX_BPF = "SPDX-License-Identifier: GPL-2.0"
SOURCE = re.compile(r".*\.(c|h|py|sh|bt)|(.*/)?meson\.build|meson_options\.txt|bootstrap|\.ci/run")

failures = []


def fail(text):
    print(f"FAILED: {text}")
    failures.append(text)


def source_files(root):
    found = []
    for folder, folders, names in os.walk(root):
        # Build trees, hidden ones, and test fixtures are not sources.
        folders[:] = [f for f in folders if not re.match(r"build|\.(?!ci)|__pycache__", f)]
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


def check_doors(path, text):
    if EXEMPT.match(path):
        return
    for header in re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)', text, re.MULTILINE):
        for pattern, allowed in DOORS.items():
            ours = header.startswith("bpf/") and os.path.exists(os.path.join(sys.argv[1], header))
            if re.match(pattern, header) and not ours and not re.fullmatch(allowed, path):
                fail(f"{path}: includes {header}, which only {allowed} may")


def compile_alone(root, build, path):
    done = subprocess.run(
        ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Werror", "-x", "c",
         "-I", root, "-I", build, "-I", os.path.join(build, "bpf"), "-"],
        # Included twice: the guard is tested too.
        input=f'#include "{path}"\n#include "{path}"\n',
        stderr=subprocess.PIPE, encoding="utf-8", check=False)
    return path, done.returncode, done.stderr


def main():
    root, build = sys.argv[1:]
    paths = source_files(root)
    for path in paths:
        text = read(root, path)
        check_licence(path, text)
        if path.endswith((".c", ".h")):
            check_doors(path, text)
    # What is under bpf/ is compiled for the kernel's machine, by its own build.
    headers = [p for p in paths if p.endswith(".h") and not re.match(r"bpf/(?!shared)", p)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, code, err in pool.map(lambda p: compile_alone(root, build, p), headers):
            if code != 0:
                fail(f"{path}: does not compile alone:\n{err}")
    if len(paths) < 10 or not headers:
        fail(f"found only {len(paths)} sources and {len(headers)} headers under {root}")
    print(f"{len(paths)} files, {len(headers)} headers checked")
    sys.exit(1 if failures else 0)


main()
