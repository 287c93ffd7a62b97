#!/bin/sh
# Makes .venv with the pinned RocksDB. Needs python3 with venv; PYTHON chooses another python3.
# Does nothing when everything is there already.
set -eu
cd "$(dirname "$0")"

if ! cmp -s requirements.txt .venv/requirements.installed; then
    "${PYTHON:-python3}" -m venv --clear .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
    # Written last: an installation that was cut short starts anew.
    cp requirements.txt .venv/requirements.installed
fi
