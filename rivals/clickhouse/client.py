"""Speaks driver.py's protocol from Python; the studies in Rust speak it themselves."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The command for SOURCE(EXECUTABLE(COMMAND '...' FORMAT 'RowBinary')).
SOURCE = HERE / "source"


class EngineDied(Exception):
    """The engine took its process down, or did not answer in time."""


class QueryFailed(Exception):
    """The engine refused a query; the text is its message."""


class ClickHouse:
    def __init__(self, data: Path | None = None, timeout_seconds: float = 600.0):
        # Ours to remove, and not the driver's: it may be killed.
        self.temporary = None
        if data is None:
            self.temporary = tempfile.TemporaryDirectory(
                prefix="clickhouse-driver-", dir=os.environ.get("TMPDIR", "/var/tmp"), ignore_cleanup_errors=True
            )
            data = Path(self.temporary.name)
        self.data = data
        command = [sys.executable, str(HERE / "driver.py"), "--data", str(data)]
        self.timeout_seconds = timeout_seconds
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, sql: str, output_format: str = "TabSeparated") -> dict:
        """The answer as the driver gave it, errors included."""
        timer = threading.Timer(self.timeout_seconds, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps({"sql": sql, "format": output_format}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            raise EngineDied(f"exit status {self.process.wait()} (timeout {self.timeout_seconds:g} s) at: {sql}")
        return json.loads(line)

    def query(self, sql: str) -> tuple[str, float]:
        """The result and the seconds it took."""
        reply = self.ask(sql)
        if reply["error"] is not None:
            raise QueryFailed(f"{reply['error']}\nin: {sql}")
        return reply["result"], reply["seconds"]

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        if self.temporary is not None:
            self.temporary.cleanup()

    def __enter__(self) -> "ClickHouse":
        return self

    def __exit__(self, *_) -> None:
        self.close()
