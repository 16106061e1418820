#!/usr/bin/env python3
"""Checks commit messages against the rule of CONTRIBUTING.md.

    server/shard: open a shard again in a running process

    Why, where that is not obvious, in lines of at most 80 columns.

The subject is `layer: imperative`, at most 72 columns: one layer, group or folder of the tree (or several, with ", "
between them), then a verb as in "add", "fix", "refuse", without a full stop. The second line is blank.

  check_commits.py                  the commits since the one that brought this file; older ones break the rule
  check_commits.py A..B             the commits of a range
  check_commits.py --message FILE   one message, for the hook commit-msg
  check_commits.py --self-test      good and bad messages
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
THIS = "tools/check_commits.py"
SUBJECT_COLUMNS, BODY_COLUMNS = 72, 80

# What a commit may be about besides the groups and layers under src/.
PLACES = {"bench", "build", "changelog", "ci", "cmake", "dev", "docs", "examples", "include", "proto", "release", "tests",
          "tools", "tree"}

# No imperative begins with one of these.
NOT_VERBS = {
    "a", "an", "the", "this", "that", "these", "those", "it", "its", "what", "who", "which", "when", "where", "whoever",
    "how", "why", "no", "not", "every", "each", "all", "some", "any", "one", "two", "three", "more", "less", "only", "also",
    "of", "in", "on", "at", "by", "for", "from", "with", "without", "to", "and", "or", "but", "if", "as", "wip", "todo",
    "added", "adds", "adding", "fixed", "fixes", "fixing", "changed", "changes", "changing", "removed", "removes",
    "removing", "updated", "updates", "updating", "made", "makes", "making", "moved", "moves", "moving", "renamed",
    "renames", "renaming", "used", "uses", "using", "tests", "tested", "testing", "new", "better", "small", "various",
}

# Commits that slipped through and are not rewritten: hash, and why it stays.
EXCUSED = {}


def git(*arguments):
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def layers_of(tree):
    """The groups and layers under src/ in a commit, or in the working tree (None)."""
    if tree is None:
        folders = [path for pattern in ("src/*", "src/*/*") for path in ROOT.glob(pattern) if path.is_dir()]
        return {str(path.relative_to(ROOT / "src")) for path in folders}
    names = git("ls-tree", "-d", "-r", "--name-only", tree, "--", "src") or ""
    return {name[4:] for name in names.splitlines() if 1 <= name.count("/") <= 2}


def subject_faults(subject, layers):
    if len(subject) > SUBJECT_COLUMNS:
        yield f"the subject has {len(subject)} columns; at most {SUBJECT_COLUMNS}"
    found = re.match(r"([^:]+): (\S.*)$", subject)
    if not found:
        yield "the subject is not `layer: imperative`"
        return
    for place in found.group(1).split(", "):
        if place not in layers | PLACES:
            yield f"'{place}' is not a group or layer of src/, nor one of {', '.join(sorted(PLACES))}"
    verb = found.group(2).split()[0].rstrip(",")
    if verb.lower() in NOT_VERBS or not verb[0].isalpha():
        yield f"'{verb}' is not a verb in the imperative, as in add, fix, refuse"
    elif verb[0].isupper() and verb[1:].islower():
        yield f"'{verb}' begins with a capital; write '{verb.lower()}'"
    if subject.endswith("."):
        yield "the subject ends with a full stop"


def faults(message, layers):
    """What is wrong with a message."""
    lines = message.rstrip("\n").split("\n")
    subject = lines[0]
    if subject.startswith(("Merge ", 'Revert "')):
        return
    yield from subject_faults(subject, layers)
    if len(lines) > 1 and lines[1]:
        yield "the second line is not blank"
    for number, line in enumerate(lines[2:], 3):
        # Code, tables, links and trailers may be longer: they cannot be broken.
        breakable = not line.startswith("    ") and not re.match(r"[\w-]+: \S+$|[|>]", line) and " " in line.strip()
        if len(line) > BODY_COLUMNS and breakable:
            yield f"line {number} has {len(line)} columns; at most {BODY_COLUMNS}"


def without_comments(text):
    """A message as git will store it: without its comments, and without a diff below the scissors."""
    kept = []
    for line in text.splitlines():
        if re.match(r"# -+ >8 -+", line):
            break
        if not line.startswith("#"):
            kept.append(line)
    return "\n".join(kept).strip("\n")


def check_message(path):
    message = without_comments(path.read_text())
    # The user wants to abort; or the commit will be folded into another one.
    if not message or re.match(r"(fixup|squash|amend)! ", message):
        return 0
    found = list(faults(message, layers_of(None)))
    if found:
        print("This commit message breaks the rule of CONTRIBUTING.md (git commit --no-verify ignores it):", file=sys.stderr)
        print("\n".join(f"  {fault}" for fault in found), file=sys.stderr)
    return 1 if found else 0


def default_range():
    """Everything after the commit that brought this file; None where that commit is not known."""
    brought = (git("log", "--diff-filter=A", "--format=%H", "--", THIS) or "").split()
    return f"{brought[-1]}..HEAD" if brought else None


def check_range(commits):
    listed = git("log", "--no-merges", "--reverse", "--format=%H", commits)
    if listed is None:
        print(f"commits: git does not know {commits}")
        return 1
    bad = 0
    for commit in listed.split():
        if commit in EXCUSED:
            continue
        message = git("log", "-1", "--format=%B", commit)
        # A layer that the commit removes is in its parent only.
        for fault in faults(message, layers_of(commit) | layers_of(f"{commit}~1")):
            bad = 1
            print(f"{commit[:10]} {message.splitlines()[0]}: {fault}")
    if not bad:
        print(f"commits: {len(listed.split())} checked, all as CONTRIBUTING.md says")
    return bad


LAYERS = {"base", "server", "server/shard", "server/session", "pipeline"}
GOOD = [
    "server/shard: open a shard again in a running process",
    "server/shard, docs: name the log\n\nWhy it matters.\n",
    "tests: wait for the first heartbeat\n\n" + "    " + "x " * 60 + "\n\nhttps://example.org/" + "x" * 80 + "\n",
    "docs: use TLS in the guide",
    "Merge branch 'main'",
    'Revert "server: something without a rule"',
]
BAD = [
    ("fix the broker", "is not `layer: imperative`"),
    ("brokr: fix the start", "'brokr' is not a group or layer"),
    ("server/shard: " + "fix " * 20, "at most 72"),
    ("server/shard: a checkpoint without room takes what came since", "'a' is not a verb"),
    ("server/shard: fixes the start", "'fixes' is not a verb"),
    ("server/shard: Fix the start", "begins with a capital"),
    ("server/shard: fix the start.", "full stop"),
    ("server/shard: fix the start\nand more", "second line is not blank"),
    ("server/shard: fix the start\n\n" + "word " * 20, "line 3 has"),
    ("wip", "is not `layer: imperative`"),
    ("server, wip: fix the start", "'wip' is not a group or layer"),
]


def self_test():
    failures = 0
    for message in GOOD:
        found = list(faults(message, LAYERS))
        if found:
            failures += 1
            print(f"good: {message!r}; but found {found}")
    for message, expected in BAD:
        found = list(faults(message, LAYERS))
        if len(found) != 1 or expected not in found[0]:
            failures += 1
            print(f"bad: {message!r}; expected {expected!r}, found {found}")
    stored = without_comments("base: fix it\n# comment\n# ------------------------ >8 ------------------------\ndiff\n")
    failures += stored != "base: fix it"
    print(f"{len(GOOD)} good messages, {len(BAD)} bad ones, {failures} failures")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--message", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("range", nargs="?")
    arguments = parser.parse_args()
    if arguments.self_test:
        return 1 if self_test() else 0
    if arguments.message:
        return check_message(arguments.message)
    commits = arguments.range or default_range()
    if commits is None:
        print("commits: no history here, nothing to check")
        return 0
    return check_range(commits)


if __name__ == "__main__":
    sys.exit(main())
