"""What `import aver` gives: build a flow, run it, and read its verdicts.

The same flow as a YAML file describes, checked by the same code; the same verdict objects as
every other surface shows. Reads go to the store, writes through the coordinator. Nothing is
kept here: two `Run(3)` in two processes say the same. An `Executor` runs functions as jobs.
"""

from aver.api.attempt import Attempt
from aver.api.executor import *  # noqa: F403
from aver.api.executor import __all__ as _executor
from aver.api.flow import Flow, FlowJob
from aver.api.job import Job
from aver.api.run import Run

__all__ = ["Attempt", "Flow", "FlowJob", "Job", "Run", *_executor]
