# SPDX-License-Identifier: GPL-2.0-or-later
"""--debuginfod: stackctl, with answers of a stand-in for the daemon, gets the names of a stripped
program's functions from a real server of debug information, which runs here, and from servers that
stand still, do not answer, or send what is wrong. Run with: STACKCTL. Skips (77) if stackctl was built
without libdebuginfod, or if debuginfod, gcc or objcopy is not installed."""

import contextlib
import gzip
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import double
from rows import row, snapshot

STACKCTL = sys.argv[1]
TOOLS = ["debuginfod", "gcc", "objcopy", "nm", "readelf"]
# A name as of C++, and one as of C.
SOURCE = """
__attribute__((noinline)) int flush(int n) asm("_ZN5store5flushEi");
__attribute__((noinline)) int flush(int n) { return n * 3 + 1; }
static __attribute__((noinline)) int commit_all(int n) { return flush(n) + 2; }
int main(int argc, char **argv) { return commit_all(argc); }
"""


def run(words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Program:
    """A program, its debug file in a directory of its own, and where its functions are."""

    def __init__(self, directory):
        self.debug_directory = directory + "/debug"
        self.debug = self.debug_directory + "/program.debug"
        path, source = directory + "/program", directory + "/program.c"
        os.mkdir(self.debug_directory)
        with open(source, "w", encoding="utf-8") as file:
            file.write(SOURCE)
        run(["gcc", "-g", "-O1", "-Wl,--build-id=sha1", "-o", path, source])
        run(["objcopy", "--only-keep-debug", path, self.debug])
        self.build_id = re.search(r"Build ID: ([0-9a-f]{40})", run(["readelf", "-nW", path]))[1]
        lines = [line.split() for line in run(["nm", path]).splitlines()]
        self.start = {words[2]: int(words[0], 16) for words in lines if len(words) == 3}

    def frame(self, function, offset, **other):
        start = self.start[function]
        return {"kind": "native", "name": f"program+fn_{start:x}", "offset": offset,
                "module": "/opt/program", "build_id": self.build_id, "file_address": start + offset,
                "file_offset": start + offset, **other}

    def answer(self):
        """An answer whose functions have no names. The last but one frame is a call that does not
        return: the address after it is that of the next function."""
        one = row("db", 0)
        end = self.start["commit_all"] - self.start["_ZN5store5flushEi"]
        one["user"]["frames"] = [
            self.frame("_ZN5store5flushEi", 0),
            self.frame("commit_all", 9),
            self.frame("_ZN5store5flushEi", end),
            {"kind": "native", "name": "main", "module": "/opt/program", "offset": 4,
             "build_id": self.build_id, "file_address": self.start["main"] + 4}]
        return snapshot([one], shown={"rows": 1, "total_ns": one["total_ns"]})


class Debuginfod:
    """The server, with a database and a cache of its own."""

    def __init__(self, program, directory):
        environment = {**os.environ, "DEBUGINFOD_CACHE_PATH": directory + "/server-cache",
                       "HOME": directory, "DEBUGINFOD_URLS": ""}
        for attempt in range(5):
            port = free_port()
            self.url = f"http://127.0.0.1:{port}/"
            with open(f"{directory}/server-log", "w", encoding="utf-8") as log:
                self.process = subprocess.Popen(
                    ["debuginfod", "-F", "-t", "1", "-p", str(port), "-d",
                     f"{directory}/server-{attempt}.sqlite", program.debug_directory],
                    stdout=log, stderr=log, env=environment)
            if self.has(program.build_id):
                return
            self.close()
        with open(f"{directory}/server-log", encoding="utf-8") as log:
            raise RuntimeError(f"debuginfod does not have the file: {log.read()}")

    def has(self, build_id):
        """Waits until the server has read the directory. False if it ended: the port was taken."""
        deadline = time.monotonic() + 120
        while self.process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError, urllib.error.URLError):
                with urllib.request.urlopen(f"{self.url}buildid/{build_id}/debuginfo",
                                            timeout=10) as reply:
                    return reply.status == 200
            time.sleep(0.1)
        return False

    def close(self):
        self.process.kill()
        self.process.wait()


class Sender(http.server.ThreadingHTTPServer):
    """A server that sends the same bytes for each file."""

    def __init__(self, data):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.shutdown()
        self.server_close()


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.program = Program(cls.place.name)
        cls.server = Debuginfod(cls.program, cls.place.name)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.place.cleanup()

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.daemon = double.Double(self.directory.name + "/sock")
        self.daemon.replies["Snapshot"] = [{"parameters": self.program.answer()}]

    def tearDown(self):
        self.daemon.close()
        self.directory.cleanup()

    def ctl(self, *words, url=None, cache="cache", code=0):
        environment = {**os.environ, "HOME": self.directory.name, "LC_ALL": "C.UTF-8",
                       "DEBUGINFOD_CACHE_PATH": f"{self.directory.name}/{cache}"}
        for name in list(environment):
            if name.startswith("DEBUGINFOD_") and name != "DEBUGINFOD_CACHE_PATH" \
                    or name.lower().endswith("_proxy"):
                del environment[name]
        if url:
            environment["DEBUGINFOD_URLS"] = url
        done = subprocess.run([STACKCTL, "-S", self.directory.name + "/sock", *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              timeout=300, env=environment, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def frames(self, *words, **settings):
        out, said = self.ctl("snapshot", "offcpu", "--json", *words, **settings)
        return json.loads(out)["rows"][0]["user"]["frames"], said

    def test_names(self):
        frames, said = self.frames("--debuginfod", url=self.server.url)
        self.assertEqual(said, "")
        self.assertEqual([(f["name"], f["offset"]) for f in frames[:2] + frames[3:]],
                         [("store::flush(int)", 0), ("commit_all", 9), ("main", 4)])
        end = self.program.start["commit_all"] - self.program.start["_ZN5store5flushEi"]
        self.assertEqual((frames[2]["name"], frames[2]["offset"]), ("store::flush(int)", end))
        self.assertIs(self.daemon.calls[0]["parameters"]["build_ids"], True)

    def test_no_cost_without(self):
        frames, _ = self.frames()
        self.assertIn("program+fn_", frames[0]["name"])
        self.assertNotIn("build_ids", self.daemon.calls[0]["parameters"])
        self.assertEqual(os.listdir(self.directory.name), ["sock"])
        self.frames("--build-ids")
        self.assertIs(self.daemon.calls[1]["parameters"]["build_ids"], True)

    def test_formats(self):
        words = ["--debuginfod"]
        for name in ("text", "folded", "csv", "speedscope", "svg"):
            out, _ = self.ctl("snapshot", "offcpu", "--stacks", "--format", name, *words,
                              url=self.server.url)
            self.assertIn("commit_all", out, name)
        self.ctl("snapshot", "offcpu", "-o", self.directory.name + "/x.pb.gz", *words,
                 url=self.server.url)
        with gzip.open(self.directory.name + "/x.pb.gz") as file:
            self.assertIn(b"commit_all", file.read())
        out, _ = self.ctl("stuck", "--stacks", *words, url=self.server.url)
        self.assertIn("commit_all", out)

    def test_several_answers(self):
        """Overviews, slices and comparisons have the names, too."""
        answer = self.program.answer()
        several = [{"parameters": answer, "continues": True}, {"parameters": answer}]
        self.daemon.replies["Snapshot"] = several
        self.daemon.replies["Overview"] = [{"parameters": answer}]
        words = ["--debuginfod", "--stacks"]
        out, _ = self.ctl("snapshot", *words, url=self.server.url)
        self.assertIn("commit_all", out)
        out, _ = self.ctl("snapshot", "offcpu", "--range", "@1..@2", "--range", "@2..@3", *words,
                          url=self.server.url)
        self.assertEqual(out.count("commit_all"), 2)
        out, _ = self.ctl("snapshot", "offcpu", "--each", "10s", "--json", "--debuginfod",
                          url=self.server.url)
        self.assertEqual(out.count("commit_all"), 2)
        out, _ = self.ctl("diff", "--since", "@1772334610", "--until", "@1772334640", "--base",
                          "@1772334610..@1772334640", "--format", "folded", "--debuginfod",
                          url=self.server.url)
        self.assertIn("commit_all", out)

    def test_no_servers(self):
        for url in (None, "", " "):
            out, said = self.ctl("snapshot", "offcpu", "--debuginfod", url=url, code=1)
            self.assertEqual(out, "")
            self.assertIn("DEBUGINFOD_URLS", said)
        # A recording is not begun.
        _, said = self.ctl("record", "oncpu", "--for", "1s", "--debuginfod", code=1)
        self.assertIn("DEBUGINFOD_URLS", said)
        self.assertEqual(self.daemon.calls, [])
        _, said = self.ctl("snapshot", "offcpu", "--debuginfod-timeout", "5s", code=1)
        self.assertIn("needs --debuginfod", said)

    def check_unnamed(self, says, *words, **settings):
        """The answer is that without the option, and standard error says why."""
        frames, said = self.frames("--debuginfod", *words, **settings)
        self.assertEqual(frames, self.program.answer()["rows"][0]["user"]["frames"])
        self.assertIn(says, said)
        return said

    def test_server_is_down(self):
        said = self.check_unnamed("no debug information of /opt/program (build-id ",
                                  url=f"http://127.0.0.1:{free_port()}/")
        self.assertIn(self.program.build_id, said)

    def test_server_has_no_such_file(self):
        answer = self.program.answer()
        for frame in answer["rows"][0]["user"]["frames"]:
            frame["build_id"] = "0123456789abcdef" * 2
        self.daemon.replies["Snapshot"] = [{"parameters": answer}]
        frames, said = self.frames("--debuginfod", url=self.server.url)
        self.assertEqual(frames, answer["rows"][0]["user"]["frames"])
        self.assertIn("no server has it", said)

    def test_server_stands_still(self):
        """The command does not wait for the server's 90 seconds. The next one has the names."""
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            said = self.check_unnamed("time is up", "--debuginfod-timeout", "2s",
                                      url=self.server.url, cache="still")
            self.assertLess(time.monotonic() - begun, 60)
            self.assertIn("1 of 1 files", said)
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        frames, said = self.frames("--debuginfod", url=self.server.url, cache="still")
        self.assertEqual((frames[1]["name"], said), ("commit_all", ""))

    def test_wrong_files(self):
        """What a server sends is not trusted."""
        with open(self.program.debug, "rb") as file:
            debug = file.read()
        with open(STACKCTL, "rb") as file:
            other = file.read()
        cases = [(b"", "no debug information"), (b"<html>not found</html>" * 9, "is not an ELF file"),
                 (debug[:len(debug) // 2], "is damaged"), (debug[:64], "is damaged"),
                 (other, "build-id"), (b"\x7fELF" + bytes(4096), "is not of a 64-bit program")]
        for number, (data, says) in enumerate(cases):
            sender = Sender(data)
            try:
                said = self.check_unnamed(says, url=sender.url, cache=f"wrong-{number}")
                self.assertIn("no debug information of /opt/program", said)
            finally:
                sender.close()

    def test_wrong_answers(self):
        """Build-ids and addresses that make no sense are left as they are."""
        answer = self.program.answer()
        ids = ["", "abc", "zz", "ab" * 65, self.program.build_id.upper()]
        frames = [self.program.frame("main", 0, build_id=one) for one in ids]
        frames += [self.program.frame("main", 0, file_address=n) for n in (-1, 0, 2**63 - 2)]
        answer["rows"][0]["user"]["frames"] = frames
        self.daemon.replies["Snapshot"] = [{"parameters": answer}]
        got, said = self.frames("--debuginfod", url=self.server.url)
        self.assertEqual((got, said), (frames, ""))


if __name__ == "__main__":
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        print(f"needs {', '.join(missing)}")
        sys.exit(77)
    checked = subprocess.run([STACKCTL, "-S", "/nowhere", "snapshot", "--debuginfod"],
                             stderr=subprocess.PIPE, encoding="utf-8", check=False,
                             env={**os.environ, "DEBUGINFOD_URLS": "http://127.0.0.1:1/"})
    if "built without" in checked.stderr or "not installed" in checked.stderr:
        print(checked.stderr)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
