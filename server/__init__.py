"""The only room that waits: listener, connections, dispatch, handlers, and the wiring of the broker."""
