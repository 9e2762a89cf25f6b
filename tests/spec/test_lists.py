"""Values of a matrix from files: names that match, lines, columns of a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.plan.matrix import FlowIndex, members
from aver.spec.files import FolderFiles
from aver.spec.flow.file import parse_flow
from aver.spec.mistakes import SpecError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    for name in ("data/b.csv", "data/a.csv", "data/c.txt", "data/deep/d.csv", "x y.csv", "data/.hidden.csv"):
        (tmp_path / name).write_text("")
    (tmp_path / "ids.txt").write_text("one\r\n\n two words \nthree")
    (tmp_path / "empty.txt").write_text("\n  \n")
    (tmp_path / "table.csv").write_text('name,lr\na,0.1\n"b, c",0.01\n')
    (tmp_path / "bad.csv").write_text("a b,c\n1,2\n")
    (tmp_path / "odd.csv").write_text("a,c\n1,2\n1\n")
    (tmp_path / "half.csv").write_text("a,c\n")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\n")
    return tmp_path


def labels(matrix: str, folder: Path, more: str = "") -> list[str]:
    """The members of a job with this matrix."""
    text = f"{more}jobs:\n  j: {{run: 'x {{f}} {{name}} {{lr}} {{n}}', matrix: {matrix}}}\n"
    flow = parse_flow(text, "f.yaml", now=0.0, files=FolderFiles(str(folder)))
    return [member.label for member in members(flow.jobs[0])]


@pytest.mark.parametrize(
    ("matrix", "found"),
    [
        ("{f: {glob: 'data/*.csv'}}", ["[f=data/a.csv]", "[f=data/b.csv]"]),
        ("{f: {glob: '**/*.csv'}}",
         [f"[f={name}]" for name in ("bad.csv", "data/a.csv", "data/b.csv", "data/deep/d.csv", "half.csv", "odd.csv",
                                     "table.csv", "x y.csv")]),
        ("{f: {glob: ['x*', 'data/*.txt', 'x y.csv']}}", ["[f=x y.csv]", "[f=data/c.txt]"]),
        ("{f: {lines: ids.txt}}", ["[f=one]", "[f= two words ]", "[f=three]"]),
        ("{f: {list: ['*.csv', '*']}}", ["[f=*.csv]", "[f=*]"]),
        ("{f: '*'}", ["[f=*]"]),
        ("{csv: table.csv}", ["[name=a,lr=0.1]", "[name=b, c,lr=0.01]"]),
        ("{csv: table.csv, n: 1..2}",
         ["[name=a,lr=0.1,n=1]", "[name=a,lr=0.1,n=2]", "[name=b, c,lr=0.01,n=1]", "[name=b, c,lr=0.01,n=2]"]),
        ("{csv: table.csv, n: 1..2, zip: true}", ["[name=a,lr=0.1,n=1]", "[name=b, c,lr=0.01,n=2]"]),
        ("{f: {glob: 'data/*.csv'}, n: 1..2, exclude: [{n: 2, f: data/a.csv}]}",
         ["[f=data/a.csv,n=1]", "[f=data/b.csv,n=1]", "[f=data/b.csv,n=2]"]),
    ],
)  # fmt: skip
def test_values(matrix: str, found: list[str], folder: Path) -> None:
    """In the order of their names, or as they stand in the file."""
    assert labels(matrix, folder) == found


def test_in_axes_of_the_flow(folder: Path) -> None:
    assert labels("[f]", folder, "axes: {f: {glob: 'data/*.csv'}}\n") == ["[f=data/a.csv]", "[f=data/b.csv]"]


@pytest.mark.parametrize(
    ("matrix", "complaint"),
    [
        ("{f: {glob: '*.bam'}}", '"f" in job "j" has no values: "*.bam" matches nothing in FOLDER'),
        ("{f: {lines: id.txt}}", '"id.txt" is not in FOLDER; did you mean "ids.txt"?'),
        ("{f: {lines: empty.txt}}", 'has no values: "empty.txt" has no lines'),
        ("{f: {lines: data}}", '"f" in job "j" can\'t be read: "data": Is a directory'),
        ("{f: {lines: bytes.txt}}", "it is not UTF-8"),
        ("{f: {lines: ids.txt, glob: x}}", '"f" in job "j" must have one of glob, lines, list and nothing else'),
        ("{csv: bad.csv}", '"csv" in job "j" has the column "a b" in "bad.csv"'),
        ("{csv: odd.csv}", 'has 1 values in row 3 of "odd.csv", not 2'),
        ("{csv: half.csv}", 'has no rows in "half.csv"'),
        ("{csv: table.csv, lr: [1]}", 'has the column "lr", which is an axis too'),
        ("{f: '*.csv'}", 'has the value "*.csv", which is not looked up; did you mean {glob: "*.csv"}? '
                         'for the text itself write {list: ["*.csv"]}'),
        ("{f: [a, data/*]}", 'has the value "data/*", which is not looked up'),
    ],
)  # fmt: skip
def test_mistakes(matrix: str, complaint: str, folder: Path) -> None:
    """Each at its place."""
    with pytest.raises(SpecError) as caught:
        labels(matrix, folder)
    said = str(caught.value).replace(str(folder), "FOLDER")
    assert said.startswith("f.yaml:2:")
    assert complaint in said


def test_nothing_is_looked_up_for_generated_jobs() -> None:
    with pytest.raises(SpecError, match="can't look at files here; write the values themselves"):
        parse_flow("jobs: {j: {run: 'x {f}', matrix: {f: {glob: '*'}}}}", "f.yaml", now=0.0)


def test_many_files_count(tmp_path: Path) -> None:
    """Values from files are summed as others are."""
    (tmp_path / "many").write_text("".join(f"{number}\n" for number in range(600_000)))
    text = "jobs:\n" + "".join(f"  j{n}: {{run: 'x {{f}}', matrix: {{f: {{lines: many}}}}}}\n" for n in range(2))
    with pytest.raises(SpecError, match="more than 1000000 members or values together"):
        parse_flow(text, "f.yaml", now=0.0, files=FolderFiles(str(tmp_path)))
    flow = parse_flow(text.split("  j1")[0], "f.yaml", now=0.0, files=FolderFiles(str(tmp_path)))
    assert FlowIndex(flow).count == 600_000
