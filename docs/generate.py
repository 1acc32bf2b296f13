"""Write the pages that are made from tables: docs/apis.md, docs/configs.md and docs/errors.md.

`python -m docs.generate` writes them; a test compares them with what it would write, so that they stay true.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from docs.generate_configs import configs_page
from ottla.server.registry import Registration, load_registry
from ottla.wire.api_keys import api_key_info, api_key_infos
from ottla.wire.errors import ErrorCode

DIRECTORY = Path(__file__).parent


def apis_page() -> str:
    """Which APIs are served, in which versions, beside those of Apache Kafka 4.3's broker listener."""
    registry = load_registry()
    served = [
        f"| {info.api_key} | {info.name} | {registration.min_version}–{registration.max_version} "
        f"| {info.min_version}–{info.max_version} | {_summary(registration)} |"
        for registration, info in ((each, api_key_info(each.api_key)) for each in registry.values())
    ]
    missing = [
        f"{info.name} ({info.api_key})"
        for info in api_key_infos()
        if info.on_broker and info.api_key not in registry
    ]
    return "\n".join(
        [
            "# APIs",
            "",
            "Made from the registered handlers by `make docs`. ApiVersions advertises exactly these; Produce is",
            "advertised from version 0, as Apache Kafka does, because librdkafka turns compression off otherwise.",
            "",
            "| key | API | served | Kafka 4.3 | what it does here |",
            "|---|---|---|---|---|",
            *served,
            "",
            "Not served, and not advertised: " + ", ".join(missing) + ".",
            "",
        ]
    )


def errors_page() -> str:
    """Every error code of the protocol."""
    rows = [
        f"| {code.value} | {code.name} | {'yes' if code.retriable else ''} | {code.message} |"
        for code in sorted(ErrorCode)
    ]
    return "\n".join(
        [
            "# Errors",
            "",
            "Made from `wire/errors.py` by `make docs`.",
            "",
            "| code | name | clients retry | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _summary(registration: Registration) -> str:
    """What the handler's module says of itself in its first line, behind the API's name and versions."""
    module = sys.modules[registration.function.__module__]
    first_line = (module.__doc__ or "").splitlines()[0]
    return first_line.partition(": ")[2]


PAGES: dict[str, Callable[[], str]] = {
    "apis.md": apis_page,
    "configs.md": configs_page,
    "errors.md": errors_page,
}


def main() -> None:
    for name, page in PAGES.items():
        (DIRECTORY / name).write_text(page(), encoding="utf-8")
        print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
