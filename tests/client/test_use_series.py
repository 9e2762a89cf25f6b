"""Memory and CPUs over time as they are kept: few points however long an attempt runs, and no peak is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.client.use.series import GAP_S, MOST_POINTS, Sample, Series, read_use, series_path, spark
from aver.home import Home

BEGIN = 1_700_000_000.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.prepare()
    return found


def written(home: Home, samples: list[Sample]) -> Series:
    series = Series(series_path(home, 1, 2, 1))
    for one in samples:
        series.add(one)
    return series


def test_a_young_attempt_keeps_each_sample(home: Home) -> None:
    """CPUs are the mean since the point before, from the start on."""
    written(home, [Sample(BEGIN + 5, 5.0, 100), Sample(BEGIN + 10, 15.0, 300), Sample(BEGIN + 15, 15.0, 200)])
    use = read_use(home, 1, 2, 1, BEGIN)
    assert use is not None
    assert [(one.at - BEGIN, one.cpus, one.memory_bytes) for one in use.points] == [
        (5.0, 1.0, 100), (10.0, 2.0, 300), (15.0, 0.0, 200),
    ]  # fmt: skip


def test_a_long_attempt_is_thinned_out_and_keeps_its_peaks(home: Home) -> None:
    """A day of samples, with one high one: at most 120 points, spread over the day, the peak and all CPU time there."""
    count = int(86400 / GAP_S)
    samples = [Sample(BEGIN + GAP_S * (at + 1), GAP_S * (at + 1), 9000 if at == 777 else 10) for at in range(count)]
    written(home, samples)
    use = read_use(home, 1, 2, 1, BEGIN)
    assert use is not None
    assert MOST_POINTS / 2 <= len(use.points) <= MOST_POINTS
    assert max(one.memory_bytes for one in use.points) == 9000
    gaps = [b.at - a.at for a, b in zip(use.points, use.points[1:], strict=False)]
    assert max(gaps) <= 2.5 * min(gaps)
    assert all(one.cpus == pytest.approx(1.0, abs=0.01) for one in use.points)
    assert series_path(home, 1, 2, 1).stat().st_size < 8192


def test_another_coordinator_goes_on_with_it(home: Home) -> None:
    """What is in the file is read again; a line that was cut is left out."""
    written(home, [Sample(BEGIN + 5, 1.0, 100)])
    path = series_path(home, 1, 2, 1)
    path.write_bytes(path.read_bytes() + b"17000\n")
    written(home, [Sample(BEGIN + 10, 2.0, 200)])
    use = read_use(home, 1, 2, 1, None)
    assert use is not None
    assert [(one.cpus, one.memory_bytes) for one in use.points] == [(None, 100), (0.2, 200)]


def test_what_was_not_measured_is_unknown(home: Home) -> None:
    assert read_use(home, 1, 2, 1, BEGIN) is None


def test_a_clock_that_is_set_back_makes_no_point(home: Home) -> None:
    written(home, [Sample(BEGIN + 5, 1.0, 100), Sample(BEGIN + 1, 2.0, 900)])
    use = read_use(home, 1, 2, 1, BEGIN)
    assert use is not None
    assert len(use.points) == 1


def test_signs_stand_for_values() -> None:
    """The highest of those that share a sign; a blank is unknown."""
    assert spark([0.0, 4.0, 8.0, None], 8.0, 40) == "▁▅█ "
    assert spark([0.0, 8.0, 0.0, 0.0], 8.0, 2) == "█▁"
    assert spark([1.0], 0.0, 40) == " "
