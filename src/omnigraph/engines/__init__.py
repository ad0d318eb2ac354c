"""Engines run plans over snapshots and stage writes; they cannot commit.

`base` says what an engine is. `embedded` runs in this process. Engines do not know each other.
"""
