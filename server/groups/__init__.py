"""The group coordinator of this broker: shards loaded from `__consumer_offsets`, their timers, who waits for them."""
