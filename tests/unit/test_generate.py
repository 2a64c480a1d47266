# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds proto/generate.py to refuse, by file and line, a definition that it cannot write in C.

Usage: test_generate.py GENERATE.PY
"""

import os
import subprocess
import sys
import tempfile

GOOD = """# What the file is about.

interface io.test

type Time (ns: int, text: string)

# A comment of a type.
type Thing (at: ?Time, names: []string)

type Box (size: int, thing: Thing, last: ?Thing)

method Get(id: int) -> (things: []Thing, flag: ?bool)

error Gone (what: string, message: string)
"""

# A line that is appended, and the message that follows the line number.
BAD = (
    ("type Other (member: Missing)", "type Missing is not defined above"),
    ("type Other (member: []bool)", "no list of bool can be written in C"),
    ("type Other (member: []Time)", "no list of Time can be written in C"),
    ("type Other (member int)", "expected ':', found 'int'"),
    ("type Other (member: int;)", "cannot read"),
    ("error Other (a: string, b: string)", "struct wire_error cannot hold the parameters of Other"),
    ("error Other (a: Thing)", "struct wire_error cannot hold the parameters of Other"),
    ("wrong Other (a: int)", "expected type, method or error, found 'wrong'"),
    ("method Snapshot() -> (a: int)\nmethod Follow() -> (b: int)", "Follow does not reply as Snapshot"),
)


def generate(folder, text):
    path = os.path.join(folder, "test.varlink")
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    done = subprocess.run(
        [sys.executable, sys.argv[1], os.path.join(folder, "wire.h"), os.path.join(folder, "wire.c"),
         path], stderr=subprocess.PIPE, encoding="utf-8", check=False)
    return done.returncode, done.stderr


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        code, err = generate(folder, GOOD)
        with open(os.path.join(folder, "wire.h"), encoding="ascii") as file:
            header = file.read()
        for part in ("int64_t at; /* optional time */", "struct wire_things things;",
                     "int flag; /* optional */", " * A comment of a type.", "ERROR_GONE,",
                     "struct wire_thing wire_thing_absent(void)\n{\n\treturn (struct wire_thing){\n"
                     "\t\t.at = WIRE_ABSENT,\n\t};\n}",
                     "struct wire_box wire_box_absent(void)\n{\n\treturn (struct wire_box){\n"
                     "\t\t.thing = wire_thing_absent(),\n\t};\n}"):
            if code != 0 or part not in header:
                failures += 1
                print(f"FAILED: {part!r} is not in the header {err}")
        if "What the file is about" in header:
            failures += 1
            print("FAILED: a comment that stands apart is copied")
        for line, message in BAD:
            code, err = generate(folder, GOOD + line + "\n")
            if code == 0 or message not in err or "test.varlink:" not in err:
                failures += 1
                print(f"FAILED: {line!r}: exit {code}, {err!r}")
    print(f"{len(BAD)} bad definitions tried")
    sys.exit(1 if failures else 0)


main()
