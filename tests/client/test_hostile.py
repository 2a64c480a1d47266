# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile texts in every field of an answer, one by one and all at once, in every format that stackctl
writes: a strict reader of each format reads what was written, and no control character, no marker of
HTML or XML and no second record comes out of a name. An answer that is refused leaves no file.
Run with: STACKCTL."""

import copy
import csv
import functools
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET

import double
from double import time
from report_answers import IO, answer
from rows import T0, row, snapshot

STACKCTL = sys.argv[1]
EVIL = "</script>]]>--><x>\"'`;a 7\n\r\t\\\x1b[2J\x7f\x85\u202e\u2066\u2028\ufeff=1+1,\ud800"
MARKS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]")
# Bytes of a reply that are no UTF-8; in Python's strings they stand behind \udc80.
INVALID = "\udcff\udc80\udcc3"
LONG = "n" * (1 << 20)

SOURCE = {"file": "/src/db.c", "line": 7, "inlined": False}
WAKER = {"path": [{"context": "task", "pid": 3, "tid": 4, "comm": "jbd2"}],
         "kernel": {"id": "c", "flags": ["truncated"], "frames": [{"kind": "kernel", "name": "wake"}]},
         "user": {"id": "d", "flags": [], "frames": [{"kind": "jit", "name": "j", "module": "/tmp/perf-3.map"}]}}


def frame(name, **other):
    return {"kind": "native", "name": name, "module": "/bin/db", "build_id": "ab12", "file_offset": 64,
            "address": "0x40", "source": SOURCE, **other}


def waits():
    """A row that has every member of a row."""
    return row("db", 1, tid=4, max_tid=4, max_comm="db", reason="flock", object="/x", key="by this",
               holders=[{"pid": 5, "comm": "holder", "reason": "pipe", "object": "/y"}], holders_unknown="why",
               chain=[{"pid": 6, "comm": "next", "reason": "pipe", "object": "/z"}], deadlock=True,
               process={"pid": 4, "start": time(T0), "comm": "db", "kernel": False, "exited": False,
                        "exe": "/bin/db", "cgroup": "/system.slice/db.service"},
               user={"id": "u", "flags": ["truncated"], "frames": [frame("work"), frame("main")]},
               kernel={"id": "k", "flags": [], "frames": [{"kind": "kernel", "name": "schedule",
                                                           "module": "ext4"}]})


def offwake():
    return {**waits(), "waker": WAKER}


def operation():
    return row("db", 1, io={**IO, "filesystem": "ext4", "device": "sda1"}, buckets=[0] * 20 + [8])


def calls():
    return row("db", 1, function="do_sys_openat2")


def sampled():
    return {k: v for k, v in waits().items() if k not in ("state", "state_bits", "blocked_ns", "runnable_ns")}


REPORT = {"offcpu": waits, "oncpu": sampled, "iolat": operation}
PROBES = {"offcpu": waits, "offwake": offwake, "iolat": operation, "stackcount": calls}


def fields(value, path=()):
    """Returns the path of each text in a document, but those of times, which stackctl writes itself."""
    if isinstance(value, str):
        return [path] if path[-1] != "text" else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, one in items for found in fields(one, (*path, key))]


def member(document, path):
    return functools.reduce(lambda at, key: at[key], path, document)


def with_text(document, path, text):
    changed = copy.deepcopy(document)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = text
    return changed


def as_bytes(parameters, **other):
    """Returns a reply as bytes, where surrogates of INVALID are raw bytes and others are escapes."""
    text = json.dumps({"parameters": parameters, **other}, ensure_ascii=False)
    text = text.replace("\ud800", "\\ud800")
    return text.encode("utf-8", "surrogateescape") + b"\0"


csv.field_size_limit(1 << 21)


class Hostile(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.at = self.directory.name
        self.daemon = double.Double(self.at + "/sock")

    def tearDown(self):
        self.daemon.close()
        self.directory.cleanup()

    def run_it(self, name, *words):
        """Writes a file. Returns its bytes, or None if stackctl refused the answer and left no file."""
        path = f"{self.at}/{name}"
        done = subprocess.run([STACKCTL, "-S", self.at + "/sock", *words, "--output", path],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=double.HANG, check=False)
        self.assertGreaterEqual(done.returncode, 0, done)  # it does not crash
        self.assertFalse(MARKS.search(done.stderr.decode("utf-8", "strict")), done.stderr)
        left = sorted(n for n in os.listdir(self.at) if n != "sock")
        if done.returncode != 0:
            print(done.stderr[:300], file=sys.stderr)
            self.assertEqual(left, [], (words, done))
            return None
        self.assertEqual(left, [name])
        with open(path, "rb") as file:
            data = file.read()
        os.unlink(path)
        return data

    def check(self, name, data, n_rows):
        getattr(self, "check_" + name.split(".")[1])(data, n_rows)

    def check_json(self, data, n_rows):
        document = json.loads(data.decode("utf-8", "strict"))
        self.assertEqual(len(document["rows"]), n_rows)
        texts = {member(document, path) for path in fields(document)}
        self.assertEqual([t for t in self.sent if t not in texts], [])

    def check_csv(self, data, n_rows):
        text = data.decode("utf-8", "strict")
        self.assertFalse(MARKS.search(text.replace("\r\n", "\n")), text)
        rows = list(csv.DictReader(text.splitlines(), strict=True))
        self.assertEqual(len(rows), n_rows)
        for one in rows:
            self.assertNotIn(None, one)
            self.assertNotIn(None, one.values())
            self.assertFalse([v for v in one.values() if v[:1] in ("=", "+", "-", "@") and not v[1:2].isdigit()])

    def check_folded(self, data, n_rows):
        text = data.decode("utf-8", "strict")
        self.assertFalse(MARKS.search(text), text)
        lines = text.splitlines()
        self.assertLessEqual(len(lines), n_rows)
        for line in lines:
            self.assertRegex(line, r"^\S.* \d+$")

    def check_speedscope(self, data, n_rows):
        text = data.decode("utf-8", "strict")
        self.assertFalse(MARKS.search(text), text)
        self.assertNotIn("</", text)
        file = json.loads(text)
        for profile in file["profiles"]:
            self.assertLessEqual(len(profile["samples"]), n_rows)
            self.assertTrue(all(0 <= i < len(file["shared"]["frames"]) for s in profile["samples"] for i in s))

    def check_pb(self, data, _):
        text = gzip.decompress(data)
        text.decode("utf-8", "ignore")
        self.assertFalse(MARKS.search("".join(re.findall("[ -~\u202e\u2028]{4,}", text.decode("utf-8", "ignore")))))

    def check_svg(self, data, _):
        text = data.decode("utf-8", "strict")
        self.assertFalse(MARKS.search(text), text)
        root = ET.fromstring(text)
        self.assertEqual({e.tag.split("}")[1] for e in root.iter()} -
                         {"svg", "title", "style", "rect", "text", "g"}, set())

    def check_txt(self, data, _):
        self.assertFalse(MARKS.search(data.decode("utf-8", "strict")), data)

    def check_html(self, data, _):
        text = data.decode("utf-8", "strict")
        self.assertFalse(MARKS.search(text))
        self.assertEqual((text.count("<script"), text.count("</script")), (4, 4))
        json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])

    def check_pftrace(self, data, _):
        self.assertFalse(MARKS.search("".join(re.findall("[ -~\u202e\u2028]{4,}", data.decode("utf-8", "ignore")))))

    FILES = {"x.json": (), "x.csv": (), "x.folded": ("--format", "folded"), "x.speedscope.json": (),
             "x.pb.gz": (), "x.svg": (), "x.txt": (), "y.txt": ("--stacks", "--lines")}

    def each_format(self, probe, reply, n_rows):
        """Writes every format of one answer. Returns how many were written."""
        self.daemon.replies["Snapshot"] = [as_bytes(reply)]
        # JSON has the texts themselves; half of a pair in UTF-16 is no character.
        self.sent = [t.replace("\ud800", "\ufffd") for t in map(functools.partial(member, reply), fields(reply))
                     if "\u202e" in t]
        written = 0
        for name, words in self.FILES.items():
            data = self.run_it(name, "snapshot", probe, *words)
            if data is not None:
                self.check(name, data, n_rows)
                written += 1
        return written

    def each_report(self, change=lambda reply: reply):
        """Writes a page and a trace of changed answers. Returns how many were written."""
        window = {"seq": 1, "start": time(T0), "end": time(T0 + 5 * 10**9), "length_ns": 5 * 10**9, "rows": 1,
                  "threads": 1, "open": 0, "bytes": 1, "lost": []}
        answers = {probe: as_bytes(change(answer(0, [REPORT[probe]()], probe))) for probe in REPORT}
        self.daemon.replies["Windows"] = [{"parameters": {"windows": [window], "gaps": []}}]
        self.daemon.replies["Snapshot"] = lambda asked: [answers[asked["probe"]]]
        written = 0
        for name in ("x.html", "x.pftrace"):
            data = self.run_it(name, "report", "--since", "@1772334000", "--until", "@1772338000")
            if data is not None:
                self.check(name, data, 1)
                written += 1
        return written

    def test_each_field(self):
        """One field after the other: what takes a text takes this one; a word of a known set may be refused.
        Fields that an answer shares with that of a probe before it are in test_all_fields."""
        refused, done = set(), set()
        for probe, make in PROBES.items():
            reply = snapshot([make()], probe=probe)
            reply["shown"]["rows"] = 1
            self.assertEqual(self.each_format(probe, reply, 1), len(self.FILES), probe)
            for path in fields(reply):
                if path in done:
                    continue
                done.add(path)
                n = self.each_format(probe, with_text(reply, path, EVIL), 1)
                self.assertIn(n, (0, len(self.FILES)), path)
                if n == 0:
                    refused.add(path[-1])
        self.assertLessEqual(refused, {"probe"})

    def test_each_field_of_a_report(self):
        """A field that the answer about a probe does not have is left as it is."""
        def change(path, reply):
            return with_text(reply, path, EVIL) if path in fields(reply) else reply

        self.assertEqual(self.each_report(), 2)
        paths = {p for probe, make in REPORT.items() for p in fields(answer(0, [make()], probe))}
        for path in sorted(paths, key=str):
            self.assertEqual(self.each_report(functools.partial(change, path)), 2, path)

    def test_all_fields(self):
        for probe, make in PROBES.items():
            reply = snapshot([make(), make()], probe=probe)
            reply["shown"]["rows"] = 2
            for number, path in enumerate(fields(reply)):
                if path != ("probe",):
                    reply = with_text(reply, path, f"{EVIL}{number}")
            self.assertEqual(self.each_format(probe, reply, 2), len(self.FILES), probe)

    def test_invalid_bytes(self):
        """Bytes that are no UTF-8 come from no recorder: such an answer is refused as a whole."""
        for probe, make in PROBES.items():
            reply = snapshot([make()], probe=probe)
            reply["shown"]["rows"] = 1
            reply = with_text(reply, ("rows", 0, "comm"), "db" + INVALID)
            self.assertIn(self.each_format(probe, reply, 1), (0, len(self.FILES)))

    def test_long(self):
        """A name of 1 MiB makes an answer larger than a message may be; one that just fits is written."""
        for path in (("rows", 0, "comm"), ("rows", 0, "user", "frames", 0, "name"),
                     ("rows", 0, "user", "frames", 0, "module"), ("rows", 0, "process", "exe"),
                     ("notes", 0), ("hook",)):
            reply = snapshot([waits()])
            reply["shown"]["rows"] = 1
            self.assertEqual(self.each_format("offcpu", with_text(reply, path, LONG), 1), 0)
            fits = with_text(reply, path, LONG[:-8000])
            self.assertEqual(self.each_format("offcpu", fits, 1), len(self.FILES), path)

        def rename(reply):
            return with_text(reply, ("rows", 0, "comm"), LONG[:-8000])

        self.assertEqual(self.each_report(rename), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
