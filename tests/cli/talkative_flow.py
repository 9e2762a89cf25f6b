"""A flow whose jobs write lines, and what they write together."""

from __future__ import annotations

FLOW = """
jobs:
  prep: {run: "echo one; echo two"}
  train:
    needs: [prep]
    matrix: {seed: [1, 2]}
    run: "echo seed {seed}; printf 'no end'"
  again:
    retry: 1
    run: 'echo "try $AVER_ATTEMPT"; exit 3'
  quiet: {run: "true"}
"""
ALL = [
    "again | try 1", "again | try 2", "prep | one", "prep | two",
    "train[seed=1] | no end", "train[seed=1] | seed 1", "train[seed=2] | no end", "train[seed=2] | seed 2",
]  # fmt: skip
