"""Runs a target on its corpus and on mutations of it: no traceback, no 2 s of CPU time, no 500 MB for one input.

`scripts/fuzz` uses atheris where it is installed, which finds its way by coverage; the mutations here need nothing
and are the same for a seed. What is found is written to the corpus, and so is run for ever after. Inputs and minutes
of each target are added up in `runs.json`; what atheris grows is kept in the user's cache folder and used again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

from fuzz_targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
RUNS = Path(__file__).with_name("runs.json")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aver-fuzz"
LONGEST_CPU_S = 2.0
MOST_BYTES = 500 << 20
LONGEST_INPUT = 4096
TOKENS = (
    b"-1", b"0", b"99999999999999999999", b"1e400", b"NaN", b"\xff", b"\xc3\x28", b"\0", b"\n", b"[", b"]", b"{", b"}",
    b"*a", b"&a", b"!!python/object", b"%", b"=", b",", b"..", b"\x1b[2J", b"null", b"true", b'"', b"'", b"\\", b":",
    b"- ", b"  ", b"0-99999999", b"1:2:3:4", b"\xf0\x9f\x92\xa9", b"\xe2\x80\xae", b"a" * 300,
)  # fmt: skip


class Hang(Exception):
    pass


def seeds_of(target: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def mutate(seeds: list[bytes], chance: random.Random) -> bytes:
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(6):
            case 0:
                data[at:at] = chance.choice(TOKENS)
            case 1:
                del data[at : at + chance.randint(1, 16)]
            case 2 if data:
                data[at % len(data)] ^= 1 << chance.randrange(8)
            case 3:
                other = chance.choice(seeds)
                begin = chance.randrange(len(other) + 1)
                data[at:] = other[begin:]
            case 4:
                data[at:at] = data[at : at + chance.randint(1, 64)] * chance.randint(1, 8)
            case _:
                words = data.split(b"\n")
                chance.shuffle(words)
                data = bytearray(b"\n".join(words))
    return bytes(data[:LONGEST_INPUT])


def peak_bytes() -> int:
    """The most memory that this process has had since its exec; ru_maxrss has that of its parent, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def attempt(target: str, data: bytes) -> str | None:
    """What is wrong; None if nothing is."""

    def hang(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGPROF, hang)
    before = peak_bytes()
    signal.setitimer(signal.ITIMER_PROF, LONGEST_CPU_S)
    try:
        TARGETS[target](data)
    except Hang:
        return f"more than {LONGEST_CPU_S:g} s of CPU time"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return "".join(traceback.format_exception(error))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = peak_bytes() - before
    return f"{grown >> 20} MiB" if grown > MOST_BYTES else None


def keep(target: str, data: bytes) -> Path:
    path = CORPUS / target / f"found-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


def quiet() -> None:
    """Commands write to descriptors; nobody wants to see that. Findings go to the old stderr."""
    sys.stderr = os.fdopen(os.dup(2), "w")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)


def run(target: str, seed: int, until: float, most: int) -> tuple[int, list[str]]:
    """The corpus, then mutations; how many inputs there were, and what is wrong."""
    seeds = seeds_of(target)
    chance = random.Random(f"{seed}.{target}")
    found, count = [], 0
    inputs = [*seeds]
    while inputs or (count < most and time.monotonic() < until):
        data = inputs.pop() if inputs else mutate(seeds, chance)
        count += 1
        if wrong := attempt(target, data):
            found.append(f"{target}: {keep(target, data).name}: {wrong}")
            seeds = [one for one in seeds if one != data] or seeds
    return count, found


def add_run(target: str, inputs: int, minutes: float, findings: int, runs: Path = RUNS) -> None:
    """Add a run to what was counted."""
    counted = json.loads(runs.read_text()) if runs.exists() else {}
    before = counted.get(target, {"inputs": 0, "minutes": 0.0, "findings": 0})
    minutes = round(before["minutes"] + minutes, 1)
    counted[target] = {
        "inputs": before["inputs"] + inputs, "minutes": minutes, "findings": before["findings"] + findings,
    }  # fmt: skip
    part = runs.with_suffix(".part")
    part.write_text(json.dumps(counted, indent=1) + "\n")
    part.replace(runs)


def watch_fuzzer(target: str, words: list[str]) -> int:
    """Run a libFuzzer or atheris, which ends its process itself, and count what it says that it did."""
    began, inputs = time.monotonic(), 0
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, errors="replace")
    assert process.stderr is not None
    for line in process.stderr:
        sys.stderr.write(line)
        if said := re.match(r"stat::number_of_executed_units:\s*(\d+)|#(\d+)\s", line):
            inputs = max(inputs, int(said[1] or said[2]))
    status = process.wait()
    add_run(target, inputs, (time.monotonic() - began) / 60, int(status != 0))
    return status


def run_atheris(target: str, minutes: float) -> int:
    import atheris

    with atheris.instrument_imports(include=["aver", "yaml", "json"]):
        for name in [name for name in sys.modules if name.startswith("aver.") or name == "fuzz_targets"]:
            del sys.modules[name]
        import fuzz_targets

    quiet()
    folder = CORPUS / target
    words = [f"-max_total_time={minutes * 60:.0f}", "-timeout=20", "-rss_limit_mb=700", f"-max_len={LONGEST_INPUT}"]
    words += [f"-artifact_prefix={folder}/found-", "-print_final_stats=1", "-close_fd_mask=1"]
    grown = CACHE / target
    grown.mkdir(parents=True, exist_ok=True)
    os.dup2(sys.stderr.fileno(), 2)
    atheris.Setup([sys.argv[0], *words, str(grown), str(folder)], fuzz_targets.TARGETS[target])
    atheris.Fuzz()
    return 0


def run_witness(program: Path, minutes: float) -> int:
    """The frames of the witness. As root it gives up its rights, and so it grows its inputs in a folder for all."""
    grown, found = program.parent / "grown", program.parent / "found"
    kept = CACHE / "witness"
    kept.mkdir(parents=True, exist_ok=True)
    shutil.copytree(kept, grown)
    found.mkdir()
    for folder in (program.parent, grown, found):
        folder.chmod(0o777)
    limits = ["-timeout=2", "-rss_limit_mb=500", "-max_len=4096", "-print_final_stats=1"]
    words = [f"-max_total_time={minutes * 60:.0f}", *limits, f"-artifact_prefix={found}/found-", str(grown)]
    status = watch_fuzzer("witness", [str(program), *words, str(CORPUS / "witness")])
    shutil.copytree(grown, kept, dirs_exist_ok=True)
    shutil.copytree(found, CORPUS / "witness", dirs_exist_ok=True)
    return status


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description="Fuzz one of: " + ", ".join([*TARGETS, "witness"]))
    parser.add_argument("target", choices=[*TARGETS, "witness"])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--own", action="store_true", help="use the mutations of this file even if atheris is there")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # atheris, which ends its process
    parser.add_argument("--program", type=Path, help=argparse.SUPPRESS)  # of the witness, as scripts/fuzz compiles it
    asked = parser.parse_args()
    if asked.target == "witness":
        return run_witness(asked.program, asked.minutes)
    try:
        import atheris  # noqa: F401
    except ImportError:
        asked.own = True
    if not asked.own and not asked.here:
        return watch_fuzzer(asked.target, [sys.executable, *sys.argv, "--here"])
    if not asked.own:
        return run_atheris(asked.target, asked.minutes)
    quiet()
    began = time.monotonic()
    count, found = run(asked.target, asked.seed, time.monotonic() + asked.minutes * 60, sys.maxsize)
    add_run(asked.target, count, (time.monotonic() - began) / 60, len(found))
    print(f"{asked.target}: {count} inputs, {len(found)} findings", *found, sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
