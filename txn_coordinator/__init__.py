"""The room of the transaction coordinator: a pure state machine and its records."""
