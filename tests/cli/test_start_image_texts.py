"""The file that has what earlier starts read and compiled: texts, ours and other people's.

Each run is a process of its own, as in test_start_image.py.
"""

from pathlib import Path

import pytest

from tests.cli.start_world import COMPILED_WELL, NO_COMPILER, TEXTS, World, identity


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_text_is_compiled_once(world: World) -> None:
    """The second start has the same code without a compiler, as often as it asks."""
    assert world.start(TEXTS) == [COMPILED_WELL]
    written = identity(world.image)
    assert world.start(NO_COMPILER + TEXTS + TEXTS) == [COMPILED_WELL, COMPILED_WELL]
    assert identity(world.image) == written


def test_another_title_or_text_is_compiled(world: World) -> None:
    """And kept beside the others."""
    world.start(TEXTS)
    title, text = TEXTS.replace("<a title>", "<another>"), TEXTS.replace("a text", "other text")
    told = [COMPILED_WELL, "True <another> [6, 'a text']", "True <a title> [6, 'other text']"]
    assert world.start(TEXTS + title + text) == told
    assert world.start(NO_COMPILER + TEXTS + title + text) == told


def test_texts_that_are_too_many_are_forgotten(world: World) -> None:
    """Texts that are others in every start do not make the image grow for ever."""
    few = "start_image._MOST_TEXTS = 4\n"
    for number in range(4):
        world.start(few + f"image.compile('x = {number}', '<t>')")
    world.start(few + "image.compile('x = 4', '<t>')")
    script = NO_COMPILER + "print(image.compile('x = 4', '<t>').co_filename)"
    assert world.run(script) == ["<t>"]
    assert world.run("image.compile('x = 0', '<t>')\nprint(len(image._compiled))") == ["1"]


def test_others_compile_by_the_image_for_a_while(world: World) -> None:
    """The second start needs no compiler for their texts."""
    script = """
with image.compiling_for_others():
    print(compile("x = 5", "<t>", "exec").co_names)
    print(compile(source="y = 6", filename="<t>", mode="exec").co_names)
"""
    for begin in ("", NO_COMPILER):
        assert world.start(begin + script) == ["('x',)", "('y',)"]


def test_the_compiler_is_what_it_was_afterwards(world: World) -> None:
    """Error or not."""
    script = """
ordinary = compile
with image.compiling_for_others():
    print(compile is ordinary)
print(compile is ordinary)
try:
    with image.compiling_for_others():
        raise KeyError("an error of theirs")
except KeyError as error:
    print(compile is ordinary, error)
"""
    assert world.run(script) == ["False", "True", "True 'an error of theirs'"]


def test_what_is_not_plain_goes_to_the_compiler(world: World) -> None:
    """Other modes, flags and kinds of sources and names are compiled as ever, and not kept; mistakes are told."""
    script = """
import ast, pathlib
tree = ast.parse("x = 7")
calls = [
    lambda: compile("1 + 1", "<t>", "eval"),
    lambda: compile("1 + 1", "<t>", "single"),
    lambda: ast.dump(compile("x = 7", "<t>", "exec", ast.PyCF_ONLY_AST)),
    lambda: ast.dump(ast.parse("x = 7")),
    lambda: compile("assert x", "<t>", "exec", dont_inherit=True, optimize=2),
    lambda: compile("assert x", "<t>", "exec", 0, True, 2),
    lambda: compile(b"x = 7", "<t>", "exec"),
    lambda: compile(tree, "<t>", "exec"),
    lambda: compile("x = 7", b"<t>", "exec"),
    lambda: compile("x = 7", pathlib.Path("t"), "exec"),
    lambda: compile("x =", "<t>", "exec"),
    lambda: compile("x = 7", "<t>", "never"),
    lambda: compile("x = 7"),
]

def told(call):
    try:
        result = call()
    except (SyntaxError, TypeError, ValueError) as error:
        return type(error)
    return result if isinstance(result, str) else result.replace(co_flags=0)  # features of who calls are in them

expected = [told(call) for call in calls]
with image.compiling_for_others():
    got = [told(call) for call in calls]
print(*(i for i, (one, other) in enumerate(zip(expected, got)) if one != other))
print(len(image._compiled))
"""
    assert world.run(script) == ["", "0"]


def test_what_attrs_writes_is_the_same_in_every_process(world: World) -> None:
    """Though strings hash differently in each: with its texts at hand, trio is there without a compiler."""
    script = """
from ottla.cli.late_modules import put_off_trio
with image.compiling_for_others():
    put_off_trio()
print(len(image._compiled), len(image._texts))
"""
    [first] = world.start(script, PYTHONHASHSEED="1")
    count, none = map(int, first.split())
    assert (count > 0, none) == (True, 0)
    assert world.start(script, PYTHONHASHSEED="2") == [f"0 {count}"]
