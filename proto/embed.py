#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the definition files as C strings: embed.py OUT.c FILE.varlink..."""
import os
import sys


def c_string(line):
    escaped = line.replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n')
    return f'\t"{escaped}"'


def main():
    out, *files = sys.argv[1:]
    with open(out, 'w', encoding='ascii') as c:
        c.write('#include "proto/varlink.h"\n')
        for path in files:
            name = os.path.basename(path).removesuffix('.varlink').replace('.', '_')
            with open(path, encoding='ascii') as definition:
                text = '\n'.join(c_string(line) for line in definition)
            c.write(f'\nconst char interface_{name}[] =\n{text};\n')


main()
