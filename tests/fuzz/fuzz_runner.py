"""Runs a target on its corpus and on mutations of it: no traceback, no 2 s of CPU time, no 500 MB for one input.

`scripts/fuzz` uses atheris where it is installed, which finds its way by coverage; the mutations here need nothing
and are the same for a seed. What is found is written to the corpus, and so is run for ever after.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

from fuzz_targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
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


def attempt(target: str, data: bytes) -> str | None:
    """What is wrong; None if nothing is."""

    def hang(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGPROF, hang)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
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
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
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
    grown = f"/tmp/aver-fuzz-corpus-{target}"
    os.makedirs(grown, exist_ok=True)
    os.dup2(sys.stderr.fileno(), 2)
    atheris.Setup([sys.argv[0], *words, grown, str(folder)], fuzz_targets.TARGETS[target])
    atheris.Fuzz()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description="Fuzz one of: " + ", ".join([*TARGETS, "witness"]))
    parser.add_argument("target", choices=list(TARGETS))
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--own", action="store_true", help="use the mutations of this file even if atheris is there")
    asked = parser.parse_args()
    try:
        import atheris  # noqa: F401
    except ImportError:
        asked.own = True
    if not asked.own:
        return run_atheris(asked.target, asked.minutes)
    quiet()
    count, found = run(asked.target, asked.seed, time.monotonic() + asked.minutes * 60, sys.maxsize)
    print(f"{asked.target}: {count} inputs, {len(found)} findings", *found, sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
