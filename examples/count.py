"""Count up to a number; when warned with TERM, save and exit 0, and go on from there the next time."""

import pathlib
import signal
import sys
import time

warned = False


def warn(*_: object) -> None:
    global warned
    warned = True


signal.signal(signal.SIGTERM, warn)
path = pathlib.Path("count.txt")
count = int(path.read_text()) if path.exists() else 0
while count < int(sys.argv[1]) and not warned:
    time.sleep(0.5)
    count += 1
    print(count)
path.write_text(str(count))
