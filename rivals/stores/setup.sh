#!/bin/sh
# Compiles the driver of LevelDB and RocksDB against the system's libraries (Debian: libleveldb-dev, librocksdb-dev).
# May be run again: what is up to date is left alone. CXX chooses another compiler.
set -eu
cd "$(dirname "$0")"

for source in *.cc *.hh setup.sh; do
    if [ ! -e stores ] || [ "$source" -nt stores ]; then
        # The same rounding as in Rust: no sums and products in one.
        "${CXX:-g++}" -std=c++17 -O2 -Wall -Wextra -ffp-contract=off -pthread -o stores.new \
            stores.cc leveldb.cc rocksdb.cc -lleveldb -lrocksdb
        mv stores.new stores
        break
    fi
done
