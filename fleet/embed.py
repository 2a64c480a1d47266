#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes files of SQL as C strings, with their length unlimited by the compiler: embed.py OUT.c FILE.sql..."""
import os
import sys


def main():
    out, *files = sys.argv[1:]
    with open(out, 'w', encoding='ascii') as c:
        c.write('#include "fleet/base/schema.h"\n')
        for path in files:
            name = os.path.basename(path).removesuffix('.sql').replace('-', '_')
            with open(path, encoding='ascii') as text:
                data = text.read().encode() + b'\0'
            c.write(f'\nconst char sql_{name}[] = {{\n')
            for at in range(0, len(data), 20):
                c.write('\t' + ','.join(str(byte) for byte in data[at:at + 20]) + ',\n')
            c.write('};\n')


main()
