"""The local conformance matrix, as an ordinary user of the virtual machine."""

from __future__ import annotations

import pytest
from vm_desk import Vm

pytestmark = pytest.mark.long


def test_every_cell_is_as_expected(vm: Vm) -> None:
    """Time limits are real seconds, and the processor is emulated: few cases at a time."""
    vm.ask("aver conformance --jobs 2 --timeout 6000")
