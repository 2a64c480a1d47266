# SPDX-License-Identifier: GPL-2.0-or-later
"""Files for pprof, written by stackctl from the answers of a stand-in for the daemon, read by Google's
pprof, which is built here from Debian's source, and by a decoder of this test. Sums are equal to the
nanosecond. Run with: STACKCTL. Skips (77) without go or the source."""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import double
from rows import ROWS, row, snapshot, total

STACKCTL = sys.argv[1]
SOURCE = "/usr/share/gocode/src/github.com/google/pprof"
TYPES = ["waits", "blocked", "runnable", "throttled"]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def message(data):
    """Returns {tag: values} of a message; strings, messages and packed lists are bytes."""
    at, members = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, key
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        members.setdefault(key >> 3, []).append(value)
    return members


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


class Profile:
    def __init__(self, path):
        with gzip.open(path) as file:
            self.members = message(file.read())
        self.strings = [text.decode() for text in self.members[6]]
        assert self.strings[0] == "" and len(set(self.strings)) == len(self.strings)
        self.types = [tuple(self.strings[m.get(tag, [0])[0]] for tag in (1, 2))
                      for m in map(message, self.members[1])]
        self.samples = [message(data) for data in self.members.get(2, [])]
        self.names = {}
        functions = {m[1][0]: self.strings[m[2][0]] for m in map(message, self.members.get(5, []))}
        for location in map(message, self.members.get(4, [])):
            self.names[location[1][0]] = functions[message(location[4][0])[1][0]]

    def values(self, sample):
        return packed(sample[2][0])

    def stack(self, sample):
        return [self.names[number] for number in packed(sample[1][0])]

    def labels(self, sample):
        found = {}
        for label in map(message, sample.get(3, [])):
            found[self.strings[label[1][0]]] = (self.strings[label[2][0]] if 2 in label
                                                else label[3][0])
        return found


class Pprof(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tools = tempfile.TemporaryDirectory()
        cls.pprof = cls.tools.name + "/pprof"
        environment = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode",
                       "GOCACHE": cls.tools.name + "/cache", "GOFLAGS": ""}
        subprocess.run(["go", "build", "-buildvcs=false", "-o", cls.pprof,
                        "github.com/google/pprof"], env=environment, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.tools.cleanup()

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.daemon = double.Double(self.directory.name + "/sock")

    def tearDown(self):
        self.daemon.close()
        self.directory.cleanup()

    def write(self, name, *replies, words=("snapshot", "offcpu"), method="Snapshot"):
        """Makes stackctl write a file from these replies. Returns its path."""
        path = f"{self.directory.name}/{name}.pb.gz"
        self.daemon.replies[method] = [{"parameters": reply, "continues": reply is not replies[-1]}
                                       for reply in replies]
        subprocess.run([STACKCTL, "-S", self.directory.name + "/sock", *words, "--output", path],
                       check=True, timeout=double.HANG)
        return path

    def run_pprof(self, *words):
        environment = {**os.environ, "PPROF_TMPDIR": self.directory.name, "HOME": self.directory.name}
        done = subprocess.run([self.pprof, "-symbolize=none", "-unit=ns", *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=double.HANG,
                              env=environment, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def top(self, sample_type, *words):
        """Returns {function: (flat ns, cumulative ns)}, and the total as pprof sees it."""
        text = self.run_pprof("-top", "-nodecount=0", "-nodefraction=0",
                              f"-sample_index={sample_type}", *words)
        whole = re.search(r"of (-?\d+)(?:ns)? total", text)
        rows = re.findall(r"^\s*(-?\d+)(?:ns)?\s+\S+%\s+\S+%\s+(-?\d+)(?:ns)?\s+\S+%\s+(.*)$", text,
                          re.M)
        return {name: (int(flat), int(cum)) for flat, cum, name in rows}, int(whole[1])

    def test_decoded(self):
        profile = Profile(self.write("x", snapshot(ROWS[:3]), snapshot(ROWS[3:])))
        self.assertEqual(profile.types, [("waits", "count"), ("blocked", "nanoseconds"),
                                         ("runnable", "nanoseconds"), ("throttled", "nanoseconds")])
        self.assertEqual(len(profile.samples), len(ROWS))
        for sample, want in zip(profile.samples, ROWS):
            self.assertEqual(profile.values(sample), [
                want["count"], want["blocked_ns"], want["runnable_ns"] - want["throttled_ns"],
                want["throttled_ns"]])
            stack = profile.stack(sample)
            self.assertEqual((len(stack), stack[0], stack[-1]), (4, "schedule", "main"))
            labels = profile.labels(sample)
            self.assertEqual((labels["pid"], labels["state"], labels["unit"]),
                             (want["process"]["pid"], want["state"], "db.service"))
        self.assertEqual(profile.labels(profile.samples[0])["comm"], "db")
        self.assertEqual(profile.members[10], [29 * 10**9])
        self.assertEqual(profile.strings[profile.members[14][0]], "blocked")
        self.assertNotIn(11, profile.members)
        for text in profile.strings:
            self.assertFalse(re.search(r"[\x00-\x1f\x7f\u202e\u2028]", text), ascii(text))

    def test_lines(self):
        """Two lines of a function are one function, with --lines, too."""
        rows = [row("db", number) for number in range(2)]
        for number, one in enumerate(rows):
            one["user"]["frames"][0] = {"kind": "native", "name": "work", "module": "/bin/db",
                                        "source": {"file": "db.c", "line": 10 + number,
                                                   "inlined": False}}
        profile = Profile(self.write("lines", snapshot(rows),
                                     words=("snapshot", "offcpu", "--lines")))
        names = [name for name in profile.names.values() if "work" in name]
        self.assertEqual(set(names), {"work"})
        self.assertEqual(len(names), 2)

    def test_mappings(self):
        """Mappings have build-ids, and addresses in them are positions in the file."""
        one, other = row("db", 0), row("db", 1)
        one["user"]["frames"] = [
            {"kind": "native", "name": "work", "module": "/bin/db", "build_id": "ab12",
             "file_offset": 0x1234, "file_address": 0x401234},
            {"kind": "native", "name": "main", "module": "/bin/db", "build_id": "ab12",
             "file_offset": 0x2000, "file_address": 0x402000}]
        other["user"]["frames"] = [{"kind": "native", "name": "work", "module": "/bin/db"}]
        path = self.write("x", snapshot([one, other]))
        self.assertIs(self.daemon.calls[0]["parameters"]["build_ids"], True)
        profile = Profile(path)
        mappings = {m[1][0]: m for m in map(message, profile.members[3])}
        found = {(profile.strings[m[5][0]], profile.strings[m.get(6, [0])[0]], m.get(3, [0])[0])
                 for m in mappings.values()}
        self.assertEqual(found, {("/bin/db", "ab12", 0x2001), ("/bin/db", "", 0)})
        places = {(profile.names[m[1][0]], m.get(3, [0])[0],
                   profile.strings[mappings[m[2][0]].get(6, [0])[0]])
                  for m in map(message, profile.members[4]) if 2 in m}
        self.assertEqual(places, {("work", 0x1234, "ab12"), ("main", 0x2000, "ab12"),
                                  ("work", 0, "")})
        raw = self.run_pprof("-raw", path)
        self.assertRegex(raw, r"0x0/0x2001/0x0 /bin/db ab12")
        self.assertRegex(raw, r"0x1234 M=\d+ work")
        functions, _ = self.top("blocked", path)
        self.assertEqual(functions["work"][1], one["blocked_ns"] + other["blocked_ns"])

    def test_comments(self):
        comments = self.run_pprof("-comments", self.write("x", snapshot(ROWS)))
        for says in ("offcpu, hook h", "covered 29000000000 ns in 6 windows", "stackd was killed",
                     "lost 3: stacks", "2000000000 ns are estimates", "note: a note"):
            self.assertIn(says, comments)

    def test_sums_of_pprof(self):
        path = self.write("x", snapshot(ROWS))
        want = {"blocked": total("blocked_ns"), "throttled": total("throttled_ns"),
                "runnable": total("runnable_ns") - total("throttled_ns"), "waits": total("count")}
        for name in TYPES:
            functions, whole = self.top(name, path)
            self.assertEqual(whole, want[name], name)
            self.assertEqual(functions["schedule"], (want[name], want[name]), name)
            self.assertEqual(functions["main"], (0, want[name]), name)
        functions, _ = self.top("blocked", "-tagfocus=pid=103", path)
        self.assertEqual(functions["main"][1], ROWS[3]["blocked_ns"])
        self.assertIn("=cmd|' /C calc'!A0;</script>]]>", self.run_pprof("-raw", path))

    def test_difference(self):
        """pprof's difference of two files is that of the rows."""
        more = [row("db", 0, blocked_ns=6 * 10**9 + 1, total_ns=7 * 10**9 + 1), *ROWS[1:]]
        base, new = self.write("base", snapshot(ROWS)), self.write("new", snapshot(more))
        functions, _ = self.top("blocked", f"-diff_base={base}", new)
        self.assertEqual(functions["schedule"][0], 4 * 10**9 + 1)

    def test_overview(self):
        samples = snapshot([row("db", 1, total_ns=7)], probe="oncpu", period_ns=5)
        samples["totals"] = {**samples["totals"], "samples": 4}
        profile = Profile(self.write("x", snapshot(ROWS), samples, words=["snapshot"],
                                     method="Overview"))
        self.assertEqual([name for name, _ in profile.types], ["samples", "cpu", *TYPES])
        sums = [sum(values) for values in zip(*map(profile.values, profile.samples))]
        self.assertEqual(sums[:4], [4, 7, total("count"), total("blocked_ns")])

    def test_samples(self):
        reply = snapshot([row("db", 1, total_ns=7)], probe="oncpu", period_ns=20408163)
        reply["totals"] = {**reply["totals"], "samples": 4}
        profile = Profile(self.write("x", reply, words=["snapshot", "oncpu"]))
        self.assertEqual(profile.types, [("samples", "count"), ("cpu", "nanoseconds")])
        self.assertEqual(profile.members[12], [20408163])
        self.assertEqual(profile.values(profile.samples[0]), [4, 7])

    def test_nothing(self):
        path = self.write("x", snapshot([]))
        self.assertEqual(Profile(path).samples, [])
        self.run_pprof("-raw", path)

    def test_names_are_whole(self):
        self.assertIn("x" * 32768, Profile(self.write("x", snapshot(ROWS))).strings)


if __name__ == "__main__":
    if not shutil.which("go") or not os.path.isdir(SOURCE):
        print("needs golang-go and golang-github-google-pprof-dev")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
