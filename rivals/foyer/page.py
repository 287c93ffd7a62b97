#!/usr/bin/env python3
"""Writes docs/studies/crate.md, crate.csv and crate.svg from the lines that `rival-foyer run` prints: page.py LINES."""

import json
import os
import platform
import statistics
import sys
from collections import defaultdict
from pathlib import Path

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"
KEYS = ("measure", "value_bytes", "at_once", "ending", "engine")
NAMES = {
    "granary": "Granary",
    "granary-shared": "Granary, RAM on tmpfs",
    "foyer-psync": "foyer, psync",
    "foyer-uring": "foyer, io_uring",
    "foyer-large": "foyer, psync, 256 MiB of buffers",
    "foyer-eviction": "foyer, on eviction, 256 MiB of buffers",
}


def read(path):
    """The figures of all rounds, by measurement and field."""
    figures = defaultdict(list)
    for line in open(path):
        row = json.loads(line)
        key = tuple(row.get(name, "") for name in KEYS)
        for field, value in row.items():
            if field not in KEYS and field != "round":
                figures[key + (field,)].append(value)
    return figures


class Figures:
    def __init__(self, path):
        self.all = read(path)

    def get(self, measure, value_bytes, engine, field, at_once="", ending=""):
        return self.all.get((measure, value_bytes, at_once, ending, engine, field))

    def text(self, *key, scale=1, digits=0, **more):
        values = self.get(*key, **more)
        return "" if values is None else f"{statistics.median(values) * scale:.{digits}f}"

    def rounds(self):
        return max(len(values) for values in self.all.values())


def table(head, rows):
    """A table of Markdown; numbers to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    is_text = [any(row[i] and not row[i].replace(".", "").isdigit() for row in rows) for i in range(len(head))]

    def line(cells):
        parts = [c.ljust(w) if t else c.rjust(w) for c, w, t in zip(cells, widths, is_text)]
        return "| " + " | ".join(parts) + " |"

    ruler = "|" + "|".join("-" * (w + 2) if t else "-" * (w + 1) + ":" for w, t in zip(widths, is_text)) + "|"
    return "\n".join([line(head), ruler, *map(line, rows)])


def machine():
    cpu = next(l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name"))
    ram = open("/proc/meminfo").readline().split()[1]
    return "\n".join(
        [f"- kernel: {platform.release()}", f"- CPU: {cpu}", f"- cores: {os.cpu_count()}", f"- RAM: {ram} kB"]
    )


def plot(figures):
    """Gets a second from the device, 32 at once, by size of value."""
    bars = [
        ("Granary, tasks", "granary", "flash_gets", 32, "#2a6f97"),
        ("Granary, threads", "granary", "flash_blocking", 32, "#61a5c2"),
        ("Granary, batches", "granary", "flash_batch", 32, "#a9d6e5"),
        ("foyer, psync", "foyer-psync", "flash_gets", 32, "#bc6c25"),
        ("foyer, io_uring", "foyer-uring", "flash_gets", 32, "#dda15e"),
    ]
    sizes = [1000, 3900, 16000]
    value = lambda bar, size: statistics.median(figures.get(bar[2], size, bar[1], "per_second", at_once=bar[3]) or [0])
    most = max(value(bar, size) for bar in bars for size in sizes) * 1.1
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="720" height="360" font-family="sans-serif" font-size="12">']
    out.append('<rect width="720" height="360" fill="white"/>')
    out.append('<text x="60" y="20" font-size="14">Gets a second from the device, 32 at once</text>')
    for tick in range(0, int(most), 10_000):
        y = 310 - tick / most * 270
        out.append(f'<line x1="60" x2="560" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="52" y="{y + 4:.1f}" text-anchor="end">{tick // 1000}k</text>')
    for i, size in enumerate(sizes):
        for j, bar in enumerate(bars):
            height = value(bar, size) / most * 270
            x = 75 + i * 165 + j * 28
            out.append(f'<rect x="{x}" y="{310 - height:.1f}" width="25" height="{height:.1f}" fill="{bar[4]}"/>')
        out.append(f'<text x="{145 + i * 165}" y="330" text-anchor="middle">{size} bytes</text>')
    for j, (name, *_, colour) in enumerate(bars):
        out.append(f'<rect x="575" y="{60 + j * 24}" width="14" height="14" fill="{colour}"/>')
        out.append(f'<text x="595" y="{72 + j * 24}">{name}</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def page(figures):
    text = figures.text
    speed = ["granary", "foyer-psync", "foyer-uring"]
    sizes = [1000, 3900, 16000]

    def latency(measure):
        rows = []
        for size in sizes:
            for engine in speed:
                p50, p99 = (text(measure, size, engine, f, digits=2 if measure == "memory" else 0) for f in ("p50_us", "p99_us"))
                rows.append([size, NAMES[engine], p50, p99])
        return table(["bytes of a value", "", "median, us", "p99, us"], rows)

    def throughput():
        rows = []
        for size in sizes:
            kinds = [("Granary, tasks", "granary", "flash_gets"), ("Granary, threads", "granary", "flash_blocking")]
            kinds += [(NAMES[engine], engine, "flash_gets") for engine in speed[1:]]
            for name, engine, measure in kinds:
                cells = [text(measure, size, engine, "per_second", at_once=n) for n in (1, 8, 32)]
                rows.append([size, name, *cells, text(measure, size, engine, "processor_us", at_once=32, digits=1)])
        return table(["bytes of a value", "", "1 at once", "8", "32", "processor us a get, of 32"], rows)

    def batches():
        rows = []
        for size in sizes:
            cells = [text("flash_batch", size, "granary", "per_second", at_once=n) for n in (8, 32, 256)]
            rows.append([size, *cells, text("flash_batch", size, "granary", "processor_us", at_once=256, digits=1)])
        return table(["bytes of a value", "batches of 8", "32", "256", "processor us a get, of 256"], rows)

    def ram():
        fields = ("bytes_per_entry", "index_bytes_per_entry")
        rows = [[NAMES[e], *(text("ram", 100, e, f, digits=1) for f in fields)] for e in ("granary", "foyer-psync")]
        return table(["", "bytes the process grows by", "of its index, as it counts"], rows)

    def stale():
        fields = ("puts_per_second", "latest", "missing", "stale")
        rows = []
        for e in ["granary", "foyer-psync", "foyer-uring", "foyer-large", "foyer-eviction"]:
            most = [max(figures.get("stale", 3900, e, f) or [0]) for f in ("missing", "stale")]
            rows.append([NAMES[e], *(text("stale", 3900, e, f) for f in fields), *most])
        return table(
            ["", "puts a second", "newest found", "missing", "stale", "most missing in a round", "most stale"], rows
        )

    def restart(ending):
        engines = ["granary", "granary-shared", "foyer-psync", "foyer-eviction"]
        fields = ("right", "missing", "stale", "resurrected")
        rows = []
        for e in engines:
            seconds = text("restart", 1000, e, "open_seconds", ending=ending, scale=1000)
            rows.append([NAMES[e], seconds, *(text("restart", 1000, e, f, ending=ending) for f in fields)])
        return table(["", "opened in ms", "right", "missing", "stale", "removed, but there"], rows)

    template = (Path(__file__).parent / "page.md").read_text()
    parts = {
        "machine": machine(),
        "rounds": str(figures.rounds()),
        "memory": latency("memory"),
        "flash": latency("flash"),
        "throughput": throughput(),
        "batches": batches(),
        "ram": ram(),
        "stale": stale(),
        "close": restart("close"),
        "settle": restart("settle"),
        "at-once": restart("at-once"),
    }
    for name, part in parts.items():
        template = template.replace("{" + name + "}", part)
    return template


def csv(figures):
    lines = [",".join((*KEYS, "figure", "median", "lowest", "highest", "rounds"))]
    for key, values in sorted(figures.all.items(), key=str):
        numbers = (statistics.median(values), min(values), max(values))
        lines.append(",".join([*map(str, key), *(f"{n:.6g}" for n in numbers), str(len(values))]))
    return "\n".join(lines) + "\n"


def main():
    figures = Figures(sys.argv[1])
    (STUDIES / "crate.md").write_text(page(figures))
    (STUDIES / "crate.csv").write_text(csv(figures))
    (STUDIES / "crate.svg").write_text(plot(figures))


main()
