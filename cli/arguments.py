"""What `ottla serve` is told, and how its plain form is read without argparse.

argparse and what it imports take a tenth of a start. So `serve` with options that are written out, each with its
value, is read here; anything else, a mistake or `--help` among it, is argparse's.
"""

from collections.abc import Sequence

LOG_LEVELS = ("debug", "info", "warning", "error")


class ServeArguments:
    """The options of `ottla serve`."""

    def __init__(self) -> None:
        self.config: str | None = None
        self.data: str | None = None
        self.listen: list[str] | None = None
        self.set: list[str] = []
        self.log_level = "info"


def plain_serve(argv: Sequence[str]) -> ServeArguments | None:
    """The arguments of a `serve` in its plain form; None if it is not one."""
    if not argv or argv[0] != "serve":
        return None
    found = ServeArguments()
    words = iter(argv[1:])
    for word in words:
        option, equals, value = word.partition("=")
        if not equals:
            value = next(words, "-")
            if value.startswith("-") or not value:  # argparse knows when that is a value
                return None
        if option == "--config":
            found.config = value
        elif option == "--data":
            found.data = value
        elif option == "--listen":
            found.listen = [*(found.listen or ()), value]
        elif option == "--set":
            found.set.append(value)
        elif option == "--log-level" and value in LOG_LEVELS:
            found.log_level = value
        else:
            return None
    return found
