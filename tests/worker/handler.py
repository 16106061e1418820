#!/usr/bin/env python3
"""A handler for tests: appends to HANDLER_LOG that it works, every few milliseconds, until it is told to stop.

Each line is "partition epoch pid word time", the time that of CLOCK_BOOTTIME in nanoseconds. The words: start,
alive, stop, and the names of signals. HANDLER_DRAIN is how many seconds it works on after SIGTERM ("inf": for
ever), HANDLER_CRASH how many until it fails.
"""
import os
import signal
import time

log = os.open(os.environ["HANDLER_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
drain = float(os.environ.get("HANDLER_DRAIN", "0"))
crash = float(os.environ.get("HANDLER_CRASH", "inf"))
began = time.monotonic()
stop_at = float("inf")


def say(word):
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    os.write(log, b"%s %s %d %s %d\n" % (os.environb[b"BATON_PARTITION"], os.environb[b"BATON_EPOCH"],
                                         os.getpid(), word, now))


def on_term(*_):
    global stop_at
    stop_at = time.monotonic() + drain


signal.signal(signal.SIGTERM, on_term)
for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, lambda number, _: say(signal.Signals(number).name.encode()))
say(b"start")
while time.monotonic() < stop_at:
    if time.monotonic() - began > crash:
        os._exit(3)
    say(b"alive")
    time.sleep(0.01)
say(b"stop")
