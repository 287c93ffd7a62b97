#!/usr/bin/env python3
"""Runs ClickHouse's functional tests on a granary server.

    stateless.py [--verbose] GRANARY_BINARY FOLDER [PATTERN]

FOLDER holds .sql files with .reference files beside them, as tests/queries/0_stateless of
ClickHouse's repository does; PATTERN is a regular expression on the text of those to be
run, such as 'LAYOUT *\\((COMPLEX_KEY_)?(CACHE|DIRECT)'. Each file gets a server of its own.
`-- { serverError NAME }` behind a statement means that it must fail so. Prints a line a
file; exit status 0 if all passed.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HINT = re.compile(r"--\s*\{\s*(?:server|client)?Error\s+([^}]+?)\s*\}", re.IGNORECASE)
TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|\#[ !][^\n]*|/\*.*?\*/)|(?P<quoted>'(?:\\.|''|[^'\\])*'|`(?:\\.|[^`\\])*`|"(?:\\.|[^"\\])*")"""
    r"""|(?P<end>;)|(?P<other>[^;'`"#/-]+|.)""",
    re.DOTALL,
)


def statements(text: str):
    """(statement, expected error or None) of a file."""
    sql, hint = "", None
    pending = None
    for token in TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "comment":
            if found := HINT.match(token[0]):
                # Behind the semicolon on its line it is the last statement's.
                if pending is not None and not sql.strip():
                    pending = (pending[0], found[1])
                    continue
                hint = found[1]
            sql += token[0]
            continue
        if kind == "end":
            if pending is not None:
                yield pending
            pending, sql, hint = ((sql, hint) if bare(sql) else pending), "", None
            continue
        sql += token[0]
        if pending is not None and bare(sql):
            yield pending
            pending = None
    if pending is not None:
        yield pending
    if bare(sql):
        yield sql, hint


def bare(sql: str) -> str:
    return "".join(token[0] for token in TOKEN.finditer(sql) if token.lastgroup != "comment").strip()


class Server:
    def __init__(self, binary: str, folder: str):
        command = [binary, "server", "--http", "127.0.0.1:0", "--path", folder]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if listening := re.search(r"Granary listens on (\S+)", line):
                self.url = listening[1]
                return
        sys.exit("the server did not start")

    def ask(self, sql: str) -> tuple[str, str | None]:
        """The answer and the error."""
        parameters = urllib.parse.urlencode({"session_id": "test", "default_format": "TabSeparated"})
        try:
            with urllib.request.urlopen(f"{self.url}/?{parameters}", data=sql.encode(), timeout=60) as answer:
                return answer.read().decode(), None
        except urllib.error.HTTPError as error:
            return "", error.read().decode().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def run(binary: str, path: Path) -> str | None:
    """What is wrong; None if it passed."""
    with tempfile.TemporaryDirectory() as folder, Server(binary, folder) as server:
        answers = ""
        for sql, hint in statements(path.read_text(encoding="utf-8")):
            answer, error = server.ask(sql.strip())
            short = re.sub(r"\s+", " ", bare(sql))[:160]
            if hint is not None:
                if error is None:
                    return f"no error {hint} of: {short}"
                wanted = [name.strip() for name in hint.split(",")]
                if not any(re.search(rf"\({name}\)|Code: {name}\.", error) for name in wanted):
                    return f"not {hint} but {error[:300]}: {short}"
            elif error is not None:
                return f"{error[:400]}: {short}"
            answers += answer
        expected = path.with_suffix(".reference").read_text(encoding="utf-8")
        if answers != expected:
            for number, (ours, theirs) in enumerate(
                zip(answers.splitlines() + ["(the end)"], expected.splitlines() + ["(the end)"]), 1
            ):
                if ours != theirs:
                    return f"line {number} of the reference is {theirs[:200]!r}, not {ours[:200]!r}"
            return "only line ends differ"
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs ClickHouse's functional tests on a granary server.")
    parser.add_argument("binary")
    parser.add_argument("folder", type=Path)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--verbose", action="store_true", help="say what is wrong, too")
    arguments = parser.parse_args()
    passed = failed = 0
    for path in sorted(arguments.folder.glob("*.sql")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if not path.with_suffix(".reference").exists() or not re.search(arguments.pattern, text, re.IGNORECASE):
            continue
        wrong = run(arguments.binary, path)
        passed, failed = passed + (wrong is None), failed + (wrong is not None)
        print(f"{'failed' if wrong else 'passed'} {path.stem}" + (f": {wrong}" if wrong and arguments.verbose else ""), flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
