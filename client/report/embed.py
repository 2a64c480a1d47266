#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the page of reports as two C strings, what is in front of its data and what is behind it:
embed.py OUT.c report.html report.css model.js flame.js ... The style and the scripts go into the page
in the order of the arguments. A browser runs only those: the page's policy has their hashes."""
import base64
import hashlib
import sys


def source(text):
    """Returns a quoted hash, as Content-Security-Policy has it."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def read(path):
    with open(path, encoding='ascii') as file:
        text = file.read()
    if '</' in text and not path.endswith('.html'):
        sys.exit(f'{path}: has "</", which could end the element that it is put into')
    return '\n' + text


def c_bytes(name, text):
    lines = [f'const char {name}[] = {{']
    data = text.encode('ascii') + b'\0'
    for at in range(0, len(data), 20):
        lines.append('\t' + ','.join(str(byte) for byte in data[at:at + 20]) + ',')
    return '\n'.join(lines + ['};', ''])


def main():
    out, html, *files = sys.argv[1:]
    styles = [read(path) for path in files if path.endswith('.css')]
    scripts = [read(path) for path in files if path.endswith('.js')]
    with open(html, encoding='ascii') as file:
        page = file.read()
    policy = (f"default-src 'none'; style-src {' '.join(map(source, styles))}; "
              f"script-src {' '.join(map(source, scripts))}; base-uri 'none'; form-action 'none'")
    for mark, text in (('@POLICY@', policy),
                       ('@STYLE@', ''.join(f'<style>{text}</style>' for text in styles)),
                       ('@SCRIPT@', ''.join(f'<script>{text}</script>\n' for text in scripts))):
        if page.count(mark) != 1:
            sys.exit(f'{html}: has to have {mark} once')
        page = page.replace(mark, text)
    head, tail = page.split('@DATA@')
    with open(out, 'w', encoding='ascii') as c:
        c.write('#include "client/report/embedded.h"\n\n')
        c.write(c_bytes('page_head', head) + '\n' + c_bytes('page_tail', tail))


main()
