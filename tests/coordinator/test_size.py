"""What the coordinator, which stays in memory for days, does without."""

from __future__ import annotations

import hashlib
import hmac
import subprocess
import sys
from pathlib import Path

from aver.client.input_files import hash_file
from aver.coordinator.known_run import DIGEST_HEX, with_content
from aver.home import Home
from aver.model.codec import dumps, encode
from aver.model.job import Argv, FlowSpec, JobSpec, Origin, Submission
from aver.store.secrets import home_key

LARGE = {"_hashlib", "ast", "click", "dataclasses", "inspect", "rich", "typing_extensions", "yaml"}
LOOK = "import sys, aver.coordinator.__main__; from aver.coordinator.requests.dispatch import handlers; handlers(); "


def test_no_large_module_is_loaded() -> None:
    """With all its handlers; each of these takes 0.3 to 3.5 MB."""
    words = [sys.executable, "-c", LOOK + "print(*sys.modules)"]
    loaded = set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
    assert "aver.coordinator.loop" in loaded
    assert loaded & LARGE == set()


def test_digests_are_the_same_without_openssl(tmp_path: Path) -> None:
    """Of large files and of texts; OpenSSL is loaded only for the former."""
    path = tmp_path / "large"
    path.write_bytes(b"abc" * 1_000_000)
    look = LOOK + (
        "from aver.client.input_files import hash_file; import hashlib, hmac; "
        "print(hashlib.sha256(b'x').hexdigest(), hmac.digest(b'k', b'x', 'sha256').hex(), '_hashlib' in sys.modules, "
        f"hash_file({str(path)!r}), '_hashlib' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.split()
    text, keyed = hashlib.sha256(b"x").hexdigest(), hmac.digest(b"k", b"x", "sha256").hex()
    file = hashlib.sha256(path.read_bytes()).hexdigest()
    assert said == [text, keyed, "False", file, "True"]
    assert hash_file(str(path)) == file


def test_the_digest_of_a_submission_stays(tmp_path: Path) -> None:
    """A run that an earlier version stored with a key is still found by it."""
    home = Home(tmp_path / "home")
    home.prepare()
    for name in ("plain", "é\udcff"):
        flow = FlowSpec(name, (JobSpec(name, Argv(("echo", "null", name))),))
        asked = Submission(flow, Origin("me", 1, "host", "/tmp", 0o22), key="mine")
        text = dumps([encode(flow), asked.engine, asked.host, encode(asked.allocation), "/tmp"])
        digest = hmac.digest(home_key(str(home.path)), text.encode(), "sha256").hex()[:DIGEST_HEX]
        assert with_content(home, asked).content == digest
