# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them: a few significant digits and a unit. What is unknown is a dash."""

import math
import sys
from functools import partial

UNKNOWN = "–"

# (factor, name), the largest first.
TIME_UNITS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
BYTE_UNITS = [(2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")]
RATE_UNITS = [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")]
FLOP_UNITS = [(10.0**power, f"{prefix}FLOP/s")
              for power, prefix in ((15, "P"), (12, "T"), (9, "G"), (6, "M"), (0, ""))]  # fmt: skip


def is_number(value):
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_one and abs(value) <= sys.float_info.max  # an integer may be larger


def unit_of(values, units):
    """The unit in which the largest of `values` reads well, for an axis or a column of a table."""
    largest = max((abs(value) for value in values if is_number(value)), default=0)
    return next((unit for unit in units if largest >= unit[0]), units[-1])


def significant(value, digits=3):
    """1234.5 -> '1,234', 0.012345 -> '0.0123': never fewer digits than the integer part has."""
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


def tick(units):
    """Formats values of an axis, without trailing zeros."""

    def show(value):
        factor, name = unit_of([value], units)
        return f"{value / factor:.4g} {name}"

    return show


def seconds(value, digits=3):
    return "0 s" if value == 0 else scaled(value, TIME_UNITS, digits)


def seconds_between(median, low, high):
    """'1.452 s [1.449, 1.457]': all in the unit of the median."""
    if not (is_number(median) and is_number(low) and is_number(high)):
        return seconds(median, 4)
    factor, _ = unit_of([median], TIME_UNITS)
    return f"{seconds(median, 4)} [{significant(low / factor, 4)}, {significant(high / factor, 4)}]"


def bytes_(value):
    if is_number(value) and value == int(value) and abs(value) < 1024:
        return f"{int(value)} B"
    return scaled(value, BYTE_UNITS)


rate = partial(scaled, units=RATE_UNITS)
flops = partial(scaled, units=FLOP_UNITS)


def percent(value, digits=0):
    return UNKNOWN if not is_number(value) else f"{100 * value:.{digits}f} %"


def signed_percent(value, digits=".1f"):
    if not is_number(value):
        return UNKNOWN
    return "0 %" if abs(value) < 1e-9 else f"{100 * value:+{digits}} %".replace("-", "−")


def times(value):
    """A ratio: 3.87×."""
    return UNKNOWN if not is_number(value) else f"{value:,.{2 if value < 10 else 1}f}×"


def count(value):
    return UNKNOWN if not is_number(value) else f"{int(value):,}"


def plural(number, noun):
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def power_of_ten(value):
    """1e-05 -> 10⁻⁵, 2e-05 -> 2·10⁻⁵."""
    if not is_number(value) or value <= 0:
        return UNKNOWN
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    superscripts = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    power = "10" + str(int(exponent)).translate(superscripts)
    return power if float(mantissa) == 1 else f"{float(mantissa):g}·{power}"
