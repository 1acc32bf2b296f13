"""CRC-32C, computed in C by the crc32c package.

The package asks for its own version when it is imported, and reading the metadata of installed packages for that
takes longer than importing a room of ours. So its extension module is loaded by itself; where a release keeps that
elsewhere, the package is imported as usual.
"""

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Protocol, cast


class Crc(Protocol):
    """The checksum of some bytes, or of what has the checksum `crc` with those bytes behind it."""

    def __call__(self, data: bytes | bytearray | memoryview, crc: int = 0, /) -> int: ...


_EXTENSION = "crc32c._crc32c"


def _load() -> Crc:
    package = find_spec("crc32c")
    extension = package and PathFinder.find_spec(_EXTENSION, package.submodule_search_locations)
    if extension and extension.loader:
        module = module_from_spec(extension)
        extension.loader.exec_module(module)
        return cast(Crc, module.crc32c)
    import crc32c

    return cast(Crc, crc32c.crc32c)


crc32c: Crc = _load()
