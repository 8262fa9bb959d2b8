# SPDX-License-Identifier: Apache-2.0
"""The cases of the goldens: all combinations of the lists in cases.toml."""

import collections
import itertools
import pathlib
import re
import tomllib

TABLE = pathlib.Path(__file__).resolve().parent / "cases.toml"
TOLERANCE = 1e-12  # relative, of losses

Case = collections.namedtuple("Case", "id file arguments ranks tolerance")


def case_of(models, entry, model, mesh, strategy, options):
    """Returns one combination. Its id is its key in the goldens: model | mesh | strategy | options."""
    row = models.get(model, {})
    settings = row.get("set", []) + entry.get("set", []) + [part for part in options.split("; ") if part]
    arguments = [argument for setting in settings for argument in ("--set", setting)]
    if mesh != "-":
        arguments += ["--mesh", mesh]
    if strategy != "-":
        arguments += ["--strategy", strategy]
    ranks = 1
    for size in re.findall(r"=(\d+)", mesh):
        ranks *= int(size)
    name = " | ".join([model, mesh, strategy, options or "-"])
    return Case(name, row.get("file", model + ".toml"), arguments, ranks, entry.get("tolerance", TOLERANCE))


def read_cases(part):
    """Returns {id: case} of all entries of plans, runs or hashes, in the order of the table."""
    table = tomllib.loads(TABLE.read_text())
    cases = {}
    for entry in table[part]:
        lists = [entry.get(key, ["-"]) for key in ("model", "mesh", "strategy")] + [entry.get("with", [""])]
        for combination in itertools.product(*lists):
            case = case_of(table["model"], entry, *combination)
            if case.id in cases:
                raise SystemExit(f"cases.toml: {part} has {case.id} twice")
            cases[case.id] = case
    return cases


def read_shown(plans):
    """Returns the ids of the plans whose text is recorded."""
    shown = tomllib.loads(TABLE.read_text())["text"]["of"]
    unknown = [name for name in shown if name not in plans]
    if unknown:
        raise SystemExit("cases.toml: text.of names cases that do not exist:\n  " + "\n  ".join(unknown))
    return shown
