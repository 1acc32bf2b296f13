"""The file that has what earlier starts read and compiled: what comes from it, and what does not.

Each run is a process of its own, for this one has imported everything already.
"""

import marshal
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, produce
from tests.cli.start_world import (
    COMPILED,
    COMPILED_WELL,
    IMPORTS,
    NO_COMPILER,
    SERVED,
    TEXTS,
    VALUES,
    World,
    identity,
    write,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_second_start_has_its_modules_from_the_image(world: World) -> None:
    """A package, what is in it and a module beside it; and there is nothing new to write down."""
    assert world.start(IMPORTS) == [VALUES, COMPILED]
    written = identity(world.image)
    assert world.start(IMPORTS) == [VALUES, SERVED]
    assert identity(world.image) == written
    assert [path.name for path in world.directory.glob("start.image*")] == ["start.image"]


def test_a_module_of_the_image_looks_like_any_other(world: World) -> None:
    """All that it and its spec say of themselves, and the source that inspect finds."""
    script = """
import inspect, package.inner, single
for module in (package, package.inner, single):
    spec = module.__spec__
    print(module.__name__, module.__package__, module.__file__, module.__cached__, getattr(module, "__path__", None))
    print(spec.name, spec.parent, spec.origin, spec.cached, spec.has_location, spec.submodule_search_locations)
    print(module.__loader__ is spec.loader, spec.loader.is_package(spec.name), inspect.getsourcefile(module))
    print(ascii(inspect.getsource(module)))
print(ascii(inspect.getsource(single.ask)), single.ask.__code__.co_filename)
"""
    ordinary = world.run("image.close()\n" + script)
    world.start(IMPORTS)
    assert world.run(script + IMPORTS) == [*ordinary, VALUES, SERVED]


@pytest.mark.parametrize("again", ["importlib.reload(single)", "single.__loader__.exec_module(single)"])
def test_a_module_of_the_image_is_loaded_again_from_its_source(world: World, again: str) -> None:
    """The code of the image is for one time, and the source may be another one later."""
    world.start(IMPORTS)
    script = f"""
import importlib
with open(single.__file__, "w") as file:
    file.write("value = 'changed'")
{again}
print(single.value)
"""
    assert world.run(IMPORTS + script) == [VALUES, SERVED, "changed"]


def test_what_one_start_needs_and_another_does_not_stays(world: World) -> None:
    """Starts of several kinds take turns without writing each time."""
    world.start("import single")
    world.start("import package.inner")
    written = identity(world.image)
    assert world.start("import single\nfrom_image('single')") == ["True"]
    assert world.start(IMPORTS) == [VALUES, SERVED]
    assert identity(world.image) == written


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("value = 4\n", 7), ("value = 'longer'\n", 0), ("value = 'both'\n", 7)],
    ids=["time", "size", "time and size"],
)
@pytest.mark.parametrize("name", ["package", "package.inner", "single"])
def test_a_changed_source_is_imported_anew(world: World, name: str, text: str, seconds: int) -> None:
    """It is enough that the time or the size is another one. Then the image has the new code, and the others' still."""
    world.start(IMPORTS)
    path = {
        "package": world.modules / "package" / "__init__.py",
        "package.inner": world.modules / "package" / "inner.py",
        "single": world.modules / "single.py",
    }[name]
    before = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(before, before + seconds * 10**9))
    script = f"import package.inner, single\nprint(sys.modules[{name!r}].value)\nfrom_image({name!r})\n"
    value = str(eval(text.partition(" = ")[2]))
    assert world.start(script) == [value, "False"]
    written = identity(world.image)
    assert world.start(script + "from_image('package', 'package.inner', 'single')") == [value, "True", SERVED]
    assert identity(world.image) == written


def test_a_source_that_changes_while_the_image_is_saved_is_imported_anew(world: World) -> None:
    """The time and the size in the image are those of the source that the code is of."""
    script = """
import single

def changing(name):
    code = type(loader).get_code(loader, name)
    with open(single.__file__, "w") as file:
        file.write("value = 'changed'")
    return code

loader = single.__loader__
loader.get_code = changing
"""
    world.start(script)
    assert world.start("import single\nprint(single.value)") == ["changed"]


def test_a_source_that_is_gone_is_not_found(world: World) -> None:
    """As without the image."""
    world.start(IMPORTS)
    (world.modules / "package" / "inner.py").unlink()
    (world.modules / "single.py").unlink()
    script = """
for name in ("package", "package.inner", "single"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error)
"""
    assert world.start(script) == ["No module named 'package.inner'", "No module named 'single'"]


def test_a_module_that_comes_earlier_on_the_path_wins(world: World) -> None:
    """Whoever puts a directory before another one means what is in it; a package brings what is in that."""
    world.start(IMPORTS)
    earlier = world.directory / "earlier"
    write(earlier / "single.py", "value = 'earlier'\n")
    write(earlier / "package" / "__init__.py", "value = 'earlier package'\n")
    write(earlier / "package" / "inner.py", "value = 'earlier inner'\n")
    told = "earlier package earlier inner earlier"
    assert world.start(IMPORTS, paths=[earlier, world.modules]) == [told, COMPILED]
    assert world.start(IMPORTS, paths=[earlier, world.modules]) == [told, SERVED]
    assert world.start(IMPORTS, paths=[world.modules, earlier]) == [VALUES, COMPILED]


def test_a_package_beside_a_module_wins(world: World) -> None:
    """So the import system has it where both are in one directory."""
    world.start(IMPORTS)
    write(world.modules / "single" / "__init__.py", "value = 'package'\n")
    assert world.run(IMPORTS) == ["1 2 package", "True True False"]


def test_a_package_that_is_in_several_places_is_searched_in_the_ordinary_way(world: World) -> None:
    """Its first place has the module too, and comes first."""
    world.start(IMPORTS)
    write(world.directory / "more" / "inner.py", "value = 'more'\n")
    more = str(world.directory / "more")
    script = f"import package\npackage.__path__.insert(0, {more!r})\nimport package.inner\nprint(package.inner.value)"
    assert world.run(script) == ["more"]


def test_a_source_that_was_moved_with_its_bytecode_knows_its_place(world: World) -> None:
    """The bytecode is valid but names the old place, which would be in every traceback."""
    ask = (
        "import inspect, single\nprint(single.ask.__code__.co_filename, ascii(inspect.getsource(single.ask)))"
    )
    [cached] = world.run("image.close()\nimport single\nprint(single.__cached__)")
    moved = world.directory / "moved"
    os.rename(Path(cached).parent, Path(cached).parent.with_name("moved"))
    os.rename(world.modules, moved)
    expected = [f"{moved / 'single.py'} 'def ask():\\n    return value\\n'"]
    for _ in range(3):
        assert world.start(ask, paths=[moved]) == expected


def cut(eighths: int) -> Callable[[bytes], bytes]:
    return lambda whole: whole[: len(whole) * eighths // 8]


def zeros_after(eighths: int) -> Callable[[bytes], bytes]:
    return lambda whole: cut(eighths)(whole).ljust(len(whole), b"\0")


def other_index(index: object) -> Callable[[bytes], bytes]:
    data = marshal.dumps(index)
    content = len(data).to_bytes(8) + data
    return lambda whole: (
        whole[: whole.index(MAGIC_NUMBER) + len(MAGIC_NUMBER)] + source_hash(content) + content
    )


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "one byte": lambda whole: whole[:1],
    "only what wrote it": lambda whole: whole[: len(MAGIC_NUMBER)],
    "a length and nothing else": lambda whole: whole[: len(MAGIC_NUMBER) + 8],
    "all but the end": lambda whole: whole[:-5],
    "zeros": lambda whole: bytes(len(whole)),
    "noise": lambda whole: whole[: len(MAGIC_NUMBER) + 8] + b"\xff" * 200,
    "an index of nothing": other_index(None),
    "an index of two nothings": other_index((None, None)),
    **{f"{eighths} eighths": cut(eighths) for eighths in range(1, 8)},
    **{f"zeros after {eighths} eighths": zeros_after(eighths) for eighths in range(1, 8, 2)},
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_image_is_replaced(world: World, damage: Callable[[bytes], bytes]) -> None:
    """What is left of it after a full disk or a crash of the machine keeps nothing from starting, and is not kept."""
    script = IMPORTS + TEXTS
    assert world.start(script) == [VALUES, COMPILED, COMPILED_WELL]
    damaged = damage(world.image.read_bytes())
    world.image.write_bytes(damaged)
    values, _, text = world.start(script)
    assert (values, text) == (VALUES, COMPILED_WELL)
    assert world.image.read_bytes() != damaged
    written = identity(world.image)
    assert world.start(NO_COMPILER + script) == [VALUES, SERVED, COMPILED_WELL]
    assert identity(world.image) == written


def test_the_image_of_another_interpreter_is_replaced(world: World) -> None:
    """Its code would mean something else here."""
    world.start(IMPORTS)
    whole = world.image.read_bytes()
    assert whole.count(MAGIC_NUMBER) == 1
    world.image.write_bytes(whole.replace(MAGIC_NUMBER, bytes([MAGIC_NUMBER[0] ^ 1]) + MAGIC_NUMBER[1:]))
    assert world.start(IMPORTS) == [VALUES, COMPILED]
    assert MAGIC_NUMBER in world.image.read_bytes()[:16]
    assert world.start(IMPORTS) == [VALUES, SERVED]


def test_nothing_is_written_where_no_bytecode_may_be(world: World) -> None:
    """PYTHONDONTWRITEBYTECODE is for this file too; one that is there is read, as other bytecode is."""
    world.run(IMPORTS)  # there is bytecode that could be taken
    for _ in range(2):
        told = world.start(IMPORTS + TEXTS, PYTHONDONTWRITEBYTECODE="1")
        assert told == [VALUES, COMPILED, COMPILED_WELL]
        assert not world.image.exists()
    world.start(IMPORTS)
    written = identity(world.image)
    assert world.start(IMPORTS + TEXTS, PYTHONDONTWRITEBYTECODE="1") == [VALUES, SERVED, COMPILED_WELL]
    assert identity(world.image) == written


@pytest.mark.parametrize("place", ["missing/start.image", "file/start.image", "directory"])
def test_a_place_that_cannot_be_written_to_is_no_error(world: World, place: str) -> None:
    """A directory that is not there, a file where it should be, a directory where the file should be."""
    (world.directory / "file").write_text("a note")
    (world.directory / "directory").mkdir()
    before = {*world.directory.iterdir()}
    for _ in range(2):
        told = world.run(IMPORTS + TEXTS + "image.save()", image=world.directory / place)
        assert told == [VALUES, COMPILED, COMPILED_WELL]
    assert {*world.directory.iterdir()} - {world.bytecode} == before


@pytest.mark.parametrize("exists", [False, True])
def test_a_directory_of_somebody_else_is_no_error(world: World, exists: bool) -> None:
    """Root, who may write everywhere, becomes nobody for it."""
    if exists:
        world.start(IMPORTS)
    world.directory.chmod(0o500)
    script = "import os\nif os.geteuid() == 0: os.seteuid(65534)\nimage.save()"
    before = identity(world.image) if exists else None
    try:
        assert world.run("import single, os\n" + TEXTS + script) == [COMPILED_WELL]
    finally:
        world.directory.chmod(0o700)
    assert (identity(world.image) if world.image.exists() else None) == before


def test_a_full_disk_is_no_error(world: World) -> None:
    """Nothing of the attempt is left, and the image that was there stays."""
    world.start(IMPORTS)
    written = identity(world.image)
    script = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\nimage.save()"
    assert world.run(IMPORTS + TEXTS + script) == [VALUES, SERVED, COMPILED_WELL]
    assert identity(world.image) == written
    assert [path.name for path in world.directory.glob("start.image*")] == ["start.image"]


def test_after_saving_nothing_is_served(world: World) -> None:
    """What comes later comes in the ordinary way."""
    world.start(IMPORTS + TEXTS)
    told = world.run("image.save()\n" + IMPORTS + TEXTS + "print(len(image._compiled))")
    assert told == [VALUES, COMPILED, COMPILED_WELL, "1"]


def test_a_thread_that_imports_meanwhile_finds_its_module(world: World) -> None:
    """A broker saves in a thread, and the import of another one may be on its way from finder to finder."""
    script = """
import threading

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "single":
            thread = threading.Thread(target=image.save)
            thread.start()
            thread.join()

sys.meta_path.insert(-1, Finder)
import single
print(single.value)
"""
    assert world.run(script) == ["3"]


# The image is saved when the test says so, by a line: whatever it asked of the broker before has been imported then.
WHEN_TOLD = """
import runpy, sys
from ottla.cli import start_image

def when_told(image):
    sys.stdin.readline()
    save(image)
    loader = sys.modules["ottla.server.server"].__spec__.loader
    print("saved", type(loader) is start_image._Loader, flush=True)

save, start_image.StartImage.save = start_image.StartImage.save, when_told
runpy.run_module("ottla", run_name="__main__", alter_sys=True)
"""


@contextmanager
def broker(world: World, *command: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A broker that is ready, with its address; it is stopped at the end."""
    arguments = ["serve", "--data", str(world.directory / "data"), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, *command, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=world.environment(),
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"PLAINTEXT://(\S+?),", line)
            assert found is not None, line
            yield process, found[1]
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()


def saved_when_told(world: World, offset: int) -> tuple[str, tuple[int, int]]:
    """A start that answers a client and then saves: what it says of that, and the image it leaves."""
    with broker(world, "-c", WHEN_TOLD) as (process, bootstrap):
        with RawClient.to(bootstrap) as raw:
            assert produce(raw, "t", [1]).base_offset == offset
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("now\n")
        process.stdin.flush()
        line = process.stdout.readline()
    return line, identity(the_image(world))


def the_image(world: World) -> Path:
    [found] = world.bytecode.rglob("*.image")
    return found


def test_a_broker_leaves_an_image_for_the_next_one(world: World) -> None:
    """The first writes it, the second serves with it and adds what it needed more, the third finds all it needs."""
    with broker(world, "-m", "ottla") as (process, bootstrap):
        with RawClient.to(bootstrap) as raw:
            create_topic(raw, "t")
            assert produce(raw, "t", [1]).base_offset == 0
        eventually(lambda: len([*world.bytecode.rglob("*.image")]), 1)
        assert process.poll() is None
    assert re.fullmatch(r"start_image\..+\.image", the_image(world).name)
    second, written = saved_when_told(world, 1)
    assert second == "saved True\n"
    assert saved_when_told(world, 2) == (second, written)
