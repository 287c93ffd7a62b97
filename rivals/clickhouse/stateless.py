#!/usr/bin/env python3
"""Runs ClickHouse's functional tests on a granary server.

    stateless.py [--verbose] [--in-part] GRANARY_BINARY FOLDER [PATTERN]

FOLDER holds .sql and .sh files with .reference files beside them, as tests/queries/0_stateless
of ClickHouse's repository does; PATTERN is a regular expression on the text of those to be
run, such as 'LAYOUT *\\((COMPLEX_KEY_)?(CACHE|DIRECT)'. Each file gets a server of its own.
`-- { serverError NAME }` behind a statement means that it must fail so. Scripts find this
program where they look for clickhouse-client. Prints a line a file; exit status 0 if all passed.

With --in-part, statements about dictionaries of layouts that Granary does not have are left
out of .sql files; what is answered must then stand in the .reference in that order.
"""

import argparse
import os
import re
import shutil
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

COMPLEX = ("SSD_CACHE", "CACHE", "DIRECT", "HASHED", "SPARSE_HASHED", "HASHED_ARRAY", "RANGE_HASHED")
OTHERS = {"FLAT", "IP_TRIE", "POLYGON", "POLYGON_SIMPLE", "POLYGON_INDEX_EACH", "POLYGON_INDEX_CELL",
          "REGEXP_TREE"}
LAYOUTS = {prefix + name for prefix in ("", "COMPLEX_KEY_") for name in COMPLEX} | OTHERS
# As in ClickHouse, each test has a database of its own, which is called so in its answers.
DATABASE, CALLED = "test_stateless", "default"
CREATED = re.compile(
    r"(?:CREATE|REPLACE)\s+DICTIONARY\s+(?:IF\s+NOT\s+EXISTS\s+)?(\S+?)\s*\(.*?LAYOUT\s*\(\s*(\w+)", re.I | re.S
)
# What ClickHouse's shell_config.sh says, as far as the scripts about dictionaries need it.
SHELL_CONFIG = f"""\
export CLICKHOUSE_DATABASE={DATABASE}
export CLICKHOUSE_CLIENT_BINARY=clickhouse-client
export CLICKHOUSE_CLIENT=clickhouse-client
"""
SCRIPT_SECONDS = 120
# As the configuration that the tests are run with has it.
COLLECTION = "CREATE NAMED COLLECTION clickhouse_dictionary AS host = 'localhost', user = 'default', table = 's'"


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


class Client:
    """A session of a server."""

    def __init__(self, url: str, session: str):
        self.url = url
        self.parameters = {
            "session_id": session,
            "default_format": "TabSeparated",
            "param_CLICKHOUSE_DATABASE": DATABASE,
        }
        self.ask(f"USE {DATABASE}")

    def ask(self, sql: str) -> tuple[str, str | None]:
        """The answer and the error."""
        parameters = urllib.parse.urlencode(self.parameters)
        try:
            with urllib.request.urlopen(f"{self.url}/?{parameters}", data=sql.encode(), timeout=60) as answer:
                return answer.read().decode().replace(DATABASE, CALLED), None
        except urllib.error.HTTPError as error:
            return "", error.read().decode().strip()

    def run(self, sql: str, hint: str | None) -> tuple[str, str | None]:
        """The answer, and what is wrong with it."""
        answer, error = self.ask(sql.strip())
        short = re.sub(r"\s+", " ", bare(sql))[:160]
        if hint is None:
            return answer, error and f"{error[:400]}: {short}"
        if error is None:
            return "", f"no error {hint} of: {short}"
        wanted = [name.strip() for name in hint.split(",")]
        if not any(re.search(rf"\({name}\)|Code: {name}\.", error) for name in wanted):
            return "", f"not {hint} but {error[:300]}: {short}"
        return "", None


class Server:
    def __init__(self, binary: str, folder: str):
        command = [binary, "server", "--http", "127.0.0.1:0", "--path", folder]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if listening := re.search(r"Granary listens on (\S+)", line):
                self.url = listening[1]
                for made in (f"CREATE DATABASE {DATABASE}", COLLECTION):
                    urllib.request.urlopen(f"{self.url}/", data=made.encode(), timeout=60).close()
                return
        sys.exit("the server did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def is_foreign(sql: str, foreign: set[str]) -> bool:
    """Whether a statement is about a dictionary of a layout that Granary does not have."""
    if created := CREATED.search(sql):
        name, layout = created[1].strip("`").split(".")[-1], created[2].upper()
        (foreign.discard if layout in LAYOUTS else foreign.add)(name)
    return any(re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", sql) for name in foreign)


def difference(ours: str, theirs: str) -> str | None:
    if ours == theirs:
        return None
    lines = zip(ours.splitlines() + ["(the end)"], theirs.splitlines() + ["(the end)"])
    for number, (our, their) in enumerate(lines, 1):
        if our != their:
            return f"line {number} of the reference is {their[:200]!r}, not {our[:200]!r}"
    return "only line ends differ"


def missing(ours: str, theirs: str) -> str | None:
    """The first line that does not stand in the reference behind those before it."""
    rest = iter(theirs.splitlines())
    for number, line in enumerate(ours.splitlines(), 1):
        if line not in rest:
            return f"line {number} is {line[:200]!r}, which the reference does not have there"
    return None


def run(binary: str, path: Path, in_part: bool) -> str | None:
    """What is wrong; None if it passed."""
    expected = path.with_suffix(".reference").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, Server(binary, folder) as server:
        if path.suffix == ".sh":
            return script(path, server.url, expected)
        client, answers, foreign, left_out = Client(server.url, "test"), "", set(), 0
        for sql, hint in statements(path.read_text(encoding="utf-8")):
            if in_part and is_foreign(sql, foreign):
                left_out += 1
                continue
            answer, wrong = client.run(sql, hint)
            if wrong is not None:
                return wrong
            answers += answer
        return missing(answers, expected) if left_out else difference(answers, expected)


def script(path: Path, url: str, expected: str) -> str | None:
    """Runs a script, which calls this program as clickhouse-client."""
    with tempfile.TemporaryDirectory() as folder:
        tests = Path(folder, "0_stateless")
        tests.mkdir()
        shutil.copy(path, tests)
        Path(folder, "shell_config.sh").write_text(SHELL_CONFIG, encoding="utf-8")
        client = Path(folder, "clickhouse-client")
        program = Path(__file__).resolve()
        client.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" --client {url} "$@"\n')
        client.chmod(0o755)
        environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
        command = ["bash", str(tests / path.name)]
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SCRIPT_SECONDS, check=False
        )
    wrong = difference(ended.stdout, expected)
    return wrong and f"{wrong} {ended.stderr.strip()[:400]}".strip()


def client(url: str, arguments: list[str]) -> int:
    """What the scripts ask of clickhouse-client: statements behind -q or --query, or from the standard input."""
    texts = []
    while arguments:
        argument = arguments.pop(0)
        if argument.startswith("--query="):
            texts.append(argument.removeprefix("--query="))
        elif argument == "--query" or re.fullmatch(r"-[nm]*q", argument):
            texts.append(arguments.pop(0))
        elif found := re.fullmatch(r"--(\w+)=(\S+)", argument):
            texts.append(f"SET {found[1]} = {found[2]};")
    session = Client(url, f"client {os.getpid()}")
    for sql, hint in statements("\n".join(texts) if texts else sys.stdin.read()):
        answer, wrong = session.run(sql, hint)
        print(answer, end="", flush=True)
        if wrong is not None:
            # As clickhouse-client says it: scripts take words out of its errors.
            name = "DB::Exception: "
            print(wrong.replace(name, f"{name}Received from localhost:9000. {name}", 1), file=sys.stderr)
            return 1
    return 0


def main() -> None:
    if sys.argv[1:2] == ["--client"]:
        sys.exit(client(sys.argv[2], sys.argv[3:]))
    parser = argparse.ArgumentParser(description="Runs ClickHouse's functional tests on a granary server.")
    parser.add_argument("binary")
    parser.add_argument("folder", type=Path)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--verbose", action="store_true", help="say what is wrong, too")
    parser.add_argument("--in-part", action="store_true", help="leave out what is about other layouts")
    arguments = parser.parse_args()
    passed = failed = 0
    for path in sorted([*arguments.folder.glob("*.sql"), *arguments.folder.glob("*.sh")]):
        text = path.read_text(encoding="utf-8", errors="replace")
        if not path.with_suffix(".reference").exists() or not re.search(arguments.pattern, text, re.IGNORECASE):
            continue
        wrong = run(arguments.binary, path, arguments.in_part)
        passed, failed = passed + (wrong is None), failed + (wrong is not None)
        print(f"{'failed' if wrong else 'passed'} {path.stem}" + (f": {wrong}" if wrong and arguments.verbose else ""), flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
