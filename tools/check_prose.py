#!/usr/bin/env python3
"""Checks comments and documents for phrases that a stranger stumbles over.

Prints `file:line: phrase: instead ...`. The table PHRASES has the reason and a better form for each phrase. Comments
of src, include, tests, bench, tools, proto, examples, cmake and dev are read, docstrings of Python among them, and
the prose of the documents; code, strings and code blocks are not. A phrase may be broken over two lines.

  check_prose.py                    the whole tree
  check_prose.py FILE...            only these files
  check_prose.py --self-test        plants each phrase and expects to find it
"""

import argparse
import io
import pathlib
import re
import sys
import tempfile
import tokenize

FOLDERS = ["src", "include", "tests", "bench", "tools", "proto", "examples", "cmake"]
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "src/README.md", "docs/*.md", "examples/**/*.md"]

# (pattern, what to write instead, an example that must be found).
PHRASES = [
    (r"\bso (?:long|often)\b(?!,? as\b)", "the number or its name: 'this long', 'every 50 ms', 'for `timeout`'",
     "Waits so long for company."),
    (r"\bso (?:many|much)\b(?!,? (?:as|that)\b)", "the number or its name: '`count` records', 'this many'",
     "Beyond so many unconfirmed frames it waits."),
    (r"\bwhoever\b", "the noun: 'the caller', 'the process that', 'a client that'", "Whoever sees a size may read."),
    (r"\bthose who\b", "the noun: 'the waiters', 'the workers that'", "Wakes those who wait."),
    (r"(?:^|(?<=[.:;] ))Who (?!is\b|may\b|has\b|holds\b|owns\b|calls\b|uses\b)[a-z]+s\b(?![^.]*\?)",
     "the noun: 'A process that ...'", "Who lists a trace takes it away."),
    (r"(?<!here )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|one\b|later\b|earlier\b|such\b|good\b"
     r"|way\b|worse\b|older\b|newer\b|larger\b|smaller\b|different\b|part\b)", "'is not a ...'",
     "What a disk brought back is no bug of ours."),
    (r"(?:^|(?<=[.;] ))(?:None|Nothing|Null): ", "'nullopt if ...', 'null if ...'", "None: there is no such key."),
    (r"\b(?:is|it) looked (?:whether|if|at whether)\b", "'Poll interval ...', 'is checked'",
     "How often it is looked whether a connection is there."),
    (r"\bfor want of\b", "'without', 'because there is no'", "Fails for want of room."),
    (r"\bwithout a word\b", "'silently'", "The link broke without a word."),
    (r"\bin the midst of\b", "'in the middle of', 'during'", "Killed in the midst of a claim."),
    (r"\bseen? to (?:its|their|the) ends?\b", "'processed', 'finished'", "Every record is seen to its end."),
    (r"\bin whose hands\b|\bin (?:the hands of|our hands|hand)\b(?! (?:over|in))",
     "'held by', 'being handled', 'in flight'", "Leases that ended in our hands."),
    (r"\bnobody(?: else)?'s\b", "'no other client has', 'owned by none'", "What the examples write stays nobody's."),
    (r"\bto somebody(?: else)?'s\b|\bby somebody's hand\b", "'manually', 'by an operator'",
     "A partition that has it, by somebody's hand, keeps its owner."),
    (r"\b(?:is|are) out for\b|\bwhat is out\b", "'unavailable', 'the outage'", "The sink is out for longer."),
    (r"\bis what is there\b|\bas things are\b", "the state itself: 'the present state'", "What was shown is what is there."),
    (r"\bgoes with(?:out)? saying\b", "say the default", "No limit is what goes without saying."),
    (r"\bgive it so\b|\bfail so\b|\bbegin so\b|\bended so\b|\bwritten so\b|\bdivided so\b",
     "'in this way', 'with `status`', 'as `shares` says'", "A stream that ended so is opened again."),
    (r"\bof its own making\b|\bof our own making\b", "'made by'", "An error of our own making."),
    (r"\bas (?:it|one|they|he) likes?\b", "'at any time', 'any number of'", "Messages take as long as they like."),
]
PHRASES = [(re.compile(pattern, re.IGNORECASE if "Who " not in pattern else 0), instead, example)
           for pattern, instead, example in PHRASES]

C_LIKE = (".cc", ".h", ".proto", ".def")
HASH_LIKE = (".cmake", ".sh", ".supp")


def comment_start(line, mark):
    """Where a comment begins in a line of C++ or of a shell script, outside of quotes; -1 without one."""
    quote, at = None, 0
    while at < len(line):
        char = line[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = None
        elif char == '"' or (char == "'" and mark == "//" and not (at and line[at - 1].isalnum())):
            quote = char
        elif line.startswith(mark, at) and (mark == "//" or at == 0 or line[at - 1].isspace()):
            return at
        at += 1
    return -1


def marked_comments(text, mark):
    """(line number, text, alone on its line) of each comment that `mark` begins."""
    raw_end = None
    for number, line in enumerate(text.splitlines(), 1):
        if raw_end:
            raw_end = None if raw_end in line else raw_end
            continue
        raw = re.search(r'\bR"([^\s()\\]*)\(', line) if mark == "//" else None
        if raw and f'){raw.group(1)}"' not in line[raw.end():]:
            raw_end = f'){raw.group(1)}"'
            continue
        start = comment_start(line, mark)
        if start >= 0:
            yield number, line[start:].lstrip("/#<! "), not line[:start].strip()


def python_comments(text):
    """The comments and docstrings of a Python file, likewise."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#! "), not token.line[:token.start[1]].strip()
        elif token.type == tokenize.STRING and token.string.startswith('"""') and not token.line[:token.start[1]].strip():
            for offset, line in enumerate(token.string.strip('"').splitlines()):
                yield token.start[0] + offset, line.strip(), True


def document_lines(text):
    """The lines of a Markdown document without code blocks and quoted code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`", "`x`", line).strip(), True


def blocks(lines):
    """Joins lines that follow each other, so that a phrase may be broken over two of them."""
    block, last = [], None
    for number, text, alone in lines:
        if block and not (alone and number == last + 1 and text):
            yield block
            block = []
        if text:
            block.append((number, text))
        last = number if alone else -1
    if block:
        yield block


def check_block(block):
    """(line number, phrase, instead) of each phrase in a block."""
    joined, starts = "", []
    for number, text in block:
        starts.append((len(joined), number))
        joined += text + " "
    for pattern, instead, _ in PHRASES:
        for found in pattern.finditer(joined):
            number = max(line for start, line in starts if start <= found.start())
            yield number, found.group(0).strip(), instead


def lines_of(path):
    """The prose of a file; nothing of a file that has none."""
    text = path.read_text(errors="replace")
    if path.suffix in C_LIKE:
        return marked_comments(text, "//")
    if path.suffix == ".py":
        return python_comments(text)
    if path.suffix == ".md":
        return document_lines(text)
    if path.suffix in HASH_LIKE or path.name in ("CMakeLists.txt", "dev"):
        return marked_comments(text, "#")
    return []


def check_file(root, path):
    for block in blocks(lines_of(path)):
        for number, phrase, instead in check_block(block):
            yield f"{path.relative_to(root)}:{number}: {phrase}: instead {instead}"


def files_in(root):
    for folder in FOLDERS:
        yield from (path for path in sorted(root.glob(f"{folder}/**/*")) if path.suffix != ".md")
    for pattern in ["dev", "CMakeLists.txt", *DOCUMENTS]:
        yield from sorted(root.glob(pattern))


def check(root):
    """Every phrase in the tree at `root`."""
    return [line for path in files_in(root) if path.is_file() for line in check_file(root, path)]


FINE = [
    ("src/base/x.h", "/// Waits as long as it takes, so that there is no limit and no one waits so long as it works.\n"),
    ("src/base/x.h", 'const char* kText = "whoever waits so long";\n'),
    ("src/base/x.h", 'const char* kText = R"(\n// whoever waits so long\n)";\n'),
    ("src/base/x.h", "/// Who holds which message, and until when.\n"),
    ("src/base/x.h", "int so_many = 0;  // No longer used; it is no more than a number.\n"),
    ("docs/x.md", "Text.\n\n    baton queue send whoever\n\n```\nso long\n```\n\n`whoever`\n"),
    ("tools/x.py", 'TEXT = "whoever"\n'),
]
PLANTED = [
    ("src/base/x.h", "/// A sentence that ends\n/// so\n/// long. Done.\n", "src/base/x.h:2: so long"),
    ("src/base/x.h", "int x = 0;  // After so many.\n", "src/base/x.h:1: so many"),
    ("tests/e2e/x.py", '"""Tells\nwhoever asks."""\n', "tests/e2e/x.py:2: whoever"),
    ("cmake/x.cmake", "# Whoever includes it.\n", "cmake/x.cmake:1: Whoever"),
    ("dev", "# Whoever calls it.\n", "dev:1: Whoever"),
    ("README.md", "A text for\nwhoever reads.\n", "README.md:2: whoever"),
]


def check_planted(path, text):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        return check(root)


def self_test():
    failures = 0
    for path, text, expected in PLANTED + [("src/base/x.cc", f"// {example}\n", "src/base/x.cc:1: ")
                                           for _, _, example in PHRASES]:
        found = check_planted(path, text)
        if len(found) != 1 or not found[0].startswith(expected):
            failures += 1
            print(f"planted in {path}: {text!r}; expected {expected!r}, found {found}")
    for path, text in FINE:
        found = check_planted(path, text)
        if found:
            failures += 1
            print(f"fine in {path}: {text!r}; but found {found}")
    print(f"{len(PLANTED) + len(PHRASES)} planted phrases, {len(FINE)} fine cases, {failures} failures")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent, type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.self_test:
        return 1 if self_test() else 0
    root = arguments.root.resolve()
    if arguments.files:
        found = [line for path in arguments.files for line in check_file(root, path.resolve())]
    else:
        found = check(root)
    print("\n".join(found) if found else "prose: no phrase of the table")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
