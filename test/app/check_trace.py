#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: check_trace.py FILE RANKS STEPS NAME...

Checks that a file is in Chrome's trace event format, that slices of a row nest and follow each other, and that every
rank has this number of steps and slices with these names.
"""
import json
import sys

file, ranks, steps, names = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
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
    assert all("axis" in event["args"] for event in slices if event["cat"] == "collective")
print(f"{len(events)} events, {steps} steps")
