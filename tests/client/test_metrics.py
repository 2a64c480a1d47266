# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs `stackctl metrics` against a stand-in for the daemon, whose units have hostile names, and lets
Prometheus' own readers of the format read the text, where they are installed. Run with: STACKCTL."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import double
from double import time

try:
    from prometheus_client import parser
except ImportError:
    if sys.executable != "/usr/bin/python3":  # the one for which Debian has the package
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    parser = None

STACKCTL = sys.argv[1]
T0 = 1_700_000_000_123_456_789
NAMES = [
    "/plain.service", "", "/other", "/quote\".service", "/back\\slash.service", "/line\nbreak.service",
    "/} 1\nforged_total 99\n# HELP x", "/{a=\"b\",}", "/\x01\x07\x1b[31m\r\t\x7f", "/\u00e4\u4e2d\U0001f600",
    "/\u202e\u2028\ufeff\ufffd", "/ends\\", "/ends\"", "/\\n", "/\\\\n\"\"", "/" + "x" * 254]
BUCKETS = [0] * 12 + [5, 0, 7] + [0] * 30 + [1]
STALL = {"some_ns": 1, "full_ns": 2, "some_ppm": 0, "full_ppm": 0}
STATUS = {
    "version": "0.1.0", "pid": 1, "started": time(T0), "boot_id": "b", "kernel": "6.1", "healthy": True,
    "problems": [], "probes": [], "windows": 3, "window_ns": 5 * 10**9, "keep_ns": 600 * 10**9,
    "user_ns": 1, "system_ns": 1, "bpf_ns": 1, "rss_bytes": 1, "map_bytes": 1, "cut_ns": 1,
    "cut_max_ns": 1, "lost": [], "limits": [], "stats_enabled": False}
METRICS = {
    "started": time(T0), "max_units": 50, "given_up": 0, "not_added": 0, "preempted_ns": 12345,
    "units": [{"unit": name, "runnable_ns": i, "throttled_ns": 0,
               "blocked": [{"class": "lock", "total_ns": 10**9 * i + 1}]}
              for i, name in enumerate(NAMES)],
    "preempted": [3, 0, 4],
    "ios": [{"layer": "device", "op": "read", "count": 13, "total_ns": 10**12, "bytes": 2**62,
             "errors": 0, "async": 0, "buckets": BUCKETS}],
    "probes": [{"probe": "offcpu", "windows": 3, "covered_ns": 15 * 10**9, "gap_ns": 0,
                "last": time(T0), "seq": 7, "lost": [{"reason": "stacks", "count": 2}]},
               {"probe": "iolat", "windows": 0, "covered_ns": 0, "gap_ns": 0, "lost": []}],
    "pressure": {"length_ns": 15 * 10**9, "cpu": STALL, "io": STALL, "memory": STALL, "units": [],
                 "units_length_ns": 0, "units_beyond": 0, "units_unreadable": 0}}


class Metrics(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.daemon = double.Double(self.directory.name + "/sock")
        self.daemon.replies["Status"] = [{"parameters": STATUS}]
        self.daemon.replies["Metrics"] = [{"parameters": METRICS}]

    def tearDown(self):
        self.daemon.close()
        self.directory.cleanup()

    def run_metrics(self, *args):
        return subprocess.run([STACKCTL, "-S", self.daemon.path, "metrics", *args], timeout=double.HANG,
                              capture_output=True, check=False)

    def text(self):
        done = self.run_metrics()
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()

    def test_hostile_names(self):
        lines = self.text().split("\n")
        self.assertEqual(lines.pop(), "")
        for i, name in enumerate(NAMES):
            label = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") or "other"
            series = f'stackd_unit_blocked_seconds_total{{unit="{label}",reason="lock"}}'
            self.assertIn(f"{series} {i}.000000001", lines)
            self.assertEqual(sum(line.startswith(series + " ") for line in lines), 1)
        for line in lines:
            self.assertRegex(line, "^(# (HELP|TYPE) )?stackd_")

    def test_values(self):
        lines = self.text().split("\n")
        for line in (
                "stackd_start_time_seconds 1700000000.123456789",
                'stackd_windows_total{probe="offcpu"} 3',
                'stackd_covered_seconds_total{probe="offcpu"} 15.000000000',
                'stackd_last_window_end_timestamp_seconds{probe="offcpu"} 1700000000.123456789',
                'stackd_lost_total{probe="offcpu",reason="stacks"} 2',
                'stackd_pressure_stalled_seconds_total{resource="io",tasks="full"} 0.000000002',
                'stackd_io_bytes_total{layer="device",op="read"} 4611686018427387904',
                'stackd_io_latency_seconds_count{layer="device",op="read"} 13'):
            self.assertIn(line, lines)
        # A probe that has no window yet has no end of one.
        self.assertFalse([line for line in lines if "iolat" in line and "last_window" in line])

    @unittest.skipUnless(parser, "needs python3-prometheus-client")
    def test_python_client_reads_it(self):
        families = {f.name: f for f in parser.text_string_to_metric_families(self.text())}
        self.assertGreater(len(families), 15)
        for family in families.values():
            self.assertIn(family.type, ("counter", "gauge", "histogram"))
            self.assertTrue(family.documentation)
        blocked = families["stackd_unit_blocked_seconds"].samples
        self.assertEqual([s.labels["unit"] for s in blocked], [name or "other" for name in NAMES])

    @unittest.skipUnless(shutil.which("promtool"), "needs promtool, of Debian's package prometheus")
    def test_promtool_accepts_it(self):
        done = subprocess.run(["promtool", "check", "metrics"], input=self.text().encode(),
                              capture_output=True, check=False, timeout=double.HANG)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, b""))

    def test_a_file_is_whole_or_absent(self):
        path = self.directory.name + "/stackd.prom"
        done = self.run_metrics("--output", path)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        with open(path, encoding="utf-8", newline="") as opened:
            before = opened.read()
        self.assertEqual(before, self.text())
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o666 & ~mask)
        # Where the daemon does not answer, the file stays as it was, and nothing else is left.
        self.daemon.replies["Metrics"] = [None]
        self.assertNotEqual(self.run_metrics("--output", path).returncode, 0)
        with open(path, encoding="utf-8", newline="") as opened:
            self.assertEqual(opened.read(), before)
        self.assertEqual(sorted(os.listdir(self.directory.name)), ["sock", "stackd.prom"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
