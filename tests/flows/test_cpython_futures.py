"""CPython's own tests of executors, where they apply, with `aver.Executor`.

They are in the `test` package of the installed Python, else where `scripts/setup --tests` puts them, or in the `test`
folder that AVER_CPYTHON_TESTS names.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import unittest
from pathlib import Path
from typing import Any

import pytest
from flow_lab import Lab

import aver

# Scripts that expect the prints of a pool's workers; a cancellation that expects a worker to have begun at once.
ELSEWHERE = {
    "test_interpreter_shutdown", "test_submit_after_interpreter_shutdown", "test_hang_gh83386", "test_hang_gh94440",
    "test_cancel_futures",
}  # fmt: skip


def other_folder() -> str | None:
    """Where the tests are, if not in this Python itself."""
    from_debian = os.path.join(sys.prefix, "cpython-tests")
    return os.environ.get("AVER_CPYTHON_TESTS") or (from_debian if os.path.isdir(from_debian) else None)


def mixins() -> list[type[Any]]:
    test = pytest.importorskip("test")
    more = None if importlib.util.find_spec("test.test_concurrent_futures") else other_folder()
    if more:
        test.__path__.append(more)
    whole: Any = pytest.importorskip("test.test_concurrent_futures", reason="this Python has no tests of itself")
    if more:
        import cloudpickle  # type: ignore[import-untyped]

        cloudpickle.register_pickle_by_value(whole)  # jobs have no such module
    if hasattr(whole, "ExecutorTest"):
        return [whole.ExecutorTest, whole.WaitTests, whole.AsCompletedTests, whole.ExecutorShutdownTest]
    places = (("executor", "ExecutorTest"), ("test_wait", "WaitTests"), ("test_as_completed", "AsCompletedTests"),
              ("test_shutdown", "ExecutorShutdownTest"))  # fmt: skip
    return [getattr(importlib.import_module(f"test.test_concurrent_futures.{module}"), name) for module, name in places]


class Base(unittest.TestCase):
    executor_type = aver.Executor
    worker_count = 5

    def setUp(self) -> None:
        self.executor = aver.Executor(max_workers=self.worker_count)

    def tearDown(self) -> None:
        self.executor.shutdown(cancel_futures=True)


TIMED = pytest.mark.long  # they compare times of sleeps
GROUPS = [
    pytest.param(0, id="executor"),
    pytest.param(1, id="wait", marks=TIMED),
    pytest.param(2, id="as_completed", marks=TIMED),
    pytest.param(3, id="shutdown"),
]


@pytest.mark.parametrize("number", GROUPS)
def test_cpythons_tests_pass(lab: Lab, number: int) -> None:
    mixin = mixins()[number]
    case = type(f"Aver{mixin.__name__}", (mixin, Base), {})
    names = [name for name in unittest.defaultTestLoader.getTestCaseNames(case) if name not in ELSEWHERE]
    assert names
    result = unittest.TestResult()
    unittest.TestSuite(map(case, names)).run(result)
    bad = [f"{test}: {text}" for test, text in [*result.failures, *result.errors]]
    assert not bad, "\n".join(bad)


def test_the_kit_of_cpython_is_named_rightly() -> None:
    """A folder that is not there would skip everything in silence."""
    more = os.environ.get("AVER_CPYTHON_TESTS")
    assert more is None or list(Path(more).glob("test_concurrent_futures*"))
