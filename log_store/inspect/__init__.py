"""Reading the files of a log directory without writing to any of them, for `ottla log dump` and `verify`."""
