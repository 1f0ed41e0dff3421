#!/usr/bin/env python3
"""Runs commands at the same time that are timed one after the other, each alone on this computer.

    bench/gpu/turns.py JOBS [--limit 150] [--most 16] [--turn 20] [--log FILE]

JOBS has a line for each command: a name, a blank, and what bash runs. A command prepares itself, and times under `with
turn():`, for which all other commands and their children are stopped; who is ready first is first. Outputs are printed line by
line as they come, with the name and the seconds since the start. After --limit seconds what still runs is aborted. Without this
program, a turn begins at once.
Exit code 1: a command failed, or did not end.
"""
import argparse
import collections
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

VARIABLE = "TESSERA_TURNS"  # the folder by which commands ask for turns


@contextlib.contextmanager
def turn():
    folder = os.environ.get(VARIABLE)
    if folder is None:
        yield
        return
    request = pathlib.Path(folder) / f"{os.getpid()}-{time.monotonic_ns()}"
    request.with_suffix(".asks").touch()
    while not request.with_suffix(".begins").exists():
        time.sleep(0.01)
    try:
        yield
    finally:
        request.with_suffix(".ended").touch()


def descendants(roots):
    """Processes and all their children, by number."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, queue = [], list(roots)
    while queue:
        found.append(queue.pop())
        queue += children.get(found[-1], [])
    return found


def send(roots, number):
    """A signal to processes and all their children; the tree is read again, since it grows until it is stopped."""
    for _ in range(2 if number == signal.SIGSTOP else 1):
        for process in descendants(roots):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)


class Runner:
    def __init__(self, options):
        self.options, self.start, self.lock = options, time.monotonic(), threading.Lock()
        self.log = open(options.log, "w") if options.log else None
        self.processes, self.ended, self.frames = {}, {}, collections.Counter()

    def say(self, name, line):
        with self.lock:
            text = f"[{time.monotonic() - self.start:5.1f} {name}] {line.rstrip()}"
            # Of where an aborted command was, the innermost frames; all of it is in the log.
            frame = line.startswith("  File ")
            self.frames[name] += self.late() and frame
            if not self.late() or self.frames[name] <= 6 and (frame or not line.startswith((" ", "Thread", "\n"))):
                print(text, flush=True)
            if self.log:
                print(text, file=self.log, flush=True)

    def begin(self, name, command, folder):
        process = subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   env={**os.environ, VARIABLE: folder, "PYTHONUNBUFFERED": "1"})
        self.processes[name] = process

        def read():
            for line in process.stdout:
                self.say(name, line)

        threading.Thread(target=read, daemon=True).start()

    def running(self):
        return [name for name in self.processes if name not in self.ended]

    def give_turn(self, request):
        """All but the owner of the request, and what it has started, are stopped until it ends its turn."""
        pid = int(request.stem.split("-")[0])
        owner = next((name for name in self.running() if pid in descendants([self.processes[name].pid])), None)
        request.unlink()
        if owner is None:
            return
        others = [self.processes[name].pid for name in self.running() if name != owner]
        send(others, signal.SIGSTOP)
        try:
            time.sleep(0.2)  # for what they have put on a GPU
            request.with_suffix(".begins").touch()
            until = time.monotonic() + self.options.turn
            while time.monotonic() < until and not request.with_suffix(".ended").exists():
                if self.processes[owner].poll() is not None or self.late():
                    break
                time.sleep(0.01)
        finally:
            send(others, signal.SIGCONT)

    def late(self):
        return time.monotonic() - self.start > self.options.limit

    def run(self, jobs):
        waiting = list(jobs)
        with tempfile.TemporaryDirectory() as folder:
            while not self.late():
                while waiting and len(self.running()) < self.options.most:
                    self.begin(*waiting.pop(0), folder)
                for name in self.running():
                    if (code := self.processes[name].poll()) is not None:
                        self.ended[name] = code
                        self.say(name, f"ended with {code}")
                if not waiting and not self.running():
                    break
                for request in sorted(pathlib.Path(folder).glob("*.asks"), key=lambda file: file.stat().st_mtime)[:1]:
                    self.give_turn(request)
                time.sleep(0.05)
            for name in self.running():
                self.say(name, "did not end")
            left = [self.processes[name].pid for name in self.running()]
            if left:
                send(left, signal.SIGABRT)  # Python tells where it is, if PYTHONFAULTHANDLER=1
                time.sleep(1)
            send(left, signal.SIGKILL)
        for name, _ in waiting:
            self.say(name, "did not begin")
        failed = [name for name, code in self.ended.items() if code]
        self.say("all", f"{len(self.ended) - len(failed)} of {len(jobs)} ended well; failed: {' '.join(failed) or 'none'}")
        return 0 if len(self.ended) == len(jobs) and not failed else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=argparse.FileType())
    parser.add_argument("--limit", type=float, default=150, help="seconds for all")
    parser.add_argument("--most", type=int, default=16, help="commands at the same time")
    parser.add_argument("--turn", type=float, default=20, help="seconds after which a turn is over")
    parser.add_argument("--log")
    options = parser.parse_args()
    jobs = [line.strip().split(None, 1) for line in options.jobs if line.strip() and not line.startswith("#")]
    return Runner(options).run(jobs)


if __name__ == "__main__":
    sys.exit(main())
