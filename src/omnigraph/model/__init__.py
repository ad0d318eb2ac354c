"""Plain values that every room shares: types, catalog, ids, snapshots, commits.

What it does: names the nouns of OmniGraph as frozen dataclasses.
Values are immutable, comparable and free of behaviour that touches the outside world.
"""
