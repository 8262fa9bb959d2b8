# SPDX-License-Identifier: Apache-2.0
"""Reading of JSON that may lack anything: what is not there, or is of another kind, is None or empty."""

from .numbers import is_number


def get(value, *path):
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _of_kind(kind, value, path):
    value = get(value, *path)
    return value if isinstance(value, kind) else kind()


def number(value, *path):
    value = get(value, *path)
    return value if is_number(value) else None


def positive(value, *path):
    value = number(value, *path)
    return value if value is not None and value > 0 else None


def text(value, *path):
    return _of_kind(str, value, path) or None


def mapping(value, *path):
    return _of_kind(dict, value, path)


def table(value, *path):
    """The objects of a list; anything else in it is left out."""
    return [item for item in _of_kind(list, value, path) if isinstance(item, dict)]


def texts(value, *path):
    return [item for item in _of_kind(list, value, path) if isinstance(item, str)]


def numbers(value, *path):
    """A list of numbers, with None for what is none (a loss that is not finite)."""
    return [number(item) for item in _of_kind(list, value, path)]
