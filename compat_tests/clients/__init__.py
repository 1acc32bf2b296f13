"""Stock Kafka clients behind one small interface, so that one case runs with each of them."""

from compat_tests.clients.aiokafka_client import AiokafkaClient
from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.clients.interface import Client, Message, Stored
from compat_tests.clients.kafka_python_client import KafkaPythonClient

CLIENTS: tuple[Client, ...] = (KafkaPythonClient(), ConfluentClient(), AiokafkaClient())

__all__ = ["CLIENTS", "Client", "Message", "Stored"]
