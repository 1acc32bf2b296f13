"""ApiVersions (18): which APIs, versions and features the broker has; the first request of every client.

Flexible from 3 (KIP-511), but the header of the response never is. A broker answers a version it does not
know with a version 0 body and UNSUPPORTED_VERSION. Version 3 adds the client's software name and the
features (KIP-584), version 4 allows features whose lowest version is 0.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, INT16, INT32, INT64, STRING, Message, array, field, message, structure


@message(api_key=ApiKey.API_VERSIONS, kind="request", versions=(0, 4), flexible=3)
class ApiVersionsRequest(Message):
    client_software_name: str = field(STRING, "3+", ignorable=True)
    client_software_version: str = field(STRING, "3+", ignorable=True)


@structure
class ApiVersion:
    api_key: int = field(INT16)
    min_version: int = field(INT16)
    max_version: int = field(INT16)


@structure
class SupportedFeatureKey:
    name: str = field(STRING, "3+")
    min_version: int = field(INT16, "3+")
    max_version: int = field(INT16, "3+")


@structure
class FinalizedFeatureKey:
    name: str = field(STRING, "3+")
    max_version_level: int = field(INT16, "3+")
    min_version_level: int = field(INT16, "3+")


@message(api_key=ApiKey.API_VERSIONS, kind="response", versions=(0, 4), flexible=3)
class ApiVersionsResponse(Message):
    error_code: int = field(INT16)
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, "3+", tag=0, ignorable=True)
    finalized_features_epoch: int = field(INT64, "3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, "3+", tag=2, ignorable=True)
    zk_migration_ready: bool = field(BOOL, "3+", tag=3, ignorable=True)
