"""Calls of Python functions as jobs: the files by which a call travels, and the program that a job runs.

Imports little: each call of a function pays for it.
"""
