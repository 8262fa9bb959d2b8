# SPDX-License-Identifier: Apache-2.0
"""Shows where the numbers come from, and decides which cases may be compared."""

import json
import re
from collections import Counter

from .contents import Column, Points, Table
from .fields import get, mapping, number, table, text, texts
from .numbers import count, plural
from .works import varied

# Keys of a launch's provenance that change the speed of the same work.
COMPARABLE = ("version", "git_revision", "git_dirty", "build_type", "compiler", "cxx_flags", "kokkos.version",
              "kokkos.backend", "kokkos.concurrency", "kokkos_kernels.version", "blas", "blas_library", "mpi.library",
              "cuda_version", "nccl_version", "machine")  # fmt: skip
EACH_LAUNCH = ("time", "arguments", "scheduler_job", "rank.process")  # of provenance, always different


def flatten(content, prefix=""):
    """{"a": {"b": [1]}} -> {"a.b": "[1]"}"""
    flat = {}
    for key, value in content.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        elif value not in (None, ""):
            flat[prefix + key] = value if isinstance(value, str) else json.dumps(value)
    return flat


def machine(launch):
    """Returns the kinds of nodes. Nodes of one cluster are one machine: node17 and node18 are node#."""
    kinds = set()
    for kind in table(launch, "provenance", "placement"):
        gpus = {re.sub(r" \(\d+\)$", "", gpu) for gpu in texts(kind, "gpus")}
        hosts = {re.sub(r"\d+", "#", host) for host in mapping(kind, "hosts")}
        kinds.add(", ".join(filter(None, (*sorted(hosts), text(kind, "cpu_model"), *sorted(gpus)))))
    return "; ".join(sorted(kinds))


def settings(launch):
    """Returns the provenance of a launch as key -> text."""
    own = {"machine": machine(launch), "seed": get(launch, "seed")}
    return flatten({**mapping(launch, "provenance"), **own}) if launch else {}


def _compared(case, launch, key):
    """Returns what must be the same. A study may vary threads, which also end the text about BLAS."""
    value = settings(launch).get(key)
    if key == "kokkos.concurrency" and "distributed.threads" in case.factors:
        return "varied"
    return re.sub(r", \d+ threads?$", "", value) if key == "blas" and value else value


def mixed(study):
    """Returns the keys in which launches of measured cases differ although they must not."""
    return [key for key in COMPARABLE
            if len({_compared(case, launch, key) for case in study.measured for launch in case.launches}) > 1]  # fmt: skip


def _table(found, caption, folded=""):
    """A row for each key and value of the settings of several cases, which are lists, and the number of cases that have it."""
    rows = sorted(Counter(item for own in found for item in {item for one in own for item in one.items()}).items())
    columns = [
        Column("key", lambda row: row[0][0], "code"),
        Column("value", lambda row: row[0][1], "text"),
        Column("in", lambda row: plural(row[1], "case"), "word"),
    ]
    return Table(rows, columns, caption, folded=folded)


def differing(study):
    """Shows where measured cases come from different programs or machines."""
    found = [[settings(launch) for launch in case.launches] for case in study.measured]
    keys = [key for key in varied([one for own in found for one in own]) if key not in EACH_LAUNCH]
    return _table([[{key: one[key] for key in keys if key in one} for one in own] for own in found],
                  "Where measured cases differ in their provenance.")  # fmt: skip


def launches(study):
    found = [[settings(launch) for launch in case.launches] for case in study.cases]
    return _table(found, "Keys of launches/*.json.", "Provenance of all cases")


def configuration(study):
    return _table([[flatten(mapping(one.result, "config"))] for one in study.cases], "Keys of the input.", "Settings")


def method(study):
    """States how the study was measured or simulated."""
    setting = lambda *path: count(number(study.study, *path))  # noqa: E731
    said = ["Figure of merit: samples/s = global batch ÷ median step time."]
    fixed = {"weak": "batch per rank", "strong": "global batch"}.get(study.scaling)
    said += [f"The {fixed} is fixed: efficiency is {study.efficiency}."] if fixed else []
    if study.machine:
        said.append(
            "The schedule of the plan is simulated, with a clock for each kind of ranks. A kernel takes the longer of its FLOPs at "
            "the rate of products and its bytes at the rate of memory. A collective takes the messages of recursive doubling at "
            "the latency of the outermost level that it reaches, and its bytes over the slowest link of a ring."
        )
        return Points("", said)
    most = number(study.study, "verify", "ranks") or 1
    reference = "one rank" if most == 1 else f"one rank, or on at most {count(most)} where it does not fit on one"
    said += [
        f"Steps: after {setting('measure', 'warm_up')} steps to warm up, each of {setting('measure', 'rounds')} rounds runs a block "
        "of steps of every case, in a shuffled order. The time of a step is that of the slowest rank, that of a round the median of "
        "its block, and that of a case the median of its rounds. Intervals use order statistics of the rounds. No outlier is dropped.",
        "Ratios are medians over the rounds of both cases, corrected round by round for the speed of the machine, which fixed "
        "kernels beside each block show. A difference is significant if its interval lies above 1.03.",
        f"Correctness: losses must be those of a reference on {reference}, within a relative difference of "
        f"{number(study.study, 'verify', 'tolerance')}; those of an unverified case were compared with nothing. Calls, bytes and "
        "memory must be as planned. Times of an invalid case are not reported as speed.",
        f"Breakdown and collectives: from {setting('measure', 'instrumented_steps')} more steps with fences. Predictions: the "
        "schedule of the plan is simulated on a machine that was measured at the start of the launch, or was given.",
    ]
    if study.study.get("small") is True:
        said.append("This is the small variant of the study, which tests that it runs.")
    return Points("", said)


def machine_files(study):
    files = dict.fromkeys(text(launch, "simulated", "file") for launch in study.launches.values() if mapping(launch, "simulated"))
    return [Points("Machine file", file.splitlines(), folded=True) for file in files if file]
