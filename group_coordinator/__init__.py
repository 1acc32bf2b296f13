"""The room of the group coordinator: pure state machines of consumer groups. No group API is
served so far."""
