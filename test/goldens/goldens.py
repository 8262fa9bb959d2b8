#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what the program plans and computes, and compares a later program with it. README.md says how to use it.

usage: goldens.py make PROGRAM [PART...]     writes the goldens of these parts: plans, runs, hashes; all by default
       goldens.py check PROGRAM [PART...]    compares; exit code 1 if something differs that exemptions.txt does not name
       goldens.py list [PART...]             the cases and their arguments
"""

import argparse
import collections
import difflib
import itertools
import pathlib
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
if sys.version_info < (3, 11):
    print("skipped: needs Python 3.11, which reads TOML")
    sys.exit(77)
from cases import read_cases, read_shown  # noqa: E402
from program import OtherDevice, Program  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
INPUTS = HERE.parent.parent / "inputs"
PARTS = ("plans", "runs", "hashes")


# --- Files


def text_file(name):
    """Returns the file of the text of a plan. Its name is the id, in letters that every file system takes."""
    return HERE / "text" / (re.sub(r"[^A-Za-z0-9=.]+", "_", name).strip("_") + ".txt")


def write_goldens(part, values):
    """Writes an id in a line of its own, and below it the value of each section."""
    lines = []
    for name, sections in values.items():
        lines += [name] + [f"  {section} {value}" for section, value in sections.items()]
    (HERE / f"{part}.txt").write_text("\n".join(lines) + "\n")


def read_goldens(part):
    values = {}
    for line in (HERE / f"{part}.txt").read_text().splitlines():
        if line.startswith("  "):
            section, value = line.strip().split(" ", 1)
            sections[section] = value
        else:
            sections = values[line] = {}
    return values


def parse_exemptions(text):
    """Returns (part, sections, pattern of ids) of each line "PART SECTION[,SECTION...] :: CASES :: REASON"."""
    exemptions = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(" :: ")]
        if len(fields) != 3 or len(fields[0].split()) != 2 or not fields[2]:
            raise SystemExit(f"exemptions.txt:{number}: must be PART SECTION[,SECTION...] :: CASES :: REASON")
        part, sections = fields[0].split()
        exemptions.append((part, sections.split(","), re.compile(".*".join(map(re.escape, fields[1].split("*"))))))
    return exemptions


# --- Comparison


def equal(section, before, after, tolerance):
    """Returns true for equal values, and for losses that differ by rounding."""
    if section != "losses":
        return before == after
    a, b = [float(x) for x in before.split()], [float(x) for x in after.split()]
    return len(a) == len(b) and all(abs(x - y) <= tolerance * max(abs(x), abs(y)) for x, y in zip(a, b))


def change_of(before, after):
    """Returns how a section changed: the amounts of digests and of memory with their quotient, other values in full."""
    if before is None or after is None:
        return f"{before or 'nothing'} -> {after or 'nothing'}"
    number = r"(?:[0-9a-f]{12} )?([0-9.e+]+)"
    old, new = re.fullmatch(number, before), re.fullmatch(number, after)
    if not old or not new:
        return f"{before} -> {after}"
    if old[1] == new[1]:
        return f"{new[1]} as before, but other lines"
    return f"{old[1]} -> {new[1]}" + (f", {float(new[1]) / float(old[1]):.3f} times" if float(old[1]) else "")


def compare(part, case, before, after, exemptions):
    """Returns {section: whether it is exempt} of the sections that differ."""
    changed = [section for section in {**before, **after} if section not in before or section not in after or
               not equal(section, before[section], after[section], case.tolerance)]  # fmt: skip
    return {section: any(part == of and section in names and pattern.fullmatch(case.id) for of, names, pattern in exemptions)
            for section in changed}  # fmt: skip


def report(part, name, before, after, changed):
    """Prints a line to copy into exemptions.txt, and what changed as comments."""
    rest = [section for section, exempt in changed.items() if not exempt]
    print(f"{part} {','.join(rest)} :: {name} ::" if rest else f"# {part}, exempt :: {name}")
    for section, exempt in changed.items():
        print(f"#   {section}{' (exempt)' if exempt else ''}: {change_of(before.get(section), after.get(section))}")


def report_text(name, text):
    """Prints the first lines of a plan's text that differ."""
    golden = text_file(name).read_text().splitlines()
    for line in itertools.islice(difflib.unified_diff(golden, text.splitlines(), lineterm="", n=0), 2, 40):
        print(f"#     {line[:300]}")


# --- Commands


def measure(program, part, cases):
    """Returns {id: {section: value}} and, for plans, {id: text}."""
    texts = {}
    return {name: program.values(part, case, texts) for name, case in cases.items()}, texts


def make(program, parts):
    for part in parts:
        cases = read_cases(part)
        values, texts = measure(program, part, cases)
        write_goldens(part, values)
        rejected = sum("error" in sections for sections in values.values())
        print(f"{part}: {len(values)} cases, {rejected} of them rejected")
        if part == "plans":
            shutil.rmtree(HERE / "text", ignore_errors=True)
            (HERE / "text").mkdir()
            for name in read_shown():
                text_file(name).write_text(texts[name])


def check_part(program, part, cases, goldens, shown, exemptions):
    """Prints the differences. Returns the number of cases with some that are not exempt."""
    values, texts = measure(program, part, cases)
    counts, failed, exempt = collections.Counter(), 0, 0
    for name, case in cases.items():
        before, after = goldens.get(name, {}), values[name]
        changed = compare(part, case, before, after, exemptions)
        if not changed:
            continue
        report(part, name, before, after, changed)
        if name in shown and name in texts:
            report_text(name, texts[name])
        counts.update(changed.keys())
        failed += not all(changed.values())
        exempt += all(changed.values())
    equal_cases = len(cases) - failed - exempt
    print(f"# {part}: {equal_cases} of {len(cases)} cases equal, {exempt} exempt, {failed} differ"
          + "".join(f"; {section} {count}" for section, count in counts.items()))  # fmt: skip
    if part == "hashes" and len({sections.get("hash") for sections in values.values()}) != 1:
        print("# hashes: the meshes do not have the same bits")
        failed += 1
    return failed


def check(program, parts):
    exemptions = parse_exemptions((HERE / "exemptions.txt").read_text())
    failed = 0
    for part in parts:
        cases, goldens = read_cases(part), read_goldens(part)
        shown = read_shown() if part == "plans" else []
        for name in goldens.keys() - cases.keys():
            print(f"# {part}.txt has {name}, which cases.toml lacks; make the goldens again")
            failed += 1
        failed += check_part(program, part, cases, goldens, shown, exemptions)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("command", choices=("make", "check", "list"))
    parser.add_argument("words", nargs="*")
    parser.add_argument("--launcher", default="mpirun -n", help="the number of ranks follows")
    options = parser.parse_args()
    needs_program = options.command != "list"
    if needs_program and not options.words:
        parser.error("PROGRAM is missing")
    parts = options.words[1 if needs_program else 0 :] or PARTS
    for part in parts:
        if part not in PARTS:
            parser.error(f"{part} is no part; the parts are {', '.join(PARTS)}")
    if not needs_program:
        for part in parts:
            for case in read_cases(part).values():
                print(f"{part}: {case.id}\n    {case.file} {' '.join(case.arguments)}")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        program = Program(options.words[0], options.launcher, INPUTS, scratch)
        try:
            if options.command == "check":
                return check(program, parts)
            make(program, parts)
        except OtherDevice as reason:
            print(f"skipped: {reason}")
            return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
