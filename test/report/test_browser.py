# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: no complaints, no text on another, nothing wider than the window.

TESSERA_BROWSER is the program; without one this is skipped, with exit code 77.
"""

import html
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import make_fixture
from support import WithDirectory, change_json, read_json, results_of, run_report

# A laptop, a tablet, a phone and a sheet of A4 with its margins (273 mm), in CSS pixels, and whether it is paper.
SCREENS = ((1300, False), (800, False), (390, False), (1032, True))
BROWSER = os.environ.get("TESSERA_BROWSER", "")


def browse(page, *options):
    """Returns the page as the browser understands it, and the browser's complaints."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               "--enable-logging=stderr", "--dump-dom", *options, page.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


class InABrowser(WithDirectory):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.page = cls.written(cls.fixture, cls.scratch / "report")

    @classmethod
    def written(cls, results, output):
        done = run_report(results, "-o", output)
        assert done.returncode == 0, done.stderr
        return output / "report.html"

    def examined(self, page, width=1200, paper=False):
        """Returns the number of texts in figures and what is wrong with them, from a copy that examines itself. On
        paper, the rules for printing apply."""
        script = (Path(__file__).parent / "overlaps.js").read_text(encoding="utf-8")
        # A window of the browser is at least 500 wide, so the page is narrowed.
        source = page.read_text(encoding="utf-8").replace(
            "<html ", f'<html style="width: {width}px" data-paper="{"yes" if paper else "no"}" ', 1)  # fmt: skip
        source = source.replace("@media print", "@media screen" if paper else "@media print")
        copy = page.with_name(f"{page.stem}-examined.html")
        copy.write_text(source.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
        dom, complaints = browse(copy, f"--window-size={max(500, width)},900")
        self.assertEqual(complaints, [])
        texts, *found = html.unescape(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1]).splitlines()
        return int(texts.split()[0]), found

    def test_complaints_are_seen(self):
        page = self.scratch / "broken.html"
        page.write_text("<script>nothing()</script>", encoding="utf-8")
        self.assertNotEqual(browse(page)[1], [])

    def test_no_text_lies_on_another(self):
        for width, paper in SCREENS:
            number, found = self.examined(self.page, width, paper)
            self.assertGreater(number, 200)
            self.assertEqual(found, [], f"in a width of {width}")

    def test_long_names_of_many_settings_do_not_overlap(self):
        results = self.copy()
        for number, name in enumerate(results_of(results)):
            factors = {"distributed.schedule": ("zero_bubble", "interleaved")[number % 2],
                       "microbatches": 4 + number % 3, "model.kind": ("transformer", "fno")[number % 2]}  # fmt: skip
            bubble = {"schedule": "gpipe", "stages": 4, "bubble": 0.25}
            result = read_json(results / "cases" / name / "result.json")
            result = {**result, "factors": {**result["factors"], **factors}, "pipeline": bubble}
            make_fixture.write(results / "cases" / name / "result.json", result)
        change_json(results / "study.json", lambda study: study.update(cases=[]))
        page = self.written(results, results.parent / "report")
        for width, paper in SCREENS:
            self.assertEqual(self.examined(page, width, paper)[1], [], f"in a width of {width}")

    def test_the_memory_of_a_step_has_no_text_on_another(self):
        for length in (12, 5000):
            make_fixture.write_timeline(self.scratch / "memory.json", length)
            page = self.written(self.scratch / "memory.json", self.scratch / f"memory{length}")
            for width, paper in SCREENS:
                self.assertEqual(self.examined(page, width, paper)[1], [], f"in a width of {width}")

    def test_overlapping_and_wide_contents_are_seen(self):
        source = self.page.read_text(encoding="utf-8")
        inserted = '<text x="40" y="40">one</text><text x="42" y="41">other</text></svg>'
        page = self.scratch / "overlapping.html"
        wide = source.replace("</svg>", inserted, 1).replace("<ul>", '<div style="width: 3000px">wide</div><ul>', 1)
        page.write_text(wide, encoding="utf-8")
        found = "".join(self.examined(page)[1])
        self.assertIn("'one' on 'other'", found)
        self.assertIn("the page is wider than the screen", found)
        self.assertIn("is cut off", "".join(self.examined(self.page.with_name("report.html"), 300, paper=True)[1]))


if __name__ == "__main__":
    if not BROWSER:
        print("SKIPPED: no chromium, so the report was opened in no browser")
        sys.exit(77)
    unittest.main()
