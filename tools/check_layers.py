#!/usr/bin/env python3
"""Checks that every #include under src/ and include/ is one that its layer may make.

The link check sees calls; this sees inline code. What a layer may include:
  - itself, and the DEPS of its baton_module() (its tests: the TEST_DEPS too);
  - a third-party library, if LIBRARIES below lets the layer see it and its LIBS name it;
  - the standard library and POSIX; a pure layer far less of them (see PURE).

  tools/check_layers.py [--root DIR]    prints each violation as file:line: text; exit 1 if any
  tools/check_layers.py --self-test     plants violations and proves that each one is found
"""

import argparse
import pathlib
import re
import sys
import tempfile

# The services of the broker, the SDK, and the `baton` program.
API = {"api", "api_base", "api_kv", "api_queue", "api_stream"}
CLIENT = {"client", "client_base", "client_kv", "client_queue", "client_stream"}
CLI = {"cli", "cli_base", "cli_client", "cli_demo", "cli_work"}
# Library: (its headers, the CMake target that LIBS must name, the layers that may see it).
EVERY = None
LIBRARIES = {
    "fmt": (r"fmt/", None, EVERY),
    "xxhash": (r"xxhash\.h$", "PkgConfig::xxhash", {"base"}),
    "lz4": (r"lz4(frame)?\.h$", "PkgConfig::lz4", {"stream"}),
    "zstd": (r"zstd\.h$", "PkgConfig::zstd", {"stream"}),
    "zlib": (r"zlib\.h$", "PkgConfig::zlib", {"stream"}),
    "snappy": (r"snappy-c\.h$", "PkgConfig::snappy", {"stream"}),
    "simdjson": (r"simdjson\.h$", "PkgConfig::simdjson", {"schema"}),
    "re2": (r"re2/", "PkgConfig::re2", {"schema"}),
    "rocksdb": (r"rocksdb/", "PkgConfig::rocksdb", {"checkpoint"}),
    "grpc": (r"grpc(pp|\+\+)?/", "gRPC::grpc++", API | CLIENT | {"coord"}),
    "protobuf": (r"google/", "gRPC::grpc++", API | CLIENT | {"coord"}),
    "openssl": (r"openssl/", "OpenSSL::SSL", {"secure"}),
    "nats": (r"nats/", "PkgConfig::nats", {"coord", "source"}),
    "rdkafka": (r"librdkafka/", "PkgConfig::rdkafka", {"kafka"}),
    "sqlite": (r"sqlite3\.h$", "PkgConfig::sqlite", {"sink"}),
    "libpq": (r"libpq-fe\.h$", "PkgConfig::postgres", {"sink"}),
    "httplib": (r"httplib\.h$", "PkgConfig::httplib", {"api", "sink", "pipeline"}),
    "prometheus": (r"prometheus/", "PkgConfig::prometheus", {"api"}),
    "spdlog": (r"spdlog/", "spdlog::spdlog", {"api", "api_stream", "broker", "cli", "log"}),
    "CLI11": (r"CLI/", "CLI11::CLI11", CLI),
    "yaml-cpp": (r"yaml-cpp/", "PkgConfig::yaml_cpp", {"cli", "pipeline"}),
    "nlohmann": (r"nlohmann/", "nlohmann_json::nlohmann_json",
                 CLI | {"coord", "log", "partition", "sink", "pipeline"}),
}
TEST_LIBRARIES = re.compile(r"(gtest|gmock|rapidcheck|benchmark)([/.]|$)")
# The schemas' generated code, and the SDK's public headers.
PROTO = re.compile(r"(baton/v1|etcd)/.*\.pb\.h$")
PUBLIC = re.compile(r"baton/")

STANDARD = re.compile(r"[a-z_0-9]+$")
POSIX = re.compile(
    r"(sys|linux|netinet|arpa|net)/|"
    r"(unistd|fcntl|dirent|netdb|poll|signal|pthread|sched|spawn|time|dlfcn|termios|nmmintrin|"
    r"endian|byteswap|errno|glob|malloc|wordexp|stdlib|string)\.h$")

# Pure: no clock, no thread, no lock, no file, no socket, no logging.
PURE = {"lease", "queue", "stream", "coordinator", "kv", "partition", "flow", "schema"}
PURE_MAY_DEPEND_ON = {"base", "lease"}
IMPURE_HEADERS = re.compile(
    r"(thread|mutex|shared_mutex|condition_variable|atomic|future|semaphore|latch|barrier|stop_token|"
    r"fstream|filesystem|iostream|cstdio|ctime|csignal|random)$")
IMPURE_CODE = re.compile(
    r"\b(system_clock|steady_clock|high_resolution_clock|clock_gettime|gettimeofday|this_thread|"
    r"std::time|std::rand|getenv|fopen|printf|thread_local)\b")
# The simulation runs on fakes, or it would not be one.
NEVER = {"sim": API | CLI | CLIENT | {"checkpoint", "proto"}}

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


def read_layers(root):
    layers = {}
    for path in sorted(root.glob("src/*/CMakeLists.txt")):
        text = re.sub(r"#.*", "", path.read_text())
        declared = re.search(r"baton_module\(([^)]*)\)", text)
        if declared:
            words = declared.group(1).split()
            layers[words[0]] = Layer(words[0], words[1:])
    return layers


def check_declarations(layers):
    """Violations in the DEPS themselves."""
    for layer in layers.values():
        deps = layer.lists["DEPS"]
        if layer.name in PURE and deps - PURE_MAY_DEPEND_ON:
            yield f"src/{layer.name}: pure, but depends on {sorted(deps - PURE_MAY_DEPEND_ON)}"
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
    if PUBLIC.match(header):
        seen = any(layer.may_include(part, is_test) for part in CLIENT | {"secure"})
        return None if seen else "no part of the client is in the layer's DEPS"
    posix = POSIX.match(header)
    if layer.name in PURE and not is_test and (posix or IMPURE_HEADERS.match(header)):
        return f"<{header}> has no place in a pure layer"
    if posix or STANDARD.match(header):
        return None
    return library_complaint(layer, header)


def quote_complaint(layer, header, is_test):
    other = header.split("/")[0] if "/" in header else None
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
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        found = INCLUDE.match(line)
        complaint = None
        if found:
            check = angle_complaint if found.group(1) == "<" else quote_complaint
            complaint = check(layer, found.group(2), is_test)
            if not is_test and is_for_tests(root / "src" / found.group(2)):
                complaint = f"{found.group(2)} is for tests"
        elif layer.name in PURE and not is_test:
            call = IMPURE_CODE.search(line.split("//")[0])
            if call:
                complaint = f"{call.group(1)} has no place in a pure layer"
        if complaint:
            yield f"{name}:{number}: {complaint}"


def check(root):
    """Every violation in the tree at `root`."""
    layers = read_layers(root)
    violations = list(check_declarations(layers))
    for folder in sorted(p for p in root.glob("src/*") if p.is_dir()):
        layer = layers.get(folder.name)
        if layer is None:
            violations.append(f"src/{folder.name}: its CMakeLists.txt has no baton_module()")
            continue
        for path in sorted(folder.iterdir()):
            if path.is_dir() and path.name not in FOLDERS_IN_A_LAYER:
                violations.append(f"src/{folder.name}/{path.name}: layers are flat")
            if path.suffix in (".cc", ".h", ".def"):
                violations += check_file(root, layer, path)
    if "client" in layers:
        # What the SDK's users include may not ask them for our libraries.
        public = Layer("client", ["DEPS", *sorted(layers["client"].lists["DEPS"] - {"proto"})])
        for path in sorted(root.glob("include/**/*.h")):
            violations += check_file(root, public, path)
    return violations


PLANTED = [
    ("src/queue/x.cc", '#include "storage/journal.h"', "storage is not in the layer's DEPS"),
    ("src/queue/x.h", "#include <mutex>", "<mutex> has no place in a pure layer"),
    ("src/queue/x.h", "#include <sys/socket.h>", "<sys/socket.h> has no place in a pure layer"),
    ("src/queue/x.cc", "auto t = std::chrono::steady_clock::now();", "steady_clock has no place"),
    ("src/queue/x.cc", "#include <spdlog/spdlog.h>", "spdlog is not for this layer"),
    ("src/storage/x.cc", "#include <rocksdb/db.h>", "rocksdb is not for this layer"),
    ("src/storage/x.cc", "#include <gtest/gtest.h>", "is in no table"),
    ("src/storage/x.cc", "#include <baton/v1/queues.pb.h>", "proto is not in the layer's DEPS"),
    ("src/storage/x.cc", '#include "storage/x_test.h"', "storage/x_test.h is for tests"),
    ("src/storage/x.cc", '#include "journal.h"', 'write it as "layer/journal.h"'),
    ("src/client/x.cc", "#include <grpcpp/grpcpp.h>", "grpc is missing from the layer's LIBS"),
    ("include/baton/x.h", "#include <grpcpp/grpcpp.h>", "grpc is missing"),
    ("include/baton/x.h", "#include <baton/v1/queues.pb.h>", "proto is not in"),
    ("src/storage/deep/x.cc", "", "layers are flat"),
    ("src/queue/CMakeLists.txt", "baton_module(queue DEPS storage)", "pure, but depends on"),
    ("src/sim/CMakeLists.txt", "baton_module(sim DEPS checkpoint)", "must never reach checkpoint"),
    ("src/util/x.cc", "", "has no baton_module()"),
]
FINE = [
    ("src/queue/x.cc", '#include "base/time.h"\n#include <map>\n#include <fmt/format.h>'),
    ("src/queue/x.cc", "// Not steady_clock: time comes in."),
    ("src/storage/temp_folder.h", "#include <gtest/gtest.h>"),
    ("src/queue/x_test.cc", "#include <gtest/gtest.h>\n#include <thread>"),
    ("src/storage/x_test.cc", '#include "queue/x.h"'),
    ("src/storage/x.cc", "#include <fcntl.h>\n#include <thread>"),
    ("src/checkpoint/x.cc", "#include <rocksdb/db.h>"),
]
SELF_TEST_TREE = {
    "base": "", "queue": "DEPS base", "storage": "DEPS base TEST_DEPS queue", "client": "DEPS base proto",
    "checkpoint": "DEPS base\n  LIBS PkgConfig::rocksdb", "sim": "DEPS queue storage base",
}


def check_planted(path, text):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, rest in SELF_TEST_TREE.items():
            (root / "src" / name).mkdir(parents=True)
            (root / "src" / name / "CMakeLists.txt").write_text(f"baton_module({name} {rest})\n")
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text + "\n")
        return check(root)


def self_test():
    failures = 0
    for path, text, expected in PLANTED:
        found = check_planted(path, text)
        if len(found) != 1 or expected not in found[0]:
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
