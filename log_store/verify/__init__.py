"""Checking the files of a log directory against each other, without writing to any of them: `ottla log verify`."""
