# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of `stackctl report` in the hands of a reader: headless chromium is driven by keys and by the
mouse, as a reader would. What the page says in each state is what the answers of the stand-in for the daemon
add up to; it says nothing on its console and asks the network for nothing.
Run with: STACKCTL. Skipped (77) without chromium."""

import re
import sys
import tempfile
import unittest

import browser
from report_answers import GAP, Recorder, waits_of

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 6 * 10**10, "h": 36 * 10**11}


def ns_of(text):
    """Returns the time that the page writes as 1.23 ms, and half of its last digit."""
    number, unit = re.search(r"([\d.]+) (ns|us|ms|s|min|h)\b", text).groups()
    digits = len(number.partition(".")[2])
    return float(number) * UNITS[unit], 0.51 * 10**-digits * UNITS[unit]


class Page(Recorder):
    @classmethod
    def setUpClass(cls):
        cls.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # of chromium
        cls.browser = browser.Browser(cls.profile.name)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.profile.cleanup()

    def setUp(self):
        super().setUp()
        self.columns = 24
        self.run_report()

    def open(self, state=""):
        self.browser.open(f"file://{self.at}/x.html{state}")
        self.browser.wait("document.documentElement.dataset.ready")
        self.browser.painted()

    def text(self, name):
        return self.browser.value(f"document.getElementById('{name}').innerText")

    def focus(self, name):
        self.browser.value(f"document.getElementById('{name}').focus()")

    def pressed(self, name):
        return self.browser.value(f"document.getElementById('{name}').getAttribute('aria-pressed')") == "true"

    def press(self, *keys, modifiers=0):
        for key in keys:
            self.browser.press(key, modifiers)

    def quiet(self):
        """Nothing on the console, no exception, no request but that for the page itself."""
        self.assertEqual(self.browser.console, [])
        self.assertEqual(self.browser.refused, [])
        self.assertEqual(list(self.browser.requests.values()), [f"file://{self.at}/x.html"])

    def blocked(self, numbers, key="blocked_ns", with_idle=False):
        return sum(r[key] for n in numbers for r in waits_of(n) if with_idle or not r["idle"])

    def check_whole(self, numbers, key="blocked_ns"):
        """The line below the flame graph has the sum of the answers about these windows."""
        self.focus("flame")
        shown, delta = ns_of(self.text("frame"))
        self.assertAlmostEqual(shown, self.blocked(numbers, key), delta=delta)

    def test_keys_alone(self):
        """Every part is reached and used without a mouse."""
        self.open()
        numbers = self.numbers()
        self.check_whole(numbers)
        # The timeline: the first window, the next one, one more, another one to compare with.
        self.focus("timeline")
        self.press("Home")
        self.check_whole(numbers[:1])
        self.focus("timeline")
        self.press("ArrowRight")
        self.check_whole(numbers[1:2])
        self.focus("timeline")
        self.press("ArrowRight", modifiers=browser.SHIFT)
        self.check_whole(numbers[1:3])
        self.press("2")
        self.check_whole(numbers[1:3], "runnable_ns")
        self.press("3", "a")
        self.check_whole(numbers)
        # The search, zoom to what is below, and back.
        self.press("/")
        self.assertEqual(self.browser.value("document.activeElement.id"), "search")
        self.press("m", "a", "i", "n")
        self.assertRegex(self.text("flame-note"), r"\d+ frames match, with [\d.]+ %")
        self.press("Escape")
        self.assertEqual(self.browser.value("document.activeElement.id"), "flame")
        self.press("ArrowDown", "ArrowDown")
        self.assertIn("main", self.text("frame"))
        self.press("Enter")
        self.assertFalse(self.browser.value("document.getElementById('out').disabled"))
        self.press("Backspace", "Backspace")
        self.assertTrue(self.browser.value("document.getElementById('out').disabled"))
        self.press("?")
        self.assertIn("Backspace", self.text("help"))
        self.quiet()

    def test_comparison_by_keys(self):
        self.open()
        self.focus("timeline")
        self.press("End", "c")
        self.assertTrue(self.pressed("pick-b"))
        numbers = self.numbers()
        self.assertIn("compared with", self.text("ranges"))
        now, delta = ns_of(self.text("frame"))
        self.assertAlmostEqual(now, self.blocked(numbers[-1:]) / 5, delta=delta)  # for each second
        rows = self.browser.value("document.querySelectorAll('#table tr').length")
        # Each thread name has one stack here, with different processes in the two windows.
        self.assertEqual(rows, len({r["comm"][:1000] for r in waits_of(0) if not r["idle"]}) + 1)
        self.assertIn("change", self.text("table"))
        self.assertTrue(self.browser.value("document.getElementById('gone').hidden"))
        # By process, the one that only the window before had is gone.
        self.browser.value("(() => { const by = document.getElementById('by'); by.value = 'process';"
                           " by.dispatchEvent(new Event('change')); })()")
        self.assertIn("Gone: 1 row of", self.text("gone-title"))
        self.press("Escape")
        self.assertNotIn("compared with", self.text("ranges"))
        self.assertTrue(self.browser.value("document.getElementById('gone').hidden"))
        # Nothing is before the first windows: the range stays, and the base is what comes after it.
        self.focus("timeline")
        self.press("Home")
        self.press("ArrowRight", modifiers=browser.SHIFT)
        chosen = self.text("ranges")
        self.press("c")
        self.assertTrue(self.text("ranges").startswith(chosen + ", compared with "), self.text("ranges"))
        self.quiet()

    def test_mouse(self):
        """A drag over the timeline chooses a range, with Shift the one to compare with; a click zooms."""
        self.open()
        box = self.browser.value("(() => { const b = document.getElementById('timeline')"
                                 ".getBoundingClientRect(); return [b.x, b.y, b.width]; })()")
        room = box[2] - 126 - 12
        # The range ends long after the last window: as much time without data is drawn behind it.
        span = 2 * self.columns

        def at(share):
            return (box[0] + 126 + room * share, box[1] + 60)

        self.browser.drag(at(0.5 / span), at(1.5 / span))
        first = self.text("ranges")
        self.assertIn("(10.0 s)", first)
        self.check_whole([0, 1])
        self.browser.drag(at((GAP + 4.5) / span), at((GAP + 5.5) / span), browser.SHIFT)
        self.assertTrue(self.text("ranges").startswith(first + ", compared with "))
        self.browser.value("document.getElementById('flame').scrollIntoView()")
        flame = self.browser.value("(() => { const b = document.getElementById('flame')"
                                   ".getBoundingClientRect(); return [b.x, b.y, b.width]; })()")
        point = (flame[0] + 4, flame[1] + 19 * 1.5)
        self.browser.mouse("mouseMoved", *point)
        tip = self.text("tip")
        self.browser.mouse("mousePressed", *point)
        self.browser.mouse("mouseReleased", *point)
        self.browser.painted()
        self.assertFalse(self.browser.value("document.getElementById('out').disabled"))
        self.assertEqual(self.text("frame").split(" \u00b7 ")[0], tip.split("\n")[0])
        self.quiet()

    def test_sums_in_the_browser(self):
        """The cells of the page, as its code has them in the browser, are the answers."""
        self.open()
        cells = self.browser.value("""(() => {
            const m = model.read(JSON.parse(document.getElementById('data').textContent));
            return m.columns.map((c, i) => ['blocked', 'runnable', 'oncpu'].map((view) => {
                const v = model.totals(m, model.sum(m, i, i + 1), view, true, false);
                return v[v.length - 1];
            }));
        })()""")
        waits, samples = self.answers("offcpu")[::-1], self.answers("oncpu")[::-1]
        wanted = []
        for off, on in zip(waits, samples):
            parts = {p["name"]: p["total_ns"] for p in off["parts"]}
            wanted.append([parts["blocked"], parts["runnable"] + parts["throttled"],
                           on["parts"][0]["total_ns"]])
        self.assertEqual(cells, wanted)
        self.quiet()

    def test_policy_holds(self):
        """The browser refuses what the page's policy does not allow: scripts, pictures, connections."""
        self.open()
        refused = self.browser.value("""(async () => {
            const seen = [];
            document.addEventListener('securitypolicyviolation', (e) => seen.push(e.effectiveDirective));
            const script = document.createElement('script');
            script.textContent = 'document.title = "run"';
            document.body.append(script);
            const image = document.createElement('img');
            image.src = 'https://stackd.invalid/x.png';
            document.body.append(image);
            await fetch('https://stackd.invalid/').catch(() => 0);
            await new Promise((f) => setTimeout(f, 200));
            return [seen.sort(), document.title];
        })()""")
        self.assertEqual(refused[0], ["connect-src", "img-src", "script-src-elem"])
        self.assertTrue(refused[1].startswith("stackd report"))
        self.assertEqual(self.browser.refused, ["https://stackd.invalid/x.png"])
        self.assertEqual(list(self.browser.requests.values()), [f"file://{self.at}/x.html"])

    def test_dark_and_light(self):
        seen = {}
        for theme in ("light", "dark"):
            self.open("#theme=" + theme)
            seen[theme] = self.browser.value("[getComputedStyle(document.body).backgroundColor,"
                                             " getComputedStyle(document.body).color]")
        self.assertNotEqual(seen["light"], seen["dark"])
        # The button switches, and the canvases are drawn again in the other colours.
        pixels = "document.getElementById('timeline').toDataURL()"
        dark = self.browser.value(pixels)
        self.browser.value("document.getElementById('theme').click()")
        self.browser.painted()
        self.assertEqual(self.browser.value("getComputedStyle(document.body).color"), seen["light"][1])
        self.assertNotEqual(self.browser.value(pixels), dark)
        # Without a word in the address, the reader's choice in the system decides.
        for theme in ("light", "dark"):
            self.browser.call("Emulation.setEmulatedMedia",
                              features=[{"name": "prefers-color-scheme", "value": theme}])
            self.open()
            self.assertEqual(self.browser.value("document.documentElement.dataset.theme"), theme)
        self.quiet()


if __name__ == "__main__":
    if not browser.path():
        print("skipped: needs chromium")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
