# SPDX-License-Identifier: Apache-2.0
"""Reads JSON in which any key may be missing. A value that is missing or of another kind is None or empty. If it comes
from a file and is of another kind, its key is noted."""

import json

from .numbers import is_number


class Part(dict):
    """An object in a file. It knows its key there, and calls `note(key, message)` for a value that is wrong."""

    def __init__(self, content, note, place=""):
        super().__init__()
        self.note, self.place = note, place
        for key, value in content.items():
            self[key] = located(value, note, self.of(key))

    def of(self, key):
        return f"{self.place}.{key}" if self.place else str(key)


def located(value, note, place=""):
    """Returns the same value with Parts for its objects."""
    if isinstance(value, dict):
        return Part(value, note, place)
    if isinstance(value, list):
        return [located(item, note, f"{place}[{number}]") for number, item in enumerate(value)]
    return value


def _found(value, path, is_right, wanted):
    """Returns the value at the path. Notes a wrong one and returns None; null is right everywhere."""
    note, place = None, ""
    for key in path:
        if not isinstance(value, dict):
            is_right, wanted = lambda _: False, "an object"
            break
        note, place = (value.note, value.of(key)) if isinstance(value, Part) else (None, "")
        value = value.get(key)
    if value is None or is_right(value):
        return value
    if note:
        text = json.dumps(value)
        note(place, f"{text if len(text) <= 40 else text[:40] + '...'}: must be {wanted}")
    return None


def _reader(is_right, wanted, empty=None):
    """Returns a function of an object and a path of keys."""
    return lambda value, *path: empty if (found := _found(value, path, is_right, wanted)) is None else found


get = _reader(lambda _: True, "")
number = _reader(is_number, "a number")
text = _reader(lambda value: isinstance(value, str), "a text")
mapping = _reader(lambda value: isinstance(value, dict), "an object", {})


def positive(value, *path):
    return _found(value, path, lambda item: is_number(item) and item >= 0, "a positive number") or None


def _items(kind, is_right, gaps=False):
    """Returns a function that reads a list, without the items that are not right, or with None for them."""

    def read(value, *path):
        items = _found(value, path, lambda item: isinstance(item, list), f"a list of {kind}") or []
        if any(item is not None and not is_right(item) for item in items):
            _found(value, path, lambda _: False, f"a list of {kind}")
        return [item if is_right(item) else None for item in items if gaps or is_right(item)]

    return read


numbers = _items("numbers", is_number, gaps=True)  # a loss that is not finite is None
table = _items("objects", lambda item: isinstance(item, dict))
texts = _items("texts", lambda item: isinstance(item, str))
