"""`python -m aver.ui`: what `aver ui` becomes. Its argument is the options as JSON."""

from __future__ import annotations

import sys

from aver.errors import AverError
from aver.model.codec import loads
from aver.printable import printable
from aver.ui.server import Options, serve

if __name__ == "__main__":
    try:
        serve(loads(Options, sys.argv[1] if len(sys.argv) > 1 else "{}"))
    except AverError as error:
        print(f"aver: {printable(str(error))}", file=sys.stderr)
        sys.exit(error.exit_status)
