"""For the modules of Slurm's commands, which are called in loops: the cost of their imports is the cost of a call.

This is the only place with CPython's private modules, and with a TYPE_CHECKING that is not `typing`'s: type checkers
take `if TYPE_CHECKING:` for true wherever the name comes from. Million instructions of one import after `os` and
`sqlite3`, where a whole `squeue` takes 83 (Python 3.11.7, callgrind): typing 29.7; json 19.8, _json 0.2; socket 21.6,
_socket 1.3; signal 10.9, _signal 0. `threading` takes 1.1 ms, `_thread` nothing.
"""

import _json as c_json
import _signal as c_signal  # type: ignore[import-not-found]
import _socket as c_socket
import _thread as c_thread

__all__ = ["TYPE_CHECKING", "c_json", "c_signal", "c_socket", "c_thread"]

TYPE_CHECKING = False
