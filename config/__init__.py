"""The one table of broker and topic configs: names, types, defaults, docs and rules."""
