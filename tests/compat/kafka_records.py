#!/usr/bin/env python3
"""The other side of stream_interop_test: kafka-python, which shares no code with us, on our files.

  kafka_records.py read FOLDER     prints every record of the segments in FOLDER, one a line, after
                                   checking each batch's checksum and every entry of the indexes
  kafka_records.py write FOLDER    writes COMPRESSION.batch and, as lines, COMPRESSION.txt for each

A line is: offset, timestamp, key, value, then name=value of each header; bytes in hex, "-" for none.
Exit 77, with SKIPPED and the reason, when a package is missing.
"""

import pathlib
import struct
import sys

try:
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
    from kafka.record.memory_records import MemoryRecords
    import kafka.codec as codec
except ImportError as missing:
    print(f"SKIPPED: {missing}; install python3-kafka", file=sys.stderr)
    sys.exit(77)

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
NEEDS = {"snappy": (codec.has_snappy, "python3-snappy"), "lz4": (codec.has_lz4, "python3-lz4"),
         "zstd": (codec.has_zstd, "python3-zstandard")}
TIME = 1_700_000_000_000


def check_codecs():
    for name, (available, package) in NEEDS.items():
        if not available():
            print(f"SKIPPED: no {name}; install {package}", file=sys.stderr)
            sys.exit(77)


def text(value):
    return "-" if value is None else "x" + bytes(value).hex()


def line(offset, timestamp, key, value, headers):
    parts = [str(offset), str(timestamp), text(key), text(value)]
    parts += [f"{name}={text(content)}" for name, content in headers]
    return " ".join(parts)


def batches(log):
    """(position, batch) of each batch of a segment."""
    position = 0
    while position < len(log):
        _, length = struct.unpack_from(">qi", log, position)
        batch = DefaultRecordBatch(log[position:position + 12 + length])
        assert batch.validate_crc(), f"bad CRC at {position}"
        yield position, batch
        position += 12 + length


def check_index(path, base, ends):
    """Each entry names the last offset of the batch that begins at its position."""
    for relative, position in struct.iter_unpack(">ii", path.read_bytes()):
        assert ends[position] == base + relative, f"{path}: {relative} at {position}"


def check_time_index(path, base, greatest):
    """Each entry names the first batch that reaches its timestamp."""
    entries = list(struct.iter_unpack(">qi", path.read_bytes()))
    assert entries == sorted(entries), path
    for timestamp, relative in entries:
        offset = base + relative
        assert greatest[offset] == timestamp, f"{path}: {timestamp} at {offset}"
        assert all(time < timestamp for end, time in greatest.items() if end < offset), path
    assert entries[-1][0] == max(greatest.values()), path


def read(folder):
    for path in sorted(folder.glob("*.log")):
        log = path.read_bytes()
        base = int(path.stem)
        ends, greatest = {}, {}
        for position, batch in batches(log):
            last = batch.base_offset + batch.last_offset_delta
            ends[position], greatest[last] = last, batch.max_timestamp
            for record in batch:
                print(line(record.offset, record.timestamp, record.key, record.value, record.headers))
        if path.with_suffix(".index").exists():
            check_index(path.with_suffix(".index"), base, ends)
            check_time_index(path.with_suffix(".timeindex"), base, greatest)
        # The reader that Kafka clients use for fetched records finds the same batches.
        records, count = MemoryRecords(log), 0
        while records.has_next():
            records.next_batch()
            count += 1
        assert count == len(ends), path


def samples():
    yield b"key", b"value", [("trace", b"abc"), ("empty", b""), ("null", None)]
    yield None, b"no key", []
    yield b"no value", None, []
    yield b"", b"", []
    for i in range(2000):
        yield f"key {i % 17}".encode(), f"value {i * i} ".encode() * (i % 5), [("n", b"%d" % i)]
    yield b"large", bytes(i * 7 % 251 for i in range(200_000)), []


def write(folder):
    for name, number in CODECS.items():
        builder = DefaultRecordBatchBuilder(
            magic=2, compression_type=number, is_transactional=False, producer_id=12,
            producer_epoch=3, base_sequence=0, batch_size=1 << 20)
        lines = []
        for offset, (key, value, headers) in enumerate(samples()):
            timestamp = TIME + offset * 3 % 1000
            assert builder.append(offset, timestamp, key, value, headers), offset
            lines.append(line(offset, timestamp, key, value, headers))
        (folder / f"{name}.batch").write_bytes(bytes(builder.build()))
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    check_codecs()
    {"read": read, "write": write}[sys.argv[1]](pathlib.Path(sys.argv[2]))
