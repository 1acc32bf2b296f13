"""What is more than a client: Kafka's tools, Streams, Connect, MirrorMaker; cases and `*_clients.py` alike."""
