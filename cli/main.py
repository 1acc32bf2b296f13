"""The front door: `ottla serve` and whatever commands join it.

Heavy imports wait until the command is known, so that `--help` and a typing mistake answer at once, and a broker reads
no more than it needs before its first clients are answered.
"""

import gc
import sys
from collections.abc import Sequence
from time import perf_counter

from ottla.cli.arguments import ServeArguments, plain_serve

_STARTED = perf_counter()


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = plain_serve(sys.argv[1:] if argv is None else argv)
    if arguments is None:
        from ottla.cli.parser import parser_of_commands

        parsed = parser_of_commands().parse_args(argv)
        if parsed.command == "log":
            from ottla.cli.log import run_log_command

            return run_log_command(parsed)
        arguments = ServeArguments()
        vars(arguments).update(vars(parsed))
    return _serve(arguments)


def _serve(arguments: ServeArguments) -> int:
    # Start-up makes objects that stay: collecting among them would only take time. Serving turns it on again.
    gc.disable()
    from ottla.cli.late_modules import put_off_trio
    from ottla.cli.start_image import StartImage
    from ottla.wire.compiled_text import use_compiler

    image = StartImage()
    image.open()
    with image.compiling_for_others():
        put_off_trio()
    use_compiler(image.compile)
    from ottla.cli.serve import serve

    return serve(arguments, image, _STARTED)


if __name__ == "__main__":
    sys.exit(main())
