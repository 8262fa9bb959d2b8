# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: nothing to complain about, nothing on top of each other, light and dark.

TESSERA_BROWSER is the program; without one this is skipped, with exit code 77.
"""

import html
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from support import WithDirectory, keep_only, read_json, run_report

BROWSER = os.environ.get("TESSERA_BROWSER", "")


def browse(page, *options):
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               "--enable-logging=stderr", *options, page.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    complaints = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return done.stdout, complaints


def with_script(page):
    """A copy of the page that looks at itself."""
    script = (Path(__file__).parent / "overlaps.js").read_text(encoding="utf-8")
    copy = page.with_name(f"{page.stem}-examined.html")
    source = page.read_text(encoding="utf-8")
    copy.write_text(
        source.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8"
    )
    return copy


class InABrowser(WithDirectory):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = run_report(cls.fixture, "-o", cls.scratch / "report")
        assert done.returncode == 0, done.stderr
        cls.page = cls.scratch / "report" / "report.html"

    def written(self, results):
        output = results.parent / "report"
        done = run_report(results, "-o", output)
        self.assertEqual(done.returncode, 0, done.stderr)
        return output / "report.html"

    def examined(self, page, *options):
        dom, complaints = browse(with_script(page), "--dump-dom", *options)
        self.assertEqual(complaints, [])
        lines = html.unescape(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1])
        texts, *found = lines.splitlines()
        return int(texts.split()[0]), found

    def test_it_opens_without_complaint(self):
        page = self.page
        dom, complaints = browse(page, "--dump-dom")
        self.assertEqual(complaints, [])
        source = page.read_text(encoding="utf-8")
        for tag in ("table", "figure", "svg", "tr", "h2"):
            self.assertEqual(dom.count(f"<{tag}"), source.count(f"<{tag}"), tag)

    def test_complaints_are_seen(self):
        page = self.scratch / "broken.html"
        page.write_text("<script>nothing()</script>", encoding="utf-8")
        self.assertNotEqual(browse(page, "--dump-dom")[1], [])

    def test_no_text_lies_on_another(self):
        page = self.page
        for width in (1400, 1000):
            number, found = self.examined(page, f"--window-size={width},900")
            self.assertGreater(number, 400)
            self.assertEqual(found, [], f"in a window of {width}")

    def test_nor_in_a_small_study(self):
        results = self.copy()
        keep_only(results, [read_json(results / "summary.json")["best"]])
        number, found = self.examined(self.written(results))
        self.assertGreater(number, 20)
        self.assertEqual(found, [])

    def test_texts_that_lie_on_another_are_seen(self):
        source = self.page.read_text(encoding="utf-8")
        inserted = '<text x="40" y="40">one</text><text x="42" y="41">other</text></svg>'
        page = self.scratch / "overlapping.html"
        page.write_text(source.replace("</svg>", inserted, 1), encoding="utf-8")
        self.assertIn("'one' on 'other'", "".join(self.examined(page)[1]))

    def test_it_is_light_and_dark(self):
        from matplotlib.image import imread

        page = self.page
        brightness = {}
        for scheme in (0, 1):
            shot = page.with_name(f"{scheme}.png")
            browse(page, f"--screenshot={shot}", "--window-size=1200,6000",
                   f"--blink-settings=preferredColorScheme={scheme}")  # fmt: skip
            pixels = imread(shot)[..., :3]
            self.assertEqual(pixels.shape, (6000, 1200, 3))
            brightness[scheme] = float(pixels.mean())
            # Text and figures are seen on either.
            self.assertGreater(float(pixels.std()), 0.05)
        self.assertLess(brightness[0], 0.25)
        self.assertGreater(brightness[1], 0.85)

    def test_figures_of_their_own_are_readable_on_both(self):
        from matplotlib.image import imread

        page = self.page
        for name in ("speedup", "heatmap"):
            for scheme, dark in ((0, True), (1, False)):
                shot = page.with_name(f"{name}{scheme}.png")
                browse(page.parent / "figures" / f"{name}.svg", f"--screenshot={shot}",
                       "--window-size=900,400",
                       f"--blink-settings=preferredColorScheme={scheme}")  # fmt: skip
                pixels = imread(shot)[..., :3]
                self.assertEqual(float(pixels[100:300, 100:500].mean()) < 0.5, dark, (name, scheme))
                self.assertGreater(float(pixels.std()), 0.04)


if __name__ == "__main__":
    if not BROWSER:
        print("SKIPPED: no chromium, so the report was opened in no browser")
        sys.exit(77)
    unittest.main()
