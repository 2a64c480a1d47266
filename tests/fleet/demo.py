# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet on this host, for ./bootstrap fleet: a server of ClickHouse, the windows of two hosts, the gateway,
and what stackctl says about both hosts. The windows are made up; nothing is recorded.

Usage: demo.py CACHE; the programs are in the environment.
"""

import os
import subprocess
import sys
import tempfile
import threading

import server

CACHE = sys.argv[1]


def run(*argv, quiet=False, **environment):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL if quiet else None,
                   env={**os.environ, **environment})


class Program:
    """A program that listens on a socket, while the block runs."""

    def __init__(self, socket, *argv):
        self.socket, self.argv = socket, argv

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(self.argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(self.socket):
            if self.process.poll() is not None:
                sys.exit(f"{self.argv[0]} ended with {self.process.returncode}")
            threading.Event().wait(0.05)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def send(directory, url, host, shape):
    """Makes the windows of a host, and sends them."""
    store, socket = f"{directory}/{host}.db", f"{directory}/{host}.sock"
    run(os.environ["STORE_TOOL"], "write", store, "60", quiet=True, STORE_KINDS="1", STORE_SHIFT="-600", **shape)
    with Program(socket, os.environ["STACKD"], "-c", "/dev/null", "-o", f"control.socket={socket}", "-o",
                 f"store.path={store}", "--serve-only"):
        fleet("send", "--once", url=url, host=host, socket=socket, lock_file=f"{directory}/{host}.lock", past="30d")


def fleet(*words, url, **settings):
    options = [word for name, value in settings.items() for word in ("-o", f"send.{name}={value}")]
    run(os.environ["STACKD_FLEET"], "-c", "/dev/null", "-o", f"server.url={url}", *options, *words)


def show(socket, *words):
    print(f"\n$ stackctl --fleet {' '.join(words)}", flush=True)
    run(os.environ["STACKCTL"], "-S", socket, *words)


def main():
    with tempfile.TemporaryDirectory(prefix="stackd-demo.") as directory:
        os.chmod(directory, 0o755)
        os.mkdir(f"{directory}/ch")
        engine = server.Server(f"{directory}/ch", CACHE)
        engine.start()
        try:
            fleet("schema", "--apply", url=engine.url)
            send(directory, engine.url, "web1", {})
            send(directory, engine.url, "web2", {"STORE_TURNS": "1"})
            newest = engine.query("SELECT toDateTime(intDiv(max(end), 1000000000)) FROM stackd.rows")[0][0]
            oldest = engine.query("SELECT toDateTime(intDiv(min(start), 1000000000)) FROM stackd.rows")[0][0]
            since, until = (f"{moment.replace(' ', 'T')}Z" for moment in (oldest, newest))
            socket = f"{directory}/fleet.sock"
            with Program(socket, os.environ["STACKD_FLEET"], "-c", "/dev/null", "-o", f"server.url={engine.url}",
                         "-o", f"serve.listen={socket}", "serve"):
                show(socket, "snapshot", "--since", since, "--until", until)
                for by in ("host", "unit", "stack"):
                    show(socket, "snapshot", "offcpu", "--since", since, "--until", until, "--by", by, "-n", "5")
        finally:
            engine.stop()


main()
