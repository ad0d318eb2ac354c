"""Three-way merging of snapshots: what merge, cherry-pick, revert and rebase have in common.

What it does: `sides` holds the three snapshots and what changed on each side, `tablemerge` decides
table by table, `orphans` and `resultchecks` look at the merged result as a whole, `mergeplan` puts
it together, `mergewrites` writes it. `resolutions` reads and writes what people decide about
conflicts.
Planning reads only what changed and writes nothing.
"""
