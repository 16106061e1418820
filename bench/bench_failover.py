#!/usr/bin/env python3
"""Measures how long partitions wait for a new owner when a worker joins, leaves, is killed, or restarts: on
Baton's own store, NATS and etcd, one server each. Every run goes to bench/results/failover.json.

    ./dev bench failover [--quick] [--only baton,nats,etcd] [--profiles default,reference,fast] [--runs N]
"""
import argparse
import json
import os
import subprocess
import sys

import peers as rivals
from harness import BATON, BUILD, ROOT, Broker, chosen, machine

STORES = {"baton": lambda: Broker("always", None), "nats": lambda: rivals.nats(BUILD, None),
          "etcd": lambda: rivals.etcd(BUILD)}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench failover")
    parser.add_argument("--quick", action="store_true", help="three runs, the fast profile: a smoke test")
    parser.add_argument("--only", default="baton,nats,etcd")
    parser.add_argument("--profiles", default="default,reference,fast")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", default=os.path.join(ROOT, "bench", "results"))
    options = parser.parse_args()
    if options.quick:
        options.runs, options.profiles = 3, "fast"
    profiles = chosen(parser, options.profiles, ["default", "reference", "fast"])
    servers = {name: STORES[name]() for name in chosen(parser, options.only, STORES)}
    command = [BATON, "bench", "failover", "--runs", str(options.runs), "--out", options.out]
    for name, server in servers.items():
        command += ["--store", f"{name}://{server.address}"]
    for profile in profiles:
        command += ["--profile", profile]
    try:
        done = subprocess.run(command)
    finally:
        for server in servers.values():
            server.close()
    if done.returncode != 0:
        sys.exit(done.returncode)
    path = os.path.join(options.out, "failover.json")
    with open(path) as file:
        report = json.load(file)
    stores = {name: getattr(server, "version", "fsync always") for name, server in servers.items()}
    with open(path, "w") as file:
        json.dump({"machine": machine(), "stores": stores, **report}, file, indent=1)
    print(f"\nevery run: {os.path.relpath(path, ROOT)}, plot: failover.svg")


if __name__ == "__main__":
    main()
