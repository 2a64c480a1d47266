# SPDX-License-Identifier: GPL-2.0-or-later
"""Ranges that are out of the ordinary, as `stackctl report` makes a page or a trace of them: nothing, one window,
the runs of two daemons with a gap between them, windows of which only some probes know, ten million rows that
the recorder did not send; and what is said on a terminal meanwhile.
Run with: STACKCTL."""

import os
import pty
import re
import subprocess
import unittest

from double import error, time
from report_answers import STACKCTL, WINDOW, Recorder, answer, samples_of, waits_of
from rows import T0, row

NO_DATA = error("io.stackd.NoData", what="iolat is off", message="iolat is off")
RANGE = ["report", "--since", "2026-03-01 00:00", "--until", "2026-03-02 00:00"]


class Ranges(Recorder):
    def columns_of(self, data):
        values = data["columns"]
        return [values[i:i + 19] for i in range(0, len(values), 19)]

    def test_nothing(self):
        self.daemon.replies["Windows"] = [{"parameters": {"windows": [], "gaps": []}}]
        self.daemon.replies["Snapshot"] = [NO_DATA]
        for name in ("x.html", "x.pftrace"):
            done = self.run_report(output=name, code=4)
            self.assertIn("no data in the range: ", done.stderr)
            self.assertFalse(os.path.exists(f"{self.at}/{name}"))

    def test_one_window(self):
        self.columns = 1
        page = self.page()
        data = self.data_of(page)
        column, = self.columns_of(data)
        self.assertEqual(column[:5], [0, WINDOW, WINDOW, WINDOW, WINDOW])
        self.assertEqual(data["gaps"], [])
        self.run_report(output="x.pftrace")

    def test_one_row(self):
        self.columns = 1
        self.make = lambda n: [row("db", 1, reason="pipe", max_tid=5)]
        data = self.data_of(self.page())
        self.assertEqual(len(data["rows"]), 1)
        self.assertEqual(len(data["waits"]), 7)  # one wait

    def test_stacks_come_once(self):
        """Two windows with the same stacks have the frames of one."""
        self.make = lambda n: [row("db", 1, reason="pipe", max_tid=5)]
        frames = []
        for self.columns in (1, 2):
            data = self.data_of(self.page())
            frames.append((data["frames"], data["nodes"], data["keys"]))
        self.assertEqual(frames[0], frames[1])

    def test_no_rows(self):
        """A window in which nobody waited is no gap."""
        self.columns = 1
        self.make = lambda n: []
        data = self.data_of(self.page())
        self.assertEqual(len(self.columns_of(data)), 1)
        self.assertEqual(data["gaps"], [])

    def test_two_runs(self):
        """Numbers of windows and pids begin again; the time between the runs is a gap, and nobody is mixed up."""
        second = T0 + 10 * WINDOW
        span = {"start": time(T0 + WINDOW), "end": time(second)}

        def windows(_):
            starts = [(1, T0), (1, second), (2, second + WINDOW)]
            return [{"parameters": {"gaps": [{**span, "reason": "stackd was not running"}], "windows": [
                {"seq": seq, "start": time(start), "end": time(start + WINDOW), "length_ns": WINDOW, "rows": 1,
                 "threads": 1, "open": 0, "bytes": 1, "lost": []} for seq, start in starts]}}]

        def one(number, probe):
            # A process with the same pid, started at another time, has another name now.
            name, born = ("old", T0 - 1) if number == 0 else ("new", second + 1)
            rows = waits_of(number) if probe == "offcpu" else samples_of(number)
            rows.append({**rows[0], "comm": name, "process": {**rows[0]["process"], "pid": 77, "comm": name,
                                                              "start": time(born)}})
            reply = answer(number, rows, probe)
            if number == 10:
                reply["coverage"]["gaps"] = [{**span, "reason": "stackd was not running"}]
            return reply

        self.daemon.replies["Windows"] = windows
        self.daemon.replies["Snapshot"] = lambda asked: [
            {"parameters": one(n, asked["probe"]), "continues": n != 0} for n in (11, 10, 0)] if (
                asked["probe"] != "iolat" and not asked.get("open")) else [NO_DATA]
        data = self.data_of(self.page())
        self.assertEqual([c[0] for c in self.columns_of(data)], [0, 10 * WINDOW, 11 * WINDOW])
        self.assertEqual([(g[1], g[2]) for g in data["gaps"] if "not running" in g[3]],
                         [(WINDOW, 10 * WINDOW)] * 2)  # of two probes
        processes = [data["processes"][i:i + 5] for i in range(0, len(data["processes"]), 5)]
        self.assertEqual(sorted(data["strings"][p[1]] for p in processes if p[0] == 77), ["new", "old"])
        self.assertIn("iolat is off", data["missing"][2])
        self.run_report(output="x.pftrace")

    def test_ten_million_rows(self):
        """The recorder sends the largest rows of each window, and says how many it has left out."""
        def snapshot(request):
            replies = self.snapshot(request)
            for reply in replies:
                reply["parameters"]["rest"]["rows"] = 2 * 10**6
            return replies

        self.unsent = 3 * 10**9
        self.daemon.replies["Snapshot"] = snapshot
        done = self.run_report()
        self.assertIn("10,000,000 small rows of offcpu are not listed", done.stderr)
        asked, = [c["parameters"]["top"] for c in self.daemon.calls if c["method"].endswith(".Snapshot")
                  and c["parameters"]["probe"] == "offcpu" and not c["parameters"].get("open")]
        self.assertLessEqual(asked * len(self.numbers()), 10**6)
        self.assertGreater(asked, 10**5)
        self.assertEqual(self.data_of(self.page())["unsent"], [10**7, 10**7])

    def run_on_terminal(self, *words):
        """Returns what stackctl prints on a terminal as its standard error."""
        main, end = pty.openpty()
        with subprocess.Popen([STACKCTL, "-S", self.at + "/sock", *RANGE, *words], stderr=end,
                              stdin=subprocess.DEVNULL) as process:
            os.close(end)
            text = b""
            while True:
                try:
                    data = os.read(main, 4096)
                except OSError:  # the end of the other side
                    break
                if not data:
                    break
                text += data
        os.close(main)
        self.assertEqual(process.returncode, 0, text)
        return text.decode()

    def test_progress(self):
        text = self.run_on_terminal("-o", self.at + "/x.html")
        n = len(self.numbers())
        for probe in ("offcpu", "oncpu", "iolat"):
            self.assertEqual(re.findall(rf"\rstackctl: {probe}: (\d+) of about {n} windows", text),
                             [str(i + 1) for i in range(n)])
        # In the end, nothing of it is left in the line.
        self.assertTrue(text.endswith(f"\r\x1b[Kstackctl: wrote {self.at}/x.html\r\n"), ascii(text[-80:]))
        self.assertEqual(self.run_report().stderr, "")


if __name__ == "__main__":
    unittest.main(argv=["test_report_ranges"], verbosity=2)
