"""The program of a job that calls a function: `program.py FILE CALL`. Run by its path, it needs nothing installed."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from aver.calls.call import call

    sys.exit(call(sys.argv[1], sys.argv[2], int(os.environ["AVER_ATTEMPT"])))
