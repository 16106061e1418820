#!/usr/bin/env python3
"""Runs clang-tidy over the sources under src/, one on each core, and remembers what was clean.

A file is run again when it, anything of ours that it includes, the schema, .clang-tidy or clang-tidy
itself has changed. Tests, fuzzers and benchmarks are left out: they would double the time, and the
sanitizers run them anyway.

  tools/tidy.py BUILD_FOLDER [FILE...]    exit 1 when clang-tidy complains
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-19")
JOBS = os.cpu_count() or 2
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
SKIPPED = re.compile(r"_(test|fuzz|bench)\.cc$")
# The build's flags are g++'s, and its warnings are already errors there.
EXTRA = ["-Wno-error", "-Wno-unknown-warning-option", "-Wno-ignored-optimization-argument"]


def ours(path):
    """`path` and every file of this tree that it includes, directly or not; the schema stands for
    what is generated from it."""
    found, todo = {path}, [path]
    while todo:
        for name in INCLUDE.findall(todo.pop().read_text(errors="replace")):
            if name.endswith(".pb.h"):
                found.update(ROOT.glob("proto/**/*.proto"))
            for folder in ("src", "include"):
                other = ROOT / folder / name
                if other.is_file() and other not in found:
                    found.add(other)
                    todo.append(other)
    return sorted(found)


def common_digest():
    digest = hashlib.sha256()
    digest.update(subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout)
    digest.update((ROOT / ".clang-tidy").read_bytes())
    digest.update(" ".join(EXTRA).encode())
    return digest.hexdigest()


def key_of(path, command, common):
    # Without the checkout's own path, so that two checkouts share what is known to be clean.
    digest = hashlib.sha256((common + command.replace(str(ROOT), ".")).encode())
    for file in ours(path):
        digest.update(str(file.relative_to(ROOT)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def run(path, build):
    extra = [f"--extra-arg={flag}" for flag in EXTRA]
    command = [TIDY, "--quiet", f"-p={build}", *extra, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout + (done.stderr if done.returncode and not done.stdout else "")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    entries = json.loads((build / "compile_commands.json").read_text())
    commands = {pathlib.Path(e["file"]): e["command"] for e in entries}
    wanted = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or [
        path for path in sorted(ROOT.glob("src/**/*.cc")) if not SKIPPED.search(path.name)]
    missing = [path for path in wanted if path not in commands]
    if missing:
        print("not in the build:", *missing)
        return 1

    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "baton-tidy"
    cache.mkdir(parents=True, exist_ok=True)
    common = common_digest()
    keys = {path: key_of(path, commands[path], common) for path in wanted}
    todo = [path for path in wanted if not (cache / keys[path]).exists()]
    print(f"clang-tidy: {len(todo)} of {len(wanted)} files to check", flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for path, (code, output) in zip(todo, pool.map(lambda p: run(p, build), todo)):
            if code == 0:
                (cache / keys[path]).touch()
            else:
                failed += 1
                print(output, flush=True)
    if failed:
        print(f"clang-tidy: {failed} files with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
