"""A digest of failures as lines of text."""

from __future__ import annotations

from aver.printable import printable
from aver.report.digest import Digest, DigestCause


def digest_text(made: Digest) -> str:
    """The whole text, as it is written and counted."""
    counts = ", ".join(f"{count} {word}" for word, count in made.counts.items())
    lines = [f"run {made.run} {printable(made.name)} {made.state}: {counts}"]
    if not made.causes and not made.causes_left_out:
        lines.append("No job has failed yet." if made.unsettled else "No job failed.")
    for cause in made.causes:
        lines += _cause_lines(cause)
    if made.causes_left_out:
        lines.append(f"truncated: {made.causes_left_out} more {'cause' if made.causes_left_out == 1 else 'causes'}")
    elif made.is_truncated:
        lines.append("truncated: logs")
    lines += [f"next: {command}" for command in made.next]
    return "".join(f"{line}\n" for line in lines)


def _cause_lines(cause: DigestCause) -> list[str]:
    lines = ["", f"{cause.state}: {printable(cause.sentence)}"]
    if cause.count > 1:
        rest = f" and {cause.count - len(cause.jobs)} more" if cause.count > len(cause.jobs) else ""
        lines.append(f"  jobs {', '.join(map(str, cause.jobs))}{rest}")
    for hint in cause.hints:
        where = f"job {hint.job}" if hint.count == 1 else f"{hint.count} logs, first of job {hint.job}"
        lines.append(f"  hint ({hint.name}): `{printable(hint.line)}` in {where}; {hint.advice}")
    if cause.log is not None:
        cut = " ends" if cause.log.is_cut else ""
        lines.append(f"  log of job {cause.log.job}, {printable(cause.log.path)}{cut}:")
        lines += [f"  | {printable(line, keep=chr(9))}" for line in cause.log.text.split("\n")]
    return lines + [f"  next: {command}" for command in cause.next]
