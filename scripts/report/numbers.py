# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them: a few significant digits and a unit. What is unknown is a dash."""

import math

UNKNOWN = "–"


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def significant(value, digits=3):
    """1234.5 -> '1,234', 0.012345 -> '0.0123': never fewer digits than the integer part has."""
    if not is_number(value):
        return UNKNOWN
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if exponent < -4:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - exponent)
    return f"{value:,.{decimals}f}"


def scaled(value, units, digits=3):
    """`units` are (factor, name) with the largest first."""
    if not is_number(value):
        return UNKNOWN
    factor, name = axis_unit([value], units)
    return f"{significant(value / factor, digits)} {name}"


TIME_UNITS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
BYTE_UNITS = [(2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")]
RATE_UNITS = [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")]
FLOP_UNITS = [
    (1e15, "PFLOP/s"),
    (1e12, "TFLOP/s"),
    (1e9, "GFLOP/s"),
    (1e6, "MFLOP/s"),
    (1.0, "FLOP/s"),
]


def seconds(value, digits=3):
    return "0 s" if value == 0 else scaled(value, TIME_UNITS, digits)


def bytes_(value):
    if is_number(value) and value == int(value) and abs(value) < 1024:
        return f"{int(value)} B"
    return scaled(value, BYTE_UNITS)


def _tick(value, units):
    factor, name = axis_unit([value], units)
    return f"{value / factor:.4g} {name}"


def tick_seconds(value):
    return _tick(value, TIME_UNITS)


def tick_bytes(value):
    return _tick(value, BYTE_UNITS)


def rate(value):
    return scaled(value, RATE_UNITS)


def flops(value):
    return scaled(value, FLOP_UNITS)


def percent(value, digits=0):
    return UNKNOWN if not is_number(value) else f"{100 * value:.{digits}f} %"


def signed_percent(value, digits=1):
    return UNKNOWN if not is_number(value) else f"{100 * value:+.{digits}f} %".replace("-", "−")


def tick_signed_percent(value):
    return "0 %" if abs(value) < 1e-9 else f"{100 * value:+.3g} %".replace("-", "−")


def times(value):
    """A ratio: 3.87×."""
    return UNKNOWN if not is_number(value) else f"{value:,.{2 if value < 10 else 1}f}×"


def count(value):
    return UNKNOWN if not is_number(value) else f"{int(value):,}"


def seconds_between(median, low, high):
    """'1.452 s [1.449, 1.457]': all in the unit of the median."""
    if not is_number(median):
        return UNKNOWN
    if not (is_number(low) and is_number(high)):
        return seconds(median, 4)
    factor, _ = axis_unit([median], TIME_UNITS)
    ends = ", ".join(significant(end / factor, 4) for end in (low, high))
    return f"{seconds(median, 4)} [{ends}]"


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power_of_ten(value):
    """1e-05 -> 10⁻⁵, 2e-05 -> 2·10⁻⁵."""
    if not is_number(value) or value <= 0:
        return UNKNOWN
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    mantissa = f"{float(mantissa):g}"
    return power if mantissa == "1" else f"{mantissa}·{power}"


def axis_unit(values, units):
    """The unit in which the largest of `values` reads well, for an axis or a column of a table."""
    finite = [abs(v) for v in values if is_number(v)]
    largest = max(finite, default=0)
    return next((unit for unit in units if largest >= unit[0]), units[-1])


def plural(number, noun, nouns=None):
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
