#!/bin/sh
# Runs everything that tries to lose data, prints the figures, and keeps those of a full, green run.
# PYTEST: how to run tests; UNIVERSES: how many model universes (300 unless told).
set -eu
figures=$(mktemp -d)
trap 'rm -rf "$figures"' EXIT
begun=$(date +%s)
export OMNIGRAPH_CRASH=full OMNIGRAPH_FIGURES="$figures" UNIVERSES="${UNIVERSES:-}"
status=0
$PYTEST tests/crash tests/lives tests/spark/test_crash.py tests/properties \
    tests/unit/operations/test_together.py tests/contract/test_wrong_options.py "$@" || status=$?
CRASH_SECONDS=$(($(date +%s) - begun))
export CRASH_SECONDS
keep=""
# A part of the run, or one that failed, says nothing about the whole.
if [ "$status" -eq 0 ] && [ "$#" -eq 0 ]; then keep="--keep"; fi
.venv/bin/python -m tests.crash.figures "$figures" $keep || status=1
exit "$status"
