"""Containers for tests: an image made of this machine's own programs, and a podman that has it."""

from __future__ import annotations

import json
import os
import resource
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

IMAGE = "localhost/aver-test:1"
WAIT_S = 240
PROGRAMS = ("bash", "cat", "sleep", "nproc", "head", "tr")
# crun refuses a machine that has both versions of cgroups; where v2 is only beside v1, crun does not see it.
CRUN = 'umount -l /sys/fs/cgroup/unified 2>/dev/null; exec {crun} "$@"'


def make_image(folder: Path) -> Path:
    """Some of this machine's own programs and their libraries: nothing is fetched."""
    found: dict[str, str] = {}
    for name in PROGRAMS:
        program = os.path.realpath(shutil.which(name) or "")
        found[f"bin/{name}"] = program
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        libraries = [word for word in said.split() if word.startswith("/")]
        found |= {word.lstrip("/"): os.path.realpath(word) for word in libraries}
    path = folder / "image.tar"
    with tarfile.open(path, "w") as image:
        for name, source in found.items():
            image.add(source, name)
        for name in ("tmp", "proc", "dev", "sys", "etc"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            image.addfile(entry)
    return path


def podman_environment(folder: Path) -> dict[str, str]:
    """The variables with which podman has the image, in a storage of its own in `folder`."""
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    storage = folder / "storage.conf"
    storage.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n')
    files, processes = (resource.getrlimit(one)[1] for one in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
    limits = [f"nofile={files}:{files}", f"nproc={min(processes, 32768) if processes > 0 else 32768}"]
    config = f"[containers]\ndefault_ulimits = {json.dumps(limits)}\n"
    crun = shutil.which("crun")
    if os.path.isdir("/sys/fs/cgroup/unified") and crun is not None:
        runtime = folder / "crun"
        inner = CRUN.format(crun=crun)
        runtime.write_text(f'#!/bin/sh\nexec unshare -m sh -c {shlex.quote(inner)} crun "$@"\n')
        runtime.chmod(0o755)
        config += f'[engine]\nruntime = "crun"\n[engine.runtimes]\ncrun = ["{runtime}"]\n'
    (folder / "containers.conf").write_text(config)
    env = {"CONTAINERS_STORAGE_CONF": str(storage), "CONTAINERS_CONF": str(folder / "containers.conf")}

    def said(*words: str) -> str:
        """Empty if podman did it."""
        done = subprocess.run(
            ["podman", *words], env={**os.environ, **env}, capture_output=True, text=True, timeout=WAIT_S, check=False
        )
        return "" if done.returncode == 0 else done.stderr.strip()[-300:] or f"exit {done.returncode}"

    trial = ("run", "--rm", "--network=host", "--cgroups=disabled", "--log-driver=none", IMAGE, "bash", "-c", ":")
    problem = said("import", str(make_image(folder)), IMAGE) or said(*trial)
    if problem:
        pytest.skip(f"podman runs no container here: {problem}")
    return env


def remove_boxes(environment: dict[str, str]) -> None:
    """What containers that were killed left mounted."""
    subprocess.run(["podman", "rm", "-fa"], env={**os.environ, **environment}, capture_output=True, check=False)
