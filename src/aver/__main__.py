"""The command `aver`. `aver --version` is answered without loading the command line."""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # An exception can get lost in the middle of an import; a command that has to clean up says so itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        from aver.version import __version__

        print(f"aver {__version__}")
        return
    from aver.cli.main import main as cli

    cli()


if __name__ == "__main__":
    main()
