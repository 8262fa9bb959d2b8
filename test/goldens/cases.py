# SPDX-License-Identifier: Apache-2.0
"""The cases of the goldens, which cases.toml lists."""

import collections
import pathlib
import re
import tomllib

TABLE = pathlib.Path(__file__).resolve().parent / "cases.toml"
TOLERANCE = 1e-12  # relative, of losses

Case = collections.namedtuple("Case", "id file arguments ranks tolerance")


def case_of(models, entry, name):
    """Returns the case with this id: model | mesh | strategy | options."""
    model, mesh, strategy, options = name.split(" | ")
    row = models.get(model, {})
    settings = row.get("set", []) + entry.get("set", []) + [part for part in options.split("; ") if part != "-"]
    arguments = [argument for setting in settings for argument in ("--set", setting)]
    if mesh != "-":
        arguments += ["--mesh", mesh]
    if strategy != "-":
        arguments += ["--strategy", strategy]
    ranks = 1
    for size in re.findall(r"=(\d+)", mesh):
        ranks *= int(size)
    return Case(name, row.get("file", model + ".toml"), arguments, ranks, entry.get("tolerance", TOLERANCE))


def read_cases(part):
    """Returns {id: case} of all entries of plans, runs or hashes, in the order of the table."""
    table = tomllib.loads(TABLE.read_text())
    return {name: case_of(table["model"], entry, name) for entry in table[part] for name in entry["of"]}


def read_shown():
    """Returns the ids of the plans whose text is recorded."""
    return [name for entry in tomllib.loads(TABLE.read_text())["plans"] if entry.get("text") for name in entry["of"]]
