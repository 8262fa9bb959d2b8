# SPDX-License-Identifier: Apache-2.0
"""Reading of JSON that may lack anything: what is not there, or is of another kind, is None or empty. What is there
and of another kind is noted with its key, if it comes from a file."""

import json

from .numbers import is_number


class Part(dict):
    """An object in a file. It knows its key there, and tells `note` (key, what must be) of what is wrong in it."""

    def __init__(self, content, note, place=""):
        super().__init__()
        self.note, self.place = note, place
        for key, value in content.items():
            self[key] = located(value, note, self.of(key))

    def of(self, key):
        return f"{self.place}.{key}" if self.place else str(key)


def located(value, note, place=""):
    """The same value; its objects are Parts."""
    if isinstance(value, dict):
        return Part(value, note, place)
    if isinstance(value, list):
        return [located(item, note, f"{place}[{number}]") for number, item in enumerate(value)]
    return value


def _found(value, path, is_right, wanted):
    """What stands there; None, noted, if that is not right. None says that something is not known."""
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
        note(place, f"{_shown(value)}: must be {wanted}")
    return None


def _shown(value):
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:40] + "..."


def get(value, *path):
    return _found(value, path, lambda _: True, "")


def _of_kind(kind, value, path, wanted):
    found = _found(value, path, lambda item: isinstance(item, kind), wanted)
    return kind() if found is None else found


def number(value, *path):
    return _found(value, path, is_number, "a number")


def positive(value, *path):
    value = _found(value, path, lambda item: is_number(item) and item >= 0, "a positive number")
    return value or None


def text(value, *path):
    return _of_kind(str, value, path, "a text") or None


def mapping(value, *path):
    return _of_kind(dict, value, path, "an object")


def _items(value, path, is_right, wanted):
    """Those of a list; None for one that is not right."""
    items = _of_kind(list, value, path, f"a list of {wanted}")
    wrong = [item for item in items if item is not None and not is_right(item)]
    if wrong:
        _found(value, path, lambda _: False, f"a list of {wanted}")
    return [item if is_right(item) else None for item in items]


def table(value, *path):
    """The objects of a list; anything else in it is left out."""
    items = _items(value, path, lambda item: isinstance(item, dict), "objects")
    return [item for item in items if item is not None]


def texts(value, *path):
    items = _items(value, path, lambda item: isinstance(item, str), "texts")
    return [item for item in items if item is not None]


def numbers(value, *path):
    """A list of numbers, with None for what is none (a loss that is not finite)."""
    return _items(value, path, is_number, "numbers")
