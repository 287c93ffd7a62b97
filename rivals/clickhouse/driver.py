#!/usr/bin/env python3
"""A real ClickHouse behind a line protocol, so that a study can drive it.

A request a line on standard input, an answer a line on standard output, both JSON:

    {"sql": "SELECT 1"}
    {"seconds": 0.0012, "result": "1\\n", "error": null}

`sql` may hold several statements divided by semicolons; "format" (TabSeparated
unless given) formats the result. `seconds` is wall time around the query alone:
starting the engine, JSON and pipes are not in it. The end of the input ends the
driver. Every request gets exactly one answer; if the engine takes the process
down, the reader sees the end of the stream.

    driver.py [--data DIR]

DIR holds the engine's state and is its working directory; without it, a temporary
folder under TMPDIR, or else /var/tmp (a disk, where /tmp may be RAM), removed at
the end.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

try:
    from chdb import session
except ImportError:
    venv_python = HERE / ".venv/bin/python"
    if Path(sys.prefix) == HERE / ".venv" or not venv_python.exists():
        sys.exit(f"chdb is not installed: run {HERE / 'setup.sh'}")
    os.execv(venv_python, [venv_python, __file__, *sys.argv[1:]])


class Engine:
    """One engine a process: chdb allows no more."""

    def __init__(self, data: Path):
        # The path of an SSD_CACHE must lie under user_files_path. In chdb that is
        # empty, whatever system.server_settings says, and an empty path means the
        # working directory.
        os.chdir(data)
        self.session = session.Session(str(data / "session"))

    def run(self, sql: str, output_format: str) -> dict:
        error, result = None, None
        start = time.perf_counter()
        try:
            answer = self.session.query(sql, output_format)
            seconds = time.perf_counter() - start
            result = answer.bytes().decode(errors="backslashreplace")
        except Exception as exception:  # chdb has several error types, and no common one
            seconds = time.perf_counter() - start
            error = str(exception)
        return {"seconds": seconds, "result": result, "error": error}


def answer(engine: Engine, line: str) -> dict:
    try:
        request = json.loads(line)
        sql, output_format = request["sql"], request.get("format", "TabSeparated")
    except (ValueError, KeyError, TypeError, AttributeError):
        return {"seconds": 0.0, "result": None, "error": f"not a request: {line.strip()}"}
    return engine.run(sql, output_format)


def main() -> None:
    parser = argparse.ArgumentParser(description="ClickHouse behind a line protocol.")
    parser.add_argument("--data", type=Path)
    data = parser.parse_args().data
    temporary = None
    if data is None:
        data = temporary = Path(tempfile.mkdtemp(prefix="clickhouse-driver-", dir=os.environ.get("TMPDIR", "/var/tmp")))
    data.mkdir(parents=True, exist_ok=True)

    # The protocol keeps the two streams for itself: what the engine or a program it
    # starts prints goes to standard error, and none of them reads our requests.
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)

    try:
        engine = Engine(data.resolve())
        for line in requests:
            if line.strip():
                print(json.dumps(answer(engine, line)), file=answers, flush=True)
        engine.session.close()
    finally:
        if temporary is not None:
            os.chdir("/")
            shutil.rmtree(temporary, ignore_errors=True)


if __name__ == "__main__":
    main()
