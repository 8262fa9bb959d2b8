# SPDX-License-Identifier: Apache-2.0
"""How well predictions hold, and what they miss where they do not."""

import statistics

from .document import Paragraph
from .fields import number, table, text
from .numbers import bytes_, percent, plural, seconds


def accuracy(study):
    """How far predictions are off; ranks that share processors by themselves."""
    own = [case for case in study.measured if case.prediction_error is not None]
    shared = [case for case in own if case.oversubscribed]
    own = [case for case in own if not case.oversubscribed]
    said = [_errors(own, "with a processor for each rank"), _errors(shared, "whose ranks share processors")]
    return Paragraph(" ".join(filter(None, said)))


def _errors(cases, which):
    if not cases:
        return ""
    errors = [abs(case.prediction_error) for case in cases]
    near = sum(error <= 0.2 for error in errors)
    return (
        f"Of {plural(len(cases), 'case')} {which}, predictions of the step time are off by "
        f"{percent(statistics.median(errors), 1)} in the median and {percent(max(errors), 1)} at most; "
        f"{near} are within 20 %."
    )


def largest_difference(case):
    """'all_reduce on data (1 call, 1.63 MiB) took 1.9 times the calibrated time, 0.4 ms more'"""
    part = next(iter(table(case.result, "explanation")), {})
    predicted, measured = number(part, "predicted_seconds"), number(part, "measured_seconds")
    if predicted is None or measured is None:
        return None
    what = text(part, "part")
    if calls := number(part, "calls"):
        what += f" ({plural(int(calls), 'call')}, {bytes_(number(part, 'payload_bytes'))})"
    by = f"{seconds(abs(measured - predicted))} {'more' if measured > predicted else 'less'}"
    if predicted <= 0:
        return f"{what} took {by} than predicted"
    return f"{what} took {measured / predicted:.2f} times the calibrated time, {by}"
