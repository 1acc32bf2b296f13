"""How a command says why it could not do something."""

import os


def reason_of(error: Exception, path: str) -> str:
    """What is wrong, without the path if that is the one which was named."""
    if isinstance(error, OSError) and str(error.filename).rstrip(os.sep) == path.rstrip(os.sep):
        return str(error.strerror)
    return str(error)
