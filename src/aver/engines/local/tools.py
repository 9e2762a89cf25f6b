"""Tools that jobs may ask for (`module`, `conda`, `container`): which of them this machine has."""

from __future__ import annotations

import os
import shutil
import subprocess

from aver.model.job import Setup

MODULES_INIT = "/usr/share/modules/init/sh"


def has_modules() -> bool:
    """Whether a job's shell finds `module`: a function that is exported, or a file that defines it."""
    home = os.environ.get("MODULESHOME")
    init = MODULES_INIT if home is None else os.path.join(home, "init", "sh")
    return "BASH_FUNC_module%%" in os.environ or os.path.exists(init)


def has_conda() -> bool:
    return shutil.which("conda") is not None


def has_container_engine(name: str) -> bool:
    return shutil.which(name) is not None


def container_problem(name: str) -> str:
    """Why no job could have a container of this engine, as it says itself; empty if it could."""
    ask = {"podman": ["info", "--format", "{{.Host.OCIRuntime.Name}}"], "docker": ["version"]}.get(name, ["--version"])
    try:
        done = subprocess.run([name, *ask], capture_output=True, text=True, errors="replace", timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "it does not answer"
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if done.returncode:
        return said[-1] if said else f"it exits {done.returncode}"
    if name == "podman" and done.stdout.strip() != "crun":
        return f"it uses {done.stdout.strip()}, and only crun leaves a container in its job's cgroup: install crun"
    return ""


def missing_tools(setup: Setup) -> list[str]:
    """What of a job's setup this machine lacks."""
    missing = []
    if setup.modules and not has_modules():
        missing.append("it asks for modules, and there is no `module` here: install environment-modules or Lmod")
    if setup.conda is not None and not has_conda():
        missing.append("it asks for a conda environment, and conda is not on PATH")
    engine = None if setup.container is None else setup.container.engine
    if engine is not None and not has_container_engine(engine):
        missing.append(f"it asks for a container of {engine}, which is not on PATH")
    return missing
