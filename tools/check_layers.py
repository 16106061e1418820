#!/usr/bin/env python3
"""Checks that every #include under src/ and include/ is one that its layer may make.

A layer is a folder group/layer, or a group that is a layer itself (base, sdk, cli, sim), with a
baton_module(). The link check sees calls; this sees inline code. What a layer may include:
  - itself, and the DEPS of its baton_module() (its tests: the TEST_DEPS too);
  - a third-party library, if LIBRARIES below lets the layer see it and its LIBS name it;
  - the standard library and POSIX; a pure layer far less of them (see PURE).
A DEP that no #include uses is a violation, too; so is a file of more than 500 lines that does not
say why: a comment that begins with "More than 500 lines:".

  tools/check_layers.py [--root DIR]    prints each violation as file:line: text; exit 1 if any
  tools/check_layers.py --self-test     plants violations and proves that each one is found
"""

import argparse
import pathlib
import re
import sys
import tempfile

SERVER = {"server/grpc", "server/http", "server/app"}
SDK = {"sdk", "sdk/base", "sdk/kv", "sdk/queue", "sdk/stream", "sdk/worker"}
CLI = {"cli", "cli/base", "cli/broker", "cli/demo", "cli/pipeline", "cli/server", "cli/worker"}
# Library: (its headers, the CMake target that LIBS must name, the layers that may see it).
EVERY = None
LIBRARIES = {
    "fmt": (r"fmt/", None, EVERY),
    "xxhash": (r"xxhash\.h$", "PkgConfig::xxhash", {"base"}),
    "lz4": (r"lz4(frame)?\.h$", "PkgConfig::lz4", {"core/stream"}),
    "zstd": (r"zstd\.h$", "PkgConfig::zstd", {"core/stream"}),
    "zlib": (r"zlib\.h$", "PkgConfig::zlib", {"core/stream"}),
    "snappy": (r"snappy-c\.h$", "PkgConfig::snappy", {"core/stream"}),
    "simdjson": (r"simdjson\.h$", "PkgConfig::simdjson", {"pipeline/schema"}),
    "re2": (r"re2/", "PkgConfig::re2", {"pipeline/schema"}),
    "rocksdb": (r"rocksdb/", "PkgConfig::rocksdb", {"storage/rocks"}),
    "grpc": (r"grpc(pp|\+\+)?/", "gRPC::grpc++", SERVER | SDK | {"worker/etcd"}),
    "protobuf": (r"google/", "gRPC::grpc++", SERVER | SDK | {"worker/etcd"}),
    "openssl": (r"openssl/", "OpenSSL::SSL", {"base/secure"}),
    "nats": (r"nats/", "PkgConfig::nats", {"worker/nats", "pipeline/nats", "cluster/loglet_nats"}),
    "rdkafka": (r"librdkafka/", "PkgConfig::rdkafka", {"pipeline/kafka"}),
    "sqlite": (r"sqlite3\.h$", "PkgConfig::sqlite", {"pipeline/sqlite"}),
    "libpq": (r"libpq-fe\.h$", "PkgConfig::postgres", {"pipeline/postgres"}),
    "httplib": (r"httplib\.h$", "PkgConfig::httplib", {"server/app", "pipeline/http", "pipeline/app"}),
    "prometheus": (r"prometheus/", "PkgConfig::prometheus", {"server/http"}),
    "spdlog": (r"spdlog/", "spdlog::spdlog", {"base/logging", "cli/server", "server/app", "server/grpc", "server/shard"}),
    "CLI11": (r"CLI/", "CLI11::CLI11", CLI),
    "yaml-cpp": (r"yaml-cpp/", "PkgConfig::yaml_cpp", {"cli/server", "pipeline/app"}),
    "nlohmann": (r"nlohmann/", "nlohmann_json::nlohmann_json",
                 CLI | {"base/logging", "core/workers", "pipeline/app", "pipeline/local", "worker/nats", "cluster/loglet_nats"}),
}
TEST_LIBRARIES = re.compile(r"(gtest|gmock|rapidcheck|benchmark)([/.]|$)")
# The schemas' generated code, the SDK's public headers, and those that all layers share.
PROTO = re.compile(r"(baton/v1|etcd)/.*\.pb\.h$")
PUBLIC = re.compile(r"baton/")
PUBLIC_BASE = re.compile(r"baton/(errc\.def|(result|strong|numbers)\.h)$")

LINES_MAX = 500
WHY_LONG = f"// More than {LINES_MAX} lines: "

STANDARD = re.compile(r"[a-z_0-9]+$")
POSIX = re.compile(
    r"(sys|linux|netinet|arpa|net)/|"
    r"(unistd|fcntl|dirent|netdb|poll|signal|pthread|sched|spawn|time|dlfcn|termios|nmmintrin|"
    r"endian|byteswap|errno|glob|malloc|wordexp|stdlib|string)\.h$")

# Pure: no clock, no thread, no lock, no file, no socket, no logging.
PURE = re.compile(r"core/.*|cluster/loglet|pipeline/(flow|schema|orders)")
PURE_MAY_DEPEND_ON = {"base", "core/lease"}
PURE_MAY_ALSO = {"pipeline/orders": {"pipeline/schema"}}
IMPURE_HEADERS = re.compile(
    r"(thread|mutex|shared_mutex|condition_variable|atomic|future|semaphore|latch|barrier|stop_token|"
    r"fstream|filesystem|iostream|cstdio|ctime|csignal|random)$")
IMPURE_CODE = re.compile(
    r"\b(system_clock|steady_clock|high_resolution_clock|clock_gettime|gettimeofday|this_thread|"
    r"std::time|std::rand|getenv|fopen|printf|thread_local)\b")
# The simulation runs on fakes only.
NEVER = {"sim": SERVER | CLI | SDK | {"storage/rocks", "proto"}}

FOLDERS_IN_A_LAYER = {"corpus", "testdata"}
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
TEST_FILE = re.compile(r"_(test|fuzz|bench)\.(cc|h)$")


class Layer:
    """One baton_module(), as its CMakeLists.txt declares it."""

    def __init__(self, name, words):
        self.name = name
        self.lists = {"DEPS": set(), "LIBS": set(), "TEST_DEPS": set()}
        current = None
        for word in words:
            if word in self.lists:
                current = word
            elif current:
                self.lists[current].add(word)

    def may_include(self, other, is_test):
        allowed = {self.name} | self.lists["DEPS"]
        return other in (allowed | self.lists["TEST_DEPS"] if is_test else allowed)


def is_pure(layer):
    return PURE.fullmatch(layer.name) is not None


def expand(root, words):
    """${BATON_KINDS_group} stands for the group's layers with a kind.h: each is to be in the registry."""
    for word in words:
        kinds = re.match(r"\$\{BATON_KINDS_(\w+)\}$", word)
        if kinds:
            yield from sorted(f"{kinds.group(1)}/{path.parent.name}"
                              for path in root.glob(f"src/{kinds.group(1)}/*/kind.h"))
        else:
            yield word


def read_layers(root):
    layers = {}
    for path in sorted(root.glob("src/**/CMakeLists.txt")):
        text = re.sub(r"#.*", "", path.read_text())
        declared = re.search(r"baton_module\(([^)]*)\)", text)
        if declared:
            words = list(expand(root, declared.group(1).split()))
            layers[words[0]] = Layer(words[0], words[1:])
    return layers


def check_declarations(layers):
    """Violations in the DEPS themselves."""
    for layer in layers.values():
        deps = layer.lists["DEPS"]
        too_much = deps - PURE_MAY_DEPEND_ON - PURE_MAY_ALSO.get(layer.name, set())
        if is_pure(layer) and too_much:
            yield f"src/{layer.name}: pure, but depends on {sorted(too_much)}"
        for other in sorted(NEVER.get(layer.name, set()) & reach(layers, layer.name)):
            yield f"src/{layer.name}: must never reach {other}"


def reach(layers, name):
    """Every layer that `name` depends on, directly or not."""
    found, todo = set(), [name]
    while todo:
        for dep in layers[todo.pop()].lists["DEPS"]:
            if dep not in found:
                found.add(dep)
                if dep in layers:
                    todo.append(dep)
    return found


def library_complaint(layer, header):
    """What is wrong with a third-party header in `layer`; None when it is fine."""
    for name, (pattern, target, seen_by) in LIBRARIES.items():
        if not re.match(pattern, header):
            continue
        if seen_by is not EVERY and layer.name not in seen_by:
            return f"{name} is not for this layer, only for {', '.join(sorted(seen_by))}"
        if target and target not in layer.lists["LIBS"]:
            return f"{name} is missing from the layer's LIBS ({target})"
        return None
    return f"<{header}> is in no table of tools/check_layers.py"


def angle_complaint(layer, header, is_test):
    if is_test and (TEST_LIBRARIES.match(header) or header.startswith("nlohmann/")):
        return None
    if PROTO.match(header):
        return None if layer.may_include("proto", is_test) else "proto is not in the layer's DEPS"
    if PUBLIC_BASE.match(header):
        return None if layer.may_include("base", is_test) else "base is not in the layer's DEPS"
    if PUBLIC.match(header):
        seen = any(layer.may_include(part, is_test) for part in SDK | {"base/secure"})
        return None if seen else "no part of the client is in the layer's DEPS"
    posix = POSIX.match(header)
    if is_pure(layer) and not is_test and (posix or IMPURE_HEADERS.match(header)):
        return f"<{header}> has no place in a pure layer"
    if posix or STANDARD.match(header):
        return None
    return library_complaint(layer, header)


def quote_complaint(layer, header, is_test):
    other = header.rsplit("/", 1)[0] if "/" in header else None
    if other is None:
        return f'write it as "layer/{header}"'
    if not layer.may_include(other, is_test):
        return f"{other} is not in the layer's DEPS"
    return None


def is_for_tests(path):
    """A test, a fuzzer, a benchmark, or a header that includes gtest, which is for their use alone."""
    if TEST_FILE.search(path.name):
        return True
    return path.suffix == ".h" and path.is_file() and any(
        found and TEST_LIBRARIES.match(found.group(2))
        for found in map(INCLUDE.match, path.read_text(errors="replace").splitlines()))


def check_file(root, layer, path):
    name = path.relative_to(root)
    is_test = is_for_tests(path)
    lines = path.read_text(errors="replace").splitlines()
    if len(lines) > LINES_MAX and not any(line.startswith(WHY_LONG) for line in lines):
        yield f"{name}: {len(lines)} lines; cut it, or write \"{WHY_LONG}...\" into it"
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        complaint = None
        if found:
            check = angle_complaint if found.group(1) == "<" else quote_complaint
            complaint = check(layer, found.group(2), is_test)
            if not is_test and is_for_tests(root / "src" / found.group(2)):
                complaint = f"{found.group(2)} is for tests"
        elif is_pure(layer) and not is_test:
            call = IMPURE_CODE.search(line.split("//")[0])
            if call:
                complaint = f"{call.group(1)} has no place in a pure layer"
        if complaint:
            yield f"{name}:{number}: {complaint}"


def uses_of(folder):
    """Every layer that the sources of one layer include, without its tests."""
    used = set()
    for path in folder.iterdir():
        if path.suffix not in (".cc", ".h") or is_for_tests(path):
            continue
        for found in map(INCLUDE.match, path.read_text(errors="replace").splitlines()):
            if not found:
                continue
            header = found.group(2)
            if found.group(1) == '"':
                used.add(header.rsplit("/", 1)[0])
            elif PROTO.match(header):
                used.add("proto")
            elif PUBLIC_BASE.match(header):
                used.add("base")
            elif PUBLIC.match(header):
                # The header's name does not tell which part of the SDK has it.
                used |= SDK | {"base/secure"}
    return used


def check_folder(root, layers, folder):
    """Violations in one layer's folder, or in a group's."""
    name = str(folder.relative_to(root / "src"))
    layer = layers.get(name)
    inside = [path for path in sorted(folder.iterdir()) if path.name not in FOLDERS_IN_A_LAYER]
    sources = [path for path in inside if path.suffix in (".cc", ".h", ".def")]
    if layer is None and (sources or "/" in name or not inside):
        yield f"src/{name}: its CMakeLists.txt has no baton_module()"
        return
    for path in inside:
        if path.is_dir() and "/" in name:
            yield f"src/{name}/{path.name}: two levels, never three"
        elif path.is_dir():
            yield from check_folder(root, layers, path)
    for path in sources:
        yield from check_file(root, layer, path)
    if sources and layer:
        # A layer that implements a service calls generated code without including it.
        for unused in sorted(layer.lists["DEPS"] - uses_of(folder) - {"proto"}):
            # The SDK's umbrella has tests only.
            if any(not is_for_tests(path) for path in sources):
                yield f"src/{name}: nothing uses its DEP {unused}"


def check(root):
    """Every violation in the tree at `root`."""
    layers = read_layers(root)
    violations = list(check_declarations(layers))
    for folder in sorted(p for p in root.glob("src/*") if p.is_dir()):
        violations += check_folder(root, layers, folder)
    if "sdk" in layers:
        # The SDK's public headers may not require our libraries.
        public = Layer("sdk", ["DEPS", "base", *sorted(layers["sdk"].lists["DEPS"] - {"proto"})])
        for path in sorted(root.glob("include/**/*.h")):
            violations += check_file(root, public, path)
    return violations


PLANTED = [
    ("src/core/queue/x.cc", '#include "storage/disk/journal.h"', "storage/disk is not in the layer's DEPS"),
    ("src/core/queue/x.h", "#include <mutex>", "<mutex> has no place in a pure layer"),
    ("src/core/queue/x.h", "#include <sys/socket.h>", "<sys/socket.h> has no place in a pure layer"),
    ("src/core/queue/x.cc", "auto t = std::chrono::steady_clock::now();", "steady_clock has no place"),
    ("src/core/queue/x.cc", "#include <spdlog/spdlog.h>", "spdlog is not for this layer"),
    ("src/storage/disk/x.cc", "#include <rocksdb/db.h>", "rocksdb is not for this layer"),
    ("src/storage/disk/x.cc", "#include <gtest/gtest.h>", "is in no table"),
    ("src/storage/disk/x.cc", "#include <baton/v1/queues.pb.h>", "proto is not in the layer's DEPS"),
    ("src/storage/disk/x.cc", '#include "storage/disk/x_test.h"', "storage/disk/x_test.h is for tests"),
    ("src/storage/disk/x.cc", '#include "journal.h"', 'write it as "layer/journal.h"'),
    ("src/sdk/x.cc", "#include <grpcpp/grpcpp.h>", "grpc is missing from the layer's LIBS"),
    ("include/baton/x.h", "#include <grpcpp/grpcpp.h>", "grpc is missing"),
    ("include/baton/x.h", "#include <baton/v1/queues.pb.h>", "proto is not in"),
    ("src/storage/disk/deep/x.cc", "", "two levels, never three"),
    ("src/core/queue/CMakeLists.txt", "baton_module(core/queue DEPS storage/disk)", "pure, but depends on"),
    ("src/sim/CMakeLists.txt", "baton_module(sim DEPS storage/rocks)", "must never reach storage/rocks"),
    ("src/core/queue/x.cc", "\n" * 500, "501 lines"),
    ("src/core/queue/x_test.cc", "// More than 499 lines: no.\n" * 501, "502 lines"),
    ("src/util/x.cc", "", "has no baton_module()"),
    ("src/core/util/x.cc", "", "has no baton_module()"),
    ("src/storage/rocks/CMakeLists.txt", "baton_module(storage/rocks DEPS base core/queue)",
     "nothing uses its DEP core/queue"),
    ("src/storage/disk/kind.h", "", "src/storage/registry: nothing uses its DEP storage/disk"),
]
FINE = [
    ("src/core/queue/x.cc", '#include "base/time.h"\n#include <map>\n#include <fmt/format.h>'),
    ("src/core/queue/x.cc", '#include "base/time.h"\n// Not steady_clock: time comes in.'),
    ("src/storage/disk/temp_folder.h", "#include <gtest/gtest.h>"),
    ("src/core/queue/x_test.cc", "#include <gtest/gtest.h>\n#include <thread>"),
    ("src/storage/disk/x_test.cc", '#include "core/queue/x.h"'),
    ("src/core/queue/x.cc", "\n" * 499),
    ("src/core/queue/x.cc", "// More than 500 lines: why." + "\n" * 500),
    ("src/storage/disk/y.cc", "#include <fcntl.h>\n#include <thread>"),
    ("src/storage/rocks/x.cc", '#include "base/time.h"\n#include <rocksdb/db.h>'),
]
SELF_TEST_TREE = {
    "base": "", "core/queue": "DEPS base", "storage/disk": "DEPS base TEST_DEPS core/queue", "sdk": "DEPS base proto",
    "storage/rocks": "DEPS base\n  LIBS PkgConfig::rocksdb", "sim": "DEPS core/queue storage/disk base",
    "storage/registry": "DEPS base ${BATON_KINDS_storage}",
}


def check_planted(path, text):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, rest in SELF_TEST_TREE.items():
            (root / "src" / name).mkdir(parents=True)
            (root / "src" / name / "CMakeLists.txt").write_text(f"baton_module({name} {rest})\n")
            deps = [word for word in rest.split("LIBS")[0].split("TEST_DEPS")[0].split()[1:] if word != "proto" and "$" not in word]
            uses = [f'#include "{dep}/used.h"' for dep in deps]
            uses += ["#include <baton/v1/used.pb.h>"] if "proto" in rest else []
            (root / "src" / name / "used.cc").write_text("\n".join(uses) + "\n")
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text + "\n")
        return check(root)


def self_test():
    failures = 0
    for path, text, expected in PLANTED:
        found = check_planted(path, text)
        # DEPS that differ from what the tree's sources use are violations by themselves.
        only = path.endswith("CMakeLists.txt") or len(found) == 1
        if not only or not any(expected in text for text in found):
            failures += 1
            print(f"planted in {path}: {text!r}; expected {expected!r}, found {found}")
    for path, text in FINE:
        found = check_planted(path, text)
        if found:
            failures += 1
            print(f"fine in {path}: {text!r}; but found {found}")
    print(f"{len(PLANTED)} planted violations, {len(FINE)} fine cases, {failures} failures")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent,
                        type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return 1 if self_test() else 0
    violations = check(arguments.root)
    print("\n".join(violations) if violations else "layers: as declared")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
