"""Which settings a topic's logs go by: its own overrides over the broker's dynamic and static settings."""

from __future__ import annotations

from ottla.config.broker_config import BrokerConfig
from ottla.config.topic_config import TopicConfig
from ottla.config.topic_rules import broker_topic_defaults, topic_config_over
from ottla.metadata.image import MetadataImage


class TopicConfigs:
    """Resolves topic configs; `refresh` after a dynamic broker config has changed."""

    def __init__(self, static: BrokerConfig, node_id: int) -> None:
        self._static = static
        self._node_id = node_id
        self.broker = static
        self._defaults = broker_topic_defaults(static)

    def refresh(self, image: MetadataImage) -> None:
        """Lay the dynamic broker configs of the image over the static ones."""
        dynamic_default = image.broker_configs(None)
        dynamic_broker = image.broker_configs(self._node_id)
        self.broker = self._static
        if dynamic_default or dynamic_broker:
            self.broker = self._static.with_dynamic(dynamic_default, dynamic_broker)
        self._defaults = broker_topic_defaults(self.broker)

    def of(self, image: MetadataImage, topic: str) -> TopicConfig:
        """The effective config of a topic."""
        return topic_config_over(self._defaults, image.topic_configs(topic))
