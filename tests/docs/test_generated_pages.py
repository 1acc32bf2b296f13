"""The generated pages say what the tables say."""

import pytest

from docs.generate import DIRECTORY, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_page_is_fresh(name: str) -> None:
    """`make docs` would change nothing."""
    assert (DIRECTORY / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"
