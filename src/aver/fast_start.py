"""Imports that cost less: of Slurm's commands, which are called in loops, and of the coordinator, which stays.

This is the only place with CPython's private modules, and with a TYPE_CHECKING that is not `typing`'s: type checkers
take `if TYPE_CHECKING:` for true wherever the name comes from. Million instructions of one import after `os` and
`sqlite3`, where a whole `squeue` takes 83 (Python 3.11.7, callgrind): typing 29.7; json 19.8, _json 0.2; socket 21.6,
_socket 1.3; signal 10.9, _signal 0. `threading` takes 1.1 ms, `_thread` nothing. msgspec takes 1.4 MB less
without `typing_extensions`, from which it takes what `typing` has since Python 3.11; hashlib and hmac take 3.5 MB less
without OpenSSL.
"""

import _json as c_json
import _signal as c_signal  # type: ignore[import-not-found]
import _socket as c_socket
import _thread as c_thread
import sys

__all__ = ["TYPE_CHECKING", "c_json", "c_signal", "c_socket", "c_thread", "import_without", "openssl_sha256"]

TYPE_CHECKING = False

if TYPE_CHECKING:
    from hashlib import _Hash as Hash


def import_without(module: str, heavy: str) -> None:
    """Import a module without another one that it uses if it finds it, and can do without.

    As usual where other threads run: one of them may be importing the other module.
    """
    if c_thread._count() or module in sys.modules or heavy in sys.modules:
        return
    sys.modules[heavy] = None  # type: ignore[assignment]
    try:
        __import__(module)
    finally:
        del sys.modules[heavy]


def openssl_sha256() -> "Hash":
    """A SHA-256 for large files: five times as fast as the interpreter's own, which `import_without` may leave."""
    try:
        from _hashlib import openssl_sha256
    except ImportError:
        from hashlib import sha256

        return sha256()
    return openssl_sha256()
