#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands in the Markdown pages of the repository, with the programs of one build.

usage: readme_blocks.py REPOSITORY BUILD SCRATCH [--has NAME]... [--python FILE] [PAGE...]

Every fenced block names its language. The commands of `sh` must succeed. The lines of `console` after `$ command` must be
what the command prints; `...` stands for lines that are left out. `(not run: REASON)` or `(needs NAME)`, a program or a
feature of the build, after the language leaves a block out. A page is one shell, which starts in an empty folder with
links to the files of the repository. Its `python3` is FILE. Blocks of other languages are no commands.
"""
import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

NO_COMMANDS = {"text", "cpp", "python", "toml", "yaml", "json", "csv", "diff"}
FENCE = re.compile(r"^( *)```+ *(\S*) *(.*)$")
FIRST_PAGE = "README.md"  # which tells to source scripts/env.sh
SOURCES = ("bench", "cmake", "inputs", "scripts", "src", "test")


class Block:
    def __init__(self, page, line, indent, language, remark):
        self.name, self.indent, self.language, self.remark, self.lines = f"{page}:{line}", indent, language, remark, []

    def problem(self):
        if not self.language:
            return "a block without a language: sh and console are run; text is not"
        if self.language not in NO_COMMANDS | {"sh", "console"}:
            return f"no language is called {self.language}: use sh, console, or one of {', '.join(sorted(NO_COMMANDS))}"
        if self.remark and (self.language in NO_COMMANDS or not re.fullmatch(r"\((not run|needs):? .+\)", self.remark)):
            return f"'{self.remark}' is neither (not run: REASON) nor (needs NAME)"
        return None

    def left_out(self, features):
        """Returns why the block is not run here, or None."""
        if self.language in NO_COMMANDS:
            return "no commands"
        if self.remark.startswith("(not run"):
            return self.remark[len("(not run: "):-1]
        need = self.remark[len("(needs "):-1]
        return f"no {need}" if need and need not in features and not shutil.which(need) else None

    def steps(self):
        """Returns pairs of a command, or of all commands, and the lines that it must print, or None."""
        if self.language == "sh":
            return [("\n".join(self.lines), None)]
        steps = []
        for line in self.lines:
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        return steps


def blocks_of(page, text):
    blocks, block = [], None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if block is not None and fence and not fence[2]:
            block = None
        elif block is not None:
            block.lines.append(line[block.indent:])
        elif fence:
            block = Block(page, number, len(fence[1]), fence[2], fence[3].strip())
            blocks.append(block)
    return blocks


def missing_line(expected, printed):
    """Returns the first of the expected lines that was not printed after those before it, or None. Lines follow each other
    unless "..." is between them."""
    at, anywhere = 0, True
    printed = [line.rstrip() for line in printed.splitlines()]
    for line in expected:
        if line.strip() == "...":
            anywhere = True
            continue
        found = next((i for i in range(at, len(printed)) if printed[i] == line.rstrip()), None)
        if found is None or (found > at and not anywhere):
            return line
        at, anywhere = found + 1, False
    return None


def run_page(page, blocks, folder, python):
    """Runs the blocks of a page in one shell. Returns the problems."""
    script = ["set -eu -o pipefail", f'python3() {{ {shlex.quote(python)} "$@"; }}', "" if page == FIRST_PAGE else "source scripts/env.sh"]
    checks = []
    for block in blocks:
        script.append(f"printf '%s\\n' {shlex.quote('=== ' + block.name)}")
        for command, expected in block.steps():
            print(f"{block.name}: {command}")
            if expected is None:
                script.append(command)
            else:
                output = f"output.{len(checks)}"
                script.append(f"{{ {command}\n}} >{output} 2>&1 || true")
                checks.append((block.name, command, expected, folder / output))
    script.append("printf '=== done\\n'")
    environment = {name: value for name, value in os.environ.items()
                   if not re.match(r"OMPI_(ALLOW_RUN_AS_ROOT|MCA_rmaps)|PRTE_", name)}
    begin = time.time()
    result = subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    print(f"{page}: blocks run: {len(blocks)}, {time.time() - begin:.1f} s")
    if "=== done" not in result.stdout:
        at = result.stdout.rfind("=== ")
        return [f"{result.stdout[at + 4:]}\nends with exit code {result.returncode}"]
    problems = []
    for name, command, expected, file in checks:
        printed = file.read_text(errors="replace")
        line = missing_line(expected, printed)
        if line is not None:
            problems.append(f"{name}: $ {command}\ndoes not print, after the lines before it:\n{line}\nbut:\n{printed}")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("repository", type=Path)
    parser.add_argument("build", type=Path)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("pages", nargs="*")
    parser.add_argument("--has", action="append", default=[])
    parser.add_argument("--python", default=sys.executable)
    arguments = parser.parse_intermixed_args()
    root = arguments.repository.resolve()
    shutil.rmtree(arguments.scratch, ignore_errors=True)

    pages = [page.relative_to(root) for folder in (".github", *SOURCES) for page in sorted((root / folder).rglob("*.md"))]
    pages = [page for page in [Path(FIRST_PAGE), *pages] if not arguments.pages or str(page) in arguments.pages]
    problems = []
    for page in pages:
        runs = []
        for block in blocks_of(page, (root / page).read_text()):
            reason = block.problem()
            if reason:
                problems.append(f"{block.name}: {reason}")
                continue
            reason = block.left_out(arguments.has)
            if reason is None:
                runs.append(block)
            elif block.language not in NO_COMMANDS:
                print(f"{block.name}: not run: {reason}")
        if runs:
            folder = arguments.scratch.resolve() / str(page).replace("/", "_")
            (folder / "build").mkdir(parents=True)
            (folder / "build" / "release").symlink_to(arguments.build.resolve())
            for name in SOURCES:
                (folder / name).symlink_to(root / name)
            problems += run_page(str(page), runs, folder, arguments.python)
    for problem in problems:
        print(f"FAILED {problem}")
    return 1 if problems else 0


sys.exit(main())
