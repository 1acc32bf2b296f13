"""Share groups (KIP-932) at work: states kept in `__share_group_state`, sessions, and records handed to members."""
