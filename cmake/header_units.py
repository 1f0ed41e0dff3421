#!/usr/bin/env python3
"""Units that show that every header compiles alone; see checks.cmake.

  header_units.py ROOT OUT SOURCES < headers

A header compiles alone if it compiles where nothing is included before it but what it includes itself.
So one unit shows it for each header of a chain in which every header includes those before it, and a
source, or a batch of them, for the headers that it begins with. Reads the paths of the headers,
relative to ROOT; the file SOURCES names the sources that begin a unit of the build. Writes as few
units as the chains allow into the folder OUT, each under the name of its last header, and prints
their paths.
"""
import functools
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "(.*)"', re.MULTILINE)


class Includes:
    """The headers that each header includes, in order."""

    def __init__(self, root, headers):
        self.root = root
        self.headers = headers
        self.known = set(headers)
        self.direct = {header: self.of(header) for header in headers}

    def of(self, path):
        return [name for name in INCLUDE.findall((self.root / path).read_text()) if name in self.known]

    @functools.lru_cache(maxsize=None)
    def all(self, header):
        """What a header includes, itself or by other headers."""
        return frozenset(self.direct[header]).union(*(self.all(name) for name in self.direct[header]))

    def shown(self, unit):
        """The headers that a unit of these includes shows to compile alone."""
        entered, read, shown = set(), set(), set()

        def enter(header):
            if header in entered:
                return
            entered.add(header)
            if read <= self.all(header):
                shown.add(header)
            for name in self.direct[header]:
                enter(name)
            read.add(header)

        for header in unit:
            enter(header)
        return shown


def chains(includes, headers):
    """A partition of the headers into the fewest chains: a maximum matching of each header with one
    that it includes."""
    members = set(headers)
    candidates = {header: sorted((name for name in includes.all(header) if name in members),
                                 key=lambda name: (-len(includes.all(name)), name)) for header in headers}
    above = {}

    def match(header, tried):
        for name in candidates[header]:
            if name not in tried:
                tried.add(name)
                if name not in above or match(above[name], tried):
                    above[name] = header
                    return True
        return False

    for header in headers:
        match(header, set())
    below = {header: name for name, header in above.items()}
    found = []
    for header in headers:
        if header not in above:
            chain = [header]
            while chain[-1] in below:
                chain.append(below[chain[-1]])
            found.append(chain[::-1])
    return sorted(found, key=lambda chain: -len(includes.all(chain[-1])))


def main():
    root, out, sources = (pathlib.Path(argument) for argument in sys.argv[1:])
    includes = Includes(root, sys.stdin.read().split())
    shown = set()
    for source in sources.read_text().split():
        shown |= includes.shown(includes.of(source))
    for chain in chains(includes, [header for header in includes.headers if header not in shown]):
        unit = [header for header in chain if header not in shown]
        if not unit:
            continue
        shown |= includes.shown(unit)
        path = out / (unit[-1] + ".cpp")
        text = "".join(f'#include "{header}"\n' for header in unit)
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        print(path)
    missing = [header for header in includes.headers if header not in shown]
    assert not missing, missing


if __name__ == "__main__":
    main()
