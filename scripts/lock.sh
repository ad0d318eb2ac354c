#!/bin/sh
# Resolve pyproject.toml into hashed, host-free requirements files, for every platform at once.
# Versions already locked stay unless they no longer fit; UPGRADE="--upgrade" moves them all.
set -eu
cd "$(dirname "$0")/.."

compile() {
    out=$1
    shift
    # shellcheck disable=SC2086  # UPGRADE is a list of options
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-header ${UPGRADE:-} \
        --output-file "requirements/$out" "$@"
}

compile build.txt --group build
compile dev.txt pyproject.toml --extra spark --group dev \
    --constraint requirements/build.txt
# The bench lock is installed on top of the dev one, so it must agree with it.
compile bench.txt --group bench --constraint requirements/dev.txt
