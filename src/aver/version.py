"""The version of the package, and the system that it is for."""

import sys

__version__ = "0.2.0"


def wrong_system() -> str:
    """The sentence for a system that Aver does not run on; empty on Linux."""
    if sys.platform == "linux":
        return ""
    return f"Aver needs Linux, and this is {sys.platform}: use a Linux machine, a virtual machine or a container"
