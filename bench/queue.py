#!/usr/bin/env python3
"""Measures Baton's queues: starts brokers on loopback in temporary folders, interleaves the rounds of
all variants (A B A B ...), prints a table with medians and spreads, and writes every raw round to
bench/results/queue.json and a plot to bench/results/queue.svg.

    ./dev bench queue [--quick] [--only throughput,latency,keys,depth,consumers] [--rounds N]
"""
import argparse
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build", "release")
BATON = os.path.join(BUILD, "baton")
LOAD = os.path.join(BUILD, "bench_queue_load")


class Broker:
    """A broker process in a temporary folder."""

    def __init__(self, fsync, folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix="baton-bench-")
        self.fsync = fsync
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

    def cpu_seconds(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    def load(self, **options):
        arguments = [LOAD, "--address", self.address]
        for name, value in options.items():
            arguments += ["--" + name.replace("_", "-"), str(value)]
        before = self.cpu_seconds()
        output = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
        result = json.loads(output)
        result["broker_cpu_us"] = (self.cpu_seconds() - before) * 1e6 / result["messages"]
        return result

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)


def fresh_queue(broker, name="bench"):
    subprocess.run([BATON, "queue", "delete", name, "--address", broker.address], capture_output=True)
    broker.baton("queue", "create", name)


def interleaved(variants, rounds, measure):
    """Runs every variant once per round, so that a noisy minute hits all of them alike."""
    raw = {name: [] for name in variants}
    for number in range(rounds):
        for name, variant in variants.items():
            raw[name].append(measure(variant))
            print(f"  round {number + 1}/{rounds}  {name:44s} {summary(raw[name][-1])}", flush=True)
    return raw


def summary(result):
    if "rate" in result:
        return f"{result['rate']:>10,.0f}/s"
    return f"p50 {result['p50_us']:,.0f} us  p99 {result['p99_us']:,.0f} us"


def median(raw, field):
    return statistics.median(result[field] for result in raw)


def throughput(brokers, options):
    variants = {}
    for fsync in ("always", "never"):
        for size in (1024, 100):
            for pairs in (1, 4):
                name = f"{size} B, {pairs}+{pairs}, fsync {fsync}"
                variants[name] = (fsync, size, pairs)

    def measure(variant):
        fsync, size, pairs = variant
        fresh_queue(brokers[fsync])
        return brokers[fsync].load(mode="through", size=size, producers=pairs, consumers=pairs,
                                   count=options.count)

    return interleaved(variants, options.rounds, measure)


def latency(brokers, options):
    def measure(fsync):
        fresh_queue(brokers[fsync])
        return brokers[fsync].load(mode="latency", size=1024, rate=1000, count=options.latency_count)

    return interleaved({f"1 024 B at 1 000/s, fsync {mode}": mode for mode in ("always", "never")},
                       options.rounds, measure)


def keys(brokers, options):
    def measure(number):
        fresh_queue(brokers["always"])
        return brokers["always"].load(mode="through", size=1024, keys=number, count=options.count)

    return interleaved({f"{number} fairness keys": number for number in (10, 100_000)},
                       options.rounds, measure)


def consumers(brokers, options):
    def measure(number):
        fresh_queue(brokers["always"])
        brokers["always"].load(mode="fill", size=1024, count=64 * 1000)
        return brokers["always"].load(mode="drain", size=1024, consumers=number, count=64 * 1000,
                                      in_flight=256 if number > 1 else 4096)

    return interleaved({f"{number} consumers": number for number in (1, 100)}, options.rounds, measure)


def depth(_, options):
    """Fills, restarts, drains: each depth on a broker of its own, for its memory is measured too."""
    raw = {}
    for messages in (10_000, options.deep):
        broker = Broker("always")
        fresh_queue(broker)
        filled = broker.load(mode="fill", size=1024, count=messages)
        filled["resident_mib"] = broker.resident_mib()
        broker.kill()
        broker.start()
        started = time.monotonic()
        broker.baton("queue", "lease", "bench", "--max", "1", "--wait", "60s")
        first = broker.start_seconds + time.monotonic() - started
        drained = broker.load(mode="drain", size=1024, count=messages)
        drained["resident_mib"] = broker.resident_mib()
        drained["first_delivery_seconds"] = first
        broker.close()
        print(f"  {messages:>10,} deep: fill {filled['rate']:,.0f}/s, {filled['resident_mib']:.0f} MiB; "
              f"first delivery after kill -9 in {first:.2f} s; "
              f"drain {drained['rate']:,.0f}/s, {drained['resident_mib']:.0f} MiB", flush=True)
        raw[f"fill to {messages}"] = [filled]
        raw[f"drain from {messages}"] = [drained]
    return raw


def table(suite, raw):
    print(f"\n{suite}")
    for name, results in raw.items():
        if "rate" in results[0]:
            rates = sorted(result["rate"] for result in results)
            print(f"  {name:44s} {median(results, 'rate'):>10,.0f}/s   "
                  f"{rates[0]:>10,.0f} to {rates[-1]:<10,.0f} "
                  f"CPU us/message: broker {median(results, 'broker_cpu_us'):.1f}, "
                  f"client {median(results, 'client_cpu_us'):.1f}")
        else:
            print(f"  {name:44s} p50 {median(results, 'p50_us'):>8,.0f} us   "
                  f"p99 {median(results, 'p99_us'):>8,.0f} us   max {median(results, 'max_us'):,.0f} us")


def ratios(report):
    found = {}

    def rate(suite, name):
        return median(report[suite][name], "rate")

    if "keys" in report:
        found["rate at 100 000 keys / at 10"] = (rate("keys", "100000 fairness keys") /
                                                 rate("keys", "10 fairness keys"))
    if "depth" in report:
        names = [name for name in report["depth"] if name.startswith("drain")]
        found[f"{names[1]} / {names[0]}"] = rate("depth", names[1]) / rate("depth", names[0])
    if "consumers" in report:
        found["rate with 100 consumers / with 1"] = (rate("consumers", "100 consumers") /
                                                     rate("consumers", "1 consumers"))
    if "throughput" in report:
        found["fsync always / never, 1 024 B, 1+1"] = (
            rate("throughput", "1024 B, 1+1, fsync always") /
            rate("throughput", "1024 B, 1+1, fsync never"))
    return found


def plot(report, path):
    bars = [(name, median(results, "rate")) for suite in report.values() for name, results in suite.items()
            if "rate" in results[0]]
    if not bars:
        return
    largest = max(rate for _, rate in bars)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="860" height="{40 + 26 * len(bars)}" '
             'font-family="sans-serif" font-size="13">',
             '<text x="10" y="20" font-size="15">Baton queues: messages per second (median)</text>']
    for number, (name, rate) in enumerate(bars):
        y = 36 + 26 * number
        width = 440 * rate / largest
        lines.append(f'<text x="290" y="{y + 14}" text-anchor="end">{name}</text>'
                     f'<rect x="300" y="{y}" width="{width:.1f}" height="19" fill="#3b6fb6"/>'
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


def main():
    parser = argparse.ArgumentParser(prog="./dev bench queue")
    parser.add_argument("--quick", action="store_true", help="small counts, two rounds: a smoke test")
    parser.add_argument("--only", default="throughput,latency,keys,consumers,depth")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--deep", type=int, default=1_000_000)
    parser.add_argument("--out", default=os.path.join(ROOT, "bench", "results"))
    options = parser.parse_args()
    options.count = 20_000 if options.quick else 300_000
    options.latency_count = 1_000 if options.quick else 5_000
    if options.quick:
        options.rounds, options.deep = 2, 50_000

    suites = {"throughput": throughput, "latency": latency, "keys": keys, "consumers": consumers,
              "depth": depth}
    wanted = options.only.split(",")
    unknown = [name for name in wanted if name not in suites]
    if unknown:
        parser.error(f"unknown suite {unknown[0]}; there are {', '.join(suites)}")
    brokers = {mode: Broker(mode) for mode in ("always", "never")}
    report = {}
    try:
        for mode, broker in brokers.items():  # Warm-up.
            fresh_queue(broker)
            broker.load(mode="through", count=20_000)
        for name in wanted:
            print(f"\n== {name}", flush=True)
            report[name] = suites[name](brokers, options)
    finally:
        for broker in brokers.values():
            broker.close()
    for name, raw in report.items():
        table(name, raw)
    print("\nratios")
    for name, value in ratios(report).items():
        print(f"  {name:44s} {value:.2f}")
    os.makedirs(options.out, exist_ok=True)
    with open(os.path.join(options.out, "queue.json"), "w") as out:
        json.dump({"machine": machine(), "settings": vars(options) | {"out": "bench/results"},
                   "rounds": report, "ratios": ratios(report)}, out, indent=1)
    plot(report, os.path.join(options.out, "queue.svg"))
    print(f"\nraw rounds: {os.path.relpath(options.out, ROOT)}/queue.json, plot: queue.svg")


if __name__ == "__main__":
    main()
