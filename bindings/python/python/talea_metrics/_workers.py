"""A warning for servers whose workers count each for itself."""

import os
import warnings
from collections.abc import Iterator

_MESSAGE = (
    "other processes listen on the socket of this one, and each shows what it counted itself: a page is of "
    "whichever process answers. Set TALEA_REGION to a file on tmpfs, such as /dev/shm/NAME.talea, for all of them"
)
_checked = -1


def warn_of_workers() -> None:
    """Warns once, if this process is one of several workers of a server and shows memory of its own."""
    global _checked
    if _checked != os.getpid():
        _checked = os.getpid()
        try:
            own = _listening(os.getpid())
            is_one_of_many = own and any(own & _listening(pid) for pid in _siblings())
        except OSError:
            # Without /proc, or without the permission to read it.
            return
        if is_one_of_many:
            warnings.warn(_MESSAGE, RuntimeWarning, stacklevel=4)


def _siblings() -> Iterator[int]:
    parent = os.getppid()
    for task in os.listdir(f"/proc/{parent}/task"):
        with open(f"/proc/{parent}/task/{task}/children") as file:
            yield from (pid for pid in map(int, file.read().split()) if pid != os.getpid())


def _listening(pid: int) -> set[str]:
    """The addresses on which a process accepts connections: equal also if each has a socket of its own."""
    inodes = set()
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(entry.path))
        except OSError:
            # Closed meanwhile.
            continue
    found = set()
    for table in ("tcp", "tcp6", "unix"):
        try:
            with open(f"/proc/{pid}/net/{table}") as file:
                rows = [line.split() for line in file][1:]
        except OSError:
            continue
        for row in rows:
            # Listening: state 0A of TCP; flag 10000 of Unix sockets, which have no path if they are unnamed.
            if table != "unix" and row[3] == "0A" and f"socket:[{row[9]}]" in inodes:
                found.add(f"{table} {row[1]}")
            elif table == "unix" and row[3] == "00010000" and f"socket:[{row[6]}]" in inodes:
                found.add(f"unix {row[6]}")
    return found
