"""The brokers that Baton is measured against: from Debian's packages, each with its own client library,
on loopback in a temporary folder. Every setting that is not the peer's default is named here, and goes
into the report."""
import os
import re
import shutil
import subprocess
import sys

from harness import BUILD, ROOT, Peer, free_port

PACKAGES = ["redis-server", "nats-server", "libhiredis-dev", "libnats-dev"]
PROGRAMS = ["bench_peer_redis", "bench_peer_nats"]
KEY_PACKAGES = ["etcd-server"]
KEY_PROGRAMS = ["bench_kv_load"]  # Also loads etcd.

# Debian starts a daemon when it installs one, unless this policy forbids it; an existing policy is
# left alone.
INSTALL = """
set -e
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\\nexit 101\\n' > $policy
  chmod 755 $policy
fi
apt-get update -q
apt-get install -q -y --no-install-recommends "$@"
"""


def add_arguments(parser):
    parser.add_argument("--peers", action="store_true",
                        help="install the peers and measure them in the same rounds")
    parser.add_argument("--peers-build", default=os.path.relpath(BUILD, ROOT), metavar="FOLDER",
                        help="where to build the peers' programs; default: %(default)s")


def start(options, make, packages=PACKAGES, programs=PROGRAMS):
    """The peers that `make` starts, or none when they were not asked for."""
    if not options.peers:
        return []
    install(packages)
    folder = os.path.join(ROOT, options.peers_build)
    build(folder, programs)
    peers = make(folder)
    print("\npeers")
    for peer in peers:
        print(f"  {peer.name} ({peer.durability}): {peer.version}; {peer.settings}")
    return peers


def installed(package):
    status = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", package],
                            capture_output=True, text=True).stdout
    return status == "installed"


def install(packages):
    missing = [package for package in packages if not installed(package)]
    if not missing:
        return
    as_root = ["env", "DEBIAN_FRONTEND=noninteractive"]
    if os.geteuid() != 0:
        as_root.insert(0, "sudo")
    subprocess.run([*as_root, "sh", "-c", INSTALL, "sh", *missing], check=True)


def build(folder, programs):
    # Configures again, because the libraries may have been installed after the first time.
    for command in (["cmake", "--preset", "release", "-B", folder],
                    ["cmake", "--build", folder, "--target", *programs]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)


def version(server, library):
    # Debian puts servers where a plain user's PATH does not always point.
    output = subprocess.run([program(server), "--version"], capture_output=True, text=True).stdout
    number = re.search(r"v=?([0-9.]+)", output).group(1)
    client = subprocess.run(["pkg-config", "--modversion", library], capture_output=True,
                            text=True).stdout.strip()
    return f"{server} {number}, {library} {client}"


def program(name):
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return shutil.which(name, path=path) or sys.exit(f"{name} is not installed")


def redis(folder, appendfsync):
    def command(port, data):
        return [program("redis-server"), "--bind", "127.0.0.1", "--port", str(port), "--dir", data,
                "--appendonly", "yes", "--appendfsync", appendfsync, "--save", ""]

    return Peer(name=f"Redis {appendfsync}", durability="fsync" if appendfsync == "always" else "OS",
                version=version("redis-server", "hiredis"), command=command,
                load_program=os.path.join(folder, "bench_peer_redis"),
                # One transaction per batch: Redis syncs once for it, not once per 16 KiB it has read.
                load_options={"transactions": 1},
                settings=f"appendonly yes, appendfsync {appendfsync}, save off; Streams, one consumer "
                         "group; XADD in MULTI/EXEC of 100 (singly for the latency), pipelined; "
                         "XREADGROUP COUNT 4096; XACK + XDEL per batch, confirmed")


def nats(folder, delivery):
    """`delivery` is pull or push for a queue, None for a stream."""
    def command(port, data):
        return [program("nats-server"), "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", data]

    queue = {"pull": "work queue, durable pull consumer, fetches of 1000 (1 for the latency)",
             "push": "work queue, durable push consumer with a deliver group"}
    settings = "file storage, default sync (every 2 minutes); async publishes, each acked, 16384 pending; "
    if delivery:
        settings += (f"{queue[delivery]}; max ack pending 4096 per consumer; explicit acks, confirmed "
                     "together at the end: the server counts none as pending")
    else:
        settings += "read by an ordered push consumer"
    return Peer(name="NATS JetStream" + (f" {delivery}" if delivery else ""), durability="OS",
                version=version("nats-server", "libnats"), command=command,
                load_program=os.path.join(folder, "bench_peer_nats"),
                load_options={"delivery": delivery} if delivery else {}, settings=settings)


def etcd(folder):
    def command(port, data):
        url = f"http://127.0.0.1:{port}"
        among_servers = f"http://127.0.0.1:{free_port()}"
        return [program("etcd"), "--data-dir", os.path.join(data, "etcd"), "--listen-client-urls", url,
                "--advertise-client-urls", url, "--listen-peer-urls", among_servers,
                "--initial-advertise-peer-urls", among_servers,
                "--initial-cluster", f"default={among_servers}"]

    output = subprocess.run([program("etcd"), "--version"], capture_output=True, text=True).stdout
    return Peer(name="etcd", durability="fsync", version="etcd " + output.split()[2], command=command,
                load_program=os.path.join(folder, "bench_kv_load"), load_options={"store": "etcd"},
                settings="one member, defaults; Txn: if mod_revision is the expected one, put")


def for_keys(folder):
    return [etcd(folder)]


def for_queues(folder):
    return [redis(folder, "everysec"), redis(folder, "always"), nats(folder, "pull"),
            nats(folder, "push")]


def for_streams(folder):
    return [nats(folder, None)]
