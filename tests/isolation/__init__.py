"""An isolation checker for list-append histories, after Adya and Elle.

    history.py        transactions of reads and appends, with their outcome and their times
    versions.py       the order of each key's appends, inferred from what was read; direct anomalies
    dependencies.py   ww, wr and rw edges between transactions, session and real-time edges
    cycles.py         cycles of these edges and the names of the anomalies that they show
    sessions.py       read your writes, monotonic reads, monotonic writes, writes follow reads
    checker.py        all of it at once

Each append has a value of its own, so a read of a list shows which transactions it depends on, and
in which order they were applied: nothing that the database reports about its own order is used.
The package contains nothing about graphs; its tests are planted histories of each anomaly.
"""
