"""One file per API: its request and response for all versions."""
