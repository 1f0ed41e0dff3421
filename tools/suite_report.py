"""Outcomes of a foreign test suite compared with its known failures; for tools/triton-suite and tools/inductor-suite."""

import collections
import fnmatch
import importlib.util
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def skip(suite, why):
    print(f"{suite}: skipped, {why}")
    sys.exit(0)


def need_modules(suite, names, required):
    """Goes on in the environment of tools/python where the package is not found; ends where modules are missing."""
    if importlib.util.find_spec("tessera") is None:
        os.execv(ROOT / "tools" / "python", ["tools/python", "--exec", os.path.abspath(sys.argv[0]), *sys.argv[1:]])
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    why = f"{' and '.join(missing)} cannot be imported by {sys.executable}"
    if missing and not required:
        skip(suite, why)
    if missing:
        sys.exit(f"{suite}: {why}")


def known_failures(known):
    """Pairs of a pattern of test ids and a reason: lines of a pattern, two blanks, # and the reason."""
    rows = []
    for line in known.read_text().splitlines():
        pattern, _, reason = line.partition("  # ")
        if pattern.strip() and not pattern.startswith("#"):
            rows.append((pattern.strip(), reason.strip()))
    return rows


def report(outcomes, known, group_of):
    """Prints counts by group and the failures; the number of differences from the known ones.

    `outcomes` has (outcome, reason) by test id."""
    rows = known_failures(known)
    counts = collections.defaultdict(collections.Counter)
    unknown, met, passing = collections.defaultdict(list), collections.Counter(), collections.Counter()
    for name, (outcome, reason) in sorted(outcomes.items()):
        counts[group_of(name)][outcome] += 1
        pattern = next((p for p, _ in rows if fnmatch.fnmatchcase(name, p)), None)
        if pattern is not None:
            (met if outcome == "failed" else passing)[pattern] += outcome != "skipped"
        elif outcome == "failed":
            unknown[re.sub(r"0x[0-9a-f]+|line \d+", "…", reason.splitlines()[0] if reason else "")].append(name)
    total = sum(counts.values(), collections.Counter())
    for name, counter in [*sorted(counts.items()), ("all", total)]:
        print(f"{name:28} {counter['passed']:6} passed {counter['failed']:5} failed {counter['skipped']:5} skipped")
    for pattern, reason in rows:
        if met[pattern]:
            print(f"known: {met[pattern]:4} {pattern}  ({reason})")
    for reason, names in sorted(unknown.items(), key=lambda row: -len(row[1])):
        print(f"FAILED {len(names)}: {reason}")
        for name in names[:20]:
            print(f"    {name}")
    for pattern, _ in rows:
        if passing[pattern] and not met[pattern]:
            print(f"PASSES: {pattern} is in {known.name} and does not fail: remove the line")
    return sum(map(len, unknown.values())) + sum(1 for p, _ in rows if passing[p] and not met[p])
