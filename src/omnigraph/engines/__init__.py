"""Engines run plans over snapshots and stage writes; they cannot commit.

`base` says what an engine is. `embedded` runs in this process, `spark` on Spark. `registry` finds
an engine by its name, `runners` says where large maintenance tasks run. Engines do not know each
other.
"""
