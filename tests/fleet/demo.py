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
import time

import server

CACHE = sys.argv[1]


def run(*argv, quiet=False, **environment):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL if quiet else None,
                   env={**os.environ, **environment})


def say(text):
    print(f"\n== {text}", flush=True)


class Program:
    """A program that listens on a socket, while the block runs. What it says is printed if it fails."""

    def __init__(self, socket, *argv):
        self.socket, self.argv = socket, argv

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(self.argv, stdout=self.log, stderr=self.log)
        while not os.path.exists(self.socket):
            if self.process.poll() is not None:
                self.log.seek(0)
                sys.exit(f"{self.log.read()}{self.argv[0]} ended with {self.process.returncode}")
            threading.Event().wait(0.05)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()


def send(directory, url, host, begin, shape):
    """Makes the windows of a host, and sends them."""
    say(f"stackd-fleet send: copies the last 5 minutes of {host}, which are made up, to the server")
    store, socket = f"{directory}/{host}.db", f"{directory}/{host}.sock"
    run(os.environ["STORE_TOOL"], "write", store, "60", quiet=True, STORE_KINDS="2",
        STORE_BEGIN=str(begin), **shape)
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
            say("ClickHouse runs on loopback; stackd-fleet schema: makes its tables")
            fleet("schema", "--apply", url=engine.url)
            begin = int(time.time()) - 301
            send(directory, engine.url, "web1", begin, {})
            send(directory, engine.url, "web2", begin, {"STORE_TURNS": "1"})
            say("stackd-fleet serve: the gateway, of which stackctl now asks about both hosts")
            socket = f"{directory}/fleet.sock"
            with Program(socket, os.environ["STACKD_FLEET"], "-c", "/dev/null", "-o", f"server.url={engine.url}",
                         "-o", f"serve.listen={socket}", "serve"):
                show(socket, "status", "--check")
                show(socket, "snapshot", "--window", "5min")
                for by in ("host", "unit"):
                    show(socket, "snapshot", "offcpu", "--window", "5min", "--by", by)
                show(socket, "snapshot", "offcpu", "--window", "5min", "--host", "web1", "-n", "5")
        finally:
            engine.stop()
    say("All of this has ended. For hosts of your own: README.md, \"A fleet\", and man stackd-fleet")


main()
