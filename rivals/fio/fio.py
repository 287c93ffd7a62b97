#!/usr/bin/env python3
"""What the device can do: fio's random reads, as one line of JSON.

    fio.py --file PATH [--size 1G] [--depth 32] [--block 4096] [--seconds 5]
           [--engine io_uring] [--fixed-buffers] [--buffered]

PATH is a file or a block device. A file that is not there is written first, in
full (a file only reserved reads as zeros without touching the device); one that is
there is only ever read, and must be at least SIZE long. Reads are O_DIRECT, with no
read placed twice before all others, and the wanted depth is kept all the time.

    {"iops": ..., "bytes_per_second": ..., "latency_us_mean": ..., "latency_us_p50": ...,
     "latency_us_p99": ..., "reads": ..., and the arguments, and fio's version}
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def byte_count(text: str) -> int:
    unit = UNITS.get(text[-1:].upper())
    return int(text[:-1]) * unit if unit else int(text)


def fio(*options: str) -> dict:
    command = ["fio", "--output-format=json", "--name=reads", *options]
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit("fio is not installed: apt-get install fio")
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{run.stderr or run.stdout}")
    # fio may put notes before the JSON.
    return json.loads(run.stdout[run.stdout.index("{") :])


def write_file(path: Path, size: int) -> None:
    fio(f"--filename={path}", f"--size={size}", "--rw=write", "--bs=1M", "--ioengine=psync", "--end_fsync=1")


def file_size(path: Path) -> int:
    with open(path, "rb") as file:
        return file.seek(0, os.SEEK_END)


def random_reads(arguments: argparse.Namespace) -> dict:
    options = [
        f"--filename={arguments.file}",
        f"--size={arguments.size}",
        f"--bs={arguments.block}",
        f"--iodepth={arguments.depth}",
        f"--runtime={arguments.seconds}",
        f"--ioengine={arguments.engine}",
        f"--direct={0 if arguments.buffered else 1}",
        "--rw=randread",
        "--randrepeat=0",
        "--time_based",
        "--readonly",
    ]
    if arguments.fixed_buffers:
        options += ["--fixedbufs=1", "--registerfiles=1"]
    report = fio(*options)
    read = report["jobs"][0]["read"]
    percentile = read["clat_ns"]["percentile"]
    return {
        "iops": read["iops"],
        "bytes_per_second": read["bw_bytes"],
        "latency_us_mean": read["lat_ns"]["mean"] / 1000,
        "latency_us_p50": percentile["50.000000"] / 1000,
        "latency_us_p99": percentile["99.000000"] / 1000,
        "reads": read["total_ios"],
        "file": str(arguments.file),
        "size": arguments.size,
        "block": arguments.block,
        "depth": arguments.depth,
        "seconds": arguments.seconds,
        "engine": arguments.engine,
        "direct": not arguments.buffered,
        "fixed_buffers": arguments.fixed_buffers,
        "version": report["fio version"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="fio's random reads, as one line of JSON.")
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--size", type=byte_count, default=1 << 30)
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--block", type=byte_count, default=4096)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--engine", default="io_uring", help="io_uring, libaio, psync, ...")
    parser.add_argument("--fixed-buffers", action="store_true", help="registered buffers and files (io_uring)")
    parser.add_argument("--buffered", action="store_true", help="through the page cache, where O_DIRECT is refused")
    arguments = parser.parse_args()
    if arguments.fixed_buffers and arguments.engine != "io_uring":
        parser.error("--fixed-buffers needs --engine io_uring")

    if not arguments.file.exists():
        write_file(arguments.file, arguments.size)
    elif (there := file_size(arguments.file)) < arguments.size:
        parser.error(f"{arguments.file} has {there} bytes, fewer than --size {arguments.size}; it is not written to")
    print(json.dumps(random_reads(arguments)))


if __name__ == "__main__":
    main()
