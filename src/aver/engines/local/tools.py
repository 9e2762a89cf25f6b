"""Tools that jobs may ask for (`module`, `conda`): which of them this machine has."""

from __future__ import annotations

import os
import shutil

from aver.model.job import Setup

MODULES_INIT = "/usr/share/modules/init/sh"


def has_modules() -> bool:
    """Whether a job's shell finds `module`: a function that is exported, or a file that defines it."""
    home = os.environ.get("MODULESHOME")
    init = MODULES_INIT if home is None else os.path.join(home, "init", "sh")
    return "BASH_FUNC_module%%" in os.environ or os.path.exists(init)


def has_conda() -> bool:
    return shutil.which("conda") is not None


def missing_tools(setup: Setup) -> list[str]:
    """What of a job's setup this machine lacks."""
    missing = []
    if setup.modules and not has_modules():
        missing.append("it asks for modules, and there is no `module` here: install environment-modules or Lmod")
    if setup.conda is not None and not has_conda():
        missing.append("it asks for a conda environment, and conda is not on PATH")
    return missing
