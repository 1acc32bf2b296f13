"""One file per API; every module of this package is found and registered at start."""
