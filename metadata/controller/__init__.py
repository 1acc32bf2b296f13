"""The embedded controller: pure functions, a file per kind of change.

Each gives a Plan: the records to commit and the results that are true once they are.
"""
