"""Page compression in RocksDB: bytes on disk and latency of reads, for codecs and block sizes.

    pages.py --values FILE --data DIR [--hexadecimal] [--keys N] [--operations N] [--order document|random]
             [--codecs CODEC ...]

FILE is one that rivals/values/values.py has written, or has values in hexadecimal digits, which may be compressed
already. They get consecutive keys as they come, so that neighbours are of one document, or (`random`) in any order, as
under keys that are hashes. They are put and compacted; then keys are written and read at random, one to four, without
a block cache and with O_DIRECT. Prints one line of JSON for each codec and block size. Every value that is read is
compared.
"""

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

VENV = Path(__file__).resolve().parent / ".venv/bin/python"
try:
    import rocksdict
except ImportError:
    # A plain python3 will do: this starts again with the venv's.
    if not VENV.exists() or Path(sys.executable).parent == VENV.parent:
        sys.exit("rocksdict is not installed: rivals/rocksdb/setup.sh installs it")
    os.execv(VENV, [str(VENV), *sys.argv])

READS = 4
LEVEL = 3
DICTIONARY_BYTES = 16 << 10
CODECS = ("none", "snappy", "zstd", "zstd, dictionaries")


def options(codec: str, block: int) -> "rocksdict.Options":
    chosen = rocksdict.Options(raw_mode=True)
    chosen.create_if_missing(True)
    chosen.set_use_direct_reads(True)
    chosen.set_use_direct_io_for_flush_and_compaction(True)
    chosen.enable_statistics()
    kinds = rocksdict.DBCompressionType
    kind = {"none": kinds.none, "snappy": kinds.snappy}.get(codec, kinds.zstd)()
    chosen.set_compression_type(kind)
    if codec.startswith("zstd"):
        dictionary = DICTIONARY_BYTES if codec == "zstd, dictionaries" else 0
        chosen.set_compression_options(-14, LEVEL, 0, dictionary)
        if dictionary:
            chosen.set_zstd_max_train_bytes(100 * dictionary)
    table = rocksdict.BlockBasedOptions()
    table.set_block_size(block)
    table.set_bloom_filter(10, False)
    table.disable_cache()
    chosen.set_block_based_table_factory(table)
    return chosen


def counters(chosen) -> dict[str, int]:
    found = re.findall(r"^(rocksdb\.\S+) COUNT : (\d+)", chosen.get_statistics(), re.MULTILINE)
    return {name: int(count) for name, count in found}


def written(chosen) -> int:
    count = counters(chosen)
    return sum(count.get(f"rocksdb.{name}", 0) for name in ("wal.bytes", "flush.write.bytes", "compact.write.bytes"))


def run(folder: Path, codec: str, block: int, values: list[bytes], keys: int, operations: int) -> dict:
    chosen = options(codec, block)
    db = rocksdict.Rdict(str(folder), chosen)
    order = list(range(keys))
    draw = random.Random(1)
    draw.shuffle(order)
    for key in order:
        db[key.to_bytes(8, "big")] = values[key % len(values)]
    db.flush()
    db.compact_range(None, None)
    on_disk = sum(path.stat().st_size for path in folder.glob("*.sst"))
    before, reads, writes = written(chosen), [], []
    for operation in range(operations):
        key = draw.randrange(keys)
        name, value = key.to_bytes(8, "big"), values[key % len(values)]
        start = time.perf_counter()
        if operation % (READS + 1):
            found = db[name]
            reads.append(time.perf_counter() - start)
            if found != value:
                sys.exit(f"{codec}, {block}: key {key} has another value")
        else:
            db[name] = value
            writes.append(time.perf_counter() - start)
    db.flush()
    after = written(chosen)
    db.close()
    return {
        "codec": codec,
        "block": block,
        "bytes": on_disk / keys,
        "written": (after - before) / len(writes),
        "read_us": 1e6 * sum(reads) / len(reads),
        "write_us": 1e6 * sum(writes) / len(writes),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--hexadecimal", action="store_true", help="values are in hexadecimal digits")
    parser.add_argument("--keys", type=int, help="values may be put several times; as many as have 64 MiB unless given")
    parser.add_argument("--codecs", choices=CODECS, nargs="+", default=CODECS, help="of blocks; all unless given")
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--order", choices=("document", "random"), default="document")
    arguments = parser.parse_args()
    lines = arguments.values.read_text().splitlines()
    decode = bytes.fromhex if arguments.hexadecimal else str.encode
    values = [decode(line.split("\t", 1)[1]) for line in lines]
    if arguments.order == "random":
        random.Random(2).shuffle(values)
    keys = arguments.keys or len(values) * (64 << 20) // sum(map(len, values))
    for block in (4096, 8192, 16384):
        for codec in arguments.codecs:
            folder = Path(tempfile.mkdtemp(prefix="rocksdb-", dir=arguments.data))
            try:
                print(json.dumps(run(folder, codec, block, values, keys, arguments.operations)), flush=True)
            finally:
                shutil.rmtree(folder)


if __name__ == "__main__":
    main()
