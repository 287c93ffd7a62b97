#!/usr/bin/env python3
"""Where ClickHouse's cache dictionaries go wrong, shown on the engine itself.

    findings.py [NAME...]        all of them without a name; `findings.py --list`

Every finding is a small program that prints what it saw. docs/clickhouse.md says what
follows from it, and that each was run; a finding that a newer ClickHouse no longer
shows is to be taken out of there. Each has an engine and a data folder of its own.
"""

import argparse
import ctypes
import hashlib
import os
import platform
import shlex
import time
from pathlib import Path
from random import Random

from client import SOURCE, ClickHouse, EngineDied, QueryFailed

MIB = 1 << 20
READ_BUFFER_SIZE = 16 * MIB  # where disk reads work: see read_buffer()
FINDINGS = {}


def finding(function):
    FINDINGS[function.__name__] = function
    return function


def ssd(**parameters: int) -> str:
    settings = {"PATH": "'./d'", "FILE_SIZE": 64 * MIB, "READ_BUFFER_SIZE": READ_BUFFER_SIZE} | parameters
    return "SSD_CACHE(" + " ".join(f"{name} {value}" for name, value in settings.items()) + ")"


def create(
    engine: ClickHouse,
    layout: str,
    command: str = str(SOURCE),
    form: str = "RowBinary",
    name: str = "d",
    lifetime: str | None = "MIN 100000 MAX 100000",
) -> None:
    """A dictionary with one string attribute `s`, over a shell command."""
    quoted = command.replace("\\", "\\\\").replace("'", "\\'")
    engine.query(f"DROP DICTIONARY IF EXISTS {name}")
    engine.query(
        f"CREATE DICTIONARY {name} (id UInt64, s String DEFAULT 'none') PRIMARY KEY id "
        f"SOURCE(EXECUTABLE(COMMAND '{quoted}' FORMAT '{form}')) "
        f"LAYOUT({layout})" + (f" LIFETIME({lifetime})" if lifetime else "")
    )


def awk(program: str) -> str:
    return f"awk -v OFS='\\t' {shlex.quote(program)}"


def system(engine: ClickHouse, column: str) -> str:
    return engine.query(f"SELECT {column} FROM system.dictionaries WHERE name = 'd'")[0].strip()


def code(error: QueryFailed) -> str:
    """The innermost error name, such as CANNOT_READ_ALL_DATA."""
    names = [word.strip("(),.") for word in str(error).split() if word.startswith("(") and word.strip("(),.").isupper()]
    return names[0] if names else str(error)[:200]


@finding
def read_buffer():
    """The longest string that SSD_CACHE can read back from disk, by READ_BUFFER_SIZE."""
    for size, lengths in (
        (65536, range(0, 9)),
        (131072, range(16, 25)),
        (MIB, range(240, 249)),
        (4 * MIB, range(1008, 1017)),
        (16 * MIB, range(4044, 4053)),
    ):
        with ClickHouse() as engine:
            # Key k has a string of k bytes; keys from 100 000 on push it out to disk.
            pad = 'BEGIN { pad = sprintf("%5000s", ""); gsub(/ /, "x", pad) }'
            create(engine, ssd(READ_BUFFER_SIZE=size), awk(pad + " { print $1, substr(pad, 1, $1 % 100000) }"), "TabSeparated")
            wanted = ", ".join(map(str, lengths))
            engine.query(f"SELECT ignore(dictGet('d', 's', toUInt64(arrayJoin([{wanted}]))))")
            engine.query("SELECT sum(ignore(dictGet('d', 's', number * 100000 + 4000))) FROM numbers(1, 8)")
            longest, errors = None, set()
            for length in lengths:
                try:
                    right = engine.query(f"SELECT dictGet('d', 's', toUInt64({length})) = repeat('x', {length})")[0] == "1\n"
                    longest = length if right else longest
                except QueryFailed as error:
                    errors.add(code(error))
            print(
                f"READ_BUFFER_SIZE {size:>8}: strings of {lengths[0]}..{lengths[-1]} bytes, "
                f"longest readable {longest}; errors {', '.join(sorted(errors)) or 'none'}"
            )


@finding
def wrong_values():
    """Values checked over short lives and several passes of the file, by MAX_PARTITIONS_COUNT."""
    rounds, file = 60, 256 * 1024
    # Of one width, so that an entry read in the wrong place is a wrong value and not an error.
    source = awk('{ printf "%d\\t%010d\\n", $1, $1 * 10 }')
    for partitions in (1, 2, 4, 8):
        random = Random(partitions)
        bad_rounds = wrong = lookups = 0
        example, failures = "", set()
        with ClickHouse() as engine:
            layout = ssd(FILE_SIZE=file // partitions, WRITE_BUFFER_SIZE=16384, MAX_PARTITIONS_COUNT=partitions)
            create(engine, layout, source, "TabSeparated", lifetime="MIN 1 MAX 2")
            for _ in range(rounds):
                batch, start = random.randrange(500, 9000), random.randrange(1 << 32)
                try:
                    count, pair = engine.query(
                        "SELECT countIf(wrong) AS n, if(n = 0, '', toString(anyIf((k, v), wrong))) FROM "
                        f"(SELECT intHash64(number + {start}) % 9000 AS k, dictGet('d', 's', k) AS v, "
                        f"v != leftPad(toString(k * 10), 10, '0') AS wrong FROM numbers({batch}))"
                    )[0].rstrip("\n").split("\t")
                except QueryFailed as error:
                    failures.add(code(error))
                    continue
                lookups, wrong, bad_rounds = lookups + batch, wrong + int(count), bad_rounds + (int(count) > 0)
                example = example or pair.replace("\\'", "'")
        print(
            f"MAX_PARTITIONS_COUNT {partitions}: {bad_rounds} of {rounds} rounds with wrong values, {wrong} wrong of {lookups}"
            + (f", such as (key, value) {example}" if example else "")
            + (f"; failed: {', '.join(sorted(failures))}" if failures else "")
        )


@finding
def disk_access():
    """What one access to disk costs, and what one io_destroy costs on this kernel."""
    if platform.machine() == "x86_64":
        call = ctypes.CDLL(None, use_errno=True).syscall
        seconds = []
        for _ in range(30):
            context = ctypes.c_ulong(0)
            if call(206, ctypes.c_uint(128), ctypes.byref(context)) != 0:
                print(f"io_setup: {os.strerror(ctypes.get_errno())}")
                break
            start = time.perf_counter()
            call(207, context)
            seconds.append(time.perf_counter() - start)
        if seconds:
            print(f"io_destroy, on its own: median {sorted(seconds)[len(seconds) // 2] * 1000:.1f} ms")
    with ClickHouse() as engine:
        for name, layout in (("SSD_CACHE", ssd(WRITE_BUFFER_SIZE=MIB)), ("CACHE", "CACHE(SIZE_IN_CELLS 262144)")):
            create(engine, layout)
            engine.query("SELECT sum(ignore(dictGet('d', 's', number))) FROM numbers(100000)")
            singles = sorted(engine.query(f"SELECT dictGet('d', 's', toUInt64({key * 100}))")[1] for key in range(30))
            print(f"{name}, a query for one key: median {singles[len(singles) // 2] * 1000:.1f} ms")
        for size in (4096, 65536, MIB):
            create(engine, ssd(WRITE_BUFFER_SIZE=size))
            fill = engine.query("SELECT sum(ignore(dictGet('d', 's', number))) FROM numbers(50000)")[1]
            print(f"SSD_CACHE, WRITE_BUFFER_SIZE {size:>8}, filling 50 000 keys: {fill:.2f} s")


@finding
def index_memory():
    """bytes_allocated less the file and the write buffer, which it counts too."""
    file, buffer = 256 * MIB, 16 * MIB
    with ClickHouse() as engine:
        for keys in (100_000, 300_000, 1_000_000):
            create(engine, ssd(FILE_SIZE=file, WRITE_BUFFER_SIZE=buffer, MAX_STORED_KEYS=1024))
            engine.query(f"SELECT sum(ignore(dictGet('d', 's', number))) FROM numbers({keys})")
            allocated, elements = int(system(engine, "bytes_allocated")), int(system(engine, "element_count"))
            index = allocated - file - buffer
            print(
                f"SSD_CACHE, {keys:>7} keys asked, MAX_STORED_KEYS 1024: {elements} kept, bytes_allocated {allocated}, "
                f"of them index {index}: {index / elements:.1f} bytes a key"
            )
        for name, layout in (
            ("SSD_CACHE of one partition of 1 MiB", ssd(FILE_SIZE=MIB, WRITE_BUFFER_SIZE=65536, MAX_PARTITIONS_COUNT=1)),
            ("CACHE of 1000 cells", "CACHE(SIZE_IN_CELLS 1000)"),
        ):
            create(engine, layout, "cat > /dev/null")
            engine.query("SELECT sum(ignore(dictGet('d', 's', number))) FROM numbers(1000000)")
            print(f"{name}, 1 000 000 keys that the source lacks: bytes_allocated {system(engine, 'bytes_allocated')}")


@finding
def restart():
    """What is left after a restart, a reload and a drop."""
    first = ClickHouse()
    data = first.data
    file = data / "d.bin"
    asked = data / "asked"
    command = f"tee -a {asked} | " + awk("{ print $1, $1 * 10 }")
    query = "SELECT sum(ignore(dictGet('d', 's', number))) FROM numbers(1000)"

    def digest() -> str:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]

    def report(when: str, engine: ClickHouse) -> None:
        asked_keys = len(asked.read_text().splitlines())
        print(f"{when}: {system(engine, 'element_count')} resident, {asked_keys} keys asked of the source so far")

    try:
        create(first, ssd(), command, "TabSeparated")
        first.query(query)
        first.query(query)
        report("filled", first)
        before = digest()
        # A clean stop. The folder stays: this client's close() would remove it.
        first.process.stdin.close()
        first.process.wait()
        with ClickHouse(data) as second:
            print(f"after a restart: status {system(second, 'status')}, {system(second, 'element_count')} resident")
            second.query(query)
            report("after a restart and the same query", second)
            second.query("SYSTEM RELOAD DICTIONARY d")
            report("after SYSTEM RELOAD DICTIONARY", second)
            print(f"file before the restart {before}, now {digest()}")
            second.query("DROP DICTIONARY d")
            time.sleep(1)
            print(f"after DROP DICTIONARY: the file {'is still there' if file.exists() else 'is gone'}")
    finally:
        first.close()


@finding
def same_path():
    """Two dictionaries, one PATH."""
    with ClickHouse() as engine:
        for name, factor in (("d", 10), ("e", 7)):
            create(engine, ssd(), awk(f"{{ print $1, $1 * {factor} }}"), "TabSeparated", name=name)
        engine.query("SELECT sum(ignore(dictGet('d', 's', number))) FROM numbers(2000)")
        engine.query("SELECT sum(ignore(dictGet('e', 's', number))) FROM numbers(2000)")
        try:
            wrong = engine.query("SELECT countIf(dictGet('d', 's', number) != toString(number * 10)) FROM numbers(2000)")[0]
            print(f"both created and filled; wrong values in the first: {wrong.strip()} of 2000")
        except QueryFailed as error:
            print(f"both created and filled; reading the first: {code(error)}")


@finding
def extra_key():
    """The source of a DIRECT dictionary answers a key that was not asked for."""
    exact, uninvited = awk('{ print $1, "a" }'), awk('{ print $1, "a"; print $1 + 1, "b" }')
    for source, command in (("exact", exact), ("with a key more", uninvited)):
        for function in ("dictGet('d', 's', toUInt64(5))", "dictHas('d', toUInt64(5))"):
            with ClickHouse(timeout_seconds=30) as engine:
                create(engine, "DIRECT()", command, "TabSeparated", lifetime=None)
                try:
                    outcome = engine.query(f"SELECT {function}")[0].strip()
                except EngineDied as death:
                    outcome = f"no answer, {death}"
                print(f"DIRECT, source {source}: {function}: {outcome}")
    with ClickHouse() as engine:
        create(engine, "CACHE(SIZE_IN_CELLS 1000)", uninvited, "TabSeparated")
        engine.query("SELECT dictGet('d', 's', toUInt64(5))")
        print(f"CACHE, one key asked: {system(engine, 'element_count')} resident")


@finding
def corruption():
    """One flipped bit on disk."""
    with ClickHouse() as engine:
        create(engine, ssd())
        engine.query("SELECT sum(ignore(dictGet('d', 's', number))) FROM numbers(2000)")
        with open(engine.data / "d.bin", "r+b") as file:
            file.seek(100)
            byte = file.read(1)[0]
            file.seek(100)
            file.write(bytes([byte ^ 1]))
            file.flush()
            os.fsync(file.fileno())
        for attempt in (1, 2):
            try:
                answer = engine.query("SELECT dictGet('d', 's', toUInt64(0))")[0].strip()
                print(f"attempt {attempt}: {answer}")
            except QueryFailed as error:
                print(f"attempt {attempt}: the query fails, {code(error)}")


@finding
def table_read():
    """SELECT * after the source has lost the keys and the entries have expired."""
    with ClickHouse() as engine:
        rows = engine.data / "rows"
        rows.write_text("1\tone\n2\ttwo\n")
        create(engine, "CACHE(SIZE_IN_CELLS 1000)", f"cat > /dev/null; cat {rows}", "TabSeparated", lifetime="MIN 1 MAX 1")
        engine.query("SELECT dictGet('d', 's', arrayJoin([1, 2]::Array(UInt64)))")
        print(f"resident: {engine.query('SELECT * FROM d ORDER BY id')[0].split()}")
        rows.write_text("2\ttwo\n")
        time.sleep(4)
        print(f"after the source lost key 1: {engine.query('SELECT * FROM d ORDER BY id')[0].split()}")


@finding
def parameters():
    """Layout parameters that are accepted, refused or late to be refused."""
    with ClickHouse() as engine:
        for layout in (
            ssd(NOSUCH=5),
            ssd(ALLOW_READ_EXPIRED_KEYS=0),
            "CACHE(SIZE_IN_CELLS 1000 ALLOW_READ_EXPIRED_KEYS 0)",
            ssd(WRITE_BUFFER_SIZE=5000),
            "CACHE()",
        ):
            outcome = "created"
            try:
                create(engine, layout)
                engine.query("SELECT dictGet('d', 's', toUInt64(1))")
                outcome += ", first query answered"
            except QueryFailed as error:
                outcome = ("created, first query fails: " if "SELECT dictGet" in str(error) else "refused: ") + code(error)
            print(f"{layout}: {outcome}")


@finding
def wide_keys():
    """Keys of more than 64 bits, over a CLICKHOUSE source."""
    with ClickHouse() as engine:
        engine.query("CREATE TABLE t (id UInt128, s String) ENGINE = Memory")
        engine.query("INSERT INTO t VALUES ('5', 'small'), ('340282366920938463463374607431768211455', 'large')")
        for layout in ("HASHED()) LIFETIME(0", "CACHE(SIZE_IN_CELLS 1000)) LIFETIME(1000", ssd() + ") LIFETIME(1000", "DIRECT("):
            engine.query(
                "CREATE OR REPLACE DICTIONARY d (id UInt128, s String DEFAULT 'none') PRIMARY KEY id "
                f"SOURCE(CLICKHOUSE(TABLE 't')) LAYOUT(COMPLEX_KEY_{layout})" + (")" if layout == "DIRECT(" else "")
            )
            found = engine.query("SELECT s, dictGet('d', 's', tuple(id)) FROM t ORDER BY id")[0].split()
            print(f"COMPLEX_KEY_{layout.split('(')[0]}: {found[0]} is {found[1]}, {found[2]} is {found[3]}")


@finding
def cache_keeps():
    """How many of as many distinct keys as there are cells CACHE keeps."""
    with ClickHouse() as engine:
        create(engine, "CACHE(SIZE_IN_CELLS 1048576)")
        engine.query("SELECT sum(ignore(dictGet('d', 's', number))) FROM numbers(1000000)")
        print(f"1 000 000 keys into 1 048 576 cells: {system(engine, 'element_count')} kept")


def main() -> None:
    parser = argparse.ArgumentParser(description="Where ClickHouse's cache dictionaries go wrong.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(FINDINGS):
        parser.error(f"no finding {', '.join(sorted(unknown))}; there are {', '.join(FINDINGS)}")
    for name in arguments.names or FINDINGS:
        print(f"{name}: {FINDINGS[name].__doc__}")
        if not arguments.list:
            FINDINGS[name]()
            print(flush=True)


if __name__ == "__main__":
    main()
