"""A long run of everything at once on one graph, with its resources watched.

python -m tests.soak --minutes 60

activities.py   what a thread does: reads, writes, branches, search, history, maintenance
worker.py       a process of several such threads, with a log of what was acknowledged
gauges.py       memory, open files, threads, disk and lock files, sampled
verdict.py      growth without reason, and the content of the graph against the logs
run.py          starts the workers, kills some of them, samples, and judges
"""
