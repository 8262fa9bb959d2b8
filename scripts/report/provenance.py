# SPDX-License-Identifier: Apache-2.0
"""Shows where the numbers come from, and decides which cases may be compared."""

import json
import re
from collections import Counter

from .contents import Column, Table
from .fields import get, mapping, table, text, texts
from .numbers import plural

# Keys of a launch's provenance that change the speed of the same work.
COMPARABLE = ("version", "git_revision", "git_dirty", "build_type", "compiler", "cxx_flags", "kokkos.version",
              "kokkos.backend", "kokkos.concurrency", "kokkos_kernels.version", "blas", "blas_library", "mpi.library",
              "cuda_version", "nccl_version", "machine")  # fmt: skip


def flatten(content, prefix=""):
    """{"a": {"b": [1]}} -> {"a.b": "[1]"}"""
    flat = {}
    for key, value in content.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        elif value not in (None, ""):
            flat[prefix + key] = value if isinstance(value, str) else json.dumps(value)
    return flat


def _machine(launch):
    """Returns the kinds of nodes. Nodes of one cluster are one machine: node17 and node18 are node#."""
    kinds = set()
    for kind in table(launch, "provenance", "placement"):
        gpus = {re.sub(r" \(\d+\)$", "", gpu) for gpu in texts(kind, "gpus")}
        hosts = {re.sub(r"\d+", "#", host) for host in mapping(kind, "hosts")}
        kinds.add(", ".join(filter(None, (*sorted(hosts), text(kind, "cpu_model"), *sorted(gpus)))))
    return "; ".join(sorted(kinds))


def _settings(launch):
    """Returns the provenance of a launch as key -> text."""
    own = {"machine": _machine(launch), "seed": get(launch, "seed")}
    return flatten({**mapping(launch, "provenance"), **own}) if launch else {}


def _compared(case, key):
    """Returns what must be the same. A study may vary threads, which also end the text about BLAS."""
    value = _settings(case.launch).get(key)
    if key == "kokkos.concurrency" and "distributed.threads" in case.factors:
        return "varied"
    return re.sub(r", \d+ threads?$", "", value) if key == "blas" and value else value


def mixed(study):
    """Returns the keys in which measured cases differ although they must not."""
    return [key for key in COMPARABLE if len({_compared(case, key) for case in study.measured}) > 1]


def _table(settings, caption, folded=""):
    """A row for each key and value of the settings of several cases, and the number of cases that have it."""
    rows = sorted(Counter(item for one in settings for item in one.items()).items())
    columns = [
        Column("key", lambda row: row[0][0], "code"),
        Column("value", lambda row: row[0][1], "text"),
        Column("in", lambda row: plural(row[1], "case"), "word"),
    ]
    return Table(rows, columns, caption, folded=folded)


def launches(study):
    return _table([_settings(case.launch) for case in study.cases], "Keys of launches/*.json.")


def configuration(study):
    return _table([flatten(mapping(one.result, "config")) for one in study.cases], "Keys of the input.", "Settings")
