"""A program of a user, which mypy reads and nobody runs."""

import asyncio
import concurrent.futures
from typing import assert_type

import aver


def fit(rate: float, seed: int) -> dict[str, float]:
    return {"loss": rate * seed}


def best(fits: list[dict[str, float]]) -> float:
    return min(one["loss"] for one in fits)


async def main() -> None:
    with aver.Executor(name="sweep", max_workers=4, warm=["json"], mem="1G", retry={"max": 2}) as executor:
        future = executor.submit(fit, 0.1, seed=3, aver={"mem": "2G", "key": "fit-3"})
        assert_type(future, aver.Future[dict[str, float]])
        assert_type(future.result(timeout=10), dict[str, float])
        assert_type(future.exception(), BaseException | None)
        assert_type(future.job, aver.Job | None)
        assert_type(future.attempts[0].reason, str | None)
        fits = [executor.submit(fit, 0.1, seed) for seed in range(3)]
        assert_type(executor.submit(best, fits), aver.Future[float])
        assert_type(list(executor.map(len, ["a", "bc"], chunksize=2)), list[int])
        assert_type(await asyncio.wrap_future(future), dict[str, float])
        for done in concurrent.futures.as_completed(fits):
            assert_type(done.result(), dict[str, float])
        assert_type(executor.options(mem="4G").submit(pow, 2, 3).job, aver.Job | None)
        assert_type(executor.futures[0].cancel(), bool)
        assert_type(executor.counts(), dict[str, int])
    flow = aver.Flow("train", defaults={"time": "1h"})
    prep = flow.job("prep", run="true")
    flow.job("fit", fn=fit, args=(0.1, 3), needs=prep, mem="1G")
    run = flow.submit(key="nightly-7")
    assert_type(run, aver.Run)
    state = await run.wait_async(timeout=60)
    print(state.is_settled, run.wait(60) is state, run.result("fit"))
    job = run["fit"]
    assert_type(job, aver.Job)
    verdict = await job.wait_async()
    print(verdict.state, verdict.exit, verdict.reason, job.log(), job.attempts[-1].peak_bytes)
    assert_type(job.reason, str | None)
    for result in run.results():
        print(result.name, result.state, result.elapsed_s)
    try:
        future.result()
    except aver.OutOfMemory as error:
        assert_type(error.why, str)
        assert_type(error.job, aver.Job | None)
        print(error.verdict.state if error.verdict is not None else None, error.log_tail)
    except (aver.TimedOut, aver.Lost, aver.Cancelled) as other:
        print(other.why)


if __name__ == "__main__":
    asyncio.run(main())
