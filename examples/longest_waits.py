#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints which programs waited the longest in the last 30 seconds, and in which function.

Shows how to ask stackd without stackctl and without a library: a call of Varlink is one JSON object
and a zero byte, on a Unix socket, and so is each reply. proto/io.stackd.varlink documents every
member. Usage: longest_waits.py [SOCKET], as root or a member of the group stackd."""

import json
import socket
import sys


def call(path, method, **parameters):
    """Calls one method; returns the members of its reply."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        request = {"method": f"io.stackd.{method}", "parameters": parameters}
        connection.sendall(json.dumps(request).encode() + b"\0")
        reply = b""
        while not reply.endswith(b"\0"):
            piece = connection.recv(65536)
            if not piece:
                sys.exit("stackd closed the connection")
            reply += piece
    reply = json.loads(reply[:-1])
    if "error" in reply:
        sys.exit(f"{reply['error']}: {reply['parameters']}")
    return reply["parameters"]


answer = call(sys.argv[1] if len(sys.argv) > 1 else "/run/stackd/stackd.sock", "Snapshot",
              probe="offcpu", window_ns=30 * 10**9, sort="max", top=10, groups=True)
for row in answer["rows"]:
    print(f"{row['max_ns'] / 1e6:10.1f} ms  {row['process']['comm']:16} {row.get('reason', '-'):12} "
          f"{row.get('function', '-')}")
for gap in answer["coverage"]["gaps"]:
    print(f"not covered: {gap['start']['text']} to {gap['end']['text']}: {gap['reason']}")
for lost in answer["lost"]:
    print(f"lost: {lost['count']} {lost['reason']}")
