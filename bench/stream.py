#!/usr/bin/env python3
"""Measures Baton's streams: append and read rates, and how long a seat takes to change hands. Rounds of
all variants are interleaved; every raw round goes to bench/results/stream.json.

    ./dev bench stream [--quick] [--only append,read,handover] [--rounds N]
"""
import argparse
import os
import subprocess

from harness import BATON, BUILD, ROOT, Broker, interleaved, median, save

LOAD = os.path.join(BUILD, "bench_stream_load")


def fresh_stream(broker, fsync, partitions=1):
    subprocess.run([BATON, "stream", "delete", "bench", "--address", broker.address],
                   capture_output=True)
    broker.baton("stream", "create", "bench", "--partitions", str(partitions), "--fsync", fsync)


def append(broker, options):
    variants = {}
    for fsync in ("always", "never"):
        for size in (1024, 100):
            for producers in (1, 4):
                name = f"append {size} B, {producers} producers, fsync {fsync}"
                variants[name] = (fsync, size, producers)

    def measure(variant):
        fsync, size, producers = variant
        fresh_stream(broker, fsync)
        count = options.count if size == 1024 else 4 * options.count
        return broker.load(mode="append", size=size, producers=producers, count=count)

    return interleaved(variants, options.rounds, measure)


def read(broker, options):
    """From the page cache: what was appended just before."""
    def measure(size):
        fresh_stream(broker, "never")
        count = options.count if size == 1024 else 4 * options.count
        broker.load(mode="append", size=size, count=count)
        return broker.load(mode="read", size=size, count=count)

    return interleaved({f"read {size} B": size for size in (1024, 100)}, options.rounds, measure)


def handover(broker, options):
    def measure(groups):
        fresh_stream(broker, "always", partitions=2)
        return broker.load(mode="handover", groups=groups, rounds=options.handovers)

    return interleaved({f"seat moves, {groups} other groups": groups for groups in (10, 10_000)},
                       options.rounds, measure)


def ratios(report):
    found = {}
    if "handover" in report:
        few, many = report["handover"].values()
        found["hand-over p50 at 10 000 groups / at 10"] = median(many, "p50_us") / median(few, "p50_us")
    if "append" in report:
        rate = lambda name: median(report["append"][name], "rate")
        found["append fsync always / never, 1 024 B, 1"] = (
            rate("append 1024 B, 1 producers, fsync always") /
            rate("append 1024 B, 1 producers, fsync never"))
    return found


def main():
    parser = argparse.ArgumentParser(prog="./dev bench stream")
    parser.add_argument("--quick", action="store_true", help="small counts, two rounds: a smoke test")
    parser.add_argument("--only", default="append,read,handover")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", default=os.path.join(ROOT, "bench", "results"))
    options = parser.parse_args()
    options.count = 50_000 if options.quick else 500_000
    options.handovers = 20 if options.quick else 200
    if options.quick:
        options.rounds = 2
    suites = {"append": append, "read": read, "handover": handover}
    wanted = options.only.split(",")
    unknown = [name for name in wanted if name not in suites]
    if unknown:
        parser.error(f"unknown suite {unknown[0]}; there are {', '.join(suites)}")
    broker = Broker("always", LOAD)
    report = {}
    try:
        fresh_stream(broker, "always")
        broker.load(mode="append", count=20_000)  # Warm-up.
        for name in wanted:
            print(f"\n== {name}", flush=True)
            report[name] = suites[name](broker, options)
    finally:
        broker.close()
    save("stream", report, ratios(report), vars(options), options.out,
         "Baton streams: records per second (median)")


if __name__ == "__main__":
    main()
