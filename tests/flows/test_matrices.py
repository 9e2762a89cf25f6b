"""Matrices, quoting and caps on the local engine."""

from __future__ import annotations

from flow_lab import Lab, states


def test_products_zips_includes_and_excludes(lab: Lab) -> None:
    """Each member runs once with its own values."""
    run = lab.run(
        """
jobs:
  product:
    matrix: {a: [1, 2], b: [x, y], exclude: [{a: 2, b: y}], include: [{a: 3, b: z}]}
    run: "echo {a}{b} >> product"
  zipped: {matrix: {a: [1, 2], b: [x, y], zip: true}, run: "echo {a}{b} >> zipped"}
  range: {matrix: {n: 08..10}, run: "echo {n} >> range"}
"""
    )
    assert run.state == "COMPLETED"
    assert sorted(lab.lines("product")) == ["1x", "1y", "2x", "3z"]
    assert sorted(lab.lines("zipped")) == ["1x", "2y"]
    assert sorted(lab.lines("range")) == ["08", "09", "10"]
    assert "product[a=2,b=x]" in states(run)


def test_values_are_quoted_and_other_braces_stay(lab: Lab) -> None:
    """`{v}` is one word of the shell whatever is in it; `${v}`, `{x}` and `{a,b}` are the shell's."""
    run = lab.run(
        r"""
jobs:
  q:
    matrix: {v: ["a b", "$(touch hacked)", "it's; touch hacked", "*", "-n"]}
    env: {V: "{v}"}
    run: |
      v=shell
      printf '%s\n' {v} > out-$AVER_JOB
      test "$(cat out-$AVER_JOB)" = "$V"
      test "${v}" = shell
      echo {x} {a,b} >> braces
"""
    )
    assert run.state == "COMPLETED", [job.log() for job in run]
    assert not (lab.folder / "hacked").exists()
    assert lab.lines("braces") == ["{x}", "a", "b"] * 5


COUNTED = "mkdir r/$AVER_JOB; ls r | wc -l >> seen; sleep 0.05; rmdir r/$AVER_JOB"


def test_max_parallel_of_a_matrix_and_of_a_run(lab: Lab) -> None:
    """No more than so many run at once, and all run."""
    (lab.folder / "r").mkdir()
    matrix = lab.run(f"jobs:\n  m: {{matrix: {{n: 1..6, max_parallel: 2}}, run: '{COUNTED}; : {{n}}'}}\n")
    assert matrix.state == "COMPLETED"
    seen = [int(word) for word in lab.lines("seen")]
    assert len(seen) == 6
    assert max(seen) <= 2
    (lab.folder / "seen").unlink()
    run = lab.run(f"max_parallel: 1\njobs:\n  a: {{run: '{COUNTED}'}}\n  b: {{run: '{COUNTED}'}}\n")
    assert run.state == "COMPLETED"
    assert [int(word) for word in lab.lines("seen")] == [1, 1]


def test_the_machine_has_a_cap_and_runs_share_it_fairly(lab: Lab) -> None:
    """Four cpus: never more than four jobs at once; a small run submitted later does not wait for a large one's end."""
    (lab.folder / "r").mkdir()
    large = lab.submit(f"name: large\njobs:\n  m: {{matrix: {{n: 1..40}}, run: '{COUNTED}; : {{n}}'}}\n")
    small = lab.submit(f"name: small\njobs:\n  m: {{matrix: {{n: 1..4}}, run: '{COUNTED}; : {{n}}'}}\n")
    small.wait(60)
    assert not large.state.is_settled
    large.wait(60)
    seen = [int(word) for word in lab.lines("seen")]
    assert len(seen) == 44
    assert max(seen) <= 4
