"""The one table of broker and topic configs: names, types, defaults, docs and rules.

`definition` says what a config is and how its text is parsed, `topics` and `broker` hold the two tables,
`broker_config` loads a broker's own properties, `topic_config` is what a partition's log is told, and
`describe` answers what DescribeConfigs asks.
"""
