"""The driver of kcat: each call is a command as one would type it, and what it printed is taken apart."""
