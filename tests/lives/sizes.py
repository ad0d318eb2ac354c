"""How many lives are played: a part in `make test`, all in `make crash` (OMNIGRAPH_CRASH=full)."""

from __future__ import annotations

from math import ceil

from tests.crash.sizes import FULL
from tests.lives.story import QUERIES

USUAL_QUERIES, ALL_QUERIES = 2_000, 20_000
LIVES = ceil((ALL_QUERIES if FULL else USUAL_QUERIES) / QUERIES)
ALL_LIVES = ceil(ALL_QUERIES / QUERIES)
LOT = 25 if FULL else 9
