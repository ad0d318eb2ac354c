"""Reading what was committed: manifests, snapshots, branches, tags, the log.

What it does: turns manifest rows into values (`manifestrows`), names into branches (`refs`,
`branchlist`) and targets into snapshots (`resolve`), and walks the commits (`log`).
Reads only, takes no lock; what it returns is one consistent state.
"""
