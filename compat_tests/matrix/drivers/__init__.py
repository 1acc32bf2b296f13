"""One driver for each client library, and `<family>_clients.py` files that say how each is made ready.

Such a file has a list `CLIENTS`; it is found by its name. It must not import the libraries themselves.
"""
