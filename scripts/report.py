#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the report on the results of a study of tessera-bench: scripts/report.py RESULTS [-o DIR]."""

import os
import sys


def find_matplotlib():
    """Debian's packages belong to Debian's Python, which may not be the first one in PATH."""
    try:
        import matplotlib  # noqa: F401

        return
    except ImportError:
        pass
    system = "/usr/bin/python3"
    differs = os.path.realpath(sys.executable) != os.path.realpath(system)
    if differs and os.access(system, os.X_OK):
        os.execv(system, [system, os.path.abspath(__file__), *sys.argv[1:]])
    sys.exit(
        f"error: {sys.executable} has no matplotlib: install python3-matplotlib (Debian), py-matplotlib (Spack) or "
        "matplotlib (pip); scripts/setup.sh installs it on Debian"
    )


if __name__ == "__main__":
    # Nothing is left behind in the source tree.
    sys.dont_write_bytecode = True
    find_matplotlib()
    from report.command import main

    sys.exit(main())
