"""What can be wrong with a metadata directory or log, in one sentence for whoever starts the broker."""


class MetadataError(Exception):
    """The metadata cannot be used as it is; the message is one sentence that says why."""
