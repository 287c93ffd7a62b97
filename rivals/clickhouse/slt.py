#!/usr/bin/env python3
"""Runs sqllogictest files against a real ClickHouse.

    slt.py [--timeout SECONDS] FILE_OR_FOLDER...

So that the files which Granary passes are known to be ClickHouse's behaviour and not
our memory of it. Files named granary_* are skipped: they test what only Granary has.
Exit status: 0 if all records passed, 1 if one failed, 2 if a file could not be read.

Every file gets an engine, a data folder and a `default` database of its own; the data
folder is the working directory, so `PATH './name'` is the way to name an SSD_CACHE
file (ClickHouse needs the folder, even that one).

Records, divided by empty lines; `#` begins a comment:

    statement ok                    statement error [REGEX]
    <sql>                           <sql>

    query TI [nosort|rowsort|valuesort]     query error [REGEX]
    <sql>                                   <sql>
    ----
    <a line a row, values divided by blanks; a line a value under valuesort>

    onlyif clickhouse               skipif clickhouse          (before a record; the
    halt                                                        other name is granary)

A letter a column: its number is checked, the letters are not. Values are those of
TabSeparated; NULL is `NULL`, an empty string is `(empty)`, a line break or tab inside a
value stays `\\n` or `\\t`. Runs of blanks count as one. Under rowsort and valuesort
both sides are sorted.
"""

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from client import ClickHouse, EngineDied

ENGINE = "clickhouse"
ENGINES = {ENGINE, "granary"}
STACK_TRACE = re.compile(r", Stack trace \(when copying.*?\n(?= \(version )", re.DOTALL)
SORTS = {"nosort", "rowsort", "valuesort"}


class Malformed(Exception):
    """The file is not a sqllogictest file that we understand."""


class Mismatch(Exception):
    """The engine did something else than the file says."""


@dataclass
class Record:
    line: int
    kind: str  # "statement" or "query"
    sql: str
    error: str | None = None  # a regular expression; None: must succeed
    columns: int = 0
    sort: str = "nosort"
    expected: list[str] = field(default_factory=list)


def paragraphs(text: str):
    """(line number, lines) of every block between empty lines, comments taken out."""
    block, start = [], 0
    for number, line in enumerate(text.splitlines() + [""], 1):
        if line.lstrip().startswith("#"):
            continue
        if line.strip():
            start = start if block else number
            block.append(line)
        elif block:
            yield start, block
            block = []


def parse(text: str) -> list[Record]:
    records = []
    for number, block in paragraphs(text):
        wanted = True
        while block and block[0].split()[0] in ("onlyif", "skipif"):
            word, *names = block.pop(0).split()
            number += 1
            if len(names) != 1 or names[0] not in ENGINES:
                raise Malformed(f"line {number - 1}: {word} takes one of {', '.join(sorted(ENGINES))}")
            wanted &= (names[0] == ENGINE) == (word == "onlyif")
        if not block:
            raise Malformed(f"line {number}: a condition without a record")
        if block == ["halt"]:
            if wanted:
                break
            continue
        record = parse_record(number, block)
        if wanted:
            records.append(record)
    return records


def parse_record(number: int, block: list[str]) -> Record:
    header, body = block[0].split(), block[1:]
    expected = None
    if "----" in body:
        split = body.index("----")
        body, expected = body[:split], body[split + 1 :]
    sql = "\n".join(body)
    if not sql:
        raise Malformed(f"line {number}: no SQL under {block[0]!r}")
    match header:
        case ["statement", "ok"] if expected is None:
            return Record(number, "statement", sql)
        case [("statement" | "query") as kind, "error", *_] if expected is None:
            pattern = block[0].split("error", 1)[1].strip()
            try:
                re.compile(pattern)
            except re.error as error:
                raise Malformed(f"line {number}: {error} in {pattern!r}") from None
            return Record(number, kind, sql, error=pattern)
        case ["query", types, *sort] if expected is not None and len(sort) <= 1 and set(sort) <= SORTS:
            return Record(number, "query", sql, columns=len(types), sort=(sort or ["nosort"])[0], expected=expected)
        case _:
            raise Malformed(f"line {number}: not understood: {block[0]!r}" + ("" if expected is None else " with ----"))


def value(text: str) -> str:
    if text == r"\N":
        return "NULL"
    # TabSeparated escapes quotes and backslashes besides what would break the lines.
    text = re.sub(r"\\(['\\])", r"\1", text)
    return " ".join(text.split()) or "(empty)"


def check(record: Record, reply: dict) -> None:
    if record.error is not None:
        if reply["error"] is None:
            raise Mismatch(f"an error was expected, but it answered\n{reply['result']}")
        if not re.search(record.error, reply["error"]):
            raise Mismatch(f"the error does not match {record.error!r}:\n{STACK_TRACE.sub('', reply['error'])}")
        return
    if reply["error"] is not None:
        raise Mismatch(STACK_TRACE.sub("", reply["error"]))
    if record.kind == "statement":
        return

    rows = [[value(cell) for cell in line.split("\t")] for line in reply["result"].split("\n")[:-1]]
    for row in rows:
        if len(row) != record.columns:
            raise Mismatch(f"{record.columns} columns expected, {len(row)} answered")
    if record.sort == "valuesort":
        actual = sorted(cell for row in rows for cell in row)
    else:
        actual = [" ".join(row) for row in rows]
    expected = [" ".join(line.split()) for line in record.expected]
    if record.sort != "nosort":
        actual, expected = sorted(actual), sorted(expected)
    if actual != expected:
        raise Mismatch("expected\n" + indented(expected) + "\nanswered\n" + indented(actual))


def indented(lines: list[str]) -> str:
    return "\n".join("    " + line for line in lines) or "    (nothing)"


def run_file(path: Path, timeout_seconds: float) -> tuple[int, int]:
    """How many records passed and failed."""
    records = parse(path.read_text(encoding="utf-8"))
    passed = failed = 0
    with ClickHouse(timeout_seconds=timeout_seconds) as engine:
        for record in records:
            try:
                check(record, engine.ask(record.sql))
                passed += 1
            except (Mismatch, EngineDied) as reason:
                failed += 1
                print(f"{path}:{record.line}: {record.sql}\n{reason}\n", file=sys.stderr)
                if isinstance(reason, EngineDied):
                    break
    return passed, failed


def files(arguments: list[Path]) -> list[Path]:
    found = []
    for argument in arguments:
        found += sorted(argument.rglob("*.slt")) if argument.is_dir() else [argument]
    return [path for path in found if not path.name.startswith("granary_")]


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs sqllogictest files against a real ClickHouse.")
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds a record may take")
    arguments = parser.parse_args()
    passed = failed = 0
    for path in files(arguments.paths):
        try:
            file_passed, file_failed = run_file(path, arguments.timeout)
        except (Malformed, OSError, UnicodeDecodeError) as reason:
            print(f"{path}: {reason}", file=sys.stderr)
            sys.exit(2)
        print(f"{path}: {file_passed} passed, {file_failed} failed")
        passed, failed = passed + file_passed, failed + file_failed
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
