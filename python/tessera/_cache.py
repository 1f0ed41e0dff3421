"""The folder of the object code cache, shared with the command line."""

import os
import pathlib


def folder(cache):
    """The folder for `cache`: "default", None for no cache, or a path."""
    if cache is None:
        return ""
    if cache != "default":
        return pathlib.Path(cache)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.environ.get("HOME", "")
        if not os.path.isabs(home):
            return ""
        base = os.path.join(home, ".cache")
    path = pathlib.Path(base, "tessera")
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return ""
    return path if os.access(path, os.W_OK) else ""
