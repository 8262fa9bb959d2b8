#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts a safetensors file, as `tessera checkpoint export` writes it, to npz for numpy.load. Needs NumPy."""

import argparse
import json
import pathlib
import sys

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


def arrays_in(data):
    """The format: the length of the header in 8 bytes, the header as JSON, the values of all arrays."""
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    for name, array in header.items():
        if array["dtype"] not in TYPES:
            raise ValueError(f"{name} has elements of type {array['dtype']}, which NumPy lacks")
        first, last = array["data_offsets"]
        header[name] = np.frombuffer(data[begin + first : begin + last], TYPES[array["dtype"]]).reshape(array["shape"])
    return header


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=pathlib.Path, help="safetensors file")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="default: the same name with the extension .npz")
    options = parser.parse_args()
    try:
        arrays = arrays_in(options.file.read_bytes())
        with open(options.output or options.file.with_suffix(".npz"), "wb") as out:
            np.savez(out, **arrays)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        sys.exit(f"error: {options.file}: {error}")


if __name__ == "__main__":
    main()
