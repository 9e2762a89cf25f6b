"""The command `aver`. `aver --version` is answered without loading the command line."""

import sys


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        from aver import __version__

        print(f"aver {__version__}")
        return
    from aver.cli.main import main as cli

    cli()


if __name__ == "__main__":
    main()
