#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: check_trace.py FILE RANKS STEPS PLAN NAME...

Checks that a file is in Chrome's trace event format, that slices of a row nest and follow each other, and that every
rank has this number of steps and slices with these names, and the memory that is planned. The bytes of its calls must be
those of PLAN, a file of `plan --json`, or "-".
"""
import collections
import json
import sys

file, ranks, steps, plan, names = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:]


def is_in(rank, ranges):
    """Returns whether a text such as "0-2,5" has the rank."""
    bounds = [[int(end) for end in part.split("-")] for part in ranges.split(",")]
    return any(one[0] <= rank <= one[-1] for one in bounds)


def planned_bytes(rank):
    with open(plan, encoding="utf-8") as stream:
        calls = [call for call in json.load(stream)["collectives"] if call["cadence"] == "step" and is_in(rank, call["ranks"])]
    planned = collections.Counter()
    for call in calls:
        planned[call["axis"], call["operation"]] += steps * call["payload_bytes"]
    return planned


with open(file, encoding="utf-8") as stream:
    events = json.load(stream)["traceEvents"]
rows = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
assert rows == {rank + 1: f"rank {rank}" for rank in range(ranks)}, rows
for rank in range(ranks):
    slices = [event for event in events if event["ph"] == "X" and event["tid"] == rank + 1]
    assert slices == sorted(slices, key=lambda event: event["ts"]), f"rank {rank} is not sorted"
    open_ends = []
    for event in slices:
        begin, end = event["ts"], event["ts"] + event["dur"]
        assert begin >= 0 and event["dur"] >= 0, event
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], f"rank {rank}: {event} ends outside of its parent"
        assert open_ends or event["name"] == "step", f"rank {rank}: {event} is outside of a step"
        open_ends.append(end)
    present = [event["name"] for event in slices]
    assert present.count("step") == steps, f"rank {rank} has {present.count('step')} steps, expected {steps}"
    for name in names:
        assert any(one == name or one.startswith(name + " ") for one in present), f"rank {rank} has no {name}: {sorted(set(present))}"
    calls = [event["args"] for event in slices if event["cat"] == "collective"]
    assert all(call["axis"] and call.get("bytes", 1) > 0 and call.get("tensor", "-") for call in calls), calls
    if plan != "-":
        traced = collections.Counter()
        for event in slices:
            if event["cat"] == "collective":
                traced[event["args"]["axis"], event["name"]] += event["args"].get("bytes", 0)
        assert traced == planned_bytes(rank), (rank, traced, planned_bytes(rank))
    memory = [event["args"] for event in events if event["ph"] == "C" and event["tid"] == rank + 1]
    assert bool(memory) == (steps > 0) and len(memory) % max(1, steps) == 0, f"rank {rank} has {len(memory)} values of memory"
    assert all(0 < at["in use"] <= at["planned"] == at["measured"] for at in memory), (rank, memory)
    assert steps == 0 or len({at["in use"] for at in memory}) > 2, f"rank {rank} always uses as much memory"
    numbers = sorted({call["step"] for call in calls})
    assert not calls or numbers == list(range(numbers[0], numbers[0] + steps)), f"rank {rank} has steps {numbers}"
print(f"{len(events)} events, {steps} steps")
