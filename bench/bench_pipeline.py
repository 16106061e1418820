#!/usr/bin/env python3
"""Measures pipelines: orders of 1.2 kB with 3 items from a Baton stream, and from Kafka where it can be had, into
PostgreSQL and SQLite, every commit synced. Rounds of all variants are interleaved; every raw round goes to
bench/results/pipeline.json.

    ./dev bench pipeline [--quick] [--rounds N] [--orders N] [--no-kafka]

Beside them, in the same rounds, what the sinks take by themselves: the same rows in the same batches with nothing to
decode ("bare"), and the loop that one writes first, one transaction for each order ("one by one").
"""
import argparse
import glob
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from harness import BATON, BUILD, ROOT, Broker, Peer, free_port, interleaved, median, save

LOAD = os.path.join(BUILD, "bench_pipeline_load")
PARTITIONS = 4


class Postgres:
    """Debian's PostgreSQL in a temporary folder; its defaults, but for the port. It refuses to run as root."""

    def __init__(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not found:
            sys.exit("PostgreSQL is not installed: ./dev setup")
        self.programs = found[-1]
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self.folder = tempfile.mkdtemp(prefix="baton-bench-postgres-")
        os.chmod(self.folder, 0o755)
        if os.geteuid() == 0:
            shutil.chown(self.folder, self.user)
        self.port = free_port()
        data = os.path.join(self.folder, "data")
        self.run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8")
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen(
            self.as_user(os.path.join(self.programs, "postgres"), "-D", data, "-p", str(self.port),
                         "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.folder}"),
            stdout=self.log, stderr=self.log)
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        Peer.await_port(self, self.port)
        while subprocess.run(self.as_user(os.path.join(self.programs, "psql"), "-d", self.url, "-c", "SELECT 1"),
                             capture_output=True).returncode != 0:
            time.sleep(0.1)
        self.version = self.query("SHOW server_version")

    name = "PostgreSQL"

    def as_user(self, *command):
        return ["runuser", "-u", self.user, "--", *command] if os.geteuid() == 0 else list(command)

    def run(self, program, *arguments):
        subprocess.run(self.as_user(os.path.join(self.programs, program), *arguments), check=True,
                       capture_output=True, cwd=self.folder)

    def query(self, sql):
        return subprocess.run(self.as_user(os.path.join(self.programs, "psql"), "-d", self.url, "-Atc", sql),
                              check=True, capture_output=True, text=True, cwd=self.folder).stdout.strip()

    def fresh(self):
        self.query("DROP SCHEMA public CASCADE; CREATE SCHEMA public; CHECKPOINT;")
        return self.url

    def close(self):
        # As runuser passes no signal on: to the server itself, whose id is in its folder.
        with open(os.path.join(self.folder, "data", "postmaster.pid")) as file:
            os.kill(int(file.readline()), signal.SIGINT)
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)


class Sqlite:
    version = "in the process"

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="baton-bench-sqlite-")

    def fresh(self):
        for file in glob.glob(os.path.join(self.folder, "*")):
            os.remove(file)
        return "sqlite:" + os.path.join(self.folder, "orders.db")

    def close(self):
        shutil.rmtree(self.folder)


class Kafka:
    """A Kafka of one node from build/tools/kafka, where ./dev test put it."""

    name = "kafka"

    def __init__(self):
        self.jars = os.path.join(ROOT, "build", "tools", "kafka", "*")
        self.folder = tempfile.mkdtemp(prefix="baton-bench-kafka-")
        self.port, controller = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        properties = os.path.join(self.folder, "server.properties")
        with open(properties, "w") as file:
            file.write(f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={self.folder}/logs
num.partitions={PARTITIONS}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
""")
        java = ["java", "-Xmx768m", "-cp", self.jars]
        subprocess.run([*java, "kafka.tools.StorageTool", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c", properties],
                       check=True, capture_output=True)
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen([*java, "kafka.Kafka", properties], stdout=self.log, stderr=self.log)
        Peer.await_port(self, self.port)
        time.sleep(2)
        found = [re.search(r"kafka_2\.13-([0-9.]+)\.jar", jar) for jar in glob.glob(self.jars)]
        self.version = next((match.group(1) for match in found if match), "?")

    @staticmethod
    def missing():
        if not glob.glob(os.path.join(ROOT, "build", "tools", "kafka", "kafka_2.13-*.jar")):
            return "no Kafka in build/tools/kafka (./dev test fetches it where there is Maven)"
        return "" if shutil.which("java") else "no Java here"

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)


class Run:
    """One `baton pipeline run`, from the first record to the last."""

    count = 0

    def __init__(self, source, sink, broker, options):
        Run.count += 1
        self.folder = tempfile.mkdtemp(prefix="baton-bench-pipeline-")
        config = os.path.join(self.folder, "config.yaml")
        with open(config, "w") as file:
            file.write(subprocess.run([BATON, "pipeline", "init", "orders"], check=True, capture_output=True,
                                      text=True).stdout)
        self.http = f"127.0.0.1:{free_port()}"
        letters = "file:" + os.path.join(self.folder, "letters")
        self.environment = os.environ | {
            "BATON_PIPELINE__SOURCE__URL": source, "BATON_PIPELINE__SINK__URL": sink,
            "BATON_PIPELINE__DEAD_LETTERS__URL": letters, "BATON_PIPELINE__HTTP": self.http,
            "BATON_PIPELINE__SOURCE__GROUP": f"bench-{Run.count}",
            "BATON_PIPELINE__LANES": str(options.lanes), "BATON_PIPELINE__BATCH__RECORDS": str(options.batch)}
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen([BATON, "pipeline", "run", config], env=self.environment,
                                        stdout=self.log, stderr=self.log)

    def counters(self):
        try:
            with urllib.request.urlopen(f"http://{self.http}/pipelines", timeout=5) as answer:
                status = json.load(answer)
        except OSError:
            if self.process.poll() is not None:
                sys.exit(f"the pipeline ended; see {self.folder}/log")
            status = {}
        # A pipeline that is starting has no counters yet.
        return status.get("counters", {"received": 0, "applied": 0})

    def cpu_seconds(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure(self, orders):
        while self.counters()["received"] == 0:
            time.sleep(0.002)
        began, cpu = time.monotonic(), self.cpu_seconds()
        while (seen := self.counters())["applied"] < orders:
            if time.monotonic() - began > 600 or seen.get("dead_letters", 0) > 0:
                sys.exit(f"the pipeline does not get there: {seen}; see {self.folder}/log")
            time.sleep(0.01)
        took, cpu = time.monotonic() - began, self.cpu_seconds() - cpu
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            sys.exit(f"the pipeline did not drain; see {self.folder}/log")
        self.log.close()
        shutil.rmtree(self.folder)
        return {"messages": orders, "rate": orders / took, "broker_cpu_us": 0.0, "client_cpu_us": cpu * 1e6 / orders}


def generate(target, options):
    subprocess.run([BATON, "pipeline", "generate", "orders", "--count", str(options.orders), "--to", target],
                   check=True, capture_output=True)


def load(mode, sink, orders, options):
    done = subprocess.run([LOAD, "--mode", mode, "--sink", sink, "--orders", str(orders), "--lanes",
                           str(options.lanes), "--batch", str(options.batch)], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench_pipeline_load {mode} failed")
    return json.loads(done.stdout) | {"broker_cpu_us": 0.0}


def orders_suite(broker, postgres, sqlite, kafka, options):
    stream = f"baton-stream://{broker.address}/orders"
    broker.baton("stream", "create", "orders", "--partitions", str(PARTITIONS))
    generate(f"baton://{broker.address}/orders", options)
    sources = {"Baton stream": stream}
    if kafka:
        generate(f"kafka://{kafka.address}/orders", options)
        sources["Kafka"] = f"kafka://{kafka.address}/orders"
    variants = {}
    for name, sink in (("PostgreSQL", postgres), ("SQLite", sqlite)):
        for source, url in sources.items():
            variants[f"{source} to {name}"] = lambda sink=sink, url=url: Run(
                url, sink.fresh(), broker, options).measure(options.orders)
        variants[f"bare {name}"] = lambda sink=sink: load("bare", sink.fresh(), options.orders, options)
    variants["one by one PostgreSQL"] = lambda: load(
        "single", postgres.fresh(), max(1000, options.orders // 20), options)
    return interleaved(variants, options.rounds, lambda measure: measure())


def ratios(raw):
    found = {}
    for name in raw:
        if " to " not in name:
            continue
        source, sink = name.split(" to ")
        found[f"{name} / bare"] = median(raw[name], "rate") / median(raw[f"bare {sink}"], "rate")
        if sink == "PostgreSQL":
            found[f"{name} / one by one"] = median(raw[name], "rate") / median(raw["one by one PostgreSQL"], "rate")
    return found


def main():
    parser = argparse.ArgumentParser(prog="./dev bench pipeline")
    parser.add_argument("--quick", action="store_true", help="few orders, two rounds: a smoke test")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--orders", type=int, default=100_000)
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--no-kafka", action="store_true")
    parser.add_argument("--out", default=os.path.join(ROOT, "bench", "results"))
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.orders = 2, 10_000
    servers = [Broker("always", LOAD), Postgres(), Sqlite()]
    kafka = None
    if not options.no_kafka:
        if Kafka.missing():
            print(f"SKIPPED: from Kafka: {Kafka.missing()}")
        else:
            kafka = Kafka()
            servers.append(kafka)
    try:
        report = {"orders": orders_suite(*servers[:3], kafka, options)}
    finally:
        for server in servers:
            server.close()
    settings = vars(options) | {"PostgreSQL": servers[1].version, "Kafka": kafka.version if kafka else "none",
                                "durability": "every commit synced, in both databases"}
    save("pipeline", report, ratios(report["orders"]), settings, options.out,
         "Baton pipelines: orders per second (median)")


if __name__ == "__main__":
    main()
