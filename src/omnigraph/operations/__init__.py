"""One file per verb: what a surface can ask of a graph.

`verbs` lists the verbs; `verbs.run` admits a request and calls its verb. A verb resolves a
snapshot, compiles, plans, lets an engine run or stage, and passes proposals to the commit door.
Every surface (Python, command line, Spark, server) runs the same verbs, so that none has rules of
its own.
"""
