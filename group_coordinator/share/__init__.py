"""Share groups (KIP-932): membership and assignment.

Members share partitions; each one may be assigned to several of them, and nobody waits for others to give one up.
Only partitions whose state has been initialised in `__share_group_state` are assigned.
"""
