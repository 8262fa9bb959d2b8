# SPDX-License-Identifier: Apache-2.0
"""Regular files, read and written as a whole. Whatever else has a name might be waited for, or be destroyed."""

import errno
import stat


def check_regular(path):
    """Raises OSError where there is no regular file."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "is no regular file", str(path))


def read_text(path):
    check_regular(path)
    return path.read_text(encoding="utf-8")


def replace(path, content):
    """Through symbolic links, and under a temporary name first, so that nobody reads half a file."""
    path = path.resolve()
    if path.exists():
        check_regular(path)
    temporary = path.with_name(path.name + ".new")
    temporary.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    temporary.replace(path)
