"""Plots as files of their own."""

from xml.etree import ElementTree

from docs.plots import bars, lines, standalone

SVG = "{http://www.w3.org/2000/svg}"


def box_of(svg: str) -> list[int]:
    return [int(number) for number in ElementTree.fromstring(svg).attrib["viewBox"].split()]


def test_a_title_stands_above_the_plot() -> None:
    """The plot keeps its place and size, and the ground is behind both."""
    plot = lines({"sent": [(0, 1), (10, 5)]}, "records/s")
    plain, titled = standalone(plot), standalone(plot, "Sent & read")
    left, top, width, height = box_of(titled)
    assert (left, width, top + height) == (0, box_of(plain)[2], box_of(plain)[3])
    assert top < 0
    root = ElementTree.fromstring(titled)
    assert [text.text for text in root.iter(f"{SVG}text") if float(text.attrib["y"]) < 0] == ["Sent & read"]
    ground = root[0].attrib
    assert [int(ground[name]) for name in ("y", "width", "height")] == [top, width, height]


def test_without_a_title_nothing_is_above() -> None:
    """The plot alone, as it was."""
    plot = bars([("a", 1), ("b", 2)])
    assert box_of(standalone(plot)) == [0, 0, 640, 60]
