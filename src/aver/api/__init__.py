"""What `import aver` gives: build a flow, run it, and read its verdicts.

The same flow as a YAML file describes, checked by the same code; the same verdict objects as
every other surface shows. Reads go to the store, writes through the coordinator. Nothing is
kept here: two `Run(3)` in two processes say the same.
"""

from aver.api.flow import Flow, FlowJob
from aver.api.job import Job
from aver.api.run import Run

__all__ = ["Flow", "FlowJob", "Job", "Run"]
