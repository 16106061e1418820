"""What the benchmarks share: brokers in temporary folders, interleaved rounds, tables and plots."""
import argparse
import atexit
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build", "release")
BATON = os.path.join(BUILD, "baton")


class Server:
    """A process that is being measured: what it costs, and the program that loads it."""

    load_options = {}

    def cpu_seconds(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    def load(self, **options):
        arguments = [self.load_program, "--address", self.address]
        for name, value in (self.load_options | options).items():
            arguments += ["--" + name.replace("_", "-"), str(value)]
        before = self.cpu_seconds()
        done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(arguments)} failed: {done.returncode}")
        result = json.loads(done.stdout)
        result["broker_cpu_us"] = (self.cpu_seconds() - before) * 1e6 / result["messages"]
        return result

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)


class Broker(Server):
    """A broker process in a temporary folder."""

    def __init__(self, fsync, load_program, folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix="baton-bench-")
        self.fsync = fsync
        self.load_program = load_program
        self.process = None
        self.start()

    def start(self):
        ready = os.path.join(self.folder, "ready")
        if os.path.exists(ready):
            os.remove(ready)
        started = time.monotonic()
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen(
            [BATON, "server", "--data", os.path.join(self.folder, "data"), "--listen", "127.0.0.1:0",
             "--http", "127.0.0.1:0", "--fsync", self.fsync, "--ready-file", ready],
            stdout=self.log, stderr=self.log)
        while not os.path.exists(ready):
            if self.process.poll() is not None or time.monotonic() - started > 120:
                sys.exit(f"the broker did not start; see {self.folder}/log")
            time.sleep(0.002)
        self.start_seconds = time.monotonic() - started
        self.address = "127.0.0.1:" + open(ready).read().split()[0]

    def baton(self, *arguments):
        return subprocess.run([BATON, *arguments, "--address", self.address], check=True,
                              capture_output=True, text=True).stdout

    def kill(self):
        self.process.kill()
        self.process.wait()


class Peer(Server):
    """Somebody else's broker in a temporary folder. Its load program makes its own fresh queue or
    stream, before it starts to measure. `durability` is what a confirmation means: fsync or OS."""

    def __init__(self, name, durability, version, settings, command, load_program, load_options):
        self.name = name
        self.durability = durability
        self.version = version
        self.settings = settings
        self.load_program = load_program
        self.load_options = load_options
        self.folder = tempfile.mkdtemp(prefix="baton-bench-peer-")
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen(command(port, self.folder), stdout=self.log, stderr=self.log)
        atexit.register(self.process.kill)  # In case another server does not start.
        self.await_port(port)

    def await_port(self, port):
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{self.name} did not start; see {self.folder}/log")
                time.sleep(0.01)

    def row(self, work):
        return f"{work}, {self.name} ({self.durability})"


def argument_parser(name, suites):
    """With the flags that every benchmark of several suites has."""
    parser = argparse.ArgumentParser(prog=f"./dev bench {name}")
    parser.add_argument("--quick", action="store_true", help="small counts, two rounds: a smoke test")
    parser.add_argument("--only", default=",".join(suites))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", default=os.path.join(ROOT, "bench", "results"))
    return parser


def chosen(parser, only, all_of_them):
    """The names in `only`, which must be among `all_of_them`."""
    wanted = only.split(",")
    unknown = [name for name in wanted if name not in all_of_them]
    if unknown:
        parser.error(f"unknown: {unknown[0]}; there are {', '.join(all_of_them)}")
    return wanted


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fastest(raw, work, peers):
    """The peer with the highest median rate at `work`, and that rate."""
    return max(((peer.name, median(raw[peer.row(work)], "rate")) for peer in peers),
               key=lambda found: found[1])


def interleaved(variants, rounds, measure):
    """Runs every variant once per round, so that a noisy minute hits all of them alike."""
    raw = {name: [] for name in variants}
    width = name_width(variants)
    for number in range(rounds):
        for name, variant in variants.items():
            raw[name].append(measure(variant))
            print(f"  round {number + 1}/{rounds}  {name:{width}s} {summary(raw[name][-1])}", flush=True)
    return raw


def name_width(names):
    return max([44, *map(len, names)])


def summary(result):
    if "rate" in result:
        return f"{result['rate']:>10,.0f}/s"
    return f"p50 {result['p50_us']:,.0f} us  p99 {result['p99_us']:,.0f} us"


def median(raw, field):
    return statistics.median(result[field] for result in raw)


def table(suite, raw):
    print(f"\n{suite}")
    width = name_width(raw)
    for name, results in raw.items():
        if "rate" in results[0]:
            rates = sorted(result["rate"] for result in results)
            print(f"  {name:{width}s} {median(results, 'rate'):>10,.0f}/s   "
                  f"{rates[0]:>10,.0f} to {rates[-1]:<10,.0f} "
                  f"CPU us/message: broker {median(results, 'broker_cpu_us'):.1f}, "
                  f"client {median(results, 'client_cpu_us'):.1f}")
        else:
            print(f"  {name:{width}s} p50 {median(results, 'p50_us'):>8,.0f} us   "
                  f"p99 {median(results, 'p99_us'):>8,.0f} us   max {median(results, 'max_us'):,.0f} us")


def plot(report, path, title, peers):
    bars = [(name, median(results, "rate")) for suite in report.values() for name, results in suite.items()
            if "rate" in results[0]]
    if not bars:
        return
    largest = max(rate for _, rate in bars)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="860" height="{40 + 26 * len(bars)}" '
             'font-family="sans-serif" font-size="13">',
             f'<text x="10" y="20" font-size="15">{title}</text>']
    for number, (name, rate) in enumerate(bars):
        y = 36 + 26 * number
        width = 440 * rate / largest
        colour = "#9a9a9a" if any(peer.name in name for peer in peers) else "#3b6fb6"
        lines.append(f'<text x="290" y="{y + 14}" text-anchor="end">{name}</text>'
                     f'<rect x="300" y="{y}" width="{width:.1f}" height="19" fill="{colour}"/>'
                     f'<text x="{306 + width:.1f}" y="{y + 14}">{rate:,.0f}</text>')
    lines.append("</svg>")
    with open(path, "w") as out:
        out.write("\n".join(lines) + "\n")


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.machine())
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True,
                            text=True).stdout.strip()
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(), "commit": commit,
            "build": "release (RelWithDebInfo)", "client and broker": "same machine, loopback"}


def save(name, report, ratios, settings, out, title, peers=()):
    """Writes every raw round and a plot, and prints the tables and the ratios."""
    for suite, raw in report.items():
        table(suite, raw)
    print("\nratios")
    width = name_width(ratios)
    for ratio, value in ratios.items():
        print(f"  {ratio:{width}s} {value:.2f}")
    described = {peer.name: {"version": peer.version, "confirms after": peer.durability,
                             "settings": peer.settings} for peer in peers}
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, name + ".json"), "w") as file:
        json.dump({"machine": machine(), "settings": settings | {"out": "bench/results"},
                   **({"peers": described} if peers else {}), "rounds": report, "ratios": ratios},
                  file, indent=1)
    plot(report, os.path.join(out, name + ".svg"), title, peers)
    print(f"\nraw rounds: {os.path.relpath(out, ROOT)}/{name}.json, plot: {name}.svg")
