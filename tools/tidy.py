#!/usr/bin/env python3
"""Runs clang-tidy over the sources under src/, one on each core, and remembers what was clean.

A file is run again when it, anything of ours that it includes, the schema, .clang-tidy or clang-tidy
itself has changed. Tests, fuzzers and benchmarks are left out: they would double the time, and the
sanitizers run them anyway.

Most of clang-tidy's time goes into the headers of libraries. So files of one layer are looked at
together, as one source that includes them; where two of them cannot stand together (each has its own
helper of the same name), they are taken apart again.

  tools/tidy.py BUILD_FOLDER [FILE...]    exit 1 when clang-tidy complains
  tools/tidy.py --self-test               exit 1 when a planted fault is not found
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
    digest.update(pathlib.Path(__file__).read_bytes())
    return digest.hexdigest()


def key_of(path, command, common):
    # Without the checkout's own path, so that two checkouts share what is known to be clean.
    digest = hashlib.sha256((common + command.replace(str(ROOT), ".")).encode())
    for file in ours(path):
        digest.update(str(file.relative_to(ROOT)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def tidy(path, flags):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps([{
            "directory": str(ROOT), "file": str(path), "command": f"{flags} -c {path}"}]))
        extra = [f"--extra-arg={flag}" for flag in EXTRA]
        # clang-tidy looks for its settings above the file: outside the tree it would check for next to nothing. What is
        # looked at together includes sources, on purpose.
        settings = [f"--config-file={ROOT / '.clang-tidy'}", "--checks=-bugprone-suspicious-include"]
        done = subprocess.run([TIDY, "--quiet", *settings, f"-p={folder}", *extra, str(path)],
                              capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout + (done.stderr if done.returncode and not done.stdout else "")


def batches(paths, flags):
    """Files of one folder with the same flags, at most TOGETHER of them at once."""
    groups = collections.defaultdict(list)
    for path in paths:
        groups[path.parent, flags[path]].append(path)
    for group in groups.values():
        for begin in range(0, len(group), TOGETHER):
            yield group[begin:begin + TOGETHER]


def together_of(batch, folder):
    together = pathlib.Path(folder) / "together.cc"
    together.write_text("".join(f'#include "{path}"\n' for path in batch))
    return together


def run(batch, flags):
    """Looks at the files together; returns (path, output) for each, without output when it is clean."""
    if len(batch) == 1:
        code, output = tidy(batch[0], flags[batch[0]])
        return [(batch[0], output if code else "")]
    with tempfile.TemporaryDirectory() as folder:
        code, _ = tidy(together_of(batch, folder), flags[batch[0]])
    if code == 0:
        return [(path, "") for path in batch]
    half = len(batch) // 2
    return run(batch[:half], flags) + run(batch[half:], flags)


def compile_flags(build):
    """Each source's command without the source and the output. A unity build has one for the several it includes."""
    flags = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        sources = [path]
        if path.name.startswith("together_"):
            sources = [ROOT / "src" / name for name in INCLUDE.findall(path.read_text())]
        command = re.sub(r" (-o|-MF|-MT|-c) \S+| -MD", "", entry["command"])
        flags.update({source: command for source in sources})
    return flags


def self_test():
    """A fault must be found in a file that is looked at alone, and in one that is looked at with others."""
    planted = "#include <optional>\nint read(const std::optional<int>& value) { return *value; }\n"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "src"  # .clang-tidy reports what is under a folder of this name
        folder.mkdir()
        good, other, bad = folder / "good.cc", folder / "other.cc", folder / "bad.cc"
        good.write_text("int nothing() { return 0; }\n")
        other.write_text("int one() { return 1; }\n")
        bad.write_text(planted)
        flags = {path: "clang++ -std=c++20" for path in (good, other, bad)}
        alone = run([bad], flags)
        together = run([good, bad], flags)
        clean, _ = tidy(together_of([good, other], folder), flags[good])
    found = [[path.name for path, output in results if output] for results in (alone, together)]
    if clean != 0:
        print("clang-tidy: clean files are not clean together")
    if found != [["bad.cc"]] * 2:
        print(f"clang-tidy: a planted fault was found in {found}")
    return 0 if clean == 0 and found == [["bad.cc"]] * 2 else 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    build = pathlib.Path(sys.argv[1]).resolve()
    flags = compile_flags(build)
    wanted = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or [
        path for path in sorted(ROOT.glob("src/**/*.cc")) if not SKIPPED.search(path.name)]
    missing = [path for path in wanted if path not in flags]
    if missing:
        print("not in the build:", *missing)
        return 1

    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "baton-tidy"
    cache.mkdir(parents=True, exist_ok=True)
    common = common_digest()
    keys = {path: key_of(path, flags[path], common) for path in wanted}
    todo = [path for path in wanted if not (cache / keys[path]).exists()]
    print(f"clang-tidy: {len(todo)} of {len(wanted)} files to check", flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for results in pool.map(lambda batch: run(batch, flags), batches(todo, flags)):
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
