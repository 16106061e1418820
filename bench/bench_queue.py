#!/usr/bin/env python3
"""Measures Baton's queues: starts brokers on loopback in temporary folders, interleaves the rounds of
all variants (A B A B ...), prints a table with medians and spreads, and writes every raw round to
bench/results/queue.json and a plot to bench/results/queue.svg.

    ./dev bench queue [--quick] [--only throughput,latency,keys,depth,consumers] [--rounds N]
                      [--peers]

With --peers, Redis Streams and NATS JetStream take part in the rounds of throughput and latency.
"""
import os
import subprocess
import time

import peers as rivals
from harness import (BATON, BUILD, Broker, Peer, argument_parser, chosen, fastest, interleaved, median,
                     save)

LOAD = os.path.join(BUILD, "bench_queue_load")


def broker_of(fsync):
    return Broker(fsync, LOAD)


def fresh_queue(broker, name="bench"):
    if isinstance(broker, Peer):
        return
    subprocess.run([BATON, "queue", "delete", name, "--address", broker.address], capture_output=True)
    broker.baton("queue", "create", name)


def throughput(brokers, peers, options):
    variants = {}
    for fsync in ("always", "never"):
        for size in (1024, 100):
            for pairs in (1, 4):
                variants[f"{work(size, pairs)}, fsync {fsync}"] = (brokers[fsync], size, pairs)
    for peer in peers:
        for size in (1024, 100):
            for pairs in (1, 4):
                variants[peer.row(work(size, pairs))] = (peer, size, pairs)
    if peers:  # Rounds that are compared run close to each other.
        variants = dict(sorted(variants.items(), key=lambda item: (-item[1][1], item[1][2])))

    def measure(variant):
        broker, size, pairs = variant
        fresh_queue(broker)
        return broker.load(mode="through", size=size, producers=pairs, consumers=pairs,
                           count=options.count)

    return interleaved(variants, options.rounds, measure)


def work(size, pairs):
    return f"{size} B, {pairs}+{pairs}"


LATENCY = "1 024 B at 1 000/s"


def latency(brokers, peers, options):
    def measure(broker):
        fresh_queue(broker)
        return broker.load(mode="latency", size=1024, rate=1000, count=options.latency_count)

    variants = {f"{LATENCY}, fsync {mode}": brokers[mode] for mode in ("always", "never")}
    return interleaved(variants | {peer.row(LATENCY): peer for peer in peers}, options.rounds, measure)


def keys(brokers, _, options):
    def measure(number):
        fresh_queue(brokers["always"])
        return brokers["always"].load(mode="through", size=1024, keys=number, count=options.count)

    return interleaved({f"{number} fairness keys": number for number in (10, 100_000)},
                       options.rounds, measure)


def consumers(brokers, _, options):
    def measure(number):
        fresh_queue(brokers["always"])
        brokers["always"].load(mode="fill", size=1024, count=64 * 1000)
        return brokers["always"].load(mode="drain", size=1024, consumers=number, count=64 * 1000,
                                      in_flight=256 if number > 1 else 4096)

    return interleaved({f"{number} consumers": number for number in (1, 100)}, options.rounds, measure)


def depth(_brokers, _peers, options):
    """Fills, restarts, drains: each depth on a broker of its own, for its memory is measured too."""
    raw = {}
    for messages in (10_000, options.deep):
        broker = broker_of("always")
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


def peer_ratios(report, peers):
    found = {}
    syncing = [peer for peer in peers if peer.durability == "fsync"]
    for size in (1024, 100) if peers and "throughput" in report else ():
        for pairs in (1, 4):
            raw, name = report["throughput"], work(size, pairs)
            ours = median(raw[f"{name}, fsync always"], "rate")
            for kind, among in (("peer", peers), ("peer that fsyncs", syncing)):
                rival, rate = fastest(raw, name, among)
                found[f"{name}: Baton fsync / fastest {kind}, {rival}"] = ours / rate
    for peer in syncing if "latency" in report else ():
        for field in ("p50_us", "p99_us"):
            found[f"{LATENCY}: {field[:3]} Baton fsync / {peer.name}"] = (
                median(report["latency"][f"{LATENCY}, fsync always"], field) /
                median(report["latency"][peer.row(LATENCY)], field))
    return found


def main():
    suites = {"throughput": throughput, "latency": latency, "keys": keys, "consumers": consumers,
              "depth": depth}
    parser = argument_parser("queue", suites)
    parser.add_argument("--deep", type=int, default=1_000_000)
    rivals.add_arguments(parser)
    options = parser.parse_args()
    options.count = 20_000 if options.quick else 300_000
    options.latency_count = 1_000 if options.quick else 5_000
    if options.quick:
        options.rounds, options.deep = 2, 50_000
    wanted = chosen(parser, options.only, suites)
    peers = rivals.start(options, rivals.for_queues)
    brokers = {mode: broker_of(mode) for mode in ("always", "never")}
    report = {}
    try:
        for broker in [*brokers.values(), *peers]:  # Warm-up.
            fresh_queue(broker)
            broker.load(mode="through", count=20_000)
        for name in wanted:
            print(f"\n== {name}", flush=True)
            report[name] = suites[name](brokers, peers, options)
    finally:
        for broker in [*brokers.values(), *peers]:
            broker.close()
    save("queue", report, ratios(report) | peer_ratios(report, peers), vars(options), options.out,
         "Baton queues: messages per second (median)", peers)


if __name__ == "__main__":
    main()
