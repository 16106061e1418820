#!/usr/bin/env python3
"""Measures Baton's keys: compare-and-sets per second, each on the revision that the one before it answered,
one at a time and 64 at once on as many keys, everything fsynced. Rounds of all variants are interleaved; every
raw round goes to bench/results/kv.json, latencies included.

    ./dev bench kv [--quick] [--only cas] [--rounds N] [--peers]

With --peers, etcd takes part in the rounds, loaded by the same program over its own gRPC API.
"""
import os
import subprocess

import peers as rivals
from harness import (BATON, BUILD, Broker, Peer, argument_parser, chosen, fastest, interleaved, median,
                     save)

LOAD = os.path.join(BUILD, "bench_kv_load")


def fresh_bucket(broker):
    if isinstance(broker, Peer):
        return
    subprocess.run([BATON, "kv", "bucket", "delete", "bench", "--address", broker.address],
                   capture_output=True)
    broker.baton("kv", "bucket", "create", "bench")


def cas_work(size, in_flight):
    return f"compare-and-set {size} B, {in_flight} in flight"


def cas(broker, peers, options):
    variants = {}
    for in_flight in (1, 64):
        for size in (100, 1024):
            work = cas_work(size, in_flight)
            variants[f"{work}, fsync"] = (broker, size, in_flight)
            variants |= {peer.row(work): (peer, size, in_flight) for peer in peers}

    def measure(variant):
        server, size, in_flight = variant
        fresh_bucket(server)
        count = options.count if in_flight == 1 else 10 * options.count
        return server.load(size=size, in_flight=in_flight, count=count)

    return interleaved(variants, options.rounds, measure)


def ratios(report, peers):
    found = {}
    raw = report.get("cas", {})
    for size in (100, 1024) if raw else ():
        one, many = (f"{cas_work(size, n)}, fsync" for n in (1, 64))
        found[f"compare-and-set {size} B: 64 in flight / 1"] = (
            median(raw[many], "rate") / median(raw[one], "rate"))
        for in_flight in (1, 64) if peers else ():
            work = cas_work(size, in_flight)
            rival, rate = fastest(raw, work, peers)
            found[f"{work}: Baton / {rival}"] = median(raw[f"{work}, fsync"], "rate") / rate
    return found


def main():
    suites = {"cas": cas}
    parser = argument_parser("kv", suites)
    rivals.add_arguments(parser)
    options = parser.parse_args()
    options.count = 500 if options.quick else 5_000
    if options.quick:
        options.rounds = 2
    wanted = chosen(parser, options.only, suites)
    peers = rivals.start(options, rivals.for_keys, rivals.KEY_PACKAGES, rivals.KEY_PROGRAMS)
    broker = Broker("always", LOAD)
    report = {}
    try:
        for server in [broker, *peers]:  # Warm-up.
            fresh_bucket(server)
            server.load(in_flight=64, count=2_000)
        for name in wanted:
            print(f"\n== {name}", flush=True)
            report[name] = suites[name](broker, peers, options)
    finally:
        for server in [broker, *peers]:
            server.close()
    save("kv", report, ratios(report, peers), vars(options), options.out,
         "Baton keys: compare-and-sets per second (median)", peers)


if __name__ == "__main__":
    main()
