"""The four APIs of configs through their handlers, with a real image and the real planning, without a disk.

The expected answers are those of Apache Kafka 4.3.0 to the same requests.
"""

import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.config.resources import Operation, ResourceType
from ottla.metadata.controller.plan import Plan
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import ConfigRecord, RegisterBrokerRecord, TopicRecord
from ottla.metadata.records.nodes import BrokerEndpoint
from ottla.server.context import RequestContext
from ottla.server.registry import load_registry
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import alter_configs as legacy
from ottla.wire.messages import incremental_alter_configs as incremental
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ottla.wire.schema import decode, encode

SET, DELETE, APPEND, SUBTRACT = Operation
TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
CLIENT_METRICS, GROUP = ResourceType.CLIENT_METRICS, ResourceType.GROUP
Response = TypeVar("Response")
Change = tuple[str, int, str | None]


class MemoryBroker:
    """What the handlers ask of a broker; changes go straight into the image."""

    def __init__(self) -> None:
        self.static_config = BrokerConfig.load({"log.retention.hours": "100"})
        self.node_id = 1
        self.image = MetadataImage()
        endpoint = BrokerEndpoint(name="PLAINTEXT", host="localhost", port=9092, security_protocol=0)
        self.image.apply_all(
            [
                RegisterBrokerRecord(broker_id=1, broker_epoch=1, fenced=False, end_points=[endpoint]),
                TopicRecord(name="plain", topic_id=b"p" * 16),
            ],
            last_offset=1,
        )

    async def decide(self, planner: Callable[[MetadataImage], Plan[Response]]) -> Response:
        """Plan and fold."""
        plan = planner(self.image)
        self.image.apply_all(plan.records, last_offset=self.image.last_offset + len(plan.records))
        return plan.results


class Client:
    """Sends requests to the handlers through the codecs."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self._registry = load_registry()

    async def send(self, request: Any, version: int, response_type: type[Response]) -> Response:
        """One request, decoded and answered in a version."""
        context = RequestContext(self.broker, "PLAINTEXT", "localhost")  # type: ignore[arg-type]
        context.api_version = version
        answer = self._registry[request.API_KEY].function(
            context, decode(type(request), version, encode(request, version))
        )
        if inspect.isawaitable(answer):
            answer = await answer
        return decode(response_type, version, encode(answer, version))

    async def describe(
        self, resource_type: int, name: str, keys: list[str] | None = None, version: int = 4, **flags: bool
    ) -> DescribeConfigsResult:
        """DescribeConfigs of one resource."""
        resource = DescribeConfigsResource(
            resource_type=resource_type, resource_name=name, configuration_keys=keys
        )
        request = DescribeConfigsRequest(resources=[resource], **flags)
        response = await self.send(request, version, DescribeConfigsResponse)
        (result,) = response.results
        assert (result.resource_type, result.resource_name) == (resource_type, name)
        return result

    async def value(self, resource_type: int, name: str, key: str) -> tuple[str | None, int]:
        """Value and source of one config."""
        (entry,) = (await self.describe(resource_type, name, [key])).configs
        return entry.value, entry.config_source

    async def change(
        self, resource_type: int, name: str, *changes: Change, validate_only: bool = False, version: int = 1
    ) -> tuple[int, str | None]:
        """IncrementalAlterConfigs of one resource: error code and message."""
        configs = [
            incremental.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ]
        resource = incremental.AlterConfigsResource(
            resource_type=resource_type, resource_name=name, configs=configs
        )
        request = incremental.IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=validate_only
        )
        response = await self.send(request, version, incremental.IncrementalAlterConfigsResponse)
        (result,) = response.responses
        return result.error_code, result.error_message

    async def replace(
        self, resource_type: int, name: str, configs: dict[str, str | None], version: int = 2
    ) -> tuple[int, str | None]:
        """AlterConfigs of one resource: error code and message."""
        resource = legacy.AlterConfigsResource(
            resource_type=resource_type,
            resource_name=name,
            configs=[legacy.AlterableConfig(name=key, value=value) for key, value in configs.items()],
        )
        request = legacy.AlterConfigsRequest(resources=[resource])
        response = await self.send(request, version, legacy.AlterConfigsResponse)
        (result,) = response.responses
        return result.error_code, result.error_message

    async def listed(self, version: int, *resource_types: int) -> list[tuple[int, str]]:
        """ListConfigResources: types and names."""
        request = ListConfigResourcesRequest(resource_types=list(resource_types))
        response = await self.send(request, version, ListConfigResourcesResponse)
        assert response.error_code == ErrorCode.NONE
        return [(each.resource_type, each.resource_name) for each in response.config_resources]


@pytest.fixture
def client() -> Client:
    """A broker with one topic, `plain`."""
    return Client()


OK = (0, None)


async def test_describe_versions(client: Client) -> None:
    """Types and docs came with version 3, synonyms only on demand."""
    (old,) = (await client.describe(TOPIC, "plain", ["segment.ms"], 1, include_synonyms=True)).configs
    assert (old.value, old.config_source, old.config_type) == ("604800000", 5, 0)
    (bare,) = (await client.describe(TOPIC, "plain", ["segment.bytes"])).configs
    assert (bare.synonyms, bare.documentation, bare.config_type) == ([], None, 3)
    flags = {"include_synonyms": True, "include_documentation": True}
    (full,) = (await client.describe(TOPIC, "plain", ["segment.bytes"], 3, **flags)).configs
    assert [(each.name, each.value, each.source) for each in full.synonyms] == [
        ("log.segment.bytes", "1073741824", 5)
    ]
    assert full.documentation is not None
    assert full.documentation.startswith("Size at which")


@pytest.mark.parametrize(
    ("resource_type", "name", "code", "said"),
    [
        (TOPIC, "nosuch", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (
            TOPIC,
            "a b",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
        (
            BROKER,
            "2",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (BROKER, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (LOGGER, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (LOGGER, "7", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 but received 7"),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (GROUP, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
    ],
)
async def test_describe_refuses(
    client: Client, resource_type: int, name: str, code: ErrorCode, said: str
) -> None:
    """What cannot be described, in Kafka's words."""
    result = await client.describe(resource_type, name)
    assert (result.error_code, result.error_message, result.configs) == (code, said, [])


async def test_describe_of_an_unknown_type_fails_whole(client: Client) -> None:
    """One resource of a type that does not exist takes the others with it."""
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name="plain"),
        DescribeConfigsResource(resource_type=64, resource_name="x"),
    ]
    request = DescribeConfigsRequest(resources=resources)
    response = await client.send(request, 4, DescribeConfigsResponse)
    assert [result.error_code for result in response.results] == [ErrorCode.INVALID_REQUEST] * 2


async def test_describe_what_is_there(client: Client) -> None:
    """All configs of each kind; the node id is told though no property gave it."""
    assert len((await client.describe(TOPIC, "plain")).configs) == 33
    assert len((await client.describe(BROKER, "1")).configs) == 340
    assert (await client.describe(BROKER, "")).configs == []
    assert len((await client.describe(GROUP, "any")).configs) == 17
    assert len((await client.describe(CLIENT_METRICS, "any")).configs) == 3
    assert (await client.value(BROKER, "1", "node.id"))[0] == "1"


async def test_change_a_topic(client: Client) -> None:
    """Set, append, subtract and delete, one after the other."""
    assert await client.change(TOPIC, "plain", ("retention.ms", SET, "5")) == OK
    assert await client.value(TOPIC, "plain", "retention.ms") == ("5", 1)
    assert await client.change(TOPIC, "plain", ("cleanup.policy", APPEND, "compact"), version=0) == OK
    assert await client.value(TOPIC, "plain", "cleanup.policy") == ("delete,compact", 1)
    assert await client.change(TOPIC, "plain", ("cleanup.policy", SUBTRACT, "delete")) == OK
    assert await client.value(TOPIC, "plain", "cleanup.policy") == ("compact", 1)
    assert await client.change(TOPIC, "plain", ("retention.ms", DELETE, None)) == OK
    assert await client.value(TOPIC, "plain", "retention.ms") == ("360000000", 5)


async def test_validate_only_changes_nothing(client: Client) -> None:
    """A valid change that is only tried, and an invalid one."""
    assert await client.change(TOPIC, "plain", ("retention.ms", SET, "9"), validate_only=True) == OK
    code, _ = await client.change(TOPIC, "plain", ("retention.ms", SET, "x"), validate_only=True)
    assert code == ErrorCode.INVALID_CONFIG
    assert client.broker.image.topic_configs("plain") == {}


@pytest.mark.parametrize(
    ("resource_type", "name", "change", "code", "said"),
    [
        (
            TOPIC,
            "plain",
            ("retention.ms", APPEND, "1"),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (TOPIC, "plain", ("nope", SET, "1"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: nope"),
        (
            TOPIC,
            "plain",
            ("retention.ms", SET, None),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
        (
            TOPIC,
            "nosuch",
            ("retention.ms", SET, "9"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'nosuch' does not exist.",
        ),
        (
            TOPIC,
            "",
            ("retention.ms", SET, "9"),
            ErrorCode.INVALID_REQUEST,
            "Default topic resources are not allowed.",
        ),
        (
            BROKER,
            "1",
            ("num.partitions", SET, "4"),
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            BROKER,
            "1",
            ("log.retention.ms", SET, "0"),
            ErrorCode.INVALID_REQUEST,
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        (
            BROKER,
            "1",
            ("log.retention.ms", APPEND, "1"),
            ErrorCode.INVALID_CONFIG,
            "Config value append is not allowed for config key: log.retention.ms",
        ),
        (BROKER, "1", ("nope", APPEND, "1"), ErrorCode.INVALID_CONFIG, "Unknown config name: nope"),
        (
            BROKER,
            "1",
            ("log.retention.ms", 9, "1"),
            ErrorCode.INVALID_REQUEST,
            "Unknown operations type 9",
        ),
        (
            BROKER,
            "2",
            ("log.retention.ms", SET, "1"),
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 2",
        ),
        (
            BROKER,
            "x",
            ("log.retention.ms", SET, "1"),
            ErrorCode.INVALID_REQUEST,
            "Node id must be an integer, but it is: x",
        ),
        (
            GROUP,
            "g",
            ("consumer.session.timeout.ms", APPEND, "1"),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key consumer.session.timeout.ms because its type is not LIST.",
        ),
        (GROUP, "g", ("nope", SET, "1"), ErrorCode.INVALID_CONFIG, "Unknown group config name: nope"),
        (
            CLIENT_METRICS,
            "m",
            ("metrics", APPEND, "x"),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key metrics because its type is not LIST.",
        ),
        (77, "x", ("a", SET, "b"), ErrorCode.INVALID_REQUEST, "Unknown resource type 77"),
    ],
)
async def test_change_refused(
    client: Client, resource_type: int, name: str, change: Change, code: ErrorCode, said: str
) -> None:
    """What cannot be changed, in Kafka's words; nothing is stored."""
    before = dict(client.broker.image.configs)
    assert await client.change(resource_type, name, change) == (code, said)
    assert client.broker.image.configs == before


async def test_twice_the_same(client: Client) -> None:
    """A config or a resource may appear once in a request."""
    twice = ("retention.ms", SET, "9")
    assert await client.change(TOPIC, "plain", twice, twice) == (
        ErrorCode.INVALID_REQUEST,
        "Error due to duplicate config keys",
    )
    config = incremental.AlterableConfig(name="root", config_operation=SET, value="INFO")
    resource = incremental.AlterConfigsResource(resource_type=LOGGER, resource_name="1", configs=[config])
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource, resource])
    response = await client.send(request, 1, incremental.IncrementalAlterConfigsResponse)
    assert [result.error_message for result in response.responses] == [
        "Each resource must appear at most once."
    ] * 2


async def test_broker_levels_reach_topics(client: Client) -> None:
    """Dynamic configs of one broker and of all feed the topics."""
    await client.change(BROKER, "", ("log.retention.ms", SET, "888"))
    assert await client.value(TOPIC, "plain", "retention.ms") == ("888", 3)
    await client.change(BROKER, "1", ("log.retention.ms", SET, "777"))
    assert await client.value(TOPIC, "plain", "retention.ms") == ("777", 2)
    assert await client.value(BROKER, "", "log.retention.ms") == ("888", 3)
    assert await client.change(BROKER, "1", ("log.retention.ms", DELETE, None)) == OK
    assert await client.value(BROKER, "1", "log.retention.ms") == ("888", 3)


async def test_replace(client: Client) -> None:
    """AlterConfigs drops what it does not name."""
    await client.change(TOPIC, "plain", ("retention.ms", SET, "5"))
    assert await client.replace(TOPIC, "plain", {"segment.ms": "100"}, version=0) == OK
    assert client.broker.image.topic_configs("plain") == {"segment.ms": "100"}
    assert await client.replace(TOPIC, "plain", {}) == OK
    assert client.broker.image.topic_configs("plain") == {}
    assert await client.replace(TOPIC, "plain", {"segment.ms": None}) == (
        ErrorCode.INVALID_REQUEST,
        "Null value not supported for : segment.ms",
    )
    assert await client.replace(LOGGER, "1", {"root": "INFO"}) == (
        ErrorCode.INVALID_REQUEST,
        "Unknown resource type 8",
    )


async def test_groups_and_client_metrics(client: Client) -> None:
    """They can have configs though nothing of their name exists."""
    assert await client.change(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")) == OK
    assert await client.value(GROUP, "g", "consumer.session.timeout.ms") == ("50000", 8)
    assert await client.change(CLIENT_METRICS, "m", ("interval.ms", SET, "1000")) == OK
    assert await client.value(CLIENT_METRICS, "m", "interval.ms") == ("1000", 7)


async def test_list(client: Client) -> None:
    """Topics and brokers always, groups and client metrics while they have configs."""
    assert await client.listed(0) == []
    assert await client.listed(1) == [(8, "1"), (4, "1"), (2, "plain")]
    records = [
        ConfigRecord(resource_type=kind, resource_name="m", name="x", value="1")
        for kind in (CLIENT_METRICS, GROUP)
    ]
    client.broker.image.apply_all(records, last_offset=9)
    assert await client.listed(0) == [(16, "m")]
    assert await client.listed(1, GROUP, TOPIC) == [(32, "m"), (2, "plain")]


async def test_list_of_an_unknown_type(client: Client) -> None:
    """UNSUPPORTED_VERSION, whatever else was asked."""
    request = ListConfigResourcesRequest(resource_types=[TOPIC, 99])
    response = await client.send(request, 1, ListConfigResourcesResponse)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger of the house, put back afterwards."""
    logger = logging.getLogger("ottla.server.test")
    yield logger
    logger.setLevel(logging.NOTSET)


async def test_logger_levels(client: Client, logger: logging.Logger) -> None:
    """Levels are set and removed at once; a change with one mistake does nothing."""
    assert await client.change(LOGGER, "1", (logger.name, SET, "TRACE")) == OK
    assert logger.level == 5
    assert await client.value(LOGGER, "1", logger.name) == ("TRACE", 6)
    assert await client.change(LOGGER, "1", (logger.name, SET, "ERROR"), validate_only=True) == OK
    assert logger.level == 5
    assert await client.change(LOGGER, "1", (logger.name, DELETE, None), ("nosuch", SET, "INFO")) == (
        ErrorCode.INVALID_CONFIG,
        "Logger nosuch does not exist!",
    )
    assert logger.level == 5
    assert await client.change(LOGGER, "1", (logger.name, DELETE, None)) == OK
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("name", "change", "code", "said"),
    [
        (
            "1",
            ("root", SET, "LOUD"),
            ErrorCode.INVALID_CONFIG,
            "Cannot set the log level of root to LOUD as it is not a supported log level. "
            "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        ),
        (
            "2",
            ("root", SET, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "Unexpected node id. Expected 1, but received 2",
        ),
        ("", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: "),
        (
            "1",
            ("root", DELETE, None),
            ErrorCode.INVALID_REQUEST,
            "Removing the log level of the root logger is not allowed",
        ),
        (
            "1",
            ("root", APPEND, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        ("1", ("root", 9, "INFO"), ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
    ],
)
async def test_logger_levels_refused(
    client: Client, name: str, change: Change, code: ErrorCode, said: str
) -> None:
    """What cannot be done to loggers."""
    assert await client.change(LOGGER, name, change) == (code, said)
