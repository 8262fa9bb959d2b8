# SPDX-License-Identifier: Apache-2.0
"""Prepares the Markdown pages of the repository for Doxygen, and checks the site that it makes of them.

usage: pages.py prepare REPOSITORY FOLDER    writes the pages, and a picture or file that they link to, to FOLDER
       pages.py check FOLDER                 checks that every link of the HTML in FOLDER leads somewhere

Doxygen knows neither GitHub's names of headings nor remarks behind the language of a block. A page becomes part of the
navigation below the first page that links to it, in the order of links, from README.md on.
"""
import html.parser
import os
import re
import shutil
import sys
import urllib.parse
from pathlib import Path

FOLDERS = (".github", "bench", "cmake", "scripts", "src", "test")
LINK = re.compile(r"(!?)\[((?:[^][`]|`[^`]*`)*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"^ *```")


def pages_of(root):
    found = [Path("README.md")]
    for folder in FOLDERS:
        found += [page.relative_to(root) for page in sorted((root / folder).rglob("*.md"))]
    return [page for page in found if "TEMPLATE" not in str(page).upper()]


def label(page, heading=""):
    """Doxygen's name of a page or of a heading."""
    return re.sub(r"[^A-Za-z0-9]", "_", f"{page.with_suffix('')}__{heading}" if heading else f"page_{page.with_suffix('')}")


def anchor(heading):
    """GitHub's name of a heading."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def lines_of(text):
    """Yields each line, and whether it is part of a block of code."""
    is_code = False
    for line in text.splitlines():
        fence = bool(FENCE.match(line))
        yield line, is_code or fence
        is_code ^= fence


def headings_of(text):
    return {anchor(line.lstrip("# ")) for line, is_code in lines_of(text) if line.startswith("#") and not is_code}


class Site:
    def __init__(self, root, folder):
        self.root, self.folder, self.problems = root, folder, []
        self.texts = {page: (root / page).read_text(encoding="utf-8") for page in pages_of(root)}
        self.headings = {page: headings_of(text) for page, text in self.texts.items()}
        self.placed = {Path("README.md")}

    def target(self, page, link):
        """Returns the path behind a relative link, and the part behind '#'."""
        path, _, part = link.partition("#")
        return (Path(os.path.normpath(page.parent / path)) if path else page), part

    def convert(self, page, match):
        is_image, text, link = match.groups()
        if re.match(r"[a-z]+:", link):
            return match[0]
        path, part = self.target(page, link)
        if path not in self.texts:
            if not (self.root / path).exists():
                self.problems.append(f"{page}: {link} does not exist")
            elif is_image:
                shutil.copy(self.root / path, self.folder / path.name)
                return f"![{text}]({path.name})"
            elif (self.root / path).is_file():
                (self.folder / "files" / path.parent).mkdir(parents=True, exist_ok=True)
                shutil.copy(self.root / path, self.folder / "files" / path)
                return f"[{text}](files/{path})"
            return text
        if part and part not in self.headings[path]:
            self.problems.append(f"{page}: {link}: no such heading")
        text = " ".join(text.replace("`", "").split())
        if not part and path not in self.placed:
            self.placed.add(path)
            return f'@subpage {label(path)} "{text}"'
        return f'@ref {label(path, part)} "{text}"'

    def write(self, page):
        output, prose, is_title = [], [], True
        for line, is_code in lines_of(self.texts[page] + "\n```"):
            if is_code and prose:  # a link may go on in the next line
                output.append(LINK.sub(lambda match: self.convert(page, match), "\n".join(prose)))
                prose = []
            if is_code:
                output.append(re.sub(r"^( *```\w*).*", r"\1", line))
            elif line.startswith("#"):
                depth, heading = re.match(r"(#+) *(.*)", line).groups()
                prose.append(f"{depth} {heading} {{#{label(page, '' if is_title else anchor(heading))}}}")
                is_title = False
            else:
                prose.append(line)
        (self.folder / f"{label(page).lower()}.md").write_text("\n".join(output[:-1]) + "\n", encoding="utf-8")


def prepare(root, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    site = Site(root, folder)
    queue, seen = [Path("README.md")], set()
    while queue:  # in the order of links
        page = queue.pop(0)
        if page in seen:
            continue
        seen.add(page)
        site.write(page)
        links = (site.target(page, match[3])[0] for match in LINK.finditer(site.texts[page]))
        queue += [path for path in links if path in site.texts]
    words = sum(len(text.split()) for page, text in site.texts.items() if page.stem not in ("CHANGELOG", "LOG"))
    print(f"{words} words on {len(site.texts)} pages, without histories")
    site.problems += [f"{page}: no page links to it" for page in site.texts if page not in seen]
    return site.problems


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.names |= {values[key] for key in ("id", "name") if values.get(key)}
        self.links += [values[key] for key in ("href", "src") if values.get(key)]


def check(folder):
    pages = {page: Links(page.read_text(encoding="utf-8")) for page in folder.rglob("*.html")}
    problems = []
    for page, found in pages.items():
        for link in found.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (page.parent / urllib.parse.unquote(url.path)).resolve() if url.path else page
            if not target.exists():
                problems.append(f"{page.name}: {link} does not exist")
            elif url.fragment in ("", "nested-classes") or target not in pages:  # Doxygen 1.9 forgets the second name
                continue
            elif urllib.parse.unquote(url.fragment) not in pages[target].names:
                problems.append(f"{page.name}: {link}: no such place")
    return sorted(set(problems))


command, *paths = sys.argv[1:]
problems = {"prepare": prepare, "check": check}[command](*(Path(path).resolve() for path in paths))
sys.exit("\n".join(problems) or None)
