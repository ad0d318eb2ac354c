"""The systems that are measured, one module each, behind one small set of calls.

A subject lives in a process of its own (`workers`), because two of them cannot share one and
because memory is measured per process. It is made over an empty folder, is given the data as
Parquet files and answers questions.
"""
