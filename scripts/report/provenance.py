# SPDX-License-Identifier: Apache-2.0
"""Where the numbers come from, what differs between cases, and whether they may be compared at all."""

import json
import re
from collections import Counter, defaultdict

from .document import Code, Column, Heading, Paragraph, Table
from .fields import get, mapping, table, text
from .numbers import plural
from .placement import placed_ranks

# What changes the speed of the same work: cases that differ here are not compared unless asked for.
COMPARABLE = {
    "version": "version",
    "git_revision": "revision",
    "git_dirty": "uncommitted changes",
    "build_type": "build type",
    "compiler": "compiler",
    "cxx_flags": "compiler flags",
    "kokkos.version": "Kokkos",
    "kokkos.backend": "Kokkos backend",
    "kokkos_kernels.version": "Kokkos Kernels",
    "blas": "BLAS",
    "blas_library": "BLAS library",
    "kokkos.concurrency": "threads of a rank",
    "mpi.library": "MPI library",
    "cuda_version": "CUDA",
    "nccl_version": "NCCL",
    "machine": "machine",
}
# The rest of what a launch tells.
SHOWN = {
    **COMPARABLE,
    "hdf5_version": "HDF5",
    "mpi.standard": "MPI standard",
    "mpi.thread_level": "MPI thread level",
    "kokkos.backends": "Kokkos backends",
    "kokkos.configuration": "Kokkos configuration",
    "kokkos_kernels.libraries": "Kokkos Kernels libraries",
    "world_size": "ranks of the launch",
    "nodes": "nodes of the launch",
    "seed": "seed of the order of cases",
    "hosts": "ranks on processors",
    "scheduler_job": "scheduler job",
    "arguments": "command",
    "environment": "environment (allow-list)",
    "time": "time (UTC)",
}


def _machine(ranks):
    """Kinds of nodes, so that the nodes of one cluster are one machine: node17 and node18 are node#."""
    kinds = set()
    for rank in ranks:
        host = re.sub(r"\d+", "#", text(rank, "host") or "unknown host")
        gpu = re.sub(r" \(\d+\)$", "", text(rank, "gpu") or "")
        kinds.add(", ".join(filter(None, (host, text(rank, "cpu_model"), gpu))))
    return "; ".join(sorted(kinds))


def _hosts(ranks):
    """'node7: 0 on 0-1, 1 on 2-3': where each rank ran."""
    hosts = defaultdict(list)
    for rank in ranks:
        place = f"{get(rank, 'rank')} on {get(rank, 'cpu_set') or '?'}"
        hosts[text(rank, "host") or "unknown host"].append(
            ", ".join(filter(None, (place, text(rank, "gpu"))))
        )
    return "; ".join(f"{host}: " + ", ".join(places) for host, places in hosts.items())


def value_of(launch, key):
    """As text; None if the launch does not tell."""
    made = {"machine": _machine, "hosts": _hosts}.get(key)
    if made:
        return made(placed_ranks(launch)) or None
    # The seed alone is not part of the provenance.
    value = get(launch, *([] if key == "seed" else ["provenance"]), *key.split("."))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        value = [f"{name}={content}" for name, content in sorted(value.items())]
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return None if value is None else str(value) or None


def _values(cases, key):
    """value -> how many cases have it; cases without a launch have None."""
    return Counter(value_of(case.launch, key) for case in cases)


def _compared(case, key):
    """What must be the same: threads, which the text about BLAS ends with, only where the study does not vary them."""
    if key == "kokkos.concurrency" and "distributed.threads" in case.factors:
        return "varied"
    value = value_of(case.launch, key)
    return re.sub(r", \d+ threads?$", "", value) if key == "blas" and value else value


def mixed(study):
    """Names of what differs between measured cases, of the things that make them comparable."""
    return [name for key, name in COMPARABLE.items() if len({_compared(case, key) for case in study.measured}) > 1]


WHAT = Column("what", lambda row: row[0], "")
VALUE = Column("value", lambda row: Code(row[1]) if row[1] is not None else "unknown", "text")


def blocks(study):
    cases = [case for case in study.cases if text(case.result, "launch")]
    common, differing = [], []
    for key, name in SHOWN.items():
        values = _values(cases, key)
        if len(values) > 1:
            differing += [(name, *row) for row in values.most_common()]
        elif values and None not in values:
            common.append((name, *values))
    result = [Table(common, [WHAT, VALUE], "The same for all cases that were run.")]
    if differing:
        columns = [WHAT, VALUE, Column("in", lambda row: plural(row[2], "case"))]
        result += [Heading("Where it differs", 3), Table(differing, columns)]
    else:
        same = "Nothing of it differs between cases."
        result.append(Paragraph(same if common else "There is no launch file for any case."))
    return result + _configuration(study)


def _configuration(study):
    """Settings that all cases share; what differs is what the grids varied."""
    found = [flatten(mapping(case.result, "config")) for case in study.cases]
    found = [one for one in found if one]
    if not found:
        return []
    # Counted by cases: what all of them have is shared.
    counts = Counter(setting for one in found for setting in one.items())
    shared = [setting for setting in found[0].items() if counts[setting] == len(found)]
    varied = sorted({key for one in found for key in one} - dict(shared).keys())
    columns = [Column("setting", lambda row: Code(row[0]), ""), VALUE]
    caption = f"Different between cases: {', '.join(varied)}." if varied else ""
    return [Table(shared, columns, caption, folded="Configuration that all cases share")]


def flatten(content, prefix=""):
    flat = {}
    for key, value in content.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = json.dumps(value)
    return flat
