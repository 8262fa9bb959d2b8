# SPDX-License-Identifier: Apache-2.0
"""Reading of JSON that may lack anything: what is not there, or is of another kind, is None."""

from .numbers import is_number


def get(value, *path):
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def number(value, *path):
    value = get(value, *path)
    return value if is_number(value) else None


def positive(value, *path):
    value = number(value, *path)
    return value if value is not None and value > 0 else None


def text(value, *path):
    value = get(value, *path)
    return value if isinstance(value, str) and value else None


def items(value, *path):
    value = get(value, *path)
    return value if isinstance(value, list) else []


def table(value, *path):
    """The objects of a list; anything else in it is left out."""
    return [item for item in items(value, *path) if isinstance(item, dict)]


def mapping(value, *path):
    value = get(value, *path)
    return value if isinstance(value, dict) else {}


def numbers(value, *path):
    """A list of numbers, with None for what is none (a loss that is not finite)."""
    return [number(item) for item in items(value, *path)]
