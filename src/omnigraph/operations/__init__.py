"""One file per verb: what a surface can ask of a graph.

What it does: conducts the rooms below. A verb authorizes, resolves a snapshot, compiles, plans,
lets an engine run or stage, and hands proposals to the commit door.
Every surface (Python, command line, server) calls the same verbs, so that none has rules of its
own.
"""
