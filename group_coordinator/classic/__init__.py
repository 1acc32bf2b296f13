"""Classic groups: members join, one of them assigns, all of them sync, and everyone stops for every rebalance.

The protocol is generic: what members say of themselves and what the leader assigns is opaque, and only for consumers is
it looked into, for the names of the topics they subscribe to.
"""
