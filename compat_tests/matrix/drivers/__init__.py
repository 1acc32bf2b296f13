"""One driver for each client library; the README of the matrix says what it is told and what it answers."""
