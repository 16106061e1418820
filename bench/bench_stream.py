#!/usr/bin/env python3
"""Measures Baton's streams: append and read rates, alone and at the same time, and how long a seat
takes to change hands. Rounds of all variants are interleaved; every raw round goes to bench/results/stream.json.

    ./dev bench stream [--quick] [--only append,read,catchup,handover] [--rounds N] [--peers]

With --peers, NATS JetStream takes part in the rounds of append and read.
"""
import concurrent.futures
import os
import subprocess

import peers as rivals
from harness import (BATON, BUILD, Broker, Peer, argument_parser, chosen, fastest, interleaved, median,
                     save)

LOAD = os.path.join(BUILD, "bench_stream_load")


def fresh_stream(broker, fsync, partitions=1):
    if isinstance(broker, Peer):
        return
    subprocess.run([BATON, "stream", "delete", "bench", "--address", broker.address],
                   capture_output=True)
    broker.baton("stream", "create", "bench", "--partitions", str(partitions), "--fsync", fsync)


def append_work(size, producers):
    return f"append {size} B, {producers} producers"


def append(broker, peers, options):
    variants = {}
    for fsync in ("always", "never"):
        for size in (1024, 100):
            for producers in (1, 4):
                name = f"{append_work(size, producers)}, fsync {fsync}"
                variants[name] = (broker, fsync, size, producers)
    for peer in peers:
        for size in (1024, 100):
            for producers in (1, 4):
                variants[peer.row(append_work(size, producers))] = (peer, None, size, producers)
    if peers:  # Rounds that are compared run close to each other.
        variants = dict(sorted(variants.items(), key=lambda item: (-item[1][2], item[1][3])))

    def measure(variant):
        server, fsync, size, producers = variant
        fresh_stream(server, fsync)
        count = options.count if size == 1024 else 4 * options.count
        return server.load(mode="append", size=size, producers=producers, count=count)

    return interleaved(variants, options.rounds, measure)


def read(broker, peers, options):
    """From the page cache: what was appended just before."""
    def measure(variant):
        server, size = variant
        fresh_stream(server, "never")
        count = options.count if size == 1024 else 4 * options.count
        server.load(mode="append", size=size, count=count)
        return server.load(mode="read", size=size, count=count)

    variants = {}
    for size in (1024, 100):
        variants[f"read {size} B"] = (broker, size)
        variants |= {peer.row(f"read {size} B"): (peer, size) for peer in peers}
    return interleaved(variants, options.rounds, measure)


CATCH_UP = "catch-up read 1024 B"


def catchup(broker, _, options):
    """A reader far behind reads on while a producer appends: neither should stop the other."""
    def measure(variant):
        fresh_stream(broker, "always")
        broker.load(mode="append", size=1024, count=options.count)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            works = {mode: pool.submit(broker.load, mode=mode, size=1024, count=options.count)
                     for mode in ("read", "append") if mode in variant}
            return works[variant[0]].result()

    return interleaved({CATCH_UP + ", alone": ("read",),
                        CATCH_UP + ", while appending": ("read", "append"),
                        "append 1024 B, alone": ("append",),
                        "append 1024 B, while catching up": ("append", "read")},
                       options.rounds, measure)


def handover(broker, _, options):
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
    if "catchup" in report:
        rates = {name: median(raw, "rate") for name, raw in report["catchup"].items()}
        found[CATCH_UP + ": while appending / alone"] = (
            rates[CATCH_UP + ", while appending"] / rates[CATCH_UP + ", alone"])
        found["append 1024 B: while catching up / alone"] = (
            rates["append 1024 B, while catching up"] / rates["append 1024 B, alone"])
    if "append" in report:
        rate = lambda name: median(report["append"][name], "rate")
        found["append fsync always / never, 1 024 B, 1"] = (
            rate("append 1024 B, 1 producers, fsync always") /
            rate("append 1024 B, 1 producers, fsync never"))
    return found


def peer_ratios(report, peers):
    found = {}
    for size in (1024, 100) if peers else ():
        for producers in (1, 4) if "append" in report else ():
            raw, name = report["append"], append_work(size, producers)
            rival, rate = fastest(raw, name, peers)
            found[f"{name}: Baton fsync / {rival}"] = median(raw[f"{name}, fsync always"], "rate") / rate
        if "read" in report:
            raw, name = report["read"], f"read {size} B"
            rival, rate = fastest(raw, name, peers)
            found[f"{name}: Baton / {rival}"] = median(raw[name], "rate") / rate
    return found


def main():
    suites = {"append": append, "read": read, "catchup": catchup, "handover": handover}
    parser = argument_parser("stream", suites)
    rivals.add_arguments(parser)
    options = parser.parse_args()
    options.count = 50_000 if options.quick else 500_000
    options.handovers = 20 if options.quick else 200
    if options.quick:
        options.rounds = 2
    wanted = chosen(parser, options.only, suites)
    peers = rivals.start(options, rivals.for_streams)
    broker = Broker("always", LOAD)
    report = {}
    try:
        for server in [broker, *peers]:  # Warm-up.
            fresh_stream(server, "always")
            server.load(mode="append", count=20_000)
        for name in wanted:
            print(f"\n== {name}", flush=True)
            report[name] = suites[name](broker, peers, options)
    finally:
        for server in [broker, *peers]:
            server.close()
    save("stream", report, ratios(report) | peer_ratios(report, peers), vars(options), options.out,
         "Baton streams: records per second (median)", peers)


if __name__ == "__main__":
    main()
