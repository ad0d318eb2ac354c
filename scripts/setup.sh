#!/bin/sh
# Find a Python that will do and hand over to setup.py. Says in one sentence what is missing.
# PYTHON=/path/to/python overrides the search.
set -u
here=$(dirname "$0")

usable() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, int(sys.argv[1])))' \
        "$2" >/dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        usable "$PYTHON" 99 && echo "$PYTHON"
        return
    fi
    # First the versions that we test, then anything newer.
    for newest in 13 99; do
        for name in python3 python3.13 python3.12 python3.11 python3.14 python; do
            usable "$name" "$newest" && { echo "$name"; return; }
        done
    done
}

python=$(find_python)
if [ -z "$python" ]; then
    echo "OmniGraph needs Python 3.11 or newer: install it (for example \`apt install python3.11 python3.11-venv\`), or run make with PYTHON=/path/to/python3.11." >&2
    exit 1
fi
exec "$python" "$here/setup.py" "$@"
