#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readme_blocks.py accepts right blocks and tells what is wrong with others. usage: readme_blocks_negative.py SCRATCH"""
import subprocess
import sys
from pathlib import Path

# A page, and what is printed about it; None if it is right.
PAGES = [
    ("```sh\nname=1\n```\n\n- item\n  ```sh\n  test $name = 1\n  ```\n", None),
    ("```console\n$ printf 'a\\nb\\nc\\n'\na\n...\nc\n```\n", None),
    ("```console\n$ echo a >&2; false\na\n```\n", None),
    ("```sh (needs no_such_program)\nfalse\n```\n", None),
    ("```sh (needs feature)\ntrue\n```\n", None),
    ("```text\nfalse\n```\n", None),
    ("```\ntrue\n```\n", "README.md:1: a block without a language"),
    ("text\n```shell\ntrue\n```\n", "README.md:2: no language is called shell"),
    ("```sh (later)\ntrue\n```\n", "is neither (not run: REASON) nor (needs NAME)"),
    ("```sh\ntrue\nfalse\ntrue\n```\n", "ends with exit code 1"),
    ("```sh (needs feature)\nfalse\n```\n", "ends with exit code 1"),
    ("```sh\nno_such_program | cat\n```\n", "ends with exit code 127"),
    ("```sh\nexit 0\n```\n", "ends with exit code 0"),
    ("```console\n$ printf 'a\\nb\\nc\\n'\na\nc\n```\n", "does not print, after the lines before it:\nc\n"),
    ("```console\n$ echo b a\na\n```\n", "does not print"),
]

scratch = Path(sys.argv[1])
repository = scratch / "repository"
repository.mkdir(parents=True, exist_ok=True)
status = 0
for text, expected in PAGES:
    (repository / "README.md").write_text(text)
    result = subprocess.run([sys.executable, "-B", Path(__file__).with_name("readme_blocks.py"), repository, scratch,
                             scratch / "run", "--has", "feature"], stdout=subprocess.PIPE, text=True)
    right = result.returncode == 0 if expected is None else result.returncode == 1 and expected in result.stdout
    if not right:
        print(f"FAILED\n{text}gives exit code {result.returncode} and not '{expected}':\n{result.stdout}")
        status = 1
sys.exit(status)
