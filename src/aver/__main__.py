"""The command `aver`. `aver --version`, and `aver jobs` where nothing was ever submitted, are answered without loading
the command line."""

import os
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
    if sys.platform != "linux":
        from aver.version import wrong_system

        sys.stderr.write(f"aver: {wrong_system()}\n")
        sys.exit(69)
    if sys.argv[1:] == ["jobs"] and _has_no_home() and sys.stderr is not None:
        sys.stderr.write("aver: no jobs; `aver run -- COMMAND` runs one\n")
        return
    from aver.cli.main import main as cli

    cli()


def _has_no_home() -> bool:
    from aver.protocol.place import home_folder

    try:
        os.lstat(home_folder())
    except FileNotFoundError:
        return True
    except OSError:
        pass  # who can't look does not know: the command says what is wrong
    return False


if __name__ == "__main__":
    main()
