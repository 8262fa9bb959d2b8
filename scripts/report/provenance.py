# SPDX-License-Identifier: Apache-2.0
"""Where the numbers come from, what differs between cases, and whether they may be compared at all."""

import json
import re

from . import document as doc
from .fields import get, mapping, table, text
from .numbers import plural

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
    "mpi.library": "MPI library",
    "cuda_version": "CUDA",
    "nccl_version": "NCCL",
    "machine": "machine",
}
# The rest of what a launch tells.
SHOWN = {
    **COMPARABLE,
    "mpi.standard": "MPI standard",
    "mpi.thread_level": "MPI thread level",
    "kokkos.backends": "Kokkos backends",
    "kokkos.concurrency": "threads of a rank",
    "kokkos.configuration": "Kokkos configuration",
    "kokkos_kernels.libraries": "Kokkos Kernels libraries",
    "world_size": "ranks of the launch",
    "hosts": "ranks on processors",
    "scheduler_job": "scheduler job",
    "arguments": "command",
    "environment": "environment (allow-list)",
    "time": "time (UTC)",
}


def _machine(launch):
    """Kinds of nodes, so that the nodes of one cluster are one machine: node17 and node18 are node#."""
    kinds = set()
    for rank in table(launch, "provenance", "ranks"):
        host = re.sub(r"\d+", "#", text(rank, "host") or "unknown host")
        gpu = re.sub(r" \(\d+\)$", "", text(rank, "gpu") or "")
        kinds.add(", ".join(part for part in (host, text(rank, "cpu_model"), gpu) if part))
    return "; ".join(sorted(kinds)) or None


def _hosts(launch):
    """'node7: ranks 0-7 on processors 0 1 2': where each rank ran."""
    hosts = {}
    for rank in table(launch, "provenance", "ranks"):
        place = str(get(rank, "cpu_set") or "?")
        gpu = text(rank, "gpu")
        entry = f"{get(rank, 'rank')} on {place}" + (f", {gpu}" if gpu else "")
        hosts.setdefault(text(rank, "host") or "unknown host", []).append(entry)
    return "; ".join(f"{host}: " + ", ".join(entries) for host, entries in hosts.items()) or None


def value_of(launch, key):
    """As text; None if the launch does not tell."""
    if key == "machine":
        return _machine(launch)
    if key == "hosts":
        return _hosts(launch)
    value = get(launch, "provenance", *key.split("."))
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(str(item) for item in value) or None
    if isinstance(value, dict):
        pairs = (f"{name}={content}" for name, content in sorted(value.items()))
        return " ".join(pairs) or None
    return str(value)


def _values(study, cases, key):
    """value -> how many cases have it; cases without a launch have None."""
    found = {}
    for case in cases:
        value = value_of(case.launch, key) if case.launch else None
        found[value] = found.get(value, 0) + 1
    return found


def mixed(study):
    """Names of what differs between measured cases, of the things that make them comparable."""
    return [
        name for key, name in COMPARABLE.items() if len(_values(study, study.measured, key)) > 1
    ]


def blocks(study):
    cases = [case for case in study.cases if case.launch]
    if not cases:
        return [doc.Paragraph("Unknown: there is no launch file for any case.", "warning")]
    lost = [case for case in study.cases if case.launch is None and text(case.result, "launch")]
    common, differing = [], []
    for key, name in SHOWN.items():
        values = _values(study, cases, key)
        if len(values) == 1:
            value = next(iter(values))
            if value is not None:
                common.append([name, [doc.Code(value)]])
            continue
        for value, number in sorted(values.items(), key=lambda item: (-item[1], str(item[0]))):
            shown = [doc.Code(value)] if value is not None else "unknown"
            differing.append([name, shown, plural(number, "case")])
    result = [doc.Table([doc.Column("what"), doc.Column("value", wide=True)], common,
                        "The same for all cases that were run.")]  # fmt: skip
    if differing:
        columns = [doc.Column("what"), doc.Column("value", wide=True), doc.Column("in", True)]
        result += [doc.Heading("Where it differs", 3), doc.Table(columns, differing)]
    else:
        result.append(doc.Paragraph("Nothing of it differs between cases."))
    if lost:
        what = f"The launch files of {plural(len(lost), 'case')} are missing."
        result.append(doc.Paragraph(what, "warning"))
    return result + [_launches(study)] + _configuration(study)


def _launches(study):
    rows = []
    for name, launch in sorted(study.launches.items()):
        number = sum(text(case.result, "launch") == name for case in study.cases)
        rows.append([[doc.Code(name)], str(get(launch, "ranks") or "–"),
                     str(get(launch, "seed") if get(launch, "seed") is not None else "–"),
                     value_of(launch, "time") or "–", str(number)])  # fmt: skip
    columns = [doc.Column("launch"), doc.Column("ranks", True), doc.Column("seed of the order", True),
               doc.Column("time (UTC)"), doc.Column("cases", True)]  # fmt: skip
    return doc.Table(columns, rows, "Launches; the latest attempt at a case counts.")


def _configuration(study):
    """Settings that all cases share; what differs is what the grids varied."""
    configurations = [flatten(mapping(case.result, "config")) for case in study.cases]
    configurations = [one for one in configurations if one]
    if not configurations:
        return []
    shared = {
        key: value
        for key, value in configurations[0].items()
        if all(one.get(key) == value for one in configurations)
    }
    varied = sorted({key for one in configurations for key in one} - set(shared))
    rows = [[[doc.Code(key)], [doc.Code(value)]] for key, value in shared.items()]
    blocks_ = [doc.Table([doc.Column("setting"), doc.Column("value", wide=True)], rows)]
    if varied:
        listed = [part for key in varied for part in (doc.Code(key), ", ")][:-1]
        blocks_.append(doc.Paragraph(["Different between cases: ", *listed, "."]))
    return [doc.Details("Configuration that all cases share", blocks_)]


def flatten(content, prefix=""):
    flat = {}
    for key, value in content.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = json.dumps(value)
    return flat
