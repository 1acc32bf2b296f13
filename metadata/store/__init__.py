"""The metadata of this node on disk."""

from ottla.metadata.store.store import MetadataSettings, MetadataStore

__all__ = ["MetadataSettings", "MetadataStore"]
