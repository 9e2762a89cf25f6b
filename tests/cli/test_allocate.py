"""`aver allocate` without a cluster; tests/slurm has the rest."""

from __future__ import annotations

from product import Product


def test_only_a_run_with_allocations_gets_more(aver: Product) -> None:
    """A run of this machine is refused in one line, and goes on as it is; so is a wrong option of sbatch."""
    run = str(aver.submit("--hold", "--", "true"))
    for words in ("-N 1", ""):
        refused = aver("allocate", run, words)
        assert refused.status in (1, 2)
        assert refused.err.startswith("aver: ")
        assert refused.err.count("\n") == 1
    assert "--allocation" in aver("allocate", run, "-N 1").err
    assert aver("release", run).status == 0
    assert aver("watch", run, "-e").status == 0
