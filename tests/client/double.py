# SPDX-License-Identifier: GPL-2.0-or-later
"""A stand-in for the daemon: answers Varlink calls on a socket with prepared replies, and records the
calls. The reply to a method is a list, or a function that makes the list from the parameters. Members
are messages as objects, raw bytes, or None, which closes the connection."""

import json
import os
import socket
import threading

# Seconds after which what is waited for hangs, however busy the host is.
HANG = 600


def time(ns):
    return {"ns": ns, "text": "1970-01-01T00:00:00Z"}


def error(name, **parameters):
    return {"error": name, "parameters": parameters}


class Double:
    def __init__(self, path):
        self.path = path
        self.replies = {}
        self.calls = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if os.path.exists(path):
            os.unlink(path)
        self.listener.bind(path)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        os.unlink(self.path)

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                self.answer(connection)

    def answer(self, connection):
        data = b""
        while b"\0" not in data:
            more = connection.recv(65536)
            if not more:
                return
            data += more
        call = json.loads(data.split(b"\0")[0])
        self.calls.append(call)
        replies = self.replies.get(call["method"].split(".")[-1], [None])
        for reply in replies(call["parameters"]) if callable(replies) else replies:
            if reply is None:
                return
            if not isinstance(reply, bytes):
                reply = json.dumps(reply).encode() + b"\0"
            try:
                connection.sendall(reply)
            except OSError:
                return
        connection.settimeout(5)
        try:
            connection.recv(1)
        except OSError:
            pass
