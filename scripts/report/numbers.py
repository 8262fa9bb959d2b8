# SPDX-License-Identifier: Apache-2.0
"""Formats numbers with a few significant digits and a unit. An unknown number is a dash."""

import math
import sys
from collections import namedtuple
from functools import partial

UNKNOWN = "–"

# `low` and `high`, the ends of a 95 % interval, are None if it is not known.
Ratio = namedtuple("Ratio", "value low high", defaults=(None, None))

# (factor, name), the largest first.
TIME_UNITS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
BYTE_UNITS = [(2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")]
RATE_UNITS = [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")]
RATIO = [(1.0, "×")]


def is_number(value):
    """Infinities and NaN are no numbers, nor is an integer that no double holds."""
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_one and abs(value) <= sys.float_info.max


def unit_of(values, units):
    """Returns the unit that suits the largest of `values`, for an axis or a column of a table."""
    largest = max((abs(value) for value in values if is_number(value)), default=0)
    return next((unit for unit in units if largest >= unit[0]), units[-1])


def significant(value, digits=3):
    """1234.5 -> '1,234', 0.012345 -> '0.0123'. The integer part keeps all its digits."""
    if not is_number(value):
        return UNKNOWN
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if exponent < -4:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - exponent)}f}"


def scaled(value, units, digits=3):
    if not is_number(value):
        return UNKNOWN
    factor, name = unit_of([value], units)
    return f"{significant(value / factor, digits)} {name}"


def between(value, low, high, units=TIME_UNITS, digits=4):
    """'1.452 s [1.449, 1.457]', all in the unit of the value. Without the ends, if these are not known."""
    if not (is_number(value) and is_number(low) and is_number(high)):
        return scaled(value, units, digits)
    factor, _ = unit_of([value], units)
    return f"{scaled(value, units, digits)} [{significant(low / factor, digits)}, {significant(high / factor, digits)}]"


def seconds(value, digits=3):
    return "0 s" if value == 0 else scaled(value, TIME_UNITS, digits)


def bytes_(value):
    if is_number(value) and value == int(value) and abs(value) < 1024:
        return f"{int(value)} B"
    return scaled(value, BYTE_UNITS)


rate = partial(scaled, units=RATE_UNITS)


def times(value):
    """'1.5 ×', for an axis"""
    if not is_number(value):
        return UNKNOWN
    return f"{value:,.0f} ×" if value >= 1000 else f"{value:.3g} ×"


def ratio(one):
    """'1.10 × [1.09, 1.11]' for a Ratio; a simulated one has no scatter, and so no interval."""
    ends = one[1:] if one.low != one.high else (None, None)
    return between(one.value, *ends, RATIO, 3)


def percent(value, digits=0):
    if not is_number(value):
        return UNKNOWN
    small = 0 < abs(100 * value) < 0.95 * 10**-digits  # would be 0
    return f"{100 * value:.1g} %" if small else f"{100 * value:.{digits}f} %"


def count(value):
    return UNKNOWN if not is_number(value) else f"{int(value):,}"


def plural(number, noun):
    return f"{number:,} {noun if number == 1 else noun + 's'}"
