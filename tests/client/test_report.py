# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of `stackctl report`, made from the answers of a stand-in for the daemon: its sums are those
of the answers, by the page's own code in node; hostile names run nothing in chromium. The trace that it
writes in place of a page is read by protoc.
Run with: STACKCTL MODEL. Tests that need node, chromium or protoc are skipped without them."""

import ast
import base64
import functools
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import unittest

import double
from report_answers import EVIL, GAP, LOOKED_UP_BEFORE, STACKCTL, WINDOW, Recorder, samples_of, waits_of
from rows import HOSTILE, ROWS, T0, row

MODEL = sys.argv[2]
HERE = os.path.dirname(os.path.abspath(__file__))

# What the trace uses of Perfetto's public definition, with its numbers.
PERFETTO = """
syntax = "proto2";
message Trace { repeated TracePacket packet = 1; }
message TracePacket {
  optional ClockSnapshot clock_snapshot = 6; optional uint64 timestamp = 8;
  optional uint32 trusted_packet_sequence_id = 10; optional TrackEvent track_event = 11;
  optional InternedData interned_data = 12; optional uint32 sequence_flags = 13;
  optional TrackDescriptor track_descriptor = 60;
}
message ClockSnapshot { repeated Clock clocks = 1; }
message Clock { optional uint32 clock_id = 1; optional uint64 timestamp = 2; }
message TrackEvent {
  repeated DebugAnnotation debug_annotations = 4; optional Type type = 9; optional uint64 track_uuid = 11;
  repeated string categories = 22; optional string name = 23;
  optional double double_counter_value = 44; optional uint64 callstack_iid = 56;
  enum Type { NONE = 0; SLICE_BEGIN = 1; SLICE_END = 2; INSTANT = 3; COUNTER = 4; }
}
message DebugAnnotation {
  optional string name = 10; optional int64 int_value = 4; optional string string_value = 6;
}
message InternedData {
  repeated InternedString function_names = 5; repeated Frame frames = 6; repeated Callstack callstacks = 7;
}
message InternedString { optional uint64 iid = 1; optional bytes str = 2; }
message Frame {
  optional uint64 iid = 1; optional uint64 function_name_id = 2; optional Kind kind = 7;
  enum Kind { UNKNOWN = 0; NATIVE = 1; KERNEL = 2; }
}
message Callstack { optional uint64 iid = 1; repeated uint64 frame_ids = 2; }
message TrackDescriptor {
  optional uint64 uuid = 1; optional string name = 2; optional uint64 parent_uuid = 5;
  optional CounterDescriptor counter = 8;
}
message CounterDescriptor { optional Unit unit = 3; enum Unit { ANY = 0; TIME_NS = 1; COUNT = 2; } }
"""


def read_message(lines):
    """Reads a message in protoc's text form, as {name: [values]}, up to its closing bracket."""
    message = {}
    for line in lines:
        line = line.strip()
        if line == "}":
            break
        if line.endswith("{"):
            message.setdefault(line[:-2], []).append(read_message(lines))
            continue
        name, value = line.split(": ", 1)
        if value[0] == '"':
            value = ast.literal_eval("b" + value).decode()
        elif re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?", value):
            value = float(value) if "." in value or "e" in value else int(value)
        message.setdefault(name, []).append(value)
    return message


class Trace:
    """The packets of a trace, as protoc reads them."""

    def __init__(self, directory, path):
        with open(directory + "/perfetto.proto", "w", encoding="ascii") as file:
            file.write(PERFETTO)
        with open(path, "rb") as file:
            done = subprocess.run(["protoc", "--proto_path", directory, "--decode=Trace",
                                   "perfetto.proto"], stdin=file, stdout=subprocess.PIPE, check=True,
                                  timeout=double.HANG)
        # A member that the definition does not have would be a number.
        self.text = done.stdout.decode()
        self.packets = read_message(iter(self.text.splitlines()))["packet"]
        self.tracks, self.strings, self.frames, self.stacks = {}, {}, {}, {}
        self.events = []
        for packet in self.packets:
            for track in packet.get("track_descriptor", []):
                self.tracks[track["uuid"][0]] = track
            for data in packet.get("interned_data", []):
                self.intern(data)
            for event in packet.get("track_event", []):
                self.events.append((packet["timestamp"][0], event))
                if "callstack_iid" in event:  # it has come by now
                    event["stack"] = self.stacks[event["callstack_iid"][0]]

    def intern(self, data):
        for string in data.get("function_names", []):
            self.strings[string["iid"][0]] = string["str"][0]
        for frame in data.get("frames", []):
            self.frames[frame["iid"][0]] = self.strings[frame["function_name_id"][0]]
        for stack in data.get("callstacks", []):
            self.stacks[stack["iid"][0]] = [self.frames[i] for i in stack["frame_ids"]]

    def path(self, uuid):
        """Returns the names of a track and those above it, the outermost first."""
        track = self.tracks[uuid]
        above = self.path(track["parent_uuid"][0]) if "parent_uuid" in track else []
        return [*above, track["name"][0]]

    def counter(self, name):
        return [(time, e["double_counter_value"][0]) for time, e in self.events
                if e["type"] == ["COUNTER"] and self.path(e["track_uuid"][0])[-1] == name]

    def slices(self, under):
        """Returns the slices below a track as (start, end or None, event)."""
        found, begun = [], {}
        for at, event in self.events:
            track = event["track_uuid"][0]
            if event["type"] == ["SLICE_BEGIN"] and self.path(track)[0].startswith(under):
                assert track not in begun or begun[track][1] is not None, "they do not overlap"
                begun[track] = [at, None, event]
                found.append(begun[track])
            elif event["type"] == ["SLICE_END"] and track in begun:
                begun[track][1] = at
        return found


def annotations(event):
    return {a["name"][0]: (a.get("string_value") or a["int_value"])[0]
            for a in event["debug_annotations"]}


class Report(Recorder):
    def computed(self, *words):
        """Returns what the page's own code makes of its data."""
        if not shutil.which("node"):
            self.skipTest("no node")
        data = self.data_of(self.page(*words))
        with open(self.at + "/data", "w", encoding="utf-8") as file:
            json.dump(data, file)
        done = subprocess.run(["node", HERE + "/report_model.js", MODEL, self.at + "/data"],
                              stdout=subprocess.PIPE, check=True, timeout=double.HANG)
        return json.loads(done.stdout)

    def check_sums(self, out):
        waits, samples = self.answers("offcpu")[::-1], self.answers("oncpu")[::-1]
        self.assertEqual(len(out["columns"]), len(waits))
        for got, off, on in zip(out["columns"], waits, samples):
            parts = {p["name"]: p["total_ns"] for p in off["parts"]}
            self.assertEqual(got["blocked"], parts["blocked"])
            self.assertEqual(got["runnable"], parts["runnable"] + parts["throttled"])
            self.assertEqual(got["oncpu"], on["parts"][0]["total_ns"])
            self.assertEqual(got["all"], sum(got[v] for v in ("blocked", "runnable", "oncpu")))

    def test_sums(self):
        out = self.computed()
        self.check_sums(out)
        self.assertEqual(out["data"]["cut"], [0, 0, 0])
        # rows of a process's thread name are below it in the tree
        want = sum(r["total_ns"] + 11 * n for n in self.numbers() for i, r in enumerate(ROWS) if i == 3)
        self.assertEqual(out["nodes"]["--"], want)
        self.assertIn(["db", "main", "db+0x40", "db", "schedule"], [r["path"] for r in out["table"]])
        half = len(self.numbers()) // 2
        waits = self.answers("offcpu")[::-1] + self.answers("oncpu")[::-1]
        wanted = sum(p["total_ns"] for r in waits[half:5] + waits[5 + half:] for p in r["parts"])
        self.assertEqual(out["change"], wanted)

    def test_reasons_without_idle(self):
        reasons = dict(self.computed()["reasons"])
        want = sum(r["blocked_ns"] for n in self.numbers() for r in waits_of(n)
                   if r["reason"] == "pipe" and not r["idle"])
        self.assertEqual(reasons["pipe"], want)

    def test_a_comparison_has_sleeps(self):
        """Of idle waits a comparison has sleeps only, its table and its graph; one range alone has none."""
        self.make = lambda n: [row("db", n, reason="sleep", idle=True, function="nap"),
                               row("web", n, reason="epoll", idle=True, function="serve")]
        out = self.computed()
        self.assertIn("nap", out["compared"])
        self.assertNotIn("serve", out["compared"])
        sampled = sum(r["total_ns"] for n in self.numbers() for r in samples_of(n))
        self.assertEqual(out["sums"], sampled)
        self.assertGreater(out["rates"] * 5 * len(self.numbers()), 1.5 * sampled)

    def test_stackd_itself_is_last(self):
        """The recorder's own threads are no finding, however long they wait."""
        self.make = lambda n: [row("stackd", n, own=True, blocked_ns=10**12, total_ns=10**12, reason=None),
                               row("db", n, reason="flock", function="db_lock")]
        self.make = functools.partial(lambda make, n: [{k: v for k, v in r.items() if v is not None} for r in make(n)],
                                      self.make)
        out = self.computed()
        self.assertEqual(out["table"][-1]["path"][0], "stackd")
        self.assertGreater(out["table"][-1]["value"], out["table"][0]["value"])
        self.assertIn("stackd itself", dict(out["reasons"]))

    def test_functions(self):
        """Rows are by the function that the daemon names; where it names none, by the client's rule."""
        self.make = lambda n: [row("db", n, reason="flock", function="db_lock"), row("web", n, reason="pipe")]
        functions = dict(self.computed()["functions"])
        wanted = sum(row("db", n)["total_ns"] for n in self.numbers())
        self.assertEqual(functions["db_lock"], wanted)
        self.assertEqual(functions["web"], wanted)

    def test_pools(self):
        """Threads whose names differ in digits only are one in the tree, as in rows by thread name."""
        self.make = lambda n: [row(f"worker-{n}", n, reason="flock")]
        nodes = self.computed()["nodes"]
        self.assertEqual(nodes["worker-*"], sum(row("db", n)["total_ns"] for n in self.numbers()))

    def test_waits_without_an_end(self):
        """A wait without an end has not ended; with a filter of lengths it may have, so it is left out."""
        open_wait = row("db", 1, reason="flock", open=1, max_tid=5)
        del open_wait["max_end"]
        by = {"ns": 10**9, "pid": 8, "tid": 9, "comm": "backup"}
        self.make = lambda n: [open_wait, row("web", n, reason="mutex", max_tid=6, held_up_by=by)]
        data = self.data_of(self.page())
        waits = list(zip(*[iter(data["waits"])] * 7))
        self.assertEqual({(tid, is_open, data["strings"][by]) for _, _, tid, _, _, is_open, by in waits},
                         {(5, 1, ""), (6, 0, "backup(9) for 1.00s")})
        data = self.data_of(self.page("--min-block-time", "5"))["waits"]
        self.assertEqual({(data[i + 2], data[i + 5]) for i in range(0, len(data), 7)}, {(6, 0)})

    def test_latencies(self):
        out = self.computed()
        wanted = sum(2 + n for n in self.numbers()) * len(ROWS)
        self.assertEqual(out["buckets"][11], wanted)
        self.assertIn(("syscall", "read"), [(l["layer"], l["name"]) for l in out["latencies"]])

    def test_gap(self):
        data = self.data_of(self.page())
        starts = [data["columns"][i] for i in range(0, len(data["columns"]), 19)]
        self.assertEqual(starts, [n * WINDOW for n in self.numbers()])
        self.assertIn("stackd was killed", data["gaps"][0][3])

    def test_notes_of_sampling(self):
        """Of the notes that differ by the bound of sampling, a page has that of the greatest one."""
        plain = self.answers

        def sampled(probe):
            replies = plain(probe)
            for number, reply in enumerate(replies):
                bound = (number % 3 + 1) * (10 if probe == "iolat" else 1) * 10**6
                reply.update(sample_below_ns=bound, notes=[f"sampled: those under {bound}", "of all"])
            return replies

        self.answers = sampled
        data = self.data_of(self.page())
        self.assertCountEqual(data["notes"], [[0, "of all"], [1, "of all"], [2, "of all"],
                                              [0, "sampled: those under 3000000"],
                                              [1, "sampled: those under 3000000"],
                                              [2, "sampled: those under 30000000"]])
        self.assertEqual(data["sample_below"], 3 * 10**6, "of waits, not of I/O")

    def test_not_sent(self):
        self.unsent = 10**9
        out = self.computed()
        self.check_sums(out)
        self.assertEqual(out["data"]["unsent"], [35, 35])
        self.assertIn(["[not listed]"], [r["path"] for r in out["table"]])

    def test_max_size(self):
        self.make = lambda n: [row(f"db{i % 500}", i + 1000 * n, reason="flock") for i in range(2000)]
        done = self.run_report("--max-size", "500K")
        self.assertRegex(done.stderr, r"left out [\d,]+ small rows with .* --max-size")
        self.assertLessEqual(os.path.getsize(self.at + "/x.html"), 500 << 10)
        out = self.computed("--max-size", "500K")
        self.check_sums(out)
        self.assertGreater(out["data"]["cut"][0], 0)
        self.assertIn("too small", self.run_report("--max-size", "9K", output="y.html", code=1).stderr)
        self.assertFalse(os.path.exists(self.at + "/y.html"))

    def test_hostile_names_in_the_file(self):
        page = self.page()
        self.assertEqual(page.count("<script"), 4)
        self.assertEqual(page.count("</script"), 4)
        self.assertFalse(re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\u2028\u2029]", page))
        data = self.data_of(page)
        self.assertIn(EVIL, data["strings"])
        self.assertTrue(any(HOSTILE[:20] in text for text in data["strings"]))
        self.assertLessEqual(max(map(len, data["strings"])), 1003)
        self.assertGreater(data["cut_names"], 0)

    def test_policy(self):
        """The page allows only its own scripts, and nothing from anywhere else."""
        page = self.page()
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
        self.assertTrue(policy.startswith("default-src 'none'; "), policy)
        self.assertNotIn("unsafe", policy)
        pieces = re.findall(r"<script>(.*?)</script>", page, re.S) + re.findall(
            r"<style>(.*?)</style>", page, re.S)
        self.assertEqual(len(pieces), 4)
        for piece in pieces:
            digest = base64.b64encode(hashlib.sha256(piece.encode()).digest()).decode()
            self.assertIn(f"'sha256-{digest}'", policy)
        self.assertFalse(re.search(r"(src|href|url)\s*[=(]|@import|fetch\(|XMLHttp|innerHTML",
                                   re.sub(r'id="data">.*?</script>', "", page, flags=re.S)))

    def test_disk_full(self):
        def small(size=20000):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        self.run_report(output="full.html", code=7, preexec_fn=small)
        small_trace = functools.partial(small, 500)
        self.run_report(output="full.pftrace", code=7, preexec_fn=small_trace)
        self.assertEqual([n for n in os.listdir(self.at) if n.startswith("full")], [])
        self.assertIn("No space", self.run_report(output="/dev/full", code=7).stderr)

    def test_open_waits(self):
        data = self.data_of(self.page())
        held, = data["open"]
        self.assertEqual(data["open_at"] - held[15], LOOKED_UP_BEFORE)

    def trace(self, *words):
        if not shutil.which("protoc"):
            self.skipTest("no protoc")
        self.run_report(*words, output="x.pftrace")
        return Trace(self.at, self.at + "/x.pftrace")

    def test_trace_counters(self):
        trace = self.trace()
        waits = self.answers("offcpu")[::-1]
        starts = [r["coverage"]["used"]["start"]["ns"] for r in waits]
        for name, member in (("threads blocked", "blocked_ns"), ("threads runnable", "runnable_ns"),
                             ("threads on CPU", "on_cpu_ns")):
            got = trace.counter(name)
            self.assertEqual([at for at, _ in got], starts)
            self.assertEqual([round(value * WINDOW) for _, value in got],
                             [r["totals"][member] for r in waits])
        self.assertEqual(trace.counter("I/O per second, syscall"),
                         [(T0 + n * WINDOW, 8 / 5) for n in self.numbers()])
        stalls = [(at, round(value * WINDOW / 100)) for at, value in trace.counter("PSI I/O some, %")]
        self.assertEqual(stalls, [(T0 + n * WINDOW, 10**9 + n) for n in self.numbers()])
        first = trace.packets[0]
        self.assertEqual(first["sequence_flags"], [1])
        self.assertEqual({c["timestamp"][0] for c in first["clock_snapshot"][0]["clocks"]}, {T0})
        self.assertEqual({p["trusted_packet_sequence_id"][0] for p in trace.packets}, {1})

    def test_trace_slices(self):
        trace = self.trace()
        waits = trace.slices("stackd: the ")
        # Idle waits are none of the longest ones; each is at its true place in time.
        wanted = {(T0 + n * WINDOW + 10**9, r["max_ns"]) for n in self.numbers() for r in waits_of(n)
                  if not r["idle"]}
        got = {(end, end - start) for start, end, _ in waits}
        self.assertTrue(got <= wanted, got - wanted)
        self.assertEqual(max(length for _, length in got), max(length for _, length in wanted))
        self.assertIn(["main", "db+0x40", "db", "schedule"], [e["stack"] for _, _, e in waits])
        self.assertIn("a file lock", " ".join(e["name"][0] for _, _, e in waits))
        (start, end, held), = trace.slices("stackd: waiting at the end")
        self.assertEqual((start, end), (T0 + self.columns * WINDOW - 60 * 10**9, None))
        self.assertEqual(annotations(held)["deadlock"], "yes")
        self.assertEqual(annotations(held)["holder looked up so many ns before"], LOOKED_UP_BEFORE)
        self.assertIn("(pid 101, thread 77)", trace.path(held["track_uuid"][0])[-1])
        (start, end, gap), = trace.slices("stackd: no data")[:1]
        self.assertEqual((start, end), (T0 + GAP * WINDOW, T0 + (GAP + 1) * WINDOW))
        self.assertIn("stackd was killed", gap["name"][0])

    def test_trace_of_hostile_names(self):
        trace = self.trace()
        about, = [annotations(e) for _, e in trace.events if e["type"] == ["INSTANT"]]
        self.assertIn("a choice", about["slices"])
        self.assertEqual(about["lost of offcpu: stacks"], 3 * len(self.numbers()))
        self.assertFalse(re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\u2028\u2029]", trace.text))
        titles = "".join(t["name"][0] for t in trace.tracks.values())
        (_, _, held), = trace.slices("stackd: waiting at the end")
        self.assertEqual(annotations(held)["object"], "/x" + EVIL)
        self.assertIn("\\x1b\\u202e", titles)

    def test_trace_words(self):
        with open(self.at + "/out", "wb") as file:
            done = subprocess.run([STACKCTL, "-S", self.at + "/sock", "report", "--since",
                                   "2026-03-01 00:00", "--until", "2026-03-02 00:00", "--format",
                                   "perfetto"], stdout=file, timeout=double.HANG, check=False)
        self.assertEqual(done.returncode, 0)
        self.run_report(output="y.perfetto-trace")
        for name in ("/out", "/y.perfetto-trace"):
            self.assertGreater(os.path.getsize(self.at + name), 1000)
        self.assertIn("--max-size", self.run_report("--max-size", "1M", output="z.pftrace", code=1).stderr)
        self.assertIn("one of page|perfetto", self.run_report("--format", "x", code=1).stderr)
        done = subprocess.run([STACKCTL, "snapshot", "offcpu", "-o", self.at + "/s.pftrace"],
                              stderr=subprocess.PIPE, text=True, timeout=double.HANG, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("stackctl report --output", done.stderr)

    def test_wrong_words(self):
        self.assertIn("incident.html", self.run_report(output="x.txt", code=1).stderr)
        self.assertIn("8M or 500K", self.run_report("--max-size", "8X", code=1).stderr)

    def test_in_browser(self):
        browser = shutil.which("chromium")
        if not browser:
            self.skipTest("no chromium")
        # Many windows; what the page says of all is the sum of the answers, without idle waits.
        self.columns = 60
        gone = row("gone", 70, reason="pipe")
        self.make = lambda n: waits_of(n) + ([gone] if n < 2 else [])
        self.run_report()
        blocked = sum(r["blocked_ns"] for n in self.numbers() for r in self.make(n) if not r["idle"])
        for state, says in (("", "Still waiting at the end"), ("#b=0-2&a=2-5&view=all&theme=dark", "Gone: 1 row of ")):
            done = subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                 "--log-level=0", f"--user-data-dir={self.at}/profile", "--virtual-time-budget=5000",
                 "--dump-dom", f"file://{self.at}/x.html{state}"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200, check=False)
            console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
            self.assertEqual(console, [])
            dom = re.sub(r"<script.*?</script>", "", done.stdout, flags=re.S)
            self.assertRegex(dom, r'<html[^>]* data-ready="\d+"')
            self.assertIn(says, dom)
            self.assertIn("stackd was killed", dom)
            self.assertIn("a deadlock", dom)
            self.assertEqual(dom.count("<small>as of "), 1)
            for word in ("Pressure", "memory", "a file lock", "read"):  # in the legend
                self.assertIn(word, dom)
            if not state:
                minutes = float(re.search(r"Blocked: ([\d.]+) min", dom)[1])
                self.assertAlmostEqual(minutes, blocked / 60e9, delta=0.051)
            self.assertRegex(dom, r"<title>stackd report: ")
            self.assertNotIn("<img", dom)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
