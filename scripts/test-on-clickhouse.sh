#!/bin/sh
# Runs the SQL tests that Granary passes on a real ClickHouse too, so that they say what ClickHouse does and not what
# we remember of it. Files named granary_* test what only Granary has and are skipped. Installs what is missing.
set -eu
cd "$(dirname "$0")/.."

rivals/clickhouse/setup.sh
${CARGO:-cargo} build --release --locked --workspace
# A granary server as the source of ClickHouse's dictionaries, in every format.
rivals/clickhouse/.venv/bin/python rivals/clickhouse/served.py "${CARGO_TARGET_DIR:-target}/release/granary"
exec python3 rivals/clickhouse/slt.py crates/sql/tests/slt rivals/clickhouse/tests "$@"
