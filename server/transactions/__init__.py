"""Transactions in the server: the coordinator's service, and the markers that end transactions in partitions."""
