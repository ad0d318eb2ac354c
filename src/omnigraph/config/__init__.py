"""The configuration of the user: actor, named graphs and defaults.

    operator      `~/.omnigraph/config.yaml` as values
    scope         which graph an address, a profile or the defaults mean
    credentials   tokens of servers, in a file that only its owner can read
    connecting    a graph by its name

Nothing here is needed to use a graph by its address, and no room below reads it; a file that is not
there is an empty one; unknown keys are ignored with a warning.
"""
