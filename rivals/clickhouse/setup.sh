#!/bin/sh
# Makes .venv with the pinned ClickHouse, and compiles the source both engines use.
# Needs python3 >= 3.11 with venv and a C compiler; PYTHON chooses another python3.
# Does nothing when everything is there already.
set -eu
cd "$(dirname "$0")"

if ! cmp -s requirements.txt .venv/requirements.installed; then
    "${PYTHON:-python3}" -m venv --clear .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
    # Written last: an installation that was cut short starts anew.
    cp requirements.txt .venv/requirements.installed
fi

if [ ! -x source ] || [ source.c -nt source ]; then
    "${CC:-cc}" -O2 -Wall -Wextra -o source source.c
fi
