#!/usr/bin/env python3
"""Makes a data folder as a given binary writes it: make_data_folder.py BATON OUT.tar.gz

tests/e2e/old_folder_test.cc opens the result with the present binary and finds everything again. Half of it is in
a checkpoint, the rest in the journal, and the broker was killed. The journal's spare files are left out: they hold
nothing, and the next start makes them.

data_folder_v1 was made before the part `everything` was here; data_folder_v1_full, by the last binary that wrote
format 1, has it.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time


def main():
    binary, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    work = tempfile.mkdtemp()
    data, ready = work + "/data", work + "/ready"
    server = subprocess.Popen([binary, "server", "--data", data, "--shards", "2", "--listen", "127.0.0.1:0",
                               "--http", "off", "--ready-file", ready])
    while not os.path.exists(ready):
        time.sleep(0.05)
    address = "127.0.0.1:" + open(ready).read().split()[0]

    def baton(*words, text=None):
        done = subprocess.run([binary, *words, "--address", address], input=text, capture_output=True, text=True)
        if done.returncode != 0:
            server.kill()
            sys.exit(f"baton {' '.join(words)}: {done.stderr}")
        return done.stdout

    def fill(phase):
        baton("queue", "send", "ready", f"{phase} plain", "--header", f"phase={phase}")
        for key in ("blue", "red"):
            baton("queue", "send", "ready", "-", "--key", key, text="".join(f"{phase} {key} {i}\n" for i in range(10)))
        baton("queue", "send", "ready", f"{phase} once", "--dedup-id", f"{phase} once")
        baton("queue", "send", "later", f"{phase} later", "--delay", "365d")
        baton("queue", "send", "failing", f"{phase} failed")
        baton("queue", "lease", "failing", "--nack", "--reason", "it is broken")
        for number in range(4):
            baton("queue", "send", f"sick-{number}", f"{phase} of sick-{number}")
            baton("queue", "lease", f"sick-{number}", "--nack")
        for codec in ("none", "lz4", "zstd", "gzip", "snappy"):
            text = "".join(f"{phase} {codec} {i} {'x' * 300}\n" for i in range(60))
            for partition in ("0", "1"):
                baton("stream", "append", "orders", "-", "--partition", partition, "--compression", codec,
                      "--producer", "maker", text=text)
        baton("stream", "subscribe", "orders", "--group", "billing", "--single-active", "--from", "first", "--partition",
              "0", "--max", "70", "--store-every", "1")
        baton("stream", "subscribe", "orders", "--group", "audit", "--from", "first", "--partition", "1", "--max", "50",
              "--store-every", "1")
        for number in range(5):
            baton("kv", "put", "settings", f"{phase}.{number}", f"value {number}")
        baton("kv", "put", "settings", "shared", phase)
        baton("kv", "del", "settings", f"{phase}.4")

    def everything(phase):
        """Every setting away from its default, and each kind of thing that has a row or a fact of its own."""
        full = "full-" + phase
        settings = ["--visibility-timeout", "4s", "--attempts-max", "5", "--dead-letter", "elsewhere", "--retry-delay", "6ms",
                    "--retry-delay-max", "7s", "--release-on-disconnect", "false", "--payload-max", "80000", "--messages-max",
                    "9000", "--bytes-max", "10000000", "--retention", "3650d", "--dedup-window", "7d", "--dedup-ids-max",
                    "13000", "--fairness-cost", "byte", "--weight", "a=14", "--weight", "b=15", "--throttle", "api=16.5/17"]
        baton("queue", "create", full, *settings)
        baton("queue", "create", full + "-updated")
        baton("queue", "update", full + "-updated", *settings)
        baton("queue", "send", full, phase + " plain", "--throttle-key", "api", "--header", "a=1")
        baton("queue", "send", full, phase + " once", "--dedup-id", phase)
        baton("stream", "create", full, "--partitions", "2", "--segment-size", "16KiB", "--retention", "3650d", "--retention",
              "100MB", "--fsync", "interval:200", "--batch-max", "100KiB")
        baton("stream", "append", full, phase + " record", "--partition", "1", "--producer", "maker")
        for group, flags in (("strict", ["--single-active", "--handover", "strict"]), ("plain", [])):
            baton("stream", "subscribe", full, "--group", group, *flags, "--from", "first", "--partition", "1", "--max", "1",
                  "--store-every", "1")
        baton("kv", "bucket", "create", full, "--value-max", "1000", "--keys-max", "50", "--history", "300",
              "--history-size", "70000")
        baton("kv", "put", full, "brief", "soon gone", "--ttl", "3650d")
        baton("kv", "put", full, "lasting", "stays")

    baton("queue", "create", "ready", "--attempts-max", "7", "--weight", "blue=3", "--throttle", "slow=5/10")
    baton("queue", "create", "later")
    baton("queue", "create", "failing", "--attempts-max", "1")
    baton("queue", "create", "held", "--visibility-timeout", "12h", "--release-on-disconnect", "false")
    baton("queue", "create", "graves", "--messages-max", "1")
    for number in range(4):
        baton("queue", "create", f"sick-{number}", "--attempts-max", "1", "--dead-letter", "graves")
    baton("stream", "create", "orders", "--partitions", "3", "--segment-size", "16KiB")
    baton("kv", "bucket", "create", "settings")
    baton("kv", "bucket", "create", "gone")
    baton("kv", "put", "gone", "key", "value")
    baton("queue", "create", "gone")
    fill("first")
    everything("first")
    baton("queue", "send", "held", "-", text="held 0\nheld 1\nheld 2\n")
    baton("store", "inspect")  # Makes a checkpoint.
    holder = subprocess.Popen([binary, "queue", "lease", "held", "--hold", "--max", "2", "--consumer", "holder",
                               "--wait", "1s", "--address", address], stdout=subprocess.DEVNULL)
    fill("second")
    everything("second")
    baton("kv", "bucket", "delete", "gone")
    baton("queue", "delete", "gone")
    time.sleep(2.5)
    server.send_signal(signal.SIGKILL)
    server.wait()
    holder.kill()
    holder.wait()

    for folder, _, names in os.walk(data):
        for name in names:
            if name.endswith((".spare", ".new")) or name.startswith(("LOG", "LOCK", "OPTIONS")):
                os.remove(os.path.join(folder, name))
    subprocess.run(["tar", "-C", work, "--sparse", "--hole-detection=raw", "--owner=0", "--group=0", "--numeric-owner",
                    "-czf", out, "data"], check=True)
    shutil.rmtree(work)
    print(out, os.path.getsize(out), "bytes")


main()
