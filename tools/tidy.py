#!/usr/bin/env python3
"""Runs clang-tidy over the sources under src/, one on each core, and remembers what was clean.

A file is run again when it, anything of ours that it includes, the schema, .clang-tidy or clang-tidy
itself has changed. Tests, fuzzers and benchmarks are left out: they would double the time, and the
sanitizers run them anyway.

Most of clang-tidy's time goes into the headers of libraries. So files of one layer are looked at
together, as one source that includes them; where two of them cannot stand together (each has its own
helper of the same name), they are taken apart again.

  tools/tidy.py BUILD_FOLDER [FILE...]    exit 1 when clang-tidy complains
"""

import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-19")
JOBS = os.cpu_count() or 2
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
TOGETHER = 8
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


def tidy(folder, path):
    extra = [f"--extra-arg={flag}" for flag in EXTRA]
    command = [TIDY, "--quiet", f"-p={folder}", *extra, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout + (done.stderr if done.returncode and not done.stdout else "")


def batches(paths, flags):
    """Files of one folder with the same flags, at most TOGETHER of them at once."""
    groups = collections.defaultdict(list)
    for path in paths:
        groups[path.parent, flags[path]].append(path)
    for group in groups.values():
        for begin in range(0, len(group), TOGETHER):
            yield group[begin:begin + TOGETHER]


def run(batch, build, flags):
    """Looks at the files together; yields (path, output) for each, without output when it is clean."""
    if len(batch) == 1:
        code, output = tidy(build, batch[0])
        return [(batch[0], output if code else "")]
    with tempfile.TemporaryDirectory() as folder:
        together = pathlib.Path(folder) / "together.cc"
        together.write_text("".join(f'#include "{path}"\n' for path in batch))
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps([{
            "directory": str(build), "file": str(together),
            "command": f"{flags[batch[0]]} -c {together}"}]))
        code, _ = tidy(folder, together)
    if code == 0:
        return [(path, "") for path in batch]
    half = len(batch) // 2
    return run(batch[:half], build, flags) + run(batch[half:], build, flags)


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
    # A compile command without its source and output: the flags.
    flags = {path: re.sub(r" (-o|-MF|-MT|-c) \S+| -MD", "", commands[path]) for path in todo}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for results in pool.map(lambda batch: run(batch, build, flags), batches(todo, flags)):
            for path, output in results:
                if not output:
                    (cache / keys[path]).touch()
                else:
                    failed += 1
                    print(output, flush=True)
    if failed:
        print(f"clang-tidy: {failed} files with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
