"""The requests of access control lists, to brokers without an authorizer."""

from typing import Any

import pytest

from compat_tests.raw_client import ConnectionClosed, RawClient, plain
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest

ANY, TOPIC, LITERAL, READ, ALLOW = 1, 2, 3, 3, 3
VERSIONS = [1, 2, 3]


def describing(**changed: int) -> DescribeAclsRequest:
    fields: dict[str, Any] = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return DescribeAclsRequest(**{**fields, **changed})


def creating(**changed: int) -> CreateAclsRequest:
    fields: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_name": "topic",
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return CreateAclsRequest(creations=[AclCreation(**fields), AclCreation(**{**fields, **changed})])


def deleting(**changed: int) -> DeleteAclsRequest:
    fields: dict[str, Any] = {
        "resource_type_filter": ANY,
        "resource_name_filter": "topic",
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return DeleteAclsRequest(filters=[DeleteAclsFilter(**fields), DeleteAclsFilter(**{**fields, **changed})])


@pytest.mark.parametrize("version", VERSIONS)
def test_describe(raw: RawClient, version: int) -> None:
    """There is nothing to describe."""
    assert plain(raw.send(describing(), version)) == {
        "throttle_time_ms": 0,
        "error_code": ErrorCode.SECURITY_DISABLED,
        "error_message": "No Authorizer is configured on the broker",
        "resources": [],
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_create(raw: RawClient, version: int) -> None:
    """Every entry is refused for itself."""
    refused = {
        "error_code": ErrorCode.SECURITY_DISABLED,
        "error_message": "No Authorizer is configured.",
    }
    assert plain(raw.send(creating(), version)) == {"throttle_time_ms": 0, "results": [refused] * 2}
    assert raw.send(CreateAclsRequest(creations=[]), version).results == []


@pytest.mark.parametrize("version", VERSIONS)
def test_delete(raw: RawClient, version: int) -> None:
    """Every filter is refused for itself."""
    refused = {
        "error_code": ErrorCode.SECURITY_DISABLED,
        "error_message": "No Authorizer is configured.",
        "matching_acls": [],
    }
    assert plain(raw.send(deleting(), version)) == {"throttle_time_ms": 0, "filter_results": [refused] * 2}
    assert raw.send(DeleteAclsRequest(filters=[]), version).filter_results == []


@pytest.mark.parametrize(
    "request_",
    [
        describing(resource_type_filter=0),
        describing(pattern_type_filter=0),
        describing(operation=0),
        describing(permission_type=0),
        creating(resource_type=0),
        creating(resource_pattern_type=0),
        creating(operation=0),
        creating(permission_type=0),
        deleting(resource_type_filter=0),
        deleting(pattern_type_filter=0),
        deleting(operation=0),
        deleting(permission_type=0),
    ],
    ids=lambda each: type(each).__name__,
)
def test_unknown_elements(raw: RawClient, request_: Any) -> None:
    """What is of the kind that means unknown ends the connection."""
    with pytest.raises(ConnectionClosed):
        raw.send(request_, 3)


def test_elements_of_the_future(raw: RawClient) -> None:
    """A number that no Kafka knows yet is not the unknown one."""
    assert raw.send(describing(operation=99), 3).error_code == ErrorCode.SECURITY_DISABLED
