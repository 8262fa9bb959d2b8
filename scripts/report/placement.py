# SPDX-License-Identifier: Apache-2.0
"""Where the ranks of a launch ran, which launches/*.json tells by kinds of nodes."""

import re

from .fields import get, mapping, table


def numbered(ranges):
    """'0-3,8' -> [0, 1, 2, 3, 8]; empty if it is unknown."""
    found = re.findall(r"(\d+)(?:-(\d+))?", ranges or "")
    return [n for first, last in found for n in range(int(first), int(last or first) + 1)]


def _of_rank(values, place):
    """One entry holds for all ranks of a node."""
    if not isinstance(values, list) or not values:
        return None
    return values[place if len(values) > 1 and place < len(values) else 0]


def placed_ranks(launch):
    """[{"rank", "host", "cpu_model", "cpu_set", "gpu"}, ...] by rank."""
    ranks = []
    for kind in table(launch, "provenance", "placement"):
        for host, numbers in mapping(kind, "hosts").items():
            for place, rank in enumerate(numbered(numbers)):
                ranks.append({"rank": rank, "host": host, "cpu_model": get(kind, "cpu_model"),
                              "cpu_set": _of_rank(get(kind, "cpu_sets"), place),
                              "gpu": _of_rank(get(kind, "gpus"), place)})  # fmt: skip
    return sorted(ranks, key=lambda rank: rank["rank"])
