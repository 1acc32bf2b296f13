"""Processes that start with an image: modules to import, texts to compile, and what is said of them.

Their bytecode goes into the directory of the test, and may be written whatever this process may.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

BEGIN = """
import sys
from ottla.cli import start_image
image = start_image.StartImage({image!r})
sys.path[:0] = {paths!r}
image.open()

def from_image(*names):
    print(*(type(sys.modules[name].__spec__.loader) is start_image._Loader for name in names))

def no_compiler(*args, **options):
    raise AssertionError("compiled again")
"""
IMPORTS = """
import package.inner, single
print(package.value, package.inner.value, single.value)
from_image("package", "package.inner", "single")
"""
VALUES, COMPILED, SERVED = "1 2 3", "False False False", "True True True"
TEXT = "def give(x):\n    return [x * 2, 'a text']\n"
TEXTS = f"""
TEXT, TITLE = {TEXT!r}, "<a title>"
code = image.compile(TEXT, TITLE)
names = {{}}
exec(code, names)
print(code == compile(TEXT, TITLE, "exec", dont_inherit=True), code.co_filename, names["give"](3))
"""
COMPILED_WELL = "True <a title> [6, 'a text']"
NO_COMPILER = "start_image._compile = no_compiler\n"


class World:
    """Modules to import, a place for the image, and processes that know of both."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bytecode = directory / "bytecode"
        self.modules = directory / "modules"
        self.image = directory / "start.image"
        write(self.modules / "package" / "__init__.py", "value = 1\n")
        write(self.modules / "package" / "inner.py", "value = 2\n")
        write(self.modules / "single.py", "value = 3\n\ndef ask():\n    return value\n")

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "PYTHONPYCACHEPREFIX": str(self.bytecode), **more}

    def run(
        self, script: str, *, paths: Sequence[Path] = (), image: Path | None = None, **more: str
    ) -> list[str]:
        """The lines that a script says after the image is open."""
        paths = [*paths] or [self.modules]
        begin = BEGIN.format(image=str(image or self.image), paths=[str(path) for path in paths])
        done = subprocess.run(
            [sys.executable, "-c", begin + script],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=self.environment(**more),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def start(self, script: str, *, paths: Sequence[Path] = (), **more: str) -> list[str]:
        """The same, and the image is saved as after a start."""
        return self.run(f"{script}\nimage.save()", paths=paths, **more)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def identity(path: Path) -> tuple[int, int]:
    """Another one after each time that it is written."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns
