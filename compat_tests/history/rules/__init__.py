"""Rules, one function each: a history in, what is wrong with it out. The docstring says what must be true."""
