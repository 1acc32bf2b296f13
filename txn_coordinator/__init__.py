"""The room of the transaction coordinator: a pure state machine. No transaction API is served so far."""
