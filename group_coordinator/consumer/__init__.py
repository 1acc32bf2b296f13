"""The consumer group protocol (KIP-848): the coordinator assigns, members reconcile step by step.

`state` is what a group is, `replay` folds records into it, `heartbeat` and `leave` answer members, `fencing` removes
those that vanish, `reconcile` moves one member towards its target, `target` computes the target with one of the
`assignors`, `subscriptions` and `regexes` say which topics a group reads, `classic_members` serves members that still
speak the classic protocol, `migration` turns classic groups into consumer groups and back, `describe` shows a group.
"""
