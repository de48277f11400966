"""Trees of files, byte for byte: what the oracle compares.

An entry is what `lstat` and the content say: kind, permissions, and the digest of a file or the target of a link. Times do not count.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

Tree = dict[str, str]


def take(root: Path, without: Iterable[Path] = ()) -> Tree:
    """Every entry below a directory, by its path relative to it, and the directory itself as `.`."""
    left_out = {str(path) for path in without}
    tree: Tree = {".": _entry(root)}
    waiting = [root]
    while waiting:
        try:
            found = list(os.scandir(waiting.pop()))
        except OSError as error:
            tree[f"unreadable {error.filename}"] = str(error.strerror)
            continue
        for entry in found:
            if entry.path in left_out:
                continue
            path = Path(entry.path)
            tree[str(path.relative_to(root))] = _entry(path)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
    return tree


def _entry(path: Path) -> str:
    about = path.lstat()
    mode = f"{stat.S_IMODE(about.st_mode):04o}"
    if stat.S_ISREG(about.st_mode):
        return f"file {mode} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    if stat.S_ISDIR(about.st_mode):
        return f"directory {mode}"
    if stat.S_ISLNK(about.st_mode):
        return f"link {os.readlink(path)}"
    return f"{stat.S_IFMT(about.st_mode):o} {mode}"


def changes(before: Tree, after: Tree) -> list[str]:
    """What differs, one line per entry."""
    lines = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old != new:
            lines.append(f"{path}: {_short(old)} -> {_short(new)}")
    return lines


def _short(entry: str | None) -> str:
    if entry is None:
        return "absent"
    return entry[:24] if entry.startswith("file") else entry
