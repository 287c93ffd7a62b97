#!/usr/bin/env python3
"""The experiment that Granary starts from, on today's ClickHouse.

300 000 simple keys with one string attribute are filled in from an executable
source, then 30 000 and 100 000 of them are read; best of three. SSD_CACHE with four
write buffers, CACHE beside it. Beyond the experiment: 1 000 000 lookups, and batches
of one key. Every value is checked once, outside the measured time.

    seed_experiment.py [--data DIR] [--rounds 3] [--only NAME] [--csv FILE]

Prints a table, then the same as CSV. With a 4 KiB write buffer a fill takes minutes:
the engine waits for each flush.
"""

import argparse
import csv
import io
import struct
import subprocess
import sys
import time
from pathlib import Path

from client import SOURCE, ClickHouse, QueryFailed

KEYS = 300_000
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
FILE_SIZE = GIB
BLOCK_SIZE = 4096
# A multiple of the block size, and at least its square: ClickHouse takes this count of
# blocks for a count of bytes, and throws on any longer record (issue 117991).
READ_BUFFER_SIZE = 16 * MIB
SINGLE_KEYS = 30

FILL = f"SELECT sum(ignore(dictGetString('dict','str',number))) FROM numbers({KEYS})"
CHECK = f"SELECT countIf(dictGetString('dict','str',number) = 'testtesttest') FROM numbers({KEYS})"
RAM = "SELECT bytes_allocated FROM system.dictionaries WHERE name = 'dict'"
LAYOUTS = {
    "cache": ("CACHE(SIZE_IN_CELLS 2097152)", None),
    "ssd small": ("SSD_CACHE", 4 * KIB),
    "ssd": ("SSD_CACHE", 16 * KIB),
    "ssd 1m": ("SSD_CACHE", MIB),
    "ssd large": ("SSD_CACHE", FILE_SIZE),
}
COLUMNS = [
    "dictionary",
    "write_buffer",
    "fill_s",
    "read_30000_s",
    "read_100000_s",
    "read_1000000_s",
    "one_key_p50_ms",
    "one_key_p99_ms",
    "bytes_allocated",
    "right_values",
]


def read_query(lookups: int) -> str:
    return (
        "SELECT sum(ignore(dictGetString('dict','str',toUInt64(intHash64(number + 123) % 300000)))) "
        f"FROM numbers({lookups})"
    )


def layout_clause(layout: str, write_buffer: int | None) -> str:
    if write_buffer is None:
        return layout
    return (
        f"{layout}(BLOCK_SIZE {BLOCK_SIZE} WRITE_BUFFER_SIZE {write_buffer} FILE_SIZE {FILE_SIZE} "
        f"READ_BUFFER_SIZE {READ_BUFFER_SIZE} MAX_STORED_KEYS 2097152 PATH './seed')"
    )


def create(engine: ClickHouse, layout: str) -> None:
    engine.query("DROP DICTIONARY IF EXISTS dict")
    engine.query(
        "CREATE DICTIONARY dict (id UInt64, str String DEFAULT '') PRIMARY KEY id "
        f"SOURCE(EXECUTABLE(COMMAND '{SOURCE}' FORMAT 'RowBinary')) "
        f"LAYOUT({layout}) LIFETIME(MIN 100000 MAX 100000)"
    )


def best(engine: ClickHouse, sql: str, rounds: int) -> float:
    return min(engine.query(sql)[1] for _ in range(rounds))


def one_key_seconds(engine: ClickHouse) -> list[float]:
    # Spread over the keys that were flushed first, which the write buffer has left.
    keys = range(0, KEYS // 2, KEYS // 2 // SINGLE_KEYS)
    return sorted(engine.query(f"SELECT dictGetString('dict','str',toUInt64({key}))")[1] for key in keys)


def measure(engine: ClickHouse, name: str, rounds: int) -> dict:
    layout, write_buffer = LAYOUTS[name]
    fills = []
    for _ in range(rounds):
        create(engine, layout_clause(layout, write_buffer))
        fills.append(engine.query(FILL)[1])
    singles = one_key_seconds(engine)
    row = {
        "dictionary": name,
        "write_buffer": write_buffer or "",
        "fill_s": round(min(fills), 4),
        "read_30000_s": round(best(engine, read_query(30_000), rounds), 4),
        "read_100000_s": round(best(engine, read_query(100_000), rounds), 4),
        "read_1000000_s": round(best(engine, read_query(1_000_000), rounds), 4),
        "one_key_p50_ms": round(singles[len(singles) // 2] * 1000, 3),
        "one_key_p99_ms": round(singles[int(len(singles) * 0.99)] * 1000, 3),
        "bytes_allocated": int(engine.query(RAM)[0]),
        "right_values": int(engine.query(CHECK)[0]),
    }
    engine.query("DROP DICTIONARY dict")
    return row


def source_seconds(rounds: int) -> float:
    keys = struct.pack(f"<{KEYS}Q", *range(KEYS))
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([SOURCE], input=keys, stdout=subprocess.PIPE, check=True)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def table(rows: list[dict]) -> str:
    lines = [COLUMNS] + [[str(row.get(column, "")) for column in COLUMNS] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in lines)


def as_csv(rows: list[dict]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description="The seed's experiment on ClickHouse.")
    parser.add_argument("--data", type=Path, help="a folder on the device to measure, kept; otherwise a temporary one, see driver.py")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=LAYOUTS, action="append")
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    if not SOURCE.exists():
        sys.exit(f"{SOURCE} is not there: run {SOURCE.parent / 'setup.sh'}")

    print(f"the source alone, {KEYS} keys: {source_seconds(arguments.rounds):.4f} s")
    rows = []
    with ClickHouse(arguments.data) as engine:
        print(f"ClickHouse {engine.query('SELECT version()')[0].strip()}")
        bare = read_query(1_000_000).replace("dictGetString('dict','str',", "(")
        print(f"1 000 000 keys made and no dictionary: {best(engine, bare, arguments.rounds):.4f} s", flush=True)
        for name in arguments.only or LAYOUTS:
            try:
                rows.append(measure(engine, name, arguments.rounds))
            except QueryFailed as failure:
                print(f"{name}: {failure}", file=sys.stderr)
                rows.append({"dictionary": name})
            print(f"{name}: done", file=sys.stderr)
    print(table(rows), as_csv(rows), sep="\n\n", end="")
    if arguments.csv:
        arguments.csv.write_text(as_csv(rows))
    if any(row.get("right_values") != KEYS for row in rows):
        sys.exit("a layout failed or answered wrongly")


if __name__ == "__main__":
    main()
