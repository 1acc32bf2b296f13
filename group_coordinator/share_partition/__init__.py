"""A partition as a share group reads it (KIP-932): which records are with whom, and which are done."""
