"""Compile what is in C and copy the user's pages into the package; everything else is in pyproject.toml.

AVER_WHEEL_PLATFORM names the platforms of a wheel that is for other machines too, as in its name: its programs are
static. CC is the compiler, as everywhere; scripts/release sets both.
"""

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

PACKAGE = Path("src/aver")
PLATFORM = os.environ.get("AVER_WHEEL_PLATFORM", "")
PAGES = ("en", "zh")  # folders of docs; their Markdown is what `aver docs` shows


class BuildWithPrograms(build_py):
    """Beside the Python files, the programs in C, in place for an editable install; and `aver/docs`."""

    def run(self) -> None:
        super().run()
        builder = _builder()
        try:
            builder.compile_all(PACKAGE if self.editable_mode else Path(self.build_lib) / "aver", bool(PLATFORM))
        except builder.CompileError as error:
            sys.exit(f"aver: {error}")
        if not self.editable_mode:
            self._copy_pages(Path(self.build_lib) / "aver" / "docs")

    def _copy_pages(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)  # pages of an earlier build
        for language in PAGES:
            for page in sorted(Path("docs", language).rglob("*.md")):
                copy = folder / page.relative_to("docs")
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(page, copy)


class WithBinary(Distribution):
    """The package holds compiled programs, so a wheel is for one platform."""

    def has_ext_modules(self) -> bool:
        return True


class PlatformWheel(bdist_wheel):
    """Any Python 3, one platform: the programs do not link to Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", PLATFORM or super().get_tag()[2]


def _builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("aver_build", PACKAGE / "witness" / "build.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(PACKAGE / "witness" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if sys.platform != "linux":
    sys.exit(f"aver: Aver needs Linux, and this is {sys.platform}: docs/en/reference/macos.md says what it uses")
setup(distclass=WithBinary, cmdclass={"build_py": BuildWithPrograms, "bdist_wheel": PlatformWheel})
