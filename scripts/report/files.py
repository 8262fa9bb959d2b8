# SPDX-License-Identifier: Apache-2.0
"""Reads and writes whole regular files. Opening a FIFO would block, and replacing a device would destroy it."""

import errno
import stat


def check_regular(path):
    """Raises OSError unless the path is a regular file."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "is no regular file", str(path))


def read(path):
    """Returns the bytes of a file."""
    check_regular(path)
    return path.read_bytes()


def replace(path, content):
    """Follows symbolic links. Writes under a temporary name first, so that nobody reads half a file."""
    path = path.resolve()
    if path.exists():
        check_regular(path)
    temporary = path.with_name(path.name + ".new")
    temporary.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    temporary.replace(path)
