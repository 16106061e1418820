#!/usr/bin/env python3
"""Checks that every bench script starts, and that none hides a module of Python itself.

A script's folder comes first on Python's path, so a file named queue.py there is what the standard
library gets when it imports its own queue: the benchmark then fails in the middle of its run.
"""

import pathlib
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"


def main():
    problems = [f"{path.name} hides Python's own module"
                for path in BENCH.glob("*.py") if path.stem in sys.stdlib_module_names]
    for path in sorted(BENCH.glob("bench_*.py")):
        done = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True)
        if done.returncode != 0 or "usage:" not in done.stdout:
            problems.append(f"{path.name} --help: exit {done.returncode}\n{done.stderr}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
